"""Compiled loops that compute the features of every snapshot from the events of one patient and item at a time.

Events of a patient and item are a series. Snapshots of a patient are in the order of time, so each series is walked
through once. Features are part of the content hash: sums run in NumPy's order, and nothing is reassociated.
"""

from typing import Any

import numpy as np

from core.numerics.compiled import compiled_exactly

ORDER, DONE, OTHER = 1, 2, 3
"""Roles of events in a group of features; 0 is none."""
_NEVER = np.iinfo(np.int64).min
_HOUR = 3600.0
_DAY = 86400.0
_BLOCK = 128
"""NumPy adds up to so many numbers in eight sums, and halves what is longer."""
_MOVES_OF_EACH = 16
"""Sorting moves rows one by one, until it has moved each so often."""


@compiled_exactly
def _sort(rows: Any, n: Any, when: Any) -> None:
    """Sort the first n rows by their times, equal times as they are; fastest where they are nearly in order."""
    n_moves = 0
    for i in range(1, n):
        if n_moves > _MOVES_OF_EACH * n:
            ordered = rows[:n][np.argsort(when[rows[:n]], kind="mergesort")]
            for place in range(n):
                rows[place] = ordered[place]
            return
        row, j = rows[i], i
        while j > 0 and when[rows[j - 1]] > when[row]:
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = row
        n_moves += i - j


@compiled_exactly
def series_rows(patient: Any, item: Any, role: Any, n_items: Any) -> Any:
    """Return the events that have a role by patient and item, as they came within, and where each series begins.

    Takes ``patient`` (sorted), ``item`` and ``role`` of shape (n_events,). Returns event numbers of shape (n_used,)
    and offsets of shape (n_series + 1,).
    """
    n = len(patient)
    rows = np.empty(n, np.int64)
    starts = np.empty(n + 1, np.int64)
    count = np.zeros(n_items, np.int64)
    touched, identity = np.empty(n_items, np.int64), np.arange(n_items)
    n_rows = n_series = first = 0
    while first < n:
        end, n_touched = first, 0
        while end < n and patient[end] == patient[first]:
            if role[end]:
                if count[item[end]] == 0:
                    touched[n_touched] = item[end]
                    n_touched += 1
                count[item[end]] += 1
            end += 1
        _sort(touched, n_touched, identity)
        for i in range(n_touched):
            each = touched[i]
            starts[n_series] = n_rows
            n_series += 1
            n_rows += count[each]
            count[each] = n_rows - count[each]
        for row in range(first, end):
            if role[row]:
                rows[count[item[row]]] = row
                count[item[row]] += 1
        for i in range(n_touched):
            count[touched[i]] = 0
        first = end
    starts[n_series] = n_rows
    return rows[:n_rows], starts[: n_series + 1]


@compiled_exactly
def n_pairs(rows: Any, starts: Any, patient: Any, first_instance: Any) -> Any:
    """Return how many pairs of a series and an instance of its patient there are."""
    total = 0
    for series in range(len(starts) - 1):
        who = patient[rows[starts[series]]]
        total += first_instance[who + 1] - first_instance[who]
    return total


@compiled_exactly
def _picked(rows: Any, role: Any, wanted: Any, when: Any, out: Any) -> Any:
    """Write the rows of a role (0 for any) in the order of their times, equal times as they came; return how many."""
    n = 0
    for i in range(len(rows)):
        if wanted == 0 or role[rows[i]] == wanted:
            out[n] = rows[i]
            n += 1
    _sort(out, n, when)
    return n


@compiled_exactly
def _n_before(rows: Any, n: Any, when: Any, moment: Any) -> Any:
    """Return how many of the first n rows, which are in the order of their times, come before a moment."""
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if when[rows[middle]] < moment:
            low = middle + 1
        else:
            high = middle
    return low


