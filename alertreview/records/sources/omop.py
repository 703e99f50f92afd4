"""Read an OMOP CDM 5.3 or 5.4 and spell its rows as codes for the site mapping.

======================================  ==========================================================================
code                                    row
======================================  ==========================================================================
``VISIT//9201//ADMISSION``              start of a visit that counts as a stay (``//DISCHARGE``: its end)
``VISIT//38004207//EXCLUDED``           visit of a concept that the mapping excludes, or does not include
``VISIT//9201//ZERO_LENGTH``            visit that ends when it begins
``CARE_SITE//Cardiology``               arrival on a care site (visit_occurrence, visit_detail)
``MEASUREMENT//3000483//mg/dL``         measurement: concept, or source value where the concept is 0; unit
``DRUG//32838//START//40166274``        drug exposure: type, concept or source value (``//STOP//``: its end, or where
                                        ``days_supply`` ends)
``CONDITION//32890//4112343``           condition: status concept (0: none), concept or source value
``PROCEDURE//4203722``                  procedure: concept or source value
``ALLERGY//4220372``                    observation that is named after an allergy: the substance where the observation
                                        names none itself, else as above
``MICROBIOLOGY//3023368``               measurement that is named after a culture, beside its ``MEASUREMENT``
``GENDER//8507``, ``MEDS_BIRTH``        person
``MEDS_DEATH``                          death
======================================  ==========================================================================

A source value stands where the concept is 0; the concept of the source stands where there is no value either, or where
one value is that of several concepts in two vocabularies.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from alertreview.records.sources import cells
from alertreview.records.sources.base import Format, Source, counted_codes, row_identity, shared_stays
from alertreview.records.sources.omop_duckdb import DuckTables, is_duckdb
from alertreview.records.sources.omop_tables import (
    CsvTables,
    ParquetTables,
    SqlTables,
    Tables,
    database_url,
    parquet_tables,
    required,
    table_of,
)
from alertreview.records.sources.text_tables import text_files
from core.errors import SourceError
from core.events.mapping import SiteMapping
from core.number_texts import counted

_COLUMNS = {
    "person": "person_id gender_concept_id gender_source_value birth_datetime year_of_birth month_of_birth "
    "day_of_birth",
    "visit_occurrence": "visit_occurrence_id person_id visit_concept_id visit_start_datetime visit_start_date "
    "visit_end_datetime visit_end_date care_site_id",
    "visit_detail": "person_id visit_detail_start_datetime visit_detail_start_date care_site_id",
    "measurement": "person_id measurement_concept_id measurement_source_value measurement_source_concept_id "
    "measurement_datetime measurement_date measurement_time value_as_number value_as_concept_id value_source_value "
    "unit_source_value unit_concept_id range_low range_high",
    "drug_exposure": "person_id drug_exposure_id drug_concept_id drug_source_value drug_source_concept_id "
    "drug_type_concept_id drug_exposure_start_datetime drug_exposure_start_date drug_exposure_end_datetime "
    "drug_exposure_end_date days_supply quantity dose_unit_source_value route_source_value stop_reason",
    "condition_occurrence": "person_id condition_concept_id condition_source_value condition_status_concept_id "
    "condition_start_datetime condition_start_date condition_end_datetime condition_end_date",
    "procedure_occurrence": "person_id procedure_concept_id procedure_source_value procedure_datetime procedure_date",
    "observation": "person_id observation_concept_id observation_source_value observation_datetime observation_date "
    "value_as_string value_as_concept_id value_source_value",
    "death": "person_id death_datetime death_date",
}
_ADVICE = "An OMOP CDM 5.3 or 5.4 has it; export the data again."
_NO_CONCEPT = 0
_PLACE_OF_CONCEPT = {"MEASUREMENT": 1, "DRUG": 3, "CONDITION": 2, "PROCEDURE": 1, "ALLERGY": 1, "MICROBIOLOGY": 1}
"""Where in a code the concept stands whose name the code is shown under."""
_CULTURE = re.compile(r"\bcultures?\b|\b(?:micro)?organisms?\b|\bgram stain|susceptib|\w identified\b", re.IGNORECASE)
_ALLERGY = re.compile(
    r"\ballerg(?:y|ies|ic to)\b|\b(?:adverse reaction|hypersensitivity|intolerance) to\b", re.IGNORECASE
)
_NO_ALLERGY = re.compile(r"\bfamily|\btests?\b|\bscreen|\bclinic\b|\beducation|\breferral", re.IGNORECASE)
_ANY = "(?:drug|food|substance|medication)s?"
_ANY_ALLERGY = re.compile(
    rf"(?:history of )?(?:{_ANY} )?allerg(?:y|ies)(?: to {_ANY})?|"
    rf"(?:propensity to )?(?:adverse reaction|hypersensitivity|intolerance)s? to {_ANY}",
    re.IGNORECASE,
)
"""Allergies whose substance is in the value."""
_BREAKS_OFF = re.compile(
    r"\b(?:abort|abbruch|abgebrochen|abandon|afgebroken|refus|declin|verweiger|rifiut|rechaz|geweiger|withdraw|"
    r"not needed)",
    re.IGNORECASE,
)
"""Of the words that call an order off, those that also say why a drug that ran was stopped."""
_N_BATCHES_TO_LOOK_AT = 3
_MOST_DAYS = 366
_SOURCE_CODED = {"measurement": "measurement", "drug_exposure": "drug"}
"""Tables whose source values are looked at, with the beginning of their columns' names."""
_DECIDE = {"measurement": "labs", "drug_exposure": "drugs"}
"""Tables without which a kind of decision is missing."""


