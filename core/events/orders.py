"""Orders with a beginning and an end: which stop ends which order, and which rows are the same order twice."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.events.series import first_of_each, numbered

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

_MINUTE = 60
_DAY = 86400


def stops_of(series: IntArray, time: IntArray, is_start: BoolArray) -> IntArray:
    """Pair each start with the stop that ends it: the order begun first ends first.

    A stop ends an order of its series (what is ordered for whom) begun before it or at the same time; a stop without
    one ends nothing. Return the place of each start's stop and of each stop's start; -1 where there is none.

    Examples
    --------
    >>> stops_of(np.zeros(4, int), np.array([1, 2, 5, 5]), np.array([True, True, False, False])).tolist()
    [2, 3, 0, 1]
    """
    out = np.full(len(series), -1, dtype=np.int64)
    order = np.lexsort([~is_start, time, series])
    begins, who = is_start[order], series[order]
    running = pd.Series(np.where(begins, 1, -1)).groupby(who).cumsum()
    lowest = running.groupby(who).cummin().groupby(who).shift(fill_value=0).to_numpy()
    ends = ~begins & (running.to_numpy() >= np.minimum(lowest, 0))
    starts, stops = order[begins], order[ends]
    rank = pd.Series(who[ends]).groupby(who[ends]).cumcount().to_numpy()
    partner = starts[np.searchsorted(series[starts], series[stops], side="left") + rank] if len(stops) else stops
    out[partner], out[stops] = stops, partner
    return out


@dataclass(frozen=True)
class Orders:
    """Rows of starts and stops, each order once."""

    rows: IntArray  # shape (n_kept,): places of the rows; a place comes twice where one row stands for two orders
    time: IntArray  # shape (n_kept,): seconds; a stop before its start has the time of the start
    called_off: IntArray  # places of starts and stops left out because the order was stopped in the minute of its start
    open: IntArray  # places of starts without a stop
    n_orders: int
    n_turned: int  # orders whose stop came before the start


def settle_orders(
    series: IntArray,
    time: IntArray,
    is_start: BoolArray,
    order: IntArray,
    row: IntArray,
    ends_at_once: BoolArray,
    zone: str = "UTC",
) -> Orders:
    """Settle which rows are orders and which the same again.

    Where rows name their order, equal rows are one. Where they do not, equal stops are as many as there are orders to
    end, and equal starts as many as there are stops that need them; a source that repeats every row says so once.
    `order` is 0 where the source tells none; `row` is equal for rows that are equal in the source; `ends_at_once` marks
    what a stop in the minute of the start does not call off. Times are those of a zone.
    """
    kept = np.flatnonzero(first_of_each(row))
    named = kept[order[kept] != 0]
    copies = _copies(series, is_start, row, kept[order[kept] == 0])
    places = np.concatenate([named, *copies])
    when = time[places].copy()
    # Orders with a name never share a series with others.
    key = numbered(series[places], order[places])
    places, when, key = _one_stop(places, when, key, is_start, order)
    as_often = _times_of_stops(key, when, is_start[places], order[places] != 0)
    places, when, key = (np.repeat(each, as_often) for each in (places, when, key))
    partner = stops_of(key, when, is_start[places])
    begins = is_start[places] & (partner >= 0)
    length = np.where(begins, when[np.maximum(partner, 0)] - when, _DAY)
    # Of a start and a stop that are dates nothing says that they are the same minute.
    short = begins & (when // _MINUTE == (when + length) // _MINUTE) & (when % _DAY != 0) & ~ends_at_once[places]
    turned = begins & _is_turned(places, time, when, partner)
    short &= ~turned
    short[short] = ~_is_repeated(when[short], zone)
    gone = short.copy()
    gone[partner[short]] = True
    is_open = is_start[places] & (partner < 0)
    n_orders = int((is_start[places] & ~gone).sum())
    return Orders(places[~gone], when[~gone], places[gone], places[is_open], n_orders, int(turned.sum()))


def _copies(series: IntArray, is_start: BoolArray, row: IntArray, places: IntArray) -> list[IntArray]:
    """Return the places of starts and of stops without a name, as often as they count."""
    if not len(places):
        return []
    _, number, counts = np.unique(row, return_inverse=True, return_counts=True)
    times = counts[number[places]]
    _, who = np.unique(series[places], return_inverse=True)
    least = pd.Series(times).groupby(who).transform("min").to_numpy()
    times = times // least
    starts = is_start[places]
    n_starts = np.bincount(who[starts], minlength=int(who.max()) + 1)
    n_stops = np.bincount(who[~starts], weights=times[~starts], minlength=len(n_starts))
    wanted = np.where(starts & (n_stops <= n_starts)[who], 1, times)
    return [np.repeat(places, wanted)]


def _one_stop(
    places: IntArray, when: IntArray, key: IntArray, is_start: BoolArray, order: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Keep the last stop of an order with a name and one start, no earlier than the start.

    A stop at midnight of the day of the start is a date: the order ends with that day.
    """
    starts = is_start[places]
    n_starts = np.bincount(key[starts], minlength=int(key.max(initial=-1)) + 1)
    single = (order[places] != 0) & (n_starts[key] == 1)
    begun = np.zeros(len(n_starts), dtype=np.int64)
    begun[key[starts]] = when[starts]
    stops = single & ~starts
    start = begun[key[stops]]
    when[stops] = np.where(_is_day_of(when[stops], start), when[stops] + _DAY, np.maximum(when[stops], start))
    last = np.full(len(n_starts), np.iinfo(np.int64).min)
    np.maximum.at(last, key[stops], when[stops])
    keep = ~stops | (when == last[key])
    doubled = stops & keep & pd.Series(np.where(stops & keep, key, -1 - np.arange(len(key)))).duplicated().to_numpy()
    keep &= ~doubled
    return places[keep], when[keep], key[keep]


