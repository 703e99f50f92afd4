"""A process killed outright, at a random moment of any act that writes, loses nothing that it acknowledged."""

import random
import subprocess
import sys
from pathlib import Path

import pytest

from db.database import Database
from tests.support.faults import kill_at_random
from tests.support.kill_acts import ACTS
from tests.support.kill_sites import place
from tests.support.stored_site import killed_after

KINDS: dict[str, list[str]] = {
    "importing": ["sqlite"],
    "upgrading": ["postgresql"],
    "backing up": ["postgresql"],
    "serving": ["sqlite"],
    "serving twice": [],
}
"""Acts on whole sites take seconds: one database or none is enough; `./dev bench faults` kills all on both."""


@pytest.mark.checklist("C4")
@pytest.mark.parametrize(
    ("act", "kind"), [(act, kind) for act in ACTS for kind in KINDS.get(act, ["postgresql", "sqlite"])]
)
def test_a_kill_loses_nothing_acknowledged(tmp_path: Path, demo_home: Path, act: str, kind: str) -> None:
    with place(kind, tmp_path, demo_home) as made:
        ACTS[act](made, random.Random(act))


def test_a_row_of_a_server_that_points_nowhere_is_found(tmp_path: Path) -> None:
    with place("postgresql", tmp_path) as made, Database(made.site()) as database:
        made.require_sound(database)
        with database.engine.begin() as connection:
            connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
            connection.exec_driver_sql("DELETE FROM cohort_snapshot")
        with pytest.raises(AssertionError, match="cohort_snapshot"):
            made.require_sound(database)


def test_lines_that_come_together_are_all_told() -> None:
    together = [sys.executable, "-c", "import os, time; os.write(1, b'1\\n2\\n3\\n'); time.sleep(600)"]

    def started() -> "subprocess.Popen[str]":
        return subprocess.Popen(together, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    assert kill_at_random(started(), random.Random(1), within_seconds=0.0).lines == ["1", "2", "3"]
    assert killed_after(started(), 1) == ["1", "2", "3"]
