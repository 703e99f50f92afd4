"""How busy the day was: other labs and other drugs decided in the window, the task's own order group left out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from core.errors import InvalidInputError
from core.validation import FloatArray, IntArray
from core.vocabulary import Kind

COUNT_WEIGHT: Final = 5.0
"""Size of a standardised count beside the standardised features of the state."""


@dataclass(frozen=True)
class DayContext:
    """Kinds and order groups of all tasks.

    Parameters
    ----------
    is_lab : bool array of shape (n_tasks,)
        Lab orders; the rest are medications.
    groups : int array of shape (n_tasks,)
        Order groups; a task that is alone has its own.
    """

    is_lab: NDArray[np.bool_]
    groups: IntArray

    @classmethod
    def of(cls, kinds: Sequence[str], order_groups: Sequence[str]) -> "DayContext":
        """Read kinds and the names of order groups ("" = alone) in the order of the tasks.

        Raises
        ------
        InvalidInputError
            When there is not one of each per task, or a kind is unknown.
        """
        if len(kinds) != len(order_groups):
            raise InvalidInputError(
                f"There are {len(kinds)} kinds and {len(order_groups)} order groups of tasks. Pass one of each."
            )
        unknown = set(map(str, kinds)) - set(Kind)
        if unknown:
            raise InvalidInputError(
                f"Unknown kinds of tasks {sorted(unknown)}; they are {', '.join(Kind)}. Correct them."
            )
        names = [name or f"\0{place}" for place, name in enumerate(order_groups)]
        groups = np.unique(np.asarray(names, dtype=object).astype(str), return_inverse=True)[1]
        return cls(np.array([kind == Kind.LAB_ORDER for kind in kinds], dtype=bool), groups.astype(np.int64))

    @classmethod
    def needed(cls, kinds: Sequence[str] | None, order_groups: Sequence[str] | None, n_tasks: int) -> "DayContext":
        """Read kinds and order groups of `n_tasks` tasks, refusing their absence by name."""
        if kinds is None or order_groups is None or len(kinds) != n_tasks:
            raise InvalidInputError(
                f'The scorer "day-adjusted" needs kinds and order_groups of all {n_tasks} tasks. '
                "Pass them, or leave it out."
            )
        return cls.of(kinds, order_groups)

    def other_counts(self, decisions: sparse.csc_array, task: int) -> FloatArray:
        """Count other labs and other drugs decided for each instance; shape (n_instances, 2)."""
        outside = self.groups != self.groups[task]
        chosen = np.column_stack((outside & self.is_lab, outside & ~self.is_lab))
        return np.asarray(decisions @ chosen.astype(np.float64))

    def features(self, decisions: sparse.csc_array, task: int, n_past: int) -> NDArray[np.float32]:
        """Standardise log(1 + count) by the past, times `COUNT_WEIGHT`; shape (n_instances, 2)."""
        logs = np.log1p(self.other_counts(decisions, task))
        past = logs[:n_past]
        spread = past.std(axis=0)
        scale = np.divide(COUNT_WEIGHT, spread, out=np.zeros(2), where=spread > 0)
        return np.asarray((logs - past.mean(axis=0)) * scale, dtype=np.float32)