@compiled_exactly
def _pairwise(values: Any, first: Any, n: Any) -> Any:
    """Return a sum with the roundings of NumPy's."""
    if n < 8:
        total = -0.0
        for i in range(first, first + n):
            total += values[i]
        return total
    if n > _BLOCK:
        half = n // 2
        half -= half % 8
        return _pairwise(values, first, half) + _pairwise(values, first + half, n - half)
    a, b, c, d = values[first], values[first + 1], values[first + 2], values[first + 3]
    e, f, g, h = values[first + 4], values[first + 5], values[first + 6], values[first + 7]
    whole = first + n - n % 8
    for i in range(first + 8, whole, 8):
        a, b, c, d = a + values[i], b + values[i + 1], c + values[i + 2], d + values[i + 3]
        e, f, g, h = e + values[i + 4], f + values[i + 5], g + values[i + 6], h + values[i + 7]
    total = ((a + b) + (c + d)) + ((e + f) + (g + h))
    for i in range(whole, first + n):
        total += values[i]
    return total


@compiled_exactly
def _total(values: Any, first: Any, n: Any) -> Any:
    """Return the sum of n > 0 values, rounded as ``numpy.add.reduceat`` rounds it."""
    return values[first] + _pairwise(values, first + 1, n - 1) if n > 1 else values[first]


@compiled_exactly
def mean_and_slope(values: Any, times: Any, first: Any, end: Any, work: Any) -> Any:
    """Return the mean of values first to end - 1, and their least-squares change per day; NaN where there is none.

    Takes ``values`` and ``times`` (seconds) of shape (n,), and ``work`` of shape (2, n or more).
    """
    n = end - first
    if n <= 0:
        return np.nan, np.nan
    mean = _total(values, first, n) / n
    if n == 1:
        return mean, np.nan
    # Times relative to the first, then centred: no digit is lost to the calendar.
    days, products = work[0], work[1]
    for i in range(n):
        days[i] = (times[first + i] - times[first]) / _DAY
    middle = _total(days, 0, n) / n
    for i in range(n):
        days[i] -= middle
        products[i] = days[i] * days[i]
    spread = _total(products, 0, n)
    if not spread > 0:
        return mean, np.nan
    for i in range(n):
        products[i] = days[i] * (values[first + i] - mean)
    return mean, _total(products, 0, n) / spread


@compiled_exactly
def _clear(found: Any) -> None:
    for i in range(len(found)):
        found[i] = np.nan


@compiled_exactly
def _storable(figure: Any) -> Any:
    """Return a figure, or NaN for one that overflowed."""
    return figure if np.isfinite(figure) else np.nan


@compiled_exactly
def _with_value(rows: Any, value: Any, out: Any) -> Any:
    """Write the rows whose value is finite, as they come; return how many."""
    n_out = 0
    for i in range(len(rows)):
        if np.isfinite(value[rows[i]]):
            out[n_out] = rows[i]
            n_out += 1
    return n_out


