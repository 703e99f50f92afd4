"""Instances of a run, standardised by the past and shared by all its tasks, and one task of them."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from core.errors import InvalidInputError, TaskNotScorableError
from core.features import SparseStandardizer, positive_decisions, wilcoxon_table
from core.graph.feature_rows import FeatureRows, RoomForRows
from core.kinds import Kind
from core.scoring.parameters import ScoringParameters
from core.validation import FloatArray, IntArray, Matrix

Evidence: TypeAlias = Mapping[str, NDArray[Any]]
"""Arrays of one finished task by name; fit for an .npz file without pickle."""
COUNT_WEIGHT: Final = 5.0
"""Size of a standardised count beside the standardised features of the state."""


@dataclass(frozen=True)
class DayContext:
    """Kinds and order groups of all tasks."""

    kinds: IntArray  # shape (n_tasks,): position of each task's kind in `Kind`
    groups: IntArray  # shape (n_tasks,): order groups; a task that is alone has its own

    @classmethod
    def of(cls, kinds: Sequence[str], order_groups: Sequence[str]) -> "DayContext":
        """Read kinds and the names of order groups ("" = alone) in the order of the tasks.

        Raise InvalidInputError when there is not one of each per task, or a kind is unknown.
        """
        if len(kinds) != len(order_groups):
            raise InvalidInputError(
                f"There are {len(kinds)} kinds and {len(order_groups)} order groups of tasks. Pass one of each."
            )
        unknown = set(map(str, kinds)) - set(Kind)
        if unknown:
            raise InvalidInputError(
                f"Unknown kinds of tasks {sorted(unknown)}; they are {', '.join(Kind)}. Correct them."
            )
        names = [name or f"\0{place}" for place, name in enumerate(order_groups)]
        groups = np.unique(np.asarray(names, dtype=object).astype(str), return_inverse=True)[1]
        return cls(np.array([list(Kind).index(Kind(kind)) for kind in kinds]), groups.astype(np.int64))

    @classmethod
    def needed(cls, kinds: Sequence[str] | None, order_groups: Sequence[str] | None, n_tasks: int) -> "DayContext":
        """Read kinds and order groups of `n_tasks` tasks, refusing their absence by name."""
        if kinds is None or order_groups is None or len(kinds) != n_tasks:
            raise InvalidInputError(
                f'A scorer that looks back, like "day-adjusted", needs kinds and order_groups of all {n_tasks} tasks. '
                "Pass them, or leave it out."
            )
        return cls.of(kinds, order_groups)

    def other_counts(self, decisions: sparse.csc_array, task: int) -> FloatArray:
        """Count the other tasks of each kind decided for each instance; shape (n_instances, n_kinds)."""
        outside = self.groups != self.groups[task]
        chosen = np.column_stack([outside & (self.kinds == kind) for kind in np.unique(self.kinds)])
        return np.asarray(decisions @ chosen.astype(np.float64))

    def features(self, decisions: sparse.csc_array, task: int, n_past: int) -> NDArray[np.float32]:
        """Standardise log(1 + count) by the past, times `COUNT_WEIGHT`; shape (n_instances, n_kinds)."""
        logs = np.log1p(self.other_counts(decisions, task))
        past = logs[:n_past]
        spread = past.std(axis=0)
        scale = np.divide(COUNT_WEIGHT, spread, out=np.zeros(len(spread)), where=spread > 0)
        return np.asarray((logs - past.mean(axis=0)) * scale, dtype=np.float32)


@dataclass(frozen=True)
class PreparedInstances:
    """Past and recent instances of one call, standardised and column by column; shared by all tasks."""

    columns: sparse.csc_array  # shape (n_past + n_recent, n_features): past rows first
    decisions: sparse.csc_array  # shape (n_past + n_recent, n_tasks)
    # Shape (n_past + n_recent,): patients, or every instance by itself where patients need not be left out.
    groups: IntArray
    n_past: int
    # Shape (n_tasks, n_features_kept): features of largest psi of each task, largest first; -1 fills up.
    kept_features: NDArray[np.int32]
    kept_weights: NDArray[np.float32]  # shape (n_tasks, n_features_kept): their psi
    day: DayContext | None = None  # kinds and order groups of the tasks, for "day-adjusted"
    standardizer: SparseStandardizer | None = None  # what standardised the columns
    # Let the evidence of a task hold its graphs as well, so that later instances can be tied to them.
    keep_graphs: bool = False

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return int(self.decisions.shape[1])

    def past_positive(self, task: int) -> NDArray[np.bool_]:
        """Return which past instances have the decision of `task`."""
        return self.positive(task)[: self.n_past]

    def recent_positive(self, task: int) -> NDArray[np.bool_]:
        """Return which recent instances have the decision of `task`."""
        return self.positive(task)[self.n_past :]

    def positive(self, task: int) -> NDArray[np.bool_]:
        """Return which instances have the decision of `task`."""
        positive = np.zeros(self.decisions.shape[0], dtype=bool)
        start, end = self.decisions.indptr[task : task + 2]
        positive[self.decisions.indices[start:end]] = self.decisions.data[start:end]
        return positive


def prepare_instances(
    X: Matrix,
    Y: Matrix,
    is_flag: NDArray[np.bool_],
    groups: IntArray,
    past: IntArray,
    recent: IntArray,
    parameters: ScoringParameters,
    is_elapsed: NDArray[np.bool_] | None = None,
    n_jobs: int | None = None,
) -> PreparedInstances:
    """Standardise by the past, order columns, and choose every task's features by their Wilcoxon score on the past."""
    rows = np.concatenate((past, recent))
    raw = sparse.csr_array(X)[rows]
    standardizer = SparseStandardizer(clip=parameters.clip).fit(raw[: len(past)], is_flag, is_elapsed)
    columns = sparse.csc_array(standardizer.transform(raw))
    del raw
    columns.sort_indices()
    decisions = sparse.csc_array(sparse.csr_array(Y)[rows])
    features, weights = _choose_features(columns, positive_decisions(decisions[: len(past)]), parameters, n_jobs)
    return PreparedInstances(columns, decisions, groups[rows], len(past), features, weights, standardizer=standardizer)


