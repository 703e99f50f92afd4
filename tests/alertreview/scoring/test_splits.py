"""Past and recent are parted by rules, and no patient stands on both sides where patients are parted."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alertreview.scoring.splits import LEARNED_FROM, LEFT_OUT, N_FOLDS, choose_split, fold_of_row, rows_of_fold
from core.errors import InvalidInputError
from core.vocabulary import Split


def instances(patients: list[int], days: list[int] | None = None) -> pd.DataFrame:
    days = days or [0] * len(patients)
    return pd.DataFrame(
        {
            "patient_id": [f"P{number}" for number in patients],
            "snapshot_at": pd.Timestamp("2026-01-01 08:00") + pd.to_timedelta(days, unit="D"),
        }
    )


def people(n: int, splits: list[str | None] | None = None) -> pd.DataFrame:
    return pd.DataFrame({"patient_id": [f"P{i}" for i in range(n)], "source_split": splits or [None] * n})


@pytest.mark.parametrize(("shifted", "expected"), [(True, Split.FOLDS), (False, Split.TIME)])
def test_auto_takes_time_only_where_the_calendar_is_true(shifted: bool, expected: Split) -> None:
    assert choose_split("auto", calendar_is_shifted=shifted) is expected


def test_a_split_by_time_is_refused_where_dates_mean_nothing() -> None:
    with pytest.raises(InvalidInputError, match=r"shifted.*--split folds"):
        choose_split("time", calendar_is_shifted=True)


@given(st.lists(st.integers(0, 30), min_size=20, max_size=80).filter(lambda drawn: len(set(drawn)) >= N_FOLDS))
def test_in_folds_every_instance_is_scored_once_against_other_patients(drawn: list[int]) -> None:
    frame = instances(drawn)
    folds = fold_of_row(Split.FOLDS, frame, people(31), seed=3)
    scored = np.concatenate([rows_of_fold(folds, fold)[1] for fold in range(N_FOLDS)])
    assert sorted(scored) == list(range(len(drawn)))
    for fold in range(N_FOLDS):
        past, recent = rows_of_fold(folds, fold)
        assert not set(frame["patient_id"].iloc[past]) & set(frame["patient_id"].iloc[recent])


@given(st.lists(st.integers(0, 30), min_size=20, max_size=80).filter(lambda drawn: len(set(drawn)) >= N_FOLDS))
def test_by_patient_nobody_stands_on_both_sides(drawn: list[int]) -> None:
    frame = instances(drawn)
    past, recent = rows_of_fold(fold_of_row(Split.PATIENT, frame, people(31), seed=3), 0)
    assert len(past)
    assert len(recent)
    assert not set(frame["patient_id"].iloc[past]) & set(frame["patient_id"].iloc[recent])


def test_by_time_the_last_fifth_of_the_days_is_recent() -> None:
    folds = fold_of_row(Split.TIME, instances([1] * 10, list(range(10))), people(2), seed=0)
    assert folds.tolist() == [LEARNED_FROM] * 8 + [0, 0]


def test_by_time_a_named_day_is_the_first_recent_one() -> None:
    frame = instances([1] * 10, list(range(10)))
    folds = fold_of_row(Split.TIME, frame, people(2), since=pd.Timestamp("2026-01-04"), seed=0)
    assert folds.tolist() == [LEARNED_FROM] * 3 + [0] * 7


def test_the_sources_own_split_learns_from_train_and_leaves_out_who_has_none() -> None:
    folds = fold_of_row(Split.SOURCE, instances([0, 1, 2, 3]), people(4, ["train", "held_out", "tuning", None]), seed=0)
    assert folds.tolist() == [LEARNED_FROM, 0, 0, LEFT_OUT]


@pytest.mark.parametrize(
    ("split", "since", "message"),
    [
        (Split.SOURCE, None, "without subject splits"),
        (Split.FOLDS, pd.Timestamp("2026-01-02"), "belongs to the split by time"),
        (Split.TIME, pd.Timestamp("2027-01-01"), "0 to score"),
        (Split.TIME, pd.Timestamp("2020-01-01"), "0 instances to learn from"),
        (Split.FOLDS, None, "at least 5 patients"),
    ],
)
def test_a_split_that_leaves_nothing_says_so(split: Split, since: pd.Timestamp | None, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        fold_of_row(split, instances([0, 1, 2, 3], [0, 1, 2, 3]), people(4), since=since, seed=0)


def test_the_same_seed_parts_the_same_way_whatever_the_order_of_rows() -> None:
    frame = instances(list(range(20)))
    shuffled = frame.sample(frac=1, random_state=1)
    first = dict(zip(frame["patient_id"], fold_of_row(Split.FOLDS, frame, people(20), seed=5), strict=True))
    second = dict(zip(shuffled["patient_id"], fold_of_row(Split.FOLDS, shuffled, people(20), seed=5), strict=True))
    assert first == second
