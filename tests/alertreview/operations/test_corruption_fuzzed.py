"""A sample of random damage to everything a site keeps; `./dev bench faults --corruptions 1000` does a thousand."""

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.corruptions import STORES, DamagedSite
from tests.support.kill_sites import place

N_OF_STORE = 2


@pytest.mark.checklist("C5", "D1")
@pytest.mark.parametrize(("kind", "stores"), [("sqlite", STORES["sqlite"]), ("postgresql", ["rows"])])
def test_random_damage_is_found_or_changes_no_figure_and_no_vote(
    demo_home: Path, tmp_path: Path, kind: str, stores: Sequence[str]
) -> None:
    with place(kind, tmp_path, demo_home) as made:
        site = DamagedSite(made.demonstration(), tmp_path / "kept")
        seed = random.randrange(1_000_000)
        done = [site.damage(random.Random(f"{seed} {store} {n}"), store) for store in stores for n in range(N_OF_STORE)]
    missed = [damage for damage in done if damage.is_missed]
    assert not missed, f"seed {seed}"
    assert {damage.store for damage in done if damage.said} >= {"snapshots", "learned", "backup"} & set(stores)