@compiled_exactly
def value_features(
    rows: Any,
    starts: Any,
    events: Any,
    role: Any,
    value: Any,
    instances: Any,
    recent: Any,
    bands: Any,
    number: Any,
    out: Any,
) -> Any:
    """Write the features of `core.cohort.feature_layout.VALUE_KINDS`; return how many pairs have any.

    `rows` and `starts` are those of `series_rows`; events are (patient, item, known_at, time) and have a role and a
    value; instances are (first of each patient, snapshot, from_time); bands (low, high, cell of each instance); times
    are seconds. Filled are `number`, of shape (2, n_pairs), with the instance and the item of each pair, and `out`, of
    shape (n_kinds, n_pairs), with NaN where there is nothing to store.
    """
    patient, item, known_at, time = events
    first_instance, snapshot, from_time = instances
    low, high, cell = bands
    longest = 0
    for series in range(len(starts) - 1):
        longest = max(longest, starts[series + 1] - starts[series])
    sorted_rows = np.empty(longest, np.int64)
    values, times, work = np.empty(longest), np.empty(longest, np.int64), np.empty((2, longest))
    finite = np.empty(longest, np.int64)
    n_out = 0
    for series in range(len(starts) - 1):
        mine = rows[starts[series] : starts[series + 1]]
        who, what = patient[mine[0]], item[mine[0]]
        n = _picked(finite[: _with_value(mine, value, finite)], role, 0, known_at, sorted_rows)
        for i in range(n):
            values[i], times[i] = value[sorted_rows[i]], time[sorted_rows[i]]
        end = 0
        for instance in range(first_instance[who], first_instance[who + 1]):
            now = snapshot[instance]
            while end < n and known_at[sorted_rows[end]] < now:
                end += 1
            if end == 0:
                continue
            last, begin = values[end - 1], _n_before(sorted_rows, n, known_at, from_time[instance])
            number[0, n_out], number[1, n_out] = instance, what
            found = out[:, n_out]
            _clear(found)
            found[0] = last
            if end >= 2:
                found[1] = _storable(last - values[end - 2])
                found[2] = (times[end - 1] - times[end - 2]) / _HOUR
            lately = _n_before(sorted_rows, n, known_at, now - recent)
            found[3] = _storable(mean_and_slope(values, times, lately, end, work)[1])
            if begin < end:
                mean, slope = mean_and_slope(values, times, begin, end, work)
                smallest = largest = values[begin]
                for i in range(begin + 1, end):
                    smallest, largest = min(smallest, values[i]), max(largest, values[i])
                found[4], found[5], found[6] = _storable(slope), smallest, largest
                found[7], found[8] = _storable(mean), values[begin]
                if end - begin >= 2:
                    found[9] = _storable(last - values[begin])
            if last > high[cell[instance], what]:
                found[10] = 1
            if last < low[cell[instance], what]:
                found[11] = 1
            n_out += 1
    return n_out


@compiled_exactly
def result_features(
    rows: Any, starts: Any, events: Any, role: Any, instances: Any, recent: Any, number: Any, out: Any
) -> Any:
    """Write the features of `core.cohort.feature_layout.RESULT_KINDS`; parameters as in `value_features`."""
    patient, item, known_at, time = events
    first_instance, snapshot, from_time = instances
    sorted_rows = np.empty(len(rows), np.int64)
    n_out = 0
    for series in range(len(starts) - 1):
        mine = rows[starts[series] : starts[series + 1]]
        who, what = patient[mine[0]], item[mine[0]]
        n = _picked(mine, role, 0, known_at, sorted_rows)
        end = lately = 0
        for instance in range(first_instance[who], first_instance[who + 1]):
            now = snapshot[instance]
            while end < n and known_at[sorted_rows[end]] < now:
                end += 1
            if end == 0:
                continue
            while lately < end and known_at[sorted_rows[lately]] < now - recent:
                lately += 1
            in_stay = end - _n_before(sorted_rows, n, known_at, from_time[instance])
            number[0, n_out], number[1, n_out] = instance, what
            found = out[:, n_out]
            found[0] = (now - time[sorted_rows[end - 1]]) / _HOUR
            found[1] = end - lately if end > lately else np.nan
            found[2] = in_stay if in_stay != 0 else np.nan
            found[3] = 1 if end > lately else np.nan
            found[4] = 1
            n_out += 1
    return n_out


@compiled_exactly
def pending_features(
    rows: Any, starts: Any, events: Any, role: Any, instances: Any, within: Any, number: Any, out: Any
) -> Any:
    """Write where something was ordered or taken and is not known yet; parameters as in `value_features`."""
    patient, item, known_at, time = events
    first_instance, snapshot, _ = instances
    known, taken, asked = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    n_out = 0
    for series in range(len(starts) - 1):
        mine = rows[starts[series] : starts[series + 1]]
        who, what = patient[mine[0]], item[mine[0]]
        n_results = _picked(mine, role, DONE, known_at, known)
        _picked(mine, role, DONE, time, taken)
        n_orders = _picked(mine, role, ORDER, time, asked)
        n_known = n_taken = n_asked = 0
        for instance in range(first_instance[who], first_instance[who + 1]):
            now = snapshot[instance]
            while n_known < n_results and known_at[known[n_known]] < now:
                n_known += 1
            while n_taken < n_results and time[taken[n_taken]] < now:
                n_taken += 1
            while n_asked < n_orders and time[asked[n_asked]] < now:
                n_asked += 1
            last_known = known_at[known[n_known - 1]] if n_known else _NEVER
            last_taken = time[taken[n_taken - 1]] if n_taken else _NEVER
            last_asked = time[asked[n_asked - 1]] if n_asked else _NEVER
            unanswered = last_asked >= now - within and last_asked > last_known
            if unanswered or (n_taken > n_known and last_taken >= now - within):
                number[0, n_out], number[1, n_out], out[0, n_out] = instance, what, 1
                n_out += 1
    return n_out


