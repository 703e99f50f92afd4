"""Compiled inner loops: distances summed directly, and one-node extensions of a fixed graph, row by row."""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from core.graph import LOCAL_NEIGHBOUR

F = TypeVar("F", bound=Callable[..., Any])

# Sums may be reordered for speed; NaN and infinity keep their meaning.
_FAST = {"reassoc", "contract", "nsz", "arcp"}
FLOAT32_RESIDUAL: Final = 1e-4
"""Relative residual that ends a float32 solve; with the residual added on, soft labels are good to about 1e-6."""
FLOAT64_RESIDUAL: Final = 1e-13
_ROWS_PER_NEIGHBOUR: Final = 8
"""Up to this many nodes per neighbour whole rows are read; beyond, the k x k block is copied together first."""


def compiled(function: F) -> F:
    """Compile for threads without the interpreter lock; keep the machine code on disk where there is a place for it."""
    options: dict[str, Any] = {"nogil": True, "fastmath": _FAST, "error_model": "numpy"}
    try:
        return cast("F", numba.njit(cache=True, **options)(function))
    except RuntimeError:
        # A read-only installation without a writable home has no place for a cache.
        return cast("F", numba.njit(**options)(function))


@compiled
def symmetric_squared_distances(points: Any) -> Any:
    """Squared distances between all rows, summed directly: symmetric to the last bit and 0 for duplicates."""
    n, n_features = points.shape
    result = np.zeros((n, n), dtype=points.dtype)
    for i in range(n):
        for j in range(i):
            total = points[i, 0] * 0
            for f in range(n_features):
                difference = points[i, f] - points[j, f]
                total += difference * difference
            result[i, j] = total
            result[j, i] = total
    return result


@compiled
def choose_neighbours(distances: Any, limit: Any, k: int, chosen: Any) -> None:
    """Write the places of the `k` smallest distances, the largest of them being `limit`; ties by lower place."""
    n_ties = k
    for distance in distances:
        n_ties -= distance < limit
    count = 0
    for j in range(len(distances)):
        if distances[j] < limit:
            chosen[count] = j
            count += 1
        elif distances[j] == limit and n_ties > 0:
            chosen[count] = j
            count += 1
            n_ties -= 1


@compiled
def multiply_rows(inverse: Any, chosen: Any, values: Any, full: Any, result: Any) -> None:
    """Write G_NN values, reading whole contiguous rows of G four at a time."""
    k = len(chosen)
    full[:] = 0
    for l in range(0, k - 3, 4):  # noqa: E741
        row0, row1 = inverse[chosen[l]], inverse[chosen[l + 1]]
        row2, row3 = inverse[chosen[l + 2]], inverse[chosen[l + 3]]
        x0, x1, x2, x3 = values[l], values[l + 1], values[l + 2], values[l + 3]
        for j in range(len(full)):
            full[j] += row0[j] * x0 + row1[j] * x1 + row2[j] * x2 + row3[j] * x3
    for l in range(k - k % 4, k):  # noqa: E741
        row0, x0 = inverse[chosen[l]], values[l]
        for j in range(len(full)):
            full[j] += row0[j] * x0
    for l in range(k):  # noqa: E741
        result[l] = full[chosen[l]]


@compiled
def multiply_block(block: Any, values: Any, result: Any) -> None:
    """Write block values for a small square block."""
    k = len(values)
    for l in range(k):  # noqa: E741
        total = block[l, 0] * 0
        for m in range(k):
            total += block[l, m] * values[m]
        result[l] = total


@compiled
def solve_extension(
    inverse: Any, chosen: Any, d: Any, use_rows: bool, tolerance: float, work: Any, full: Any, block: Any
) -> Any:
    """Solve (I + D G_NN D) z = d by conjugate gradients, into row 0 of `work`.

    The last residual r is added to z: D G_NN D is small on what is left, so that (I + D G_NN D)^-1 r is nearly r.
    """
    k = len(chosen)
    z, r, p, scaled, product = work[0, :k], work[1, :k], work[2, :k], work[3, :k], work[4, :k]
    if not use_rows:
        for l in range(k):  # noqa: E741
            row = inverse[chosen[l]]
            for m in range(k):
                block[l, m] = row[chosen[m]]
    z[:] = 0
    r[:] = d
    p[:] = d
    norm = (d * d).sum()
    residual = norm
    for _ in range(k + 20):
        if residual <= tolerance * tolerance * norm:
            break
        for l in range(k):  # noqa: E741
            scaled[l] = d[l] * p[l]
        if use_rows:
            multiply_rows(inverse, chosen, scaled, full, product)
        else:
            multiply_block(block[:k, :k], scaled, product)
        curvature = residual * 0
        for l in range(k):  # noqa: E741
            product[l] = p[l] + d[l] * product[l]
            curvature += p[l] * product[l]
        if curvature <= 0:
            break
        step = residual / curvature
        new_residual = residual * 0
        for l in range(k):  # noqa: E741
            z[l] += step * p[l]
            r[l] -= step * product[l]
            new_residual += r[l] * r[l]
        turn = new_residual / residual
        for l in range(k):  # noqa: E741
            p[l] = r[l] + turn * p[l]
        residual = new_residual
    for l in range(k):  # noqa: E741
        z[l] += r[l]
    return z


