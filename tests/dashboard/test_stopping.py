"""Told to stop, the dashboard lets a save that has begun end, closes the open pages, and ends with the right code."""

import signal
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosedError

from dashboard.gate.gate import FINISH_SECONDS
from db.connection.engine import LOCK_WAIT_SECONDS
from tests.conftest import ROOT
from tests.support.faults import locked
from tests.support.served import Visitor, dashboard

STREAM = "/_stcore/stream"
SERVICE_RESTART = 1012


def holds(file: Path) -> int:
    """How many cases are held by somebody who has them open."""
    with closing(sqlite3.connect(file)) as raw:
        return int(raw.execute("SELECT count(*) FROM assignment WHERE held_until IS NOT NULL").fetchone()[0])


def set_free(file: Path) -> None:
    with closing(sqlite3.connect(file)) as raw:
        raw.execute("UPDATE assignment SET reviewer_id = NULL, held_until = NULL WHERE held_until IS NOT NULL")
        raw.commit()


@pytest.mark.checklist("C4")
def test_a_save_that_waits_for_the_database_is_finished_before_the_dashboard_stops(
    own_home: Path, tmp_path: Path
) -> None:
    file, log = own_home / "alertreview.db", tmp_path / "log"
    ended: list[BaseException] = []

    def open_a_case() -> None:
        try:
            Visitor(port).draw(STREAM, page="review")
        except ConnectionClosedError as error:
            ended.append(error)

    with dashboard(own_home, log) as (port, server):
        Visitor(port).draw(STREAM, page="review")
        began = time.monotonic()
        Visitor(port).draw(STREAM, page="review")
        seconds = time.monotonic() - began
        set_free(file)
        with locked(file):
            reader = threading.Thread(target=open_a_case)
            reader.start()
            reader.join(max(1, 5 * seconds))  # by then the page waits for the database, whatever else the machine does
            server.terminate()
            reader.join(60)
            assert holds(file) == 0
            assert server.poll() is None, "it waits for the save"
        assert server.wait(timeout=60) == -signal.SIGTERM
    assert holds(file) == 1
    assert [error.rcvd.code for error in ended if isinstance(error, ConnectionClosedError) and error.rcvd] == [
        SERVICE_RESTART
    ]
    assert "Traceback" not in log.read_text(encoding="utf-8")


def test_a_save_may_wait_as_long_as_the_database_lets_it_and_systemd_waits_longer() -> None:
    unit = (ROOT / "docs" / "deploy" / "alertreview.service").read_text(encoding="utf-8")
    patience = next(int(line.split("=")[1]) for line in unit.splitlines() if line.startswith("TimeoutStopSec="))
    assert LOCK_WAIT_SECONDS < FINISH_SECONDS < patience
