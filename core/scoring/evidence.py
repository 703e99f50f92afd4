"""What the past says about every instance of one task, before tasks are made comparable.

Each function computes the arrays of one kind of evidence; `core.scoring.scorers` says which scorer needs which. Arrays
have shape (n_past + n_recent,) unless stated otherwise. With `PreparedInstances.keep_graphs` they include what later
instances are scored against; see `core.scoring.stored_past`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.graph.backbone import SampledNodes, sample_balanced_nodes
from core.graph.feature_rows import FeatureRows
from core.scoring.logistic import RidgeLogistic, fit_ridge_logistic
from core.scoring.prepared import TaskData, most_telling
from core.scoring.stored_past import pack_graphs
from core.scoring.task_graph import Extension, TaskGraph, build_task_graph, extend, soft_labels_with_own
from core.validation import FloatArray, IntArray


def graph_evidence(data: TaskData) -> dict[str, NDArray[Any]]:
    """Return what the graphs expect without the own patient: ``left_out_soft_label`` and ``support``.

    They are means over the graphs of q / (g + a) and a / (c + g + a). Also ``node_rows`` of shape (n_graphs, n_nodes),
    rows of the past, filled up with -1.
    """
    parameters = data.parameters
    drawn = [sampled_nodes(data, number) for number in range(parameters.n_graphs)]
    node_rows = np.full((len(drawn), parameters.n_nodes), -1, dtype=np.int32)
    for rows, nodes in zip(node_rows, drawn, strict=True):
        rows[: len(nodes.rows)] = nodes.rows
    graphs = [build_task_graph(data.rows, data.past_y, nodes, data.prepared.groups, parameters) for nodes in drawn]
    return {
        **mean_over_graphs(graphs, data.rows, data.prepared.groups, parameters.n_neighbors),
        "node_rows": node_rows,
        **(pack_graphs(graphs, "graph") if data.prepared.keep_graphs else {}),
    }


def mean_over_graphs(
    graphs: Sequence[TaskGraph], rows: FeatureRows, groups: IntArray, n_neighbors: int
) -> dict[str, NDArray[Any]]:
    """Return ``left_out_soft_label`` and ``support`` of instances, without the labels of their own group."""
    found = [expectation_and_support(graph, extend(graph, rows, groups, n_neighbors)) for graph in graphs]
    soft_label, support = (sum(arrays) / len(graphs) for arrays in zip(*found, strict=True))
    return {"left_out_soft_label": soft_label.astype(np.float32), "support": support.astype(np.float32)}


def expectation_and_support(graph: TaskGraph, found: Extension) -> tuple[FloatArray, FloatArray]:
    """Return q / (g + a), the expected decision of instances without their own label, and a / (c + g + a)."""
    a, q, c, g = found.conductance, found.inflow, graph.label_weight, graph.regularization
    return graph.center + np.divide(q, g + a, out=np.zeros_like(q), where=g + a > 0), a / (c + g + a)


def sampled_nodes(data: TaskData, number: int) -> SampledNodes:
    """Return the nodes of the task's graph of a number."""
    random = np.random.default_rng([data.seed, data.task, number])
    return sample_balanced_nodes(data.past_y, data.parameters.n_nodes, random)


def paper_evidence(data: TaskData) -> dict[str, NDArray[Any]]:
    """Return ``paper_soft_label``: l* with the own label in, by the paper's settings.

    Nodes have the soft label that they have in the graph.
    """
    parameters = data.parameters.of_paper()
    total = np.zeros(len(data.y))
    graphs: list[TaskGraph] = []
    for number in range(parameters.n_graphs):
        nodes = sampled_nodes(data, number)
        graph = build_task_graph(data.rows, data.past_y, nodes, None, parameters)
        # The paper pulls soft labels towards 0, whatever the prior.
        graph = replace(graph, labels=data.y[nodes.rows], center=0.0)
        if data.prepared.keep_graphs:
            graphs.append(graph)
        soft_label = soft_labels_with_own(graph, data.rows, data.y, parameters.n_neighbors)
        soft_label[nodes.rows] = graph.soft_labels()
        total += soft_label
    return {
        "paper_soft_label": (total / parameters.n_graphs).astype(np.float32),
        **(pack_graphs(graphs, "paper_graph", with_points=False) if graphs else {}),
    }


def logistic_evidence(data: TaskData) -> dict[str, NDArray[Any]]:
    """Return ``logistic_log_odds``, and ``logistic_coefficients`` of shape (n_kept + 1,), the intercept last."""
    fit, log_odds = _logistic_log_odds(data, data.features)
    return {"logistic_log_odds": log_odds, "logistic_coefficients": np.append(fit.coefficients, fit.intercept)}


def short_logistic_evidence(data: TaskData) -> dict[str, NDArray[Any]]:
    """Return ``short_logistic_log_odds`` and ``short_logistic_coefficients``, of the most telling features alone.

    See `logistic_evidence`. A fit takes time by the square of its features, and as a member the rest adds nothing.
    """
    features = most_telling(data.prepared, data.task, data.parameters.n_member_features)
    fit, log_odds = _logistic_log_odds(data, features)
    return {
        "short_logistic_log_odds": log_odds,
        "short_logistic_coefficients": np.append(fit.coefficients, fit.intercept),
    }


def day_evidence(data: TaskData) -> dict[str, NDArray[Any]]:
    """Return ``day_adjusted_log_odds``: of a logistic regression that also sees the day's other decisions."""
    prepared = data.prepared
    if prepared.day is None:
        return {}
    day = prepared.day.features(prepared.decisions, data.task, prepared.n_past)
    return {"day_adjusted_log_odds": _logistic_log_odds(data, np.hstack((data.features, day)))[1]}


def _logistic_log_odds(data: TaskData, features: NDArray[np.float32]) -> tuple[RidgeLogistic, NDArray[np.float32]]:
    """Fit on the past and return log odds of all instances; past ones from a fit without their own patient."""
    prepared, n_past = data.prepared, data.prepared.n_past
    positive = prepared.past_positive(data.task).astype(np.float64)
    fit = fit_ridge_logistic(features[:n_past], positive, data.parameters.logistic_strength, prepared.groups[:n_past])
    return fit, np.concatenate((fit.left_out_log_odds, fit.log_odds(features[n_past:]))).astype(np.float32)
