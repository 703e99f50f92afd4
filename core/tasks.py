"""Tasks and decisions: which labs and drugs are asked about, and what was done in the 24 h after each snapshot."""

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


def make_tasks(events: pd.DataFrame, instances: pd.DataFrame, min_positive: int) -> Tasks:
    """Find the tasks and the decisions taken in [snapshot, snapshot + 24 h).

    Parameters
    ----------
    events : DataFrame
        An event stream; events with ``is_decision`` count.
    instances : DataFrame
        As `core.cohort.Cohort.instances`.
    min_positive : int
        A task needs this many instances with the decision.

    Returns
    -------
    Tasks
        ``snapshot + 24 h`` is the next day's snapshot in site time, also across a clock change.
    """
    is_decision = events["is_decision"].to_numpy()
    keys: list[tuple[str, str, str]] = []
    columns: list[IntArray] = []
    for kind, kinds in ((Kind.LAB_ORDER, LAB_KINDS), (Kind.MEDICATION, MEDICATION_KINDS)):
        chosen = events[is_decision & of_kind(events, kinds)]
        instance = _instance_of(chosen, events["patient_id"].cat.categories, instances)
        items, numbers = np.unique(chosen["item"].cat.codes.to_numpy(), return_inverse=True)
        inside = instance >= 0
        pairs = np.unique(numbers[inside].astype(np.int64) * max(len(instances), 1) + instance[inside])
        task, row = pairs // max(len(instances), 1), pairs % max(len(instances), 1)
        bounds = np.searchsorted(task, np.arange(len(items) + 1))
        names = chosen.drop_duplicates("item").set_index("item")["name"]
        for i, item in enumerate(events["item"].cat.categories[items]):
            rows = row[bounds[i] : bounds[i + 1]]
            if len(rows) >= min_positive and item:
                keys.append((kind.value, str(names[item]), task_key(kind, str(item))))
                columns.append(rows)
    order = sorted(range(len(keys)), key=lambda i: (keys[i][0], keys[i][1].casefold(), keys[i][2]))
    return _gather([keys[i] for i in order], [columns[i] for i in order], len(instances))


def _gather(keys: list[tuple[str, str, str]], columns: list[IntArray], n_instances: int) -> Tasks:
    n = np.array([len(rows) for rows in columns], dtype=np.int64)
    table = pd.DataFrame(
        {
            "task_key": pd.Series([key for _, _, key in keys], dtype="str"),
            "name": pd.Series([name for _, name, _ in keys], dtype="str"),
            "kind": pd.Series([kind for kind, _, _ in keys], dtype="str"),
            "n_positive": n,
        }
    )
    indices = np.concatenate([np.zeros(0, dtype=np.int64), *columns])
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
