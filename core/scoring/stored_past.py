"""Graphs of a task as plain arrays, small enough to be kept: what later instances are tied to without solving again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.graph.backbone import SampledNodes
from core.scoring.parameters import ScoringParameters
from core.scoring.task_graph import TaskGraph
from core.validation import FloatArray, IntArray


@dataclass(frozen=True)
class StoredGraph(TaskGraph):
    """A graph read back: its inverse in the precision of queries, its soft labels as they were solved."""

    solved: FloatArray  # shape (n_nodes,): soft labels h (less `center`)

    def soft_labels(self) -> FloatArray:
        """Return the soft labels h of the nodes (less `center`)."""
        return self.solved


def pack_graphs(graphs: Sequence[TaskGraph], prefix: str, *, with_points: bool = True) -> dict[str, NDArray[Any]]:
    """Make arrays, whose names begin with a prefix, of graphs whose nodes have the same features.

    Points, which are mostly zeros, become a bit for each entry and the entries that are not zero; of an inverse, which
    is symmetric, the lower triangle is kept. Graphs on the same nodes as others need no points.
    """
    vectors: dict[str, list[NDArray[Any]]] = {
        "labels": [graph.labels for graph in graphs],
        "multiplicities": [graph.multiplicities for graph in graphs],
        "scales": [graph.scales for graph in graphs],
        "soft_labels": [graph.soft_labels() for graph in graphs],
        "inverse": [graph.inverse[_lower_triangle(len(graph.points))].astype(np.float32) for graph in graphs],
    }
    packed: dict[str, NDArray[Any]] = {f"{prefix}_{name}": np.concatenate(parts) for name, parts in vectors.items()}
    packed[f"{prefix}_sizes"] = np.array([len(graph.points) for graph in graphs], dtype=np.int32)
    packed[f"{prefix}_centers"] = np.array([graph.center for graph in graphs])
    if with_points:
        points = np.concatenate([graph.points for graph in graphs])
        packed[f"{prefix}_points_there"] = np.packbits(points != 0)
        packed[f"{prefix}_points"] = points[points != 0]
    return packed


def unpack_points(arrays: Mapping[str, NDArray[Any]], prefix: str, n_features: int) -> list[NDArray[np.float32]]:
    """Read back the points of each graph, of shape (n_nodes, n_features)."""
    sizes = arrays[f"{prefix}_sizes"]
    n_entries = int(sizes.sum()) * n_features
    there = np.unpackbits(arrays[f"{prefix}_points_there"], count=n_entries).astype(bool)
    points = np.zeros(n_entries, dtype=np.float32)
    points[there] = arrays[f"{prefix}_points"]
    return np.split(points.reshape(-1, n_features), np.cumsum(sizes)[:-1])


def unpack_graphs(
    arrays: Mapping[str, NDArray[Any]],
    prefix: str,
    points: Sequence[NDArray[np.float32]],
    parameters: ScoringParameters,
) -> list[StoredGraph]:
    """Read graphs back that `pack_graphs` made arrays of; every node is a patient by itself.

    The points, of shape (n_nodes, n_features), are those of `unpack_points`; the parameters those that the graphs were
    built with.
    """
    sizes = arrays[f"{prefix}_sizes"].astype(np.int64)
    ends = np.cumsum(sizes)[:-1]
    parts = {
        name: np.split(arrays[f"{prefix}_{name}"], ends)
        for name in ("labels", "multiplicities", "scales", "soft_labels")
    }
    triangles = np.split(arrays[f"{prefix}_inverse"], np.cumsum(sizes * (sizes + 1) // 2)[:-1])
    return [
        StoredGraph(
            nodes=SampledNodes(np.arange(size), parts["multiplicities"][number]),
            points=points[number],
            labels=parts["labels"][number],
            groups=np.arange(size),
            scales=parts["scales"][number],
            inverse=_from_triangle(triangles[number], int(size)),
            label_weight=parameters.label_weight,
            regularization=parameters.regularization,
            center=float(arrays[f"{prefix}_centers"][number]),
            is_local=parameters.length_scale == "local",
            solved=parts["soft_labels"][number],
        )
        for number, size in enumerate(sizes)
    ]


def _from_triangle(triangle: NDArray[np.float32], size: int) -> Any:
    """Fill a symmetric matrix from its lower triangle."""
    matrix = np.empty((size, size), dtype=np.float32)
    rows, columns = _lower_triangle(size)
    matrix[rows, columns] = triangle
    matrix[columns, rows] = triangle
    return matrix


@lru_cache(maxsize=8)
def _lower_triangle(size: int) -> tuple[IntArray, IntArray]:
    """Return the places of the lower triangle; most graphs of a run are of one size."""
    rows, columns = np.tril_indices(size)
    return rows, columns
