"""How fast events pass through the import, and how much memory they take, beside reading the same parquet with pandas.

Run with ``./dev bench import`` or ``python benchmarks/import_speed.py --events 10000000``. The events are those of a
simulated hospital, copied under new patient numbers; every measurement runs in a process of its own.
"""

import argparse
import resource
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


def generate(folder: Path, n_events: int) -> int:
    """Write shards of a simulated hospital until there are enough events; return how many there are."""
    from core.simulate import simulate_cohort, write_meds

    source = write_meds(simulate_cohort(n_patients=1000, n_days=120), folder)
    shard = source / "data" / "0.parquet"
    table = pq.read_table(shard)
    n_copies = max(1, -(-n_events // table.num_rows))
    place = table.schema.get_field_index("subject_id")
    for copy in range(1, n_copies):
        shifted = pc.add(table.column(place), pa.scalar(copy * 1000, pa.int64()))
        pq.write_table(table.set_column(place, "subject_id", shifted), shard.with_name(f"{copy}.parquet"))
    return n_copies * table.num_rows


def read_with_pandas(folder: Path) -> int:
    """Read all shards into one table."""
    return len(pd.concat([pd.read_parquet(path) for path in sorted((folder / "data").glob("*.parquet"))]))


def recognise(folder: Path) -> int:
    """Read, recognise and clean: from shards to the event stream."""
    from alertreview.importing import read_records

    read = read_records(
        folder, format="meds", mapping="simulated", schema=None, min_positive=None, progress=lambda what, share: None
    )
    return read.counts.n_rows


def whole_import(folder: Path) -> int:
    """Everything: stays, instances, features, tasks."""
    from alertreview.importing import build_cohort

    return build_cohort(folder, mapping="simulated")[1].read.n_rows


STEPS = {"pandas alone": read_with_pandas, "event stream": recognise, "whole import": whole_import}


def measure(step: str, folder: Path) -> None:
    """Run one step and print seconds, events per second and peak memory."""
    start = time.perf_counter()
    n = STEPS[step](folder)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{step:<14} {n:>12,} events {seconds:>8.1f} s {n / seconds:>12,.0f} events/s {peak:>7.2f} GB peak", flush=True
    )


def main() -> None:
    """Measure every step in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=1_000_000, help="how many events at least (default 1,000,000)")
    parser.add_argument("--steps", nargs="*", default=list(STEPS), choices=list(STEPS))
    parser.add_argument("--step", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        measure(options.step, options.folder)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / "hospital"
        generate(folder, options.events)
        for step in options.steps:
            command = [sys.executable, __file__, "--step", step, "--folder", str(folder)]
            subprocess.run(command, check=True, cwd=ROOT)


if __name__ == "__main__":
    main()
