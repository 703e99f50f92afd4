"""A process killed outright, at a random moment of any act that writes, loses nothing that it acknowledged."""

import random
from pathlib import Path

import pytest

from tests.kills import ACTS

N_KILLS = 3


@pytest.mark.checklist("C4")
@pytest.mark.parametrize("act", sorted(ACTS))
def test_a_kill_loses_nothing_acknowledged(tmp_path: Path, act: str) -> None:
    for number in range(N_KILLS):
        folder = tmp_path / str(number)
        folder.mkdir()
        ACTS[act](folder, random.Random(f"{act} {number}"))
