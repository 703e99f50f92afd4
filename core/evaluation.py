"""How well an order of instances agrees with a reference: shares of concordant pairs, in O(n log n)."""

import numpy as np
from numpy.typing import ArrayLike

from core.errors import InvalidInputError
from core.validation import FloatArray, IntArray


def _as_vector(values: ArrayLike, name: str) -> FloatArray:
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1 or not np.isfinite(vector).all():
        raise InvalidInputError(
            f"{name} must be a vector of finite numbers; it has shape {vector.shape}. Drop the rest."
        )
    return vector


def ordering_agreement(true_score: ArrayLike, score: ArrayLike) -> float:
    """Return the share of concordant pairs among the pairs that the true score orders; ties in `score` count half.

    Parameters
    ----------
    true_score : array-like of shape (n_instances,)
        Higher = more unusual. Pairs tied here are left out.
    score : array-like of shape (n_instances,)
        Higher = more unusual.

    Returns
    -------
    float
        In [0, 1]; 0.5 for a constant score, and NaN when the true score is constant. With a true score of two values
        it is the area under the ROC curve.

    References
    ----------
    The paper's footnote to the synthetic data: "the Wilcoxon score or AUC score".

    Examples
    --------
    >>> ordering_agreement([1, 2, 3], [1, 3, 2])
    0.6666666666666666
    """
    truth, scores = _as_vector(true_score, "true_score"), _as_vector(score, "score")
    if len(truth) != len(scores):
        raise InvalidInputError(
            f"true_score has {len(truth)} values and score {len(scores)}; pass one of each per instance."
        )
    order = np.lexsort((scores, truth))
    truth, scores = truth[order], scores[order]
    # Within equal truth the scores ascend, so no inversion is counted there.
    n_discordant = _count_inversions(np.unique(scores, return_inverse=True)[1].astype(np.int64))
    n_tied_both = _n_tied_pairs(np.unique(np.column_stack((truth, scores)), axis=0, return_counts=True)[1])
    n_tied_score = _n_tied_pairs(np.unique(scores, return_counts=True)[1]) - n_tied_both
    n_pairs = len(truth) * (len(truth) - 1) // 2 - _n_tied_pairs(np.unique(truth, return_counts=True)[1])
    if n_pairs == 0:
        return float("nan")
    return (n_pairs - n_discordant - n_tied_score / 2) / n_pairs


def _n_tied_pairs(counts: IntArray) -> int:
    counts = counts.astype(np.int64)
    return int((counts * (counts - 1) // 2).sum())


def _count_inversions(ranks: IntArray) -> int:
    """Count pairs i < j with ranks[i] > ranks[j] by merging sorted blocks, all blocks of one width at a time."""
    n = len(ranks)
    width, total = 1, 0
    values = ranks.copy()
    span = int(values.max(initial=0)) + 1
    position = np.arange(n)
    while width < n:
        block = position // (2 * width)
        in_right = (position // width) % 2 == 1
        # One stable sort merges every pair of blocks: left entries of equal rank come first and are no inversion.
        order = np.argsort(block * span + values, kind="stable")
        right = in_right[order]
        blocks = block[order]
        n_left_so_far = np.cumsum(~right)
        starts = np.flatnonzero(np.r_[True, blocks[1:] != blocks[:-1]])
        before_block = np.r_[0, n_left_so_far[starts[1:] - 1]]
        n_left = np.diff(np.r_[before_block, n_left_so_far[-1]])
        index = np.cumsum(np.r_[True, blocks[1:] != blocks[:-1]]) - 1
        total += int((n_left[index] - (n_left_so_far - before_block[index]))[right].sum())
        values = values[order]
        width *= 2
    return total


def rank_auc(y: ArrayLike, score: ArrayLike, weights: ArrayLike | None = None) -> float:
    """Return the area under the ROC curve of `score` for y > 0 against y <= 0; ties half, optionally weighted.

    Parameters
    ----------
    y : array-like of shape (n,)
        Booleans, 0/1 or -1/+1.
    score : array-like of shape (n,)
        Higher = more likely positive.
    weights : array-like of shape (n,), optional
        Weight of each instance; a pair counts with the product of its weights.

    Returns
    -------
    float
        NaN when one class is missing (or has no weight).
    """
    positive = np.asarray(y) > 0
    scores = _as_vector(score, "score")
    weight = np.ones(len(scores)) if weights is None else _as_vector(weights, "weights")
    if not len(positive) == len(scores) == len(weight):
        raise InvalidInputError(f"y, score and weights have {len(positive)}, {len(scores)} and {len(weight)} values.")
    _, level = np.unique(scores, return_inverse=True)
    n_levels = int(level.max(initial=-1)) + 1
    w_positive = np.bincount(level, weights=weight * positive, minlength=n_levels)
    w_negative = np.bincount(level, weights=weight * ~positive, minlength=n_levels)
    pairs = w_positive.sum() * w_negative.sum()
    if pairs == 0:
        return float("nan")
    below = np.cumsum(w_negative) - w_negative
    return float((w_positive * (below + w_negative / 2)).sum() / pairs)