@compiled_exactly
def course_features(
    rows: Any,
    starts: Any,
    events: Any,
    role: Any,
    until: Any,
    instances: Any,
    recent: Any,
    tells_given: Any,
    number: Any,
    out: Any,
) -> Any:
    """Write the features of `core.cohort.feature_layout.COURSE_KINDS`; otherwise as `value_features`.

    `until` is when each order ends. Where the source does not tell when something is given, every start counts.
    """
    patient, item, known_at, _ = events
    first_instance, snapshot, from_time = instances
    begun, ended, given = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
    n_out = 0
    for series in range(len(starts) - 1):
        mine = rows[starts[series] : starts[series + 1]]
        who, what = patient[mine[0]], item[mine[0]]
        n_orders = _picked(mine, role, ORDER, known_at, begun)
        _picked(mine, role, ORDER, until, ended)
        n_doses = _picked(mine, role, DONE, known_at, given)
        n_begun = n_ended = n_given = 0
        for instance in range(first_instance[who], first_instance[who + 1]):
            now, begin = snapshot[instance], from_time[instance]
            while n_begun < n_orders and known_at[begun[n_begun]] < now:
                n_begun += 1
            while n_ended < n_orders and until[ended[n_ended]] < now:
                n_ended += 1
            while n_given < n_doses and known_at[given[n_given]] < now:
                n_given += 1
            if n_begun == 0 and n_given == 0:
                continue
            last_begun = known_at[begun[n_begun - 1]] if n_begun else _NEVER
            last_given = known_at[given[n_given - 1]] if n_given else _NEVER
            last = max(last_begun, last_given)
            first_given = _n_before(given, n_doses, known_at, begin)
            doses_in_stay = n_given - first_given
            starts_in_stay = n_begun - _n_before(begun, n_orders, known_at, begin)
            number[0, n_out], number[1, n_out] = instance, what
            found = out[:, n_out]
            _clear(found)
            # As many orders go on as began before the snapshot and did not end before it.
            if n_begun > n_ended or last_given >= now - recent:
                found[0] = 1
            if (last_given if tells_given else last) >= now - recent:
                found[1] = 1
            if n_begun:
                found[2] = (now - last_begun) / _HOUR
            elif doses_in_stay > 0:
                found[2] = (now - known_at[given[first_given]]) / _HOUR
            found[3] = (now - last) / _HOUR
            n_starts = starts_in_stay if starts_in_stay > 0 else doses_in_stay
            if n_starts != 0:
                found[4] = n_starts
            found[5] = 1
            n_out += 1
    return n_out


@compiled_exactly
def count_entries(row: Any, values: Any, n_in_row: Any) -> None:
    """Add the entries of each row that are not NaN to an array of shape (n_rows + 1,), shifted by one."""
    for i in range(len(row)):
        if not np.isnan(values[i]):
            n_in_row[row[i] + 1] += 1


@compiled_exactly
def place_entries(row: Any, item: Any, values: Any, first_column: Any, place: Any, columns: Any, data: Any) -> None:
    """Write the entries that are not NaN to the next free place of their rows; `place` moves on."""
    for i in range(len(row)):
        if not np.isnan(values[i]):
            at = place[row[i]]
            columns[at], data[at] = first_column + item[i], values[i]
            place[row[i]] = at + 1
