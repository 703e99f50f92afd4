"""Detectors of unusual decisions where a protocol has no place for decisions: features and decision in one matrix."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from core.errors import InvalidInputError
from core.evaluation import ordering_agreement
from core.softhad import SoftHAD
from core.validation import FloatArray

_SHARE_FLIPPED = 0.1


class ConditionalDetector(OutlierMixin, BaseEstimator):
    """Outlier detector in scikit-learn's sense over a detector of unusual decisions.

    One column of `X` holds the decision, the others the state in which it was taken. A row is an outlier when its
    decision is unusual for its state; an unusual state alone is none. Rows given to `fit` are the past; scoring one of
    them again finds its own decision there, so `decision_scores_` are too low where the past is small.

    Parameters
    ----------
    detector : estimator or None
        With ``fit(X, y)`` and ``score_samples(X, y)``, higher = more unusual: `SoftHAD`, a class of `core.baselines`,
        or a Pipeline that ends with one. None is ``SoftHAD()`` with at most 75 neighbours.
    decision_column : int
        Column of `X` with the decision, the last one by default: taken where it is above the middle between the least
        and the greatest value of the past, so that 0 and 1, or -1 and 1, mean what they should.
    contamination : float
        Share of past rows whose labels are "outlier", in (0, 0.5].

    Attributes
    ----------
    decision_scores_ : ndarray of shape (n_past,)
        Scores of the past; higher = more unusual, as users of PyOD expect.
    labels_ : ndarray of shape (n_past,)
        1 = outlier, 0 = inlier, as users of PyOD expect.
    threshold_ : float
        Score above which a row is an outlier.
    offset_ : float
        Minus `threshold_`, as users of scikit-learn expect.
    middle_ : float
        Value of the decision column above which a decision was taken.
    n_features_in_ : int
        Columns of `X`, that of the decision included.

    Examples
    --------
    >>> X = [[0.0, 0], [0.1, 0], [0.2, 1], [5.0, 1], [5.1, 1], [5.2, 1], [0.3, 0]]
    >>> ConditionalDetector(contamination=0.15).fit(X).labels_.tolist()
    [0, 0, 1, 0, 0, 0, 0]
    """

    def __init__(self, detector: Any = None, *, decision_column: int = -1, contamination: float = 0.1) -> None:
        self.detector = detector
        self.decision_column = decision_column
        self.contamination = contamination

    def fit(self, X: ArrayLike, y: object = None, groups: ArrayLike | None = None) -> Self:
        """Learn from past rows.

        Parameters
        ----------
        X : array-like of shape (n_past, n_columns)
            States and decisions.
        y : None
            Not used; for the protocol.
        groups : array-like of shape (n_past,), optional
            Patients, for a detector whose own `fit` takes them.

        Raises
        ------
        InvalidInputError
            If there is no column of states, the decision column is not there, only one decision occurs, the detector
            takes no groups, or `contamination` is out of range.
        """
        if not 0.0 < self.contamination <= 0.5:
            raise InvalidInputError(f"contamination is {self.contamination!r}; give a share above 0 and at most 0.5.")
        states, decisions = self._split(X, reset=True)
        if len(np.unique(decisions)) < 2:
            raise InvalidInputError(
                f"The decision column holds one class only in {len(decisions)} samples (n_samples = {len(decisions)}); "
                "decisions of both kinds are needed to say which are unusual."
            )
        base = SoftHAD(n_neighbors=min(75, len(states) - 1)) if self.detector is None else clone(self.detector)
        self.detector_ = base.fit(states, decisions, **self._given_to(base, groups))
        self.decision_scores_ = score_decisions(self.detector_, states, decisions)
        self.threshold_ = float(np.quantile(self.decision_scores_, 1.0 - self.contamination))
        self.offset_ = -self.threshold_
        self.labels_ = (self.decision_scores_ > self.threshold_).astype(np.int64)
        return self

    def score_samples(self, X: ArrayLike) -> FloatArray:
        """Return minus the scores of rows; shape (n,), **lower** = more unusual, as scikit-learn has it."""
        check_is_fitted(self)
        states, decisions = self._split(X, reset=False)
        return -score_decisions(self.detector_, states, decisions)

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return `score_samples` less `offset_`; shape (n,), negative = outlier."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: ArrayLike) -> NDArray[np.int64]:
        """Return -1 for outliers and 1 for inliers; shape (n,)."""
        return np.where(self.decision_function(X) < 0, -1, 1)

    @staticmethod
    def _given_to(base: Any, groups: ArrayLike | None) -> dict[str, ArrayLike]:
        if groups is None:
            return {}
        if not (isinstance(base, Pipeline) or has_fit_parameter(base, "groups")):
            raise InvalidInputError(
                f"{type(base).__name__} takes no groups. Leave them out, or choose SoftHAD, CalibratedSoftHAD or "
                "PairedSoftHAD."
            )
        return {"groups": groups}

    def _split(self, X: ArrayLike, *, reset: bool) -> tuple[FloatArray, FloatArray]:
        matrix = validate_data(self, X, reset=reset, dtype=np.float64, ensure_min_features=1 + reset)
        n_columns = matrix.shape[1]
        if not -n_columns <= self.decision_column < n_columns:
            raise InvalidInputError(f"X has {n_columns} columns and none with number {self.decision_column}.")
        column = matrix[:, self.decision_column]
        if reset:
            self.middle_ = float(column.min() / 2 + column.max() / 2)
        decisions = np.where(column > self.middle_, 1.0, -1.0)
        return np.delete(matrix, self.decision_column, axis=1), decisions


def score_decisions(detector: Any, X: Any, y: ArrayLike) -> FloatArray:
    """Score decisions by a fitted detector, or by a Pipeline with one, whose own `score_samples` has no place for y.

    Parameters
    ----------
    detector : fitted estimator
    X : array-like of shape (n, n_features)
    y : array-like of shape (n,)
        Decisions -1 or +1.

    Returns
    -------
    ndarray of shape (n,)
        Higher = more unusual.
    """
    if isinstance(detector, Pipeline):
        return np.asarray(detector[-1].score_samples(detector[:-1].transform(X), y), dtype=np.float64)
    return np.asarray(detector.score_samples(X, y), dtype=np.float64)


def flip_agreement(detector: Any, X: Any, y: ArrayLike) -> float:
    """Score a fitted detector by the planted flips that it finds: ``GridSearchCV(..., scoring=flip_agreement)``.

    A tenth of the decisions, at least one, is turned around with a fixed seed; the figure is the share of pairs of a
    flipped and an untouched decision in which the flipped one is more unusual.

    Parameters
    ----------
    detector : fitted estimator
        Or a Pipeline that ends with one.
    X : array-like of shape (n, n_features)
    y : array-like of shape (n,)
        Decisions, -1 or +1, held out from fitting.

    Returns
    -------
    float
        In [0, 1]; 0.5 = by chance, higher = better.
    """
    decisions = np.asarray(y, dtype=np.float64)
    flipped = np.zeros(len(decisions), dtype=bool)
    n_flipped = max(1, round(_SHARE_FLIPPED * len(decisions)))
    flipped[check_random_state(0).permutation(len(decisions))[:n_flipped]] = True
    scores = score_decisions(detector, X, np.where(flipped, -decisions, decisions))
    return ordering_agreement(flipped.astype(np.float64), scores)
