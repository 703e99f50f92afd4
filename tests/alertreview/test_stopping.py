"""Told to stop, a command ends in order: one line, its exit code, nothing half-published; the next one goes on."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from alertreview.cli.console import Terminated
from alertreview.cli.main import main
from alertreview.cli.options import log_the_unforeseen
from alertreview.settings import Settings, load_settings
from core.errors import StoreError
from core.vocabulary import RunStatus
from db.database import Database
from tests.conftest import ROOT
from tests.support.postgresql import own_database

SCORE = ("score", "--nodes", "40", "--graphs", "2", "--jobs", "1", "--from-run", "none", "--since")
PATIENCE_SECONDS = 120


@pytest.fixture
def settings(demo_home: Path, tmp_path: Path) -> Settings:
    """A site of the test's own, with a published run, in a file."""
    return load_settings(Path(shutil.copytree(demo_home, tmp_path / "home")))


@pytest.fixture
def on_a_server(demo_home: Path, tmp_path: Path) -> Iterator[Settings]:
    """A site of the test's own, with records and no run yet, on PostgreSQL."""
    home = tmp_path / "home"
    with own_database() as url:
        assert main(["import", str(demo_home / "simulated-source"), "--home", str(home), "--database", url]) == 0
        yield Settings(home, url)


def finished_tasks(settings: Settings) -> set[Path]:
    return set(settings.scoring_checkpoint.rglob("*.npz"))


def scoring_at_work(settings: Settings, since: str) -> "subprocess.Popen[str]":
    """Start to score; returns once it has finished a task more."""
    before = finished_tasks(settings)
    site = ("--home", str(settings.home), "--database", settings.database_url)
    command = [sys.executable, "-m", "alertreview", *SCORE, since, *site]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        if finished_tasks(settings) - before:
            return process
        time.sleep(0.01)
    raise AssertionError(f"it ended before it was stopped: {process.communicate()}")


def stop(settings: Settings, database: Database, number: signal.Signals, code: int, words: str) -> None:
    """Stop a scoring in the middle: it says so in one line, and nothing of it is to be seen or in the way."""
    with database.read() as uow:
        before = uow.runs.latest_published()
    process = scoring_at_work(settings, last_days(database))
    process.send_signal(number)
    printed, errors = process.communicate(timeout=PATIENCE_SECONDS)
    assert (process.returncode, printed) == (code, "")
    assert errors.strip() == f"alertreview: {words}; nothing half-done is visible, the same command goes on from here"
    with database.read() as uow:
        assert uow.runs.latest_published() == before
    with database.scoring_job(), database.read() as uow:
        assert {run.status for run in uow.runs.all()} <= {RunStatus.PUBLISHED, RunStatus.ABANDONED}


def last_days(database: Database) -> str:
    with database.read() as uow:
        snapshot = uow.snapshots.latest()
        assert snapshot is not None
        return str(sorted({instance.snapshot_at.date() for instance in uow.snapshots.instances(snapshot.id)})[-10])


@pytest.mark.checklist("C4")
def test_scoring_that_is_told_to_stop_ends_in_order_and_goes_on_later(settings: Settings) -> None:
    with Database(settings.database_url) as database:
        stop(settings, database, signal.SIGTERM, 143, "stopped")
        stop(settings, database, signal.SIGINT, 130, "interrupted")
        assert len(finished_tasks(settings)) >= 2, "what was finished is kept"
        process = scoring_at_work(settings, last_days(database))
        printed, errors = process.communicate(timeout=PATIENCE_SECONDS)
        assert (process.returncode, errors) == (0, "")
        with database.read() as uow:
            published = uow.runs.latest_published()
        assert published is not None
        assert f"Run {published.id} is published" in printed


@pytest.mark.checklist("C4")
def test_scoring_into_a_server_that_is_told_to_stop_gives_back_the_right_to_score(on_a_server: Settings) -> None:
    with Database(on_a_server.database_url) as database:
        stop(on_a_server, database, signal.SIGTERM, 143, "stopped")


@pytest.mark.parametrize("order", [Terminated(143), KeyboardInterrupt()])
@pytest.mark.parametrize("raised", [SystemError("a result with an exception set"), StoreError("clean-up failed")])
def test_an_order_to_stop_is_obeyed_whatever_error_comes_of_it(order: BaseException, raised: Exception) -> None:
    @log_the_unforeseen
    def command() -> None:
        try:
            raise order
        finally:
            raise raised

    with pytest.raises(type(order)):
        command()


def test_a_second_order_to_stop_ends_it_at_once() -> None:
    script = (
        "import signal, time\n"
        "from alertreview.cli.console import stop_in_order\n"
        "stop_in_order()\n"
        "try:\n"
        "    print('at work', flush=True)\n"
        "    time.sleep(100)\n"
        "finally:\n"
        "    print('tidying', flush=True)\n"
        "    time.sleep(100)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"
    process.terminate()
    assert process.stdout.readline() == "tidying\n"
    process.terminate()
    assert process.wait(timeout=PATIENCE_SECONDS) == -signal.SIGTERM
    process.stdout.close()


def test_who_had_the_signal_ignored_keeps_it_so() -> None:
    script = (
        "import os, signal\n"
        "from alertreview.cli.console import stop_in_order\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "stop_in_order()\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
        "print('still here')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "still here\n"
