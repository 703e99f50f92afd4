"""One lying record changes nothing for other patients, is named, and is not believed; in every format."""

import functools
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from alertreview.records.importing import build_cohort
from core.events.plausibility import Severity
from tests.support.lying_records import FORMATS, N_DAYS, N_INSTANCES, N_PATIENTS, Act, at_time, hospital, without, write


def imported(acts, source_format, folder):
    return build_cohort(write(acts, source_format, folder), format=source_format, min_positive=1)


@functools.cache
def believed(source_format):
    """Return the cohort of the hospital that does not lie."""
    with tempfile.TemporaryDirectory() as folder:
        return imported(hospital(), source_format, Path(folder) / "plain")[0]


def raised(report):
    return {check.name: check.count for check in report.checks if check.severity is Severity.RED}


def of_others(cohort, *patients):
    """Instances, decisions and features of all patients but some, by name."""
    ids = cohort.instances["patient_id"]
    keep = ~ids.str.lstrip("P").astype("int").isin(patients).to_numpy()
    decisions = pd.DataFrame(cohort.decisions.toarray()[keep], columns=list(cohort.tasks["task_key"]))
    features = pd.DataFrame(cohort.features.toarray()[keep], columns=list(cohort.feature_dictionary["name"]))
    columns = ["patient_id", "snapshot_at", "day_of_stay"]
    return cohort.instances.loc[keep, columns].reset_index(drop=True), decisions, features


def assert_others_unchanged(cohort, plain, *patients):
    for mine, theirs in zip(of_others(cohort, *patients), of_others(plain, *patients), strict=True):
        shared = [name for name in theirs.columns if name in mine.columns]
        pd.testing.assert_frame_equal(mine[shared], theirs[shared])


SENTINELS = ("1899-12-30 00:00", "2099-12-31 00:00", "2262-04-11 23:47:16", "9999-12-31 23:59:59")
FAR = ("1923-05-07 10:00", "2071-05-07 10:00")


@pytest.mark.parametrize("source_format", FORMATS)
def test_the_hospital_that_does_not_lie_raises_nothing(source_format, tmp_path):
    cohort, report = imported(hospital(), source_format, tmp_path)
    assert len(cohort.instances) == N_INSTANCES
    assert raised(report) == {}


@pytest.mark.parametrize("source_format", FORMATS)
@pytest.mark.parametrize("times", [SENTINELS[:2], SENTINELS[2:], FAR])
def test_a_date_that_cannot_be_makes_no_stay(source_format, times, tmp_path):
    """Patients 3 and 4 are said to be admitted then, patients 5 and 6 discharged."""
    acts = hospital()
    for place, time in enumerate(times):
        acts = at_time(at_time(acts, 3 + place, "admit", time), 5 + place, "discharge", time)
    cohort, report = imported(acts, source_format, tmp_path / "lying")
    n_days = cohort.instances["patient_id"].str.lstrip("P").astype("int").value_counts()
    assert not {3, 4} & {*n_days.index}
    assert {n_days.get(5, 0), n_days.get(6, 0)} <= {N_DAYS - 1, N_DAYS, 0}
    found = raised(report)
    assert sum(found.get(check, 0) for check in ("sentinel_dates", "far_dates", "reversed_stays", "open_stays")) >= 4
    assert_others_unchanged(cohort, believed(source_format), 3, 4, 5, 6)


@pytest.mark.parametrize("source_format", FORMATS)
@pytest.mark.parametrize("shifted", [False, True])
def test_an_open_stay_ends_with_its_own_patients_last_event(source_format, shifted, tmp_path):
    def starts(i):
        return f"{2080 - 11 * (i % 5) if shifted else 2026}-0{1 + i % 3}-0{1 + i % 9}"

    acts, patients = hospital(starts), (0, 3, 13)
    for patient in patients:
        acts = without(acts, patient, "discharge")
    cohort, report = imported(acts, source_format, tmp_path)
    for patient in patients:
        mine = cohort.instances[cohort.instances["patient_id"].str.lstrip("P").astype("int") == patient]
        last = max(pd.Timestamp(act.time) for act in acts if act.patient == patient)
        assert mine["snapshot_at"].max() <= last
        assert len(mine) >= N_DAYS - 1
    assert len(cohort.instances) >= N_INSTANCES - len(patients)
    assert raised(report)["open_stays"] == len(patients)


@pytest.mark.parametrize("source_format", ["csv", "meds"])
@pytest.mark.parametrize(("what", "time"), [("discharge", "2026-01-01 10:00"), ("admit", "2026-01-06 10:00")])
def test_a_stay_that_ends_when_it_begins_is_doubted_if_its_patient_stays(source_format, what, time, tmp_path):
    acts = at_time(hospital(), 0, what, time)
    acts += [Act(99, day, each) for day, each in (("2026-01-02 10:00", "admit"), ("2026-01-02 10:00", "discharge"))]
    _, report = imported(acts, source_format, tmp_path)
    assert report.stays.n_zero_length == 2
    assert next(each.count for each in report.checks if each.name == "emptied_stays") == 1


