"""Random damage to a source is read, counted or refused; it never ends in a trace, nor in another cohort unnoticed."""

import csv
from dataclasses import asdict

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alertreview.records.importing import build_cohort
from core.errors import AlertReviewError
from core.events.plausibility import Severity
from tests.support.lying_records import hospital, write

JUNK = [
    *("", " ", "now", "NaT", "null", "-", "//", "µ", "🦠", "DISCHARGE", "4,8", "1,234", "≤5", "1e400", "A" * 3000),
    *("9999-12-31", "1900-01-01 00:00", "2262-04-11 23:47:16+00", "0001-01-01", "99999-01-01", "2026-13-45"),
    *("\ufeffP001", "P001\u00a0", "LAB//CANCELLED//Potassium", "'; DROP TABLE x; --"),
    *("-9223372036854775808", "18446744073709551616"),
]
DAMAGE = st.lists(
    st.tuples(
        st.integers(0, 10_000), st.integers(0, 20), st.sampled_from(JUNK), st.sampled_from(["cell", "twice", "gone"])
    ),
    min_size=1,
    max_size=6,
)
ACTS = hospital(n=4)


def damaged(rows, damage):
    """Change cells, repeat rows and leave rows out."""
    out = [list(row) for row in rows]
    for row, column, junk, what in damage:
        i = row % len(out)
        if what == "cell":
            out[i][column % len(out[i])] = junk
        elif what == "twice":
            out.insert(i, list(out[i]))
        elif len(out) > 1:
            del out[i]
    return out


def noticed(report, plain):
    """Whether the report says that something was odd or left out that was not in the plain source."""
    return (
        any(check.severity is not Severity.OK or check.count for check in report.checks)
        or report.read.dropped != plain.read.dropped
        or report.read.n_duplicate_rows > plain.read.n_duplicate_rows
        or report.read.n_rows != plain.read.n_rows
        or report.n_patients != plain.n_patients
        or asdict(report.stays) != asdict(plain.stays)
    )


def assert_settled(path, source_format, plain):
    try:
        cohort, report = build_cohort(path, format=source_format, min_positive=1)
    except AlertReviewError:
        return
    assert len(cohort.instances) == len(plain[0].instances) or noticed(report, plain[1])


@pytest.fixture(scope="module", params=["csv", "omop", "meds"])
def source(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    path = write(ACTS, request.param, folder)
    return path, request.param, build_cohort(path, format=request.param, min_positive=1)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=DAMAGE, table=st.sampled_from(["visit_occurrence", "measurement", "drug_exposure", "person"]))
def test_damage_is_read_counted_or_refused(source, tmp_path_factory, damage, table):
    _, source_format, plain = source
    folder = tmp_path_factory.mktemp("damaged")
    target = write(ACTS, source_format, folder)
    if source_format == "meds":
        file = target / "data" / "0.parquet"
        rows = pq.read_table(file).to_pylist()
        codes = damaged([[row["code"]] for row in rows], [each for each in damage if each[3] == "cell"])
        timeless = {row % len(rows) for row, _, _, what in damage if what == "gone"}
        times = [None if i in timeless else row["time"] for i, row in enumerate(rows)]
        changed = pa.table(
            {
                "subject_id": pa.array([row["subject_id"] for row in rows], pa.int64()),
                "time": pa.array(times, pa.timestamp("us")),
                "code": [code for (code,) in codes],
                "numeric_value": pa.array([row["numeric_value"] for row in rows], pa.float32()),
            }
        )
        pq.write_table(changed, file)
    else:
        file = target if source_format == "csv" else target / f"{table}.csv"
        with file.open(newline="", encoding="utf-8") as lines:
            header, *rows = csv.reader(lines)
        if not rows:
            return
        with file.open("w", newline="", encoding="utf-8") as lines:
            csv.writer(lines).writerows([header, *damaged(rows, damage)])
    assert_settled(target, source_format, plain)
