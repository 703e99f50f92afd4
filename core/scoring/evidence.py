"""First stage of scoring: what the past says about every instance of one task, before tasks are made comparable."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from core.errors import InvalidInputError, TaskNotScorableError
from core.features import SparseStandardizer, positive_decisions, wilcoxon_table
from core.graph.backbone import SampledNodes, sample_balanced_nodes
from core.graph.feature_rows import FeatureRows, RoomForRows
from core.scoring.logistic import RidgeLogistic, fit_ridge_logistic
from core.scoring.parameters import DAY_ADJUSTED, LOGISTIC, PAIR, SOFTHAD_PAPER, ScoringParameters
from core.scoring.stored_past import pack_graphs
from core.scoring.task_graph import NOBODY, TaskGraph, build_task_graph, extend
from core.validation import FloatArray, IntArray, Matrix
from core.vocabulary import Kind

COUNT_WEIGHT: Final = 5.0
"""Size of a standardised count beside the standardised features of the state."""


@dataclass(frozen=True)
class DayContext:
    """Kinds and order groups of all tasks.

    Parameters
    ----------
    is_lab : bool array of shape (n_tasks,)
        Lab orders; the rest are medications.
    groups : int array of shape (n_tasks,)
        Order groups; a task that is alone has its own.
    """

    is_lab: NDArray[np.bool_]
    groups: IntArray

    @classmethod
    def of(cls, kinds: Sequence[str], order_groups: Sequence[str]) -> "DayContext":
        """Read kinds and the names of order groups ("" = alone) in the order of the tasks.

        Raises
        ------
        InvalidInputError
            When there is not one of each per task, or a kind is unknown.
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
        return cls(np.array([kind == Kind.LAB_ORDER for kind in kinds], dtype=bool), groups.astype(np.int64))

    @classmethod
    def needed(cls, kinds: Sequence[str] | None, order_groups: Sequence[str] | None, n_tasks: int) -> "DayContext":
        """Read kinds and order groups of `n_tasks` tasks, refusing their absence by name."""
        if kinds is None or order_groups is None or len(kinds) != n_tasks:
            raise InvalidInputError(
                f'The scorer "day-adjusted" needs kinds and order_groups of all {n_tasks} tasks. '
                "Pass them, or leave it out."
            )
        return cls.of(kinds, order_groups)

    def other_counts(self, decisions: sparse.csc_array, task: int) -> FloatArray:
        """Count other labs and other drugs decided for each instance; shape (n_instances, 2)."""
        outside = self.groups != self.groups[task]
        chosen = np.column_stack((outside & self.is_lab, outside & ~self.is_lab))
        return np.asarray(decisions @ chosen.astype(np.float64))

    def features(self, decisions: sparse.csc_array, task: int, n_past: int) -> NDArray[np.float32]:
        """Standardise log(1 + count) by the past, times `COUNT_WEIGHT`; shape (n_instances, 2)."""
        logs = np.log1p(self.other_counts(decisions, task))
        past = logs[:n_past]
        spread = past.std(axis=0)
        scale = np.divide(COUNT_WEIGHT, spread, out=np.zeros(2), where=spread > 0)
        return np.asarray((logs - past.mean(axis=0)) * scale, dtype=np.float32)


Evidence: TypeAlias = Mapping[str, NDArray[Any]]
"""Arrays of one finished task by name; fit for an .npz file without pickle."""


