"""Thread-safe LRU caches of answers that never change, and the rule for their keys.

A key names everything the answer depends on. Nothing that depends on who asks is cached, and nothing is cached inside
a transaction that writes: what it reads may be rolled back and its ids given to other rows. Callers share the cached
objects and must not change them.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from contextlib import suppress
from threading import Lock
from typing import Any, Generic, TypeAlias, TypeVar

from cachetools import LRUCache

from db.models import ScoringRun

T = TypeVar("T")

SIZES = {"snapshot": 8, "folds": 2, "task": 512, "rank": 1024, "decisions": 128}
"""Entries of each shared cache. Folds take two bytes per instance of the import, a task some ten kilobytes."""


class Cache(Generic[T]):
    """Thread-safe LRU cache.

    `maxsize` is the total weight of the entries; by default each weighs 1.
    """

    def __init__(self, maxsize: int, weight: Callable[[T], int] | None = None) -> None:
        self._entries: LRUCache[Hashable, T] = LRUCache(maxsize, getsizeof=weight)
        self._lock = Lock()

    def get(self, key: object, compute: Callable[[], T], is_current: Callable[[], bool] | None = None) -> T:
        """Return the value of a key, computing it on a miss.

        The key is everything the value depends on; mappings, sets and sequences are compared by content. The value is
        computed outside the lock, and what that raises is not cached; nor is a value that `is_current` says no longer
        belongs to the key.
        """
        key = _frozen(key)
        with self._lock:
            if key in self._entries:
                return self._entries[key]
        value = compute()
        if is_current is None or is_current():
            with self._lock, suppress(ValueError):  # a value heavier than the whole cache
                self._entries.setdefault(key, value)
        return value

    def clear(self) -> None:
        """Drop all entries."""
        with self._lock:
            self._entries.clear()


Caches: TypeAlias = Mapping[str, Cache[Any]]


def shared_caches() -> Caches:
    """Return the caches that all readers of a database share, by kind; see `SIZES`."""
    return {kind: Cache(size) for kind, size in SIZES.items()}


def cached(caches: Caches | None, kind: str, key: object, compute: Callable[[], T]) -> T:
    """Return a cached answer; without caches, as in a transaction that writes, compute it."""
    return compute() if caches is None else caches[kind].get(key, compute)


def cached_of_run(caches: Caches | None, kind: str, run: ScoringRun, key: object, compute: Callable[[], T]) -> T:
    """Return a cached answer about a run; compute it while the run is not published."""
    return cached(None if run.published_at is None else caches, kind, (run.id, run.published_at, key), compute)


def _frozen(key: object) -> Hashable:
    if isinstance(key, Mapping):
        return frozenset((name, _frozen(part)) for name, part in key.items())
    if isinstance(key, Set):
        return frozenset(key)
    if isinstance(key, Sequence) and not isinstance(key, str | bytes):
        return tuple(map(_frozen, key))
    return key
