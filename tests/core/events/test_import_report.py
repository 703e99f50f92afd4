"""The report of an import says every count, in the terminal as in HTML."""

import json
from dataclasses import replace

import pytest

from core.errors import InvalidInputError
from core.events.import_report import (
    Dropped,
    ImportReport,
    KindCount,
    OutsideStays,
    ReadCounts,
    StayCounts,
    UnitConflict,
)
from core.events.plausibility import Finding, Severity, judged
from tests.support.records import counted

REPORT = ImportReport(
    source="ward <b>",
    format="meds",
    mapping="test",
    n_patients=3,
    n_events=90,
    read=ReadCounts(
        n_rows=1234,
        kinds=(KindCount("LAB_RESULT", 1000, 12, 11, 10),),
        dropped=(Dropped("billing code", 200, 2, (("BILL//<script>", 150), ("BILL//2", 50))),),
        n_duplicate_rows=34,
        n_duplicates_dropped=4,
        n_items_with_several_unit_codes=2,
        unit_conflicts=(UnitConflict("G", "Glucose", "mg/dL", 80, (("mmol/L", 20),)),),
        n_sentinels=5,
        implausible=(("Potassium", 7),),
        remarks=("A remark.",),
    ),
    stays=StayCounts(n_stays=9, n_open=1, n_unpaired_admissions=2),
    n_instances=40,
    n_cut_windows=8,
    n_features=99,
    n_tasks={"LAB_ORDER": 5, "MEDICATION": 6},
    min_positive={"LAB_ORDER": 20, "MEDICATION": 20},
    outside_stays=(OutsideStays("LAB_RESULT", 1000, 270),),
    share_midnight=0.025,
    warnings=("Beware.",),
)


def test_every_count_that_is_not_zero_is_printed():
    text = "\n".join(REPORT.lines())
    for part in (
        "1,234",
        "40 at 08:00 (8 with a cut window)",
        "9 (1 open)",
        "5 with at least 20",
        "1,000 rows, 10 items, 12 codes",
        "200 rows of 2 codes",
        "34 rows, of which 4",
        "Glucose",
        "80 in mg/dL, 20 in mmol/L",
        "Potassium (7)",
        "270 of 1,000 (27%)",
        "2.5%",
        "Beware.",
        "A remark.",
        "admissions without a discharge",
    ):
        assert part in text
    assert "converted" not in text


def test_one_is_counted_in_the_singular():
    kind = KindCount("SEX", 1, 1, 1, 1)
    text = "\n".join(replace(REPORT, read=replace(REPORT.read, kinds=(kind,))).lines())
    assert "1 row, 1 item, 1 code" in text


def test_html_is_escaped_and_says_the_same_as_the_terminal():
    page = REPORT.to_html()
    assert "<script>" not in page
    assert "ward &lt;b&gt;" in page
    assert "1,000 rows, 10 items, 12 codes" in page


def test_the_dictionary_is_ready_for_json():
    content = json.loads(json.dumps(REPORT.to_dict()))
    assert content["n_recognised"] == 1000
    assert content["read"]["unit_conflicts"][0]["main_unit"] == "mg/dL"
    assert ImportReport.from_dict(content) == REPORT


def test_a_report_of_another_version_is_refused():
    content = REPORT.to_dict()
    del content["n_cut_windows"]
    with pytest.raises(InvalidInputError, match="Import the source again"):
        ImportReport.from_dict(content)


def test_no_label_is_a_raw_key():
    for _, rows in replace(REPORT, checks=(), warnings=()).sections():
        assert not [label for label, _ in rows if "_" in label or label.isupper()]


def test_a_kind_that_never_came_has_zeros():
    assert counted(REPORT, "LAB_RESULT").n_items == 10
    assert counted(REPORT, "ADMINISTRATION").n_rows == 0


def test_long_lists_are_cut_with_a_sign():
    many = tuple((f"C{i}", 1) for i in range(20))
    report = replace(REPORT, read=replace(REPORT.read, dropped=(Dropped("x", 20, 20, many),)))
    assert ", ..." in "\n".join(report.lines())


def test_simulated_sources_say_so():
    assert "simulated" in replace(REPORT, simulated=True).lines()[0]


def test_the_page_lists_every_check_with_its_bound_and_the_terminal_the_raised_ones():
    checks = judged([Finding("open_stays", 1, 10), Finding("unread_files", 2)], {})
    report = replace(REPORT, checks=checks)
    page, lines = report.to_html(), "\n".join(report.lines())
    for check in checks:
        assert f"{check.severity.value}: {check.name}<" in page
        assert (check.name in lines) is (check.severity is not Severity.OK)
    assert "1 of 10 stays have no discharge" in lines
    assert lines.count("Bound: 0") == 2
