"""The named scorers in words: what each does, and which of them only look back."""

from typing import Final

from core.scoring.parameters import (
    ALL_SCORERS,
    BASELINE_SCORERS,
    DAY_ADJUSTED,
    LOGISTIC,
    NEIGHBOUR_DIFFERENCE,
    ONE_CLASS_SVM,
    PAIR,
    QDA,
    RETROSPECTIVE_SCORERS,
    SELF_CONFIDENCE,
    SOFTHAD,
    SOFTHAD_PAPER,
    SVM,
    WEIGHTED_KNN,
)

_MEANINGS: Final[dict[str, str]] = {
    SOFTHAD: "support x calibrated probability of the other decision, by the graph (default)",
    SOFTHAD_PAPER: "|l* - y| as in the paper, min-max scaled on the past",
    LOGISTIC: "calibrated probability of the other decision, by logistic regression",
    PAIR: "support x probability from the mean log-odds of softhad and logistic regression",
    DAY_ADJUSTED: "support x probability by logistic regression on the state and how busy the day was",
    WEIGHTED_KNN: "weighted vote of the nearest nodes of the same graph",
    SVM: "support vector machine, Gaussian kernel: distance on the wrong side",
    ONE_CLASS_SVM: "one-class support vector machine of the own decision: distance outside",
    QDA: "quadratic discriminant analysis: probability of the other decision",
    NEIGHBOUR_DIFFERENCE: "distance to the nearest of the own decision less that to the other's",
    SELF_CONFIDENCE: "probability of the other decision, cross-validated and cleaned",
}


def is_retrospective(name: str) -> bool:
    """Return whether a scorer needs the whole decision window to be over: its list looks back, it cannot warn."""
    return name in RETROSPECTIVE_SCORERS


def describe_scorer(name: str) -> str:
    """Return a line on what a scorer does; only the name of one from another version."""
    marks = {**dict.fromkeys(RETROSPECTIVE_SCORERS, "retrospective"), **dict.fromkeys(BASELINE_SCORERS, "comparison")}
    meaning = _MEANINGS.get(name, name)
    return f"{meaning} [{marks[name]}]" if name in marks else meaning


def list_named_scorers() -> tuple[tuple[str, str], ...]:
    """Return the named scorers with a line on each."""
    return tuple((name, describe_scorer(name)) for name in ALL_SCORERS)
