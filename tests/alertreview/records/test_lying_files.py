"""Small files that lied to an import once: what each has to come to, from files outside the repository."""

import pytest

from alertreview.records.importing import build_cohort
from core.errors import SourceError
from core.events.plausibility import Severity

RIGHT = {"Potassium", "Creatinine", "Heparin"}


def imported(path):
    source_format = "meds" if (path / "data").is_dir() else "csv"
    return build_cohort(path, format=source_format, min_positive=1)


def raised(report, severity):
    return {check.name for check in report.checks if check.severity is severity}


def test_the_folder_holds_no_case_without_a_test(lying_files):
    told = {name for test in (LYING, SPELLED) for name in test} | {"doubled_column", "two_orders_at_once.csv"}
    assert {path.name for path in lying_files.iterdir()} - {"README.md"} <= told


LYING = {
    "no_discharge_shifted.csv": ({68, 69, 70}, "open_stays"),
    "discharge_before_admission.csv": ({65}, "reversed_stays"),
    "died_without_discharge_shifted.csv": ({66, 67, 68, 69, 70}, "open_stays"),
    "discharge_in_2099.csv": ({68, 69, 70}, "sentinel_dates"),
    "admission_in_1900.csv": ({65, 69, 70}, "sentinel_dates"),
}
"""Files with a time that cannot be: instances, and the check that is red."""


@pytest.mark.parametrize("name", LYING)
def test_a_time_that_cannot_be_moves_no_other_patient_and_is_red(lying_files, name):
    n_instances, check = LYING[name]
    cohort, report = imported(lying_files / name)
    assert len(cohort.instances) in n_instances
    assert cohort.instances["patient_id"].value_counts().max() <= 5
    assert check in raised(report, Severity.RED)
    assert len(cohort.patients) == 14


SPELLED = {
    "postgresql_times.csv": (RIGHT, {"foreign_zones"}),
    "unit_in_its_column.csv": (RIGHT, set()),
    "cancelled_orders.csv": (RIGHT, set()),
    "doses_only.csv": (RIGHT, set()),
    "doses_and_one_order.csv": (RIGHT, {"stray_orders"}),
    "two_micro_signs.csv": (RIGHT, {"respelled"}),
    "composed_and_decomposed_names.csv": ({"Potassium", "Cr\u00e9atinine", "Heparin"}, {"respelled"}),
    "id_with_trailing_blank.csv": (RIGHT, {"respelled"}),
    "decimal_commas.csv": (RIGHT, {"respelled"}),
    "two_empty_columns.csv": (RIGHT, set()),
    "unread": (RIGHT, set()),
    "one_code_two_kinds": ({"50971", "Creatinine", "Heparin sodium"}, {"unnamed_tasks"}),
}
"""Files that are right once they are read right: tasks, and the checks that are yellow."""


@pytest.mark.parametrize("name", SPELLED)
def test_a_file_in_another_spelling_is_read_whole(lying_files, name):
    tasks, doubts = SPELLED[name]
    cohort, report = imported(lying_files / name)
    assert (len(cohort.instances), len(cohort.patients)) == (70, 14)
    assert set(cohort.tasks["name"]) == tasks
    results = cohort.events[cohort.events["kind"] == "LAB_RESULT"]
    assert (len(results), results["value"].notna().sum()) == (100, 100)
    assert not report.read.unit_conflicts
    assert (raised(report, Severity.RED), raised(report, Severity.YELLOW)) == (set(), doubts)


def test_two_orders_stopped_in_one_minute_are_both_over(lying_files):
    cohort, _ = imported(lying_files / "two_orders_at_once.csv")
    column = list(cohort.feature_dictionary["name"]).index("Heparin, on now")
    states = cohort.features.toarray()[:, column].reshape(4, 5)
    assert states.tolist() == [[1, 0, 0, 0, 0]] * 4


def test_a_doubled_column_is_refused_with_file_and_column(lying_files):
    with pytest.raises(SourceError, match=r"0\.parquet: the column 'numeric_value' appears twice"):
        imported(lying_files / "doubled_column")
