"""Compiled inner loops: distances, the nearest nodes, and one-node extensions of a fixed graph, row by row.

One row never looks at another: results do not depend on which rows are handed over together.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from core.graph import LOCAL_NEIGHBOUR

F = TypeVar("F", bound=Callable[..., Any])

# Sums may be reordered for speed; NaN and infinity keep their meaning.
_FAST = {"reassoc", "contract", "nsz", "arcp"}
FLOAT32_RESIDUAL: Final = 0.01
"""Relative residual that ends a float32 solve; with the last, estimated step soft labels are good to about 5e-6."""
FLOAT64_RESIDUAL: Final = 1e-13
_ROWS_PER_NEIGHBOUR: Final = 6
"""Up to this many nodes per neighbour whole rows are read; beyond, the entries of the k x k block alone."""


def compiled(function: F) -> F:
    """Compile for threads without the interpreter lock; keep the machine code on disk where there is a place for it."""
    # Always inlined: a process that compiles would otherwise round sums in another way than one that finds all on disk.
    options: dict[str, Any] = {"nogil": True, "fastmath": _FAST, "error_model": "numpy", "forceinline": True}
    try:
        return cast("F", numba.njit(cache=True, **options)(function))
    except RuntimeError:
        # A read-only installation without a writable home has no place for a cache.
        return cast("F", numba.njit(**options)(function))


class Nodes(NamedTuple):
    """A fixed graph, as the loops read it; all floats in the precision of the queries.

    Parameters
    ----------
    roots : float array of shape (n_nodes,)
        Square roots of the multiplicities.
    inverse_scales : float array of shape (n_nodes,)
        1 / s.
    inverse : float array of shape (n_nodes, n_nodes or more)
        G, symmetric; columns beyond the nodes only fill rows up.
    diagonal : float array of shape (n_nodes,)
        Of G.
    soft_labels : float array of shape (n_nodes,)
        h.
    """

    roots: NDArray[Any]
    inverse_scales: NDArray[Any]
    inverse: NDArray[Any]
    diagonal: NDArray[Any]
    soft_labels: NDArray[Any]


class LeftOut(NamedTuple):
    """Blocks of nodes to be left out for some queries: G becomes G + G_P K G_P' and h becomes h + G_P t.

    Parameters
    ----------
    starts : int array of shape (n_blocks + 1,)
        Where each block begins in `nodes` and `pulls`.
    nodes : int array
        Nodes of all blocks.
    square_starts : int array of shape (n_blocks,)
        Where the square of each block begins in `squares`.
    squares : float array
        K of all blocks, row by row.
    pulls : float array
        t of all blocks.
    """

    starts: NDArray[np.int64]
    nodes: NDArray[np.int64]
    square_starts: NDArray[np.int64]
    squares: NDArray[Any]
    pulls: NDArray[Any]


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
def combine_rows(matrix: Any, rows: Any, factors: Any, total: Any) -> None:
    """Write the sum of `factors` times `rows` of a matrix, reading contiguous rows eight at a time."""
    m, n = len(rows), len(total)
    total[:] = 0
    l = 0  # noqa: E741
    while l + 8 <= m:
        r0, r1, r2, r3, r4, r5, r6, r7 = (
            rows[l], rows[l + 1], rows[l + 2], rows[l + 3], rows[l + 4], rows[l + 5], rows[l + 6], rows[l + 7],
        )  # fmt: skip
        x0, x1, x2, x3, x4, x5, x6, x7 = (
            factors[l], factors[l + 1], factors[l + 2], factors[l + 3],
            factors[l + 4], factors[l + 5], factors[l + 6], factors[l + 7],
        )  # fmt: skip
        for j in range(n):
            total[j] += ((matrix[r0, j] * x0 + matrix[r1, j] * x1) + (matrix[r2, j] * x2 + matrix[r3, j] * x3)) + (
                (matrix[r4, j] * x4 + matrix[r5, j] * x5) + (matrix[r6, j] * x6 + matrix[r7, j] * x7)
            )
        l += 8  # noqa: E741
    while l + 2 <= m:
        r0, r1, x0, x1 = rows[l], rows[l + 1], factors[l], factors[l + 1]
        for j in range(n):
            total[j] += matrix[r0, j] * x0 + matrix[r1, j] * x1
        l += 2  # noqa: E741
    if l < m:
        r0, x0 = rows[l], factors[l]
        for j in range(n):
            total[j] += matrix[r0, j] * x0


@compiled
def n_up_to(bits: Any, limit: Any) -> Any:
    """Count entries of at most `limit`; counted in float32, which is exact here and adds eight at a time."""
    count, top = np.float32(0), bits.dtype.type(limit)
    for j in range(len(bits)):  # not over the entries themselves: only this is done eight at a time
        count += np.float32(1) if bits[j] <= top else np.float32(0)
    return count


@compiled
def largest_below(bits: Any, limit: Any) -> Any:
    """Give the largest entry below `limit`, -1 when there is none."""
    none, top = bits.dtype.type(-1), bits.dtype.type(limit)
    largest = none
    for j in range(len(bits)):
        largest = max(largest, bits[j] if bits[j] < top else none)
    return largest


@compiled
def limit_of(bits: Any, k: int, infinity: Any, search: Any) -> Any:
    """Give a number with k entries up to it; where ties leave none, the number that the k-th entry and others share.

    Floats that are not negative have the order of their bits read as integers, and integers compare fast. The search
    begins where that for another instance ended; that changes how long it takes, not which entries are chosen.

    Parameters
    ----------
    bits : int array of shape (n,)
    k : int
        At most the number of entries below `infinity`.
    infinity : int
        Bits of infinity.
    search : int64 array of shape (2,)
        Where the last search ended, and how far entries lay from each other there; overwritten.
    """
    low, below = np.int64(-1), np.float32(0)
    high, up_to = np.int64(infinity), np.float32(len(bits))
    middle, width, n_steps = search[0], search[1], 0
    while high - low > 1:
        if not low < middle < high:
            middle = low + (high - low) // 2
        count = n_up_to(bits, middle)
        if count == k:
            high = middle
            break
        if count < k:
            low, below = middle, count
        else:
            high, up_to = middle, count
        n_steps += 1
        if low < 0 or high == infinity:
            # Nothing is known of one side yet: go there by the distance between entries, each time farther.
            middle += np.int64((k + np.float32(0.5) - count) * width)
            width *= 2
        elif n_steps % 3:
            search[1] = 1 + np.int64((high - low) / (up_to - below))
            middle = low + np.int64((high - low) * (k + np.float32(0.5) - below) / (up_to - below))
        else:
            middle = low + (high - low) // 2
    search[0] = high
    return high


@compiled
def choose_neighbours(bits: Any, limit: Any, k: int, chosen: Any) -> None:
    """Write the places of the `k` smallest entries, with `limit` from `limit_of`; ties by lower place.

    `chosen` has one more place than there are entries, so that every place can be written before it is known to stay.
    """
    top, count = bits.dtype.type(limit), 0
    for j in range(len(bits)):
        chosen[count] = j
        count += bits[j] <= top
    if count == k:
        return
    n_ties, count = k - int(n_up_to(bits, limit - 1)), 0
    for j in range(len(bits)):
        if bits[j] < limit or (bits[j] == limit and n_ties > 0):
            chosen[count] = j
            count += 1
            n_ties -= bits[j] == limit


@compiled
def query_scale(near: Any, near_bits: Any, search: Any, usual_scale: Any, infinity: Any) -> Any:
    """Distance to the 7th neighbour; with duplicates to the first that is none, else the usual scale.

    `near` has one place more than there are neighbours, in which bits become a float again.
    """
    k = len(near) - 1
    limit = limit_of(near_bits[:k], min(LOCAL_NEIGHBOUR, k), infinity, search)
    near_bits[k] = largest_below(near_bits[:k], limit + 1)
    if near[k] > 0:
        return np.sqrt(near[k])
    nearest = near.dtype.type(np.inf)
    for l in range(k):  # noqa: E741
        if 0 < near[l] < nearest:
            nearest = near[l]
    return np.sqrt(nearest) if nearest < np.inf else usual_scale


@compiled
def exponentials(exponents: Any, powers: Any, power_bits: Any) -> None:
    """Replace exponents of at most 0 by their exponentials; float32 ones eight at a time, good to some 1e-7."""
    if exponents.itemsize != 4:
        for l in range(len(exponents)):  # noqa: E741
            exponents[l] = np.exp(exponents[l])
        return
    for l in range(len(exponents)):  # noqa: E741
        # 2^x = 2^n 2^f with |f| <= 1/2: the bits of 2^n, and Taylor's series of 2^f.
        x = max(exponents[l] * np.float32(1.4426950408889634), np.float32(-126))
        n = np.int32(x - np.float32(0.5))
        f = x - np.float32(n)
        power_bits[l] = (n + np.int32(127)) << np.int32(23)
        series = np.float32(0.00133335581) + f * np.float32(0.00015403530)
        series = np.float32(0.00961812911) + f * series
        series = np.float32(0.0555041087) + f * series
        series = np.float32(0.240226507) + f * series
        series = np.float32(0.693147181) + f * series
        exponents[l] = np.float32(1) + f * series
    for l in range(len(exponents)):  # noqa: E741
        exponents[l] *= powers[l]


@compiled
def multiply_inverse(nodes: Any, left: Any, block: int, chosen: Any, values: Any, full: Any, result: Any) -> None:
    """Write G_NN values, with G as it is when the nodes of a block (-1 = none) are left out."""
    k, inverse = len(chosen), nodes.inverse
    if len(inverse) <= _ROWS_PER_NEIGHBOUR * k:
        combine_rows(inverse, chosen, values, full)
        for l in range(k):  # noqa: E741
            result[l] = full[chosen[l]]
    else:
        for l in range(k):  # noqa: E741
            row, value = inverse[chosen[l]], values[l]
            total = row[chosen[l]] * value
            for m in range(l):
                entry = row[chosen[m]]
                total += entry * values[m]
                result[m] += entry * value
            result[l] = total
    if block < 0:
        return
    first, end = left.starts[block], left.starts[block + 1]
    square = left.square_starts[block]
    for i in range(first, end):
        along = values.dtype.type(0)
        for l in range(k):  # noqa: E741
            along += inverse[left.nodes[i], chosen[l]] * values[l]
        for j in range(first, end):
            factor = along * left.squares[square + (i - first) * (end - first) + j - first]
            for l in range(k):  # noqa: E741
                result[l] += factor * inverse[left.nodes[j], chosen[l]]


@compiled
def solve_extension(
    nodes: Any, left: Any, block: int, chosen: Any, d: Any, tolerance: Any, work: Any, full: Any
) -> Any:
    """Solve (I + D G_NN D) z = d by conjugate gradients, in `work`, five arrays.

    Its eigenvalues lie close together but for the first, which the first step takes care of: the curvature of the last
    step is estimated from the mean diagonal instead of computed, which spares a product. Most often one is enough.
    """
    k = len(chosen)
    z, r, p, scaled, product = work
    zero = d.dtype.type(0)
    norm, mean = zero, zero
    for l in range(k):  # noqa: E741
        scaled[l] = d[l] * d[l]
        norm += scaled[l]
        mean += scaled[l] * nodes.diagonal[chosen[l]]
    mean = d.dtype.type(1) + mean / d.dtype.type(k)
    multiply_inverse(nodes, left, block, chosen, scaled, full, product)
    curvature, residual = zero, zero
    for l in range(k):  # noqa: E741
        product[l] = d[l] + d[l] * product[l]
        curvature += d[l] * product[l]
    step = norm / curvature if curvature > zero else zero
    for l in range(k):  # noqa: E741
        r[l] = d[l] - step * product[l]
        residual += r[l] * r[l]
    turn = residual / norm if norm > zero else zero
    for l in range(k):  # noqa: E741
        z[l] = step * d[l]
        p[l] = r[l] + turn * d[l]
    for _ in range(k + 20):
        if residual <= tolerance * tolerance * norm:
            break
        for l in range(k):  # noqa: E741
            scaled[l] = d[l] * p[l]
        multiply_inverse(nodes, left, block, chosen, scaled, full, product)
        curvature = zero
        for l in range(k):  # noqa: E741
            product[l] = p[l] + d[l] * product[l]
            curvature += p[l] * product[l]
        step = residual / curvature
        new_residual = zero
        for l in range(k):  # noqa: E741
            z[l] += step * p[l]
            r[l] -= step * product[l]
            new_residual += r[l] * r[l]
        turn = new_residual / residual
        for l in range(k):  # noqa: E741
            p[l] = r[l] + turn * p[l]
        residual = new_residual
    # p'Ap = r'Ar - turn^2 p_old'Ap_old, with r'Ar about the mean diagonal times r'r.
    last = mean * residual - turn * turn * curvature
    step = residual / last if last > zero else zero
    for l in range(k):  # noqa: E741
        z[l] += step * p[l]
    return z


@compiled
def extend_row(row: Any, bits: Any, query: Any, nodes: Any, left: Any, block: int, k: int, work: Any) -> Any:
    """Tie one instance to the graph.

    Parameters
    ----------
    row : float array of shape (n_nodes,)
        Squared distances; infinite where a node may be no neighbour.
    bits : int array of shape (n_nodes,)
        The same memory as `row`, read as integers.
    query : tuple
        Tolerance, scale that takes the place of local ones (0 = local), usual scale, bits of infinity.
    block : int
        Of `left`, to be left out; -1 = none.
    k : int
        Neighbours.
    work : tuple of arrays
        See `extension.workspace`; overwritten.

    Returns
    -------
    conductance, inflow : float
    """
    tolerance, common_scale, usual_scale, infinity = query
    steps, full, all_d, all_near, all_near_bits, powers, power_bits, places, searches = work
    zero = bits.dtype.type(0)
    for j in range(len(bits)):
        # Distances from sums of products may fall a little below zero for duplicates; so do their bits.
        bits[j] = max(bits[j], zero)
    limit = limit_of(bits, k, infinity, searches[0])
    choose_neighbours(bits, limit, k, places)
    chosen, d, near = places[:k], all_d[:k], all_near[: k + 1]
    for l in range(k):  # noqa: E741
        near[l] = row[chosen[l]]
    own = common_scale
    if common_scale <= 0:
        own = query_scale(near, all_near_bits[: k + 1], searches[1], usual_scale, infinity)
    # The root of v w takes half the exponent.
    half = row.dtype.type(-0.5) / own
    for l in range(k):  # noqa: E741
        d[l] = near[l] * nodes.inverse_scales[chosen[l]] * half
    exponentials(d, powers, power_bits)
    for l in range(k):  # noqa: E741
        d[l] *= nodes.roots[chosen[l]]
    z = solve_extension(nodes, left, block, chosen, d, tolerance, steps, full)
    a, q = 0.0, 0.0
    for l in range(k):  # noqa: E741
        flow = d[l] * z[l]
        a += flow
        q += flow * nodes.soft_labels[chosen[l]]
    if block >= 0:
        for l in range(k):  # noqa: E741
            for i in range(left.starts[block], left.starts[block + 1]):
                q += d[l] * z[l] * left.pulls[i] * nodes.inverse[left.nodes[i], chosen[l]]
    return a, q
