"""From events to features, decisions and tasks: parts that belong together, and a hash of exactly what came in."""

import numpy as np
import pandas as pd
import pytest

from core.cohort.build import build, uneven_days
from core.cohort.cohort import About
from core.errors import MappingError
from tests.support.records import parts, site

ROWS = [
    (1, "2026-01-01 10:00", "IN"),
    (1, "2026-01-02 07:00", "LAB//K//mmol/L", 4.1),
    (1, "2026-01-02 09:00", "LAB//K//mmol/L", 4.3),
    (1, "2026-01-02 09:00", "LAB//Na//mmol/L", 140.0),
    (1, "2026-01-03 09:00", "START//Heparin"),
    (1, "2026-01-04 12:00", "OUT"),
]


def built(rows, mapping=None, **about):
    mapping = mapping or site()
    known = {"source": "test", "splits": {}, "simulated": False}
    return build(*parts(rows, mapping), mapping, About(**{**known, **about}), lambda what, share: None)


def test_rows_and_columns_of_the_parts_belong_together():
    cohort, report = built(ROWS, splits={"1": "train"})
    n, tasks = len(cohort.instances), len(cohort.tasks)
    assert cohort.features.shape == (n, len(cohort.feature_dictionary))
    share = cohort.features.getnnz(axis=0) / n
    np.testing.assert_array_equal(cohort.feature_dictionary["share_present"], share)
    assert (share > 0).all()
    assert cohort.decisions.shape == (n, tasks)
    assert (report.n_instances, report.n_tasks) == (n, {"LAB_ORDER": 2, "MEDICATION": 1})
    assert cohort.patients["source_split"].tolist() == ["train"]
    assert cohort.tasks["order_group"].tolist() == ["K", "K", ""]


def test_the_same_records_give_the_same_hash_in_any_order():
    assert built(ROWS)[0].content_hash == built(ROWS[::-1])[0].content_hash


@pytest.mark.parametrize(
    "change", [(1, "2026-01-02 07:00", "LAB//K//mmol/L", 4.2), (1, "2026-01-02 07:00", "LAB//Mg//mmol/L", 4.1)]
)
def test_any_other_record_gives_another_hash(change):
    assert built(ROWS)[0].content_hash != built([*ROWS, change])[0].content_hash


def test_another_mapping_gives_another_hash():
    assert built(ROWS)[0].content_hash != built(ROWS, site(snapshot_hour=7))[0].content_hash
    assert built(ROWS)[0].content_hash != built(ROWS, simulated=True)[0].content_hash


def test_a_source_without_any_morning_is_refused():
    with pytest.raises(MappingError) as caught:
        built([(1, "2026-01-01 10:00", "IN"), (1, "2026-01-01 12:00", "OUT"), (1, "2026-01-01 11:00", "LAB//K")])
    for part in ("'test'", "1 stays", "08:00", "snapshot_hour"):
        assert part in str(caught.value)


def test_no_task_is_a_warning_not_an_error():
    cohort, report = built(ROWS, site(min_positive=50))
    assert len(cohort.tasks) == 0
    assert any("50 positive instances" in warning for warning in report.warnings)


def test_times_that_are_all_midnight_are_warned_about():
    labs = [(1, f"2026-01-0{day}", "LAB//K") for day in range(2, 8)]
    _, report = built([(1, "2026-01-01", "IN"), *labs, (1, "2026-01-09", "OUT")])
    assert report.share_midnight == 1
    assert next(each.severity for each in report.checks if each.name == "midnight_times") == "red"


def test_events_outside_stays_before_birth_and_after_death_are_counted():
    rows = [
        *ROWS,
        (1, "2026-02-01", "LAB//K", 1.0),
        (1, "1940-01-01", "LAB//K", 1.0),
        (1, "1950-01-01", "BIRTH"),
        (1, "2026-01-20 10:00", "DEATH"),
    ]
    _, report = built(rows)
    (labs,) = [part for part in report.outside_stays if part.kind == "LAB_RESULT"]
    assert (labs.n_events, labs.n_outside) == (5, 2)
    assert (report.n_before_birth, report.n_after_death) == (1, 1)


def test_results_before_the_first_order_of_their_item_are_counted():
    rows = [*ROWS, (1, "2026-01-02 08:30", "ASK//K")]
    assert built(rows)[1].n_results_before_order == 1
    assert built(ROWS)[1].n_results_before_order == 0


def days_of(counts):
    """Snapshots of a hospital with so many instances on each day from the first of the year."""
    days = pd.Timestamp("2026-01-01 08:00") + pd.to_timedelta(np.repeat(np.arange(len(counts)), counts), "D")
    return pd.Series(days)


@pytest.mark.parametrize(
    ("changed", "n_usual", "expected"),
    [
        ({}, 20, []),
        ({30: 0, 31: 0}, 20, ["2026-01-31", "2026-02-01"]),
        ({30: 61}, 20, ["2026-01-31"]),
        ({30: 60, 31: 7}, 20, []),
        ({day: 12 for day in range(60) if day % 7 > 4}, 20, []),
        ({30: 0}, 9, []),
        ({1: 90, 58: 0}, 20, []),
    ],
)
def test_days_that_leap_out_of_the_weeks_around_are_counted(changed, n_usual, expected):
    counts = [changed.get(day, n_usual) for day in range(60)]
    found = uneven_days(days_of(counts))
    assert list(found.examples) == expected
    assert found.count == len(expected)
    slow = [
        day
        for day in range(14, 46)
        if np.median(counts[day - 7 : day + 8]) >= 10
        and not 1 / 3 <= counts[day] / np.median(counts[day - 7 : day + 8]) <= 3
    ]
    assert len(slow) == found.count
    assert found.n_of == (32 if n_usual >= 10 else 0)


def test_a_record_set_of_a_few_weeks_has_no_uneven_days():
    for n in (1, 5, 27, 28):
        assert (uneven_days(days_of([20] * n)).count, uneven_days(days_of([20] * n)).n_of) == (0, 0)