def open_tables(source: Path | str, schema: str | None) -> Tables:
    """Open a CDM: a folder or zip archive of CSV files, folder of Parquet, SQLite or DuckDB file, or SQLAlchemy URL."""
    if isinstance(source, Path) and is_duckdb(source):
        return DuckTables(source, schema)
    if isinstance(source, Path) and "person" in parquet_tables(source):
        return ParquetTables(source)
    url = source if isinstance(source, str) and "://" in source else database_url(Path(source))
    return SqlTables(url, schema) if url else CsvTables(Path(source))


def read(source: Path | str, mapping: SiteMapping, schema: str | None = None) -> Source:
    """Open a CDM for reading; the mapping's ``visits`` say which visits are stays.

    Raise SourceError when a table or column that nothing replaces is missing; while chunks are read, when a cell breaks
    a rule.
    """
    tables = _checked_tables(source, schema)
    names = ConceptNames(tables)
    return Source(
        name=tables.name,
        chunks=_Reader(tables, mapping, names).chunks(None),
        descriptions=names,
        remarks=tables.remarks,
        findings=tables.findings,
    )


def _checked_tables(source: Path | str, schema: str | None) -> Tables:
    tables = open_tables(source, schema)
    required(tables, "person", ["person_id"], _ADVICE)
    required(tables, "visit_occurrence", ["person_id", "visit_concept_id"], _ADVICE)
    if not tables.columns("measurement"):
        required(
            tables, "drug_exposure", ["person_id"], "Without measurement and drug_exposure there are no decisions."
        )
        tables.remarks.append("There is no table measurement: labs are neither features nor tasks.")
    return tables


def code_counts(source: Path | str, mapping: SiteMapping, schema: str | None = None) -> Counter[str]:
    """Count codes in the first rows of every table, to find out which mapping fits."""
    reader = _Reader(_checked_tables(source, schema), mapping, None)
    return counted_codes(reader.chunks(_N_BATCHES_TO_LOOK_AT))


_TELLING = {
    "person": (("gender_concept_id gender_source_value", "sexes"), ("birth_datetime year_of_birth", "ages")),
    "measurement": (("value_as_number value_as_concept_id value_source_value", "values"),),
    "drug_exposure": (("drug_exposure_end_datetime drug_exposure_end_date days_supply", "ends of drugs"),),
}
"""Columns of tables that may lack some of them, and what is missing where there is none."""