def _times_of_stops(key: IntArray, when: IntArray, is_start: BoolArray, is_named: BoolArray) -> IntArray:
    """Return how many starts each row ends, at least 1.

    A stop ends whatever was begun under the name of its order since the stop before, if the order has fewer stops than
    starts: its dose was changed, or its name stands for several orders that end in one minute.
    """
    out = np.ones(len(key), dtype=np.int64)
    n_starts, n_stops = (np.bincount(key[of], minlength=int(key.max(initial=-1)) + 1) for of in (is_start, ~is_start))
    rows = np.flatnonzero(is_named & ((n_stops > 0) & (n_stops < n_starts))[key])
    if not len(rows):
        return out
    rows = rows[np.lexsort([~is_start[rows], when[rows], key[rows]])]
    stops, begun = np.flatnonzero(~is_start[rows]), np.append(0, np.cumsum(is_start[rows]))
    before_key = begun[np.searchsorted(key[rows], key[rows[stops]])]
    before_stop = np.append(0, begun[stops[:-1]])
    out[rows[stops]] = np.maximum(begun[stops] - np.maximum(before_key, before_stop), 1)
    return out


def _is_turned(places: IntArray, time: IntArray, when: IntArray, partner: IntArray) -> BoolArray:
    """Mark starts whose stop came before them in the source."""
    stop = time[places[np.maximum(partner, 0)]]
    moved = (partner >= 0) & (stop != when[np.maximum(partner, 0)])
    return np.asarray(moved & ~_is_day_of(stop, time[places]), dtype=bool)


def _is_repeated(time: IntArray, zone: str) -> BoolArray:
    """Mark times of an hour that clocks repeat in autumn: two of them in one minute may be an hour apart."""
    times = pd.DatetimeIndex(time.astype("datetime64[s]"))
    first, second = (
        times.tz_localize(zone, ambiguous=np.full(len(times), is_summer), nonexistent="shift_forward")
        for is_summer in (True, False)
    )
    return np.asarray(first != second, dtype=bool)


def _is_day_of(date: IntArray, time: IntArray) -> BoolArray:
    """Mark midnights before a later time of their day."""
    return np.asarray((date % _DAY == 0) & (date < time) & (time < date + _DAY), dtype=bool)
