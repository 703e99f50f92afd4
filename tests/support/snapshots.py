"""Cohorts in memory as snapshots on disk."""

from pathlib import Path

import numpy as np
import pandas as pd

from alertreview.records.snapshot_writer import SnapshotWriter
from core.cohort.cohort import Cohort
from core.events.import_report import ImportReport


def write_snapshot(
    cohort: Cohort,
    report: ImportReport,
    home: Path,
    *,
    facts: pd.DataFrame | None = None,
) -> Path:
    """Write a cohort below the home folder and return its folder; its content hash includes the facts."""
    with SnapshotWriter(home) as writer:
        writer.events(cohort.events)
        writer.facts([] if facts is None else [facts])
        writer.features(cohort.features)
        writer.keep_columns(np.arange(cohort.features.shape[1]))
        return writer.finish(cohort, report)
