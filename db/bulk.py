"""Writes many rows without making anybody wait: short transactions, and the lock is free as long as it was held."""

import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

from db.repositories.runs import prepare_alerts, prepare_task_results
from db.rows import NewAlert, NewTaskResult
from db.session import Database
from db.unit_of_work import UnitOfWork

T = TypeVar("T")
P = TypeVar("P")

ALERTS_AT_ONCE = 5_000
RESULTS_AT_ONCE = 8
"""A task result holds four vectors over all recent instances, several hundred kilobytes."""


def in_chunks(
    database: Database,
    rows: Iterable[T],
    size: int,
    prepare: Callable[[list[T]], P],
    write: Callable[[UnitOfWork, P], None],
) -> int:
    """Write rows chunk by chunk, each in a transaction of its own.

    Parameters
    ----------
    database : Database
        Of the site.
    rows : iterable
        Consumed once, never held as a whole.
    size : int
        Rows in a chunk.
    prepare : callable
        Takes the rows of a chunk and makes of them what `write` takes, before the lock is taken.
    write : callable
        Takes the unit of work and what was prepared; the commit follows by itself.

    Returns
    -------
    int
        Number of rows written.
    """
    remaining = iter(rows)
    n_written = 0
    free_until = 0.0
    while chunk := list(islice(remaining, size)):
        # Making the rows counts as the pause: others could write meanwhile.
        prepared = prepare(chunk)
        _wait(free_until)
        began = time.perf_counter()
        with database.write(exclusive=False) as uow:
            write(uow, prepared)
            uow.commit()
        n_written += len(chunk)
        ended = time.perf_counter()
        free_until = ended + (ended - began)
    _wait(free_until)
    return n_written


def _wait(until: float) -> None:
    time.sleep(max(0.0, until - time.perf_counter()))


def store_alerts(database: Database, run_id: int, alerts: Iterable[NewAlert]) -> int:
    """Write the alerts of a running run; gives their number."""
    return in_chunks(
        database,
        alerts,
        ALERTS_AT_ONCE,
        lambda chunk: prepare_alerts(run_id, chunk),
        lambda uow, prepared: uow.runs.add_prepared_alerts(run_id, prepared),
    )


def store_task_results(database: Database, run_id: int, results: Iterable[NewTaskResult]) -> int:
    """Write the task results of a running run; gives their number."""
    return in_chunks(
        database,
        results,
        RESULTS_AT_ONCE,
        lambda chunk: prepare_task_results(run_id, chunk),
        lambda uow, prepared: uow.runs.add_prepared_task_results(run_id, prepared),
    )


def discard_abandoned(database: Database) -> int:
    """Delete what abandoned runs left behind, chunk by chunk.

    Returns
    -------
    int
        Number of rows deleted.
    """
    n_deleted = 0
    while True:
        began = time.perf_counter()
        with database.write(exclusive=False) as uow:
            n_now = uow.runs.discard_abandoned(ALERTS_AT_ONCE)
            uow.commit()
        if n_now == 0:
            return n_deleted
        n_deleted += n_now
        time.sleep(time.perf_counter() - began)
