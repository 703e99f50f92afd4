"""What a fitted SoftHAD holds: its graphs of past instances, and what they say about past and recent ones."""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import sparse

from core.errors import FewerNodesThanNeighboursWarning, InvalidInputError
from core.graph.backbone import sample_balanced_nodes
from core.graph.node_graph import NodeGraph
from core.graph.similarity import (
    LengthScale,
    Neighbourhoods,
    effective_neighbours,
    knn_similarity,
    local_scales,
    nearest,
    paper_squared_scale,
)
from core.validation import FloatArray, IntArray, as_similarity, is_sparse


@dataclass(frozen=True)
class GraphSettings:
    """Parameters of the graphs; see `core.softhad.SoftHAD`."""

    n_neighbors: int
    length_scale: LengthScale | Literal["precomputed"]
    label_weight: float
    regularization: float


@dataclass(frozen=True)
class Past:
    """Past instances as graphs see them."""

    # Shape (n_past, n_features): weighted features; with a precomputed length scale their similarity, of shape (n_past,
    # n_past).
    points: Any
    decisions: FloatArray  # shape (n_past,): -1 or +1
    groups: IntArray  # shape (n_past,): each instance by itself, or patients
    has_groups: bool  # whether groups are patients, between whose days there is no edge


@dataclass(frozen=True)
class LabelFree:
    """Conductance a and inflow q of instances; everything else follows from them."""

    # `conductance` and `inflow`: shape (n,).
    conductance: FloatArray
    inflow: FloatArray
    # `label_weight` and `regularization`: c and g.
    label_weight: float
    regularization: float

    def soft_labels(self, y: FloatArray) -> FloatArray:
        """Return the soft labels l* of instances with labels y: (c y + q) / (c + g + a)."""
        return np.asarray((self.label_weight * y + self.inflow) / self._total)

    @property
    def left_out(self) -> FloatArray:
        """Soft labels without the own label, q / (g + a); 0 where nothing reaches the instance."""
        rest = self.regularization + self.conductance
        return np.divide(self.inflow, rest, out=np.zeros_like(rest), where=rest > 0)

    @property
    def support(self) -> FloatArray:
        """How strongly instances are tied to the past, a / (c + g + a)."""
        return np.asarray(self.conductance / self._total)

    @property
    def _total(self) -> FloatArray:
        return np.asarray(self.label_weight + self.regularization + self.conductance)


@dataclass(frozen=True)
class FittedGraph:
    """One graph, fixed, and what is needed to tie instances to it."""

    nodes: NodeGraph
    rows: IntArray  # shape (n_nodes,): past row of each node
    points: Any  # shape (n_nodes, n_features): None for a precomputed similarity
    scales: FloatArray  # shape (n_nodes,): s_i, or sigma everywhere
    settings: GraphSettings
    past: Past
    is_whole: bool  # every past instance is a node

    @cached_property
    def past_soft_labels(self) -> FloatArray:
        """Soft labels l* of all past instances; those that are no nodes are tied in with their own label."""
        if self.is_whole:
            return self.nodes.soft_labels
        soft_labels = self.tie_in(self.past.points).soft_labels(self.past.decisions)
        soft_labels[self.rows] = self.nodes.soft_labels
        return soft_labels

    @cached_property
    def past_label_free(self) -> LabelFree:
        """Conductance and inflow of all past instances with their own group's labels left out."""
        g = self.settings.regularization
        if self.is_whole:
            left_out, conductance = self.nodes.left_out(self.past.groups)
            return self._label_free(conductance, left_out * (g + conductance))
        groups, node_groups = self.past.groups, self.past.groups[self.rows]
        conductance, inflow = np.zeros(len(groups)), np.zeros(len(groups))
        free = ~np.isin(groups, node_groups)
        for members in (np.flatnonzero(free), *(np.flatnonzero(groups == group) for group in np.unique(node_groups))):
            if len(members):
                block = np.flatnonzero(node_groups == groups[members[0]])
                found = self.tie_in(self.past.points[members], block)
                conductance[members], inflow[members] = found.conductance, found.inflow
        return self._label_free(conductance, inflow)

    def tie_in(self, points: Any, leave_out: IntArray | None = None) -> LabelFree:
        """Return conductance and inflow of instances, one by one; nodes in `leave_out` are no neighbours."""
        excluded = np.zeros(self.nodes.n_nodes, dtype=np.int64)
        if leave_out is not None:
            excluded[leave_out] = 1
        if self.points is None:
            chosen, similarities = self._largest(points, excluded > 0)
        else:
            k = min(self.settings.n_neighbors, self.nodes.n_nodes)
            query_groups = np.ones(points.shape[0], dtype=np.int64)
            near = nearest(self.points, points, k, base_groups=excluded, query_groups=query_groups)
            chosen, similarities = near.indices, self._similarities(near)
        return self._label_free(*self.nodes.tie_in(chosen, similarities, leave_out))

    def _label_free(self, conductance: FloatArray, inflow: FloatArray) -> LabelFree:
        return LabelFree(conductance, inflow, self.settings.label_weight, self.settings.regularization)

    def _similarities(self, near: Neighbourhoods) -> FloatArray:
        node_scales = self.scales[near.indices]
        own = (
            local_scales(near) if self.settings.length_scale == "local" else np.full(len(near.indices), self.scales[0])
        )
        return np.asarray(np.exp(-near.squared_distances / (own[:, None] * node_scales)))

    def _largest(self, similarity: Any, excluded: Any) -> tuple[IntArray, FloatArray]:
        dense = similarity.toarray() if is_sparse(similarity) else np.asarray(similarity)
        dense = np.where(excluded, 0.0, dense[:, self.rows])
        k = min(self.settings.n_neighbors, dense.shape[1])
        chosen = np.argsort(-dense, axis=1, kind="stable")[:, :k]
        return chosen, np.take_along_axis(dense, chosen, axis=1)


