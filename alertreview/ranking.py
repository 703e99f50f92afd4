"""Rank the decisions of a run: omissions and commissions apart, highest scaled score first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from core.vocabulary import Decision


@dataclass(frozen=True)
class Place:
    """Where one decision stands."""

    rank: int
    """From 1 within its list, without gaps."""
    column: int
    """Column of the task."""
    position: int
    """Position among the recent instances."""


@dataclass(frozen=True)
class RankedAlerts:
    """The top of both lists.

    Parameters
    ----------
    columns, positions : dict of Decision to int array of shape (n_kept,)
        Task column and position among the recent instances, by rank.
    floors : dict of Decision to float
        Scaled score of the last one kept; a list without alerts has none.
    """

    columns: dict[Decision, npt.NDArray[np.int64]]
    positions: dict[Decision, npt.NDArray[np.int64]]
    floors: dict[Decision, float]

    def places(self) -> Iterator[tuple[Decision, Place]]:
        """Go through both lists by rank."""
        for decision, columns in self.columns.items():
            for index, (column, position) in enumerate(zip(columns, self.positions[decision], strict=True)):
                yield decision, Place(index + 1, int(column), int(position))


def rank_alerts(
    scaled: Mapping[int, npt.NDArray[np.float32]],
    decisions: sparse.csc_matrix,
    recent: npt.NDArray[np.int64],
    *,
    n_kept: int,
) -> RankedAlerts:
    """Take the `n_kept` most unusual decisions of each list.

    Parameters
    ----------
    scaled : mapping of int to float32 array of shape (n_recent,)
        Scaled scores by task column, higher = more unusual; NaN where there is none.
    decisions : csc_matrix of shape (n_instances, n_tasks), bool
        What was done.
    recent : int array of shape (n_recent,)
        Rows of the instances that the scores are of.
    n_kept : int
        How many of each list at most.

    Returns
    -------
    RankedAlerts
        Equal scores stand by task column, then position, so that a ranking never depends on chance.
    """
    ranked = RankedAlerts({}, {}, {})
    for decision in Decision:
        scores, columns, positions = [], [], []
        for column in sorted(scaled):
            taken = _taken(decisions, column)[recent]
            member = (taken == (decision is Decision.COMMISSION)) & np.isfinite(scaled[column])
            place = np.flatnonzero(member)
            if len(place) > n_kept:
                # No task alone can fill more than the list; this keeps memory to the list's size per task.
                best = np.argsort(-scaled[column][place], kind="stable")[:n_kept]
                place = np.sort(place[best])
            scores.append(scaled[column][place])
            columns.append(np.full(len(place), column, dtype=np.int64))
            positions.append(place)
        score = np.concatenate(scores) if scores else np.empty(0, dtype=np.float32)
        order = np.argsort(-score, kind="stable")[:n_kept]
        ranked.columns[decision] = (np.concatenate(columns) if columns else np.empty(0, dtype=np.int64))[order]
        ranked.positions[decision] = (np.concatenate(positions) if positions else np.empty(0, dtype=np.int64))[order]
        if len(order):
            ranked.floors[decision] = float(score[order[-1]])
    return ranked


def _taken(decisions: sparse.csc_matrix, column: int) -> npt.NDArray[np.bool_]:
    taken = np.zeros(decisions.shape[0], dtype=bool)
    start, end = decisions.indptr[column : column + 2]
    taken[decisions.indices[start:end]] = decisions.data[start:end]
    return taken
