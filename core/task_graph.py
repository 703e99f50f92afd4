"""One task's backbone graph, and instances tied to it one by one with their own patient left out."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from core.backbone import SampledNodes
from core.graph import LengthScale, dense_similarity
from core.kernels import extend_rows, symmetric_squared_distances
from core.leave_out import leave_nodes_out
from core.validation import FloatArray, IntArray

NOBODY = -1
"""Group of an instance that leaves no patient out."""
_BLOCK_ROWS = 1024


@dataclass(frozen=True)
class TaskGraph:
    """One backbone graph of a task, ready to take in instances one by one.

    Parameters
    ----------
    nodes : SampledNodes
    points : float32 array of shape (n_nodes, n_features)
    labels : float array of shape (n_nodes,)
        -1 or +1, less `center`.
    groups : int array of shape (n_nodes,)
        Patients; `NOBODY` where edges inside a patient are allowed.
    scales : float array of shape (n_nodes,)
        s_i, or sigma everywhere.
    inverse : float array of shape (n_nodes, n_nodes)
        G = (L^V + (c + g) V)^-1.
    label_weight, regularization : float
        c and g.
    center : float
        Past mean of the labels where g > 0 pulls towards it, else 0.
    is_local : bool
        Whether the query's own distance to its 7th neighbour scales its similarities.
    """

    nodes: SampledNodes
    points: NDArray[np.float32]
    labels: FloatArray
    groups: IntArray
    scales: FloatArray
    inverse: FloatArray
    label_weight: float
    regularization: float
    center: float
    is_local: bool

    @property
    def multiplicities(self) -> FloatArray:
        """V, the weights of the nodes."""
        return self.nodes.multiplicities

    def soft_labels(self) -> FloatArray:
        """Soft labels h = c G V y of the nodes (less `center`)."""
        return np.asarray(self.label_weight * (self.inverse @ (self.multiplicities * self.labels)))


def build_task_graph(
    features: NDArray[np.float32],
    y: FloatArray,
    nodes: SampledNodes,
    groups: IntArray | None,
    *,
    n_neighbors: int,
    length_scale: LengthScale,
    label_weight: float,
    regularization: float,
) -> TaskGraph:
    """Join the nodes and invert their system once.

    Parameters
    ----------
    features : float32 array of shape (n, n_features)
        Past rows first.
    y : float array of shape (n_past,)
        -1 or +1.
    nodes : SampledNodes
        Rows of the past.
    groups : int array of shape (n,) or None
        Patients, between whose own days there is no edge; None allows such edges.
    n_neighbors, length_scale, label_weight, regularization
        See `core.scoring_parameters.ScoringParameters`.
    """
    points = np.ascontiguousarray(features[nodes.rows])
    squared = symmetric_squared_distances(points.astype(np.float64))
    node_groups = None if groups is None else groups[nodes.rows]
    similarity, scales = dense_similarity(squared, min(n_neighbors, len(points) - 1), length_scale, node_groups)
    v = nodes.multiplicities
    weighted = v[:, None] * similarity * v
    system = np.diag(weighted.sum(axis=1) + (label_weight + regularization) * v) - weighted
    center = float(y.mean()) if regularization > 0 else 0.0
    return TaskGraph(
        nodes=nodes,
        points=points,
        labels=y[nodes.rows] - center,
        groups=np.full(len(points), NOBODY, dtype=np.int64) if node_groups is None else node_groups,
        scales=scales,
        inverse=np.asarray(np.linalg.inv(system), dtype=np.float64),
        label_weight=label_weight,
        regularization=regularization,
        center=center,
        is_local=length_scale == "local",
    )


@dataclass(frozen=True)
class Extension:
    """What the fixed graph says about instances tied to it one by one.

    Parameters
    ----------
    conductance : float array of shape (n,)
        a: how strongly the instance is tied to past decisions; 0 = isolated.
    inflow : float array of shape (n,)
        q; q / (g + a) is the expectation without the instance's own label.
    """

    conductance: FloatArray
    inflow: FloatArray


def extend(graph: TaskGraph, features: NDArray[np.float32], groups: IntArray, n_neighbors: int) -> Extension:
    """Tie every instance to the fixed graph by the exact one-node extension, its own patient's labels left out.

    Parameters
    ----------
    graph : TaskGraph
    features : float32 array of shape (n, n_features)
    groups : int array of shape (n,)
        Patients, or `NOBODY`.
    n_neighbors : int
    """
    conductance, inflow = np.zeros(len(features)), np.zeros(len(features))
    system = _System.of(graph, n_neighbors)
    own = (groups != NOBODY) & np.isin(groups, graph.groups)
    own_rows = np.flatnonzero(own)
    own_distances = np.empty((len(own_rows), len(graph.points)), dtype=np.float32)
    n_own = 0
    for rows, distances in _distance_blocks(features, graph.points):
        inside = own[rows]
        if inside.any():
            n_inside = int(inside.sum())
            own_distances[n_own : n_own + n_inside] = distances[inside]
            n_own += n_inside
            rows, distances = rows[~inside], distances[~inside]
        conductance[rows], inflow[rows] = system.extend(distances)
    order = np.argsort(groups[own_rows], kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(groups[own_rows][order])) + 1):
        if len(part):
            block = np.flatnonzero(graph.groups == groups[own_rows[part[0]]])
            distances = own_distances[part]
            distances[:, block] = np.inf
            conductance[own_rows[part]], inflow[own_rows[part]] = system.without(block).extend(distances)
    return Extension(conductance, inflow)


@dataclass(frozen=True)
class _System:
    """A graph in the precision of the queries, with or without the labels of one patient's nodes."""

    graph: TaskGraph
    inverse: NDArray[np.float32]
    soft_labels: FloatArray
    multiplicities: NDArray[np.float32]
    scales: NDArray[np.float32]
    usual_scale: float
    n_neighbors: int

    @classmethod
    def of(cls, graph: TaskGraph, n_neighbors: int) -> "_System":
        return cls(
            graph,
            graph.inverse.astype(np.float32),
            graph.soft_labels(),
            graph.nodes.multiplicities.astype(np.float32),
            graph.scales.astype(np.float32),
            float(np.median(graph.scales)),
            min(n_neighbors, len(graph.points)),
        )

    def without(self, block: IntArray) -> "_System":
        """Leave out the labels of the nodes in `block`."""
        graph = self.graph
        left = leave_nodes_out(
            graph.inverse, self.soft_labels, graph.labels, graph.multiplicities, graph.label_weight, block
        )
        inverse = self.inverse + left.columns.astype(np.float32) @ left.solved.astype(np.float32)
        n_left = len(graph.points) - len(block)
        return replace(self, inverse=inverse, soft_labels=left.soft_labels, n_neighbors=min(self.n_neighbors, n_left))

    def extend(self, distances: NDArray[np.float32]) -> tuple[FloatArray, FloatArray]:
        return extend_rows(
            distances,
            self.multiplicities,
            self.scales,
            is_local=self.graph.is_local,
            usual_scale=self.usual_scale,
            n_neighbors=self.n_neighbors,
            inverse=self.inverse,
            soft_labels=self.soft_labels,
        )


def _distance_blocks(
    features: NDArray[np.float32], points: NDArray[np.float32]
) -> Iterator[tuple[IntArray, NDArray[np.float32]]]:
    """Squared distances in blocks of one fixed shape, so that an instance's bits do not depend on who else is there."""
    padded = np.zeros((_BLOCK_ROWS, features.shape[1]), dtype=np.float32)
    norms = np.einsum("ij,ij->i", points, points)
    for start in range(0, len(features), _BLOCK_ROWS):
        rows = np.arange(start, min(start + _BLOCK_ROWS, len(features)))
        padded[: len(rows)] = features[rows[0] : rows[-1] + 1]
        distances = padded @ points.T
        distances *= -2
        distances += np.einsum("ij,ij->i", padded, padded)[:, None]
        distances += norms
        yield rows, distances[: len(rows)]
