"""New instances scored against the stored past of an earlier run, with nothing ranked, drawn or calibrated again."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from core.features import SparseStandardizer
from core.graph.backbone import SampledNodes
from core.graph.feature_rows import FeatureRows
from core.scoring.evidence import mean_over_graphs
from core.scoring.logistic import RidgeLogistic
from core.scoring.parameters import ScoringParameters
from core.scoring.prepared import PreparedInstances, most_telling, weighted_task_rows
from core.scoring.shared import SharedModel
from core.scoring.stored_past import unpack_graphs, unpack_points
from core.scoring.task_graph import NOBODY, TaskGraph, build_task_graph, soft_labels_with_own
from core.validation import IntArray, Matrix

STORED_ARRAYS = ("node_rows", "logistic_coefficients", "short_logistic_coefficients", "graph_", "paper_graph_")
"""Beginnings of the names of the arrays of evidence that new instances need."""


@dataclass(frozen=True)
class StoredPast:
    """What a run stored of its past for all its tasks together."""

    standardizer: SparseStandardizer  # fitted on the past
    kept_features: NDArray[np.int32]  # shape (n_tasks, n_features_kept)
    # Shape (n_tasks, n_features_kept): as in `core.scoring.prepared.PreparedInstances`.
    kept_weights: NDArray[np.float32]
    parameters: ScoringParameters
    # Shape (n_past,): given where an instance's own patient is left out of its neighbourhood.
    past_patients: NDArray[Any] | None = None
    shared: SharedModel | None = None  # what "shared" learned of all tasks together


@dataclass(frozen=True)
class NewInstances:
    """New instances, standardised by the past."""

    prepared: PreparedInstances  # without a past of their own
    past: StoredPast
    past_groups: IntArray | None  # shape (n_past,): patients of the past in the codes of ``prepared.groups``
    # Column of each task that the shared model knows -> its column in `shared_log_odds`.
    shared_tasks: Mapping[int, int]
    # Shape (n_new, n_shared_tasks): what all tasks together expect; empty without a shared model.
    shared_log_odds: NDArray[np.float32]
    shared_support: NDArray[np.float32]  # shape (n_new,)

    def shared_of_task(self, task: int) -> dict[str, NDArray[Any]]:
        """Return the evidence of one task that all tasks have together."""
        if task not in self.shared_tasks:
            return {}
        log_odds = self.shared_log_odds[:, self.shared_tasks[task]]
        return {"shared_log_odds": log_odds, "shared_support": self.shared_support}


def prepare_new_instances(past: StoredPast, X: Matrix, Y: Matrix, patients: NDArray[Any]) -> NewInstances:
    """Standardise new instances, raw features and decisions in the columns of the run, as the past was."""
    columns = sparse.csc_array(past.standardizer.transform(X))
    columns.sort_indices()
    groups, past_groups = np.full(X.shape[0], NOBODY, dtype=np.int64), None
    if past.past_patients is not None:
        known, past_groups = np.unique(past.past_patients, return_inverse=True)
        place = np.searchsorted(known, patients).clip(max=len(known) - 1)
        groups = np.where(known[place] == patients, place, NOBODY)
    decisions = sparse.csc_array(Y)
    prepared = PreparedInstances(columns, decisions, groups, 0, past.kept_features, past.kept_weights)
    if past.shared is None or past.past_patients is not None:
        # The shared graph cannot leave out a patient afterwards.
        return NewInstances(
            prepared, past, past_groups, {}, np.empty((X.shape[0], 0), np.float32), np.empty(0, np.float32)
        )
    place_of = {int(task): place for place, task in enumerate(past.shared.tasks)}
    expected = past.shared.expect(sparse.csr_array(columns), sparse.csr_array(X))
    return NewInstances(prepared, past, past_groups, place_of, expected.log_odds, expected.support)


@dataclass(frozen=True)
class NewTaskData:
    """One task of new instances, as functions of evidence read it."""

    new: NewInstances
    task: int  # column of the run's tasks
    stored: Mapping[str, NDArray[Any]]  # `STORED_ARRAYS` of the task

    @property
    def parameters(self) -> ScoringParameters:
        """Parameters of the run."""
        return self.new.past.parameters

    @cached_property
    def rows(self) -> FeatureRows:
        """Weighted features of the new instances."""
        return weighted_task_rows(self.new.prepared, self.task)

    @cached_property
    def points(self) -> list[NDArray[np.float32]]:
        """Nodes of each graph."""
        return unpack_points(self.stored, "graph", self.rows.n_features)


def new_graph_evidence(data: NewTaskData) -> dict[str, NDArray[Any]]:
    """Return ``left_out_soft_label`` and ``support``; see `core.scoring.evidence.graph_evidence`."""
    return mean_over_graphs(_graphs(data), data.rows, data.new.prepared.groups, data.parameters.n_neighbors)


def _graphs(data: NewTaskData) -> list[TaskGraph]:
    """Return the stored graphs; where a new instance's patient has nodes, solved again without patients' own edges."""
    parameters, new = data.parameters, data.new
    stored = unpack_graphs(data.stored, "graph", data.points, parameters)
    if new.past_groups is None:
        return list(stored)
    graphs: list[TaskGraph] = []
    for graph, rows in zip(stored, data.stored["node_rows"], strict=True):
        groups = new.past_groups[rows[rows >= 0]]
        if not np.isin(groups, new.prepared.groups).any():
            graphs.append(replace(graph, groups=groups))
            continue
        nodes = SampledNodes(np.arange(len(groups)), graph.multiplicities)
        solved = build_task_graph(graph.points, graph.labels, nodes, groups, parameters)
        # Labels stand against the mean of the whole past, which the nodes alone do not tell.
        graphs.append(replace(solved, labels=graph.labels, center=graph.center))
    return graphs


def new_paper_evidence(data: NewTaskData) -> dict[str, NDArray[Any]]:
    """Return ``paper_soft_label``; see `core.scoring.evidence.paper_evidence`."""
    parameters = data.parameters.of_paper()
    graphs = unpack_graphs(data.stored, "paper_graph", data.points, parameters)
    labels = np.where(data.new.prepared.recent_positive(data.task), 1.0, -1.0)
    found = [soft_labels_with_own(graph, data.rows, labels, parameters.n_neighbors) for graph in graphs]
    return {"paper_soft_label": np.mean(found, axis=0).astype(np.float32)}


def new_logistic_evidence(data: NewTaskData) -> dict[str, NDArray[Any]]:
    """Return ``logistic_log_odds`` by the stored coefficients."""
    return {"logistic_log_odds": _by_coefficients(data.stored["logistic_coefficients"], data.rows.dense())}


def new_short_logistic_evidence(data: NewTaskData) -> dict[str, NDArray[Any]]:
    """Return ``short_logistic_log_odds`` by the stored coefficients."""
    features = most_telling(data.new.prepared, data.task, data.parameters.n_member_features)
    return {"short_logistic_log_odds": _by_coefficients(data.stored["short_logistic_coefficients"], features)}


def _by_coefficients(coefficients: NDArray[Any], features: NDArray[np.float32]) -> NDArray[np.float32]:
    fit = RidgeLogistic(coefficients[:-1], float(coefficients[-1]), np.empty(0))
    return fit.log_odds(features).astype(np.float32)
