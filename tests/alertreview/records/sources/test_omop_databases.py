"""OMOP in a plain database file, with its dates as texts or as numbers of any unit."""

import importlib
import sqlite3
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alertreview.cli.main import main
from alertreview.records.importing import build_cohort
from alertreview.records.mapping_help import check_mapping
from alertreview.records.sources.epoch import is_time, times_of, unit_of
from alertreview.records.sources.formats import detect_format
from core.errors import SourceError
from tests.alertreview.records.sources.test_omop import as_folder, tables

duckdb = importlib.import_module("duckdb")
DIVISORS = {"seconds": 10**6, "milliseconds": 10**3, "microseconds": 1}


def as_numbers(column: pd.Series, unit: str) -> pd.Series:
    """Times as numbers, missing ones as NULL."""
    times = pd.to_datetime(column, format="ISO8601").astype("datetime64[us]")
    whole = times.astype("int64") // DIVISORS[unit]
    return whole.astype("object").where(times.notna(), None)


def write(path, cdm):
    with sqlite3.connect(path) as connection:
        for name, table in cdm.items():
            whole = {column: "Int64" for column in table if column.endswith("_id") and column != "relationship_id"}
            table.astype(whole).to_sql(name.upper(), connection, index=False)
    connection.close()
    return path


def built(source):
    return build_cohort(source, format=detect_format(source), min_positive=1)


@pytest.mark.parametrize("unit", [None, *DIVISORS])
def test_a_plain_sqlite_file_gives_the_cohort_of_the_csv_files(tmp_path, unit):
    cdm = tables()
    if unit:
        cdm = {
            name: table.assign(**{column: as_numbers(table[column], unit) for column in filter(is_time, table)})
            for name, table in cdm.items()
        }
    file = write(tmp_path / "our cdm.sqlite", cdm)
    before = file.read_bytes()
    cohort, report = built(file)
    assert cohort.content_hash == built(as_folder(tmp_path / "cdm", tables()))[0].content_hash
    assert file.read_bytes() == before
    told = [remark for remark in report.read.remarks if f"read as {unit}" in remark]
    assert bool(told) == bool(unit)
    check = check_mapping(file, format="omop")
    assert check.n_rows == report.read.n_rows


def test_the_command_line_reads_a_database_file_and_refuses_another_one(tmp_path, capsys):
    assert main(["import", str(write(tmp_path / "cdm.db", tables())), "--home", str(tmp_path / "home")]) == 0
    other = write(tmp_path / "other.db", {"thing": pd.DataFrame({"a": [1]})})
    assert main(["import", str(other), "--home", str(tmp_path / "home")]) != 0
    assert "other.db has no table person" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("time", "number"),
    [
        ("2026-02-28", 20_260_228),
        ("2026-02-28", 20_512),
        ("2026-02-28 06:15", 1_772_259_300),
        ("2026-02-28 06:15", 1_772_259_300_000),
        ("2026-02-28 06:15", 1_772_259_300_000_000),
        ("1961-12-05", -2_949),
        ("1960-01-01", -315_619_200),
    ],
)
def test_numbers_are_the_times_they_were_made_from(time, number):
    column = pa.array([number, None], pa.int64())
    unit = unit_of(number, number)
    found = times_of(column, unit, "person", "birth_date", 1).to_pandas()
    assert found[0] == pd.Timestamp(time)
    assert pd.isna(found[1])
    floats = times_of(column.cast(pa.float64()), unit, "person", "birth_date", 1).to_pandas()
    assert floats.equals(found)


def test_every_day_of_eight_digits_is_itself_and_others_are_refused():
    days = pd.date_range("1899-12-01", "2105-01-31", freq="D")
    numbers = days.year * 10_000 + days.month * 100 + days.day
    unit = unit_of(numbers.min(), numbers.max())
    found = times_of(pa.array(np.asarray(numbers)), unit, "t", "c", 1).to_pandas()
    assert (found.to_numpy() == days.to_numpy().astype("datetime64[us]")).all()
    for wrong in (20_260_230, 20_261_301, 20_260_100, 20_260_001):
        with pytest.raises(SourceError, match=r"t: row 8, column 'c': is none of the dates of eight digits"):
            times_of(pa.array([20_260_101, wrong]), unit, "t", "c", 7)


def test_a_number_beyond_the_calendar_is_refused():
    with pytest.raises(SourceError, match=r"row 2, column 'c': is none of the seconds"):
        times_of(pa.array([1_772_259_300.0, 9e99]), unit_of(0, 1_772_259_300), "t", "c", 1)


