"""Other methods on equal footing with SoftHAD: fitted on past decisions, scoring recent ones, higher = more unusual."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Final, Protocol, Self, TypeAlias

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import NearestNeighbors
from sklearn.svm import SVC, OneClassSVM

from core.graph.node_graph import solve_by_gradients
from core.graph.similarity import local_scales, nearest, paper_squared_scale, weighted_features
from core.validation import (
    FloatArray,
    as_decisions,
    as_finite_matrix,
    as_similarity,
    n_of_rarer,
    require_both_decisions,
)


class Detector(Protocol):
    """What every method offers."""

    @property
    def fewest_of_each(self) -> int:
        """Instances of each decision without which the method cannot learn."""
        ...

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from past instances of shape (n_past, n_features) and decisions -1 or +1."""
        ...

    def score_samples(self, X: Any, y: Any) -> FloatArray:
        """Score recent instances with their decisions; higher = more unusual."""
        ...


def _checked(X: Any, y: Any) -> tuple[FloatArray, FloatArray]:
    matrix = as_finite_matrix(X)
    dense = np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)
    return dense, as_decisions(y, n=len(dense))


class Baseline(BaseEstimator, ABC):
    """Checks what all methods share; a method says how it learns and how it scores."""

    fewest_of_each: int = 1
    """Instances of each decision without which the method cannot learn."""

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from the past; see `Detector`."""
        self._fit(*self._checked_past(X, y))
        return self

    def _checked_past(self, X: Any, y: Any) -> tuple[FloatArray, FloatArray]:
        X, y = _checked(X, y)
        require_both_decisions(y, fewest=self.fewest_of_each)
        self.n_features_in_ = X.shape[1]
        return X, y

    def score_samples(self, X: Any, y: Any) -> FloatArray:
        """Score recent instances; see `Detector`."""
        X, y = _checked(X, y)
        return np.asarray(self._score(X, y), dtype=np.float64)

    @abstractmethod
    def _fit(self, X: FloatArray, y: FloatArray) -> None:
        """Learn from checked features of shape (n_past, n_features) and decisions in {-1, +1}."""

    @abstractmethod
    def _score(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Score checked instances; higher = more unusual, of shape (n_recent,)."""


