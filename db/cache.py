"""Keeps the last answers to questions whose answer never changes: what a published run and its import hold."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any, Generic, TypeVar

from db.rows import RunRow

T = TypeVar("T")


class LastAsked(Generic[T]):
    """The answers asked for last, up to a weight; shared, so nobody may change what he gets.

    Parameters
    ----------
    most : int
        Weight of what is kept together.
    weight : callable
        Weight of an answer; 1 each by default, so that `most` counts answers.
    """

    def __init__(self, most: int, weight: Callable[[T], int] = lambda _: 1) -> None:
        self._most = most
        self._weight = weight
        self._answers: OrderedDict[Hashable, T] = OrderedDict()
        self._kept = 0
        self._changing = Lock()

    def get(self, key: Hashable, ask: Callable[[], T]) -> T:
        """Return the answer under a key, asking only when it is not kept; what `ask` raises is not kept."""
        with self._changing:
            if key in self._answers:
                self._answers.move_to_end(key)
                return self._answers[key]
        answer = ask()
        with self._changing:
            if key not in self._answers:
                self._answers[key] = answer
                self._kept += self._weight(answer)
            while self._kept > self._most:
                self._kept -= self._weight(self._answers.popitem(last=False)[1])
        return answer

    def forget(self) -> None:
        """Keep nothing of what was asked so far."""
        with self._changing:
            self._answers.clear()
            self._kept = 0


MOST = {"snapshot": 8, "folds": 2, "task": 512, "rank": 1024, "decisions": 128}
"""Answers kept of each kind. Folds are two bytes for each instance of the import, a task some ten kilobytes."""


class Kept:
    """Answers that readers share; nobody may change what he gets from here.

    Only for what cannot change once a reader can see it. Never for what depends on who asks, and never inside a
    transaction that writes: what it sees may be taken back, and its numbers given to something else.
    """

    def __init__(self) -> None:
        self._answers: dict[str, LastAsked[Any]] = {kind: LastAsked(most) for kind, most in MOST.items()}

    def get(self, kind: str, key: Hashable, ask: Callable[[], T]) -> T:
        """Return the answer to a question, asking only when it is not kept.

        Parameters
        ----------
        kind : str
            One of `MOST`; each kind has its own bound.
        key : hashable
            Everything the answer depends on.
        ask : callable
            Gives the answer.
        """
        found: T = self._answers[kind].get(key, ask)
        return found

    def forget(self) -> None:
        """Keep nothing of what was kept so far."""
        for answers in self._answers.values():
            answers.forget()


def kept_or_asked(kept: Kept | None, kind: str, key: Hashable, ask: Callable[[], T]) -> T:
    """Return a kept answer, or ask where nothing is kept: inside a transaction that writes."""
    return ask() if kept is None else kept.get(kind, key, ask)


def kept_of_run(kept: Kept | None, kind: str, run: RunRow, key: tuple[Hashable, ...], ask: Callable[[], T]) -> T:
    """Return a kept answer about a run; about one that is not published yet nothing is kept."""
    return kept_or_asked(None if run.published_at is None else kept, kind, (run.id, run.published_at, *key), ask)
