"""Opens connections the way that was measured to lose no vote: WAL, writers take the lock at once, an own lock poll.

SQLite does not honour its busy timeout when a read transaction becomes a write, and its own poll sleeps up to 100 ms.
So a writer begins with BEGIN IMMEDIATE and tries again every millisecond or two, and a reader never waits for a writer.
Writers of one process queue up in it first, in the order in which they came: thirty threads that all poll would spend
the processor on polling.

A commit that promises something waits for the disk while it holds the lock. One that promises nothing (a hold of a
case, rows of a run that nobody can see yet) does not: should the power fail it may be gone, and nothing else with it.
Whoever commits when the log is long moves it into the file, so writers of many rows do that themselves, between their
transactions, and the voters' own limit is a last resort.
"""

import json
import random
import sqlite3
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import ArgumentError

from core.errors import DatabaseUnavailableError, SettingsError

T = TypeVar("T")

APPLICATION_ID = 0x416C5276
"""Marks an SQLite file as ours ("AlRv")."""

LOCK_WAIT_SECONDS = 30.0
_POLL_SECONDS = (0.0005, 0.002)
_LOG_PAGES = 8_000
"""Length of SQLite's log at which a commit moves it into the file by itself: 32 MB."""
_SWITCH_SECONDS = 0.0005
_NORMAL = 1
"""SQLite's number for a commit that does not wait for the disk and that no kill of a process can undo."""
_WRITER_KEY = 0x416C5276
"""PostgreSQL's advisory lock by which deciding writers take turns, as SQLite makes them; those of one case share it."""
_CASE_KEY = 0x416C5243
"""With the number of a case: the lock of those who decide about that case alone."""
_TRAIL_KEY = 0x416C5254
"""The lock of the audit trail's end, for those who share the first one."""
_JOB_KEYS = {"scoring": 0x416C5277, "digest": 0x416C5278}
"""The lock of the one job of a kind."""


_REPEATABLE_READ = 3
"""PostgreSQL's level at which a transaction sees one state, as the driver numbers it."""

_poll_random = random.Random()  # noqa: S311 - spreads waiting writers, decides nothing


def pass_on_sooner() -> None:
    """Switch threads of this process ten times as often; for a server with many reviewers.

    A writer gives the interpreter up around each of its statements. To get it back among thirty busy threads takes
    up to 5 ms each time by default, while it holds the lock of the database.
    """
    sys.setswitchinterval(_SWITCH_SECONDS)


def canonical_json(value: object) -> str:
    """Write JSON in one spelling only: sorted keys, no spaces, no NaN."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def parse_url(url: str) -> URL:
    """Return a database URL, read.

    Raise SettingsError if it is malformed, names another kind of database, or an SQLite database without a file.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise SettingsError(
            "The database URL cannot be read. Write sqlite:///FILE or postgresql+psycopg://NAME@HOST/DATABASE."
        ) from None
    if parsed.get_backend_name() == "sqlite":
        if not parsed.database or parsed.database == ":memory:":
            raise SettingsError("The database URL names no file; a site needs one that lasts: sqlite:///FILE.")
        return parsed
    if parsed.get_backend_name() == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    raise SettingsError(
        f"Databases of the kind '{parsed.get_backend_name()}' are not supported. Use SQLite or PostgreSQL 15 or newer."
    )


def sqlite_file(url: URL) -> Path | None:
    """Return the path of the database file, None for a server."""
    return Path(str(url.database)) if url.get_backend_name() == "sqlite" else None


