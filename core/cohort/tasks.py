"""Tasks and decisions: what could be ordered or given, and what was in the 24 h after each snapshot."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from core.events.series import SeriesSet, distinct
from core.events.stays import DAY
from core.events.stream import of_kind, seconds
from core.kinds import EventKind, Kind, task_key

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Tasks:
    """Tasks with enough positive instances."""

    # ``task_key``, ``name``, ``kind``, ``n_positive``, by kind and name; ``order_group`` is added later.
    table: pd.DataFrame
    decisions: sparse.csc_matrix  # shape (n_instances, n_tasks)


class TaskCollector:
    """Collects the decisions taken in [snapshot, snapshot + 24 h), part by part.

    ``snapshot + 24 h`` is the next day's snapshot in site time, also across a clock change. `decided_by` has the events
    that were decisions, by task key.
    """

    def __init__(self, items: Sequence[str], names: Sequence[str]) -> None:
        self._items, self._names = items, names
        self._n_instances = 0
        self._rows: dict[tuple[Kind, int], list[npt.NDArray[np.int32]]] = {}
        self.decided_by: dict[str, set[EventKind]] = {}

    def add(self, events: pd.DataFrame, instances: pd.DataFrame) -> None:
        """Note the decisions of one part, events with ``is_decision``.

        Rows of instances follow those of the parts before.
        """
        is_decision = events["is_decision"].to_numpy()
        n = max(len(instances), 1)
        for kind in Kind:
            chosen = events.loc[is_decision & of_kind(events, kind.events), ["patient_id", "time", "item", "kind"]]
            instance = instance_of(chosen, events["patient_id"].cat.categories, instances)
            inside = instance >= 0
            item = chosen["item"].cat.codes.to_numpy()[inside].astype(np.int64)
            pairs = distinct(item * n + instance[inside])
            found, starts = np.unique(pairs // n, return_index=True)
            rows = (pairs % n + self._n_instances).astype(np.int32)
            ends = np.append(starts, len(rows))[1:]
            for number, first, end in zip(found.tolist(), starts, ends, strict=True):
                self._rows.setdefault((kind, number), []).append(rows[first:end])
            for event in kind.events:
                for number in np.unique(item[of_kind(chosen, [event])[inside]]).tolist():
                    self.decided_by.setdefault(task_key(kind, self._items[number]), set()).add(event)
        self._n_instances += len(instances)

    def tasks(self, positives_needed: Callable[[Kind], int]) -> Tasks:
        """Return the tasks with enough instances with the decision for their kind."""
        keys: list[tuple[str, str, str]] = []
        columns: list[npt.NDArray[np.int32]] = []
        for (kind, number), rows in self._rows.items():
            item = self._items[number]
            if item and sum(map(len, rows)) >= positives_needed(kind):
                keys.append((kind.value, self._names[number], task_key(kind, item)))
                columns.append(np.concatenate(rows))
        order = sorted(range(len(keys)), key=lambda i: (keys[i][0], keys[i][1].casefold(), keys[i][2]))
        return _gather([keys[i] for i in order], [columns[i] for i in order], self._n_instances)


def _gather(keys: list[tuple[str, str, str]], columns: list[npt.NDArray[np.int32]], n_instances: int) -> Tasks:
    n = np.array([len(rows) for rows in columns], dtype=np.int64)
    table = pd.DataFrame(
        {
            "task_key": pd.Series([key for _, _, key in keys], dtype="str"),
            "name": pd.Series([name for _, name, _ in keys], dtype="str"),
            "kind": pd.Series([kind for kind, _, _ in keys], dtype="str"),
            "n_positive": n,
        }
    )
    indices = np.concatenate([np.zeros(0, dtype=np.int32), *columns])
    shape = (n_instances, len(keys))
    decisions = sparse.csc_matrix((np.ones(len(indices), dtype=bool), indices, np.append(0, np.cumsum(n))), shape=shape)
    return Tasks(table, decisions)


def instance_of(chosen: pd.DataFrame, patients: pd.Index, instances: pd.DataFrame) -> IntArray:
    """Return the row of the instance whose window holds each event of one part, -1 where there is none.

    `patients` are the categories of ``patient_id`` in that part; the instances are of the same patients.
    """
    patient = patients.get_indexer(instances["patient_id"]).astype(np.int64)
    snapshots = SeriesSet(patient, seconds(instances["snapshot_at"]), len(patients))
    if not len(instances):
        return np.full(len(chosen), -1)
    who, time = chosen["patient_id"].cat.codes.to_numpy().astype(np.int64), seconds(chosen["time"])
    place = snapshots.before(who, time + 1) - 1
    exists = place >= snapshots.start(who)
    place = np.maximum(place, 0)
    inside: npt.NDArray[np.bool_] = exists & (time - snapshots.time[place] < DAY)
    return np.where(inside, snapshots.order[place], -1)


PHI_THRESHOLD = 0.5
_TASKS_AT_ONCE = 256


def phi_coefficients(counts: sparse.csc_array, first: int, end: int) -> npt.NDArray[np.float64]:
    """Correlate the past decisions of the tasks `first` to `end` - 1 with those of all tasks.

    `counts`, of shape (n_instances, n_tasks), is 1 where a decision was made. Return phi coefficients in [-1, 1] of
    shape (end - first, n_tasks); 0 where a task has only one kind of decision.
    """
    n = counts.shape[0]
    both = (counts[:, first:end].T @ counts).toarray().astype(np.float64)
    single = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
    spread = np.sqrt(single * (n - single))
    with np.errstate(divide="ignore", invalid="ignore"):
        phi = (n * both - np.outer(single[first:end], single)) / np.outer(spread[first:end], spread)
    return np.where(np.isfinite(phi), phi, 0.0)


def _linked(decisions: sparse.csc_matrix, threshold: float) -> sparse.csr_array:
    """Mark the pairs of tasks beyond the threshold, some rows at a time: thousands of tasks make large squares."""
    counts = sparse.csc_array(decisions, dtype=np.int32)
    n_tasks = decisions.shape[1]
    rows = [
        sparse.csr_array(np.abs(phi_coefficients(counts, first, min(first + _TASKS_AT_ONCE, n_tasks))) > threshold)
        for first in range(0, n_tasks, _TASKS_AT_ONCE)
    ]
    return sparse.csr_array(sparse.vstack(rows, format="csr"))


def order_groups(
    decisions: sparse.csc_matrix,
    names: Sequence[str],
    threshold: float = PHI_THRESHOLD,
    orders: Sequence[bool] | None = None,
) -> npt.NDArray[np.object_]:
    """Find the connected components of ``|phi| > threshold`` between past decisions, of shape (n_instances, n_tasks).

    Return the name of each task's group, which is that of its commonest member (the first of equally common ones), ""
    for a task that is alone. Tasks that are no `orders` lend a group their name only if it has no others.
    """
    n_tasks = decisions.shape[1]
    out = np.full(n_tasks, "", dtype=object)
    if n_tasks == 0:
        return out
    _, component = connected_components(_linked(decisions, threshold), directed=False)
    n_positive = np.asarray(decisions.sum(axis=0)).ravel()
    lends = np.ones(n_tasks, dtype=bool) if orders is None else np.asarray(orders, dtype=bool)
    taken: set[str] = set()
    for number in np.unique(component):
        members = np.flatnonzero(component == number)
        if len(members) > 1:
            likely = members[lends[members]] if lends[members].any() else members
            commonest = names[likely[int(np.argmax(n_positive[likely]))]]
            name, i = commonest, 2
            while name in taken:
                name, i = f"{commonest} ({i})", i + 1
            taken.add(name)
            out[members] = name
    return out


def edited_groups(
    groups: npt.NDArray[np.object_], keys: Sequence[str], edits: Mapping[str, Sequence[str]]
) -> npt.NDArray[np.object_]:
    """Put tasks into the groups that a site mapping names, by their keys, whatever was found for them.

    A group named "" takes its tasks out of every group.
    """
    out = groups.copy()
    for name, members in edits.items():
        for key in members:
            if key in keys:
                out[list(keys).index(key)] = name
    return out
