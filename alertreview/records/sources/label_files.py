"""Read label files as ACES and MEDS-DEV write them: a yes or no for a patient at a time, in parquet."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from alertreview.records.sources import cells
from alertreview.records.sources.meds import is_text, open_parquet, refuse_doubled, refusing_damage
from alertreview.records.sources.text_tables import is_ignored
from core.errors import SourceError
from core.events.mapping import SiteMapping, parse_mapping
from core.events.spelling import identifier, tidy
from core.kinds import LABEL_EVENTS, EventKind

_ADVICE: Final = (
    "Label files have the columns subject_id, prediction_time and boolean_value, as MEDS, ACES and MEDS-DEV do."
)
_RULES: Final = (
    ("subject_id", lambda kind: pa.types.is_integer(kind) or is_text(kind), "whole numbers or texts"),
    ("prediction_time", pa.types.is_timestamp, "timestamps"),
    ("boolean_value", pa.types.is_boolean, "true and false"),
)


@dataclass(frozen=True)
class LabelFiles:
    """The label files of one question."""

    name: str  # the question
    paths: Sequence[Path]  # Parquet files, together one table


@dataclass(frozen=True)
class Labels:
    """Labels of one question, ready to be added to the rows of a source."""

    rows: pd.DataFrame  # as `core.events.reading.StreamBuilder.add` takes them
    remark: str  # what was left out, "" if nothing was


def find_label_files(wanted: Sequence[str]) -> list[LabelFiles]:
    """Find the label files that the command line names: ``PATH`` or ``NAME=PATH``.

    A folder is one question whose files are all Parquet files below it. Without a name, the question is called like the
    file or folder. Raise SourceError when there is no such file, or two questions have one name.
    """
    found: dict[str, LabelFiles] = {}
    for text in wanted:
        name, equals, rest = text.partition("=")
        path = Path(text) if not equals or Path(text).exists() else Path(rest)
        name = tidy(path.name.removesuffix(".parquet") if path == Path(text) else name)
        if not any(map(str.isalpha, name)) or not name.isprintable():
            raise SourceError(f"{path}: the question needs a name with a letter; write --labels NAME={path}.")
        if name.casefold() in found:
            raise SourceError(
                f"{path}: two questions are called {name!r}. Write --labels NAME={path} with another name."
            )
        found[name.casefold()] = LabelFiles(name, _files(path))
    return list(found.values())


def _files(path: Path) -> list[Path]:
    if not path.exists():
        raise SourceError(f"{path}: there is no such file or folder of labels. {_ADVICE}")
    if not path.is_dir():
        return [path]
    files = sorted(
        file for file in path.rglob("*.parquet") if file.is_file() and not is_ignored(file.relative_to(path))
    )
    if not files:
        raise SourceError(f"{path}: holds no parquet file of labels. {_ADVICE}")
    return files


def with_label_rules(mapping: SiteMapping) -> SiteMapping:
    """Return a mapping that also recognises labels."""
    rules = [{"code": rf"{kind.value}:(?P<item>.+)", "kind": kind.value} for kind in LABEL_EVENTS]
    said = mapping.model_dump()
    return parse_mapping({**said, "rules": [*rules, *said["rules"]]}, f"mapping {mapping.name}")


def read_labels(
    files: LabelFiles, mapping: SiteMapping, subjects: Sequence[int | str], known: Collection[str] = ()
) -> Labels:
    """Read the labels of one question, of patients of the source, as it names them, and of an earlier import.

    Raise SourceError when a file is not what it should be, a patient has both labels at one time, or all patients are
    unknown.
    """
    tables = [_table(path, mapping) for path in files.paths]
    table = pd.concat(tables, ignore_index=True)
    n_rows = len(table)
    if not n_rows:
        raise SourceError(f"{files.paths[0]}: the label files of {files.name!r} have no row. {_ADVICE}")
    table = table[table["label"].notna()]
    n_empty = n_rows - len(table)
    if not len(table):
        raise SourceError(f"{files.paths[0]}: no row of {files.name!r} has a boolean_value. {_ADVICE}")
    doubled = table.duplicated(["subject", "time", "label"])
    table = table[~doubled]
    _refuse_contradiction(table, files)
    named = _own_names(table["subject"], mapping, subjects, known)
    is_known = named.notna()
    if not is_known.any():
        raise SourceError(
            f"{files.paths[0]}: the records have none of the {table['subject'].nunique():,} patients of "
            f"the labels of {files.name!r}. Name the label files that were made from these records."
        )
    left_out = (
        (n_empty, "without a boolean_value"),
        (int(doubled.sum()), "that repeat another"),
        (int((~is_known).sum()), f"of {table.loc[~is_known, 'subject'].nunique():,} patients without records"),
    )
    said = ", ".join(f"{n:,} {words}" for n, words in left_out if n)
    rows = table[is_known]
    code = rows["label"].map({True: EventKind.LABEL_TRUE.value, False: EventKind.LABEL_FALSE.value}) + f":{files.name}"
    chunk = pd.DataFrame(
        {"subject": named[is_known].infer_objects(), "time": rows["time"], "code": code, "value": np.nan}
    ).reset_index(drop=True)
    chunk.attrs = {"file": files.name, "first_row": 1}
    return Labels(chunk, f"Labels of {files.name!r}: of {n_rows:,} rows, left out: {said}." if said else "")


def _table(path: Path, mapping: SiteMapping) -> pd.DataFrame:
    file = open_parquet(path)
    with refusing_damage(path):
        schema = file.schema_arrow
    refuse_doubled(path, list(schema.names))
    for name, is_right, words in _RULES:
        if name not in schema.names:
            raise SourceError(
                f"{path}: lacks the column {name!r} (found: {', '.join(schema.names) or 'none'}). {_ADVICE}"
            )
        kind = schema.field(name).type
        if not is_right(kind) and file.metadata.num_rows:
            raise SourceError(f"{path}: column {name!r} holds {kind}; it must hold {words}. {_ADVICE}")
    with refusing_damage(path):
        read = file.read(columns=[name for name, _, _ in _RULES]).combine_chunks()
    for name in ("subject_id", "prediction_time"):
        if read.column(name).null_count:
            row = int(np.flatnonzero(pc.is_null(read.column(name)).to_numpy())[0]) + 1
            raise SourceError(f"{path}: row {row:,} has no {name}. A label needs patient and time; correct the file.")
    if not read.num_rows:
        return pd.DataFrame({"subject": [], "time": [], "label": [], "row": [], "path": []}).astype(object)
    subject = read.column("subject_id")
    subject = subject.cast(pa.string()) if is_text(subject.type) else subject.cast(pa.int64())
    time = cells.times(_one(read.column("prediction_time")), mapping, str(path), "prediction_time", 1)
    return pd.DataFrame(
        {
            "subject": pd.Series(subject.to_pylist(), dtype=object),
            "time": time,
            "label": pd.Series(read.column("boolean_value").to_pylist(), dtype=object),
            "row": np.arange(1, read.num_rows + 1),
            "path": str(path),
        }
    )


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _refuse_contradiction(table: pd.DataFrame, files: LabelFiles) -> None:
    twice = table[table.duplicated(["subject", "time"], keep=False)]
    if not len(twice):
        return
    first = twice.iloc[0]
    same = twice[(twice["subject"] == first["subject"]) & (twice["time"] == first["time"])]
    places = " and ".join(f"{path}, row {row:,}" for path, row in zip(same["path"], same["row"], strict=True))
    raise SourceError(
        f"{places}: one is true and one is false for the same patient and time. Correct the labels of {files.name!r}: "
        f"{len(twice) - len(twice.drop_duplicates(['subject', 'time'])):,} contradict another."
    )


def _own_names(
    column: pd.Series, mapping: SiteMapping, subjects: Sequence[int | str], known: Collection[str]
) -> pd.Series:
    """Return the patients as the source names them, None for those that it does not have."""
    of_id = {mapping.patient_id(each): each for each in subjects}
    names: dict[int | str, int | str | None] = {}
    for each in column.unique().tolist():
        name = identifier(each) if isinstance(each, str) else each
        spelled: list[int | str] = (
            [name, int(name)] if isinstance(name, str) and name.isascii() and name.isdigit() else [name]
        )
        ids = [mapping.patient_id(one) for one in spelled]
        names[each] = next((of_id.get(one, name) for one in ids if one in of_id or one in known), None)
    return pd.Series([names[each] for each in column], index=column.index, dtype=object)
