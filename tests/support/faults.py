"""Faults for tests: processes killed at any moment, disks that are full, read-only or damaged, clocks that jump.

They stay: every act that writes is tried under them, and `./dev bench faults` does so at length.
"""

import contextlib
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from tests.support.stored_site import ROOT, rest_of


@dataclass
class Killed:
    """What a process printed before it was killed outright."""

    lines: list[str] = field(default_factory=list)
    errors: str = ""


def kill_at_random(process: "subprocess.Popen[str]", chance: random.Random, *, within_seconds: float) -> Killed:
    """Let a process print its first line, kill it at a random moment after that, and give the whole lines it printed.

    A line is printed after the act that it tells of was acknowledged: what it says must still be so afterwards.
    """
    if process.stdout is None:
        raise ValueError("the child's output is not read")
    first = process.stdout.readline()
    time.sleep(chance.uniform(0, within_seconds))
    process.send_signal(signal.SIGKILL)
    rest, errors = rest_of(process)
    whole = (first + rest).split("\n")[:-1]
    if not first:
        raise AssertionError(f"the child ended before it did anything: {errors}")
    return Killed(whole, errors)


def run_limited(
    arguments: list[str], *, file_bytes: int | None = None, **environment: str
) -> "subprocess.CompletedProcess[str]":
    """Run the command line in a process that may write no file longer than so many bytes, as on a full disk."""

    def limit() -> None:
        if file_bytes is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))

    # Python does not notice that the limit cut a module's byte code, and every later process would read it.
    environment = {"PYTHONDONTWRITEBYTECODE": "1", **environment}
    return subprocess.run(
        [sys.executable, "-m", "alertreview", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        preexec_fn=limit,
        capture_output=True,
        text=True,
        check=False,
    )


@contextlib.contextmanager
def full_disk(file: Path, pages_left: int = 0) -> Iterator[None]:
    """Keep an SQLite file from growing, from this process's next connection on, as a full disk would."""
    with contextlib.closing(sqlite3.connect(file)) as raw:
        n_pages = raw.execute("PRAGMA page_count").fetchone()[0]
    original = sqlite3.Connection.execute

    def limited(connection: sqlite3.Connection) -> None:
        original(connection, f"PRAGMA max_page_count = {n_pages + pages_left}")

    from db.connection import engine

    prepare = engine._prepare_sqlite

    def prepare_and_limit(connection: sqlite3.Connection, record: object) -> None:
        prepare(connection, record)
        limited(connection)

    engine._prepare_sqlite = prepare_and_limit
    try:
        yield
    finally:
        engine._prepare_sqlite = prepare


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold the write lock of an SQLite file, as a program that was left open does."""
    with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as raw:
        raw.execute("BEGIN IMMEDIATE")
        yield
        raw.execute("ROLLBACK")


def damage(file: Path, at: int = 4096, n_bytes: int = 4096) -> None:
    """Overwrite a page in the middle of a file."""
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(b"\xa5" * n_bytes)


class JumpingClock:
    """A clock that is set back and forward between two looks, as a machine's is that gets the time from the network.

    Parameters
    ----------
    start : datetime
        Aware.
    jumps_seconds : tuple of float
        What is added at each look, again and again.
    """

    def __init__(self, start: datetime, jumps_seconds: tuple[float, ...]) -> None:
        self._now, self._jumps, self._looks = start, jumps_seconds, 0

    def __call__(self) -> datetime:
        self._now += timedelta(seconds=self._jumps[self._looks % len(self._jumps)])
        self._looks += 1
        return self._now
