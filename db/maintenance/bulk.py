"""Writes many rows without making anybody wait: short transactions, and the lock is free as long as it was held.

What nobody can see before it is published promises nothing, so these transactions do not wait for the disk; the small
one that publishes does, and the disk then has them all. The log they fill is moved into the file between them:
otherwise the next voter's commit would do it.
"""

import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

from core.vocabulary import RunId
from db.database import Database
from db.models import Alert, TaskResult
from db.queries.seals import ResultsSeal
from db.repositories.runs import prepare_alerts, prepare_task_results
from db.unit_of_work import UnitOfWork

T = TypeVar("T")
P = TypeVar("P")

ALERTS_AT_ONCE = 5_000
RESULTS_AT_ONCE = 8
"""A task result holds four vectors over all recent instances, several hundred kilobytes."""
HELD_SECONDS = 0.02
"""How long a chunk may hold the lock: what a voter who comes in the middle hardly notices."""
LOG_SECONDS = 0.25
"""Holding the lock so long writes so much that the log is worth moving into the file."""


class Pace:
    """How many rows a chunk has: as many as the lock is held for `HELD_SECONDS`, judged by the chunk before.

    Never more than `most`, of which the first chunk has a quarter, and never fewer than a tenth: on a machine that is
    slow because it does much else, smaller chunks take hardly less time. Where nobody waits for a chunk (not on
    SQLite), chunks are as large as they may be.
    """

    def __init__(self, most: int, *, has_one_writer: bool = True) -> None:
        self._least, self._most = max(1, most // 10) if has_one_writer else most, most
        self.size = max(self._least, most // 4)

    def learn(self, n_rows: int, seconds: float) -> None:
        """Take the next chunk larger or smaller, by half or double at most: one slow moment says little."""
        fitting = n_rows * HELD_SECONDS / max(seconds, 1e-9)
        self.size = max(self._least, min(self._most, round(min(2 * self.size, max(self.size / 2, fitting)))))


class Log:
    """Moves the log of a database into its file now and then, between two chunks."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._held = 0.0

    def grew(self, held_seconds: float) -> None:
        """Tell that the lock was held for so long."""
        self._held += held_seconds
        if self._held >= LOG_SECONDS:
            self._held = 0.0
            self._database.shorten_log()


def in_chunks(
    database: Database,
    rows: Iterable[T],
    most: int,
    prepare: Callable[[list[T]], P],
    write: Callable[[UnitOfWork, P], None],
    meanwhile: Callable[[], object] = lambda: None,
) -> None:
    """Write rows, consumed once, chunk by chunk, each in its own transaction.

    `prepare` makes of the rows of a chunk what `write` takes, before the lock is taken; the commit follows by itself,
    and after it `meanwhile`, in the pause.
    """
    remaining = iter(rows)
    pace, log = Pace(most, has_one_writer=database.has_one_writer), Log(database)
    free_until = 0.0
    while chunk := list(islice(remaining, pace.size)):
        # Making the rows counts as the pause: others could write meanwhile.
        prepared = prepare(chunk)
        _wait(free_until)
        with database.write(exclusive=False, lasting=False) as uow:
            began = time.perf_counter()
            write(uow, prepared)
            uow.commit()
        ended = time.perf_counter()
        free_until = ended + (ended - began)
        pace.learn(len(chunk), ended - began)
        meanwhile()
        log.grew(ended - began)
    _wait(free_until)


def _wait(until: float) -> None:
    time.sleep(max(0.0, until - time.perf_counter()))


def store_results(database: Database, run_id: RunId, results: Iterable[TaskResult], alerts: Iterable[Alert]) -> str:
    """Write the task results of a running run, then its alerts; return their seal.

    What is stored is read back and hashed in the pauses that others have for writing.
    """
    seal = ResultsSeal(run_id)

    def hash_stored() -> None:
        with database.read() as uow:
            uow.runs.extend_seal(seal)

    in_chunks(
        database,
        results,
        RESULTS_AT_ONCE,
        lambda chunk: prepare_task_results(run_id, chunk),
        lambda uow, prepared: uow.runs.add_task_results(run_id, prepared),
    )
    hash_stored()
    in_chunks(
        database,
        alerts,
        ALERTS_AT_ONCE,
        lambda chunk: prepare_alerts(database.engine.dialect, run_id, chunk),
        lambda uow, prepared: uow.runs.add_alerts(run_id, prepared),
        hash_stored,
    )
    return str(seal)


def discard_abandoned(database: Database) -> int:
    """Delete what abandoned runs left behind, chunk by chunk; return how many rows."""
    n_deleted = 0
    pace, log = Pace(ALERTS_AT_ONCE, has_one_writer=database.has_one_writer), Log(database)
    while True:
        with database.write(exclusive=False, lasting=False) as uow:
            began = time.perf_counter()
            n_now = uow.runs.discard_abandoned(pace.size)
            uow.commit()
        if n_now == 0:
            return n_deleted
        n_deleted += n_now
        held = time.perf_counter() - began
        pace.learn(n_now, held)
        log.grew(held)
        time.sleep(held)
