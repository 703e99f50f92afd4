"""Rank the decisions of a run as its tasks come in: omissions and commissions apart, highest scaled score first."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.vocabulary import Decision

VALUES = ("score", "scaled_score", "soft_label", "support")


def likelier_than_in_general(
    soft_label: npt.NDArray[np.float32], taken: npt.NDArray[np.bool_], past_share: float
) -> npt.NDArray[np.bool_]:
    """Mark decisions that the state makes likelier than the task's past alone; soft labels are 2 P(taken) - 1.

    A rare drug that was given is improbable whatever the state; it is no alert where the state speaks for it.
    """
    in_general = 2 * past_share - 1
    return np.where(taken, soft_label > in_general, soft_label < in_general)


@dataclass(frozen=True)
class Place:
    """Where one decision stands, and what was said of it."""

    rank: int  # from 1 within its list, without gaps
    column: int  # column of the task
    position: int  # position among the recent instances
    score: float
    scaled_score: float
    soft_label: float
    support: float


class TopDecisions:
    """The most unusual decisions of one scorer in two lists; holds no more than a few times their length.

    Equal scores stand by task column, then position, so that a ranking never depends on chance.
    """

    def __init__(self, n_kept: int) -> None:
        self._lists = {decision: _TopList(n_kept) for decision in Decision}

    def add(
        self,
        column: int,
        taken: npt.NDArray[np.bool_],
        vectors: Mapping[str, npt.NDArray[np.float32]],
        is_usual: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        """Add one task; tasks come by ascending column, arrays have shape (n_recent,).

        A scaled score that is NaN has no place, nor has a usual decision, whatever its score.
        """
        scored = np.isfinite(vectors["scaled_score"])
        if is_usual is not None:
            scored &= ~is_usual
        for decision, top in self._lists.items():
            top.add(column, np.flatnonzero(scored & (taken == (decision is Decision.COMMISSION))), vectors)

    def places(self) -> Iterator[tuple[Decision, Place]]:
        """Yield both lists by rank."""
        for decision, top in self._lists.items():
            kept = top.kept()
            for index in range(len(kept["column"])):
                values = (float(kept[name][index]) for name in VALUES)
                yield decision, Place(index + 1, int(kept["column"][index]), int(kept["position"][index]), *values)

    @property
    def floors(self) -> dict[Decision, float]:
        """Scaled score of the last one kept; a list without alerts has none."""
        scaled = {decision: top.kept()["scaled_score"] for decision, top in self._lists.items()}
        return {decision: float(scores[-1]) for decision, scores in scaled.items() if len(scores)}


class _TopList:
    """One list: what is kept so far, in order, and what has come in since it was last sorted."""

    def __init__(self, n_kept: int) -> None:
        self._n_kept = n_kept
        self._waiting: list[dict[str, npt.NDArray[np.generic]]] = []
        self._n_waiting = 0
        whole = {name: np.empty(0, dtype=np.int32) for name in ("column", "position")}
        self._kept: dict[str, npt.NDArray[np.generic]] = {
            **whole,
            **{name: np.empty(0, dtype=np.float32) for name in VALUES},
        }
        self._floor = np.float32(-np.inf)

    def add(self, column: int, places: npt.NDArray[np.int64], vectors: Mapping[str, npt.NDArray[np.float32]]) -> None:
        # An equal score of a later task stands behind all that are kept.
        places = places[vectors["scaled_score"][places] > self._floor]
        self._waiting.append(
            {
                "column": np.full(len(places), column, dtype=np.int32),
                "position": places.astype(np.int32),
                **{name: vectors[name][places] for name in VALUES},
            }
        )
        self._n_waiting += len(places)
        if self._n_waiting > self._n_kept:
            self.kept()

    def kept(self) -> dict[str, npt.NDArray[np.generic]]:
        if self._waiting:
            parts = [self._kept, *self._waiting]
            joined = {name: np.concatenate([part[name] for part in parts]) for name in self._kept}
            order = np.argsort(-joined["scaled_score"].astype(np.float32), kind="stable")[: self._n_kept]
            self._kept = {name: values[order] for name, values in joined.items()}
            self._waiting, self._n_waiting = [], 0
            if len(order) == self._n_kept:
                self._floor = np.float32(self._kept["scaled_score"][-1])
        return self._kept
