"""Peak memory and time of exporting 100,000 judgments in all formats, in one pass over the rows.

python -m benchmarks.export_memory [--judgments 100000] [--limit 300]
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

from alertreview.exports.formats import ExportFormat, write_table
from alertreview.exports.study_rows import study_rows, study_schema
from core.studies.make_report import study_report
from core.studies.selection import SelectionDesign
from tests.support.simulated_study import simulate_study


def peak_mib() -> float:
    """Highest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: list[str] | None = None) -> int:
    """Export and print; 1 when the peak is above the limit."""
    parser = argparse.ArgumentParser(description="Peak memory of a large export.")
    parser.add_argument("--judgments", type=int, default=100_000)
    parser.add_argument("--limit", type=float, default=300.0, help="MiB")
    options = parser.parse_args(arguments)
    n_cases = -(-options.judgments // 3)
    study = simulate_study(n_patients=n_cases // 8 + 1, n_per_patient=40, design=SelectionDesign(n_cases=n_cases))
    # The rows of judgments need no figure of the report; a small one stands in for it.
    report = study_report(simulate_study(n_patients=10, n_per_patient=10, design=SelectionDesign(n_cases=30)))
    print(f"{len(study.votes)} judgments in memory: {peak_mib():.0f} MiB")
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        rows = study_rows(study, report)["judgments"]
        files = write_table(Path(folder), rows, study_schema("judgments", study), list(ExportFormat))
        seconds = time.perf_counter() - started
    for file in files:
        print(f"{file.format.value:10s} {file.n_rows} rows, {file.n_bytes / 1e6:.1f} MB")
    print(f"{seconds:.0f} s, peak {peak_mib():.0f} MiB (limit {options.limit:.0f})")
    return 0 if peak_mib() < options.limit else 1


if __name__ == "__main__":
    raise SystemExit(main())
