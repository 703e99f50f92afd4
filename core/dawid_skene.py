"""Labels from votes weighted by how reliable each reader seems (Dawid and Skene): a sensitivity analysis."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import InvalidInputError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ReaderReliability:
    """What the model found.

    Attributes
    ----------
    probability : ndarray of shape (n_cases,)
        Probability that the case is positive given all votes; NaN without a vote.
    prevalence : float
        Estimated share of positives; NaN when nothing could be estimated.
    sensitivity, specificity : ndarray of shape (n_readers,)
        NaN for a reader without votes.
    n_iterations : int
    converged : bool
    n : int
        Cases with a vote.
    left_out : dict of str to int
    reason : str
        Why nothing could be estimated; empty otherwise.
    """

    probability: Floats
    prevalence: float
    sensitivity: Floats
    specificity: Floats
    n_iterations: int
    converged: bool
    n: int
    left_out: dict[str, int]
    reason: str = ""

    @property
    def label(self) -> Floats:
        """1 above a probability of one half, 0 below, NaN on it or without a vote."""
        return np.where(np.abs(self.probability - 0.5) < 1e-9, np.nan, np.heaviside(self.probability - 0.5, np.nan))


def dawid_skene(votes: ArrayLike, *, max_iterations: int = 500, tolerance: float = 1e-8) -> ReaderReliability:
    """Estimate labels and each reader's sensitivity and specificity together, by expectation-maximisation.

    Starts from the share of positive votes and is deterministic. One imaginary right and one imaginary wrong vote for
    each reader and class, half a vote each, keep a reader with few votes from being called perfect.

    Parameters
    ----------
    votes : array-like of shape (n_cases, n_readers)
        1 positive, 0 negative, NaN no vote.
    max_iterations : int
    tolerance : float
        Stop when no probability moves by more than this.

    Returns
    -------
    ReaderReliability

    References
    ----------
    Dawid and Skene (1979), Applied Statistics 28, 20-28.
    """
    matrix = np.asarray(votes, dtype=np.float64)
    if matrix.ndim != 2 or not np.isin(matrix[~np.isnan(matrix)], (0.0, 1.0)).all():
        raise InvalidInputError("Votes must be a matrix of 1, 0 and NaN, a row for each case. See `positive_votes`.")
    given = ~np.isnan(matrix)
    voted = given.any(axis=1)
    left_out = {"no vote": int((~voted).sum())} if not voted.all() else {}
    if why := _why_not(matrix, given):
        nothing = np.full(matrix.shape[1], np.nan)
        probability = np.full(len(matrix), np.nan)
        return ReaderReliability(probability, np.nan, nothing, nothing, 0, False, int(voted.sum()), left_out, why)
    positive = np.where(given, matrix, 0.0)[voted]
    negative = np.where(given, 1.0 - matrix, 0.0)[voted]
    belief = positive.sum(axis=1) / (positive + negative).sum(axis=1)
    converged, step = False, 0
    while step < max_iterations and not converged:
        step += 1
        prevalence, sensitivity, specificity = _maximise(belief, positive, negative)
        updated = _expect(prevalence, sensitivity, specificity, positive, negative)
        converged = bool(np.abs(updated - belief).max() < tolerance)
        belief = updated
    probability = np.full(len(matrix), np.nan)
    probability[voted] = belief
    silent = ~given.any(axis=0)
    sensitivity, specificity = np.where(silent, np.nan, sensitivity), np.where(silent, np.nan, specificity)
    n = int(voted.sum())
    return ReaderReliability(probability, float(prevalence), sensitivity, specificity, step, converged, n, left_out)


def _why_not(matrix: Floats, given: NDArray[np.bool_]) -> str:
    if not given.any():
        return "not computable: no votes"
    if given.any(axis=0).sum() < 3:
        return "not computable: fewer than three readers"
    if np.unique(matrix[given]).size < 2:
        return "not computable: all votes are equal"
    return ""


def _maximise(belief: Floats, positive: Floats, negative: Floats) -> tuple[float, Floats, Floats]:
    doubt = 1.0 - belief
    sensitivity = (belief @ positive + 0.5) / (belief @ (positive + negative) + 1.0)
    specificity = (doubt @ negative + 0.5) / (doubt @ (positive + negative) + 1.0)
    prevalence = (belief.sum() + 0.5) / (belief.size + 1.0)
    return float(prevalence), sensitivity, specificity


def _expect(prevalence: float, sensitivity: Floats, specificity: Floats, positive: Floats, negative: Floats) -> Floats:
    log_odds = np.log(prevalence / (1.0 - prevalence))
    log_odds = log_odds + positive @ np.log(sensitivity / (1.0 - specificity))
    log_odds = log_odds + negative @ np.log((1.0 - sensitivity) / specificity)
    belief: Floats = 1.0 / (1.0 + np.exp(-log_odds))
    return belief
