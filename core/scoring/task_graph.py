"""One task's backbone graph, and instances tied to it one by one with their own patient left out."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.graph.backbone import SampledNodes
from core.graph.extension import extend_sparse_rows, graph_nodes
from core.graph.feature_rows import FeatureRows, Features, as_rows
from core.graph.node_graph import Solved, leave_blocks_out
from core.graph.similarity import dense_similarity
from core.numerics.distances import symmetric_squared_distances
from core.scoring.parameters import ScoringParameters
from core.validation import FloatArray, IntArray

NOBODY = -1
"""Group of an instance that leaves no patient out."""


@dataclass(frozen=True)
class TaskGraph:
    """One backbone graph of a task, ready to take in instances one by one."""

    nodes: SampledNodes
    points: NDArray[np.float32]  # shape (n_nodes, n_features)
    labels: FloatArray  # shape (n_nodes,): -1 or +1, less `center`
    groups: IntArray  # shape (n_nodes,): patients; `NOBODY` where edges inside a patient are allowed
    scales: FloatArray  # shape (n_nodes,): s_i, or sigma everywhere
    inverse: FloatArray  # shape (n_nodes, n_nodes): G = (L^V + (c + g) V)^-1
    # `label_weight` and `regularization`: c and g.
    label_weight: float
    regularization: float
    center: float  # past mean of the labels where g > 0 pulls towards it, else 0
    is_local: bool  # whether the query's own distance to its 7th neighbour scales its similarities

    @property
    def multiplicities(self) -> FloatArray:
        """V, the weights of the nodes."""
        return self.nodes.multiplicities

    def soft_labels(self) -> FloatArray:
        """Return the soft labels h = c G V y of the nodes (less `center`)."""
        return np.asarray(self.label_weight * (self.inverse @ (self.multiplicities * self.labels)))


def build_task_graph(
    features: Features,
    y: FloatArray,
    nodes: SampledNodes,
    groups: IntArray | None,
    parameters: ScoringParameters,
) -> TaskGraph:
    """Join the nodes, rows of the past, and invert their system once; `y`, of shape (n_past,), is -1 or +1.

    Features have the past rows first. Between the days of a group, which is a patient, there is no edge.
    """
    points = features.dense(nodes.rows) if isinstance(features, FeatureRows) else features[nodes.rows]
    squared = symmetric_squared_distances(points.astype(np.float64))
    node_groups = None if groups is None else groups[nodes.rows]
    c, g, k = parameters.label_weight, parameters.regularization, min(parameters.n_neighbors, len(points) - 1)
    similarity, scales = dense_similarity(squared, k, parameters.length_scale, node_groups)
    v = nodes.multiplicities
    weighted = v[:, None] * similarity * v
    system = np.diag(weighted.sum(axis=1) + (c + g) * v) - weighted
    center = float(y.mean()) if g > 0 else 0.0
    return TaskGraph(
        nodes=nodes,
        points=points,
        labels=y[nodes.rows] - center,
        groups=np.full(len(points), NOBODY, dtype=np.int64) if node_groups is None else node_groups,
        scales=scales,
        inverse=np.asarray(np.linalg.inv(system), dtype=np.float64),
        label_weight=c,
        regularization=g,
        center=center,
        is_local=parameters.length_scale == "local",
    )


@dataclass(frozen=True)
class Extension:
    """What the fixed graph says about instances tied to it one by one."""

    conductance: FloatArray  # shape (n,): a: how strongly the instance is tied to past decisions; 0 = isolated
    inflow: FloatArray  # shape (n,): q; q / (g + a) is the expectation without the instance's own label


def extend(graph: TaskGraph, features: Features, groups: IntArray, n_neighbors: int) -> Extension:
    """Return the exact one-node extension of every instance, without the labels of its own patient, if not `NOBODY`."""
    soft_labels = graph.soft_labels()
    patients, block_of_node = np.unique(graph.groups, return_inverse=True)
    solved = Solved(graph.inverse, soft_labels, graph.labels, graph.multiplicities, graph.label_weight)
    left = leave_blocks_out(solved, block_of_node)
    place = np.searchsorted(patients, groups).clip(max=len(patients) - 1)
    blocks = np.where((groups != NOBODY) & (patients[place] == groups), place, -1)
    conductance, inflow = extend_sparse_rows(
        as_rows(features),
        graph.points,
        graph_nodes(graph.multiplicities, graph.scales, graph.inverse, soft_labels),
        left,
        blocks,
        is_local=graph.is_local,
        usual_scale=float(np.median(graph.scales)),
        n_neighbors=n_neighbors,
    )
    return Extension(conductance, inflow)


def soft_labels_with_own(graph: TaskGraph, features: Features, y: FloatArray, n_neighbors: int) -> FloatArray:
    """Return l = (c y + q) / (c + g + a) of instances, each tied to the graph by itself, its own label included."""
    found = extend(graph, features, np.full(len(y), NOBODY, dtype=np.int64), n_neighbors)
    c, g = graph.label_weight, graph.regularization
    return np.asarray((c * y + found.inflow) / (c + g + found.conductance))
