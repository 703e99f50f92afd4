"""Weights of the groups of features in the shared graph, learned from the records of a site.

No decision needs to be marked as wrong: weights are kept that explain more of what left-out patients decided.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from core.graph.shared_graph import WeightedCosine
from core.validation import FloatArray, IntArray

N_ROWS: Final = 1000
"""Past instances, of whole patients, that weights are learned from."""
FEWEST_DECISIONS: Final = 5
"""Of both kinds among them, for a task to count."""
_FACTOR: Final = 3.0
_ROUNDS: Final = 3
_LEAST_GAIN: Final = 1e-4
"""Of the mean share explained; less is rounding."""
_SMALLEST_LENGTH: Final = 1e-9


def learn_group_weights(
    past: sparse.csr_array,
    feature_groups: NDArray[Any],
    positive: NDArray[np.bool_],
    patients: IntArray,
    start: Mapping[str, float],
    *,
    ridge: float,
    random: np.random.Generator,
) -> dict[str, float]:
    """Return weights of the groups that explain more of left-out patients' decisions than `start`, or `start`.

    Each weight in turn is tried three times and a third as large; what raises the mean R² over tasks is kept, for three
    rounds at most.

    Parameters
    ----------
    past : csr_array of shape (n_past, n_features)
        Standardised features.
    feature_groups : array of str of shape (n_features,)
    positive : bool array of shape (n_past, n_tasks)
        Decisions.
    patients : int array of shape (n_past,)
    start : mapping of str to float
        Weights to begin with; groups without features keep theirs.
    ridge : float
        As in `core.graph.shared_graph.solve_shared_graph`.
    random : Generator
        Draws the patients.
    """
    rows = _rows_of_patients(patients, random)
    taken = positive[rows]
    counts = taken.sum(axis=0)
    targets = np.where(taken, 1.0, -1.0)[:, np.minimum(counts, len(rows) - counts) >= FEWEST_DECISIONS]
    products = _products_of_groups(past[rows], feature_groups, start)
    codes = np.unique(patients[rows], return_inverse=True)[1]
    weights = dict(start)
    if not targets.size or len(products) < 2 or codes.max() < 1:
        return weights
    best = explained_share(weights, products, targets, codes, ridge)
    for _ in range(_ROUNDS):
        before = best
        for group in products:
            for factor in (_FACTOR, 1 / _FACTOR):
                tried = _with_same_sum(weights | {group: weights[group] * factor}, weights)
                found = explained_share(tried, products, targets, codes, ridge)
                if found > best + _LEAST_GAIN:
                    weights, best = tried, found
        if best == before:
            break
    return weights


def explained_share(
    weights: Mapping[str, float],
    products: Mapping[str, FloatArray],
    targets: FloatArray,
    patients: IntArray,
    ridge: float,
) -> float:
    """Return the mean over tasks of 1 - squared error / variance, each patient's own targets left out.

    Parameters
    ----------
    weights : mapping of str to float
    products : mapping of str to float arrays of shape (n, n)
        Inner products of the centred features of each group, of mean squared length 1.
    targets : float array of shape (n, n_tasks)
        -1 or +1; each task has both.
    patients : int array of shape (n,)
        Codes from 0 on.
    ridge : float
    """
    similarity = sum(weights[group] * product for group, product in products.items())
    lengths = np.sqrt(np.maximum(np.diagonal(similarity), 0.0))
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > _SMALLEST_LENGTH)
    n = len(targets)
    # A large constant leaves the tasks' means free.
    system = similarity * scale[:, None] * scale + 1e4 + ridge * n * np.eye(n)
    inverse = np.linalg.inv(system)
    residuals = inverse @ targets
    for patient in range(int(patients.max()) + 1):
        own = np.flatnonzero(patients == patient)
        residuals[own] = np.linalg.solve(inverse[np.ix_(own, own)], residuals[own])
    return float(np.mean(1 - (residuals**2).mean(axis=0) / targets.var(axis=0)))


def _rows_of_patients(patients: IntArray, random: np.random.Generator) -> IntArray:
    """Draw whole patients until `N_ROWS` rows are reached; one patient at least."""
    codes, counts = np.unique(patients, return_counts=True)
    order = random.permutation(len(codes))
    n_drawn = max(1, int(np.searchsorted(np.cumsum(counts[order]), N_ROWS, side="right")))
    return np.flatnonzero(np.isin(patients, codes[order[:n_drawn]]))


def _products_of_groups(
    past: sparse.csr_array, feature_groups: NDArray[Any], weights: Mapping[str, float]
) -> dict[str, FloatArray]:
    cosine = WeightedCosine.fit(past, feature_groups, dict.fromkeys(weights, 1.0))
    points = (past[:, cosine.columns].toarray() - cosine.center) * cosine.factors
    groups = feature_groups[cosine.columns]
    there = [group for group in weights if (groups == group).any()]
    return {group: points[:, groups == group] @ points[:, groups == group].T for group in there}


def _with_same_sum(changed: dict[str, float], before: Mapping[str, float]) -> dict[str, float]:
    scale = sum(before.values()) / sum(changed.values())
    return {group: weight * scale for group, weight in changed.items()}
