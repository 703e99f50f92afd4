"""A process killed outright, at a random moment of any act that writes, loses nothing that it acknowledged."""

import random
from pathlib import Path

import pytest

from db.database import Database
from tests.support.kill_acts import ACTS
from tests.support.kill_sites import place

N_KILLS = {"sqlite": 2, "postgresql": 1}
"""A few of each kind; `./dev bench faults` has many."""


@pytest.mark.checklist("C4")
@pytest.mark.parametrize("act", sorted(ACTS))
@pytest.mark.parametrize("kind", sorted(N_KILLS))
def test_a_kill_loses_nothing_acknowledged(tmp_path: Path, act: str, kind: str) -> None:
    for number in range(N_KILLS[kind]):
        folder = tmp_path / str(number)
        folder.mkdir()
        with place(kind, folder) as made:
            ACTS[act](made, random.Random(f"{act} {number}"))


def test_a_row_of_a_server_that_points_nowhere_is_found(tmp_path: Path) -> None:
    with place("postgresql", tmp_path) as made, Database(made.site()) as database:
        made.require_sound(database)
        with database.engine.begin() as connection:
            connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
            connection.exec_driver_sql("DELETE FROM cohort_snapshot")
        with pytest.raises(AssertionError, match="cohort_snapshot"):
            made.require_sound(database)
