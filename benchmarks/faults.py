"""Processes killed outright at random moments while readers vote, and random damage to what a site keeps.

Killed are voting, scoring, publishing, migrating, exporting, importing, backups, upgrades of a whole site and the
dashboard with four readers at its pages. Damaged are imports, stored pasts, database, backup and export: the damage is
found, or shown to be harmless. It ends with 0 when nothing that was acknowledged was lost, nothing was half done, the
published run stayed on SQLite and PostgreSQL, and no changed figure was missed; with 1 when not.
"""

import argparse
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from alertreview.cli.demo import DemoSize, build_demo
from alertreview.settings import load_settings
from tests.support.corruptions import STORES, DamagedSite
from tests.support.demo_site import SMALL
from tests.support.kill_acts import ACTS
from tests.support.kill_sites import place

SITE = DemoSize(n_patients=60, n_cases=36, n_waiting=36)
"""The demonstration that is served and backed up; each simulated reader has a third of the cases left to judge."""
N_VOTERS = 2


class Done:
    """What was done, a line each in a file, so that a run that was stopped goes on where it was.

    Parameters
    ----------
    file : Path or None
        Lines of a former run with the same seed are read and not done again.
    """

    def __init__(self, file: Path | None) -> None:
        self._file = file
        lines = file.read_text(encoding="utf-8").splitlines() if file is not None and file.exists() else []
        self._known = dict(line.split("\t", 1) for line in lines)

    def get(self, key: str, do: Callable[[], str]) -> str:
        """Return what came of something; do it unless it was done."""
        if key not in self._known:
            self._known[key] = do().replace("\n", " ")
            if self._file is not None:
                with self._file.open("a", encoding="utf-8") as opened:
                    opened.write(f"{key}\t{self._known[key]}\n")
        return self._known[key]


def kill_many(kind: str, name: str, n_kills: int, seed: int, done: Done, demo: Path) -> bool:
    """Kill one act many times and print what came of it; True when nothing was lost."""
    lost, n_acknowledged, began = [], 0, time.perf_counter()

    def kill(key: str) -> str:
        with tempfile.TemporaryDirectory() as folder, place(kind, Path(folder), demo, N_VOTERS) as made:
            try:
                return str(ACTS[name](made, random.Random(key)))
            except AssertionError as error:
                return f"lost: {error}"

    for number in range(n_kills):
        key = f"{kind} {name} {seed} {number}"
        found = done.get(key, partial(kill, key))
        if found.isdigit():
            n_acknowledged += int(found)
        else:
            lost.append(f"kill {number}: {found}")
    seconds = time.perf_counter() - began
    summary = f"{n_kills} kills, {n_acknowledged} acts acknowledged, {len(lost)} with a loss ({seconds:.0f} s)"
    print(f"{kind:10} {name:10} {summary}", flush=True)
    for line in lost:
        print(f"    {line}")
    return not lost


def corrupt_many(kind: str, n: int, seed: int, done: Done, demo: Path) -> bool:
    """Damage what a site keeps many times and print what came of it; True when no change of a figure was missed."""
    stores = STORES[kind]
    with tempfile.TemporaryDirectory() as folder, place(kind, Path(folder), demo) as made:
        site, began = DamagedSite(made.demonstration(), Path(folder) / "kept"), time.perf_counter()
        found: dict[str, Counter[str]] = {store: Counter() for store in stores}
        missed = []

        def damage(key: str, store: str) -> str:
            try:
                one = site.damage(random.Random(key), store)
            except Exception as error:  # noqa: BLE001 - an error that no person can act on is a miss
                return f"missed {key}: {traceback.format_exception(error)[-8:]}"
            return f"found {one.said}" if one.said else "harmless" if one.is_harmless else f"missed {one}"

        for number in range(n):
            store, key = stores[number % len(stores)], f"corrupt {kind} {seed} {number}"
            outcome = done.get(key, partial(damage, key, store))
            found[store][outcome.split()[0]] += 1
            missed += [outcome] if outcome.startswith("missed") else []
    print(f"{kind}: {n} corruptions, {len(missed)} missed ({time.perf_counter() - began:.0f} s)")
    for store, counts in found.items():
        print(f"{store:10} {', '.join(f'{many} {what}' for what, many in counts.most_common())}", flush=True)
    for outcome in missed:
        print(f"    {outcome}")
    return not missed


def main() -> int:
    """Run it and return 0 when nothing was lost."""
    parser = argparse.ArgumentParser(prog="./dev bench faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--corruptions", type=int, default=1_000, help="0 for kills alone")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument(
        "--resume", type=Path, metavar="FILE", help="keep what was done here; go on there (same --seed)"
    )
    parser.add_argument("--act", choices=sorted(ACTS), action="append")
    parser.add_argument("--database", choices=["sqlite", "postgresql"], action="append")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    done = Done(options.resume)
    results = []
    kinds = options.database or ["sqlite", "postgresql"]
    with tempfile.TemporaryDirectory() as folder:
        killed, damaged = Path(folder) / "killed", Path(folder) / "damaged"
        if options.kills:
            list(build_demo(load_settings(killed, create=True), SITE))
            acts = [(kind, name) for kind in kinds for name in options.act or ACTS]
            results += [kill_many(kind, name, options.kills, options.seed, done, killed) for kind, name in acts]
        if options.corruptions:
            list(build_demo(load_settings(damaged, create=True), SMALL))
            results += [corrupt_many(kind, options.corruptions, options.seed, done, damaged) for kind in kinds]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
