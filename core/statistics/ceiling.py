"""The highest AUC that even a perfect detector could show when the readers who judge it disagree.

Model: every case is truly positive or not; readers are independent given that truth, with one sensitivity a and one
specificity 1 - b. With three votes a case, the share of truly positive cases, a and b follow from how often no, one,
two or all votes are positive. The majority of k votes finds a positive case with a binomial probability; the share of
positive majorities then says how common positive cases are, among those chosen and, weighted, among all candidates. It
depends less on b than the share of positive votes does. A detector whose AUC against the truth is A reads, against the
majority,

    1/2 + (A - 1/2) (PPV + NPV - 1),

where PPV and NPV say how often a positive, a negative majority label is true. The ceiling is its value at A = 1:
(PPV + NPV) / 2.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from core.statistics.bayesian_bootstrap import N_DRAWS, PSEUDO_CASES_OF_AUC, limits
from core.statistics.consensus import FloatArray
from core.statistics.estimate import ONE_PATIENT, Ceiling, Estimate, check_level, not_computable

N_STEPS = 100
CONTRADICTED = "the votes contradict a model of two classes of cases and readers who are alike"
NO_BETTER_THAN_CHANCE = "readers agree no better than chance, so no detector can be shown to be better than chance"


def _majority_ceiling(found: FloatArray, false: FloatArray, truth: FloatArray, n_readers: int) -> FloatArray:
    """Return (PPV + NPV) / 2 of the majority, vectorised; .5 where the model leaves one class only.

    `found` and `false` are the chances of a positive vote on a positive and on a negative case, `truth` the share of
    positive cases; ties of an even number of readers are left out, as in the labels.
    """
    most = math.floor(n_readers / 2)

    def majority(positive: FloatArray) -> FloatArray:
        yes = np.asarray(special.bdtrc(most, n_readers, positive))
        no = np.asarray(special.bdtrc(most, n_readers, 1.0 - positive))
        share: FloatArray = yes / (yes + no)
        return share

    sensitivity, false_share = majority(found), majority(false)
    labelled = truth * sensitivity + (1.0 - truth) * false_share
    with np.errstate(divide="ignore", invalid="ignore"):
        positive_value = truth * sensitivity / labelled
        negative_value = (1.0 - truth) * (1.0 - false_share) / (1.0 - labelled)
    value = 0.5 * (positive_value + negative_value)
    one_class = ~((truth > 0.0) & (truth < 1.0)) | ~np.isfinite(value)
    return np.where(one_class, 0.5, value)


def _label(n_votes: int, positive: FloatArray) -> FloatArray:
    """Return the mean majority label of so many votes, each positive with a chance; a tie counts half."""
    no, tie_or_no = (np.asarray(special.bdtr(most, n_votes, positive)) for most in ((n_votes - 1) // 2, n_votes // 2))
    return 1.0 - (no + tie_or_no) / 2.0


def agreement_ceiling(
    votes: ArrayLike,
    *,
    weight: ArrayLike | None = None,
    patient: ArrayLike | None = None,
    n_readers: int = 3,
    level: float = 0.95,
) -> Ceiling:
    """Estimate the readers' sensitivity and specificity, and the ceiling on the chosen cases and on all candidates.

    Sensitivity and specificity are estimated on the chosen cases; the weights, inverse inclusion probabilities, only
    change how common positives are; cases of equal weight are taken as one stratum. Votes, of shape (n_cases,
    n_readers), are 1 positive, 0 negative, NaN none; cases with fewer than two are left out. `n_readers` votes stand
    behind a majority label. Not computable when no case has three votes, when readers agree no better than chance, or
    when the votes contradict the model. Intervals by a Bayesian bootstrap over patients, on the logit scale.

    References
    ----------
    Dawid and Skene (1979), Applied Statistics 28, 20-28, with readers that are alike; Hui and Walter (1980), Biometrics
    36, 167-171.
    """
    check_level(level)
    matrix = np.asarray(votes, dtype=np.float64)
    given = (~np.isnan(matrix)).sum(axis=1)
    kept = given >= 2
    weights = np.ones(len(matrix)) if weight is None else np.asarray(weight, dtype=np.float64)
    weights = np.where(np.isfinite(weights) & (weights > 0.0), weights, 0.0)[kept]
    left_out = {"fewer than two votes": int((~kept).sum())} if not kept.all() else {}
    n, given = int(kept.sum()), given[kept]
    positive = np.nansum(matrix[kept], axis=1)
    method = "(PPV + NPV) / 2 of the majority label, readers alike and independent given the truth"
    template = Estimate(None, None, None, level, n, left_out, "", method)
    codes = np.arange(n) if patient is None else np.unique(np.asarray(patient)[kept], return_inverse=True)[1]
    if why := _why_no_model(positive, given):
        return _no_ceiling(why, template, n_readers)
    if ((positive == 0) | (positive == given)).all():
        reason = "interval not computable: the readers agree fully"
        full = replace(template, value=1.0, reason=reason)
        return Ceiling(full, full, 0.0, n_readers, full, full)
    draws = _draw_readers(positive, given, weights, codes)
    found, false = draws.found, draws.false
    naive: FloatArray = _majority_ceiling(found, false, draws.truth, n_readers)
    weighted = _majority_ceiling(found, false, draws.weighted_truth, n_readers)
    wrong = draws.truth * (1.0 - found) + (1.0 - draws.truth) * false
    n_patients = int(codes.max()) + 1
    if not 0.0 < draws.truth[0] < 1.0:
        return _no_ceiling(CONTRADICTED, template, n_readers)

    def estimate(values: FloatArray, low: float, how: str) -> Estimate:
        one = replace(template, value=float(values[0]), method=f"{how}; interval by a Bayesian bootstrap over patients")
        if n_patients < 2:
            return replace(one, reason=ONE_PATIENT)
        # A ceiling lies between one half and one, so the logit is taken of that stretch.
        ends = limits((values[1:] - low) / (1.0 - low), n_patients, level, is_share=True)
        below, above = (low + (1.0 - low) * end for end in ends)
        return replace(one, low=min(below, float(values[0])), high=max(above, float(values[0])))

    why = "" if 0.0 < draws.weighted_truth[0] < 1.0 else CONTRADICTED
    if not weights.any():
        why = "no case has an inclusion probability"
    return Ceiling(
        estimate(naive, 0.5, method),
        _no_ceiling(why, template, n_readers).weighted if why else estimate(weighted, 0.5, method),
        float(wrong[0]),
        n_readers,
        estimate(found, 0.0, "positive votes on truly positive cases"),
        estimate(1.0 - false, 0.0, "negative votes on truly negative cases"),
    )


def _no_ceiling(why: str, like: Estimate, n_readers: int) -> Ceiling:
    missing = not_computable(why, n=like.n, left_out=like.left_out, level=like.level, method=like.method)
    return Ceiling(missing, missing, None, n_readers, missing, missing)


def _why_no_model(positive: FloatArray, given: NDArray[np.int64]) -> str:
    if not given.size:
        return "no case has two votes"
    share = float((positive / given).mean())
    if not 0.0 < share < 1.0:
        return "one category only"
    agreeing = 1.0 - 2.0 * positive * (given - positive) / (given * (given - 1.0))
    if float(agreeing.mean()) <= share**2 + (1.0 - share) ** 2:
        return NO_BETTER_THAN_CHANCE
    if given.max() < 3:
        return "no case has three votes, which sensitivity and specificity need"
    return ""


@dataclass(frozen=True)
class _ReaderDraws:
    """The estimate, then draws of it, each of shape (1 + n_draws,)."""

    found: FloatArray
    false: FloatArray
    truth: FloatArray
    weighted_truth: FloatArray


def _draw_readers(
    positive: FloatArray, given: NDArray[np.int64], weight: FloatArray, patient: NDArray[np.int64]
) -> _ReaderDraws:
    rng = np.random.default_rng(0)
    by_patient = rng.standard_gamma(1.0, (N_DRAWS, int(patient.max()) + 1))
    own = np.vstack((np.ones(by_patient.shape[1]), by_patient))
    patterns, kind = np.unique(np.stack((positive, given * 1.0), axis=1), axis=0, return_inverse=True)
    by_pattern = [np.bincount(patient, kind.ravel() == k, own.shape[1]) for k in range(len(patterns))]
    counts = own @ np.stack(by_pattern, axis=1)
    found, false = _alike_readers(counts, patterns)
    labels, numbers = np.sign(2.0 * positive - given) / 2.0 + 0.5, np.unique(given)
    # The majority label to expect of a negative case, and how much more of a positive one, by the number of its votes.
    false_label = np.stack([_label(int(n), false) for n in numbers])
    step = np.stack([_label(int(n), found) for n in numbers]) - false_label
    shares = []
    for size_of_case, pseudo_cases in ((np.ones(weight.size), 0.0), (weight, PSEUDO_CASES_OF_AUC[1])):
        above, apart = np.zeros(len(own)), np.zeros(len(own))
        for size in np.unique(size_of_case[size_of_case > 0.0]):
            rows = size_of_case == size
            # What unjudged candidates could hide: a case that nobody, and one that everybody finds positive.
            pseudo = np.append(np.zeros((2, 1)), rng.standard_gamma(pseudo_cases, (2, N_DRAWS)), axis=1)
            sums = [
                np.bincount(patient[rows], x, own.shape[1]) for x in (labels[rows], *(given[rows] == numbers[:, None]))
            ]
            hits, *by_number = (own @ x for x in sums)
            mass = np.stack(by_number)
            mass[-1] += pseudo.sum(axis=0)
            scale = size * rows.sum() / mass.sum(axis=0)
            above += scale * (hits + pseudo[1] - (mass * false_label).sum(axis=0))
            apart += scale * (mass * step).sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            shares.append(np.clip(np.nan_to_num(above / apart), 0.0, 1.0))
    return _ReaderDraws(found, false, shares[0], shares[1])


def _alike_readers(counts: FloatArray, patterns: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the chance of a positive vote on a positive, on a negative case, by expectation-maximisation.

    Half an imaginary right and half a wrong vote on each class keep readers from being called perfect.
    """
    positive, votes = patterns.T
    belief = _first_belief(counts, positive, votes)
    for _ in range(N_STEPS):
        yes, no = counts * belief, counts * (1.0 - belief)
        found = (yes @ positive + 0.5) / (yes @ votes + 1.0)
        false = (no @ positive + 0.5) / (no @ votes + 1.0)
        share = (yes.sum(axis=1) + 0.5) / (counts.sum(axis=1) + 1.0)
        odds = np.log(share / (1.0 - share))[:, None] + np.outer(np.log(found / false), positive)
        odds += np.outer(np.log((1.0 - found) / (1.0 - false)), votes - positive)
        belief = special.expit(odds)
    return found, false


