"""Exported tables in the hands of pandas, polars, DuckDB, pyarrow and R: types, instants and identifiers as written."""

import json
import re
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import duckdb
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

from alertreview.application import Application, open_application
from alertreview.exports.formats import ExportFormat, write_table
from alertreview.exports.schema import Column, ColumnType, TableSchema
from tests.support.pieces import MISSING_PIECE

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = TableSchema(
    "sample",
    "Sample",
    "one thing",
    ("id",),
    (
        Column("id", ColumnType.TEXT, "an identifier"),
        Column("count", ColumnType.INTEGER, "how many", missing="when unknown"),
        Column("score", ColumnType.NUMBER, "a score", missing="when unknown"),
        Column("yes", ColumnType.BOOLEAN, "whether", missing="when unknown"),
        Column("at", ColumnType.TIME, "when", missing="when unknown"),
    ),
)
IDS = ["1234567890123456789", "9223372036854775808", "0007", "1e5", "NA", "SIM-0412", "-0", "true", "1.0"]
AT = datetime(2026, 3, 29, 8, tzinfo=ZoneInfo("Europe/Zurich"))
ROWS = [
    {"id": one, "count": None if n == 3 else n, "score": 0.5 + n, "yes": [True, False, None][n % 3], "at": AT}
    for n, one in enumerate(IDS)
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (written,) = write_table(tmp_path, ROWS, SCHEMA, [ExportFormat.PARQUET])
    return written.path


def by_pandas(file: Path) -> list[dict[str, Any]]:
    table = pd.read_parquet(file)
    assert str(table["at"].dtype) == "datetime64[us, Europe/Zurich]"
    return [
        {name: None if pd.isna(value) else value for name, value in row.items()} for row in table.to_dict("records")
    ]


def by_polars(file: Path) -> list[dict[str, Any]]:
    table = pl.read_parquet(file)
    assert table.schema["id"] == pl.String
    assert table.schema["count"] == pl.Int64
    assert table.schema["yes"] == pl.Boolean
    assert table.schema["at"] == pl.Datetime("us", "Europe/Zurich")
    return table.to_dicts()


def by_duckdb(file: Path) -> list[dict[str, Any]]:
    found = duckdb.sql(f"""SELECT * REPLACE (epoch_us("at") AS "at") FROM '{file}'""")
    kinds = dict(zip(found.columns, map(str, found.types), strict=True))
    assert kinds == {"id": "VARCHAR", "count": "BIGINT", "score": "DOUBLE", "yes": "BOOLEAN", "at": "BIGINT"}
    assert str(duckdb.sql(f"""SELECT "at" FROM '{file}'""").types[0]) == "TIMESTAMP WITH TIME ZONE"
    rows = [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
    return [row | {"at": datetime.fromtimestamp(row["at"] / 1e6, UTC)} for row in rows]


def by_pyarrow(file: Path) -> list[dict[str, Any]]:
    return pq.read_table(file).to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("read", [by_pandas, by_polars, by_duckdb, by_pyarrow])
def test_a_parquet_file_keeps_identifiers_types_and_instants(file: Path, read: Any) -> None:
    found = read(file)
    assert [row["id"] for row in found] == IDS
    assert [row["at"] for row in found] == [AT] * len(IDS)
    for name in ("count", "score", "yes"):
        assert [row[name] for row in found] == [row[name] for row in ROWS], name


def test_r_reads_identifiers_of_a_csv_file_as_text(tmp_path: Path) -> None:
    rscript = shutil.which("Rscript")
    if rscript is None:  # The one piece that continuous integration does without: half a gigabyte for one line.
        pytest.skip(f"{MISSING_PIECE}Rscript: apt install r-base-core")
    (written,) = write_table(tmp_path, ROWS, SCHEMA, [ExportFormat.CSV])
    code = f'cat(read.csv("{written.path}", colClasses = c(id = "character"), na.strings = "")$id, sep = "\\n")'
    ended = subprocess.run([str(rscript), "-e", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == IDS


@pytest.fixture
def ward_export(own_home: Path, tmp_path: Path) -> Path:
    with open_application(own_home) as site:
        site.exports.study("demo", ["parquet", "csv"], tmp_path / "ward-export")
    return tmp_path


def test_the_examples_of_the_documents_read_the_labels(ward_export: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "researchers.md").read_text(encoding="utf-8")
    section = text.partition("### Reading the tables")[2].partition("\n## ")[0]
    examples = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert len(examples) == 2
    monkeypatch.chdir(ward_export)
    found: list[dict[str, Any]] = [{} for _ in examples]
    for example, names in zip(examples, found, strict=True):
        exec(example, names)
    typed, text_table = found[0]["labels"].to_pandas(), found[1]["labels"]
    assert found[0]["counts"]["n"].sum() == len(typed) == len(text_table) > 0
    for column in ("case_id", "patient_id", "task_key"):
        assert typed[column].tolist() == text_table[column].tolist()
    named = set(json.loads((ward_export / "ward-export" / "datapackage.json").read_text())["resources"][0])
    assert {"path", "schema"} <= named
    columns = re.findall(r'(\w+) = "character"', section)
    assert columns
    assert set(columns) <= set(text_table.columns)


def test_every_layout_is_joined_by_the_same_keys(application: Application, own_home: Path, tmp_path: Path) -> None:
    with open_application(own_home) as site:
        for layout in ("wide", "long"):
            site.exports.labels("demo", "parquet", layout, tmp_path / f"{layout}.parquet")
    keys = ["case_id", "patient_id", "snapshot_at", "task_key", "alert_id", "run_id"]
    wide, long = (pl.read_parquet(tmp_path / f"{layout}.parquet").select(keys).unique() for layout in ("wide", "long"))
    joined = long.join(wide, on=keys, how="inner", nulls_equal=True)
    assert joined.height == long.height > 0
