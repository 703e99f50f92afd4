"""Measure how fast events pass through the import and how much memory they take, beside pandas reading the same files.

Run with ``./dev bench import --events 5000000``. The events are those of a simulated hospital with 430 labs and 319
drugs, written again and again under new patient numbers. Every step runs in a process of its own, one after the other,
on the same files. What the import leaves on disk is told apart from the memory that it takes.
"""

import argparse
import resource
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

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

_PATIENTS = 2_000
_CATALOGUE = {"n_labs": 430, "n_drugs": 319}


def generate(folder: Path, n_events: int, n_shards: int = 200) -> int:
    """Write shards of a simulated hospital until there are enough events; return how many there are."""
    from core.simulation.hospital import simulate_cohort, write_meds

    sim = simulate_cohort(n_patients=_PATIENTS, n_days=180, **_CATALOGUE)
    source = write_meds(sim, folder, patients_per_shard=_PATIENTS)
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
        shifted = pc.add(table.column(place), pa.scalar(copy * _PATIENTS, pa.int64()))
        writer.write_table(table.set_column(place, table.schema.field(place), shifted))
    writer.close()
    return n_copies * table.num_rows


def read_with_pandas(folder: Path) -> str:
    """Read all shards into one table."""
    frame = pd.concat([pd.read_parquet(path) for path in sorted((folder / "data").glob("*.parquet"))])
    return f"{len(frame):,} rows in memory"


def read_shard_by_shard(folder: Path) -> str:
    """Read each shard with pandas and let it go."""
    n = sum(len(pd.read_parquet(path)) for path in sorted((folder / "data").glob("*.parquet")))
    return f"{n:,} rows, one shard in memory at a time"


def whole_import(folder: Path) -> str:
    """Everything: from shards to a snapshot with stays, instances, features and tasks."""
    from alertreview.records.importing import import_snapshot

    home = folder.with_name("home")
    imported = import_snapshot(folder, home, mapping="simulated")
    report = imported.report
    sizes = {path.name: path.stat().st_size / 1e9 for path in imported.folder.iterdir()}
    shutil.rmtree(home)
    features = sum(size for name, size in sizes.items() if name.startswith("features"))
    return (
        f"{report.n_patients:,} patients, {report.n_instances:,} instances, {report.n_features:,} features, "
        f"{sum(report.n_tasks.values()):,} tasks; on disk: features {features:.2f} GB, "
        f"events {sizes['events.parquet']:.2f} GB, all {sum(sizes.values()):.2f} GB"
    )


_GENERATE = "generate"
STEPS = {"pandas alone": read_with_pandas, "pandas by shard": read_shard_by_shard, "whole import": whole_import}


def measure(step: str, folder: Path) -> None:
    """Run one step and print seconds, events per second and peak memory."""
    n = sum(pq.ParquetFile(path).metadata.num_rows for path in (folder / "data").glob("*.parquet"))
    start = time.perf_counter()
    result = STEPS[step](folder)
    seconds = time.perf_counter() - start
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu, peak = used.ru_utime + used.ru_stime, used.ru_maxrss / 1e6
    print(
        f"{step:<16} {n:>12,} events {seconds:>8.1f} s ({cpu:>7.1f} s of processor) {n / seconds:>12,.0f} events/s "
        f"{peak:>7.2f} GB peak\n{'':<16} {result}",
        flush=True,
    )


def main() -> None:
    """Measure every step in a process of its own."""
    parser = argparse.ArgumentParser(prog="./dev bench import", description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=1_000_000, help="about how many events (default 1,000,000)")
    parser.add_argument("--steps", nargs="*", default=list(STEPS), choices=list(STEPS), metavar="STEP")
    parser.add_argument("--scratch", type=Path, help="folder for the files (default: the system's for temporary ones)")
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step == _GENERATE:
        generate(options.folder, options.events)
        return
    if options.step:
        measure(options.step, options.folder)
        return
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        folder = Path(scratch) / "hospital"
        # A child's peak begins with its parent's: everything large happens in children of a small parent.
        for step in (_GENERATE, *options.steps):
            command = [sys.executable, __file__, "--step", step, "--folder", str(folder)]
            subprocess.run([*command, "--events", str(options.events)], check=True, cwd=ROOT)


if __name__ == "__main__":
    main()
