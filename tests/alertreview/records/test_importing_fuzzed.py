"""Whatever is in the files: a right import with counted remarks, or one refusal in words, and nothing half-loaded."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alertreview.records.importing import import_snapshot
from alertreview.records.snapshots import read_snapshot
from core.errors import AlertReviewError, MappingError
from core.events.mapping import SiteMapping, load_mapping

FUZZ = settings(
    max_examples=int(os.environ.get("ALERTREVIEW_FUZZ_EXAMPLES", "30")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
NASTY = st.sampled_from(
    [
        "",
        " ",
        "nan",
        "NaN",
        "inf",
        "-inf",
        "<0.01",
        ">50",
        "HOLD",
        "1+",
        "1e999",
        "-9223372036854775808",
        "999999999999999999999",
        "\ufeff",
        "Müller",
        'a"b',
        "a\nb",
        "=1+1",
        "\x01",
        "None",
        "0",
        "-1",
        "4.1",
        "2026-02-30",
        "0000-00-00",
    ]
)
TIMES = st.sampled_from(
    [
        "2026-01-01",
        "2026-01-01 10:00",
        "2026-01-02T07:00:00+01:00",
        "1800-01-01",
        "9999-12-31 23:59:59",
        "",
        "yesterday",
    ]
)


def imported_or_refused(source: Path, home: Path, **options) -> str:
    """Import, and hold the import to its word: all of it or nothing, and sums that add up."""
    try:
        found = import_snapshot(source, home, rows_per_part=3, **options)
    except AlertReviewError as refusal:
        text = str(refusal)
        assert len(text) > 20, text
        assert text.endswith("."), text
        assert "Traceback" not in text
        kept = list((home / "snapshots").iterdir()) if (home / "snapshots").exists() else []
        assert kept == []
        return text
    report = found.report
    lost = sum(drop.n_rows for drop in report.read.dropped if "ignores" not in drop.reason)
    assert report.n_recognised + lost >= report.read.n_rows
    assert report.n_events + report.read.n_duplicates_dropped <= report.n_recognised
    cohort = read_snapshot(found.folder).cohort
    assert len(cohort.events) == report.n_events
    assert cohort.features.shape == (report.n_instances, report.n_features)
    assert np.isfinite(cohort.features.data).all()
    assert report.n_instances > 0
    return ""


def _columns(n):
    """MEDS columns of n rows: mostly of the right type, some not."""
    codes = st.none() | st.sampled_from(
        [
            "HOSPITAL_ADMISSION//A",
            "HOSPITAL_DISCHARGE//B",
            "LAB//50971//mEq/L",
            "LAB//50971//",
            "MEDS_BIRTH",
            "MEDS_DEATH",
            "GENDER//F",
            "?",
            "",
            "MEDICATION//START//X",
            "MEDICATION//X//Administered",
            "MEDICATION//X//Not Given",
        ]
    )
    hours = st.integers(-10, 24 * 8)
    return {
        "subject_id": st.lists(st.sampled_from([1, 2, -(2**62), None] if n > 6 else [1, 2]), min_size=n, max_size=n),
        "time": st.lists(st.none() | hours, min_size=n, max_size=n),
        "code": st.lists(codes, min_size=n, max_size=n),
        "numeric_value": st.lists(
            st.none() | st.floats(width=32) | st.sampled_from([999999.0, 4.0]), min_size=n, max_size=n
        ),
        "text_value": st.lists(st.none() | NASTY, min_size=n, max_size=n),
    }


STAY = [(1, 10, "HOSPITAL_ADMISSION//A"), (1, 100, "HOSPITAL_DISCHARGE//B"), (1, 20, "LAB//50971//mEq/L")]


@FUZZ
@given(data=st.data())
def test_any_meds_rows_end_in_an_import_or_a_refusal(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("meds")
    (folder / "data").mkdir()
    for shard in range(data.draw(st.integers(1, 3))):
        n = data.draw(st.integers(0, 12))
        columns = {name: data.draw(values) for name, values in _columns(n).items()}
        if shard == 0:
            for name, more in zip(("subject_id", "time", "code"), zip(*STAY, strict=True), strict=True):
                columns[name] += more
            columns["numeric_value"] += [None] * 3
            columns["text_value"] += [None] * 3
        start = np.datetime64("2026-01-01T00:00", "us")
        arrays = {
            "subject_id": pa.array(columns["subject_id"], pa.int64()),
            "time": pa.array(
                [None if hour is None else start + np.timedelta64(hour, "h") for hour in columns["time"]],
                pa.timestamp("us"),
            ),
            "code": pa.array(columns["code"], pa.string()),
            "numeric_value": pa.array(columns["numeric_value"], pa.float32()),
            "text_value": pa.array(columns["text_value"], pa.string()),
            "extra": pa.array([b"x"] * len(columns["code"])),
        }
        names = data.draw(st.permutations(list(arrays)))
        left_out = data.draw(st.sampled_from([None, None, None, *arrays]))
        table = pa.table({name: arrays[name] for name in names if name != left_out})
        pq.write_table(table, folder / "data" / f"{shard}.parquet")
    refusal = imported_or_refused(folder, folder / "home", mapping="mimic-iv-meds")
    if refusal:
        assert ".parquet" in refusal or "Mapping" in refusal


OMOP = {
    "person": ("person_id", "gender_concept_id", "year_of_birth"),
    "visit_occurrence": ("person_id", "visit_concept_id", "visit_start_datetime", "visit_end_datetime"),
    "measurement": (
        "person_id",
        "measurement_concept_id",
        "measurement_datetime",
        "value_as_number",
        "unit_source_value",
    ),
    "drug_exposure": ("person_id", "drug_concept_id", "drug_exposure_start_datetime", "drug_type_concept_id"),
    "death": ("person_id", "death_date"),
}
GOOD_CELL = {"person_id": "1", "visit_start_datetime": "2026-01-01 10:00", "visit_end_datetime": "2026-01-05 10:00"}


def _cell(column):
    if column.endswith(("datetime", "date")):
        return GOOD_CELL.get(column, "2026-01-02 09:00")
    return GOOD_CELL.get(column, "3")


@FUZZ
@given(data=st.data())
def test_any_omop_tables_end_in_an_import_or_a_refusal(data, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cdm")
    for table, columns in OMOP.items():
        if data.draw(st.integers(0, 15)) == 0:
            continue
        used = [column for column in columns if data.draw(st.integers(0, 25))]
        lines = [",".join(data.draw(st.permutations(used)))] if used else [""]
        for _ in range(data.draw(st.integers(0, 4))):
            spoilt = data.draw(st.integers(-1, 4 * len(columns)))
            cells = [_cell(column) for column in lines[0].split(",")]
            if 0 <= spoilt < len(cells):
                cells[spoilt] = data.draw(NASTY | TIMES).replace("\n", " ").replace('"', "'").replace(",", ";")
            lines.append(",".join(cells))
        coding, newline = data.draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "latin-1"])), "\r\n"
        content = newline.join(lines).encode(coding, errors="replace")
        if data.draw(st.integers(0, 20)) == 0:
            content = content[: len(content) // 2] + b"\0" + content[len(content) // 2 :]
        (folder / data.draw(st.sampled_from([f"{table}.csv", f"{table.upper()}.CSV"]))).write_bytes(content)
    imported_or_refused(folder, folder / "home", format="omop", mapping="omop")


GOOD = {"name": "x", "title": "X", "format": "meds", "rules": [{"code": "A", "kind": "ADMISSION"}]}
SCALARS = st.none() | st.booleans() | st.integers(-3, 30) | st.floats(allow_nan=True) | st.text(max_size=6) | NASTY
KEYS = st.sampled_from([*SiteMapping.model_fields, "other"])
RULE_KEYS = st.sampled_from(["code", "kind", "item", "unit", "reason", "else"])
RULES = st.lists(st.dictionaries(RULE_KEYS, SCALARS | st.sampled_from(["(?P<item>.*)", "(", "LAB_RESULT"])), max_size=3)
VALUES = st.recursive(
    SCALARS, lambda deeper: st.lists(deeper, max_size=3) | st.dictionaries(st.text(max_size=4), deeper)
)


@FUZZ
@given(content=st.dictionaries(KEYS, VALUES | RULES, max_size=8))
def test_any_mapping_is_read_or_refused_naming_the_file(content, tmp_path_factory):
    path = tmp_path_factory.mktemp("mapping") / "site.yaml"
    path.write_text(yaml.safe_dump({**GOOD, **content}), encoding="utf-8")
    assert "site.yaml" in (refusal_of(path) or "site.yaml")


def refusal_of(path):
    try:
        load_mapping(path)
    except MappingError as refusal:
        return str(refusal)
    return ""


@FUZZ
@given(content=st.binary(max_size=200) | st.text(max_size=120).map(str.encode))
def test_any_bytes_as_a_mapping_are_refused_naming_the_file(content, tmp_path_factory):
    path = tmp_path_factory.mktemp("mapping") / "site.yaml"
    path.write_bytes(content)
    with pytest.raises(MappingError, match=r"site\.yaml"):
        load_mapping(path)
