"""SoftHAD as an estimator: decisions that disagree with the soft labels of a similarity graph."""

from collections.abc import Callable
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, check_random_state, column_or_1d, validate_data

from core.errors import InvalidInputError
from core.evaluation import rank_auc
from core.features import wilcoxon_auc
from core.graph.fitted_graphs import FittedGraph, GraphSettings, LabelFree, Past, build_graphs
from core.graph.node_graph import solve_soft_labels
from core.graph.similarity import LengthScale, check_length_scale, group_codes, knn_similarity, weighted_features
from core.validation import FloatArray, Matrix, as_finite_matrix, as_weights, is_sparse

__all__ = ["SoftHAD", "solve_soft_labels"]

FeatureWeights: TypeAlias = Literal["wilcoxon", "auto"] | ArrayLike | None


class SoftHAD(BaseEstimator):
    """Conditional anomaly detection with soft harmonic functions.

    Learns from past instances and their decisions; says of recent ones how unusual their decision is, given what was
    decided for similar instances. Higher score = more unusual. An isolated instance has no neighbours to disagree
    with: its score is the floor gamma_g / (c_l + gamma_g), like that of a perfectly consistent one.

    Parameters
    ----------
    n_neighbors : int
        k of the graph, at most the number of nodes less one.
    length_scale : {"local", "paper", "precomputed"} or positive float
        See `core.graph.similarity.knn_similarity`. With "precomputed", `X` is the similarity of instances (rows) to
        past instances (columns) instead of features.
    label_weight : float
        c_l, trust in the labels given. With all labels trusted alike only c_l + gamma_g orders the scores.
    regularization : float
        gamma_g, edge of every node to a sink with label 0; holds isolated and fringe instances back.
    feature_weights : None, "wilcoxon", "auto" or array-like of shape (n_features,)
        psi. "wilcoxon": |2 AUC - 1| of each feature on the past. "auto": the same where it does not lower the AUC of
        the past soft labels with the own label left out (it does on exclusive-or like data), else None.
    n_nodes : int or None
        Nodes of a sampled balanced backbone; None = every past instance is a node.
    n_graphs : int
        Backbones over which soft labels are averaged.
    random_state : int, RandomState or None
        Draws the nodes.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The second is "taken" (+1).
    soft_labels_ : ndarray of shape (n_past,)
        l*, with the own label in.
    scores_ : ndarray of shape (n_past,)
        |l* - y|.
    left_out_soft_labels_ : ndarray of shape (n_past,)
        Soft label without the own label (with `groups`: without any label of the own patient).
    support_ : ndarray of shape (n_past,)
        a / (c + g + a) in [0, 1); 0 = isolated. Where g = 0, score = support x |y - left-out soft label|.
    feature_weights_ : ndarray of shape (n_features,) or None
    n_features_in_ : int

    References
    ----------
    Valko, Kveton, Valizadegan, Cooper, Hauskrecht: Conditional Anomaly Detection with Soft Harmonic Functions,
    ICDM 2011: eq. (had:sle), (anomalyscore), section "Backbone Graph".

    Examples
    --------
    >>> X = [[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]]
    >>> model = SoftHAD(n_neighbors=2).fit(X, [-1, -1, 1, 1, 1, 1])
    >>> int(model.scores_.argmax())
    2
    """

    def __init__(
        self,
        *,
        n_neighbors: int = 75,
        length_scale: LengthScale | Literal["precomputed"] = "local",
        label_weight: float = 1.0,
        regularization: float = 1.0,
        feature_weights: FeatureWeights = None,
        n_nodes: int | None = None,
        n_graphs: int = 1,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.length_scale = length_scale
        self.label_weight = label_weight
        self.regularization = regularization
        self.feature_weights = feature_weights
        self.n_nodes = n_nodes
        self.n_graphs = n_graphs
        self.random_state = random_state

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return SoftHAD with the paper's settings: k = 75, sigma^2 = 10 % of Var(distances), c_l = gamma_g = 1."""
        return cls(
            **{"n_neighbors": 75, "length_scale": "paper", "label_weight": 1.0, "regularization": 1.0, **changes}
        )

    def fit(self, X: Matrix, y: ArrayLike, groups: ArrayLike | None = None) -> Self:
        """Learn the graph of past instances.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_past, n_features)
        y : array-like of shape (n_past,)
            Decisions, two different values.
        groups : array-like of shape (n_past,), optional
            Patients: no edge inside a group, and the whole group is left out where an own label is left out.

        Raises
        ------
        InvalidInputError
            For features, decisions or parameters that break a rule.
        InvalidGraphError
            For a precomputed similarity that is not one.
        """
        settings = self._settings()
        X = self._validated(X, reset=True)
        decisions = self._encode_past(y, X.shape[0])
        n = X.shape[0]
        codes = np.arange(n) if groups is None else group_codes(groups, n)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))

        def build(psi: FloatArray | None) -> list[FittedGraph]:
            points = X if self.length_scale == "precomputed" else weighted_features(X, psi)
            past = Past(points, decisions, codes, groups is not None)
            return build_graphs(past, settings, self.n_nodes, self.n_graphs, np.random.default_rng(seed))

        self._decisions = decisions
        self.feature_weights_ = self._psi(X, decisions)
        if isinstance(self.feature_weights, str) and self.feature_weights == "auto":
            self._fit_better_weights(build)
        else:
            self._graphs = build(self.feature_weights_)
        return self

    def _settings(self) -> GraphSettings:
        c, g = self.label_weight, self.regularization
        if not (_is_number(c) and c > 0 and _is_number(g) and g >= 0):
            raise InvalidInputError(
                f"label_weight is {c!r} and regularization {g!r}; a positive number and one of 0 or more are needed. "
                "Change them."
            )
        if self.length_scale != "precomputed":
            check_length_scale(self.length_scale)
        elif self.feature_weights is not None:
            raise InvalidInputError("A precomputed similarity has no features to weigh: pass feature_weights=None.")
        if self.n_graphs < 1:
            raise InvalidInputError(f"n_graphs is {self.n_graphs}; it must be 1 or more.")
        return GraphSettings(self.n_neighbors, self.length_scale, float(c), float(g))

    def _validated(self, X: Matrix, *, reset: bool) -> Any:
        X = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype="numeric", ensure_all_finite=False, ensure_min_samples=1
        )
        return as_finite_matrix(X)

    def _encode_past(self, y: ArrayLike, n: int) -> FloatArray:
        if y is None:
            raise InvalidInputError("SoftHAD requires y to be passed, but the target y is None: give the decisions.")
        decisions = column_or_1d(y, warn=True)
        check_classification_targets(decisions)
        if len(decisions) != n:
            raise InvalidInputError(f"X has {n} instances and y {len(decisions)}; pass one decision for each.")
        self.classes_ = np.unique(decisions)
        if len(self.classes_) > 2:
            raise InvalidInputError(
                f"Only binary classification is supported. The type of the target is {type_of_target(decisions)}: "
                f"y holds {len(self.classes_)} classes. Score one decision at a time."
            )
        if len(self.classes_) < 2:
            raise InvalidInputError(
                "y holds one class only; decisions of both kinds are needed to say which are unusual. "
                "Leave this task out or take a longer past."
            )
        return np.where(decisions == self.classes_[1], 1.0, -1.0)

    def _encode(self, y: ArrayLike, n: int) -> FloatArray:
        decisions = column_or_1d(y)
        if len(decisions) != n:
            raise InvalidInputError(f"X has {n} instances and y {len(decisions)}; pass one decision for each.")
        unknown = ~np.isin(decisions, self.classes_)
        if unknown.any():
            raise InvalidInputError(
                f"y holds {int(unknown.sum())} decision(s) that the past does not know; "
                f"known are {self.classes_.tolist()}."
            )
        return np.where(decisions == self.classes_[1], 1.0, -1.0)

    def _psi(self, X: Any, decisions: FloatArray) -> FloatArray | None:
        if self.feature_weights is None:
            return None
        if isinstance(self.feature_weights, str):
            if self.feature_weights not in ("wilcoxon", "auto"):
                raise InvalidInputError(
                    f"feature_weights is {self.feature_weights!r}; "
                    'give None, "wilcoxon", "auto" or one number for each feature.'
                )
            return np.abs(2 * wilcoxon_auc(X, decisions[:, None])[:, 0] - 1)
        return as_weights(self.feature_weights, X.shape[1], name="feature_weights")

    def _fit_better_weights(self, build: Callable[[FloatArray | None], list[FittedGraph]]) -> None:
        """Keep the weights unless they lower the AUC of the past soft labels with the own label left out."""
        psi, self.feature_weights_ = self.feature_weights_, None
        self._graphs = build(None)
        if psi is None or not psi.any():
            return
        unweighted, without = self._graphs, rank_auc(self._decisions, self.left_out_soft_labels_)
        self._graphs = build(psi)
        if rank_auc(self._decisions, self.left_out_soft_labels_) >= without:
            self.feature_weights_ = psi
        else:
            self._graphs = unweighted

    @property
    def soft_labels_(self) -> FloatArray:
        """Soft labels l* of the past instances."""
        return self._mean(lambda graph: graph.past_soft_labels)

    @property
    def scores_(self) -> FloatArray:
        """Scores |l* - y| of the past instances; higher = more unusual."""
        return np.abs(self.soft_labels_ - self._decisions)

    @property
    def left_out_soft_labels_(self) -> FloatArray:
        """Soft labels of the past instances without their own labels."""
        return self._mean(lambda graph: graph.past_label_free.left_out)

    @property
    def support_(self) -> FloatArray:
        """Support of the past instances in [0, 1)."""
        return self._mean(lambda graph: graph.past_label_free.support)

    def score_samples(self, X: Matrix, y: ArrayLike) -> FloatArray:
        """Return scores |l* - y| of recent instances, each tied to the past graph by itself; higher = more unusual.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_recent, n_features)
            With a precomputed length scale: similarity to past instances, of shape (n_recent, n_past).
        y : array-like of shape (n_recent,)
            Their decisions.

        Returns
        -------
        ndarray of shape (n_recent,)
            In [0, 2]; gamma_g / (c_l + gamma_g) for an isolated instance.
        """
        decisions = self._encode_recent(X, y)
        return np.abs(self._soft_labels(X, decisions) - decisions)

    def soft_labels(self, X: Matrix, y: ArrayLike) -> FloatArray:
        """Return soft labels l* of recent instances, own labels included; shape (n_recent,), in [-1, 1]."""
        return self._soft_labels(X, self._encode_recent(X, y))

    def left_out_soft_labels(self, X: Matrix) -> FloatArray:
        """Return the soft labels expected from the past alone; shape (n_recent,), in [-1, 1]."""
        return self._mean_over(self._tie_in(X), lambda found: found.left_out)

    def support(self, X: Matrix) -> FloatArray:
        """Return how strongly recent instances are tied to past ones; shape (n_recent,), in [0, 1), 0 = isolated."""
        return self._mean_over(self._tie_in(X), lambda found: found.support)

    def fit_score(self, X_past: Matrix, y_past: ArrayLike, X_recent: Matrix, y_recent: ArrayLike) -> FloatArray:
        """Fit the past and score recent instances in one graph over both, as the paper states the problem.

        Recent instances see each other here: an alert may depend on who else is in the batch.

        Parameters
        ----------
        X_past, y_past
            As in `fit`.
        X_recent, y_recent
            As in `score_samples`.

        Returns
        -------
        ndarray of shape (n_recent,)
            |l* - y|; higher = more unusual.
        """
        if self.length_scale == "precomputed":
            raise InvalidInputError(
                "fit_score joins features, not similarities: pass features, or solve the joint similarity matrix with "
                "solve_soft_labels."
            )
        self.fit(X_past, y_past)
        recent = weighted_features(self._validated(X_recent, reset=False), self.feature_weights_)
        decisions = self._encode(y_recent, recent.shape[0])
        total = np.zeros(len(decisions))
        for graph in self._graphs:
            joined = sparse.vstack((graph.points, recent)) if is_sparse(recent) else np.vstack((graph.points, recent))
            similarity = knn_similarity(joined, n_neighbors=self.n_neighbors, length_scale=self.length_scale)
            soft_labels = solve_soft_labels(
                similarity,
                np.concatenate((graph.nodes.labels, decisions)),
                label_weight=self.label_weight,
                regularization=self.regularization,
                multiplicities=np.concatenate((graph.nodes.multiplicities, np.ones(len(decisions)))),
            )
            total += soft_labels[graph.nodes.n_nodes :]
        return np.abs(total / len(self._graphs) - decisions)

    def _encode_recent(self, X: Matrix, y: ArrayLike) -> FloatArray:
        check_is_fitted(self)
        return self._encode(y, X.shape[0] if hasattr(X, "shape") else len(X))

    def _tie_in(self, X: Matrix) -> list[LabelFree]:
        check_is_fitted(self)
        points = self._validated(X, reset=False)
        if self.length_scale != "precomputed":
            points = weighted_features(points, self.feature_weights_)
        return [graph.tie_in(points) for graph in self._graphs]

    def _soft_labels(self, X: Matrix, decisions: FloatArray) -> FloatArray:
        return self._mean_over(self._tie_in(X), lambda found: found.soft_labels(decisions))

    def _mean(self, of: Callable[[FittedGraph], FloatArray]) -> FloatArray:
        check_is_fitted(self)
        return np.asarray(np.mean([of(graph) for graph in self._graphs], axis=0))

    @staticmethod
    def _mean_over(found: list[LabelFree], of: Callable[[LabelFree], FloatArray]) -> FloatArray:
        return np.asarray(np.mean([of(one) for one in found], axis=0))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_graphs")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.length_scale == "precomputed"
        return tags


def _is_number(value: object) -> bool:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    return is_number and bool(np.isfinite(float(value)))  # type: ignore[arg-type]
