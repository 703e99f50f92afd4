"""Compiled search for the nearest: the k smallest of a row of squared distances, and the scale they give."""

from typing import Any

import numpy as np

from core.graph.similarity import LOCAL_NEIGHBOUR
from core.numerics.compiled import compiled, count_up_to


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
