"""Exported tables: the same rows in every format, ids and texts unchanged, safe in a spreadsheet, all or nothing."""

import csv
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import openpyxl
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alertreview.exports.formats import ExportFormat, write_table
from alertreview.exports.recompute import read_rows
from alertreview.exports.schema import Column, ColumnType, TableSchema, excel_text, from_excel_text
from core.errors import InvalidInputError

ALL = list(ExportFormat)
READ_BACK = [f for f in ExportFormat if f is not ExportFormat.XLSX]
SCHEMA = TableSchema(
    "sample",
    "Sample",
    "one thing",
    ("id",),
    (
        Column("id", ColumnType.TEXT, "an identifier"),
        Column("words", ColumnType.TEXT, "what was typed", missing="when nothing was"),
        Column("count", ColumnType.INTEGER, "how many", missing="when unknown"),
        Column("score", ColumnType.NUMBER, "a score", missing="when unknown"),
        Column("yes", ColumnType.BOOLEAN, "whether", missing="when unknown"),
        Column("at", ColumnType.TIME, "when", missing="when unknown"),
    ),
)
AT = datetime(2026, 3, 29, 8, tzinfo=ZoneInfo("Europe/Zurich"))


def row(**changes):
    return {"id": "1", "words": "a", "count": 1, "score": 0.5, "yes": True, "at": AT} | changes


def write(folder, rows, formats=ALL):
    return {file.format: file for file in write_table(folder, rows, SCHEMA, formats)}


def cells_of(path):
    sheet = openpyxl.load_workbook(path).active
    return [list(r) for r in sheet.iter_rows(min_row=2)]


@pytest.mark.parametrize("n", [0, 1, 3, 4])
def test_every_format_opens_and_has_as_many_rows(tmp_path, n):
    files = write(tmp_path, [row(id=str(i)) for i in range(n)])
    assert {file.n_rows for file in files.values()} == {n}
    assert len(pd.read_csv(files[ExportFormat.CSV].path)) == n
    assert len(pd.read_csv(files[ExportFormat.CSV_EXCEL].path, encoding="utf-8-sig")) == n
    assert pq.read_table(files[ExportFormat.PARQUET].path).num_rows == n
    assert len(files[ExportFormat.JSONL].path.read_text().splitlines()) == n
    assert len(cells_of(files[ExportFormat.XLSX].path)) == n


@pytest.mark.parametrize("identifier", ["001017", "891e3", "9223372036854775807", "1234567890123456789", "1-2", "MAR1"])
def test_ids_come_back_as_the_text_they_were(tmp_path, identifier):
    files = write(tmp_path, [row(id=identifier)])
    for chosen in READ_BACK:
        assert next(read_rows(files[chosen].path, SCHEMA, chosen))["id"] == identifier
    cell = cells_of(files[ExportFormat.XLSX].path)[0][0]
    assert (cell.value, cell.data_type) == (identifier, "s")
    assert pd.read_csv(files[ExportFormat.CSV].path, dtype=str)["id"][0] == identifier


@pytest.mark.parametrize(
    "words", ['=HYPERLINK("http://x","y")', "+1", "-1", "@SUM(1)", "\t=1", "=cmd|' /C calc'!A0", "＝1", "'quoted"]
)
@pytest.mark.checklist("D3")
def test_a_formula_stays_text_everywhere(tmp_path, words):
    files = write(tmp_path, [row(words=words)])
    cell = cells_of(files[ExportFormat.XLSX].path)[0][1]
    assert (cell.value, cell.data_type) == (words, "s")
    with files[ExportFormat.CSV_EXCEL].path.open(encoding="utf-8-sig", newline="") as file:
        assert list(csv.reader(file))[1][1] == f"'{words}"
    for chosen in READ_BACK:
        assert next(read_rows(files[chosen].path, SCHEMA, chosen))["words"] == words