class WeightedNeighbours(Baseline):
    """Weighted k-nearest neighbours with the graph's similarities: |mean label of the neighbours - y|.

    What the hard harmonic solution becomes when every node is labelled.

    Parameters
    ----------
    n_neighbors : int
    length_scale : {"local", "paper"}
    feature_weights : array-like, optional
    multiplicities : array-like of shape (n_past,), optional
        How many instances each past one stands for, when they are the nodes of a backbone.
    """

    def __init__(
        self,
        n_neighbors: int = 75,
        length_scale: str = "local",
        feature_weights: Any = None,
        multiplicities: Any = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.length_scale = length_scale
        self.feature_weights = feature_weights
        self.multiplicities = multiplicities

    def _fit(self, X: FloatArray, y: FloatArray) -> None:
        self._past, self._y = weighted_features(X, self.feature_weights), y
        k = min(self.n_neighbors, len(X) - 1)
        if self.length_scale == "local":
            self._scales = local_scales(nearest(self._past, self._past, k, same_rows=True))
        else:
            self._scales = np.full(len(X), np.sqrt(paper_squared_scale(self._past)))

    def expected(self, X: Any) -> FloatArray:
        """Return the weighted mean label of the nearest past instances; 0 where no weight is left."""
        points = weighted_features(X, self.feature_weights)
        near = nearest(self._past, points, min(self.n_neighbors, len(self._y)))
        own = local_scales(near) if self.length_scale == "local" else np.full(len(points), self._scales[0])
        weights = np.exp(-near.squared_distances / (own[:, None] * self._scales[near.indices]))
        if self.multiplicities is not None:
            weights *= np.asarray(self.multiplicities, dtype=np.float64)[near.indices]
        total = weights.sum(axis=1)
        labels = (weights * self._y[near.indices]).sum(axis=1)
        return np.asarray(np.divide(labels, total, out=np.zeros(len(total)), where=total > 0))

    def _score(self, X: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(np.abs(self.expected(X) - y))


class NeighbourDistanceDifference(Baseline):
    """Mean distance to the nearest past instances of the own decision, less that to those of the other.

    Parameters
    ----------
    n_neighbors : int
        Neighbours in each class.
    """

    def __init__(self, n_neighbors: int = 20) -> None:
        self.n_neighbors = n_neighbors

    def _fit(self, X: FloatArray, y: FloatArray) -> None:
        self._by_class = {}
        for label in (-1.0, 1.0):
            members = X[y == label]
            self._by_class[label] = NearestNeighbors(n_neighbors=min(self.n_neighbors, len(members))).fit(members)

    def _score(self, X: FloatArray, y: FloatArray) -> FloatArray:
        to_negative, to_positive = (self._by_class[label].kneighbors(X)[0].mean(axis=1) for label in (-1.0, 1.0))
        return np.asarray(y * (to_positive - to_negative))


class SupportVectors(Baseline):
    """Support vector machine with a Gaussian kernel: distance on the wrong side of the boundary.

    Parameters
    ----------
    C : float
        Cost of slack.
    """

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def _fit(self, X: FloatArray, y: FloatArray) -> None:
        self._model = SVC(C=self.C, kernel="rbf", gamma="scale").fit(X, y)

    def _score(self, X: FloatArray, y: FloatArray) -> FloatArray:
        return np.asarray(-y * self._model.decision_function(X))


class OneClassSupportVectors(Baseline):
    """One one-class support vector machine per decision: distance outside the boundary of the own one.

    Parameters
    ----------
    nu : float
        Share of each class left outside.
    """

    def __init__(self, nu: float = 0.1) -> None:
        self.nu = nu

    def _fit(self, X: FloatArray, y: FloatArray) -> None:
        self._by_class = {
            label: OneClassSVM(kernel="rbf", gamma="scale", nu=self.nu).fit(X[y == label]) for label in (-1.0, 1.0)
        }

    def _score(self, X: FloatArray, y: FloatArray) -> FloatArray:
        outside = {label: -model.decision_function(X) for label, model in self._by_class.items()}
        return np.asarray(np.where(y > 0, outside[1.0], outside[-1.0]))


class _Probabilistic(Baseline):
    """Score = P(other decision | state) of a classifier."""

    @abstractmethod
    def _classifier(self) -> Any:
        """Make an unfitted scikit-learn classifier with ``predict_proba``."""

    def _fit(self, X: FloatArray, y: FloatArray) -> None:
        self._model = self._classifier().fit(X, y)

    def _score(self, X: FloatArray, y: FloatArray) -> FloatArray:
        chance = self._model.predict_proba(X)[:, 1]
        return np.asarray(np.where(y > 0, 1 - chance, chance))


class QuadraticDiscriminant(_Probabilistic):
    """Quadratic discriminant analysis: each class a Gaussian; posterior of the opposite class.

    Parameters
    ----------
    regularization : float
        Share of the identity mixed into each covariance, which keeps near-constant features solvable.
    """

    fewest_of_each = 2
    """One instance has no covariance."""

    def __init__(self, regularization: float = 1e-3) -> None:
        self.regularization = regularization

    def _classifier(self) -> Any:
        return QuadraticDiscriminantAnalysis(reg_param=self.regularization)

    def _fit(self, X: FloatArray, y: FloatArray) -> None:
        if n_of_rarer(y) > X.shape[1]:
            super()._fit(X, y)
            return
        # A class with no more instances than features has no covariance of full rank until it is shrunk.
        shrunk = QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=self.regularization)
        self._model = shrunk.fit(X, y)


class Logistic(_Probabilistic):
    """Logistic regression: P(other decision | state).

    Parameters
    ----------
    C : float
        Inverse strength of the L2 penalty.
    """

    def __init__(self, C: float = 1.0) -> None:
        self.C = C

    def _classifier(self) -> Any:
        return LogisticRegression(C=self.C, max_iter=2000)

    def log_odds(self, X: Any) -> FloatArray:
        """Log odds of "taken"; shape (n_recent,)."""
        return np.asarray(self._model.decision_function(X))


class SelfConfidence(_Probabilistic):
    """One less the self-confidence of cross-validated probabilities, as label-error detection does.

    Past instances that their own cross-validated probability calls mislabelled are left out, and the model is fitted
    again on the rest.

    Parameters
    ----------
    C : float
        Inverse strength of the L2 penalty of the logistic regression inside.
    n_folds : int
    """

    def __init__(self, C: float = 1.0, n_folds: int = 5) -> None:
        self.C = C
        self.n_folds = n_folds

    def _classifier(self) -> Any:
        return LogisticRegression(C=self.C, max_iter=2000)

    def _fit(self, X: FloatArray, y: FloatArray) -> None:
        n_folds = min(self.n_folds, n_of_rarer(y))
        kept = np.ones(len(y), dtype=bool)
        if n_folds >= 2:
            folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
            chance = cross_val_predict(self._classifier(), X, y, cv=folds, method="predict_proba")[:, 1]
            own = np.where(y > 0, chance, 1 - chance)
            # A label is taken for wrong when the other is as likely as it is on average where it is given.
            threshold = np.where(y > 0, (1 - chance)[y <= 0].mean(), chance[y > 0].mean())
            kept = (1 - own) < threshold
            if len(np.unique(y[kept])) < 2:
                kept = np.ones(len(y), dtype=bool)
        self._model = self._classifier().fit(X[kept], y[kept])


Factory: TypeAlias = Callable[[], Detector]

PAPER_BASELINES: Final[dict[str, Factory]] = {
    "QDA": QuadraticDiscriminant,
    "SVM": SupportVectors,
    "1-class SVM": OneClassSupportVectors,
    "weighted k-NN": WeightedNeighbours,
}
"""The four methods the paper compares with."""

OTHER_BASELINES: Final[dict[str, Factory]] = {
    "logistic regression": Logistic,
    "k-NN distance difference": NeighbourDistanceDifference,
    "self-confidence": SelfConfidence,
}
"""Methods that are strong today."""


def hard_harmonic(similarity: Any, y: Any) -> FloatArray:
    """Return the soft labels when labels are held fixed: weighted mean label of the neighbours; 0 for isolated nodes.

    In the fully labelled case the hard harmonic solution lets no label pass a labelled node, so that what the
    neighbourhood says of node i is its weighted k-NN vote.

    References
    ----------
    The paper, section "Conditional Anomaly Detection" (Zhu et al. 2003).
    """
    graph = as_similarity(similarity)
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    labels = graph @ as_decisions(y, n=graph.shape[0])
    return np.asarray(np.divide(labels, degrees, out=np.zeros(len(degrees)), where=degrees > 0))


def consistency_method(similarity: Any, y: Any, *, label_weight: float = 1.0) -> FloatArray:
    """Return the soft labels with the normalised Laplacian K = I - D^-1/2 W D^-1/2 and C = c I.

    References
    ----------
    The paper, eq. (closed form) (Zhou et al. 2004).
    """
    graph = as_similarity(similarity)
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    inverse_root = np.divide(1.0, np.sqrt(degrees), out=np.zeros(len(degrees)), where=degrees > 0)
    normalised = sparse.diags_array(inverse_root) @ graph @ sparse.diags_array(inverse_root)
    system = sparse.csr_array((1 + label_weight) * sparse.eye_array(len(degrees)) - normalised)
    return solve_by_gradients(system, label_weight * as_decisions(y, n=len(degrees)))
