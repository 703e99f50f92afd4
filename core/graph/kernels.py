"""Compiled inner loops: one-node extensions of a fixed graph, row by row.

One row never looks at another: results do not depend on which rows are handed over together.
"""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from core.graph.similarity import LOCAL_NEIGHBOUR
from core.numerics.compiled import combine_rows, compiled, count_up_to, dot


@compiled
def n_up_to(bits: Any, limit: Any) -> Any:
    """Count entries of at most `limit`, as a float, which the search goes on with."""
    return np.float32(count_up_to(bits, bits.dtype.type(limit)))


@compiled
def largest_below(bits: Any, limit: Any) -> Any:
    """Return the largest entry below `limit`, -1 when there is none."""
    none, top = bits.dtype.type(-1), bits.dtype.type(limit)
    largest = none
    for j in range(len(bits)):
        largest = max(largest, bits[j] if bits[j] < top else none)
    return largest


@compiled
def limit_of(bits: Any, k: int, infinity: Any, search: Any) -> Any:
    """Return a number with k entries up to it; where ties leave none, the number that the k-th entry and others share.

    Floats that are not negative have the order of their bits read as integers, and integers compare fast. At least k
    entries are below the bits of infinity. `search`, overwritten, says where the last search ended and how far entries
    lay from each other there; it changes how long this one takes, not which entries are chosen.
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
    """Return the distance to the 7th neighbour; with duplicates to the first that is none, else the usual scale.

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


RESIDUAL: Final = 0.01
"""Relative residual that ends a solve; with the last, estimated step soft labels are good to about 5e-6."""
_ROWS_PER_NEIGHBOUR: Final = 6
"""Up to this many nodes per neighbour whole rows are read; beyond, the entries of the k x k block alone."""


class Nodes(NamedTuple):
    """A fixed graph, as the loops read it; all floats in single precision.

    `roots` are square roots of the multiplicities, `inverse_scales` 1 / s, `inverse` is G, symmetric, whose columns
    beyond the nodes only fill rows up, `diagonal` that of G, `soft_labels` h.
    """

    roots: NDArray[Any]
    inverse_scales: NDArray[Any]
    inverse: NDArray[Any]
    diagonal: NDArray[Any]
    soft_labels: NDArray[Any]


class LeftOut(NamedTuple):
    """Blocks of nodes to be left out for some queries: G becomes G + G_P K G_P' and h becomes h + G_P t.

    `starts`, of shape (n_blocks + 1,), says where each block begins in `nodes` and `pulls` (t), `square_starts` where
    its square begins in `squares` (K, row by row).
    """

    starts: NDArray[np.int64]
    nodes: NDArray[np.int64]
    square_starts: NDArray[np.int64]
    squares: NDArray[Any]
    pulls: NDArray[Any]


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
        f = np.float32(x - np.float32(n))
        power_bits[l] = (n + np.int32(127)) << np.int32(23)
        series = f * np.float32(0.00015403530) + np.float32(0.00133335581)
        series = f * series + np.float32(0.00961812911)
        series = f * series + np.float32(0.0555041087)
        series = f * series + np.float32(0.240226507)
        series = f * series + np.float32(0.693147181)
        exponents[l] = f * series + np.float32(1)
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
            row, value, entries = inverse[chosen[l]], values[l], full[:l]
            for m in range(l):
                entries[m] = row[chosen[m]]
                result[m] += entries[m] * value
            result[l] = row[chosen[l]] * value + dot(entries, values[:l])
    if block < 0:
        return
    first, end, entries = left.starts[block], left.starts[block + 1], full[:k]
    square = left.square_starts[block]
    for i in range(first, end):
        row = inverse[left.nodes[i]]
        for l in range(k):  # noqa: E741
            entries[l] = row[chosen[l]]
        along = dot(entries, values)
        for j in range(first, end):
            factor = along * left.squares[square + (i - first) * (end - first) + j - first]
            row = inverse[left.nodes[j]]
            for l in range(k):  # noqa: E741
                result[l] += factor * row[chosen[l]]


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
    for l in range(k):  # noqa: E741
        z[l] = zero
        r[l] = p[l] = d[l]
        scaled[l] = d[l] * d[l]
        product[l] = nodes.diagonal[chosen[l]]
    mean = d.dtype.type(1) + dot(scaled, product) / d.dtype.type(k)
    norm = residual = dot(d, d)
    turn = curvature = zero
    for _ in range(k + 20):
        if residual <= tolerance * tolerance * norm:
            break
        for l in range(k):  # noqa: E741
            scaled[l] = d[l] * p[l]
        multiply_inverse(nodes, left, block, chosen, scaled, full, product)
        for l in range(k):  # noqa: E741
            product[l] = d[l] * product[l] + p[l]
        curvature = dot(p, product)
        step = residual / curvature
        for l in range(k):  # noqa: E741
            z[l] += step * p[l]
            r[l] -= step * product[l]
        new_residual = dot(r, r)
        turn = new_residual / residual
        for l in range(k):  # noqa: E741
            p[l] = turn * p[l] + r[l]
        residual = new_residual
    # p'Ap = r'Ar - turn^2 p_old'Ap_old, with r'Ar about the mean diagonal times r'r.
    last = mean * residual - turn * turn * curvature
    step = residual / last if last > zero else zero
    for l in range(k):  # noqa: E741
        z[l] += step * p[l]
    return z


@compiled
def extend_row(row: Any, bits: Any, query: Any, nodes: Any, left: Any, block: int, k: int, work: Any) -> Any:
    """Tie one instance to the graph; return its conductance and inflow.

    `row` holds the squared distances to the nodes, infinite where a node may be no neighbour; `bits` is the same
    memory, read as integers. `query` is (tolerance, scale that takes the place of local ones (0 = local), usual scale,
    bits of infinity); `block`, of `left`, is left out (-1 = none); `work` is of `extension.workspace` and overwritten.
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
        # The 7th distance is looked for as far below the limit as it was for the instance before.
        searches[1, 0] += limit
        own = query_scale(near, all_near_bits[: k + 1], searches[1], usual_scale, infinity)
        searches[1, 0] -= limit
    # The root of v w takes half the exponent.
    half = row.dtype.type(-0.5) / own
    for l in range(k):  # noqa: E741
        d[l] = near[l] * nodes.inverse_scales[chosen[l]] * half
    exponentials(d, powers, power_bits)
    for l in range(k):  # noqa: E741
        d[l] *= nodes.roots[chosen[l]]
    z = solve_extension(nodes, left, block, chosen, d, tolerance, steps, full)
    flows, entries = near[:k], full[:k]
    for l in range(k):  # noqa: E741
        flows[l] = d[l] * z[l]
        entries[l] = nodes.soft_labels[chosen[l]]
    conductance, inflow = dot(d, z), dot(flows, entries)
    if block >= 0:
        for i in range(left.starts[block], left.starts[block + 1]):
            row = nodes.inverse[left.nodes[i]]
            for l in range(k):  # noqa: E741
                entries[l] = row[chosen[l]]
            inflow += left.pulls[i] * dot(flows, entries)
    return conductance, inflow
