"""Instances tied one by one to a fixed graph, in single precision."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.graph.feature_rows import FeatureRows
from core.graph.kernels import RESIDUAL, LeftOut, Nodes, extend_row
from core.numerics.compiled import combine_rows, compiled, dot
from core.validation import FloatArray, IntArray

_PER_LINE = 16
"""Numbers of a cache line of 64 bytes."""


def graph_nodes(
    multiplicities: NDArray[Any], scales: NDArray[Any], inverse: NDArray[Any], soft_labels: NDArray[Any]
) -> Nodes:
    """Convert a graph to the precision of its queries."""
    return Nodes(
        np.sqrt(multiplicities).astype(np.float32),
        (1 / np.asarray(scales, dtype=np.float64)).astype(np.float32),
        _aligned(inverse),
        np.diagonal(inverse).astype(np.float32),
        soft_labels.astype(np.float32),
    )


def extend_sparse_rows(
    rows: FeatureRows,
    points: NDArray[np.float32],
    nodes: Nodes,
    left: LeftOut,
    blocks: IntArray,
    *,
    is_local: bool,
    usual_scale: float,
    n_neighbors: int,
) -> tuple[FloatArray, FloatArray]:
    """Return each instance's conductance a to its k nearest nodes and the inflow q from them, of shape (n_rows,).

    With N the nearest nodes (ties by lower index), u = v w and S = G_NN + diag(1 / u): conductance a = 1' S^-1 1 and
    inflow q = 1' S^-1 h_N. With D = diag(sqrt(u)) and z = (I + D G_NN D)^-1 D 1 they are a = 1' D z and q = h' D z; the
    condition number of that system is below 1 + w_max / (c + g).

    `blocks` has for each row the block of `left` whose labels it may not see and whose nodes are no neighbours; -1 =
    none. `is_local` scales by s_i s_j, with s_i the distance to the instance's 7th neighbour; `usual_scale` is s_i of
    an instance that has only duplicates around it, and sigma without `is_local`. k is `n_neighbors`, or the number of
    nodes, less those left out.
    """
    conductance, inflow = np.zeros(len(blocks)), np.zeros(len(blocks))
    query = query_of(is_local, usual_scale)
    by_feature, norms = _aligned(points.T), np.einsum("ij,ij->i", points, points)
    k = min(n_neighbors, len(points))
    sparse_rows = (rows.starts, rows.places, rows.values)
    row = _aligned_zeros(by_feature.shape[1])
    bits, work = row.view(np.int32), workspace(len(points), k)
    _extend_sparse(sparse_rows, by_feature, norms, row, bits, nodes, left, blocks, query, k, work, conductance, inflow)
    return conductance, inflow


def _aligned_zeros(n: int) -> NDArray[np.float32]:
    """Return zeros aligned to a cache line; reading across two lines takes half as long again."""
    room = np.zeros(n + _PER_LINE, dtype=np.float32)
    start = -room.ctypes.data // room.itemsize % _PER_LINE
    return room[start : start + n]


def _aligned(matrix: NDArray[Any]) -> NDArray[np.float32]:
    """Copy a matrix so that every row begins with a cache line; zeros fill the rows up."""
    n_rows, n_columns = matrix.shape
    width = _filled_up(n_columns)
    filled = _aligned_zeros(n_rows * width).reshape(n_rows, width)
    filled[:, :n_columns] = matrix
    return filled


def _filled_up(n: int) -> int:
    """Return how many numbers fill the cache lines that `n` of them begin."""
    return -(-n // _PER_LINE) * _PER_LINE


def query_of(is_local: bool, usual_scale: float) -> tuple[Any, Any, Any, Any]:
    """Return the query of `core.graph.kernels.extend_row`."""
    infinity = int(np.array(np.inf, dtype=np.float32).view(np.int32))
    return np.float32(RESIDUAL), np.float32(0 if is_local else usual_scale), np.float32(usual_scale), infinity


def workspace(n_nodes: int, k: int) -> tuple[Any, ...]:
    """Return the work arrays of `core.graph.kernels.extend_row`, some of them also read as integers."""
    near, powers = np.zeros(k + 1, dtype=np.float32), np.zeros(k, dtype=np.float32)
    return (
        tuple(_aligned_zeros(k) for _ in range(5)),
        _aligned_zeros(_filled_up(n_nodes)),
        _aligned_zeros(k),
        near,
        near.view(np.int32),
        powers,
        powers.view(np.int32),
        np.zeros(n_nodes + 1, dtype=np.uint32),
        np.ones((2, 2), dtype=np.int64),
    )


@compiled
def _extend_sparse(
    rows: Any,
    by_feature: Any,
    norms: Any,
    row: Any,
    bits: Any,
    nodes: Any,
    left: Any,
    blocks: Any,
    query: Any,
    n_neighbors: int,
    work: Any,
    conductance: Any,
    inflow: Any,
) -> None:
    starts, all_places, all_values = rows
    n_nodes, two = len(norms), np.float32(2)
    products, row, bits = row, row[:n_nodes], bits[:n_nodes]
    for i in range(len(blocks)):
        values = all_values[starts[i] : starts[i + 1]]
        combine_rows(by_feature, all_places[starts[i] : starts[i + 1]], values, products)
        norm = dot(values, values)
        for j in range(n_nodes):
            row[j] = norm + norms[j] - two * row[j]
        k, block = n_neighbors, blocks[i]
        if block >= 0:
            first, end = left.starts[block], left.starts[block + 1]
            for node in left.nodes[first:end]:
                row[node] = np.inf
            k = min(k, n_nodes - (end - first))
        if k > 0:
            conductance[i], inflow[i] = extend_row(row, bits, query, nodes, left, block, k, work)