@dataclass(frozen=True)
class PreparedInstances:
    """Past and recent instances of one call, standardised and column by column; shared by all tasks.

    Parameters
    ----------
    columns : csc_array of shape (n_past + n_recent, n_features), float32
        Past rows first.
    decisions : csc_array of shape (n_past + n_recent, n_tasks), bool
    groups : int array of shape (n_past + n_recent,)
        Patients, or every instance by itself where patients need not be left out.
    n_past : int
    kept_features : int32 array of shape (n_tasks, n_features_kept)
        Features of largest psi of each task, largest first; -1 fills up.
    kept_weights : float32 array of shape (n_tasks, n_features_kept)
        Their psi.
    day : DayContext, optional
        Kinds and order groups of the tasks, for "day-adjusted".
    standardizer : SparseStandardizer, optional
        What standardised the columns.
    keep_graphs : bool
        Let the evidence of a task hold its graphs as well, so that later instances can be tied to them.
    """

    columns: sparse.csc_array
    decisions: sparse.csc_array
    groups: IntArray
    n_past: int
    kept_features: NDArray[np.int32]
    kept_weights: NDArray[np.float32]
    day: DayContext | None = None
    standardizer: SparseStandardizer | None = None
    keep_graphs: bool = False

    @property
    def n_tasks(self) -> int:
        """Number of tasks."""
        return int(self.decisions.shape[1])

    def past_positive(self, task: int) -> NDArray[np.bool_]:
        """Tell which past instances have the decision of `task`."""
        return self._positive(task)[: self.n_past]

    def recent_positive(self, task: int) -> NDArray[np.bool_]:
        """Tell which recent instances have the decision of `task`."""
        return self._positive(task)[self.n_past :]

    def _positive(self, task: int) -> NDArray[np.bool_]:
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


def weighted_task_features(prepared: PreparedInstances, task: int) -> tuple[NDArray[np.float32], IntArray]:
    """Dense x_ij = psi_j value_ij / mean(psi) over the kept features of `task`, for all instances.

    Returns
    -------
    features : float32 array of shape (n_past + n_recent, n_kept)
    kept : int array of shape (n_kept,)
    """
    rows, kept = weighted_task_rows(prepared, task)
    return rows.dense(), kept


def weighted_task_rows(
    prepared: PreparedInstances, task: int, room: RoomForRows | None = None
) -> tuple[FeatureRows, IntArray]:
    """Leave the zeros out of `weighted_task_features`; in health records four in five entries are zeros."""
    kept = prepared.kept_features[task]
    kept = kept[kept >= 0].astype(np.int64)
    psi = prepared.kept_weights[task, : len(kept)]
    factors = psi / np.float32(psi.mean(dtype=np.float64)) if len(kept) else psi
    return FeatureRows.of_columns(prepared.columns, kept, factors, room), kept


_THREAD = threading.local()


def _room_of_this_thread() -> RoomForRows:
    """Memory that one task after another is laid out in: fresh pages for each cost a fifth of its time."""
    if not hasattr(_THREAD, "room"):
        _THREAD.room = RoomForRows()
    room: RoomForRows = _THREAD.room
    return room


def task_evidence(
    prepared: PreparedInstances, task: int, parameters: ScoringParameters, scorers: tuple[str, ...], seed: int
) -> dict[str, NDArray[Any]]:
    """Compute what the past says about every instance of one task.

    Returns
    -------
    dict of arrays
        ``left_out_soft_label`` and ``support`` of shape (n_past + n_recent,), the means over graphs of q / (g + a) and
        a / (c + g + a) with the own patient left out; ``node_rows`` of shape (n_graphs, n_nodes), rows of the past, -1
        fills up; with "logistic" or "pair" also ``logistic_log_odds`` and ``logistic_coefficients`` (intercept last),
        with "softhad-paper" also ``paper_soft_label``, with "day-adjusted" also ``day_adjusted_log_odds``. With
        `PreparedInstances.keep_graphs` also ``graph_...`` and ``paper_graph_...``; see `core.scoring.stored_past`.

    Raises
    ------
    TaskNotScorableError
        When no feature tells the task's decisions apart.
    """
    rows, kept = weighted_task_rows(prepared, task, _room_of_this_thread())
    if len(kept) == 0:
        raise TaskNotScorableError("no feature tells its past decisions apart")
    positive = prepared.past_positive(task)
    y = np.where(positive, 1.0, -1.0)
    evidence = _graph_evidence(prepared, task, rows, y, parameters, seed)
    if SOFTHAD_PAPER in scorers:
        evidence |= _paper_evidence(prepared, task, rows, y, parameters, seed)
    if not {LOGISTIC, PAIR, DAY_ADJUSTED}.intersection(scorers):
        return evidence
    features = rows.dense()
    if LOGISTIC in scorers or PAIR in scorers:
        fit, evidence["logistic_log_odds"] = _logistic_log_odds(prepared, features, positive, parameters)
        evidence["logistic_coefficients"] = np.append(fit.coefficients, fit.intercept)
    if DAY_ADJUSTED in scorers and prepared.day is not None:
        day = prepared.day.features(prepared.decisions, task, prepared.n_past)
        with_day = np.hstack((features, day))
        _, evidence["day_adjusted_log_odds"] = _logistic_log_odds(prepared, with_day, positive, parameters)
    return evidence


