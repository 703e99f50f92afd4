"""The parameters of a run in words."""

from collections.abc import Mapping

WORDS = {
    "n_neighbors": "Neighbours of a node and of an instance",
    "length_scale": "Length scale of similarity",
    "label_weight": "Label weight c_l",
    "regularization": "Regularisation γ_g",
    "n_nodes": "Nodes of each graph",
    "n_graphs": "Graphs averaged",
    "n_features_kept": "Features kept for a task, at most",
    "min_abs_z": "Features are kept from this Wilcoxon |z|",
    "clip": "Standardised values are cut at ±",
    "min_past_positives": "Past decisions taken that a task needs",
    "min_past_negatives": "Past decisions not taken that a task needs",
    "logistic_strength": "Strength C·n of logistic regression",
    "paper_label_weight": "Paper's scorer: label weight c_l",
    "paper_regularization": "Paper's scorer: regularisation γ_g",
    "paper_length_scale": "Paper's scorer: length scale",
    "n_baseline_past": "Past instances a baseline is fitted on, at most",
    "n_landmarks": "Past instances that span the shared graph",
    "shared_ridge": "Ridge of the shared graph",
    "n_history_pairs": "Pairs that own history is learned from, at most",
    "n_member_features": "Features of logistic regression within shared",
    "sign_ridge": "Ridge of the effects of single signs",
    "learn_group_weights": "Weights of groups of features are learned",
    "group_weights": "Learned weights of groups of features, by fold",
    "since": "Instances from this day on are recent",
    "task_catalogue": "Version of the task catalogue",
}
"""Name of a stored parameter -> its label."""


def parameters_in_words(stored: Mapping[str, object]) -> dict[str, str]:
    """Return label and value of each parameter of a run that is set; a name without a label keeps its own words."""
    return {
        WORDS.get(name, name.replace("_", " ").capitalize()): _value(value)
        for name, value in stored.items()
        if value is not None
    }


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return "; ".join(", ".join(f"{name} {weight:.3g}" for name, weight in fold.items()) for fold in value)
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:g}" if isinstance(value, float) else str(value)
