"""First stage of scoring: what the past says about every instance of one task, before tasks are made comparable."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from core.backbone import SampledNodes, sample_balanced_nodes
from core.day_context import DayContext
from core.errors import TaskNotScorableError
from core.features import SparseStandardizer, positive_decisions, wilcoxon_table
from core.logistic import fit_ridge_logistic
from core.scoring_parameters import DAY_ADJUSTED, LOGISTIC, PAIR, SOFTHAD_PAPER, ScoringParameters
from core.task_graph import NOBODY, build_task_graph, extend
from core.validation import FloatArray, IntArray, Matrix

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
    """

    columns: sparse.csc_array
    decisions: sparse.csc_array
    groups: IntArray
    n_past: int
    kept_features: NDArray[np.int32]
    kept_weights: NDArray[np.float32]
    day: DayContext | None = None

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
) -> PreparedInstances:
    """Standardise by the past, order columns, and choose every task's features by their Wilcoxon score on the past."""
    rows = np.concatenate((past, recent))
    raw = sparse.csr_array(X)[rows]
    standardizer = SparseStandardizer(clip=parameters.clip).fit(raw[: len(past)], is_flag, is_elapsed)
    columns = sparse.csc_array(standardizer.transform(raw))
    del raw
    columns.sort_indices()
    decisions = sparse.csc_array(sparse.csr_array(Y)[rows])
    past_columns = sparse.csc_array(columns[: len(past)])
    features, weights = _choose_features(past_columns, positive_decisions(decisions[: len(past)]), parameters)
    return PreparedInstances(columns, decisions, groups[rows], len(past), features, weights)


