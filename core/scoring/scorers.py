"""The named scorers, each registered once: its words, its evidence, and how evidence becomes a score.

To add a scorer, add an entry to `SCORERS`, with a function of its evidence where no present one gives it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from core.scoring.baseline_evidence import cross_fitted_scores, weighted_neighbour_scores
from core.scoring.calibration import soft_label_evidence
from core.scoring.evidence import (
    day_evidence,
    graph_evidence,
    logistic_evidence,
    paper_evidence,
    short_logistic_evidence,
)
from core.scoring.new_instances import (
    NewInstances,
    NewTaskData,
    new_graph_evidence,
    new_logistic_evidence,
    new_paper_evidence,
    new_short_logistic_evidence,
)
from core.scoring.parameters import ScoringParameters
from core.scoring.prepared import Evidence, TaskData
from core.validation import FloatArray

if TYPE_CHECKING:
    from core.baselines import Detector

Arrays: TypeAlias = dict[str, NDArray[Any]]
_QDA_REGULARIZATION: Final = 0.1
"""Share of the identity in each covariance: 200 features and a few hundred instances leave it singular without."""
_NEIGHBOURS_OF_A_CLASS: Final = 20


def _as_it_is(log_odds: NDArray[Any]) -> FloatArray:
    return log_odds.astype(np.float64)


@dataclass(frozen=True)
class Part:
    """Evidence that a logistic line over the past turns into the log odds of "taken".

    Parameters
    ----------
    key : str
        Name of its calibration in stored scales.
    array : str
        Name of its array of evidence.
    values : callable
        What the line is fitted to, of the array.
    weight : float
        Beside those of the other parts.
    is_log_odds : bool
        Whether the values are the log odds already; a line would flatten strong, rare evidence.
    """

    key: str
    array: str
    values: Callable[[NDArray[Any]], FloatArray] = _as_it_is
    weight: float = 1.0
    is_log_odds: bool = False


@dataclass(frozen=True)
class Scorer:
    """A named way to score every instance of every task; higher = more unusual.

    A scorer with `parts` is calibrated: its score is the probability of the other decision, from their weighted mean
    log odds or mean probability, and is comparable between tasks as it is. One without is min-max scaled on the past.

    Parameters
    ----------
    key : str
        Name on the command line, in tables and in files.
    label : str
        Name in reports.
    description : str
        What it does, in a line.
    evidence : callable
        Computes its arrays for one task, beside those of the graphs, which every scorer gets.
    new_evidence : callable, optional
        The same for new instances against a stored past; without it they cannot be scored.
    parts : tuple of Part
    times_support : bool
        Whether the probability is multiplied by the support.
    soft_label : str
        Array of the expected decision l; without it l is made from the score.
    raw : str
        Array of the score before min-max scaling; without it that is |l - y|.
    support : str
        Array of the support.
    pools_chances : bool
        Whether probabilities are averaged instead of log odds: the result is near certainty only where no part doubts.
    against_general : float
        Power of the odds of the task's decision in the past by which the odds of a commission are multiplied in its
        scaled score; 0 leaves the scaled score equal to the score.
    leaves_out_likelier : bool
        Whether its lists leave out decisions that the state makes likelier than they are in general.
    is_retrospective : bool
        Whether it also looks at the other decisions of the window: its list looks back and cannot warn.
    is_comparison : bool
        Whether it is another method on the same instances and features, for comparison.
    """

    key: str
    label: str
    description: str
    evidence: Callable[[TaskData], Arrays]
    new_evidence: Callable[[NewTaskData], Arrays] | None = None
    parts: tuple[Part, ...] = ()
    times_support: bool = False
    soft_label: str = ""
    raw: str = ""
    support: str = "support"
    pools_chances: bool = False
    against_general: float = 0.0
    leaves_out_likelier: bool = False
    is_retrospective: bool = False
    is_comparison: bool = False

    def raw_scores(self, evidence: Evidence, y: FloatArray) -> tuple[FloatArray, FloatArray | None]:
        """Return scores before min-max scaling, and the soft label where there is one."""
        if self.raw:
            return evidence[self.raw].astype(np.float64), None
        soft_label = evidence[self.soft_label].astype(np.float64)
        return np.abs(soft_label - y), soft_label


def _baselines() -> Any:
    """Return the module of the comparison methods, imported when one is used: scikit-learn takes a second."""
    from core import baselines

    return baselines


def _comparison(key: str, label: str, description: str, make: Callable[[ScoringParameters, int], "Detector"]) -> Scorer:
    array = f"{key}_score"
    evidence = partial(cross_fitted_scores, array, make)
    return Scorer(key, label, description, evidence, raw=array, is_comparison=True)


_GRAPH = Part("softhad", "left_out_soft_label", soft_label_evidence)
_LOGISTIC = Part("logistic", "logistic_log_odds")
SHARED: Final = Scorer(
    "shared",
    "SoftHAD on a shared graph",
    "probability of the other decision, by one graph of all tasks, own history, single signs and logistic regression "
    "(default)",
    short_logistic_evidence,
    new_short_logistic_evidence,
    parts=(
        Part("shared", "shared_log_odds", weight=2.0, is_log_odds=True),
        Part("short-logistic", "short_logistic_log_odds"),
    ),
    support="shared_support",
    pools_chances=True,
    against_general=0.6,
    leaves_out_likelier=True,
)
"""Holds logistic regression as one of its two members: what it finds is no evidence for SoftHAD alone."""
SOFTHAD: Final = Scorer(
    "softhad",
    "SoftHAD",
    "support x calibrated probability of the other decision, by a graph of the task",
    graph_evidence,
    new_graph_evidence,
    parts=(_GRAPH,),
    times_support=True,
    soft_label="left_out_soft_label",
)
SOFTHAD_PAPER: Final = Scorer(
    "softhad-paper",
    "SoftHAD as in the paper",
    "|l* - y| as in the paper, min-max scaled on the past",
    paper_evidence,
    new_paper_evidence,
    soft_label="paper_soft_label",
)
LOOKING_BACK: Final = Scorer(
    "shared-looking-back",
    "SoftHAD on a shared graph, looking back",
    "probability of the other decision, by the shared graph and the other decisions of the window",
    short_logistic_evidence,
    parts=(Part("shared-looking-back", "looking_back_log_odds", is_log_odds=True),),
    support=SHARED.support,
    against_general=SHARED.against_general,
    leaves_out_likelier=True,
    is_retrospective=True,
)
_REGISTERED: Final = (
    SHARED,
    SOFTHAD,
    SOFTHAD_PAPER,
    Scorer(
        "logistic",
        "Logistic regression",
        "calibrated probability of the other decision, by logistic regression",
        logistic_evidence,
        new_logistic_evidence,
        parts=(_LOGISTIC,),
    ),
    Scorer(
        "pair",
        "SoftHAD and logistic regression",
        "support x probability from the mean log-odds of softhad and logistic regression",
        logistic_evidence,
        new_logistic_evidence,
        parts=(_GRAPH, _LOGISTIC),
        times_support=True,
    ),
    Scorer(
        "day-adjusted",
        "Day-adjusted",
        "support x probability by logistic regression on the state and how busy the day was",
        day_evidence,
        parts=(Part("day-adjusted", "day_adjusted_log_odds"),),
        times_support=True,
        is_retrospective=True,
    ),
    LOOKING_BACK,
    Scorer(
        "weighted-knn",
        "Weighted k-NN",
        "weighted vote of the nearest nodes of the same graph",
        partial(weighted_neighbour_scores, "weighted-knn_score"),
        raw="weighted-knn_score",
        is_comparison=True,
    ),
    _comparison(
        "svm",
        "SVM",
        "support vector machine, Gaussian kernel: distance on the wrong side",
        lambda *_: _baselines().SupportVectors(),
    ),
    _comparison(
        "one-class-svm",
        "One-class SVM",
        "one-class support vector machine of the own decision: distance outside",
        lambda *_: _baselines().OneClassSupportVectors(),
    ),
    _comparison(
        "qda",
        "QDA",
        "quadratic discriminant analysis: probability of the other decision",
        lambda *_: _baselines().QuadraticDiscriminant(regularization=_QDA_REGULARIZATION),
    ),
    _comparison(
        "neighbour-difference",
        "k-NN distance difference",
        "distance to the nearest of the own decision less that to the other's",
        lambda *_: _baselines().NeighbourDistanceDifference(n_neighbors=_NEIGHBOURS_OF_A_CLASS),
    ),
    _comparison(
        "self-confidence",
        "Self-confidence",
        "probability of the other decision, cross-validated and cleaned",
        lambda parameters, n: _baselines().SelfConfidence(C=parameters.logistic_strength / n),
    ),
)
SCORERS: Final = {scorer.key: scorer for scorer in _REGISTERED}
"""All scorers by key."""
NEW_INSTANCE_SCORERS: Final = tuple(scorer.key for scorer in _REGISTERED if scorer.new_evidence is not None)
"""Keys of the scorers that can score new instances against a stored past: those of the state alone."""
COMPARISONS: Final = tuple(scorer.key for scorer in _REGISTERED if scorer.is_comparison)
"""Keys of the comparison methods."""


def is_retrospective(key: str) -> bool:
    """Return whether a scorer, perhaps one of another version, needs the whole decision window to be over."""
    return key in SCORERS and SCORERS[key].is_retrospective


def leaves_out_likelier(key: str) -> bool:
    """Return whether the lists of a scorer leave out decisions that the state makes likelier than in general."""
    return key in SCORERS and SCORERS[key].leaves_out_likelier


def is_chance(key: str) -> bool:
    """Return whether the score of a scorer, perhaps one of another version, is the chance of the other decision."""
    return key in SCORERS and bool(SCORERS[key].parts) and not SCORERS[key].times_support


def times_support(key: str) -> bool:
    """Return whether the score of a scorer, perhaps one of another version, is a disagreement times the support."""
    return key in SCORERS and SCORERS[key].times_support


def describe_scorer(key: str) -> str:
    """Return what a scorer does, in a line; the key of one that this version does not know."""
    scorer = SCORERS.get(key)
    if scorer is None:
        return key
    mark = " [retrospective]" if scorer.is_retrospective else " [comparison]" if scorer.is_comparison else ""
    return scorer.description + mark


def label_of_scorer(key: str) -> str:
    """Return the name of a scorer in reports; the key of one that this version does not know."""
    return SCORERS[key].label if key in SCORERS else key


def task_evidence(data: TaskData, scorers: Iterable[str]) -> Arrays:
    """Return the evidence of one task by itself that `scorers` need; each function runs once."""
    evidence: Arrays = {}
    chosen = [SCORERS[key] for key in scorers]
    for function in dict.fromkeys((*_of_support(chosen), *(scorer.evidence for scorer in chosen))):
        evidence |= function(data)
    return evidence


def needs_shared_graph(scorers: Iterable[str]) -> bool:
    """Return whether a scorer reads evidence that all tasks have together."""
    return any(key in SCORERS and SCORERS[key].support == SHARED.support for key in scorers)


def keeps_no_patient_apart(scorers: Iterable[str]) -> bool:
    """Return whether a scorer for new instances cannot leave out a patient of a stored past."""
    return needs_shared_graph(key for key in scorers if not is_retrospective(key))


def _of_support(scorers: Iterable[Scorer]) -> Iterator[Callable[[TaskData], Arrays]]:
    """Yield the function of the support where a scorer shows that of the task's own graphs."""
    if any(scorer.support != SHARED.support for scorer in scorers):
        yield graph_evidence


def new_evidence(new: NewInstances, task: int, stored: Mapping[str, NDArray[Any]], scorers: Iterable[str]) -> Arrays:
    """Return the evidence of new instances of one task; each by itself, whoever else is new.

    Parameters
    ----------
    new : NewInstances
    task : int
        Column of the run's tasks.
    stored : mapping of str to arrays
        `core.scoring.new_instances.STORED_ARRAYS` of the run's evidence, with graphs.
    scorers : iterable of str
        Of `NEW_INSTANCE_SCORERS`.

    Returns
    -------
    dict of str to float32 arrays of shape (n_new,)
        Names as from `task_evidence`; to about 1e-7 what a run with the same past gives.
    """
    data = NewTaskData(new, task, stored)
    chosen = [SCORERS[key] for key in scorers]
    first = [new_graph_evidence for _ in _of_support(chosen)]
    evidence: Arrays = new.shared_of_task(task)
    for function in dict.fromkeys((*first, *(scorer.new_evidence for scorer in chosen if scorer.new_evidence))):
        evidence |= function(data)
    return evidence
