"""Read a long CSV file: one row an event, with columns for patient, time, code, value and text."""

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from alertreview.records.sources import cells
from alertreview.records.sources.base import Format, Source, counted_codes, lacking, unread
from alertreview.records.sources.text_tables import (
    Layout,
    TextFile,
    batches,
    guesses,
    look_at,
    text_files,
    unread_files,
)
from core.errors import SourceError
from core.events.mapping import CsvColumns, SiteMapping
from core.events.spelling import number_in_text, says_missing

_N_BATCHES_TO_LOOK_AT = 5
_ADVICE = (
    "Name the columns in the site mapping under csv, or rename them in the file. If each kind of event has a table of "
    "its own, describe the tables in a mapping of the format tables (see data/README.md)."
)


def read(source: Path, mapping: SiteMapping) -> Source:
    """Open a long CSV file, or a folder or zip archive of them; the mapping's ``csv`` names the columns.

    Raise SourceError when a file is damaged or lacks a column, or, while chunks are read, has a cell that breaks a
    rule.
    """
    files = _files(source)
    layouts = [look_at(file) for file in files]
    remarks = guesses(zip(files, layouts, strict=True))
    columns = [_columns(file, layout, mapping.csv) for file, layout in zip(files, layouts, strict=True)]

    details = {*mapping.details.values()}
    remarks += lacking(
        {
            file.name: {*(getattr(mapping.csv, ours) for ours in of), *details.intersection(layout.columns)}
            for file, layout, of in zip(files, layouts, columns, strict=True)
        }
    )
    findings, zones = unread(unread_files(source), remarks), cells.Zones()

    def chunks() -> Iterator[pd.DataFrame]:
        for file, layout, named in zip(files, layouts, columns, strict=True):
            yield from _chunks(file, layout, named, mapping, zones)
        findings.extend(zones.findings())

    return Source(name=source.name, chunks=chunks(), remarks=remarks, findings=findings)


def _files(source: Path) -> list[TextFile]:
    files = text_files(source)
    if not files:
        raise SourceError(f"{source}: holds no .csv file. Give a CSV file, or a folder or zip archive of them.")
    return files


def _columns(file: TextFile, layout: Layout, wanted: CsvColumns) -> dict[str, str]:
    """Return header names by content, regardless of case."""
    lower = {name.lower(): name for name in layout.columns}
    out = {}
    for ours, theirs in wanted.model_dump().items():
        if theirs.lower() in lower and theirs:
            out[ours] = lower[theirs.lower()]
        elif ours in ("patient", "time", "code"):
            found = ", ".join(name for name in layout.columns if not name.startswith("\0"))
            raise SourceError(f"{file.name}: lacks the column {theirs!r} for the {ours} (found: {found}). {_ADVICE}")
    return out


def _without_blank_end(batch: pa.RecordBatch, columns: dict[str, str]) -> pa.RecordBatch:
    """Leave out rows of empty cells at the end, as spreadsheets write them."""
    filled = np.logical_or.reduce(
        [
            pc.is_valid(batch.column(columns[name])).to_numpy(zero_copy_only=False)
            for name in ("patient", "time", "code")
        ]
    )
    return batch.slice(0, int(np.flatnonzero(filled).max(initial=-1)) + 1)


def _chunks(
    file: TextFile, layout: Layout, columns: dict[str, str], mapping: SiteMapping, zones: cells.Zones
) -> Iterator[pd.DataFrame]:
    details = [name for name in mapping.details.values() if name in layout.columns]
    for first_row, whole in batches(file, layout, list(dict.fromkeys([*columns.values(), *details]))):
        batch = _without_blank_end(whole, columns)
        part = {ours: batch.column(theirs) for ours, theirs in columns.items()}
        chunk: dict[str, object] = {
            "subject": cells.patients(part["patient"], file.name, first_row),
            "time": cells.times(part["time"], mapping, file.name, columns["time"], first_row, zones),
            "is_date": cells.are_dates(part["time"]),
            "code": cells.texts(part["code"]),
            "value": np.full(batch.num_rows, np.nan),
        }
        if "value" in part:
            chunk["value"], said = cells.numbers(part["value"])
            if said is not None:
                chunk["text"] = cells.texts(said)
        if "text" in part:
            chunk["text"] = _either(cells.texts(part["text"]), chunk.get("text"))
        for name in ("unit", "status", "order"):
            if name in part:
                chunk[name] = cells.texts(part[name])
        if "known_at" in part:
            chunk["known_at"] = cells.times(part["known_at"], mapping, file.name, columns["known_at"], first_row)
        named = {name: batch.column(name) for name in details}
        chunk |= cells.details(named, mapping, file.name, first_row)
        found = pd.DataFrame(chunk)
        found.attrs = {"file": file.name, "first_row": first_row}
        yield found


def _either(first: pd.Categorical, second: object) -> pd.Series:
    """Return the text, or else what is no plain number in the value column; a number there in any spelling wins."""
    if not isinstance(second, pd.Categorical):
        return pd.Series(first)
    texts, said = pd.Series(first).astype("object"), pd.Series(second).astype("object")
    nothing = {each for each in first.categories if says_missing(each)}
    numeric = {each for each in second.categories if not np.isnan(number_in_text(each))}
    return texts.where(texts.notna() & ~texts.isin(nothing) & ~said.isin(numeric), said).astype("category")


def code_counts(source: Path, csv_columns: CsvColumns) -> Counter[str]:
    """Count codes in the first rows of every file, to find out which mapping fits."""
    counts: Counter[str] = Counter()
    for file in _files(source):
        layout = look_at(file)
        code = _columns(file, layout, csv_columns)["code"]
        found = islice(batches(file, layout, [code]), _N_BATCHES_TO_LOOK_AT)
        counts += counted_codes(pd.DataFrame({"code": cells.texts(batch.column(code))}).dropna() for _, batch in found)
    return counts


FORMAT = Format(
    name="csv",
    fits=lambda source: isinstance(source, Path) and bool(text_files(source)),
    read=lambda source, mapping, schema: read(Path(source), mapping),
    code_counts=lambda source, mapping, schema: code_counts(Path(source), mapping.csv),
)
