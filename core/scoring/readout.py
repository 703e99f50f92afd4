"""SoftHAD read out for one task by itself, where soft labels say too little of how far an instance is from each class.

Inside a pure cluster all soft labels are alike, and nothing orders its instances. The readout compares the strongest
similarities to each class, and the distances to it, and calibrates both as if some past labels were turned round.
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
_FIRST_TURNED: Final = 0.05
_TURNED: Final = (1e-6, 0.1)
"""Least and largest share of past labels that are turned round; its search begins at the share above."""
_N_STEPS: Final = 10
_N_LOGISTIC_STEPS: Final = 5
_N_EVEN: Final = 4
"""Pseudo-instances as near to both classes, half of them taken: they decide what separated classes leave open."""


class ReadoutSoftHAD(Baseline):
    """P(other decision) from the strongest similarities and the distances to each class, past labels weighted by trust.

    With s the median squared distance to the 7th neighbour, a first pass compares log sum exp(-d^2 / 4s) over both
    classes, own label left out. It chooses whether features are weighted by psi, and gives each past label its trust
    v = P(label). The readout is T = log sum v exp(-d^2 / 8s) over the strongest terms of the one class less that of the
    other, and Q = mean distance, in units of sqrt(s), to the nearest of the other class less that of the one, each
    calibrated: log odds = (2 T + Q) / 3, plus those of a ridge logistic regression where the mean of both explains the
    past better than the first pass does. Lines and regression are fitted by expectation and maximisation as if each
    past label had been turned round with the same chance, so that a few far mistakes do not tilt them.
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
        squared, first, line = self._first_pass(X)
        psi = np.abs(2 * wilcoxon_auc(X, y[:, None])[:, 0] - 1)
        if psi.any():
            self._psi = psi
            weighted = self._first_pass(X)
            if _gain(line.loss(first, y), weighted[2].loss(weighted[1], y)) > _CLEARLY_BETTER:
                squared, first, line = weighted
            else:
                self._psi = None
        self.uses_weights_ = self._psi is not None
        self._points = weighted_features(X, self._psi)
        self._scale = _scale(squared)
        logistic = _fit_logistic(X, y, self.C, line.turned)
        mean = (first + logistic.left_out_log_odds) / 2
        self.uses_logistic_ = _gain(line.loss(first, y), line.loss(mean, y)) > 0
        self._logistic: RidgeLogistic | None = logistic if self.uses_logistic_ else None
        added = logistic.left_out_log_odds if self.uses_logistic_ else np.zeros(len(y))
        self._log_trust = -np.logaddexp(0, -y * (first + added))
        strength, nearness = self._both(squared)
        self._lines = _Line(strength, y), _Line(nearness, y)
        self.left_out_log_odds_ = self._joined(strength, nearness) + added

    def _first_pass(self, X: FloatArray) -> tuple[FloatArray, FloatArray, "_Line"]:
        """Return squared distances in the past, infinite to oneself, and log odds from them all with their line."""
        points = weighted_features(X, self._psi)
        squared = _squared_distances(points, points)
        np.fill_diagonal(squared, np.inf)
        terms = -squared / (4 * _scale(squared))
        evidence = _log_sum(terms[:, self._y > 0]) - _log_sum(terms[:, self._y < 0])
        line = _Line(evidence, self._y)
        return squared, line(evidence), line

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
        return _chance(-y * self.log_odds(X))


class _Line:
    """Line from evidence to log odds of a label that may be turned round; flat where evidence points the wrong way."""

    def __init__(self, evidence: FloatArray, y: FloatArray) -> None:
        taken = (y > 0).astype(np.float64)
        even = np.zeros(_N_EVEN)
        expected, self.turned = taken, _FIRST_TURNED
        for _ in range(_N_STEPS):
            line = fit_line(np.append(evidence, even), np.append(expected, even + 0.5))
            self._intercept, self._slope = line.intercept, max(line.slope, 0.0)
            expected, self.turned = _truly_taken(self(evidence), taken, self.turned)

    def __call__(self, evidence: FloatArray) -> FloatArray:
        return self._intercept + self._slope * evidence

    def loss(self, log_odds: FloatArray, y: FloatArray) -> FloatArray:
        """Return the log loss of each past label."""
        return -np.log(self.turned + (1 - 2 * self.turned) * _chance(y * log_odds))


def _chance(log_odds: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(np.clip(-log_odds, -500, 500))))


def _truly_taken(log_odds: FloatArray, taken: FloatArray, turned: float) -> tuple[FloatArray, float]:
    """Return the chance that each past decision was taken before labels were turned round, and the share turned."""
    right = (1 - turned) * _chance((2 * taken - 1) * log_odds)
    wrong = turned * _chance((1 - 2 * taken) * log_odds)
    wrong /= right + wrong
    return np.abs(taken - wrong), float(np.clip(wrong.mean(), *_TURNED))


def _fit_logistic(X: FloatArray, y: FloatArray, C: float, turned: float) -> RidgeLogistic:
    """Fit logistic regression to decisions of which this share is turned round."""
    expected = taken = (y > 0).astype(np.float64)
    for _ in range(_N_LOGISTIC_STEPS):
        fit = fit_ridge_logistic(X, expected, C * len(y), np.arange(len(y)))
        expected, _ = _truly_taken(fit.left_out_log_odds, taken, turned)
    return fit


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


def _gain(before: FloatArray, after: FloatArray) -> float:
    """Return by how many standard errors of the paired difference the mean loss falls."""
    gain = before - after
    return float(gain.mean() / max(gain.std() / np.sqrt(len(gain)), 1e-300))