class Turns:
    """Whose turn it is to write, among the threads of this process: one at a time, first come, first served."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._waiting: deque[threading.Event] = deque()
        self._is_taken = False

    def take(self, timeout_seconds: float) -> bool:
        """Wait for the turn; False when it did not come in time."""
        with self._mutex:
            if not self._is_taken:
                self._is_taken = True
                return True
            mine = threading.Event()
            self._waiting.append(mine)
        if mine.wait(timeout_seconds):
            return True
        with self._mutex:
            if mine.is_set():
                return True
            self._waiting.remove(mine)
            return False

    def give(self) -> None:
        """Pass the turn to whoever has waited for it longest."""
        with self._mutex:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._is_taken = False


class QueuedConnection(sqlite3.Connection):
    """A connection that passes the turn on as soon as its transaction has ended, however it ended."""

    queue: Turns  # turns of all connections to the same database
    turns: Turns | None = None  # the same, while this connection has the turn
    lasting: int | None = None
    """SQLite's number for waiting for the disk as this connection otherwise does; None before it was asked for."""
    waits: bool = True  # whether the next commit waits for the disk
    reads_only: bool = False  # whether the connection refuses to write

    def wait_for_disk(self, wanted: bool) -> None:
        """Set whether the next commit waits for the disk."""
        if self.lasting is None:
            self.lasting = int(self.execute("PRAGMA synchronous").fetchone()[0])
        self.execute(f"PRAGMA synchronous = {self.lasting if wanted else min(_NORMAL, self.lasting)}")
        self.waits = wanted

    def refuse_to_write(self, wanted: bool) -> None:
        """Set whether the next transaction is read-only."""
        self.execute(f"PRAGMA query_only = {int(wanted)}")
        self.reads_only = wanted

    def commit(self) -> None:
        """Commit; a refused COMMIT leaves the transaction open, and the turn with it, until the rollback."""
        super().commit()
        self.end_turn()

    def rollback(self) -> None:
        """Roll back."""
        try:
            super().rollback()
        finally:
            self.end_turn()

    def close(self) -> None:
        """Close."""
        try:
            super().close()
        finally:
            self.give_turn()

    def end_turn(self) -> None:
        """Pass the turn on, and wait for the disk again from now on."""
        turns, self.turns = self.turns, None  # as `give_turn` does; a vote passes here three times
        if turns is not None:
            turns.give()
        if not self.waits:
            self.wait_for_disk(True)

    def give_turn(self) -> None:
        """Pass the turn on, if this connection has it."""
        turns, self.turns = self.turns, None
        if turns is not None:
            turns.give()


def open_engine(url: URL) -> Engine:
    """Make the engine of a database; connects only when first used."""
    is_sqlite = url.get_backend_name() == "sqlite"
    engine = sa.create_engine(
        url,
        hide_parameters=True,
        json_serializer=canonical_json,
        pool_size=20,
        pool_use_lifo=True,  # the one used last has the fewest pages to read again
        max_overflow=40,
        pool_timeout=LOCK_WAIT_SECONDS,
        pool_pre_ping=not is_sqlite,
        # Nothing is lost with an SQLite connection: _end rolls back, and only where something is open.
        pool_reset_on_return=None if is_sqlite else "rollback",
        connect_args={"timeout": 0, "check_same_thread": False, "factory": QueuedConnection}
        if is_sqlite
        else {"options": f"-c lock_timeout={LOCK_WAIT_SECONDS:.0f}s"},
    )
    if is_sqlite:
        turns = Turns()
        sa.event.listen(engine, "connect", lambda connection, _: _prepare_sqlite(connection, turns))
        sa.event.listen(engine, "begin", _begin_sqlite)
    else:
        sa.event.listen(engine, "begin", _begin_postgresql)
    sa.event.listen(engine, "checkin", _end)
    return engine