@pytest.mark.checklist("D3")
def test_a_negative_score_stays_a_number(tmp_path):
    files = write(tmp_path, [row(score=-0.31)])
    assert pd.read_csv(files[ExportFormat.CSV_EXCEL].path, encoding="utf-8-sig")["score"][0] == -0.31
    cell = cells_of(files[ExportFormat.XLSX].path)[0][3]
    assert (cell.value, cell.data_type) == (-0.31, "n")


@pytest.mark.parametrize("chosen", [ExportFormat.CSV, ExportFormat.CSV_EXCEL])
def test_umlauts_and_the_first_header_survive_both_kinds_of_csv(tmp_path, chosen):
    path = write(tmp_path, [row(words="Müller µmol/L")])[chosen].path
    table = pd.read_csv(path, encoding="utf-8-sig")
    assert table.columns[0] == "id"
    assert table["words"][0] == "Müller µmol/L"
    assert path.read_bytes().startswith(b"\xef\xbb\xbf") == (chosen is ExportFormat.CSV_EXCEL)


def test_plain_csv_is_byte_exact(tmp_path):
    path = write(tmp_path, [row(words='a "b"\r\nc,\n=1', count=None, score=None)], [ExportFormat.CSV])
    expected = (
        '"id","words","count","score","yes","at"\r\n"1","a ""b""\r\nc,\n=1",,,true,"2026-03-29T08:00:00+02:00"\r\n'
    )
    assert path[ExportFormat.CSV].path.read_bytes() == expected.encode()


@pytest.mark.checklist("C7")
def test_eight_in_the_morning_stays_eight_across_the_change_of_clocks(tmp_path):
    before = datetime(2026, 3, 28, 8, tzinfo=ZoneInfo("Europe/Zurich"))
    files = write(tmp_path, [row(at=before), row(at=AT)])
    for chosen in READ_BACK:
        found = [r["at"] for r in read_rows(files[chosen].path, SCHEMA, chosen)]
        assert found == ["2026-03-28T08:00:00+01:00", "2026-03-29T08:00:00+02:00"]
    assert cells_of(files[ExportFormat.XLSX].path)[1][5].value == "2026-03-29T08:00:00+02:00"


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
numbers = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(texts, st.integers(-(2**62), 2**62), st.floats(allow_nan=False, allow_infinity=False)), max_size=5
    )
)
def test_any_text_and_number_comes_back_the_same_from_every_format(tmp_path, rows):
    files = write(tmp_path, [row(id=f"x{t}", words=t or None, count=n, score=x) for t, n, x in rows], READ_BACK)
    for chosen in READ_BACK:
        found = list(read_rows(files[chosen].path, SCHEMA, chosen))
        assert [(r["id"], r["words"] or "", r["count"], r["score"]) for r in found] == [
            (f"x{t}", t, n, x) for t, n, x in rows
        ]


@settings(max_examples=200, deadline=None)
@given(texts)
def test_the_apostrophe_for_excel_comes_off_again(text):
    assert from_excel_text(excel_text(text)) == text


def test_the_same_rows_give_the_same_bytes(tmp_path):
    first, second = (write(tmp_path / name, [row(), row(id="2", words=None)]) for name in ("a", "b"))
    assert [f.sha256 for f in first.values()] == [f.sha256 for f in second.values()]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": "three"}, "Column 'count' of table 'sample' holds a str where integer is expected"),
        ({"count": 1.5}, "Column 'count'"),
        ({"score": float("inf")}, "Column 'score'"),
        ({"score": "0.5"}, "Column 'score'"),
        ({"yes": "yes"}, "Column 'yes'"),
        ({"at": datetime(2026, 1, 1)}, "Column 'at'"),  # noqa: DTZ001
        ({"words": 0.5}, "Column 'words'"),
        ({"words": "\ud800"}, "Column 'words'"),
        ({"extra": 1}, "has no column 'extra'"),
    ],
)
def test_a_row_that_does_not_fit_leaves_nothing_behind(tmp_path, change, message):
    with pytest.raises(InvalidInputError, match=message):
        write(tmp_path, [row(), row(**change)])
    assert list(tmp_path.iterdir()) == []


