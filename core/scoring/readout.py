"""SoftHAD read out for one task by itself, where soft labels say too little of how far an instance is from each class.

Inside a pure cluster all soft labels are alike, and nothing orders its instances. The readout compares the strongest
similarities to each class, and the distances to it, and calibrates both.
"""

from typing import Final

import numpy as np

from core.baselines import Baseline
from core.features import wilcoxon_auc
from core.graph.similarity import weighted_features
from core.scoring.calibration import fit_line
from core.scoring.logistic import RidgeLogistic, fit_ridge_logistic
from core.validation import FloatArray

_SCALE_RANK: Final = 7
"""The scale is the median squared distance to this neighbour."""
_CLEARLY_BETTER: Final = 1.0
"""Standard errors by which psi has to lower the log loss."""
_MUCH_BETTER: Final = 2.0
"""Standard errors by which logistic regression has to lower it, to be a member."""


class ReadoutSoftHAD(Baseline):
    """P(other decision) from the strongest similarities and the distances to each class, past labels weighted by trust.

    With s the median squared distance to the 7th neighbour, a first pass compares log sum exp(-d^2 / 4s) over both
    classes, own label left out. It chooses whether features are weighted by psi, and gives each past label its trust
    v = P(label). The readout is T = log sum v exp(-d^2 / 8s) over the strongest terms of the one class less that of the
    other, and Q = mean distance, in units of sqrt(s), to the nearest of the other class less that of the one, each
    calibrated: log odds = (2 T + Q) / 3, plus those of a ridge logistic regression where it alone explains the past
    much better.
    Memory grows with the square of the number of past instances.

    Parameters
    ----------
    n_neighbors : int
        Strongest terms, and nearest instances, of each class.
    C : float
        Of the logistic regression, as in scikit-learn.

    Attributes
    ----------
    uses_weights_ : bool
        Whether features are weighted by psi.
    uses_logistic_ : bool
        Whether logistic regression is a member.
    left_out_log_odds_ : float array of shape (n_past,)
        Of "taken", own label left out of similarities and distances.
    """

    fewest_of_each = 2

    def __init__(self, n_neighbors: int = 20, C: float = 1.0) -> None:
        self.n_neighbors = n_neighbors
        self.C = C

    def _fit(self, X: FloatArray, y: FloatArray) -> None:
        self._y, self._psi = y, None
        squared, first = self._first_pass(X)
        psi = np.abs(2 * wilcoxon_auc(X, y[:, None])[:, 0] - 1)
        if psi.any():
            self._psi = psi
            weighted = self._first_pass(X)
            if _gains(_log_loss(first, y), _log_loss(weighted[1], y), _CLEARLY_BETTER):
                squared, first = weighted
            else:
                self._psi = None
        self.uses_weights_ = self._psi is not None
        self._points = weighted_features(X, self._psi)
        self._scale = _scale(squared)
        logistic = fit_ridge_logistic(X, (y > 0).astype(np.float64), self.C * len(y), np.arange(len(y)))
        self.uses_logistic_ = _gains(_log_loss(first, y), _log_loss(logistic.left_out_log_odds, y), _MUCH_BETTER)
        self._logistic: RidgeLogistic | None = logistic if self.uses_logistic_ else None
        added = logistic.left_out_log_odds if self.uses_logistic_ else np.zeros(len(y))
        self._log_trust = -np.logaddexp(0, -y * (first + added))
        strength, nearness = self._both(squared)
        self._lines = _Line(strength, y), _Line(nearness, y)
        self.left_out_log_odds_ = self._joined(strength, nearness) + added

    def _first_pass(self, X: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return squared distances in the past, infinite to oneself, and calibrated log odds from them all."""
        points = weighted_features(X, self._psi)
        squared = _squared_distances(points, points)
        np.fill_diagonal(squared, np.inf)
        terms = -squared / (4 * _scale(squared))
        evidence = _log_sum(terms[:, self._y > 0]) - _log_sum(terms[:, self._y < 0])
        return squared, _Line(evidence, self._y)(evidence)

    def _both(self, squared: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return T and Q of rows with these squared distances to the past."""
        sums, means = [], []
        for label in (1.0, -1.0):
            own = self._y == label
            # A past instance is infinitely far from itself: its own class has one term less for it.
            n = min(self.n_neighbors, int(own.sum()) - 1)
            terms = self._log_trust[own] - squared[:, own] / (8 * self._scale)
            sums.append(_log_sum(-np.partition(-terms, n - 1, axis=1)[:, :n]))
            nearest = np.partition(squared[:, own], n - 1, axis=1)[:, :n]
            means.append(np.sqrt(nearest / self._scale).mean(axis=1))
        return sums[0] - sums[1], means[1] - means[0]

    def _joined(self, strength: FloatArray, nearness: FloatArray) -> FloatArray:
        of_strength, of_nearness = self._lines
        return (2 * of_strength(strength) + of_nearness(nearness)) / 3

    def log_odds(self, X: FloatArray) -> FloatArray:
        """Return the log odds of "taken" of recent instances, each by itself; shape (n_recent,)."""
        squared = _squared_distances(weighted_features(X, self._psi), self._points)
        found = self._joined(*self._both(squared))
        return found if self._logistic is None else found + self._logistic.log_odds(X)

    def _score(self, X: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(1 / (1 + np.exp(np.clip(y * self.log_odds(X), -500, 500))))


class _Line:
    """Calibrated line from evidence to log odds; flat where the evidence points the wrong way."""

    def __init__(self, evidence: FloatArray, y: FloatArray) -> None:
        self._center = float(evidence.mean())
        line = fit_line(evidence - self._center, (y > 0).astype(np.float64))
        self._intercept, self._slope = line.intercept, max(line.slope, 0.0)

    def __call__(self, evidence: FloatArray) -> FloatArray:
        return self._intercept + self._slope * (evidence - self._center)


def _squared_distances(points: FloatArray, others: FloatArray) -> FloatArray:
    products = points @ others.T
    squared = (points**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * products
    return np.asarray(np.maximum(squared, 0.0))


def _scale(squared: FloatArray) -> float:
    """Return the median squared distance to the 7th neighbour; of copies alone, the smallest distance there is."""
    rank = min(_SCALE_RANK, len(squared) - 1)
    scale = float(np.median(np.partition(squared, rank - 1, axis=1)[:, rank - 1]))
    if scale > 0:
        return scale
    apart = squared[np.isfinite(squared) & (squared > 0)]
    return float(apart.min()) if len(apart) else 1.0


def _log_sum(terms: FloatArray) -> FloatArray:
    """Return the logarithm of the sum of exp(terms) of each row."""
    largest = terms.max(axis=1)
    return np.asarray(largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1)))


def _log_loss(log_odds: FloatArray, y: FloatArray) -> FloatArray:
    return np.logaddexp(0, -y * log_odds)


def _gains(before: FloatArray, after: FloatArray, n_errors: float) -> bool:
    """Return whether the mean loss falls by more than so many standard errors of the paired difference."""
    gain = before - after
    return bool(gain.mean() > n_errors * gain.std() / np.sqrt(len(gain)))
