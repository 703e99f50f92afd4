"""What each task's own item has been for the patient, told in the same way for all tasks, and what it adds.

Boosted trees over (instance, task) pairs of all tasks together learn what the shared graph leaves unexplained: a rare
task borrows from frequent ones. Features come from what was known at the snapshot alone, never from decisions.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from core.cohort.feature_roles import OWN_ITEM, FeatureRoles
from core.numerics.boosted_trees import BoostedTrees, fit_boosted_trees
from core.validation import FloatArray, IntArray

NEVER: Final = 1e4
"""Hours since what never happened."""
SMALLEST_VARIANCE: Final = 0.02
"""Of a decision, where it divides: a nearly certain one does not outweigh the rest."""
LARGEST_TARGET: Final = 4.0
_TREES: Final = {"n_trees": 100, "rate": 0.1, "n_leaves": 8, "min_in_leaf": 100, "ridge": 10.0}
_HOURS: Final = ("since", "between", "since_start")
_OTHERS: Final = 8
"""Order group, three counts of the patient, day of the stay, kind, rate of the task, and what is expected."""


@dataclass(frozen=True)
class OwnHistory:
    """Features of (instance, task) pairs."""

    raw: sparse.csc_array  # shape (n, n_features): raw features
    roles: FeatureRoles
    order_groups: IntArray  # shape (n_tasks,): codes; a task that is alone has its own
    kinds: IntArray  # shape (n_tasks,): position of each kind of decision in `Kind`

    @cached_property
    def of_patient(self) -> NDArray[np.float32]:
        """Labs measured, courses on, courses given and day of the stay, of shape (n, 4)."""
        counts = [self._count(chosen) for chosen in (self.roles.measured, self.roles.on, self.roles.given)]
        day = self._column(self.roles.day_of_stay, 0.0)
        return np.column_stack((*counts, day)).astype(np.float32)

    def _count(self, chosen: NDArray[np.bool_]) -> IntArray:
        found = np.zeros(self.raw.shape[0], dtype=np.int64)
        for column in np.flatnonzero(chosen):
            start, end = self.raw.indptr[column : column + 2]
            found[self.raw.indices[start:end]] += self.raw.data[start:end] != 0
        return found

    def _column(self, column: int, absent: float) -> NDArray[np.float32]:
        values = np.full(self.raw.shape[0], absent, dtype=np.float32)
        if column >= 0:
            start, end = self.raw.indptr[column : column + 2]
            values[self.raw.indices[start:end]] = self.raw.data[start:end]
        return values

    def of_task(self, task: int, rate: float, expected: NDArray[Any], rows: IntArray | slice) -> NDArray[np.float32]:
        """Return the features of some instances for a task, of shape (n, len(OWN_ITEM) + 8).

        `rate` is the log odds of the task's decision in the past, `expected` are the log odds that are to be improved.
        """
        found = np.empty((len(expected), len(OWN_ITEM) + _OTHERS), dtype=np.float32)
        for place, name in enumerate(OWN_ITEM):
            absent = NEVER if name in _HOURS else 0.0
            found[:, place] = self._column(self.roles.own_item[task, place], absent)[rows]
        others = np.flatnonzero(self.order_groups == self.order_groups[task])
        others = others[others != task]
        recent = [self._column(self.roles.own_item[other, 0], 0.0)[rows] for other in others]
        found[:, -8] = np.mean(recent, axis=0) if recent else -1.0
        found[:, -7:-3] = self.of_patient[rows]
        found[:, -3], found[:, -2], found[:, -1] = self.kinds[task], rate, expected
        return found


def residual_targets(positive: NDArray[np.bool_], log_odds: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
    """Return (y - p) / w and the weights w = p (1 - p), both kept from extremes; shape of `positive`."""
    chance = 1 / (1 + np.exp(-np.clip(log_odds.astype(np.float64), -500, 500)))
    weights = np.maximum(chance * (1 - chance), SMALLEST_VARIANCE)
    return np.clip((positive - chance) / weights, -LARGEST_TARGET, LARGEST_TARGET), weights


def fit_history(features: NDArray[np.float32], targets: FloatArray, weights: FloatArray) -> BoostedTrees:
    """Fit the trees to pairs."""
    return fit_boosted_trees(features, targets, weights, **_TREES)  # type: ignore[arg-type]
