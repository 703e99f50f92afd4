"""Every number of the report of an exported study again, by a plain second road from its CSV files alone.

Pairs of cases are compared one with another, patients are left out by computing anew, and nothing of `core` is used.

    alertreview export study --study demo --out DIR --home HOME
    python -m benchmarks.second_road DIR
"""

import argparse
import sys
from pathlib import Path

from alertreview.exports.formats import ExportFormat
from alertreview.exports.recompute import recompute
from tests.support.second_road import Study
from tests.support.second_road_report import differences, second_report


def main(arguments: list[str] | None = None) -> int:
    """Print how many numbers were compared, and each that differs; 1 if one does."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder that `alertreview export study` wrote, with CSV tables")
    options = parser.parse_args(arguments)
    report = recompute(options.folder, ExportFormat.CSV)
    compared = list(differences(report.to_dict(), second_report(Study(options.folder))))
    wrong = [f"{place} {what}" for place, what in compared if what]
    print(f"{len(compared)} numbers compared, {len(wrong)} differ", *wrong, sep="\n  ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