def _first_belief(counts: FloatArray, positive: FloatArray, votes: FloatArray) -> FloatArray:
    """Return the chance of being positive by pattern, from moments; from the share of positive votes where they fail.

    With m_j the share of positive cases among j votes of a case, all positive, both chances solve x^2 - s x + q = 0
    where m_2 = s m_1 - q and m_3 = s m_2 - q m_1.
    """
    moments, product = [], np.ones_like(positive)
    for j in range(3):
        enough = counts * (votes > j)
        product = product * np.maximum(positive - j, 0.0) / np.maximum(votes - j, 1.0)
        moments.append(enough @ product / enough.sum(axis=1))
    m1, m2, m3 = moments
    with np.errstate(divide="ignore", invalid="ignore"):
        s = (m3 - m1 * m2) / (m2 - m1**2)
        root = np.sqrt(s**2 - 4.0 * (s * m1 - m2))
        found, false = (s + root) / 2.0, (s - root) / 2.0
        share = (m1 - false) / (found - false)
    fine = (found < 1.0) & (false > 0.0) & (share > 0.0) & (share < 1.0)
    found, false, share = (np.where(fine, x, y)[:, None] for x, y in ((found, 0.75), (false, 0.25), (share, 0.5)))
    odds = np.log(share / (1.0 - share)) + np.log(found / false) * positive
    start: FloatArray = special.expit(odds + np.log((1.0 - found) / (1.0 - false)) * (votes - positive))
    return start
