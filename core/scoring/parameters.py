"""The parameters of a scoring run over many tasks."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from core.errors import InvalidInputError
from core.graph.similarity import LengthScale, check_length_scale


@dataclass(frozen=True)
class ScoringParameters:
    """Parameters of a run; the defaults were chosen by measurement on planted flips.

    Parameters
    ----------
    n_neighbors : int
        k, neighbours of a node and of an instance.
    length_scale : {"local", "paper"} or positive float
        See `core.graph.similarity.knn_similarity`.
    label_weight, regularization : float
        c_l and gamma_g. When every node is labelled, orders depend on their sum only.
    n_nodes : int
        Nodes of each backbone graph, half of them positive.
    n_graphs : int
        Graphs whose evidence is averaged; one graph of 200 nodes agrees with another on half of the top alerts only.
    n_features_kept : int
        Features of largest psi kept for a task.
    min_abs_z : float
        Features below this |Wilcoxon z| are left out.
    clip : float
        Largest absolute standardised value.
    min_past_positives, min_past_negatives : int
        A task with fewer past decisions of a kind is left out and listed.
    logistic_strength : float
        C n of the logistic regression: weight of the mean log loss against half the squared coefficients.
    paper_label_weight, paper_regularization : float
        c_l and gamma_g of the scorer "softhad-paper".
    paper_length_scale : {"local", "paper"} or positive float
        Length scale of "softhad-paper". The paper's own rule leaves nearly dead graphs in many features.
    n_baseline_past : int
        Past instances that a baseline other than "weighted-knn" is fitted on at most, half of them positive: support
        vector machines grow with the square of their number.
    n_landmarks : int
        Past instances that span the shared graph; all of them where there are no more.
    shared_ridge : float
        Ridge of the shared graph's solves, as a share of the number of past instances.
    n_history_pairs : int
        (instance, task) pairs that own history is learned from at most.
    n_member_features : int
        Features of largest psi that logistic regression as a member of "shared" sees.
    sign_ridge : float
        Ridge of the effects of single signs: about this many decisions of one patient each tell as much as the prior.
    learn_group_weights : bool
        Whether the weights of the groups of features in the shared graph are learned from each past; otherwise they are
        `core.cohort.feature_roles.FEATURE_GROUP_WEIGHTS`.
    """

    n_neighbors: int = 75
    length_scale: LengthScale = "local"
    label_weight: float = 1.0
    regularization: float = 0.0
    n_nodes: int = 200
    n_graphs: int = 3
    n_features_kept: int = 200
    min_abs_z: float = 2.0
    clip: float = 2.5
    min_past_positives: int = 10
    min_past_negatives: int = 10
    logistic_strength: float = 1.55
    paper_label_weight: float = 1.0
    paper_regularization: float = 1.0
    paper_length_scale: LengthScale = "local"
    n_baseline_past: int = 1000
    n_landmarks: int = 1000
    shared_ridge: float = 0.01
    n_history_pairs: int = 500_000
    sign_ridge: float = 2.0
    n_member_features: int = 80
    learn_group_weights: bool = False

    @classmethod
    def of_stored(cls, stored: Mapping[str, Any]) -> "ScoringParameters":
        """Return the parameters among what a stored run keeps of itself; those it does not have are the defaults."""
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in stored.items() if name in names})

    def of_paper(self) -> "ScoringParameters":
        """Return parameters whose graphs are those of the scorer "softhad-paper"."""
        return replace(
            self,
            length_scale=self.paper_length_scale,
            label_weight=self.paper_label_weight,
            regularization=self.paper_regularization,
        )

    def __post_init__(self) -> None:
        for name in (
            "n_neighbors",
            "n_graphs",
            "n_features_kept",
            "min_past_positives",
            "min_past_negatives",
            "n_member_features",
        ):
            self._require(name, 1)
        for name in ("n_nodes", "n_baseline_past", "n_landmarks", "n_history_pairs"):
            self._require(name, 2)
        for name in ("label_weight", "clip", "logistic_strength", "paper_label_weight", "shared_ridge", "sign_ridge"):
            self._require(name, 0, above=True)
        for name in ("regularization", "paper_regularization", "min_abs_z"):
            self._require(name, 0)
        check_length_scale(self.length_scale)
        check_length_scale(self.paper_length_scale)

    def _require(self, name: str, smallest: float, *, above: bool = False) -> None:
        value = getattr(self, name)
        if not (value > smallest if above else value >= smallest) or value == float("inf"):
            rule = f"above {smallest}" if above else f"{smallest} or more"
            raise InvalidInputError(
                f"Scoring parameter {name} is {value}; it must be {rule}. Change it and score again."
            )
