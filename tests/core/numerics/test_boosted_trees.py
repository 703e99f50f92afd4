"""Boosted trees against scikit-learn's, a hand-made split, and what must not change them."""

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from core.numerics.boosted_trees import BoostedTrees, fit_boosted_trees

OPTIONS = {"n_trees": 20, "rate": 0.1, "n_leaves": 8, "min_in_leaf": 20, "ridge": 10.0}


def make(n=3000, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 5)).astype(np.float32)
    X[:, 0] = X[:, 0] > 1
    X[:, 1] = random.integers(0, 6, n)
    y = X[:, 0] * X[:, 2] + np.sin(2 * X[:, 3]) + 0.3 * X[:, 1] + random.normal(size=n)
    return X, y.astype(np.float64), random.uniform(0.1, 2, n)


def test_they_fit_as_well_as_scikit_learn_s():
    X, y, weights = make()
    found = fit_boosted_trees(X, y, weights, **OPTIONS).predict(X)
    other = HistGradientBoostingRegressor(
        max_iter=20, learning_rate=0.1, max_leaf_nodes=8, min_samples_leaf=20, l2_regularization=10,
        early_stopping=False, max_bins=64,
    )  # fmt: skip
    other.fit(X, y, sample_weight=weights)
    ours, theirs = (float(weights @ (y - p) ** 2) for p in (found, other.predict(X)))
    assert ours == pytest.approx(theirs, rel=0.01)
    assert np.corrcoef(found, other.predict(X))[0, 1] > 0.98


def test_one_split_is_the_best_of_all():
    random = np.random.default_rng(1)
    X, y, weights = random.normal(size=(60, 3)).astype(np.float32), random.normal(size=60), random.uniform(0.5, 2, 60)
    trees = fit_boosted_trees(X, y, weights, n_trees=1, rate=1.0, n_leaves=2, min_in_leaf=5, ridge=1.5)
    residual = y - np.average(y, weights=weights)

    def gain(side):
        return (weights[side] @ residual[side]) ** 2 / (weights[side].sum() + 1.5)

    gains = {}
    for feature in range(3):
        for row in range(60):
            side = X[:, feature] <= X[row, feature]
            if 5 <= side.sum() <= 55:
                gains[feature, row] = gain(side) + gain(~side)
    feature, row = max(gains, key=gains.get)
    side = X[:, feature] <= X[row, feature]
    expected = np.where(side, *(weights[s] @ residual[s] / (weights[s].sum() + 1.5) for s in (side, ~side)))
    np.testing.assert_allclose(trees.predict(X), expected + np.average(y, weights=weights), atol=1e-9)


def test_the_order_of_rows_changes_nothing():
    X, y, weights = make()
    order = np.random.default_rng(2).permutation(len(X))
    first = fit_boosted_trees(X, y, weights, **OPTIONS).predict(X)
    again = fit_boosted_trees(X[order], y[order], weights[order], **OPTIONS).predict(X)
    np.testing.assert_allclose(first, again, atol=1e-9)


def test_a_weight_equals_copies():
    X, y, _ = make(400)
    copies = np.random.default_rng(3).integers(1, 4, 400)
    options = OPTIONS | {"min_in_leaf": 1}
    # Few distinct values, so that the bins are the same.
    X = np.round(X * 2) / 2
    rows = np.repeat(np.arange(400), copies)
    first = fit_boosted_trees(X, y, copies.astype(float), **options).predict(X)
    again = fit_boosted_trees(X[rows], y[rows], np.ones(len(rows)), **options).predict(X)
    np.testing.assert_allclose(first, again, atol=1e-9)


def test_arrays_keep_the_trees():
    X, y, weights = make(500)
    trees = fit_boosted_trees(X, y, weights, **OPTIONS)
    again = BoostedTrees.of_arrays(trees.arrays("own"), "own")
    np.testing.assert_array_equal(again.predict(X), trees.predict(X))


def test_without_a_split_that_leaves_enough_rows_the_mean_remains():
    X, y, weights = make(50)
    trees = fit_boosted_trees(X, y, weights, **(OPTIONS | {"min_in_leaf": 30}))
    np.testing.assert_allclose(trees.predict(X), np.average(y, weights=weights), atol=1e-9)