def _choose_features(
    past_columns: sparse.csc_array, decisions: sparse.csr_array, parameters: ScoringParameters
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    table = wilcoxon_table(past_columns, decisions)
    psi = np.abs(2 * table.auc - 1)
    psi[np.abs(table.z) < parameters.min_abs_z] = 0.0
    n_kept = min(parameters.n_features_kept, psi.shape[0])
    features = np.full((psi.shape[1], n_kept), -1, dtype=np.int32)
    weights = np.zeros((psi.shape[1], n_kept), dtype=np.float32)
    for task in range(psi.shape[1]):
        # Stable: of equal weights the lower feature index is kept, on every machine.
        order = np.argsort(-psi[:, task], kind="stable")[:n_kept]
        order = order[psi[order, task] > 0]
        features[task, : len(order)] = order
        weights[task, : len(order)] = psi[order, task]
    return features, weights


def weighted_task_features(prepared: PreparedInstances, task: int) -> tuple[NDArray[np.float32], IntArray]:
    """Dense x_ij = psi_j value_ij / mean(psi) over the kept features of `task`, for all instances.

    Returns
    -------
    features : float32 array of shape (n_past + n_recent, n_kept)
    kept : int array of shape (n_kept,)
    """
    kept = prepared.kept_features[task]
    kept = kept[kept >= 0]
    psi = prepared.kept_weights[task, : len(kept)]
    scale = psi / np.float32(psi.mean(dtype=np.float64)) if len(kept) else psi
    by_feature = np.zeros((len(kept), prepared.columns.shape[0]), dtype=np.float32)
    indptr, indices, data = prepared.columns.indptr, prepared.columns.indices, prepared.columns.data
    for place, feature in enumerate(kept):
        part = slice(indptr[feature], indptr[feature + 1])
        by_feature[place, indices[part]] = data[part] * scale[place]
    return np.ascontiguousarray(by_feature.T), kept.astype(np.int64)


def task_evidence(
    prepared: PreparedInstances, task: int, parameters: ScoringParameters, scorers: tuple[str, ...], seed: int
) -> dict[str, NDArray[Any]]:
    """Compute what the past says about every instance of one task.

    Returns
    -------
    dict of arrays
        ``left_out_soft_label`` and ``support`` of shape (n_past + n_recent,), the means over graphs of q / (g + a) and
        a / (c + g + a) with the own patient left out; ``node_rows`` of shape (n_graphs, n_nodes), rows of the past, -1
        fills up; with "logistic" or "pair" also ``logistic_log_odds``, with "softhad-paper" also ``paper_soft_label``,
        with "day-adjusted" also ``day_adjusted_log_odds``.

    Raises
    ------
    TaskNotScorableError
        When no feature tells the task's decisions apart.
    """
    features, kept = weighted_task_features(prepared, task)
    if len(kept) == 0:
        raise TaskNotScorableError("no feature tells its past decisions apart")
    positive = prepared.past_positive(task)
    y = np.where(positive, 1.0, -1.0)
    evidence = _graph_evidence(prepared, task, features, y, parameters, seed)
    if LOGISTIC in scorers or PAIR in scorers:
        evidence["logistic_log_odds"] = _logistic_log_odds(prepared, features, positive, parameters)
    if DAY_ADJUSTED in scorers and prepared.day is not None:
        day = prepared.day.features(prepared.decisions, task, prepared.n_past)
        with_day = np.hstack((features, day))
        evidence["day_adjusted_log_odds"] = _logistic_log_odds(prepared, with_day, positive, parameters)
    if SOFTHAD_PAPER in scorers:
        evidence["paper_soft_label"] = _paper_soft_labels(prepared, task, features, y, parameters, seed)
    return evidence


def _logistic_log_odds(
    prepared: PreparedInstances,
    features: NDArray[np.float32],
    positive: NDArray[np.bool_],
    parameters: ScoringParameters,
) -> NDArray[np.float32]:
    """Log odds of all instances; past ones from a fit without their own patient."""
    n_past = prepared.n_past
    fit = fit_ridge_logistic(
        features[:n_past], positive.astype(np.float64), parameters.logistic_strength, prepared.groups[:n_past]
    )
    return np.concatenate((fit.left_out_log_odds, fit.log_odds(features[n_past:]))).astype(np.float32)


def _nodes(y: FloatArray, parameters: ScoringParameters, seed: int, task: int, graph: int) -> SampledNodes:
    """Nodes that depend on seed, task and graph alone, so that neither order nor workers matter."""
    return sample_balanced_nodes(y, parameters.n_nodes, np.random.default_rng([seed, task, graph]))


def _graph_evidence(
    prepared: PreparedInstances,
    task: int,
    features: NDArray[np.float32],
    y: FloatArray,
    parameters: ScoringParameters,
    seed: int,
) -> dict[str, NDArray[Any]]:
    c, g = parameters.label_weight, parameters.regularization
    soft_label, support = np.zeros(len(features)), np.zeros(len(features))
    node_rows = np.full((parameters.n_graphs, parameters.n_nodes), -1, dtype=np.int32)
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
        found = extend(graph, features, prepared.groups, parameters.n_neighbors)
        a, q = found.conductance, found.inflow
        soft_label += graph.center + np.divide(q, g + a, out=np.zeros_like(q), where=g + a > 0)
        support += a / (c + g + a)
    return {
        "left_out_soft_label": (soft_label / parameters.n_graphs).astype(np.float32),
        "support": (support / parameters.n_graphs).astype(np.float32),
        "node_rows": node_rows,
    }


def _paper_soft_labels(
    prepared: PreparedInstances,
    task: int,
    features: NDArray[np.float32],
    y: FloatArray,
    parameters: ScoringParameters,
    seed: int,
) -> NDArray[np.float32]:
    """l* of every instance with its own label in, by the paper's settings; nodes keep the soft label of the graph."""
    c, g = parameters.paper_label_weight, parameters.paper_regularization
    labels = np.concatenate((y, np.where(prepared.recent_positive(task), 1.0, -1.0)))
    nobody = np.full(len(features), NOBODY, dtype=np.int64)
    total = np.zeros(len(features))
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
        found = extend(graph, features, nobody, parameters.n_neighbors)
        soft_label = (c * labels + found.inflow) / (c + g + found.conductance)
        soft_label[nodes.rows] = graph.soft_labels()
        total += soft_label
    return (total / parameters.n_graphs).astype(np.float32)
