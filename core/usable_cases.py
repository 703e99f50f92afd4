"""Which cases can enter an AUC: those with a label, a score and a weight; the others are counted by reason."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import InvalidInputError

Floats = NDArray[np.float64]

SEPARATED = "interval not computable: the scores separate the two classes completely"


@dataclass(frozen=True)
class UsableCases:
    """Cases that have a label, every score and a weight.

    Attributes
    ----------
    y : ndarray of shape (n,), bool
    scores : ndarray of shape (n_scorers, n)
    weight : ndarray of shape (n,)
        Inverse inclusion probability, or ones.
    patient : ndarray of shape (n,), int
        Codes 0 .. n_patients - 1.
    left_out : dict of str to int
    """

    y: NDArray[np.bool_]
    scores: Floats
    weight: Floats
    patient: NDArray[np.int64]
    left_out: dict[str, int]

    @property
    def n(self) -> int:
        """Number of cases."""
        return int(self.y.size)

    def why_no_auc(self) -> str:
        """Say why no AUC can be computed; empty when it can."""
        n_positive = int(self.y.sum())
        if self.n == 0:
            return "no case has both a label and a score"
        if n_positive == 0:
            return f"one class only (0 positive, {self.n} negative)"
        if n_positive == self.n:
            return f"one class only ({n_positive} positive, 0 negative)"
        return ""


def usable_cases(
    y: ArrayLike,
    scores: Sequence[ArrayLike],
    *,
    patient: ArrayLike | None = None,
    weight: ArrayLike | None = None,
) -> UsableCases:
    """Keep the cases with a label, all scores and a weight, and count the others by reason.

    Parameters
    ----------
    y : array-like of shape (n,)
        1 or True for positive, 0 or False for negative, NaN for undetermined.
    scores : sequence of array-like of shape (n,)
        One for each scorer; NaN where the scorer has no score.
    patient : array-like of shape (n,), optional
        Identifier of the patient behind each case; every case its own patient when left out.
    weight : array-like of shape (n,), optional
        Inverse inclusion probability; ones when left out. NaN, infinite and non-positive weights leave a case out.

    Raises
    ------
    InvalidInputError
        If lengths differ or `y` holds anything but 0, 1 and NaN.
    """
    labels = _vector("y", y)
    columns = [_vector(f"score {i + 1}", s) for i, s in enumerate(scores)]
    weights = np.ones(labels.size) if weight is None else _vector("weight", weight)
    clusters = np.arange(labels.size) if patient is None else np.asarray(patient)
    for name, size in [*((f"score {i + 1}", c.size) for i, c in enumerate(columns)), ("weight", weights.size)]:
        if size != labels.size:
            raise InvalidInputError(f"'{name}' has {size} values and 'y' has {labels.size}; give one for each case.")
    if clusters.shape != labels.shape:
        raise InvalidInputError(
            f"'patient' has shape {clusters.shape}; it must have one entry for each of {labels.size} cases."
        )
    labelled = ~np.isnan(labels)
    if not np.isin(labels[labelled], (0.0, 1.0)).all():
        bad = labels[labelled][~np.isin(labels[labelled], (0.0, 1.0))][0]
        raise InvalidInputError(f"Label {bad:g} is neither 1 (positive), 0 (negative) nor missing. Recode the labels.")
    matrix = np.vstack(columns) if columns else np.empty((0, labels.size))
    scored = np.isfinite(matrix).all(axis=0)
    weighted = np.isfinite(weights) & (weights > 0)
    keep = labelled & scored & weighted
    counts = {
        "no label": int((~labelled).sum()),
        "no score": int((labelled & ~scored).sum()),
        "no inclusion probability": int((labelled & scored & ~weighted).sum()),
    }
    codes = np.unique(clusters[keep], return_inverse=True)[1].astype(np.int64)
    left_out = {reason: count for reason, count in counts.items() if count}
    return UsableCases(labels[keep] == 1.0, matrix[:, keep], weights[keep], codes, left_out)


def _vector(name: str, values: ArrayLike) -> Floats:
    try:
        vector = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(f"'{name}' holds something that is not a number. Use NaN for missing values.") from None
    if vector.ndim != 1:
        raise InvalidInputError(f"'{name}' has {vector.ndim} dimensions; it must be one value for each case.")
    return vector
