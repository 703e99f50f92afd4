"""Events from CSV files: spellings of one table read alike, a wrong one is refused by file, row and rule."""

import codecs
import contextlib
import gzip
import io
import stat
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alertreview.records.sources import csv, text_tables
from core.errors import SourceError
from tests.support.records import site

HEADER = "patient,time,code,value,text\n"
BODY = (
    "P1,2026-01-01 10:00,IN,,\nP1,2026-01-02T07:00:00,LAB//K,4.1,\n"
    "P1,2026-01-02 07:00,LAB//Tn,<0.01,\nP1,2026-01-03,OUT,,bye\n"
)


def rows_of(path, **changes):
    return pd.concat(csv.read(path, site(format="csv", **changes)).chunks, ignore_index=True)


def written(folder, content, name="records.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_rows_times_numbers_and_texts_are_read(tmp_path):
    found = rows_of(written(tmp_path, HEADER + BODY))
    assert found["subject"].tolist() == ["P1"] * 4
    assert found["time"].dt.strftime("%d %H:%M").tolist() == ["01 10:00", "02 07:00", "02 07:00", "03 00:00"]
    np.testing.assert_array_equal(found["value"], [np.nan, 4.1, np.nan, np.nan])
    assert found["text"].astype(object).where(found["text"].notna(), None).tolist() == [None, None, "<0.01", "bye"]


ENCODED = {
    "crlf": (HEADER + BODY).replace("\n", "\r\n").encode(),
    "bom": codecs.BOM_UTF8 + (HEADER + BODY).encode(),
    "utf-16": (HEADER + BODY).encode("utf-16"),
    "utf-32": (HEADER + BODY).encode("utf-32"),
    "semicolons": (HEADER + BODY).replace(",", ";").encode(),
    "tabs": (HEADER + BODY).replace(",", "\t").encode(),
    "upper case": (HEADER.upper() + BODY).encode(),
    "other order": b"text,value,code,time,patient\n"
    + b"\n".join(b",".join(line.split(b",")[::-1]) for line in BODY.encode().splitlines()),
    "extra column": ("x," + HEADER + "".join(f"1,{line}\n" for line in BODY.splitlines())).encode(),
}


@pytest.mark.parametrize("content", ENCODED.values(), ids=ENCODED.keys())
@pytest.mark.checklist("D1")
def test_encodings_line_ends_delimiters_and_column_order_make_no_difference(tmp_path, content):
    plain = rows_of(written(tmp_path, HEADER + BODY, "plain.csv"))
    pd.testing.assert_frame_equal(rows_of(written(tmp_path, content)), plain, check_categorical=False)


def test_gzip_and_zip_make_no_difference(tmp_path):
    plain = rows_of(written(tmp_path, HEADER + BODY, "plain.csv"))
    packed = written(tmp_path, gzip.compress((HEADER + BODY).encode()), "records.csv.gz")
    with zipfile.ZipFile(tmp_path / "records.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner/records.csv", HEADER + BODY)
        archive.writestr("__MACOSX/inner/._records.csv", b"\0\1")
    for path in (packed, tmp_path / "records.zip"):
        pd.testing.assert_frame_equal(rows_of(path), plain)


def test_latin_1_is_read_with_a_remark(tmp_path):
    path = written(tmp_path, (HEADER + BODY.replace("bye", "Müller")).encode("latin-1"))
    source = csv.read(path, site(format="csv"))
    assert "Müller" in pd.concat(source.chunks)["text"].tolist()
    assert "Windows-1252" in source.remarks[0]


def test_other_names_of_columns_come_from_the_mapping(tmp_path):
    path = written(tmp_path, "who,when,what,known\nP1,2026-01-01 10:00,IN,2026-01-01 11:00\n")
    found = rows_of(path, csv={"patient": "who", "time": "when", "code": "what", "known_at": "known"})
    assert found["known_at"][0] == pd.Timestamp("2026-01-01 11:00")


def test_times_with_offsets_become_site_time(tmp_path):
    body = "P1,2026-03-29T00:30:00Z,IN,,\nP1,2026-03-29T03:30:00+02:00,OUT,,\nP1,2026-03-29 09:00,OUT,,\n"
    found = rows_of(written(tmp_path, HEADER + body), timezone="Europe/Zurich")
    assert found["time"].dt.strftime("%H:%M").tolist() == ["01:30", "03:30", "09:00"]


@pytest.mark.parametrize(
    ("content", "parts"),
    [
        ("", ["is empty", "name the columns"]),
        ("patient,time\nP1,2026-01-01\n", ["'code'", "found: patient, time", "csv"]),
        ("patient,time,code,Code\n", ["'code' appears twice"]),
        (HEADER + "P1,2026-01-01,IN,,\nP1,soon,OUT,,\n", ["row 3", "'time'", "ISO 8601"]),
        (HEADER + "P1,2026-01-01,IN,,\nP1,2026-01-01\n", ["row 3", "has 2 cells", "header 5"]),
        (HEADER + "P1,2026-01-01,IN,,\n,2026-01-02,OUT,,\n", ["row 3", "no patient"]),
        (HEADER + "P1,2026-01-01,IN,,a\0b\n", ["NUL"]),
        (gzip.compress((HEADER + BODY).encode()), ["is packed", "Unpack it"]),
        (b"7z\xbc\xaf\x27\x1c" + b"\0" * 90, ["is packed", "Unpack it"]),
        ((HEADER + BODY).encode("utf-16")[:-1], ["not UTF-16", "cut short or damaged", "Export it again"]),
        ((HEADER + BODY).encode("utf-16") + b"\0\xd8a\0", ["not UTF-16", "cut short or damaged"]),
        (HEADER.encode("utf-16") + b"\0", ["not UTF-16", "after row 2"]),
    ],
)
@pytest.mark.checklist("D1")
def test_a_wrong_file_is_refused_naming_file_row_column_and_rule(tmp_path, content, parts):
    path = written(tmp_path, content)
    with pytest.raises(SourceError) as caught:
        rows_of(path)
    for part in ["records.csv", *parts]:
        assert part in str(caught.value)
    assert "P1" not in str(caught.value)


def test_numbers_that_are_not_finite_and_words_for_missing_pass(tmp_path):
    found = rows_of(
        written(tmp_path, HEADER + "P1,2026-01-01,LAB//K,NaN,\nP1,2026-01-01,LAB//K,inf,\nP1,2026-01-01,LAB//K,HOLD,\n")
    )
    assert np.isnan(found["value"][0])
    assert np.isinf(found["value"][1])
    assert found["text"][2] == "HOLD"


def test_what_is_not_there_is_refused(tmp_path):
    with pytest.raises(SourceError, match="no such file"):
        rows_of(tmp_path / "gone.csv")
    with pytest.raises(SourceError, match=r"holds no \.csv"):
        rows_of(tmp_path)


@pytest.mark.parametrize("name", ["../evil.csv", "/etc/evil.csv", "a/../../evil.csv", "..\\evil.csv"])
@pytest.mark.checklist("D2")
def test_archives_whose_members_leave_them_are_refused(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(name, HEADER)
    with pytest.raises(SourceError, match="leads out of the archive"):
        rows_of(tmp_path / "a.zip")


def test_links_in_archives_and_folders_are_refused(tmp_path):
    info = zipfile.ZipInfo("link.csv")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(SourceError, match="is a link"):
        rows_of(tmp_path / "a.zip")
    outside = written(tmp_path, HEADER + BODY, "outside.csv")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inside.csv").symlink_to(outside)
    with pytest.raises(SourceError, match="leads out of the folder"):
        rows_of(tmp_path / "folder")


@pytest.mark.parametrize("name", ["more", "gone.csv"])
def test_links_that_lead_to_no_file_are_named(tmp_path, name):
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    elsewhere.mkdir()
    folder.mkdir()
    written(folder, HEADER + BODY)
    written(elsewhere, HEADER + BODY)
    (folder / name).symlink_to(folder / "nowhere" if name.startswith("gone") else elsewhere)
    (found,) = csv.read(folder, site(format="csv")).findings
    assert (found.name, found.examples) == ("unread_files", (name,))


def test_a_table_of_very_many_columns_is_read_by_its_own_header(tmp_path):
    more = "".join(f",column {i}" for i in range(30_000))
    path = written(tmp_path, HEADER.replace("\n", f"{more}\n") + BODY.replace("\n", "," * 30_000 + "\n"))
    assert len(rows_of(path)) == 4
    doubled = path.read_text(encoding="utf-8").replace("column 29999", "column 5", 1)
    with pytest.raises(SourceError, match="'column 5' appears twice"):
        rows_of(written(tmp_path, doubled))


def test_a_line_of_a_million_characters_is_no_header(tmp_path):
    with pytest.raises(SourceError, match="first line"):
        rows_of(written(tmp_path, "patient," * 200_000))


@pytest.mark.parametrize("line", ["sep=,", '"sep=;"', "SEP=\t"])
def test_the_line_that_tells_a_spreadsheet_the_delimiter_is_refused_by_name(tmp_path, line):
    with pytest.raises(SourceError, match="tells a spreadsheet the delimiter"):
        rows_of(written(tmp_path, f"{line}\r\n{HEADER}{BODY}"))


@pytest.mark.checklist("D2")
def test_bombs_are_refused_before_they_go_off(tmp_path, monkeypatch):
    monkeypatch.setattr(text_tables, "_BOMB_BYTES", 1 << 20)
    bomb = (HEADER + BODY).encode() + b"," * (8 << 20)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("records.csv", bomb)
    packed = written(tmp_path, gzip.compress(bomb), "bomb.csv.gz")
    for path in (tmp_path / "bomb.zip", packed):
        with pytest.raises(SourceError, match="times its size"):
            rows_of(path)


@pytest.mark.parametrize("cut", [10, 40, -10])
@pytest.mark.checklist("D1")
def test_truncated_archives_are_refused(tmp_path, cut):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("records.csv", HEADER + BODY)
    with pytest.raises(SourceError, match="complete zip"):
        rows_of(written(tmp_path, buffer.getvalue()[:cut], "a.zip"))
    packed = gzip.compress((HEADER + BODY * 50).encode())
    with pytest.raises(SourceError, match="cannot be read"):
        rows_of(written(tmp_path, packed[:cut], "b.csv.gz"))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300) | st.text(max_size=200).map(lambda text: (HEADER + text).encode()))
@pytest.mark.checklist("D1")
def test_any_bytes_are_read_or_refused(tmp_path_factory, content):
    path = written(tmp_path_factory.mktemp("fuzz"), content)
    n_rows = 0
    with contextlib.suppress(SourceError):
        for chunk in csv.read(path, site(format="csv")).chunks:
            assert set(chunk.columns) >= {"subject", "time", "code", "value"}
            n_rows += len(chunk)
    assert n_rows <= content.count(b"\n") + content.count(b"\r") + 1


def test_codes_are_counted_for_choosing_a_mapping(tmp_path):
    path = written(tmp_path, HEADER + BODY)
    assert csv.code_counts(path, site(format="csv").csv) == {"IN": 1, "LAB//K": 1, "LAB//Tn": 1, "OUT": 1}
