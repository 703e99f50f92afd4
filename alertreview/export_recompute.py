"""Make a study's report again from its exported files alone."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from alertreview.export_formats import ExportFormat
from alertreview.export_manifest import changed_files, files_of, read_manifest
from alertreview.export_reading import read_rows
from alertreview.export_schema import table_schema
from alertreview.export_values import Plain
from core.alert_rate import Budget
from core.errors import InvalidInputError
from core.reporting import study_report
from core.study_input import CASE_COLUMNS, StudyInput
from core.study_report import StudyReport

PREFERRED = (ExportFormat.PARQUET, ExportFormat.CSV, ExportFormat.JSONL, ExportFormat.CSV_EXCEL)


def recompute(folder: Path, file_format: ExportFormat | None = None, *, verify: bool = True) -> StudyReport:
    """Compute a study's report from an export.

    Parameters
    ----------
    folder : Path
        With ``manifest.json`` and the tables cases, judgments, scores, strata and budgets.
    file_format : ExportFormat, optional
        Which files to read; the first of Parquet, CSV, JSON lines, CSV for Excel that is there when left out.
    verify : bool
        Whether to refuse files that changed since they were exported.

    Returns
    -------
    StudyReport
        The figures of the report that was exported, to the last digits.

    Raises
    ------
    InvalidInputError
        If the manifest or a table is missing, or, with `verify`, a file was changed.
    """
    manifest = read_manifest(folder)
    if verify and (changed := changed_files(folder, manifest)):
        raise InvalidInputError(
            f"{changed[0]} is missing or was changed after the export. Export again, or recompute without verifying."
        )
    return study_report(read_study(folder, manifest, file_format))


def read_study(folder: Path, manifest: Mapping[str, Any], file_format: ExportFormat | None = None) -> StudyInput:
    """Read what a report is made from out of an export."""
    settings = dict(manifest["study"])
    readers = settings.pop("readers")
    cases = _rows(folder, manifest, "cases", file_format, readers)
    votes = _rows(folder, manifest, "judgments", file_format, readers)
    scores = _rows(folder, manifest, "scores", file_format, readers)
    strata = _rows(folder, manifest, "strata", file_format, readers)
    budgets: dict[str, list[Budget]] = {}
    for row in _rows(folder, manifest, "budgets", file_format, readers):
        threshold, n_alerts = row["threshold"], row["n_alerts"]
        budget = Budget(
            float(str(row["alerts_per_patient_day"])),
            None if threshold is None else float(threshold),
            None if n_alerts is None else int(n_alerts),
        )
        budgets.setdefault(str(row["curve"]), []).append(budget)
    names = ["case_id", "reader", "answer", "version", "active_seconds"]
    return StudyInput(
        cases=pd.DataFrame({name: [row[name] for row in cases] for name in CASE_COLUMNS}),
        votes=pd.DataFrame({name: [row[name] for row in votes] for name in names}),
        scores=_score_table(scores),
        scorer_labels=_scorers(scores),
        strata=[(str(r["stratum"]), int(str(r["n_population"])), int(str(r["n_chosen"]))) for r in strata],
        budgets=budgets,
        **{**settings, "positive_texts": tuple(settings["positive_texts"])},
    )


def _rows(
    folder: Path, manifest: Mapping[str, Any], table: str, file_format: ExportFormat | None, readers: list[str]
) -> list[dict[str, Plain]]:
    files = files_of(folder, manifest, table)
    wanted = (file_format,) if file_format else PREFERRED
    chosen = next((f for f in wanted if f in files), None)
    if chosen is None:
        formats = " or ".join(f.value for f in wanted)
        raise InvalidInputError(f"Table '{table}' is not in {folder.name} as {formats}. Export all tables.")
    return list(read_rows(files[chosen], table_schema(table).for_readers(readers), chosen))


def _scorers(scores: list[dict[str, Plain]]) -> dict[str, str]:
    """Scorers in the order of the report."""
    found = {int(str(row["position"])): (str(row["scorer"]), str(row["scorer_label"])) for row in scores}
    return dict(found[position] for position in sorted(found))


def _score_table(scores: list[dict[str, Plain]]) -> pd.DataFrame:
    by_case: dict[Plain, dict[str, Plain]] = {}
    for row in scores:
        by_case.setdefault(row["case_id"], {})[str(row["scorer"])] = row["score"]
    frame = pd.DataFrame([{"case_id": case} | values for case, values in by_case.items()])
    return frame if len(frame) else pd.DataFrame({"case_id": []})
