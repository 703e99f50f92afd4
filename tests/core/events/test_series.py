"""Figures of series of events against computing each of them alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from core.events.series import SeriesSet, distinct, lexical_order, numbered, stable_argsort

events = st.lists(st.tuples(st.integers(0, 3), st.integers(-(10**10), 10**10)), max_size=30)


@given(events, st.integers(0, 3), st.integers(-(10**10), 10**10))
def test_before_counts_events_strictly_earlier(found, series, time):
    number = np.array([each[0] for each in found], dtype=np.int64)
    times = np.array([each[1] for each in found], dtype=np.int64)
    kept = SeriesSet(number, times, 4)
    here = np.array([series])
    n = int((kept.before(here, np.array([time])) - kept.start(here))[0])
    assert n == sum(s == series and t < time for s, t in found)


@given(st.lists(st.integers(-3, 3), max_size=60))
def test_equal_keys_keep_their_order(keys):
    key = np.array(keys, dtype=np.int64)
    np.testing.assert_array_equal(stable_argsort(key), np.argsort(key, kind="stable"))


@given(st.lists(st.integers(-3, 3), max_size=60))
def test_distinct_values_are_those_of_numpy(values):
    np.testing.assert_array_equal(
        distinct(np.array(values, dtype=np.int64)), np.unique(np.array(values, dtype=np.int64))
    )


LARGEST = np.iinfo(np.int64).max
FLOATS = (np.nan, -0.0, 0.0, -1.5, 2.0, np.inf, -np.inf)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.sampled_from([-LARGEST - 1, -5, 0, LARGEST]),
            st.sampled_from([-LARGEST - 1, -(10**12), 0, 10**9, 10**17, 10**17 + 1]),
            st.sampled_from(FLOATS),
            st.integers(-(2**61), 2**61),
            st.integers(0, 1),
        ),
        max_size=40,
    )
)
def test_the_lexical_order_is_that_of_numpy(rows):
    columns = [np.array(column) for column in zip(*rows, strict=True)] or [np.zeros(0, dtype=np.int64)]
    for n in range(1, len(columns) + 1):
        np.testing.assert_array_equal(lexical_order(*columns[:n]), np.lexsort(columns[:n][::-1]))


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(-(2**63), 2**63 - 1)), max_size=30))
def test_rows_are_numbered_as_numpy_does(rows):
    columns = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    _, number = np.unique(columns, axis=1, return_inverse=True)
    assert numbered(*columns).tolist() == number.reshape(-1).tolist()
