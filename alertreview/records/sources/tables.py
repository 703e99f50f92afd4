"""Read wide tables, one for each kind of event, as the mapping describes them: raw MIMIC-III, MIMIC-IV and eICU."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from alertreview.records.sources import cells
from alertreview.records.sources.base import Format, Source, counted_codes, unread
from alertreview.records.sources.text_tables import (
    Layout,
    TextFile,
    batches,
    guesses,
    look_at,
    text_files,
    unread_files,
)
from core.errors import MappingError, SourceError
from core.events.code_book import spelled_for
from core.events.mapping import Lookup, Origins, SiteMapping, TableEvents
from core.events.spelling import identifier, tidy

_N_BATCHES_TO_LOOK_AT = 2
_HEADER_BYTES = 1 << 16
_KNOWN = {"admissions": "hadm_id", "labevents": "itemid", "patient": "patientunitstayid", "lab": "patientunitstayid"}
"""Tables with a column by which a folder of MIMIC or eICU is known."""
_PLACE = re.compile(r"\{(\w+)\}")
_SAYS_SOMETHING = r"[^\W_]"
"""Blanks of de-identification, as in `___`, say nothing."""
_MONTH = np.timedelta64(31, "D")
_AGES_AGREE = pd.Timedelta(days=2 * 366)
_MINUTE = np.timedelta64(60_000_000, "us")
_COLUMNS = tuple(TableEvents.model_fields.keys() - {"table", "code", "at", "name", "no_end"})
"""Fields that name a column each, or are a template."""


def read(source: Path, mapping: SiteMapping) -> Source:
    """Open a folder or zip archive of wide tables; the mapping's ``tables`` say what the rows are.

    Raise SourceError when a table lacks a column that the mapping names, or, while chunks are read, has a cell that
    breaks a rule, MappingError when the mapping describes no table.
    """
    reader = _Reader(source, mapping)
    reader.refuse_missing_columns()
    return Source(
        name=source.name,
        chunks=reader.chunks(None),
        descriptions=reader.names,
        remarks=reader.remarks,
        findings=reader.findings,
    )


def code_counts(source: Path, mapping: SiteMapping) -> Counter[str]:
    """Count codes in the first rows of every table; none where a table lacks a column that the mapping names."""
    reader = _Reader(source, mapping)
    return Counter() if any(reader.missing_columns()) else counted_codes(reader.chunks(_N_BATCHES_TO_LOOK_AT))


class _Table:
    """One file, its columns in lower case."""

    def __init__(self, file: TextFile) -> None:
        self.file = file

    @cached_property
    def header(self) -> set[str]:
        """Column names, from the first line alone."""
        with self.file.opener() as stream:
            first = stream.readline(_HEADER_BYTES).decode("utf-8-sig", errors="replace")
        return {name.strip().strip('"').lower() for name in re.split(r"[,;\t|]", first)}

    @cached_property
    def layout(self) -> Layout:
        return look_at(self.file)

    def batches(self, columns: set[str]) -> Iterator[tuple[int, dict[str, pa.Array]]]:
        """Return first row and columns; one that is not there is empty."""
        spelled = {name.lower(): name for name in self.layout.columns}
        wanted = sorted(columns & spelled.keys())
        for row, batch in batches(self.file, self.layout, [spelled[name] for name in wanted]):
            absent = pa.nulls(batch.num_rows, pa.string())
            yield row, dict.fromkeys(columns, absent) | dict(zip(wanted, batch.columns, strict=True))


class _Reader:
    def __init__(self, source: Path, mapping: SiteMapping) -> None:
        if not mapping.tables:
            raise MappingError(f"Mapping {mapping.name!r} describes no table. Add the key tables; see data/README.md.")
        self.names: dict[str, str] = {}
        self._mapping = mapping
        self._tables: dict[str, _Table] = {}
        for file in text_files(source):
            if (other := self._tables.setdefault(file.stem, _Table(file))).file is not file:
                raise SourceError(
                    f"{source}: {other.file.name} and {file.name} are both the table {file.stem}. Remove one of them."
                )
        used = {each.table for each in mapping.tables} | {each.table for each in self._lookups()}
        used |= {mapping.origins.table} if mapping.origins else set()
        unused = [table.file.name for stem, table in self._tables.items() if stem not in used]
        absent = sorted({each.table for each in mapping.tables} - self._tables.keys())
        self.remarks = [f"There is no table {', '.join(absent)}: its events are missing."] if absent else []
        self.remarks += self._without_details()
        self.remarks += guesses((each.file, each.layout) for stem, each in self._tables.items() if stem in used)
        self.findings, self._zones = unread([*unread_files(source), *unused], self.remarks), cells.Zones()

    def _lookups(self) -> Iterator[Lookup]:
        for each in self._mapping.tables:
            yield from filter(None, (each.at, each.name))

    def _told(self) -> Iterator[tuple[TableEvents, _Table]]:
        """Return the events whose table is there, with the column that they need."""
        for events in self._mapping.tables:
            table = self._tables.get(events.table)
            if table is not None and (not events.needs or events.needs.lower() in table.header):
                yield events, table

    def _without_details(self) -> Iterator[str]:
        lost: dict[str, set[str]] = {}
        for events in self._mapping.tables:
            if table := self._tables.get(events.table):
                lost.setdefault(table.file.name, set()).update(_wanted(events, self._mapping.origins) - table.header)
        for name, columns in lost.items():
            if columns:
                yield f"{name} has no column {', '.join(sorted(columns))}: what stands there elsewhere is missing."

    def missing_columns(self) -> Iterator[str]:
        """Say which columns are in no table, of those without which nothing is an event."""
        for events, table in self._told():
            for name in sorted(_wanted(events.without_details(), self._mapping.origins) - table.header):
                yield f"{table.file.name}: lacks the column {name!r}, which the mapping names."

    def refuse_missing_columns(self) -> None:
        """Raise an error for the first column that is missing."""
        for sentence in self.missing_columns():
            raise SourceError(f"{sentence} Choose another mapping, or correct it.")

    def chunks(self, n_batches: int | None) -> Iterator[pd.DataFrame]:
        """Return the events of all tables; of each table those of its first batches."""
        for events, table in self._told():
            times = self._values(events.at)
            names = self._values(events.name)
            wanted = _wanted(events, self._mapping.origins)
            born: dict[object, pd.Timestamp] = {}
            n_rows = 0
            for first_row, columns in islice(table.batches(wanted), n_batches):
                chunk = self._chunk(events, table.file.name, first_row, columns, times, names)
                n_rows += _n_rows(columns)
                yield _first_births(chunk, born) if events.minus_years else chunk
            said = f"{table.file.name} has no row: its events are missing."
            self.remarks += [said] if not n_rows and said not in self.remarks else []
        self.findings.extend(self._zones.findings())

    def _values(self, lookup: Lookup | None) -> dict[str, str]:
        if lookup is None or lookup.table not in self._tables:
            return {}
        table, out, differing = self._tables[lookup.table], dict[str, str](), set[str]()
        for first_row, columns in table.batches({*_columns_of(lookup.key), lookup.value.lower()}):
            rows = _Rows(None, self._mapping, table.file.name, first_row, columns, self._zones)
            for key, value in zip(rows.key(lookup.key), columns[lookup.value.lower()].to_pylist(), strict=True):
                if key and value and tidy(out.setdefault(key, value)) != tidy(value):
                    differing.add(key)
        if differing:
            keys = " and ".join(_columns_of(lookup.key))
            said = f"{table.file.name} has {len(differing):,} {keys} with several {lookup.value}: the first counts."
            self.remarks += [said] if said not in self.remarks else []
        return out

    def _chunk(
        self,
        events: TableEvents,
        where: str,
        first_row: int,
        columns: dict[str, pa.Array],
        times: dict[str, str],
        names: dict[str, str],
    ) -> pd.DataFrame:
        rows = _Rows(events, self._mapping, where, first_row, columns, self._zones)
        code = rows.template(events.code)
        subject, origin = self._patients(rows)
        chunk: dict[str, Any] = {"subject": subject, "time": self._times(rows, origin, times)}
        chunk |= {"code": pd.Categorical(code), "value": np.full(rows.n, np.nan)}
        said = told = pd.Series("", index=range(rows.n), dtype="str")
        if events.value:
            value, text = cells.numbers(rows.column(events.value))
            chunk["value"] = value
            said = said if text is None else pd.Series(pc.fill_null(text, "").to_pandas(), dtype="str")
        if events.text or events.value:
            told = rows.template(events.text)
            chunk["text"] = told.where(told != "", said).astype("category").array
        if events.remark:
            remark = rows.template(events.remark).astype("category")
            called_off = [each for each in remark.cat.categories if self._mapping.says_not_done(each)]
            has_result = ~np.isnan(chunk["value"]) | told.str.contains(_SAYS_SOMETHING)
            chunk["status"] = remark.where(remark.isin(called_off) & ~has_result)
        for ours in ("unit", "order", "dose", "route"):
            if getattr(events, ours):
                chunk[ours] = rows.template(getattr(events, ours)).astype("category").array
        for ours in ("range_low", "range_high"):
            if getattr(events, ours):
                chunk[ours] = cells.numbers(rows.column(getattr(events, ours)))[0]
        if events.time:
            chunk["is_date"] = cells.are_dates(rows.column(events.time))
        if events.known_at:
            chunk["known_at"] = rows.times(events.known_at).to_numpy()
        if events.end or events.end_offset:
            end = rows.times(events.end).to_numpy() if events.end else origin + rows.minutes(events.end_offset)
            chunk["end"] = np.where(rows.says_none(events.end or events.end_offset), np.datetime64("NaT", "us"), end)
        if events.stay:
            chunk["stay"] = np.maximum(cells.whole_numbers(rows.column(events.stay), where, events.stay, first_row), -1)
        if events.name:
            self._name(code, rows.key(events.name.key), names)
        table = pd.DataFrame(chunk)
        table.attrs = {"file": where, "first_row": first_row}
        return table[~rows.says_none(events.needs)] if events.needs else table

    def _name(self, code: pd.Series, key: pd.Series, names: dict[str, str]) -> None:
        pairs = pd.DataFrame({"code": code, "key": key}).drop_duplicates("code")
        self.names |= {
            spelled_for(c, self._mapping): names[k]
            for c, k in zip(pairs["code"], pairs["key"], strict=True)
            if k in names
        }

    def _patients(self, rows: "_Rows") -> "tuple[npt.NDArray[np.object_], npt.NDArray[np.datetime64]]":
        """Return the patient of each row, and the origin of its minutes."""
        origins = self._mapping.origins
        if origins is None:
            return rows.subject(rows.events.patient), np.full(rows.n, np.datetime64("NaT", "us"))
        key = rows.key(origins.key)
        known = [self._origins.get(each) for each in key]
        unknown = next((i for i, each in enumerate(known) if each is None), None)
        if unknown is not None:
            raise SourceError(
                f"{rows.where}: row {rows.first_row + unknown:,}, column {origins.key!r}: is in no row of the "
                f"table {origins.table}. Export the tables together."
            )
        found = [each for each in known if each is not None]
        subject = np.array([each[0] for each in found], dtype=object)
        return subject, np.array([each[1] for each in found], dtype="datetime64[us]")

    @cached_property
    def _origins(self) -> dict[str, tuple[str, np.datetime64]]:
        origins = self._mapping.origins
        table = self._tables.get(origins.table) if origins else None
        if origins is None or table is None:
            return {}
        wanted = [name for name in origins.model_dump(exclude={"table", "last_text"}).values() if name]
        parts = []
        for first_row, columns in table.batches(set(wanted)):
            rows = _Rows(None, self._mapping, table.file.name, first_row, columns, self._zones)
            year, clock = rows.key(origins.year), rows.text(origins.clock)
            # Without either, nothing of the stay can be put on the hours of a day.
            said = (year + "-01-01 " + clock).where((year != "") & (clock != ""), "")
            start = pa.array(said.to_list(), pa.string())
            parts.append(
                pd.DataFrame(
                    {
                        "key": rows.key(origins.key),
                        "year": year,
                        "is_last": rows.template(origins.last).str.casefold() == (origins.last_text.casefold() or None),
                        "patient": rows.subject(origins.patient),
                        "stay": cells.whole_numbers(
                            rows.column(origins.stay), table.file.name, origins.stay, first_row
                        ),
                        "origin": cells.times(start, self._mapping, table.file.name, origins.clock, first_row),
                        "to_stay": rows.minutes(origins.stay_offset),
                    }
                )
            )
        units = pd.concat(parts, ignore_index=True)
        different = units.drop_duplicates(["key", "patient", "stay", "origin", "to_stay"])
        if n := different.loc[different["key"].duplicated(), "key"].nunique():
            self.remarks.append(f"{table.file.name} has {n:,} {origins.key} with several times: the first counts.")
        units = units.drop_duplicates("key")
        # The first row of a stay places it; the others follow from the beginning that they have in common.
        first = units.groupby(["patient", "stay"])["key"].transform("first")
        stays = units[units["key"] == first].sort_values(["patient", "is_last", "year", "stay"])
        begins = stays["origin"] + stays["to_stay"] + stays.groupby("patient").cumcount().to_numpy() * _MONTH
        units["origin"] = first.map(dict(zip(stays["key"], begins, strict=True))) - units["to_stay"]
        if (stays.groupby("patient").size() > 1).any():
            self.remarks.append(
                "The tables tell year and clock time only: stays of one patient were put a month after another in the "
                "order of years and numbers. Times between stays mean nothing."
            )
        return {
            key: (patient, origin)
            for key, patient, origin in zip(units["key"], units["patient"], units["origin"].to_numpy(), strict=True)
        }

    def _times(
        self, rows: "_Rows", origin: npt.NDArray[np.datetime64], times: dict[str, str]
    ) -> npt.NDArray[np.datetime64]:
        events = rows.events
        if events.at is not None:
            found = [times.get(each) for each in rows.key(events.at.key)]
            at = cells.times(pa.array(found, pa.string()), self._mapping, rows.where, events.at.value, rows.first_row)
            return np.asarray(at.to_numpy())
        if events.offset:
            time = origin + rows.minutes(events.offset)
        else:
            time = rows.times(events.time).to_numpy() if events.time else np.where(True, origin, origin)
        if events.minus_years:
            # Ages may be spelled "> 89".
            years = pd.to_numeric(rows.text(events.minus_years).str.extract(r"(\d+)")[0], errors="coerce")
            months = time.astype("datetime64[M]") - np.where(years.isna(), 0, years).astype(int) * 12
            time = np.where(years.isna(), np.datetime64("NaT", "us"), months.astype("datetime64[us]"))
        return np.asarray(time, dtype="datetime64[us]")


def _first_births(chunk: pd.DataFrame, born: dict[object, pd.Timestamp]) -> pd.DataFrame:
    """Leave out births that only repeat a patient's first: ages tell them to the year, on a calendar of our own making.

    Those that lie further apart than that stay, so that the contradiction is counted.
    """
    keep = []
    for subject, time in zip(chunk["subject"], chunk["time"], strict=True):
        keep.append(subject not in born or pd.isna(time) or abs(time - born[subject]) > _AGES_AGREE)
        if not pd.isna(time):
            born.setdefault(subject, time)
    return chunk[keep]


def _n_rows(columns: dict[str, pa.Array]) -> int:
    """Return how many rows a batch has."""
    return len(next(iter(columns.values())))


class _Rows:
    """Columns of one batch, read as texts, times and numbers."""

    def __init__(
        self,
        events: TableEvents | None,
        mapping: SiteMapping,
        where: str,
        first_row: int,
        columns: dict[str, pa.Array],
        zones: cells.Zones,
    ) -> None:
        self.events = events or TableEvents(table="", code="")
        """What the rows are; nothing where they are looked up."""
        self._mapping, self._columns, self._zones = mapping, columns, zones
        self.where, self.first_row = where, first_row
        self.n = _n_rows(columns)

    def column(self, name: str) -> pa.Array:
        return self._columns[name.lower()]

    def text(self, name: str) -> pd.Series:
        return pd.Series(pc.fill_null(self.column(name), "").to_pandas(), dtype="str").str.strip()

    def says_none(self, name: str) -> pd.Series:
        """Mark the empty cells of a column, and those that say that there is no end."""
        return self.text(name).map(identifier).isin(["", self.events.no_end])

    def key(self, name: str) -> pd.Series:
        """Return what other tables refer to, in its one spelling; a template names several columns."""
        parts = []
        for column in _columns_of(name):
            text = self.text(column).astype("category")
            parts.append(text.map({each: identifier(each) for each in text.cat.categories}).astype("str"))
        return parts[0].str.cat(parts[1:], sep="//") if parts[1:] else parts[0]

    def template(self, said: str) -> pd.Series:
        """Fill a template from the columns; a plain name is the column itself."""
        if said and "{" not in said and "//" not in said and said.lower() in self._columns:
            return self.text(said)
        pieces = _PLACE.split(said)
        out = pd.Series(pieces[0], index=range(self.n), dtype="str")
        for name, after in zip(pieces[1::2], pieces[2::2], strict=True):
            out = out + self.text(name) + after
        return out.str.strip()

    def times(self, name: str) -> pd.Series:
        column = self.column(name)
        dated = pc.replace_substring_regex(column, r"^\s*(\d{4})(?:\.0+)?\s*$", r"\1-01-01")
        return cells.times(dated, self._mapping, self.where, name, self.first_row, self._zones)

    def minutes(self, name: str) -> npt.NDArray[np.timedelta64]:
        """Return minutes as durations; missing where a cell is empty or no number."""
        found, _ = cells.numbers(self.column(name))
        whole = np.where(np.isfinite(found), found, 0).astype(np.int64) * _MINUTE
        return np.where(np.isfinite(found), whole, np.timedelta64("NaT", "us"))

    def subject(self, name: str) -> npt.NDArray[np.object_]:
        return cells.patients(self.column(name), self.where, self.first_row)


def _columns_of(key: str) -> list[str]:
    """Return the columns of the key of a lookup, in lower case."""
    return [name.lower() for name in _PLACE.findall(key) or [key]]


def _wanted(events: TableEvents, origins: Origins | None) -> set[str]:
    """Return the columns that the events of a table are made of, in lower case."""
    plain = {getattr(events, name) for name in _COLUMNS}
    templates = [events.code, events.text, events.remark, events.unit, events.order, events.dose, events.route]
    filled = {name for said in templates for name in _PLACE.findall(said)}
    keys = {name for each in (events.at, events.name) if each is not None for name in _columns_of(each.key)}
    plain |= filled | keys | ({origins.key} if origins else set())
    return {name.lower() for name in plain if name and "{" not in name}


def _fits(source: Path | str) -> bool:
    if not isinstance(source, Path):
        return False
    return any(file.stem in _KNOWN and _KNOWN[file.stem] in _Table(file).header for file in text_files(source))


FORMAT = Format(
    name="tables",
    fits=_fits,
    read=lambda source, mapping, schema: read(Path(source), mapping),
    code_counts=lambda source, mapping, schema: code_counts(Path(source), mapping),
)
