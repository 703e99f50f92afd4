"""SoftHAD with the interface of the other methods: from the paper's words to the product's scorer."""

from typing import Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike

from core.baselines import OTHER_BASELINES, PAPER_BASELINES, Baseline, Factory, Logistic
from core.graph.similarity import LengthScale
from core.scoring.calibration import fit_line, soft_label_evidence
from core.scoring.readout import ReadoutSoftHAD
from core.softhad import FeatureWeights, SoftHAD
from core.validation import FloatArray


class CalibratedSoftHAD(Baseline):
    """SoftHAD as the product scores: support x calibrated P(other decision), own label left out.

    Parameters
    ----------
    n_neighbors : int
    feature_weights : None, "wilcoxon" or "auto"
    regularization : float
    """

    def __init__(
        self, n_neighbors: int = 75, feature_weights: FeatureWeights = "auto", regularization: float = 0.0
    ) -> None:
        self.n_neighbors = n_neighbors
        self.feature_weights = feature_weights
        self.regularization = regularization

    def fit(self, X: Any, y: Any, groups: ArrayLike | None = None) -> Self:
        """Learn from the past; `groups` as in `SoftHAD.fit`."""
        self._fit(*self._checked_past(X, y), groups)
        return self

    def _fit(self, X: FloatArray, y: FloatArray, groups: ArrayLike | None = None) -> None:
        self._model = SoftHAD(
            n_neighbors=min(self.n_neighbors, len(X) - 1),
            feature_weights=self.feature_weights,
            regularization=self.regularization,
        ).fit(X, y, groups)
        evidence = soft_label_evidence(self._model.left_out_soft_labels_)
        self._center = float(evidence.mean())
        self._line = fit_line(evidence - self._center, (y > 0).astype(np.float64))

    def log_odds(self, X: Any) -> FloatArray:
        """Return the calibrated log odds of "taken", own label left out; shape (n_recent,)."""
        evidence = soft_label_evidence(self._model.left_out_soft_labels(X)) - self._center
        return np.asarray(self._line.intercept + max(self._line.slope, 0.0) * evidence)

    def support(self, X: Any) -> FloatArray:
        """Return how strongly recent instances are tied to the past, in [0, 1); shape (n_recent,)."""
        return self._model.support(X)

    def _score(self, X: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(self.support(X) / (1 + np.exp(y * self.log_odds(X))))


class JointSoftHAD(Baseline):
    """SoftHAD as the paper states the problem: past and recent instances in one graph, score |l* - y|.

    Parameters
    ----------
    n_neighbors : int
    length_scale : {"local", "paper"} or positive float
    feature_weights : None, "wilcoxon" or "auto"
    label_weight, regularization : float
        c_l and gamma_g.
    """

    def __init__(
        self,
        n_neighbors: int = 75,
        length_scale: LengthScale = "local",
        feature_weights: FeatureWeights = None,
        label_weight: float = 1.0,
        regularization: float = 1.0,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.length_scale: LengthScale = length_scale
        self.feature_weights = feature_weights
        self.label_weight = label_weight
        self.regularization = regularization

    def _fit(self, X: FloatArray, y: FloatArray) -> None:
        self._past = X, y

    def _score(self, X: FloatArray, y: FloatArray) -> FloatArray:
        model = SoftHAD(
            n_neighbors=min(self.n_neighbors, len(self._past[1]) - 1),
            length_scale=self.length_scale,
            feature_weights=self.feature_weights,
            label_weight=self.label_weight,
            regularization=self.regularization,
        )
        return model.fit_score(*self._past, X, y)


class PairedSoftHAD(Baseline):
    """Support x P(other decision) from the mean log odds of calibrated SoftHAD and logistic regression.

    The named scorer "pair": it contains logistic regression, and is no evidence for SoftHAD alone.
    """

    @classmethod
    def of(cls, softhad: CalibratedSoftHAD, logistic: Logistic) -> Self:
        """Pair two methods that are fitted on the same past."""
        pair = cls()
        pair._softhad, pair._logistic = softhad, logistic
        return pair

    def fit(self, X: Any, y: Any, groups: ArrayLike | None = None) -> Self:
        """Learn from the past; `groups` as in `SoftHAD.fit`."""
        self._fit(*self._checked_past(X, y), groups)
        return self

    def _fit(self, X: FloatArray, y: FloatArray, groups: ArrayLike | None = None) -> None:
        self._softhad, self._logistic = CalibratedSoftHAD().fit(X, y, groups), Logistic().fit(X, y)

    def _score(self, X: FloatArray, y: FloatArray) -> FloatArray:
        log_odds = (self._softhad.log_odds(X) + self._logistic.log_odds(X)) / 2
        return np.asarray(self._softhad.support(X) / (1 + np.exp(y * log_odds)))


SOFTHAD_VARIANTS: Final[dict[str, Factory]] = {
    "SoftHAD (paper, literal)": lambda: JointSoftHAD(length_scale="paper"),
    "SoftHAD (local scale)": JointSoftHAD,
    "SoftHAD (local scale, psi)": lambda: JointSoftHAD(feature_weights="auto"),
    "SoftHAD (calibrated)": CalibratedSoftHAD,
    "SoftHAD (one task)": ReadoutSoftHAD,
}
"""From the paper's words to the product's scorer, one change after another."""

COMBINED: Final[dict[str, Factory]] = {"pair (with logistic regression)": PairedSoftHAD}
"""Scorers that contain another method."""

DETECTORS: Final[dict[str, Factory]] = {**PAPER_BASELINES, **OTHER_BASELINES, **SOFTHAD_VARIANTS, **COMBINED}
