"""Compiled distances against plain NumPy."""

import numpy as np

from core.numerics.distances import squared_distances_of_pairs, symmetric_squared_distances


def test_distances_are_symmetric_to_the_last_bit_and_zero_for_duplicates():
    points = np.random.default_rng(0).normal(size=(30, 7)) * np.pi
    points[3] = points[20]
    d2 = symmetric_squared_distances(points)
    np.testing.assert_array_equal(d2, d2.T)
    assert d2[3, 20] == 0
    np.testing.assert_allclose(d2, ((points[:, None] - points) ** 2).sum(axis=2), rtol=1e-12, atol=1e-12)


def test_distances_of_pairs_are_those_of_all_rows_to_the_last_bit():
    points = np.random.default_rng(1).normal(size=(12, 19)) * np.pi
    rows, others = np.array([0, 11, 3, 3]), np.array([5, 0, 3, 7])
    expected = symmetric_squared_distances(points)[rows, others]
    np.testing.assert_array_equal(squared_distances_of_pairs(points, points, rows, others), expected)
    np.testing.assert_array_equal(squared_distances_of_pairs(points[rows], points, np.arange(4), others), expected)
    assert squared_distances_of_pairs(points, points, rows[:0], others[:0]).shape == (0,)