class _Reader:
    """Turns the tables into chunks, one table after the other."""

    def __init__(self, tables: Tables, mapping: SiteMapping, names: "ConceptNames | None") -> None:
        self._names = names
        self._tables = tables
        self._mapping = mapping
        self._zones = cells.Zones()
        self._care_sites = _names_by_id(
            tables, "care_site", "care_site_id", ["care_site_name", "care_site_source_value"]
        )
        self._persons = np.zeros(0, dtype=np.int64)
        self._strangers: set[int] = set()
        self._stays: list[pd.DataFrame] = []
        unit_ids: set[int] = set()
        self._shared = {stem: self._shared_values(table, stem, unit_ids) for table, stem in _SOURCE_CODED.items()}
        self._units = _names_by_id(tables, "concept", "concept_id", ["concept_code"], only=unit_ids)
        if nameless := sorted(unit_ids - self._units.keys() - {_NO_CONCEPT, cells.NO_ID}):
            # Two units are two, whatever they are called.
            self._units |= {number: f"concept {number}" for number in nameless}
            some = ", ".join(map(str, nameless[:3])) + (", ..." if nameless[3:] else "")
            said = f"{counted(len(nameless), 'unit')} without a name in the table concept ({some}): shown by number."
            tables.remarks += [said] if said not in tables.remarks else []

    def chunks(self, n_batches: int | None) -> Iterator[pd.DataFrame]:
        """Yield rows of all tables; of each table at most `n_batches` batches."""
        readers: dict[str, Callable[[_Rows], Iterator[pd.DataFrame]]] = {
            "person": self._person,
            "visit_occurrence": self._visits,
            "visit_detail": self._details,
            "measurement": self._measurements,
            "drug_exposure": self._drugs,
            "condition_occurrence": self._conditions,
            "procedure_occurrence": self._procedures,
            "observation": self._allergies,
            "death": self._deaths,
        }
        for table, convert in readers.items():
            found = self._tables.columns(table)
            wanted = [name for name in _COLUMNS[table].split() if name in found]
            if not found:
                continue
            required(self._tables, table, ["person_id"], _ADVICE)
            for columns, what in _TELLING.get(table, ()):
                if found.isdisjoint(columns.split()):
                    self._tables.remarks.append(
                        f"The table {table} has none of the columns {columns.replace(' ', ', ')}: {what} are missing."
                    )
            n_rows = 0
            for first_row, batch in islice(self._tables.batches(table, wanted), n_batches):
                n_rows += batch.num_rows
                where = self._tables.where(table)
                for chunk in convert(_Rows(batch, where, first_row, self._mapping, self._zones)):
                    chunk.attrs = {"file": where, "first_row": first_row}
                    yield chunk
            if n_rows == 0 and table in _DECIDE:
                self._tables.remarks.append(f"The table {table} has no row: {_DECIDE[table]} are missing.")
        if self._strangers:
            n = counted(len(self._strangers), "patient")
            self._tables.remarks.append(f"visit_occurrence names {n} without a row in person: sex and age are missing.")
        if self._stays:
            self._tables.findings.append(shared_stays(pd.concat(self._stays)))
        self._tables.findings.extend(self._zones.findings())

    def _shared_values(self, table: str, stem: str, unit_ids: set[int]) -> set[str]:
        """Return the source values that stand for several concepts of the source where there is no standard one.

        Concepts of units are added to `unit_ids` in the same walk over the table.
        """
        standard, value, of_source = (f"{stem}_{end}" for end in ("concept_id", "source_value", "source_concept_id"))
        found = self._tables.columns(table)
        present = [name for name in (standard, value, of_source, "unit_concept_id") if name in found]
        if not {of_source, "unit_concept_id"} & found:
            return set()
        meant: dict[str, set[int]] = {}
        for first_row, batch in self._tables.batches(table, present):
            rows = _Rows(batch, self._tables.where(table), first_row, self._mapping, self._zones)
            if rows.has("unit_concept_id"):
                unit_ids.update(np.unique(rows.ids("unit_concept_id")).tolist())
            mine = ~rows.is_known(standard) & rows.is_known(of_source)
            if mine.any():
                pairs = pd.DataFrame({"text": rows.text(value)[mine], "id": rows.ids(of_source)[mine]})
                for text, number in pairs.drop_duplicates().itertuples(index=False):
                    meant.setdefault(text, set()).add(number)
        return {text for text, numbers in meant.items() if len(numbers) > 1}

    def _person(self, rows: "_Rows") -> Iterator[pd.DataFrame]:
        subject = rows.subject()
        self._persons = np.append(self._persons, subject)
        sex = self._key(rows, "gender_concept_id")
        yield _chunk(subject, rows.no_times(), "GENDER//" + sex.where(sex != "", "0"))
        yield _chunk(subject, rows.birth(), _same("MEDS_BIRTH", rows.n))

    def _visits(self, rows: "_Rows") -> Iterator[pd.DataFrame]:
        subject, concept = rows.subject(), rows.ids("visit_concept_id")
        self._strangers.update(np.setdiff1d(subject, self._persons).tolist())
        start, end = rows.time("visit_start"), rows.time("visit_end")
        visits = self._mapping.visits
        included = np.isin(concept, visits.included_concepts) if visits.included_concepts is not None else True
        counts = included & ~np.isin(concept, visits.excluded_concepts)
        zero = (start == end).to_numpy()
        what = np.where(~counts, "EXCLUDED", np.where(zero, "ZERO_LENGTH", "ADMISSION"))
        # Stays are numbered by their place in the table, because identifiers may be negative and -1 means "unknown".
        number = np.where(what == "ADMISSION", rows.first_row + np.arange(rows.n), -1)
        if rows.has("visit_occurrence_id"):
            stays = pd.DataFrame({"number": rows.text("visit_occurrence_id"), "patient": subject})
            self._stays.append(stays[(number >= 0) & (stays["number"] != "")])
        codes = pd.Series("VISIT//", index=range(rows.n)) + concept.astype(str) + "//"
        yield _chunk(subject, start, codes + what).assign(stay=number)
        closed = (what == "ADMISSION") & end.notna().to_numpy()
        yield _chunk(subject, end, codes + "DISCHARGE")[closed].assign(stay=number[closed])
        yield from self._arrivals(rows, subject, start, what == "ADMISSION")

    def _details(self, rows: "_Rows") -> Iterator[pd.DataFrame]:
        yield from self._arrivals(rows, rows.subject(), rows.time("visit_detail_start"), np.ones(rows.n, dtype=bool))

    def _arrivals(
        self, rows: "_Rows", subject: npt.NDArray[np.int64], time: pd.Series, keep: npt.NDArray[np.bool_]
    ) -> Iterator[pd.DataFrame]:
        if rows.has("care_site_id"):
            names = _looked_up(rows.ids("care_site_id"), self._care_sites)
            known = keep & (names != "").to_numpy()
            if known.any():
                yield _chunk(subject, time, "CARE_SITE//" + names)[known]

    def _measurements(self, rows: "_Rows") -> Iterator[pd.DataFrame]:
        unit = rows.text("unit_source_value")
        unit = unit.where(unit != "", _looked_up(rows.ids("unit_concept_id"), self._units))
        # Two slashes end the code of the item.
        unit = unit.str.replace("//", "/", regex=False)
        key, title = self._key(rows, "measurement_concept_id"), self._title(rows, "measurement_concept_id")
        subject, time = rows.subject(), rows.time("measurement")
        code = "MEASUREMENT//" + key + "//" + unit
        chunk = _chunk(subject, time, code).assign(is_date=rows.dated["measurement"])
        value, said = rows.number("value_as_number")
        text = rows.text("value_source_value")
        text = text.where(text != "", said)
        text = text.where((text != "") | ~np.isnan(value), self._title(rows, "value_as_concept_id")).astype("category")
        cultures = _said(title, _CULTURE.search)
        if cultures.any():
            yield _chunk(subject, time, "MICROBIOLOGY//" + key).assign(text=text)[cultures]
        limits = {name: rows.number(name)[0] for name in ("range_low", "range_high") if rows.has(name)}
        yield chunk.assign(value=value, text=text, **limits)

    def _drugs(self, rows: "_Rows") -> Iterator[pd.DataFrame]:
        subject, key = rows.subject(), self._key(rows, "drug_concept_id")
        kind = (
            rows.ids("drug_type_concept_id") if rows.has("drug_type_concept_id") else np.zeros(rows.n, dtype=np.int64)
        )
        codes = pd.Series("DRUG//", index=range(rows.n)) + kind.astype(str)
        start, end = rows.time("drug_exposure_start"), rows.time("drug_exposure_end")
        days = rows.number("days_supply")[0]
        lasts = pd.to_timedelta(np.where((days > 0) & (days <= _MOST_DAYS), days, np.nan), unit="D")
        has_run = end > start
        end = end.where(end.notna(), start + lasts)
        amount, dose_unit = rows.text("quantity"), rows.text("dose_unit_source_value")
        # A quantity without the unit of a dose counts packages, not what a patient takes.
        dose = (amount + " " + dose_unit).where((amount != "") & (dose_unit != ""), "")
        # The CDM has no status; what was entered in error or never given says so where it was stopped.
        reasons = rows.text("stop_reason").astype("category")
        not_done = [each for each in reasons.cat.categories if self._mapping.says_not_done(each)]
        broken_off = [each for each in not_done if _BREAKS_OFF.search(each)]
        status = reasons.where(reasons.isin(not_done) & ~(has_run & reasons.isin(broken_off)))
        dated = rows.dated["drug_exposure_start"]
        starts = _chunk(subject, start, codes + "//START//" + key).assign(status=status, is_date=dated)
        order = self._orders(rows, subject, starts, end)
        yield starts.assign(end=end.to_numpy(), dose=dose, route=rows.text("route_source_value"), order=order)
        stops = _chunk(subject, end, codes + "//STOP//" + key).assign(order=order, status=status)
        yield stops[end.notna()]

    @staticmethod
    def _orders(
        rows: "_Rows", subject: npt.NDArray[np.int64], starts: pd.DataFrame, end: pd.Series
    ) -> npt.NDArray[np.int64]:
        if rows.has("drug_exposure_id"):
            return row_identity({"id": rows.ids("drug_exposure_id"), "start": starts["time"]})
        code = starts["code"].astype("str")
        return row_identity({"subject": subject, "start": starts["time"], "code": code, "end": end})

    def _conditions(self, rows: "_Rows") -> Iterator[pd.DataFrame]:
        key = self._key(rows, "condition_concept_id")
        status = rows.ids("condition_status_concept_id")
        codes = "CONDITION//" + pd.Series(np.maximum(status, 0).astype(str)) + "//" + key
        yield _chunk(rows.subject(), rows.time("condition_start"), codes).assign(
            end=rows.time("condition_end").to_numpy()
        )

    def _procedures(self, rows: "_Rows") -> Iterator[pd.DataFrame]:
        key = self._key(rows, "procedure_concept_id")
        yield _chunk(rows.subject(), rows.time("procedure"), "PROCEDURE//" + key)

    def _allergies(self, rows: "_Rows") -> Iterator[pd.DataFrame]:
        key, title = self._key(rows, "observation_concept_id"), self._title(rows, "observation_concept_id")
        keep = _said(title, _ALLERGY.search) & ~_said(title, _NO_ALLERGY.search)
        if keep.any():
            text = rows.text("value_as_string")
            text = text.where(text != "", self._title(rows, "value_as_concept_id"))
            text = text.where(text != "", rows.text("value_source_value"))
            of_value = _said(title, _ANY_ALLERGY.fullmatch) & (text != "").to_numpy()
            code = "ALLERGY//" + key.where(~of_value, text)
            chunk = _chunk(rows.subject(), rows.time("observation"), code)
            yield chunk.assign(text=text.where(~of_value, "").astype("category"))[keep]

    def _title(self, rows: "_Rows", concept: str) -> pd.Series:
        """Return the name of the concept, or the source value where it has none."""
        text = rows.text(concept.replace("_concept_id", "_source_value"))
        if self._names is None:
            return text
        named = _looked_up(rows.ids(concept), self._names.of_concept)
        return named.where(named != "", text)

    def _key(self, rows: "_Rows", concept: str) -> pd.Series:
        """Return the concept, or the source value or the concept of the source where the concept is 0 or missing."""
        stem = concept.removesuffix("_concept_id")
        ids, text, of_source = rows.ids(concept), rows.text(f"{stem}_source_value"), f"{stem}_source_concept_id"
        is_known = rows.is_known(concept)
        says_little = (text == "") | text.isin(self._shared.get(stem, ()))
        by_source = ~is_known & rows.is_known(of_source) & says_little.to_numpy()
        ids, is_known = np.where(by_source, rows.ids(of_source), ids), is_known | by_source
        if self._names is not None:
            self._names.see(ids[is_known], text[is_known])
            self._names.see_codes(text[~is_known])
        return pd.Series(ids.astype(str)).where(is_known, text).astype("str")

    def _deaths(self, rows: "_Rows") -> Iterator[pd.DataFrame]:
        yield _chunk(rows.subject(), rows.time("death"), _same("MEDS_DEATH", rows.n))


