"""Keeps the answers that were asked for last, for answers that never change; one for all sessions of the process."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Generic, TypeVar

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
        """Give the answer under a key, asking only when it is not kept; what `ask` raises is not kept."""
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
