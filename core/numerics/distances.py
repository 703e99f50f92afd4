"""Compiled squared distances, summed directly: symmetric to the last bit, and 0 for duplicates."""

from typing import Any

import numpy as np

from core.numerics.compiled import compiled


@compiled
def symmetric_squared_distances(points: Any) -> Any:
    """Return squared distances of shape (n, n) between all rows of a float array of shape (n, n_features)."""
    n = len(points)
    result = np.zeros((n, n), dtype=points.dtype)
    for i in range(n):
        for j in range(i):
            result[i, j] = result[j, i] = _squared_distance(points[i], points[j])
    return result


@compiled
def squared_distances_of_pairs(points: Any, others: Any, rows: Any, other_rows: Any) -> Any:
    """Return squared distances of shape (n_pairs,) between pairs of rows of two float arrays."""
    result = np.zeros(len(rows), dtype=points.dtype)
    for pair in range(len(rows)):
        result[pair] = _squared_distance(points[rows[pair]], others[other_rows[pair]])
    return result


@compiled
def _squared_distance(left: Any, right: Any) -> Any:
    total = left.dtype.type(0)
    for feature in range(len(left)):
        difference = left[feature] - right[feature]
        total += difference * difference
    return total
