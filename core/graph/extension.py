"""Instances tied one by one to a fixed graph: from distances, or from sparse features in the same loop."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.graph.feature_rows import FeatureRows
from core.graph.kernels import FLOAT32_RESIDUAL, FLOAT64_RESIDUAL, LeftOut, Nodes, extend_row
from core.numerics.compiled import combine_rows, compiled, dot
from core.validation import FloatArray, IntArray

_CACHE_LINE = 64


def graph_nodes(
    multiplicities: NDArray[Any], scales: NDArray[Any], inverse: NDArray[Any], soft_labels: NDArray[Any], kind: Any
) -> Nodes:
    """Convert a graph to the precision of its queries; see `extend_rows`."""
    return Nodes(
        np.sqrt(multiplicities).astype(kind),
        (1 / np.asarray(scales, dtype=np.float64)).astype(kind),
        _aligned(inverse, kind),
        np.diagonal(inverse).astype(kind),
        soft_labels.astype(kind),
    )


def extend_rows(
    squared_distances: NDArray[Any],
    multiplicities: NDArray[Any],
    scales: NDArray[Any],
    *,
    is_local: bool,
    usual_scale: float,
    n_neighbors: int,
    inverse: NDArray[Any],
    soft_labels: NDArray[Any],
) -> tuple[FloatArray, FloatArray]:
    """Return each query row's conductance to its k nearest nodes and the inflow from them.

    With N the nearest nodes (ties by lower index), u = v w and S = G_NN + diag(1 / u): conductance a = 1' S^-1 1 and
    inflow q = 1' S^-1 h_N. With D = diag(sqrt(u)) and z = (I + D G_NN D)^-1 D 1 they are a = 1' D z and q = h' D z;
    the condition number of that system is below 1 + w_max / (c + g).

    Parameters
    ----------
    squared_distances : float32 or float64 array of shape (n_queries, n_nodes)
        Its type is that of the whole computation. Infinite where a node may be no neighbour.
    multiplicities, scales : float arrays of shape (n_nodes,)
        v and s; without `is_local` every scale is sigma.
    is_local : bool
        Scale by s_i s_j, with s_i the distance to the query's 7th neighbour.
    usual_scale : float
        s_i of a query that has only duplicates around it; sigma without `is_local`.
    n_neighbors : int
        k, at most the number of finite distances in every row.
    inverse, soft_labels : float arrays of shape (n_nodes, n_nodes), (n_nodes,)
        G and h.

    Returns
    -------
    conductance, inflow : float arrays of shape (n_queries,)
        a and q.
    """
    kind = squared_distances.dtype
    nodes = graph_nodes(multiplicities, scales, inverse, soft_labels, kind)
    conductance, inflow = np.zeros(len(squared_distances)), np.zeros(len(squared_distances))
    query = _query(kind, is_local, usual_scale)
    if n_neighbors and len(squared_distances):
        row = _aligned_zeros(squared_distances.shape[1], kind)
        bits, work = row.view(f"i{kind.itemsize}"), workspace(len(row), n_neighbors, kind)
        left = _no_blocks(kind)
        _extend_distances(squared_distances, row, bits, nodes, left, query, n_neighbors, work, conductance, inflow)
    return conductance, inflow


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
    """Return what `extend_rows` returns, leaving out a block of nodes for each instance.

    Parameters
    ----------
    rows : FeatureRows
    points : float32 array of shape (n_nodes, n_features)
    nodes : Nodes
        In float32.
    left : LeftOut
    blocks : int array of shape (n_rows,)
        Block of `left` whose labels an instance may not see and whose nodes are no neighbours; -1 = none.
    is_local, usual_scale, n_neighbors
        See `extend_rows`; k is at most the number of nodes, less those left out.

    Returns
    -------
    conductance, inflow : float arrays of shape (n_rows,)
    """
    conductance, inflow = np.zeros(len(blocks)), np.zeros(len(blocks))
    query = _query(np.dtype(np.float32), is_local, usual_scale)
    by_feature, norms = _aligned(points.T, np.float32), np.einsum("ij,ij->i", points, points)
    k = min(n_neighbors, len(points))
    sparse_rows = (rows.starts, rows.places, rows.values)
    row = _aligned_zeros(by_feature.shape[1], np.float32)
    bits, work = row.view(np.int32), workspace(len(points), k, np.float32)
    _extend_sparse(sparse_rows, by_feature, norms, row, bits, nodes, left, blocks, query, k, work, conductance, inflow)
    return conductance, inflow


def _aligned_zeros(n: int, kind: Any) -> NDArray[Any]:
    """Return zeros aligned to a cache line; reading across two lines takes half as long again."""
    size = np.dtype(kind).itemsize
    room = np.zeros(n + _CACHE_LINE // size, dtype=kind)
    start = -room.ctypes.data % _CACHE_LINE // size
    return room[start : start + n]


def _aligned(matrix: NDArray[Any], kind: Any) -> NDArray[Any]:
    """Copy a matrix so that every row begins with a cache line; zeros fill the rows up."""
    n_rows, n_columns = matrix.shape
    width = _filled_up(n_columns, kind)
    filled = _aligned_zeros(n_rows * width, kind).reshape(n_rows, width)
    filled[:, :n_columns] = matrix
    return filled


def _filled_up(n: int, kind: Any) -> int:
    """Return how many numbers fill the cache lines that `n` of them begin."""
    per_line: int = _CACHE_LINE // np.dtype(kind).itemsize
    return -(-n // per_line) * per_line


def _no_blocks(kind: Any) -> LeftOut:
    nothing = np.zeros(0, dtype=np.int64)
    return LeftOut(np.zeros(1, dtype=np.int64), nothing, nothing, np.zeros(0, dtype=kind), np.zeros(0, dtype=kind))


def _query(kind: Any, is_local: bool, usual_scale: float) -> tuple[Any, Any, Any, Any]:
    tolerance = FLOAT32_RESIDUAL if kind.itemsize == 4 else FLOAT64_RESIDUAL
    infinity = int(np.array(np.inf, dtype=kind).view(f"i{kind.itemsize}"))
    return kind.type(tolerance), kind.type(0 if is_local else usual_scale), kind.type(usual_scale), infinity


def workspace(n_nodes: int, k: int, kind: Any) -> tuple[Any, ...]:
    """Return the work arrays of `core.graph.kernels.extend_row`, some of them also read as integers."""
    near, powers = np.zeros(k + 1, dtype=kind), np.zeros(k, dtype=kind)
    whole = f"i{np.dtype(kind).itemsize}"
    return (
        tuple(_aligned_zeros(k, kind) for _ in range(5)),
        _aligned_zeros(_filled_up(n_nodes, kind), kind),
        _aligned_zeros(k, kind),
        near,
        near.view(whole),
        powers,
        powers.view(whole),
        np.zeros(n_nodes + 1, dtype=np.uint32),
        np.ones((2, 2), dtype=np.int64),
    )


@compiled
def _extend_distances(
    distances: Any,
    row: Any,
    bits: Any,
    nodes: Any,
    left: Any,
    query: Any,
    k: int,
    work: Any,
    conductance: Any,
    inflow: Any,
) -> None:
    for i in range(len(distances)):
        row[:] = distances[i]
        conductance[i], inflow[i] = extend_row(row, bits, query, nodes, left, -1, k, work)


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