def build_graphs(
    past: Past, settings: GraphSettings, n_nodes: int | None, n_graphs: int, random: np.random.Generator
) -> list[FittedGraph]:
    """Join all past instances in one graph, or draw `n_graphs` balanced backbones of `n_nodes` nodes."""
    n = len(past.decisions)
    if n_nodes is None:
        return [_build(past, settings, np.arange(n), np.ones(n), is_whole=True)]
    drawn = [sample_balanced_nodes(past.decisions, n_nodes, random) for _ in range(n_graphs)]
    return [_build(past, settings, nodes.rows, nodes.multiplicities, is_whole=False) for nodes in drawn]


def _build(
    past: Past, settings: GraphSettings, rows: IntArray, multiplicities: FloatArray, *, is_whole: bool
) -> FittedGraph:
    groups = past.groups[rows] if past.has_groups else None
    points, scales = None, np.ones(len(rows))
    if settings.length_scale == "precomputed":
        similarity = as_similarity(_square_part(past.points, rows, groups))
    else:
        points = past.points[rows]
        similarity = knn_similarity(
            points, n_neighbors=settings.n_neighbors, length_scale=settings.length_scale, groups=groups
        )
        scales = _scales(points, settings.n_neighbors, settings.length_scale, groups)
    nodes = NodeGraph(similarity, past.decisions[rows], multiplicities, settings.label_weight, settings.regularization)
    return FittedGraph(nodes, rows, points, scales, settings, past, is_whole)


def _square_part(similarity: Any, rows: IntArray, groups: IntArray | None) -> Any:
    if similarity.shape[0] != similarity.shape[1]:
        raise InvalidInputError(
            f"A precomputed similarity of past instances must be square; it has shape {similarity.shape}. "
            "Pass one row and one column for each past instance."
        )
    part = sparse.coo_array(sparse.csr_array(similarity)[rows][:, rows])
    if groups is None:
        return part
    kept = groups[part.row] != groups[part.col]
    return sparse.coo_array((part.data[kept], (part.row[kept], part.col[kept])), shape=part.shape)


def _scales(points: Any, n_neighbors: int, length_scale: LengthScale, groups: IntArray | None) -> FloatArray:
    n = points.shape[0]
    if length_scale == "local":
        with warnings.catch_warnings():
            # `knn_similarity` has already said so.
            warnings.simplefilter("ignore", FewerNodesThanNeighboursWarning)
            k = effective_neighbours(n_neighbors, n)
        return local_scales(nearest(points, points, k, base_groups=groups, query_groups=groups, same_rows=True))
    return np.full(n, np.sqrt(paper_squared_scale(points)) if length_scale == "paper" else float(length_scale))
