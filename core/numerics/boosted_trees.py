"""Regression by gradient-boosted trees that are kept as plain arrays, so that they can be stored and applied again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from core.numerics.compiled import compiled

FloatArray: TypeAlias = NDArray[np.float64]
N_BINS: Final = 64
"""Bins of a feature, at quantiles of what is learned from."""
_LEAF: Final = -1


@dataclass(frozen=True)
class BoostedTrees:
    """Sum of regression trees; a row goes left at a node when its value is at most the node's threshold."""

    features: NDArray[np.int32]  # shape (n_trees, n_nodes): feature that a node looks at; -1 in a leaf
    thresholds: NDArray[np.float32]  # shape (n_trees, n_nodes)
    left: NDArray[np.int32]  # shape (n_trees, n_nodes): number of the left child; the right one follows it
    values: FloatArray  # shape (n_trees, n_nodes): what a leaf adds
    start: float  # what every prediction begins with

    def predict(self, X: NDArray[np.float32]) -> FloatArray:
        """Return predictions for rows of features, none of them NaN; shape (n,)."""
        found = np.full(len(X), self.start)
        _add_trees(X, self.features, self.thresholds, self.left, self.values, found)
        return found

    def arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Return the trees as arrays fit for an .npz file."""
        return {
            f"{prefix}_features": self.features,
            f"{prefix}_thresholds": self.thresholds,
            f"{prefix}_left": self.left,
            f"{prefix}_values": self.values,
            f"{prefix}_start": np.array(self.start),
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]], prefix: str) -> "BoostedTrees":
        """Read trees back from what `arrays` gave."""
        names = ("features", "thresholds", "left", "values")
        features, thresholds, left, values = (arrays[f"{prefix}_{name}"] for name in names)
        return cls(features, thresholds, left, values, float(arrays[f"{prefix}_start"]))


def fit_boosted_trees(
    X: NDArray[np.float32],
    y: FloatArray,
    weights: FloatArray,
    *,
    n_trees: int,
    rate: float,
    n_leaves: int,
    min_in_leaf: int,
    ridge: float,
) -> BoostedTrees:
    """Fit trees to weighted squared error, each grown best split first; `X`, of shape (n, n_features), has no NaN.

    What scikit-learn's ``HistGradientBoostingRegressor`` fits, with fewer bins. Its trees have no public form that
    could be stored without pickling. A leaf adds the share `rate` of its mean, has at least `min_in_leaf` rows, and the
    less the more `ridge`, which is added to its weight.
    """
    edges = np.full((X.shape[1], N_BINS - 1), np.inf, dtype=np.float32)
    bins = np.empty(X.shape, dtype=np.uint8)
    for feature in range(X.shape[1]):
        found = _bin_edges(X[:, feature])
        edges[feature, : len(found)] = found
        bins[:, feature] = np.searchsorted(found, X[:, feature], side="left")
    start = float(np.average(y, weights=weights))
    n_nodes = 2 * n_leaves - 1
    features = np.full((n_trees, n_nodes), _LEAF, dtype=np.int32)
    thresholds = np.zeros((n_trees, n_nodes), dtype=np.float32)
    left = np.zeros((n_trees, n_nodes), dtype=np.int32)
    values = np.zeros((n_trees, n_nodes))
    residual = y - start
    rows = np.empty(len(X), dtype=np.int64)
    for tree in range(n_trees):
        rows[:] = np.arange(len(X))
        _grow(
            bins, residual, weights, rows, edges, rate, min_in_leaf, ridge,
            features[tree], thresholds[tree], left[tree], values[tree],
        )  # fmt: skip
    return BoostedTrees(features, thresholds, left, values, start)


def _bin_edges(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return ascending upper edges between at most `N_BINS` bins: midpoints of distinct values, or quantiles."""
    distinct = np.unique(values)
    if len(distinct) <= N_BINS:
        return np.asarray(distinct[:-1] + (distinct[1:] - distinct[:-1]) / 2, dtype=np.float32)
    quantiles = np.quantile(values, np.linspace(0, 1, N_BINS + 1)[1:-1], method="lower")
    return np.unique(quantiles)[: N_BINS - 1].astype(np.float32)


@compiled
def _add_trees(X: Any, features: Any, thresholds: Any, left: Any, values: Any, found: Any) -> None:
    for row in range(len(X)):
        total = found[row]
        for tree in range(len(features)):
            node = 0
            while features[tree, node] >= 0:
                child = left[tree, node]
                node = child if X[row, features[tree, node]] <= thresholds[tree, node] else child + 1
            total += values[tree, node]
        found[row] = total


@compiled
def _histogram(bins: Any, residual: Any, weights: Any, rows: Any, begin: int, end: int, into: Any) -> None:
    """Sum weight x residual, weight and rows by feature and bin over rows[begin:end]."""
    into[:] = 0.0
    for place in range(begin, end):
        row = rows[place]
        weight = weights[row]
        push = weight * residual[row]
        for feature in range(bins.shape[1]):
            cell = into[feature, bins[row, feature]]
            cell[0] += push
            cell[1] += weight
            cell[2] += 1.0