class _Rows:
    """Rows of one batch, column by column."""

    def __init__(
        self, batch: pa.RecordBatch, where: str, first_row: int, mapping: SiteMapping, zones: cells.Zones
    ) -> None:
        self.n = batch.num_rows
        self.first_row = first_row
        self._batch = batch
        self._where = where
        self._mapping = mapping
        self._zones = zones
        self.dated: dict[str, npt.NDArray[np.bool_]] = {}
        """Which rows had a date alone, by the stem of the times that were read."""

    def has(self, column: str) -> bool:
        return column in self._batch.schema.names

    def ids(self, column: str) -> npt.NDArray[np.int64]:
        if not self.has(column):
            return np.zeros(self.n, dtype=np.int64)
        return cells.whole_numbers(self._batch.column(column), self._where, column, self.first_row)

    def is_known(self, column: str) -> npt.NDArray[np.bool_]:
        """Return whether rows have a concept."""
        return np.isin(self.ids(column), (_NO_CONCEPT, cells.NO_ID), invert=True)

    def subject(self) -> npt.NDArray[np.int64]:
        ids = self.ids("person_id")
        nobody = np.flatnonzero(ids == cells.NO_ID)
        if len(nobody):
            raise SourceError(
                f"{self._where}: row {self.first_row + int(nobody[0]):,} has no person_id. Every event belongs to a "
                "patient; correct the row."
            )
        return ids

    def no_times(self) -> pd.Series:
        return pd.Series(np.full(self.n, np.datetime64("NaT", "us")))

    def time(self, stem: str) -> pd.Series:
        """Return the datetime, or the date if there is none."""
        out = self.no_times()
        self.dated[stem] = np.zeros(self.n, dtype=bool)
        for column in (f"{stem}_datetime", f"{stem}_date"):
            if self.has(column):
                said = self._batch.column(column)
                if column.endswith("_date") and pa.types.is_string(said.type) and self.has(f"{stem}_time"):
                    said = _with_clock(said, self._batch.column(f"{stem}_time"))
                read = cells.times(said, self._mapping, self._where, column, self.first_row, self._zones)
                self.dated[stem] |= (out.isna() & read.notna()).to_numpy() & cells.are_dates(said)
                out = out.where(out.notna(), read)
        return out

    def birth(self) -> pd.Series:
        """Return the time of birth; the first of January or of the month if only year or month is known."""
        out = self.time("birth")
        parts = {name: self.ids(f"{name}_of_birth") for name in ("year", "month", "day")}
        known = (parts["year"] > 0) & out.isna().to_numpy()
        months, days = (np.where(parts[name] > 0, parts[name], 1) for name in ("month", "day"))
        text = pd.Series([f"{y:04d}-{m:02d}-{d:02d}" for y, m, d in zip(parts["year"], months, days, strict=True)])
        made = pd.to_datetime(text.where(known), format="%Y-%m-%d", errors="coerce").astype("datetime64[us]")
        return out.where(~known, made)

    def text(self, column: str) -> pd.Series:
        if not self.has(column):
            return pd.Series("", index=range(self.n), dtype="str")
        return pd.Series(pc.fill_null(self._batch.column(column).cast(pa.string()), "").to_pandas(), dtype="str")

    def number(self, column: str) -> tuple[npt.NDArray[np.float64], pd.Series]:
        if not self.has(column):
            return np.full(self.n, np.nan), pd.Series("", index=range(self.n), dtype="str")
        value, said = cells.numbers(self._batch.column(column))
        text = pc.fill_null(said, "").to_pandas() if said is not None else pd.Series("", index=range(self.n))
        return value, pd.Series(text, dtype="str")


