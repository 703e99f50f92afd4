"""Tasks and decisions: which labs and drugs are asked about, and what was done in the 24 h after each snapshot."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from core.events import LAB_KINDS, MEDICATION_KINDS, of_kind, seconds, task_key
from core.series import SeriesSet
from core.stays import DAY
from core.vocabulary import Kind

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Tasks:
    """Tasks with enough positive instances.

    Parameters
    ----------
    table : DataFrame
        ``task_key``, ``name``, ``kind``, ``n_positive``, by kind and name; ``order_group`` is added later.
    decisions : csc_matrix of shape (n_instances, n_tasks), bool
    """

    table: pd.DataFrame
    decisions: sparse.csc_matrix


class TaskCollector:
    """Collects the decisions taken in [snapshot, snapshot + 24 h), part by part.

    ``snapshot + 24 h`` is the next day's snapshot in site time, also across a clock change.

    Parameters
    ----------
    items, names : sequence of str
        Group key and name for people of every item.
    """

    def __init__(self, items: Sequence[str], names: Sequence[str]) -> None:
        self._items, self._names = items, names
        self._n_instances = 0
        self._rows: dict[tuple[Kind, int], list[npt.NDArray[np.int32]]] = {}

    def add(self, events: pd.DataFrame, instances: pd.DataFrame) -> None:
        """Note the decisions of one part.

        Parameters
        ----------
        events : DataFrame
            Events with ``is_decision`` count.
        instances : DataFrame
            Of the same patients, as `core.cohort.Cohort.instances`; their rows follow those of the parts before.
        """
        is_decision = events["is_decision"].to_numpy()
        n = max(len(instances), 1)
        for kind, kinds in ((Kind.LAB_ORDER, LAB_KINDS), (Kind.MEDICATION, MEDICATION_KINDS)):
            chosen = events.loc[is_decision & of_kind(events, kinds), ["patient_id", "time", "item"]]
            instance = _instance_of(chosen, events["patient_id"].cat.categories, instances)
            inside = instance >= 0
            item = chosen["item"].cat.codes.to_numpy()[inside].astype(np.int64)
            pairs = np.unique(item * n + instance[inside])
            found, starts = np.unique(pairs // n, return_index=True)
            rows = (pairs % n + self._n_instances).astype(np.int32)
            ends = np.append(starts, len(rows))[1:]
            for number, first, end in zip(found.tolist(), starts, ends, strict=True):
                self._rows.setdefault((kind, number), []).append(rows[first:end])
        self._n_instances += len(instances)

    def tasks(self, min_positive: int) -> Tasks:
        """Give the tasks with at least `min_positive` instances with the decision."""
        keys: list[tuple[str, str, str]] = []
        columns: list[npt.NDArray[np.int32]] = []
        for (kind, number), rows in self._rows.items():
            item = self._items[number]
            if item and sum(map(len, rows)) >= min_positive:
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


def _instance_of(chosen: pd.DataFrame, patients: pd.Index, instances: pd.DataFrame) -> IntArray:
    """Row of the instance whose window holds each event, -1 where there is none."""
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