@pytest.mark.parametrize("source_format", ["csv", "meds", "fhir"])
def test_results_that_say_nothing_are_counted(source_format, tmp_path):
    acts = [replace(act, value="") if act.patient < 4 else act for act in hospital()]
    _, report = imported(acts, source_format, tmp_path)
    found = next(each.count for each in report.checks if each.name == "empty_results")
    assert found == sum(act.what == "result" and not act.value for act in acts)


@pytest.mark.parametrize("source_format", FORMATS)
@pytest.mark.parametrize("time", ["2026-01-01 06:00", "2025-12-24 10:00"])
def test_a_reversed_stay_is_left_out_and_counted(source_format, time, tmp_path):
    cohort, report = imported(at_time(hospital(), 0, "discharge", time), source_format, tmp_path)
    assert len(cohort.instances) == N_INSTANCES - N_DAYS
    assert report.stays.n_reversed == 1
    assert raised(report)["reversed_stays"] == 1


DEATHS = ((" 09:00", 3), (" 07:00", 2), ("", 3))
"""When on the fourth day somebody died, and how many mornings that leaves."""


@pytest.mark.parametrize("source_format", FORMATS)
@pytest.mark.parametrize("discharged", [True, False])
def test_death_ends_a_stay(source_format, discharged, tmp_path):
    acts = hospital()
    for patient, (clock, _) in enumerate(DEATHS):
        acts.append(Act(patient, f"2026-01-{4 + patient:02d}{clock}", "death"))
        acts = acts if discharged else without(acts, patient, "discharge")
    cohort, report = imported(acts, source_format, tmp_path)
    n_days = cohort.instances["patient_id"].str.lstrip("P").astype("int").value_counts().sort_index()
    assert n_days.tolist() == [*(n for _, n in DEATHS), *[N_DAYS] * (N_PATIENTS - len(DEATHS))]
    assert raised(report)["events_after_death"] > 0


@pytest.mark.parametrize("source_format", FORMATS)
def test_a_death_on_a_sentinel_date_is_no_death(source_format, tmp_path):
    cohort, report = imported([*hospital(), Act(0, "1900-01-01", "death")], source_format, tmp_path)
    assert len(cohort.instances) == N_INSTANCES
    assert raised(report)["sentinel_dates"] == 1
    assert cohort.patients["death_time"].isna().all()


@pytest.mark.parametrize("source_format", FORMATS)
def test_a_calendar_shifted_onto_a_sentinel_date_is_believed(source_format, tmp_path):
    acts = hospital(lambda i: "2099-12-29")
    cohort, _ = imported(acts, source_format, tmp_path)
    assert len(cohort.instances) == N_INSTANCES


def test_one_sentinel_one_missing_and_one_reversed_among_two_hundred_leave_the_others_alone(tmp_path):
    acts = hospital(lambda i: str((pd.Timestamp("2026-01-01") + pd.Timedelta(days=i % 90)).date()), n=200)
    plain, report = imported(acts, "csv", tmp_path / "plain")
    assert raised(report) == {}
    lying = without(at_time(acts, 7, "discharge", "9999-12-31 00:00"), 50, "discharge")
    lying = at_time(lying, 120, "discharge", "2025-11-30 10:00")
    cohort, report = imported(lying, "csv", tmp_path / "lying")
    assert {"sentinel_dates": 1, "open_stays": 2, "reversed_stays": 1}.items() <= raised(report).items()
    keep = ~cohort.instances["patient_id"].isin(["P007", "P050", "P120"]).to_numpy()
    theirs = ~plain.instances["patient_id"].isin(["P007", "P050", "P120"]).to_numpy()
    np.testing.assert_array_equal(cohort.decisions.toarray()[keep], plain.decisions.toarray()[theirs])
    assert cohort.instances["snapshot_at"][keep].tolist() == plain.instances["snapshot_at"][theirs].tolist()


def test_a_doubted_row_is_named_by_file_and_line(tmp_path):
    acts = at_time(hospital(), 3, "discharge", "9999-12-31 00:00")
    row = next(i for i, act in enumerate(acts) if act.time.startswith("9999")) + 2
    _, report = imported(acts, "csv", tmp_path)
    check = next(check for check in report.checks if check.name == "sentinel_dates")
    assert check.examples == (f"records.csv, row {row}",)
    assert not any("9999" in example for example in check.examples)


def test_events_after_the_day_of_the_import_are_counted(tmp_path):
    tomorrow = str(pd.Timestamp.now().date() + pd.Timedelta(days=3)) + " 10:00"
    acts = [*hospital(), replace(Act(0, tomorrow, "result"), item="Potassium", value="4.0", unit="mmol/L")]
    _, report = imported(acts, "csv", tmp_path)
    check = next(check for check in report.checks if check.name == "future_events")
    assert (check.count, check.severity) == (1, Severity.RED)
