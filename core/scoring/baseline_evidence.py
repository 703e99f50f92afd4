"""What other methods say about every instance of one task: fitted on the past alone, nobody scored by own days."""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from core.baselines import (
    Detector,
    NeighbourDistanceDifference,
    OneClassSupportVectors,
    QuadraticDiscriminant,
    SelfConfidence,
    SupportVectors,
    WeightedNeighbours,
)
from core.graph.backbone import sample_balanced_nodes
from core.scoring.evidence import PreparedInstances, weighted_task_features
from core.scoring.parameters import (
    BASELINE_SCORERS,
    NEIGHBOUR_DIFFERENCE,
    ONE_CLASS_SVM,
    QDA,
    SELF_CONFIDENCE,
    SVM,
    WEIGHTED_KNN,
    ScoringParameters,
)
from core.validation import FloatArray, IntArray, n_of_rarer

N_PARTS = 3
"""Parts of the past patients; each part's instances are scored by what was fitted without them."""
_QDA_REGULARIZATION: Final = 0.1
"""Share of the identity in each covariance: 200 features and a few hundred instances leave it singular without."""
_NEIGHBOURS_OF_A_CLASS: Final = 20

Make: TypeAlias = Callable[[IntArray], Detector]
"""Makes an unfitted method for the rows that it will be fitted on."""


def _methods(parameters: ScoringParameters) -> dict[str, Make]:
    return {
        SVM: lambda _: SupportVectors(),
        ONE_CLASS_SVM: lambda _: OneClassSupportVectors(),
        QDA: lambda _: QuadraticDiscriminant(regularization=_QDA_REGULARIZATION),
        NEIGHBOUR_DIFFERENCE: lambda _: NeighbourDistanceDifference(n_neighbors=_NEIGHBOURS_OF_A_CLASS),
        SELF_CONFIDENCE: lambda rows: SelfConfidence(C=parameters.logistic_strength / len(rows)),
    }


def baseline_evidence(
    prepared: PreparedInstances, task: int, parameters: ScoringParameters, scorers: tuple[str, ...], seed: int
) -> dict[str, NDArray[Any]]:
    """Score every instance of one task by the baselines among `scorers`.

    "weighted-knn" stands on the nodes of the SoftHAD graphs, multiplicities included, and is their mean. The others are
    fitted on one draw from the past of at most `ScoringParameters.n_baseline_past` instances, as many positive as
    negative where there are enough.

    A past instance is scored by a fit without its own patient: past patients are parted into `N_PARTS` parts, and the
    instances of a part are scored by the members of the draw outside it. Where too little of one decision is left
    outside, the part is scored by the whole draw.

    Parameters
    ----------
    prepared : PreparedInstances
    task : int
        Column of the decisions.
    parameters : ScoringParameters
    scorers : tuple of str
    seed : int
        Draws and parts depend on (seed, task) alone.

    Returns
    -------
    dict of float32 arrays of shape (n_past + n_recent,)
        ``<scorer>_score`` by scorer; higher = more unusual, in the method's own unit.
    """
    chosen = [scorer for scorer in BASELINE_SCORERS if scorer in scorers]
    if not chosen:
        return {}
    features, _ = weighted_task_features(prepared, task)
    points = features.astype(np.float64)
    past = np.where(prepared.past_positive(task), 1.0, -1.0)
    y = np.concatenate((past, np.where(prepared.recent_positive(task), 1.0, -1.0)))
    # The graphs of the task are numbered below this.
    random = np.random.default_rng([seed, task, parameters.n_graphs])
    draw = sample_balanced_nodes(past, parameters.n_baseline_past, random).rows
    parts = _parts_of_patients(prepared.groups[: prepared.n_past], random)
    found: dict[str, NDArray[Any]] = {}
    for scorer in chosen:
        if scorer == WEIGHTED_KNN:
            scores = _weighted_neighbours(points, y, past, parts, parameters, seed, task)
        else:
            scores = _cross_fitted(_methods(parameters)[scorer], points, y, draw, parts)
        found[f"{scorer}_score"] = scores.astype(np.float32)
    return found


def _parts_of_patients(groups: IntArray, random: np.random.Generator) -> IntArray:
    """Return the part of each past instance, the same for all instances of a patient."""
    patients, place = np.unique(groups, return_inverse=True)
    return np.asarray(random.permutation(len(patients))[place] % N_PARTS, dtype=np.int64)


def _weighted_neighbours(
    points: FloatArray,
    y: FloatArray,
    past: FloatArray,
    parts: IntArray,
    parameters: ScoringParameters,
    seed: int,
    task: int,
) -> FloatArray:
    total = np.zeros(len(points))
    for number in range(parameters.n_graphs):
        nodes = sample_balanced_nodes(past, parameters.n_nodes, np.random.default_rng([seed, task, number]))
        weight_of = np.zeros(len(past))
        weight_of[nodes.rows] = nodes.multiplicities

        def vote(rows: IntArray, weight_of: FloatArray = weight_of) -> Detector:
            return WeightedNeighbours(parameters.n_neighbors, multiplicities=weight_of[rows])

        total += _cross_fitted(vote, points, y, nodes.rows, parts)
    return total / parameters.n_graphs


def _cross_fitted(make: Make, points: FloatArray, y: FloatArray, draw: IntArray, parts: IntArray) -> FloatArray:
    """Score recent instances by a fit on the whole draw, past ones by fits without their part."""
    n_past = len(parts)
    scores = np.empty(len(points))
    whole = make(draw).fit(points[draw], y[draw])
    scores[n_past:] = whole.score_samples(points[n_past:], y[n_past:])
    for part in range(N_PARTS):
        inside = np.flatnonzero(parts == part)
        outside = draw[parts[draw] != part]
        detector = make(outside)
        enough = n_of_rarer(y[outside]) >= detector.fewest_of_each
        detector = detector.fit(points[outside], y[outside]) if enough else whole
        if len(inside):
            scores[inside] = detector.score_samples(points[inside], y[inside])
    return scores
