"""The highest AUC that even a perfect detector could show when the readers who judge it disagree.

Model: every case is truly positive or not; readers are independent given that truth, and each vote is wrong with the
same probability e. With q the share of positive votes and kappa Fleiss' kappa of "positive or not", the share of truly
positive cases p and e follow from

    q = p (1 - e) + (1 - p) e,        kappa q (1 - q) = p (1 - p) (1 - 2 e)^2,

hence (1 - 2 e)^2 = 4 kappa q (1 - q) + (2 q - 1)^2. The majority of k votes is wrong with a binomial probability.
A detector whose AUC against the truth is A reads, against the majority,

    1/2 + (A - 1/2) (PPV + NPV - 1),

where PPV and NPV say how often a positive, a negative majority label is true. The ceiling is its value at A = 1:
(PPV + NPV) / 2.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from core.errors import InvalidInputError
from core.statistics.consensus import FloatArray
from core.statistics.estimate import Ceiling, Estimate, check_level, logit_interval, not_computable, t_quantile

NO_BETTER_THAN_CHANCE = "readers agree no better than chance, so no detector can be shown to be better than chance"


def reader_error(kappa: float, positive_share: float) -> float:
    """Return the probability that a vote is wrong, from Fleiss' kappa and the share of positive votes.

    Parameters
    ----------
    kappa : float
        Fleiss' kappa of "positive or not", in (0, 1].
    positive_share : float
        Share of positive votes, in (0, 1).

    Returns
    -------
    float
        In [0, 0.5).

    Examples
    --------
    >>> round(reader_error(0.2647, 0.32), 3)
    0.2
    """
    if not 0.0 < positive_share < 1.0 or not 0.0 < kappa <= 1.0:
        raise InvalidInputError(
            f"kappa {kappa} and share of positive votes {positive_share} must lie above 0 and at most (below) 1."
        )
    return float(_error(np.array(kappa), np.array(positive_share)))


def ceiling_at(error: float, positive_share: float, n_readers: int = 3) -> float:
    """Return the highest AUC that a perfect detector shows against the majority of `n_readers`.

    Parameters
    ----------
    error : float
        Probability that a vote is wrong, in [0, 0.5).
    positive_share : float
        Share of positive votes among the cases in question.
    n_readers : int
        Votes per case; ties (even numbers) are left out, as in the labels.

    Returns
    -------
    float
        In [0.5, 1].

    Examples
    --------
    >>> round(ceiling_at(0.0, 0.2), 2)
    1.0
    """
    return float(_ceiling(np.array(error), np.array(positive_share), n_readers))


def apparent_auc(true_auc: float, ceiling: float) -> float:
    """Return a detector's AUC against the majority, from its AUC against the truth and the ceiling.

    Examples
    --------
    >>> round(apparent_auc(0.90, 0.84), 2)
    0.77
    """
    return 0.5 + (true_auc - 0.5) * (2.0 * ceiling - 1.0)


def _error(kappa: NDArray[np.float64], share: FloatArray) -> FloatArray:
    product = 4.0 * np.maximum(kappa, 0.0) * share * (1.0 - share) + (2.0 * share - 1.0) ** 2
    error: FloatArray = 0.5 * (1.0 - np.sqrt(np.minimum(product, 1.0)))
    return error


def _ceiling(error: FloatArray, share: FloatArray, n_readers: int) -> FloatArray:
    """Return (PPV + NPV) / 2, vectorised; .5 where the model leaves one class only."""
    most = math.floor(n_readers / 2)
    right, wrong = stats.binom.sf(most, n_readers, 1.0 - error), stats.binom.sf(most, n_readers, error)
    wrong = wrong / (right + wrong)
    slope = np.where(error < 0.5, 1.0 - 2.0 * error, 1.0)
    truth = np.clip((share - error) / slope, 0.0, 1.0)
    labelled = truth * (1.0 - wrong) + (1.0 - truth) * wrong
    with np.errstate(divide="ignore", invalid="ignore"):
        positive_value = truth * (1.0 - wrong) / labelled
        negative_value = (1.0 - truth) * (1.0 - wrong) / (1.0 - labelled)
    value = 0.5 * (positive_value + negative_value)
    one_class = (truth <= 0.0) | (truth >= 1.0) | ~np.isfinite(value)
    return np.where(one_class, 0.5, value)


def agreement_ceiling(
    votes: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    patient: ArrayLike | None = None,
    n_readers: int = 3,
    level: float = 0.95,
) -> Ceiling:
    """Estimate the ceiling from the votes, on the chosen cases and weighted to all candidates.

    The readers' error is estimated on the chosen cases; the weights only change how common positives are.

    Parameters
    ----------
    votes : array-like of shape (n_cases, n_readers)
        1 positive, 0 negative, NaN no vote.
    weight : array-like of shape (n_cases,), optional
        Inverse inclusion probability.
    patient : array-like of shape (n_cases,), optional
    n_readers : int
        Votes behind a majority label.
    level : float

    Returns
    -------
    Ceiling
        Intervals by leaving out one patient at a time, on the logit scale.
    """
    check_level(level)
    matrix = np.asarray(votes, dtype=np.float64)
    given = (~np.isnan(matrix)).sum(axis=1)
    kept = given >= 2
    weights = np.ones(len(matrix)) if weight is None else np.asarray(weight, dtype=np.float64)
    weights = np.where(np.isfinite(weights) & (weights > 0.0), weights, 0.0)
    method = "(PPV + NPV) / 2 of the majority label, readers equal and independent given the truth"
    left_out = {"fewer than two votes": int((~kept).sum())} if not kept.all() else {}
    n = int(kept.sum())
    positive = np.nansum(matrix[kept], axis=1)
    share = positive / given[kept]
    if n == 0 or not 0.0 < float(share.mean()) < 1.0:
        why = "no case has two votes" if n == 0 else "one category only"
        missing = not_computable(why, n=n, left_out=left_out, level=level, method=method)
        return Ceiling(missing, missing, None, n_readers)
    agreeing = 1.0 - 2.0 * positive * (given[kept] - positive) / (given[kept] * (given[kept] - 1.0))
    sums = np.stack([np.ones(n), agreeing, share, weights[kept], weights[kept] * share], axis=1)
    codes = np.arange(n) if patient is None else np.unique(np.asarray(patient)[kept], return_inverse=True)[1]
    by_unit = np.zeros((int(codes.max()) + 1, 5))
    np.add.at(by_unit, codes, sums)
    total = by_unit.sum(axis=0)
    kappa, error, naive, weighted = _from_sums(total, n_readers)
    if kappa <= 0.0:
        missing = not_computable(NO_BETTER_THAN_CHANCE, n=n, left_out=left_out, level=level, method=method)
        return Ceiling(missing, missing, None, n_readers)
    _, _, naive_without, weighted_without = _from_sums(total - by_unit, n_readers)
    template = Estimate(None, None, None, level, n, left_out, "", method)
    return Ceiling(
        _with_jackknife(float(naive), naive_without, template),
        _with_jackknife(float(weighted), weighted_without, template),
        float(error),
        n_readers,
    )


def _from_sums(sums: FloatArray, n_readers: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return kappa, readers' error, naive and weighted ceiling from the five sums in the last axis."""
    cases, agreeing, share, weight, weighted_share = np.moveaxis(sums, -1, 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        q, w = share / cases, weighted_share / weight
        chance = q**2 + (1.0 - q) ** 2
        kappa = (agreeing / cases - chance) / (1.0 - chance)
        error = _error(kappa, q)
    return kappa, error, _ceiling(error, q, n_readers), _ceiling(error, w, n_readers)


def _with_jackknife(value: float, without: FloatArray, like: Estimate) -> Estimate:
    n_units = without.size
    if n_units < 2:
        reason = "interval not computable: all cases come from one patient"
        return Estimate(value, None, None, like.level, like.n, like.left_out, reason, like.method)
    error = float(np.sqrt((n_units - 1) / n_units * np.sum((without - without.mean()) ** 2)))
    if not 0.5 < value < 1.0 or error == 0.0:
        reason = "interval not computable: the readers agree fully"
        if value <= 0.5:
            reason = "interval not computable: at these votes the model leaves no positive case among all candidates"
        return Estimate(value, None, None, like.level, like.n, like.left_out, reason, like.method)
    # The ceiling lives between one half and one, so the logit is taken of that stretch.
    low, high = logit_interval(2.0 * value - 1.0, 2.0 * error, t_quantile(like.level, n_units - 1))
    method = f"{like.method}; interval by leaving out one patient at a time"
    return Estimate(value, 0.5 + low / 2.0, 0.5 + high / 2.0, like.level, like.n, like.left_out, "", method)