def _with_clock(date: pa.Array, time: pa.Array) -> pa.Array:
    """Put the clock time of a row, as CDM 5 keeps it beside its date, behind a date that has none."""
    clock = time.cast(pa.string())
    both = pc.binary_join_element_wise(date, clock, " ")
    has_both = pc.and_(pc.match_substring_regex(date, r"^\s*\S+\s*$"), pc.match_substring_regex(clock, r"^\d\d?:\d\d"))
    return pc.if_else(pc.fill_null(has_both, False), both, date)


def _said(texts: pd.Series, what: Callable[[str], object]) -> npt.NDArray[np.bool_]:
    """Mark the texts of which a pattern finds what it looks for."""
    place, unique = pd.factorize(texts)
    found: npt.NDArray[np.bool_] = np.array([bool(what(each)) for each in unique], dtype=bool)[place]
    return found


def _looked_up(ids: npt.NDArray[np.int64], names: dict[int, str]) -> pd.Series:
    """Return the names of identifiers, "" where there is none."""
    unique, place = np.unique(ids, return_inverse=True)
    return pd.Series(np.array([names.get(each, "") for each in unique.tolist()], dtype=object)[place], dtype="str")


def _same(code: str, n: int) -> pd.Series:
    return pd.Series(code, index=range(n), dtype="str")


