"""Compiled squared distances, summed directly: symmetric to the last bit, and 0 for duplicates."""

from typing import Any

import numpy as np

from core.numerics.compiled import compiled, dot


@compiled
def symmetric_squared_distances(points: Any) -> Any:
    """Squared distances between all rows of a float array of shape (n, n_features); gives one of shape (n, n)."""
    n = len(points)
    result, room = np.zeros((n, n), dtype=points.dtype), np.zeros(points.shape[1], dtype=points.dtype)
    for i in range(n):
        for j in range(i):
            total = _squared_distance(points[i], points[j], room)
            result[i, j] = total
            result[j, i] = total
    return result


@compiled
def squared_distances_of_pairs(points: Any, others: Any, rows: Any, other_rows: Any) -> Any:
    """Squared distances of pairs of rows of two float arrays; gives an array of shape (n_pairs,)."""
    result, room = np.zeros(len(rows), dtype=points.dtype), np.zeros(points.shape[1], dtype=points.dtype)
    for pair in range(len(rows)):
        result[pair] = _squared_distance(points[rows[pair]], others[other_rows[pair]], room)
    return result


@compiled
def _squared_distance(left: Any, right: Any, room: Any) -> Any:
    for feature in range(len(room)):
        room[feature] = left[feature] - right[feature]
    return dot(room, room)