def write_duckdb(path, cdm, schema="main"):
    with duckdb.connect(str(path)) as connection:
        place = f"{path.stem}.{schema}"
        connection.sql(f"CREATE SCHEMA IF NOT EXISTS {place}")
        for name, table in cdm.items():
            typed = table.copy()
            for column in typed:
                if is_time(column):
                    typed[column] = pd.to_datetime(typed[column], format="ISO8601").astype("datetime64[us]")
                elif column.endswith("_id") and column != "relationship_id":
                    typed[column] = typed[column].astype("Int64")
            rows = pa.Table.from_pandas(typed, preserve_index=False)
            connection.register("rows", rows)
            connection.sql(f"CREATE TABLE {place}.{name.upper()} AS SELECT * FROM rows")
            connection.unregister("rows")
    return path


@pytest.mark.parametrize("schema", [None, "cdm"])
def test_a_duckdb_file_gives_the_cohort_of_the_csv_files(tmp_path, schema):
    file = write_duckdb(tmp_path / "cdm.duckdb", tables(), schema or "main")
    before = file.read_bytes()
    cohort, report = build_cohort(file, format=detect_format(file), min_positive=1, schema=schema)
    assert cohort.content_hash == built(as_folder(tmp_path / "cdm", tables()))[0].content_hash
    assert (file.read_bytes(), report.source) == (before, "cdm.duckdb")


@pytest.mark.parametrize("parts", [1, 2])
def test_a_folder_of_parquet_gives_the_cohort_of_the_csv_files(tmp_path, parts):
    """A table is a file, or a folder of parts as Spark writes it; other files are named."""
    cdm = {name: table.convert_dtypes() for name, table in tables().items()}
    (tmp_path / "cdm").mkdir()
    for name, table in cdm.items():
        for i in range(parts):
            path = tmp_path / "cdm" / (f"{name.upper()}.parquet" if parts == 1 else f"{name}/part-{i}.parquet")
            path.parent.mkdir(exist_ok=True)
            table.iloc[i::parts].rename(columns=str.upper).to_parquet(path, index=False)
    (tmp_path / "cdm" / "notes.parquet").write_bytes(b"")
    (tmp_path / "cdm" / "_SUCCESS").write_bytes(b"")
    assert detect_format(tmp_path / "cdm") == "omop"
    cohort, report = built(tmp_path / "cdm")
    assert cohort.content_hash == built(as_folder(tmp_path / "files", cdm))[0].content_hash
    unread = next(check for check in report.checks if check.name == "unread_files")
    assert unread.examples == ("notes.parquet",)


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string())])
def test_parquet_that_holds_texts_is_read_as_a_csv_file_is(tmp_path, kind):
    """Polars, DuckDB and pandas write texts of other types; a cell that is wrong is named by row."""
    cdm = tables()
    cdm["measurement"] = (
        cdm["measurement"].astype({"value_as_number": "str"}).replace({"value_as_number": {"4.1": "<4.1"}})
    )
    expected = built(as_folder(tmp_path / "files", cdm))[0].content_hash
    (tmp_path / "cdm").mkdir()
    for name in cdm:
        texts = pa.Table.from_pandas(pd.read_csv(tmp_path / "files" / f"{name}.csv", dtype=str, keep_default_na=False))
        columns = [column.combine_chunks().cast(pa.string()) for column in texts.columns]
        columns = [each.dictionary_encode() if pa.types.is_dictionary(kind) else each.cast(kind) for each in columns]
        pq.write_table(pa.table(columns, names=texts.column_names), tmp_path / "cdm" / f"{name}.parquet")
    assert built(tmp_path / "cdm")[0].content_hash == expected
    labs = pq.read_table(tmp_path / "cdm" / "measurement.parquet").to_pandas().astype(str)
    labs.loc[1, "measurement_datetime"] = "now"
    labs.to_parquet(tmp_path / "cdm" / "measurement.parquet")
    with pytest.raises(SourceError, match=r"measurement\.parquet: row 2, column 'measurement_datetime': 'now'"):
        built(tmp_path / "cdm")


def test_a_damaged_parquet_table_is_named(tmp_path):
    for name, table in tables().items():
        table.convert_dtypes().to_parquet(tmp_path / f"{name}.parquet", index=False)
    (tmp_path / "measurement.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(SourceError, match=r"measurement\.parquet: is not a complete parquet file"):
        built(tmp_path)


def test_a_damaged_duckdb_file_and_a_missing_package_are_refused_in_words(tmp_path, capsys, monkeypatch):
    file = tmp_path / "cdm.duckdb"
    file.write_bytes(b"\x01\x02\x03\x04\x05\x06\x07\x08DUCK" + bytes(100))
    assert main(["import", str(file), "--home", str(tmp_path / "home")]) != 0
    assert "cdm.duckdb: the database cannot be read" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert main(["import", str(file), "--home", str(tmp_path / "home")]) != 0
    assert "Install 'alertreview[duckdb]'" in capsys.readouterr().err