@compiled
def _extend_rows(
    distances: Any,
    limits: Any,
    query_scales: Any,
    multiplicities: Any,
    scales: Any,
    k: int,
    inverse: Any,
    soft_labels: Any,
    tolerance: float,
    conductance: Any,
    inflow: Any,
) -> None:
    chosen = np.empty(k, dtype=np.uint32)
    d = np.empty(k, dtype=inverse.dtype)
    work = np.empty((5, k), dtype=inverse.dtype)
    full = np.empty(len(inverse), dtype=inverse.dtype)
    use_rows = len(inverse) <= _ROWS_PER_NEIGHBOUR * k
    side = 1 if use_rows else k
    block = np.empty((side, side), dtype=inverse.dtype)
    for i in range(len(distances)):
        row = distances[i]
        choose_neighbours(row, limits[i], k, chosen)
        for l in range(k):  # noqa: E741
            node = chosen[l]
            d[l] = np.sqrt(multiplicities[node] * np.exp(-row[node] / (query_scales[i] * scales[node])))
        z = solve_extension(inverse, chosen, d, use_rows, tolerance, work, full, block)
        a = 0.0
        q = 0.0
        for l in range(k):  # noqa: E741
            flow = d[l] * z[l]
            a += flow
            q += flow * soft_labels[chosen[l]]
        conductance[i] = a
        inflow[i] = q


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
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Tie each query row to its k nearest nodes and find its conductance to the graph and what flows back.

    With N the nearest nodes (ties by lower index), u = v w and S = G_NN + diag(1 / u): conductance a = 1' S^-1 1 and
    inflow q = 1' S^-1 h_N. With D = diag(sqrt(u)) and z = (I + D G_NN D)^-1 D 1 they are a = 1' D z and q = h' D z;
    the condition number of that system is below 1 + w_max / (c + g).

    Parameters
    ----------
    squared_distances : float32 or float64 array of shape (n_queries, n_nodes)
        Its type is that of the whole computation. Infinite where a node may be no neighbour; the same number of nodes
        must be finite in every row.
    multiplicities, scales : float arrays of shape (n_nodes,)
        v and s; without `is_local` every scale is sigma.
    is_local : bool
        Scale by s_i s_j, with s_i the distance to the query's 7th neighbour.
    usual_scale : float
        s_i of a query that has only duplicates around it; sigma without `is_local`.
    n_neighbors : int
        k, at most the number of finite distances.
    inverse, soft_labels : float arrays of shape (n_nodes, n_nodes), (n_nodes,)
        G and h.

    Returns
    -------
    conductance, inflow : float arrays of shape (n_queries,)
        a and q.
    """
    kind = squared_distances.dtype
    n_queries, k = len(squared_distances), n_neighbors
    conductance, inflow = np.zeros(n_queries), np.zeros(n_queries)
    if k == 0 or n_queries == 0:
        return conductance, inflow
    # Products of norms may fall a little below zero for duplicates.
    distances = np.maximum(squared_distances, 0)
    nearest = np.partition(distances, k - 1, axis=1)[:, :k]
    query_scales = _query_scales(nearest, usual_scale) if is_local else np.full(n_queries, usual_scale, dtype=kind)
    _extend_rows(
        distances,
        np.ascontiguousarray(nearest[:, k - 1]),
        query_scales,
        multiplicities.astype(kind, copy=False),
        scales.astype(kind, copy=False),
        k,
        inverse.astype(kind, copy=False),
        soft_labels.astype(kind, copy=False),
        FLOAT32_RESIDUAL if kind.itemsize == 4 else FLOAT64_RESIDUAL,
        conductance,
        inflow,
    )
    return conductance, inflow


def _query_scales(nearest: NDArray[Any], usual_scale: float) -> NDArray[Any]:
    """Distance to the 7th neighbour; with duplicates to the first that is none, else the usual scale."""
    place = min(LOCAL_NEIGHBOUR, nearest.shape[1]) - 1
    scales = np.sqrt(np.partition(nearest, place, axis=1)[:, place])
    zero = scales <= 0
    if zero.any():
        smallest = np.where(nearest[zero] > 0, nearest[zero], np.inf).min(axis=1)
        scales[zero] = np.where(np.isfinite(smallest), np.sqrt(smallest), usual_scale)
    return scales