def _choose_features(
    columns: sparse.csc_array, past_decisions: sparse.csr_array, parameters: ScoringParameters, n_jobs: int | None
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    table = wilcoxon_table(columns, past_decisions, n_jobs=n_jobs, first_rows=True)
    n_features, n_tasks = table.auc.shape
    n_kept = min(parameters.n_features_kept, n_features)
    features = np.full((n_tasks, n_kept), -1, dtype=np.int32)
    weights = np.zeros((n_tasks, n_kept), dtype=np.float32)
    for task in range(n_tasks):
        psi = np.abs(2 * table.auc[:, task] - 1)
        psi[np.abs(table.z[:, task]) < parameters.min_abs_z] = 0.0
        # Stable: of equal weights the lower feature index is kept, on every machine.
        order = np.argsort(-psi, kind="stable")[:n_kept]
        order = order[psi[order] > 0]
        features[task, : len(order)] = order
        weights[task, : len(order)] = psi[order]
    return features, weights


def weighted_task_rows(prepared: PreparedInstances, task: int, room: RoomForRows | None = None) -> FeatureRows:
    """Return x_ij = psi_j value_ij / mean(psi) of all instances over the kept features of `task`, without zeros."""
    kept = prepared.kept_features[task]
    kept = kept[kept >= 0].astype(np.int64)
    psi = prepared.kept_weights[task, : len(kept)]
    factors = psi / np.float32(psi.mean(dtype=np.float64)) if len(kept) else psi
    return FeatureRows.of_columns(prepared.columns, kept, factors, room)


def most_telling(prepared: PreparedInstances, task: int, n_features: int) -> NDArray[np.float32]:
    """Return the features of `weighted_task_rows` with their zeros, of the `n_features` of largest psi alone."""
    features, weights = prepared.kept_features[:, :n_features], prepared.kept_weights[:, :n_features]
    rows = weighted_task_rows(replace(prepared, kept_features=features, kept_weights=weights), task)
    if rows.n_features == 0:
        raise TaskNotScorableError("no feature tells its past decisions apart")
    return rows.dense()


@dataclass(frozen=True)
class TaskData:
    """One task of the prepared instances, as functions of evidence read it."""

    prepared: PreparedInstances
    task: int  # column of the decisions
    parameters: ScoringParameters
    # Everything drawn depends on (seed, task, number of the draw) alone, so that neither order nor workers matter.
    seed: int

    @cached_property
    def rows(self) -> FeatureRows:
        """Weighted features as from `weighted_task_rows`; they hold until this thread reads another task's.

        Raise TaskNotScorableError when no feature tells the task's decisions apart.
        """
        # Fresh memory for each task costs a fifth of its time.
        if not hasattr(_THREAD, "room"):
            _THREAD.room = RoomForRows()
        rows = weighted_task_rows(self.prepared, self.task, _THREAD.room)
        if rows.n_features == 0:
            raise TaskNotScorableError("no feature tells its past decisions apart")
        return rows

    @cached_property
    def features(self) -> NDArray[np.float32]:
        """The same with their zeros, of shape (n_past + n_recent, n_kept)."""
        return self.rows.dense()

    @cached_property
    def y(self) -> FloatArray:
        """Decisions, -1 or +1, of shape (n_past + n_recent,)."""
        return np.where(self.prepared.positive(self.task), 1.0, -1.0)

    @property
    def past_y(self) -> FloatArray:
        """Decisions of past instances."""
        return self.y[: self.prepared.n_past]


_THREAD = threading.local()
