"""New instances scored against what an earlier run learned: nothing is ranked, drawn, solved or calibrated again."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from core.features import SparseStandardizer
from core.graph.backbone import SampledNodes
from core.graph.feature_rows import FeatureRows
from core.scoring.evidence import Evidence, PreparedInstances, weighted_task_rows
from core.scoring.logistic import RidgeLogistic
from core.scoring.parameters import LOGISTIC, PAIR, SCORERS, SOFTHAD_PAPER, ScoringParameters
from core.scoring.stored_past import unpack_graphs, unpack_points
from core.scoring.task_graph import NOBODY, TaskGraph, build_task_graph, extend
from core.validation import IntArray, Matrix

NEW_INSTANCE_SCORERS = SCORERS
"""What can be scored this way: a day-adjusted score needs the day to be over, baselines keep no arrays."""
KEPT_ARRAYS = ("node_rows", "logistic_coefficients", "graph_", "paper_graph_")
"""Beginnings of the names of arrays of evidence that new instances need."""


@dataclass(frozen=True)
class LearnedPast:
    """What a run learned for all its tasks together.

    Parameters
    ----------
    standardizer : SparseStandardizer
        Fitted on the past.
    kept_features : int32 array of shape (n_tasks, n_features_kept)
    kept_weights : float32 array of shape (n_tasks, n_features_kept)
        As in `core.scoring.evidence.PreparedInstances`.
    parameters : ScoringParameters
    past_patients : array of str of shape (n_past,), optional
        Given where an instance's own patient is left out of its neighbourhood.
    """

    standardizer: SparseStandardizer
    kept_features: NDArray[np.int32]
    kept_weights: NDArray[np.float32]
    parameters: ScoringParameters
    past_patients: NDArray[Any] | None = None


@dataclass(frozen=True)
class NewInstances:
    """New instances, standardised by the past.

    Parameters
    ----------
    prepared : PreparedInstances
        Without a past of their own.
    learned : LearnedPast
    past_groups : int array of shape (n_past,), optional
        Patients of the past in the codes of ``prepared.groups``.
    """

    prepared: PreparedInstances
    learned: LearnedPast
    past_groups: IntArray | None


def prepare_new_instances(learned: LearnedPast, X: Matrix, Y: Matrix, patients: NDArray[Any]) -> NewInstances:
    """Standardise new instances as the past was.

    Parameters
    ----------
    learned : LearnedPast
    X : sparse matrix of shape (n_new, n_features)
        Raw features in the columns that the run learned from.
    Y : sparse matrix of shape (n_new, n_tasks), bool
        Decisions in the columns of the run.
    patients : array of str of shape (n_new,)
    """
    columns = sparse.csc_array(learned.standardizer.transform(X))
    columns.sort_indices()
    groups, past_groups = np.full(X.shape[0], NOBODY, dtype=np.int64), None
    if learned.past_patients is not None:
        known, past_groups = np.unique(learned.past_patients, return_inverse=True)
        place = np.searchsorted(known, patients).clip(max=len(known) - 1)
        groups = np.where(known[place] == patients, place, NOBODY)
    decisions = sparse.csc_array(Y)
    prepared = PreparedInstances(columns, decisions, groups, 0, learned.kept_features, learned.kept_weights)
    return NewInstances(prepared, learned, past_groups)


def new_evidence(new: NewInstances, task: int, kept: Mapping[str, NDArray[Any]], scorers: tuple[str, ...]) -> Evidence:
    """Compute what the past says about every new instance of one task; each by itself, whoever else is new.

    Parameters
    ----------
    new : NewInstances
    task : int
        Column of the run's tasks.
    kept : mapping of str to arrays
        `KEPT_ARRAYS` of the run's evidence, with graphs.
    scorers : tuple of str
        Of `NEW_INSTANCE_SCORERS`.

    Returns
    -------
    mapping of str to float32 arrays of shape (n_new,)
        Names as in `core.scoring.evidence.task_evidence`; to about 1e-7 what a run with the same past gives.
    """
    parameters = new.learned.parameters
    features, _ = weighted_task_rows(new.prepared, task)
    points = unpack_points(kept, "graph", features.n_features)
    c, g = parameters.label_weight, parameters.regularization
    soft_label, support = np.zeros(len(features)), np.zeros(len(features))
    for graph in _graphs(new, kept, points):
        found = extend(graph, features, new.prepared.groups, parameters.n_neighbors)
        a, q = found.conductance, found.inflow
        soft_label += graph.center + np.divide(q, g + a, out=np.zeros_like(q), where=g + a > 0)
        support += a / (c + g + a)
    n_graphs = len(points)
    evidence: dict[str, NDArray[Any]] = {
        "left_out_soft_label": (soft_label / n_graphs).astype(np.float32),
        "support": (support / n_graphs).astype(np.float32),
    }
    if LOGISTIC in scorers or PAIR in scorers:
        coefficients = kept["logistic_coefficients"]
        fit = RidgeLogistic(coefficients[:-1], float(coefficients[-1]), np.empty(0))
        evidence["logistic_log_odds"] = fit.log_odds(features.dense()).astype(np.float32)
    if SOFTHAD_PAPER in scorers:
        evidence["paper_soft_label"] = _paper_soft_label(new, task, kept, features, points)
    return evidence


def _graphs(new: NewInstances, kept: Mapping[str, NDArray[Any]], points: list[NDArray[np.float32]]) -> list[TaskGraph]:
    parameters = new.learned.parameters
    graphs = unpack_graphs(
        kept,
        "graph",
        points,
        label_weight=parameters.label_weight,
        regularization=parameters.regularization,
        is_local=parameters.length_scale == "local",
    )
    if new.past_groups is None:
        return list(graphs)
    return [
        _with_patients(graph, new.past_groups[rows[rows >= 0]], new, kept)
        for graph, rows in zip(graphs, kept["node_rows"], strict=True)
    ]


def _with_patients(
    graph: TaskGraph, groups: IntArray, new: NewInstances, kept: Mapping[str, NDArray[Any]]
) -> TaskGraph:
    """Leave out the instance's own patient; if it has nodes, the graph is solved again in full precision."""
    if not np.isin(groups, new.prepared.groups).any():
        return replace(graph, groups=groups)
    parameters = new.learned.parameters
    nodes = SampledNodes(np.arange(len(groups)), graph.multiplicities)
    solved = build_task_graph(
        graph.points,
        graph.labels,
        nodes,
        groups,
        n_neighbors=parameters.n_neighbors,
        length_scale=parameters.length_scale,
        label_weight=parameters.label_weight,
        regularization=parameters.regularization,
    )
    # Labels stand against the mean of the whole past, which the nodes alone do not tell.
    return replace(solved, labels=graph.labels, center=graph.center)


def _paper_soft_label(
    new: NewInstances,
    task: int,
    kept: Mapping[str, NDArray[Any]],
    features: FeatureRows,
    points: list[NDArray[np.float32]],
) -> NDArray[np.float32]:
    parameters = new.learned.parameters
    c, g = parameters.paper_label_weight, parameters.paper_regularization
    graphs = unpack_graphs(
        kept,
        "paper_graph",
        points,
        label_weight=c,
        regularization=g,
        is_local=parameters.paper_length_scale == "local",
    )
    labels = np.where(new.prepared.recent_positive(task), 1.0, -1.0)
    nobody = np.full(len(features), NOBODY, dtype=np.int64)
    total = np.zeros(len(features))
    for graph in graphs:
        found = extend(graph, features, nobody, parameters.n_neighbors)
        total += (c * labels + found.inflow) / (c + g + found.conductance)
    return (total / len(graphs)).astype(np.float32)