def _chunk(subject: npt.NDArray[np.int64], time: pd.Series, code: pd.Series) -> pd.DataFrame:
    values = {"subject": subject, "time": time.to_numpy(), "code": code.astype("category").array}
    return pd.DataFrame({**values, "value": np.full(len(subject), np.nan)})


def _names_by_id(
    tables: Tables, table: str, key: str, names: list[str], only: set[int] | None = None
) -> dict[int, str]:
    found = tables.columns(table)
    name = next((each for each in names if each in found), "")
    if key not in found or not name:
        return {}
    out: dict[int, str] = {}
    for first_row, batch in tables.batches(table, [key, name]):
        ids = cells.whole_numbers(batch.column(key), tables.where(table), key, first_row)
        texts = batch.column(name).cast(pa.string()).to_pylist()
        out |= {i: text for i, text in zip(ids.tolist(), texts, strict=True) if text and (only is None or i in only)}
    return out


class ConceptNames(dict[str, str]):
    """Texts of codes, found by the concept inside them.

    A concept's own name comes first, then that of a site's concept that maps to it, then the source value most often
    seen beside it while the tables were read.
    """

    def __init__(self, tables: Tables) -> None:
        super().__init__()
        names = _names_by_id(tables, "concept", "concept_id", ["concept_name"])
        names.pop(_NO_CONCEPT, None)
        self.of_concept = {**_mapped_from(tables, names), **names}
        """Names of concepts by identifier."""
        self._of_source: set[str] = set()
        self._seen: dict[int, Counter[str]] = {}

    def see(self, concept: npt.NDArray[np.int64], source_value: pd.Series) -> None:
        """Record source values of concepts that have no name."""
        unique, place = np.unique(concept, return_inverse=True)
        nameless = [each not in self.of_concept for each in unique.tolist()]
        rows = np.array(nameless, dtype=bool)[place]
        pairs = pd.DataFrame({"concept": concept[rows], "text": source_value[rows]}).value_counts()
        for (number, text), n in pairs.items():
            self._seen.setdefault(int(number), Counter())[str(text)] += int(n)

    def see_codes(self, codes: pd.Series) -> None:
        """Record codes of the source: one that is a number is no concept of that number."""
        self._of_source.update(codes.unique().tolist())

    def get(self, code: str, default: str = "") -> str:  # type: ignore[override]
        """Return the name of the concept in a code, or the default."""
        parts = code.split("//")
        place = _PLACE_OF_CONCEPT.get(parts[0])
        if place is None or len(parts) <= place or not parts[place].lstrip("-").isdigit():
            return default
        if parts[place] in self._of_source:
            return default
        number = int(parts[place])
        seen = self._seen.get(number)
        return self.of_concept.get(number) or (seen.most_common(1)[0][0] if seen else default)