def _logistic_log_odds(
    prepared: PreparedInstances,
    features: NDArray[np.float32],
    positive: NDArray[np.bool_],
    parameters: ScoringParameters,
) -> tuple[RidgeLogistic, NDArray[np.float32]]:
    """Fit on the past, and log odds of all instances; past ones from a fit without their own patient."""
    n_past = prepared.n_past
    fit = fit_ridge_logistic(
        features[:n_past], positive.astype(np.float64), parameters.logistic_strength, prepared.groups[:n_past]
    )
    return fit, np.concatenate((fit.left_out_log_odds, fit.log_odds(features[n_past:]))).astype(np.float32)


def _nodes(y: FloatArray, parameters: ScoringParameters, seed: int, task: int, graph: int) -> SampledNodes:
    """Nodes that depend on seed, task and graph alone, so that neither order nor workers matter."""
    return sample_balanced_nodes(y, parameters.n_nodes, np.random.default_rng([seed, task, graph]))


def _graph_evidence(
    prepared: PreparedInstances,
    task: int,
    features: FeatureRows,
    y: FloatArray,
    parameters: ScoringParameters,
    seed: int,
) -> dict[str, NDArray[Any]]:
    c, g = parameters.label_weight, parameters.regularization
    soft_label, support = np.zeros(len(features)), np.zeros(len(features))
    node_rows = np.full((parameters.n_graphs, parameters.n_nodes), -1, dtype=np.int32)
    kept: list[TaskGraph] = []
    for number in range(parameters.n_graphs):
        nodes = _nodes(y, parameters, seed, task, number)
        node_rows[number, : len(nodes.rows)] = nodes.rows
        graph = build_task_graph(
            features,
            y,
            nodes,
            prepared.groups,
            n_neighbors=parameters.n_neighbors,
            length_scale=parameters.length_scale,
            label_weight=c,
            regularization=g,
        )
        if prepared.keep_graphs:
            kept.append(graph)
        found = extend(graph, features, prepared.groups, parameters.n_neighbors)
        a, q = found.conductance, found.inflow
        soft_label += graph.center + np.divide(q, g + a, out=np.zeros_like(q), where=g + a > 0)
        support += a / (c + g + a)
    return {
        "left_out_soft_label": (soft_label / parameters.n_graphs).astype(np.float32),
        "support": (support / parameters.n_graphs).astype(np.float32),
        "node_rows": node_rows,
        **(pack_graphs(kept, "graph") if kept else {}),
    }


def _paper_evidence(
    prepared: PreparedInstances,
    task: int,
    features: FeatureRows,
    y: FloatArray,
    parameters: ScoringParameters,
    seed: int,
) -> dict[str, NDArray[Any]]:
    """l* of every instance with its own label in, by the paper's settings; nodes keep the soft label of the graph."""
    c, g = parameters.paper_label_weight, parameters.paper_regularization
    labels = np.concatenate((y, np.where(prepared.recent_positive(task), 1.0, -1.0)))
    nobody = np.full(len(features), NOBODY, dtype=np.int64)
    total = np.zeros(len(features))
    kept: list[TaskGraph] = []
    for number in range(parameters.n_graphs):
        nodes = _nodes(y, parameters, seed, task, number)
        graph = replace(
            build_task_graph(
                features,
                y,
                nodes,
                None,
                n_neighbors=parameters.n_neighbors,
                length_scale=parameters.paper_length_scale,
                label_weight=c,
                regularization=g,
            ),
            # The paper pulls soft labels towards 0, whatever the prior.
            labels=y[nodes.rows],
            center=0.0,
        )
        if prepared.keep_graphs:
            kept.append(graph)
        found = extend(graph, features, nobody, parameters.n_neighbors)
        soft_label = (c * labels + found.inflow) / (c + g + found.conductance)
        soft_label[nodes.rows] = graph.soft_labels()
        total += soft_label
    return {
        "paper_soft_label": (total / parameters.n_graphs).astype(np.float32),
        **(pack_graphs(kept, "paper_graph", with_points=False) if kept else {}),
    }