def _prepare_sqlite(connection: QueuedConnection, turns: Turns) -> None:
    """Set up a new connection; the journal mode is touched only in a file that is ours."""
    connection.queue = turns
    connection.isolation_level = None
    # Each may look into the file, which another process locks for a moment while it makes the tables.
    poll(connection.execute, "PRAGMA foreign_keys = ON")
    poll(connection.execute, "PRAGMA synchronous = FULL")
    poll(connection.execute, f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
    if poll(lambda: connection.execute("PRAGMA application_id").fetchone())[0] == APPLICATION_ID:
        poll(connection.execute, "PRAGMA journal_mode = WAL").fetchone()


def _end(connection: Any, _record: object) -> None:
    """Roll back what a refused COMMIT leaves open; in the pool it would hold the lock."""
    if isinstance(connection, QueuedConnection) and connection.turns is None and not connection.in_transaction:
        return
    if connection is not None:
        connection.rollback()


def _begin_sqlite(connection: Connection) -> None:
    """Start as a reader (option ``readonly``) or as a writer that takes the lock at once."""
    driver: Any = connection.connection.dbapi_connection
    readonly = bool(connection.get_execution_options().get("readonly", False))
    if readonly != driver.reads_only:
        driver.refuse_to_write(readonly)
    if readonly:
        driver.execute("BEGIN")
        # The snapshot is taken at the first look, not at BEGIN: take it here, where waiting is provided for.
        poll(driver.execute, "SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        return
    if not driver.queue.take(LOCK_WAIT_SECONDS):
        raise _locked()
    driver.turns = driver.queue
    try:
        lasting = bool(connection.get_execution_options().get("lasting", True))
        if lasting != driver.waits:
            driver.wait_for_disk(lasting)
        poll(driver.execute, "BEGIN IMMEDIATE")
    except BaseException:
        driver.give_turn()
        raise


def poll(attempt: Callable[..., T], *given: object) -> T:
    """Retry, while it raises SQLITE_BUSY, until the database is no longer locked by somebody else.

    Raise DatabaseUnavailableError if the lock was held for `LOCK_WAIT_SECONDS`.
    """
    deadline = time.monotonic() + LOCK_WAIT_SECONDS
    while True:
        try:
            return attempt(*given)
        except sqlite3.OperationalError as error:
            if (error.sqlite_errorcode & 0xFF) != sqlite3.SQLITE_BUSY:
                raise
        if time.monotonic() >= deadline:
            raise _locked()
        time.sleep(_poll_random.uniform(*_POLL_SECONDS))


def _locked() -> DatabaseUnavailableError:
    return DatabaseUnavailableError(
        f"The database was locked for {LOCK_WAIT_SECONDS:g} s. Nothing of this change was kept. "
        "Try again; if it persists, see which program keeps it open."
    )


def _begin_postgresql(connection: Connection) -> None:
    """Take the lock of deciding writers; readers and bulk writers of an unpublished run skip it."""
    options = connection.get_execution_options()
    readonly = bool(options.get("readonly", False))
    _set_postgresql(connection.connection.driver_connection, readonly=readonly)
    if readonly:
        connection.exec_driver_sql("SELECT 1")  # the snapshot is taken at the first look: take it now
        return
    steps = []
    if not options.get("lasting", True):
        steps.append("set_config('synchronous_commit', 'off', true)")
    case_id = options.get("case_id")
    if case_id is not None:
        # In this order, always: two who wait for each other would wait for ever.
        steps.append(f"pg_advisory_xact_lock_shared({_WRITER_KEY})")
        steps.append(f"pg_advisory_xact_lock({_CASE_KEY}, {int(case_id) % 2**31})")
    elif options.get("exclusive", True):
        steps.append(f"pg_advisory_xact_lock({_WRITER_KEY})")
    if steps:
        connection.exec_driver_sql(f"SELECT {', '.join(steps)}")


def take_turn_at_trail(connection: Connection) -> None:
    """Wait until nobody else is about to write the audit trail's next row; held until the transaction ends."""
    if connection.dialect.name == "postgresql" and connection.get_execution_options().get("case_id") is not None:
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_TRAIL_KEY})")


def _set_postgresql(driver: Any, *, readonly: bool) -> None:
    """Set the options of the connection's next BEGIN; this takes no round trip to the server."""
    isolation = _REPEATABLE_READ if readonly else None
    if driver.isolation_level != isolation:
        driver.isolation_level = isolation
    if bool(driver.read_only) != readonly:
        driver.read_only = readonly or None


def shorten_log(engine: Engine) -> None:
    """Move SQLite's log into the file as far as nobody still reads it; nobody waits for it, no lock is held."""
    with closing(engine.raw_connection()) as connection:
        cast("sqlite3.Connection", connection.driver_connection).execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()


@contextmanager
def job_lock(engine: Engine, job: str) -> Iterator[bool]:
    """Yield whether no other job of the kind runs: a locked file beside an SQLite database, a session lock on a server.

    The operating system gives it back even after a crash.
    """
    file = sqlite_file(engine.url)
    if file is not None:
        with closing(sqlite3.connect(file.with_name(f"{file.name}-{job}"), timeout=0, isolation_level=None)) as lock:
            yield _take(lock)
        return
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT", readonly=True) as connection:
        held = connection.exec_driver_sql(f"SELECT pg_try_advisory_lock({_JOB_KEYS[job]})").scalar_one()
        try:
            yield bool(held)
        finally:
            if held:
                connection.exec_driver_sql(f"SELECT pg_advisory_unlock({_JOB_KEYS[job]})")


def _take(lock: sqlite3.Connection) -> bool:
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        if (error.sqlite_errorcode & 0xFF) != sqlite3.SQLITE_BUSY:
            raise
        return False
    return True
