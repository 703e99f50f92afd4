"""The event stream: what every health record source becomes before anything else looks at it."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.kinds import EVENT_NAMES, EventKind, task_of

IntArray = npt.NDArray[np.int64]

EVENT_COLUMNS = ("patient_id", "time", "known_at", "kind", "item", "name", "value", "text", "unit", "is_decision")
"""Columns of `core.cohort.cohort.Cohort.events`, in this order."""


def decision_events(events: pd.DataFrame, *keys: str) -> pd.DataFrame:
    """Pick the events that count as "the task was done", or one of several tasks, in their order.

    The keys are of one kind, such as ``"LAB_ORDER/50912"``; for a panel, those of its members. The ``time`` of a row is
    when the decision was taken.
    """
    kinds, items = zip(*map(task_of, keys), strict=True)
    is_own = of_kind(events, kinds[0].events) & events["item"].isin(items).to_numpy()
    return events[is_own & events["is_decision"].to_numpy()]


def of_kind(events: pd.DataFrame, kinds: Iterable[EventKind]) -> npt.NDArray[np.bool_]:
    """Mask of the events of some kinds, by category code: comparing texts would cost seconds on large streams."""
    wanted = {kind.value for kind in kinds}
    is_wanted = np.array([name in wanted for name in events["kind"].cat.categories] + [False])
    return np.asarray(is_wanted[events["kind"].cat.codes.to_numpy()], dtype=bool)


def among(kinds: npt.NDArray[np.integer], wanted: Iterable[EventKind]) -> npt.NDArray[np.bool_]:
    """Mark the places in `EventKind` of some kinds, of shape (n_events,); -1 is none of them."""
    is_wanted = np.zeros(len(EventKind) + 1, dtype=bool)
    is_wanted[[kind.number for kind in wanted]] = True
    return np.asarray(is_wanted[kinds], dtype=bool)


def seconds(times: pd.Series | pd.DatetimeIndex | npt.NDArray[np.datetime64]) -> IntArray:
    """Whole seconds since 1970 (floor) as integers; comparisons with a snapshot at a whole second stay exact.

    Missing times become the smallest integer.
    """
    return np.asarray(times, dtype="datetime64[s]").astype(np.int64)


def finish_events(frame: pd.DataFrame, keep: tuple[str, ...] = ()) -> pd.DataFrame:
    """Return a frame with the columns, types and order of an event stream, and further columns to keep.

    Texts become categories (a stream of 100 million events would not fit in memory otherwise), and rows are sorted by
    patient, time, kind and item, so that the same events give the same stream whatever order they came in.
    """
    columns: dict[str, object] = {}
    for name in (*EVENT_COLUMNS, *keep):
        column = frame[name]
        if name in ("patient_id", "item", "name", "text", "unit"):
            column = _sorted_categories(column)
        elif name == "kind":
            column = column.astype(pd.CategoricalDtype(EVENT_NAMES))
        columns[name] = column
    events = pd.DataFrame(columns)
    keys = [events[name].cat.codes.to_numpy() for name in ("text", "unit", "item", "kind")]
    keys.insert(1, events["value"].to_numpy())
    times = [events[name].to_numpy().astype(np.int64) for name in ("known_at", "time")]
    order = np.lexsort([*keys, *times, events["patient_id"].cat.codes.to_numpy()])
    if not np.array_equal(order, np.arange(len(events))):
        events = events.iloc[order]
    return events.reset_index(drop=True)


def _sorted_categories(column: pd.Series) -> pd.Series:
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return column.astype("category")
    used = column.cat.remove_unused_categories()
    return used.cat.reorder_categories(sorted(used.cat.categories))