@compiled
def _best_split(histogram: Any, min_in_leaf: int, ridge: float) -> Any:
    """Return gain, feature and bin of the best split; a gain of 0 where there is none."""
    best_gain, best_feature, best_bin = 0.0, -1, -1
    for feature in range(histogram.shape[0]):
        push, weight, count = histogram[feature, :, 0].sum(), histogram[feature, :, 1].sum(), 0.0
        for cell in range(histogram.shape[1]):
            count += histogram[feature, cell, 2]
        parent = push * push / (weight + ridge)
        left_push, left_weight, left_count = 0.0, 0.0, 0.0
        for cell in range(histogram.shape[1] - 1):
            left_push += histogram[feature, cell, 0]
            left_weight += histogram[feature, cell, 1]
            left_count += histogram[feature, cell, 2]
            if left_count < min_in_leaf:
                continue
            if count - left_count < min_in_leaf:
                break
            if histogram[feature, cell, 2] == 0.0:
                continue
            right_push, right_weight = push - left_push, weight - left_weight
            gain = left_push**2 / (left_weight + ridge) + right_push**2 / (right_weight + ridge) - parent
            if gain > best_gain:
                best_gain, best_feature, best_bin = gain, feature, cell
    return best_gain, best_feature, best_bin


@compiled
def _subtract(whole: Any, part: Any, into: Any) -> None:
    """Write what is left of one histogram without another; an array as a whole would bring in an error of shapes."""
    for feature in range(whole.shape[0]):
        for cell in range(whole.shape[1]):
            for i in range(whole.shape[2]):
                into[feature, cell, i] = whole[feature, cell, i] - part[feature, cell, i]


@compiled
def _divide(bins: Any, cell: int, rows: Any, begin: int, end: int, moved: Any) -> Any:
    """Put the rows of the left child before those of the right one, each in their order; return where these begin."""
    middle, after = begin, 0
    for place in range(begin, end):
        row = rows[place]
        if bins[row] <= cell:
            rows[middle] = row
            middle += 1
        else:
            moved[after] = row
            after += 1
    for place in range(after):
        rows[middle + place] = moved[place]
    return middle


@compiled
def _grow(
    bins: Any,
    residual: Any,
    weights: Any,
    rows: Any,
    edges: Any,
    rate: float,
    min_in_leaf: int,
    ridge: float,
    features: Any,
    thresholds: Any,
    left: Any,
    values: Any,
) -> None:
    """Grow one tree, and take what it adds from the residuals."""
    n_nodes = len(features)
    begins, ends = np.zeros(n_nodes, dtype=np.int64), np.zeros(n_nodes, dtype=np.int64)
    gains, split_features = np.zeros(n_nodes), np.zeros(n_nodes, dtype=np.int64)
    split_bins = np.zeros(n_nodes, dtype=np.int64)
    histograms = np.zeros((n_nodes, bins.shape[1], edges.shape[1] + 1, 3))
    moved = np.empty(len(rows), dtype=np.int64)
    ends[0] = len(rows)
    _histogram(bins, residual, weights, rows, 0, len(rows), histograms[0])
    gains[0], split_features[0], split_bins[0] = _best_split(histograms[0], min_in_leaf, ridge)
    n_used = 1
    while n_used + 2 <= n_nodes:
        node = int(np.argmax(gains[:n_used]))
        if gains[node] <= 0.0:
            break
        begin, end, feature, cell = begins[node], ends[node], split_features[node], split_bins[node]
        middle = _divide(bins[:, feature], cell, rows, begin, end, moved)
        features[node], thresholds[node], left[node] = feature, edges[feature, cell], n_used
        gains[node] = 0.0
        begins[n_used], ends[n_used], begins[n_used + 1], ends[n_used + 1] = begin, middle, middle, end
        # The larger child is what the smaller one leaves of the parent.
        small = n_used if middle - begin <= end - middle else n_used + 1
        large = 2 * n_used + 1 - small
        _histogram(bins, residual, weights, rows, begins[small], ends[small], histograms[small])
        _subtract(histograms[node], histograms[small], histograms[large])
        for child in (n_used, n_used + 1):
            gains[child], split_features[child], split_bins[child] = _best_split(histograms[child], min_in_leaf, ridge)
        n_used += 2
    for node in range(n_used):
        if features[node] < 0:
            push, weight = 0.0, 0.0
            for place in range(begins[node], ends[node]):
                row = rows[place]
                push += weights[row] * residual[row]
                weight += weights[row]
            values[node] = rate * push / (weight + ridge)
            for place in range(begins[node], ends[node]):
                residual[rows[place]] -= values[node]
