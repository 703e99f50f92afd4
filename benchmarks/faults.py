"""Processes killed outright, 25 times each in voting, scoring, publishing, migrating and exporting: what was lost.

Then random damage to imports, stored pasts, database, backup and export: found, or shown to be harmless. It ends with 0
when nothing that was acknowledged was lost, nothing was half done, the published run stayed on SQLite and PostgreSQL,
and no changed figure was missed; with 1 when not.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from alertreview.cli.demo import build_demo
from alertreview.settings import load_settings
from tests.support.corruptions import STORES, DamagedSite
from tests.support.demo_site import SMALL
from tests.support.kill_acts import ACTS
from tests.support.kill_sites import place


def kill_many(kind: str, name: str, n_kills: int, seed: int) -> bool:
    """Kill one act many times and print what came of it; True when nothing was lost."""
    act, lost, n_acknowledged, began = ACTS[name], [], 0, time.perf_counter()
    for number in range(n_kills):
        with tempfile.TemporaryDirectory() as folder, place(kind, Path(folder)) as made:
            try:
                n_acknowledged += act(made, random.Random(f"{kind} {name} {seed} {number}"))
            except AssertionError as error:
                lost.append(f"kill {number}: {error}")
    seconds = time.perf_counter() - began
    found = f"{n_kills} kills, {n_acknowledged} acts acknowledged, {len(lost)} with a loss ({seconds:.0f} s)"
    print(f"{kind:10} {name:10} {found}", flush=True)
    for line in lost:
        print(f"    {line}")
    return not lost


def corrupt_many(n: int, seed: int) -> bool:
    """Damage what a site keeps many times and print what came of it; True when no change of a figure was missed."""
    with tempfile.TemporaryDirectory() as folder:
        home, began = Path(folder) / "home", time.perf_counter()
        list(build_demo(load_settings(home, create=True), SMALL))
        site = DamagedSite(home, Path(folder) / "kept")
        found: dict[str, Counter[str]] = {store: Counter() for store in STORES}
        missed = []
        for number in range(n):
            store = STORES[number % len(STORES)]
            damage = site.damage(random.Random(f"corrupt {seed} {number}"), store)
            found[store]["found" if damage.said else "harmless" if damage.is_harmless else "missed"] += 1
            missed += [damage] if damage.is_missed else []
    for store, counts in found.items():
        print(f"{store:10} {', '.join(f'{many} {what}' for what, many in counts.most_common())}", flush=True)
    print(f"{n} corruptions, {len(missed)} missed ({time.perf_counter() - began:.0f} s)")
    for damage in missed:
        print(f"    {damage}")
    return not missed


def main() -> int:
    """Run it and return 0 when nothing was lost."""
    parser = argparse.ArgumentParser(prog="./dev bench faults", description=__doc__)
    parser.add_argument("--kills", type=int, default=25)
    parser.add_argument("--corruptions", type=int, default=1_000, help="0 for kills alone")
    parser.add_argument("--seed", type=int, default=random.randrange(1_000_000))
    parser.add_argument("--act", choices=sorted(ACTS), action="append")
    parser.add_argument("--database", choices=["sqlite", "postgresql"], action="append")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    results = [
        kill_many(kind, name, options.kills, options.seed)
        for kind in options.database or ["sqlite", "postgresql"]
        for name in options.act or ACTS
    ]
    if options.corruptions:
        results.append(corrupt_many(options.corruptions, options.seed))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
