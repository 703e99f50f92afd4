"""Measure how fast events pass through the import and how much memory they take, beside pandas reading the same files.

Run with ``./dev bench import --events 5000000 20000000 --before TREE``, where TREE holds an earlier version of the
program (``git worktree add TREE COMMIT``). The events are those of a simulated hospital with 430 labs and 319 drugs,
written again and again under new patient numbers. Every step runs in a process of its own, one after the other, on the
same files; the operating system says how much processor time and memory the process took. What the import leaves on
disk is told apart from the memory that it takes.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

_TREE = "BENCH_TREE"
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, os.environ.get(_TREE, str(ROOT)))

_PATIENTS = 2_000
_EVENTS_OF_A_PATIENT = 463
_PATIENTS_OF_A_DAY = 40
"""New patients whose records are added to a whole import."""
_CATALOGUE = {"n_labs": 430, "n_drugs": 319}


def generate(folder: Path, n_events: int, n_shards: int = 200) -> int:
    """Write shards of a simulated hospital until there are enough events; return how many there are."""
    from core.simulation.hospital import simulate_cohort, write_meds

    n_patients = min(_PATIENTS, max(_PATIENTS_OF_A_DAY + 1, n_events // _EVENTS_OF_A_PATIENT))
    sim = simulate_cohort(n_patients=n_patients, n_days=180, **_CATALOGUE)
    source = write_meds(sim, folder, patients_per_shard=n_patients)
    table = pq.read_table(source / "data" / "0.parquet")
    (source / "data" / "0.parquet").unlink()
    n_copies = max(1, round(n_events / table.num_rows))
    per_shard = -(-n_copies // n_shards)
    place = table.schema.get_field_index("subject_id")
    writer = None
    for copy in range(n_copies):
        if copy % per_shard == 0:
            if writer is not None:
                writer.close()
            path = source / "data" / f"{copy // per_shard}.parquet"
            writer = pq.ParquetWriter(path, table.schema, compression="zstd")
        shifted = pc.add(table.column(place), pa.scalar(copy * n_patients, pa.int64()))
        writer.write_table(table.set_column(place, table.schema.field(place), shifted))
    writer.close()
    (folder.with_name("day") / "data").mkdir(parents=True)
    day = table.filter(pc.less(table.column(place), _PATIENTS_OF_A_DAY))
    shifted = pc.add(day.column(place), pa.scalar(n_copies * n_patients, pa.int64()))
    day = day.set_column(place, day.schema.field(place), shifted)
    pq.write_table(day, folder.with_name("day") / "data" / "0.parquet")
    return n_copies * table.num_rows


def plain_pandas(folder: Path) -> str:
    """Recognise, sort and take out doubled rows with pandas, the whole source in memory; no cohort comes of it."""
    from alertreview.records.importing import choose_mapping
    from core.events.code_book import recognise

    site = choose_mapping(folder, "meds", "simulated")
    rows = pd.concat([pd.read_parquet(path) for path in sorted((folder / "data").glob("*.parquet"))])
    codes = rows["code"].unique().tolist()
    found = [recognise(code, site) for code in codes]
    book = pd.DataFrame({"code": codes, "kind": [each.kind for each in found], "item": [each.item for each in found]})
    keys = ["subject_id", "time", "kind", "item", "numeric_value", "text_value"]
    events = rows.merge(book[book["kind"].notna()], on="code").drop_duplicates().sort_values(keys)
    return f"{len(events):,} events, recognised, once and in order; no stays, features or tasks"


def whole_import(folder: Path) -> str:
    """Everything: from shards to a snapshot with stays, instances, features and tasks."""
    try:
        from alertreview.records.importing import import_snapshot
    except ImportError:  # An earlier version of the program.
        from alertreview.importing import import_snapshot  # type: ignore[no-redef,import-not-found]

    home = folder.with_name("home")
    shutil.rmtree(home, ignore_errors=True)
    snapshot = import_snapshot(folder, home, mapping="simulated").folder
    found = json.loads((snapshot / "manifest.json").read_text(encoding="utf-8"))
    sizes = {path.name: path.stat().st_size / 1e9 for path in snapshot.iterdir()}
    features = sum(size for name, size in sizes.items() if name.startswith("features"))
    return (
        f"{found['n_instances']:,} instances, {found['n_features']:,} features, {found['n_tasks']:,} tasks; on disk: "
        f"features {features:.2f} GB, "
        f"events {sizes['events.parquet']:.2f} GB, all {sum(sizes.values()):.2f} GB; content {snapshot.name}"
    )


def addition(folder: Path) -> str:
    """Add the records of some new patients to the whole import."""
    from alertreview.records.import_site import extend_snapshot
    from alertreview.records.snapshots import read_snapshot

    home = folder.with_name("home")
    snapshot = read_snapshot(next((home / "snapshots").iterdir()))
    extended = extend_snapshot(snapshot, folder.with_name("day"), home, mapping="simulated")
    return f"{extended.n_added:,} events more; content {extended.folder.name}"


_GENERATE = "generate"
_BEFORE = "import before"
_PANDAS = "plain pandas"
_MOST_FOR_PANDAS = 20_000_000
"""Events that plain pandas is asked to hold: more do not fit in the memory of a laptop."""
STEPS = {_PANDAS: plain_pandas, "whole import": whole_import, "addition": addition, _BEFORE: whole_import}


def measure(step: str, folder: Path, tree: Path) -> None:
    """Run one step on the program of a tree and print events per second and peak memory."""
    n = sum(pq.ParquetFile(path).metadata.num_rows for path in (folder / "data").glob("*.parquet"))
    # A child's peak begins with its parent's: everything large happens in children of a small parent. With -P, a file
    # of this folder does not stand for a library of its name.
    command = [sys.executable, "-P", __file__, "--step", step, "--folder", str(folder)]
    start = time.perf_counter()
    child = subprocess.Popen(command, cwd=tree, env={**os.environ, _TREE: str(tree)}, stdout=subprocess.PIPE, text=True)
    result = child.stdout.read().strip() if child.stdout else ""
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{step}: ended with exit code {child.returncode}")
    cpu, seconds = used.ru_utime + used.ru_stime, time.perf_counter() - start
    peak = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 2**30
    print(
        f"{step:<14} {n:>12,} events {n / cpu:>10,.0f} a second of processor ({cpu:,.1f} s; {seconds:,.1f} s by the "
        f"clock) {peak:>6.2f} GiB peak\n{'':<14} {result}",
        flush=True,
    )


def main() -> None:
    """Measure every step in a process of its own."""
    parser = argparse.ArgumentParser(prog="./dev bench import", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--events", type=int, nargs="+", default=[1_000_000], metavar="N", help="about how many (default 1,000,000)"
    )
    parser.add_argument(
        "--steps",
        nargs="*",
        default=list(STEPS),
        choices=list(STEPS),
        metavar="STEP",
        help=f"of {', '.join(map(repr, STEPS))} (default: all); 'whole import' is this program alone",
    )
    parser.add_argument("--before", type=Path, metavar="TREE", help="folder with an earlier version of the program")
    parser.add_argument("--scratch", type=Path, help="folder for the files (default: the system's for temporary ones)")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step == _GENERATE:
        generate(options.folder, *options.events)
    elif options.step:
        print(STEPS[options.step](options.folder))
    else:
        for n_events in options.events:
            _compare(n_events, options)


def _compare(n_events: int, options: argparse.Namespace) -> None:
    """Measure all steps on the same events."""
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        folder = Path(scratch) / "hospital"
        command = [
            sys.executable,
            "-P",
            __file__,
            "--step",
            _GENERATE,
            "--folder",
            str(folder),
            "--events",
            str(n_events),
        ]
        subprocess.run(command, check=True, cwd=ROOT)
        for step in options.steps:
            if step == _BEFORE and options.before is None:
                continue
            if step == _PANDAS and n_events > _MOST_FOR_PANDAS:
                print(f"{step:<14} not tried: it holds all events in memory")
                continue
            measure(step, folder, options.before.resolve() if step == _BEFORE else ROOT)


if __name__ == "__main__":
    main()
