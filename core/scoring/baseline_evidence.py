"""Evidence of the comparison methods: fitted on the past alone, nobody scored by own days.

A past instance is scored by a fit without its own patient: past patients are divided into `N_PARTS` parts, and the
instances of a part are scored by the members of the draw outside it. Where too little of one decision is left outside,
the part is scored by the whole draw. Scores are in the method's own unit, higher = more unusual.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from core.graph.backbone import sample_balanced_nodes
from core.scoring.evidence import sampled_nodes
from core.scoring.parameters import ScoringParameters
from core.scoring.prepared import TaskData
from core.validation import FloatArray, IntArray, n_of_rarer

if TYPE_CHECKING:
    from core.baselines import Detector

N_PARTS = 3
"""Parts of the past patients; each part's instances are scored by what was fitted without them."""
Make: TypeAlias = Callable[[IntArray], "Detector"]
"""Makes an unfitted method for the rows that it will be fitted on."""


def cross_fitted_scores(
    name: str, make: "Callable[[ScoringParameters, int], Detector]", data: TaskData
) -> dict[str, NDArray[Any]]:
    """Return the scores of a method that is fitted on one draw from the past, of shape (n_past + n_recent,), by name.

    The draw has at most `ScoringParameters.n_baseline_past` instances, as many positive as negative where there are
    enough, and is the same for all methods. `make` makes the unfitted method for that number of instances.
    """
    draw, parts = _draw_and_parts(data)
    scores = _scores(lambda rows: make(data.parameters, len(rows)), data, draw, parts)
    return {name: scores.astype(np.float32)}


def weighted_neighbour_scores(name: str, data: TaskData) -> dict[str, NDArray[Any]]:
    """Return the votes of the nodes of the SoftHAD graphs, multiplicities included, averaged over the graphs."""
    from core.baselines import WeightedNeighbours

    parameters = data.parameters
    _, parts = _draw_and_parts(data)
    total = np.zeros(len(data.y))
    for number in range(parameters.n_graphs):
        nodes = sampled_nodes(data, number)
        weight_of = np.zeros(len(parts))
        weight_of[nodes.rows] = nodes.multiplicities

        def vote(rows: IntArray, weight_of: FloatArray = weight_of) -> "Detector":
            return WeightedNeighbours(parameters.n_neighbors, multiplicities=weight_of[rows])

        total += _scores(vote, data, nodes.rows, parts)
    return {name: (total / parameters.n_graphs).astype(np.float32)}


def _draw_and_parts(data: TaskData) -> tuple[IntArray, IntArray]:
    """Return rows of the past to fit on, and the part of each past instance, one for all of a patient."""
    # The graphs of the task are numbered below this.
    random = np.random.default_rng([data.seed, data.task, data.parameters.n_graphs])
    draw = sample_balanced_nodes(data.past_y, data.parameters.n_baseline_past, random).rows
    patients, place = np.unique(data.prepared.groups[: data.prepared.n_past], return_inverse=True)
    return draw, np.asarray(random.permutation(len(patients))[place] % N_PARTS, dtype=np.int64)


def _scores(make: Make, data: TaskData, draw: IntArray, parts: IntArray) -> FloatArray:
    """Score recent instances by a fit on the whole draw, past ones by fits without their part."""
    points, y, n_past = data.features.astype(np.float64), data.y, len(parts)
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
