"""Why an alert: the most similar past instances, and the features on which they are near."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from core.errors import InvalidInputError
from core.features import SparseStandardizer
from core.graph.similarity import Neighbourhoods, local_scales, nearest
from core.validation import FloatArray, IntArray, Matrix


@dataclass(frozen=True)
class NearestPast:
    """The past instances most similar to one instance, nearest first."""

    rows: IntArray  # shape (n_nearest,): rows of the past
    # Shape (n_nearest,): exp(-d^2 / (s_i s_j)) in (0, 1]; 1 = the same state. s is the distance to the 7th nearest past
    # instance.
    similarities: FloatArray


def nearest_past(
    X_past: Matrix,
    x: Matrix,
    feature_indices: ArrayLike,
    feature_weights: ArrayLike,
    *,
    is_flag: ArrayLike,
    n_nearest: int = 10,
    is_elapsed: ArrayLike | None = None,
) -> NearestPast:
    """Find the past instances most similar to one instance in the eyes of one task; fewer when the past holds fewer.

    `X_past` and `x` are raw features, as in the cohort; the features the task looks at and their psi are those of
    `core.scoring.scores.TaskScores`, `is_elapsed` that of the scoring run. A feature `is_flag` where not stored means
    0. Raise InvalidInputError when features and weights do not fit.
    """
    kept = np.asarray(feature_indices, dtype=np.int64)
    psi = np.asarray(feature_weights, dtype=np.float64)
    if kept.shape != psi.shape or len(kept) == 0 or psi.sum() <= 0:
        raise InvalidInputError(
            f"{len(kept)} features came with {len(psi)} weights; at least one feature with a positive weight is needed."
        )
    past = sparse.csr_array(X_past)[:, kept]
    elapsed = None if is_elapsed is None else np.asarray(is_elapsed, dtype=bool)[kept]
    standardizer = SparseStandardizer().fit(past, np.asarray(is_flag, dtype=bool)[kept], elapsed)
    weights = psi / psi.mean()
    points = standardizer.transform(past).toarray().astype(np.float64) * weights
    query = standardizer.transform(sparse.csr_array(x)[:, kept]).toarray().astype(np.float64) * weights
    scale_rank = 7
    near = nearest(points, query, min(max(n_nearest, scale_rank), len(points)))
    own_scale = local_scales(near)[0]
    rows = near.indices[0, :n_nearest]
    squared = near.squared_distances[0, :n_nearest]
    scales = _past_scales(points, rows, scale_rank)
    return NearestPast(rows, np.exp(-squared / (own_scale * scales)))


def _past_scales(points: FloatArray, rows: IntArray, rank: int) -> FloatArray:
    near = nearest(points, points[rows], min(rank + 1, len(points)))
    # The instance itself is among its neighbours here, at distance 0 and is not its own neighbour.
    order = np.argsort(near.indices == rows[:, None], axis=1, kind="stable")[:, : max(near.indices.shape[1] - 1, 1)]
    others = Neighbourhoods(
        np.take_along_axis(near.indices, order, axis=1), np.take_along_axis(near.squared_distances, order, axis=1)
    )
    return local_scales(others)
