"""Compiled figures of a series against NumPy, to the last bit, and matrices against their entries one by one."""

import itertools
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.cohort.feature_layout import Entries, Layout
from core.cohort.feature_loops import _sort, mean_and_slope, series_rows


def with_numpy(value, time, first, end):
    """Mean and slope as sums of NumPy, which adds the first number to the sum of the others."""

    def total(values):
        return np.add.reduceat(values, [0])[0]

    values = value[first:end]
    mean = total(values) / len(values)
    days = (time[first:end] - time[first]) / 86400.0
    days -= total(days) / len(values)
    spread = total(days * days)
    return mean, total(days * (values - mean)) / spread if spread > 0 else np.nan


@pytest.mark.parametrize("n", [1, 2, 3, 8, 9, 10, 17, 128, 129, 130, 137, 1000])
def test_sums_round_as_numpy_rounds(n):
    # Features are part of the content hash: one bit would make the same import another snapshot.
    rng = np.random.default_rng(n)
    value, time = rng.normal(size=n + 3) * 10.0 ** rng.integers(-3, 4, n + 3), np.sort(rng.integers(0, 10**6, n + 3))
    found = mean_and_slope(value, time, 2, n + 2, np.empty((2, n + 3)))
    np.testing.assert_array_equal(found, with_numpy(value, time, 2, n + 2))


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 10**6), st.floats(-1e3, 1e3)), min_size=1, max_size=12),
    st.integers(0, 12),
    st.integers(0, 12),
)
def test_figures_of_a_range_agree_with_computing_them_one_by_one(found, a, b):
    found.sort()
    time = np.array([each[0] for each in found]) + 4_000_000_000
    value = np.array([each[1] for each in found])
    first, end = min(a, b, len(found)), min(max(a, b), len(found))
    mean, slope = mean_and_slope(value, time, first, end, np.empty((2, len(value))))
    part, days = value[first:end], time[first:end] / 86400
    if len(part):
        assert mean == pytest.approx(part.mean(), abs=1e-9)
    else:
        assert np.isnan([mean, slope]).all()
    if len(set(days)) > 1:
        centred = days - days.mean()
        expected = (centred * part).sum() / (centred**2).sum()
        assert slope == pytest.approx(expected, rel=1e-6, abs=1e-6 * max(1, np.abs(part).max() / np.ptp(days)))
    else:
        assert np.isnan(slope)


def test_slopes_do_not_depend_on_the_century():
    value, time, work = np.array([1.0, 2.0, 4.0]), np.array([0, 60, 120]), np.empty((2, 3))
    early = mean_and_slope(value, time, 0, 3, work)
    assert early == mean_and_slope(value, time + 6_000_000_000, 0, 3, work)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 2)), max_size=40))
def test_every_event_with_a_role_is_in_the_series_of_its_patient_and_item(events):
    events.sort(key=lambda each: each[0])
    patient, item, role = np.array(events, dtype=np.int64).reshape(-1, 3).T.copy()
    rows, starts = series_rows(patient, item, role.astype(np.int8), 5)
    found = [rows[a:b].tolist() for a, b in itertools.pairwise(starts)]
    expected: dict[tuple[int, int], list[int]] = {}
    for row in np.lexsort([np.arange(len(item)), item, patient]).tolist():
        if role[row]:
            expected.setdefault((patient[row], item[row]), []).append(row)
    assert found == list(expected.values())


@pytest.mark.parametrize("n_times", [3, 50, 10**6])
@pytest.mark.parametrize("n", [0, 1, 30, 300])
def test_rows_are_sorted_by_time_and_equal_times_stay_as_they_are(n, n_times):
    rng = np.random.default_rng(n)
    when, rows = rng.integers(0, n_times, 400), rng.permutation(400)
    for begin in (when, np.sort(when), np.sort(when)[::-1].copy()):
        found = rows.copy()
        _sort(found, n, begin)
        expected = rows[:n][np.argsort(begin[rows[:n]], kind="stable")]
        np.testing.assert_array_equal(found, np.concatenate([expected, rows[n:]]))


def test_a_long_series_against_the_order_of_time_is_sorted_in_no_time():
    # Moved row by row, as many would take over a minute of the processor.
    n = 500_000
    rows = np.arange(n)
    _sort(rows[:1].copy(), 1, rows)
    begun = process_time()
    _sort(rows, n, np.arange(n)[::-1].copy())
    assert process_time() - begun < 20
    np.testing.assert_array_equal(rows, np.arange(n)[::-1])


def test_a_matrix_holds_what_was_stored_in_the_order_of_its_columns():
    layout = Layout(["a", "b"], ["a", "b"], ["", ""])
    entries, rows, items = Entries(layout), np.array([1, 0, 1]), np.array([0, 1, 1])
    entries.flag("MEDICATION course", "ever", rows, items, np.array([2, 0, 3]))
    entries.value("LAB_ORDER value", "change", rows, items, np.array([0.0, 5.0, np.inf]))
    matrix = entries.matrix(3)
    change, ever = layout.column("LAB_ORDER value", "change"), layout.column("MEDICATION course", "ever")
    assert matrix.indices.tolist() == [change + 1, change, ever, ever + 1]
    assert matrix.data.tolist() == [5.0, 0.0, 2.0, 3.0]
    assert matrix.indptr.tolist() == [0, 1, 4, 4]
