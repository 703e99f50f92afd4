"""Each stop ends one order; equal rows are one order, or as many as the stops say; and a slow road agrees."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.events.orders import settle_orders, stops_of

HOUR = 3600


def slow_stops(series, time, is_start):
    """Walk through each series with a queue."""
    out = [-1] * len(series)
    for number in set(series):
        rows = sorted(
            (i for i in range(len(series)) if series[i] == number), key=lambda i: (time[i], not is_start[i], i)
        )
        waiting = []
        for i in rows:
            if is_start[i]:
                waiting.append(i)
            elif waiting:
                first = waiting.pop(0)
                out[first], out[i] = i, first
    return out


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 6), st.booleans()), max_size=25))
def test_a_queue_gives_the_same_pairs(events):
    series, time = (np.array([event[i] for event in events], dtype=np.int64) for i in (0, 1))
    is_start = np.array([event[2] for event in events], dtype=bool)
    assert stops_of(series, time, is_start).tolist() == slow_stops(series.tolist(), time.tolist(), is_start.tolist())


def on(rows, at, order=None):
    """Count the orders of rows (time in hours, "start" or "stop") that are on at a time."""
    time = np.array([row[0] for row in rows], dtype=np.int64) * HOUR
    is_start = np.array([row[1] == "start" for row in rows], dtype=bool)
    names = [(*row, order[i] if order else 0) for i, row in enumerate(rows)]
    row = np.array([sorted(set(names)).index(name) for name in names], dtype=np.int64)
    order = np.array(order or [0] * len(rows), dtype=np.int64)
    found = settle_orders(np.zeros(len(rows), dtype=np.int64), time, is_start, order, row, row < 0)
    begins = is_start[found.rows]
    partner = stops_of(np.zeros(len(begins), dtype=np.int64), found.time, begins)
    until = np.where(partner >= 0, found.time[np.maximum(partner, 0)], 10**9)
    return int((begins & (found.time < at * HOUR) & (at * HOUR <= until)).sum())


A, B = (1, "start"), (2, "start")


@pytest.mark.parametrize(
    ("rows", "at", "n"),
    [
        ([A, B, (9, "stop"), (9, "stop")], 10, 0),
        ([A, B, (9, "stop"), (9, "stop")], 8, 2),
        ([A, B, (9, "stop")], 10, 1),
        ([A, A, (5, "stop"), (9, "stop")], 7, 1),
        ([A, A, (9, "stop")], 10, 0),
        ([A, A, B, B, (9, "stop"), (9, "stop")], 10, 1),
        ([A, A, (5, "start"), (5, "start"), (3, "stop"), (7, "stop")], 10, 0),
        ([A, (5, "start"), (5, "stop")], 7, 1),
        ([A, (5, "stop"), (6, "stop"), (7, "start")], 8, 1),
    ],
)
def test_equal_rows_without_a_name_are_as_many_orders_as_the_stops_say(rows, at, n):
    assert on(rows, at) == n
    assert on(rows[::-1], at) == n


def test_rows_that_name_their_order_are_paired_by_it():
    rows = [A, A, (5, "stop"), (9, "stop")]
    assert on(rows, 7, [1, 2, 1, 2]) == 1
    assert on([*rows, *rows], 7, [1, 2, 1, 2] * 2) == 1
    # The stop stands before the start: the order was never on.
    assert on([(5, "start"), (3, "stop")], 6, [1, 1]) == 0


@pytest.mark.parametrize(("at", "n"), [(2.5, 2), (4, 0), (6, 1), (10, 0)])
def test_a_stop_ends_all_that_was_begun_under_its_name_since_the_stop_before(at, n):
    assert on([A, B, (3, "stop"), (5, "start"), (9, "stop")], at, [1] * 5) == n


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 20)), min_size=1, max_size=8, unique=True),
    st.integers(1, 3),
    st.integers(0, 60),
)
def test_intervals_with_names_are_counted_as_they_are_however_often_they_are_sent(intervals, times, at):
    rows = [(start, "start") for start, _ in intervals] + [(start + length, "stop") for start, length in intervals]
    order = [*range(1, len(intervals) + 1)] * 2
    expected = sum(start < at <= start + length for start, length in intervals)
    assert on(rows * times, at, order * times) == expected


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(1, 20)), min_size=1, max_size=8, unique=True), st.integers(0, 60)
)
def test_intervals_without_names_are_as_many_as_they_are(intervals, at):
    rows = [(start, "start") for start, _ in intervals] + [(start + length, "stop") for start, length in intervals]
    if min(Counter(rows).values()) > 1:
        return
    assert on(rows, at) == sum(start < at <= start + length for start, length in intervals)


def test_an_order_stopped_in_its_minute_is_no_order_unless_it_is_a_date_or_ends_at_once():
    series, order, row = np.zeros(2, dtype=np.int64), np.ones(2, dtype=np.int64), np.arange(2)
    is_start, no = np.array([True, False]), np.zeros(2, dtype=bool)
    minute = np.array([HOUR, HOUR + 30])
    same_minute = settle_orders(series, minute, is_start, order, row, no)
    assert (same_minute.rows.tolist(), sorted(same_minute.called_off.tolist())) == ([], [0, 1])
    assert len(settle_orders(series, minute, is_start, order, row, ~no).rows) == 2
    assert len(settle_orders(series, np.array([0, 0]), is_start, order, row, no).rows) == 2
    turned = settle_orders(series, np.array([2 * HOUR, HOUR]), is_start, order, row, no)
    assert turned.time.tolist() == [2 * HOUR, 2 * HOUR]


def test_of_several_stops_of_a_named_order_the_last_one_is_kept_once():
    """Rows that differ in something else may say the same stop; a day without a time ends with that day."""
    times = np.array([10, 12, 15, 15, 0]) * HOUR
    series, order, row = np.zeros(5, dtype=np.int64), np.ones(5, dtype=np.int64), np.arange(5)
    found = settle_orders(series, times, row == 0, order, row, row < 0)
    assert (found.rows.tolist(), found.time.tolist()) == ([0, 4], [10 * HOUR, 24 * HOUR])
    earlier = settle_orders(series[:4], times[:4], row[:4] == 0, order[:4], row[:4], row[:4] < 0)
    assert (earlier.rows.tolist(), earlier.time.tolist()) == ([0, 2], [10 * HOUR, 15 * HOUR])
    assert (found.n_orders, found.n_turned, earlier.n_orders, len(earlier.open)) == (1, 0, 1, 0)