def _mapped_from(tables: Tables, names: dict[int, str]) -> dict[int, str]:
    """Return names of unnamed standard concepts from concepts that map to them."""
    wanted = ["concept_id_1", "concept_id_2", "relationship_id"]
    if not set(wanted) <= tables.columns("concept_relationship"):
        return {}
    out: dict[int, str] = {}
    where = tables.where("concept_relationship")
    for first_row, batch in tables.batches("concept_relationship", wanted):
        maps = pc.equal(batch.column("relationship_id").cast(pa.string()), "Maps to").to_numpy(zero_copy_only=False)
        one, two = (cells.whole_numbers(batch.column(name), where, name, first_row) for name in wanted[:2])
        rows = np.flatnonzero(np.asarray(maps, dtype=bool))
        for source, target in zip(one[rows].tolist(), two[rows].tolist(), strict=True):
            if target not in names and source in names:
                # The shortest name is the plainest: "Heparin" rather than one of its packings.
                out[target] = min(out.get(target, names[source]), names[source], key=lambda name: (len(name), name))
    return out


def _fits(source: Path | str) -> bool:
    return (
        isinstance(source, str)
        or is_duckdb(source)
        or bool(database_url(source))
        or "person" in parquet_tables(source)
        or "person" in map(table_of, text_files(source))
    )


FORMAT = Format(name="omop", fits=_fits, read=read, code_counts=code_counts)
