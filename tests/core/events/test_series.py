"""Figures of series of events against computing each of them alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.events.series import SeriesSet, cross, distinct, range_statistics, ranges, stable_argsort

events = st.lists(st.tuples(st.integers(0, 3), st.integers(-(10**10), 10**10)), max_size=30)


@given(events, st.integers(0, 3), st.integers(-(10**10), 10**10))
def test_before_counts_events_strictly_earlier(found, series, time):
    number = np.array([each[0] for each in found], dtype=np.int64)
    times = np.array([each[1] for each in found], dtype=np.int64)
    kept = SeriesSet(number, times, 4)
    here = np.array([series])
    n = int((kept.before(here, np.array([time])) - kept.start(here))[0])
    assert n == sum(s == series and t < time for s, t in found)


@given(st.lists(st.integers(0, 3), max_size=6, unique=True), st.lists(st.integers(0, 3), max_size=10))
def test_every_series_meets_every_instance_of_its_patient(patients, of_instance):
    of_instance = sorted(of_instance)
    series, instance = cross(np.array(patients, dtype=np.int64), np.array(of_instance, dtype=np.int64))
    expected = [(s, i) for s, p in enumerate(patients) for i, q in enumerate(of_instance) if p == q]
    assert list(zip(series.tolist(), instance.tolist(), strict=True)) == expected


def test_ranges_of_length_zero_leave_no_trace():
    assert ranges(np.array([3, 9, 5]), np.array([2, 0, 1])).tolist() == [3, 4, 5]


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
    out = range_statistics(value, time, np.array([first, 0]), np.array([end, 0]))
    part, days = value[first:end], time[first:end] / 86400
    assert out.n.tolist() == [len(part), 0]
    assert np.isnan([out.mean[1], out.minimum[1], out.slope[1]]).all()
    if len(part):
        assert out.first[0] == part[0]
        assert (out.minimum[0], out.maximum[0]) == (part.min(), part.max())
        assert out.mean[0] == pytest.approx(part.mean(), abs=1e-9)
    if len(set(days)) > 1:
        centred = days - days.mean()
        slope = (centred * part).sum() / (centred**2).sum()
        assert out.slope[0] == pytest.approx(slope, rel=1e-6, abs=1e-6 * max(1, np.abs(part).max() / np.ptp(days)))
    elif len(part):
        assert np.isnan(out.slope[0])


def test_slopes_do_not_depend_on_the_century():
    value, time = np.array([1.0, 2.0, 4.0]), np.array([0, 60, 120])
    early = range_statistics(value, time, np.array([0]), np.array([3])).slope
    late = range_statistics(value, time + 6_000_000_000, np.array([0]), np.array([3])).slope
    assert early == late


def test_overlapping_ranges_do_not_disturb_each_other():
    value, time = np.arange(6.0), np.arange(6) * 3600
    out = range_statistics(value, time, np.array([0, 2, 1]), np.array([4, 6, 2]))
    assert out.mean.tolist() == [1.5, 3.5, 1.0]


@given(st.lists(st.integers(-3, 3), max_size=60))
def test_equal_keys_keep_their_order(keys):
    key = np.array(keys, dtype=np.int64)
    np.testing.assert_array_equal(stable_argsort(key), np.argsort(key, kind="stable"))


@given(st.lists(st.integers(-3, 3), max_size=60))
def test_distinct_values_are_those_of_numpy(values):
    np.testing.assert_array_equal(
        distinct(np.array(values, dtype=np.int64)), np.unique(np.array(values, dtype=np.int64))
    )