def test_a_failed_export_leaves_the_former_file_untouched(tmp_path):
    former = write(tmp_path, [row(id="former")])

    def broken():
        yield row()
        raise RuntimeError("the database went away")

    with pytest.raises(RuntimeError, match="went away"):
        write(tmp_path, broken())
    assert {p.name for p in tmp_path.iterdir()} == {f.path.name for f in former.values()}
    assert next(read_rows(tmp_path / "sample.csv", SCHEMA, ExportFormat.CSV))["id"] == "former"


def test_nan_is_missing_and_an_empty_text_is_not(tmp_path):
    files = write(tmp_path, [row(score=float("nan"), words="")], [ExportFormat.JSONL, ExportFormat.CSV])
    assert '"score": null' in files[ExportFormat.JSONL].path.read_text()
    assert ',"",1,,true,' in files[ExportFormat.CSV].path.read_text()


def test_what_does_not_fit_a_sheet_is_refused_with_the_way_out(tmp_path):
    with pytest.raises(InvalidInputError, match=r"32768 characters; an Excel cell holds 32767\. Choose CSV"):
        write(tmp_path, [row(words="x" * 32768)], [ExportFormat.XLSX])
    assert list(tmp_path.iterdir()) == []


def test_no_format_is_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="No format was chosen"):
        write(tmp_path, [row()], [])


def test_rows_are_read_once_and_never_held(tmp_path):
    alive = 0
    most = 0

    class Row(dict):
        def __init__(self, *a, **k):
            nonlocal alive, most
            super().__init__(*a, **k)
            alive += 1
            most = max(most, alive)

        def __del__(self):
            nonlocal alive
            alive -= 1

    write(tmp_path, (Row(row(id=str(i))) for i in range(2000)))
    assert most < 10


@pytest.mark.parametrize("chosen", READ_BACK)
def test_a_file_of_another_table_is_refused(tmp_path, chosen):
    path = write(tmp_path, [row()])[chosen].path
    other = TableSchema("other", "Other", "one thing", ("id",), SCHEMA.columns[:1])
    with pytest.raises(InvalidInputError, match="not an export of table 'other'"):
        list(read_rows(path, other, chosen))


def test_xlsx_is_for_people(tmp_path):
    with pytest.raises(InvalidInputError, match="is for people"):
        list(read_rows(write(tmp_path, [row()])[ExportFormat.XLSX].path, SCHEMA, ExportFormat.XLSX))


def test_parquet_times_are_typed_instants_in_the_zone_of_the_site(tmp_path):
    winter = datetime(2026, 3, 28, 8, tzinfo=ZoneInfo("Europe/Zurich"))
    path = write(tmp_path, [row(at=None), row(at=winter), row(at=AT)], [ExportFormat.PARQUET])[
        ExportFormat.PARQUET
    ].path
    times = pd.read_parquet(path)["at"]
    assert str(times.dtype) == "datetime64[us, Europe/Zurich]"
    assert list(times.dt.hour[1:]) == [8, 8]
    assert times[1] == winter


def test_times_without_a_named_zone_are_kept_as_utc(tmp_path):
    at = datetime(2026, 3, 28, 8, tzinfo=timezone(timedelta(hours=-5)))
    path = write(tmp_path, [row(at=at)], [ExportFormat.PARQUET])[ExportFormat.PARQUET].path
    assert pd.read_parquet(path)["at"][0] == at
    assert pq.read_table(path).schema.field("at").type.tz == "UTC"


@pytest.mark.checklist("D3")
@pytest.mark.parametrize("sign", "=+-@＝＋－＠﹦﹢﹣﹫")
@pytest.mark.parametrize(
    "before", ["", " ", "   ", "\t", "\r", "\n", "\r\n ", "\u00a0", "\u3000", "\u200b", "\ufeff", "\x00", "\x0b"]
)
def test_a_formula_is_guarded_whatever_stands_before_it(before: str, sign: str) -> None:
    assert excel_text(f"{before}{sign}1+1").startswith("'")
    assert from_excel_text(excel_text(f"{before}{sign}1+1")) == f"{before}{sign}1+1"
    assert excel_text(f"a {sign} b") == f"a {sign} b"
