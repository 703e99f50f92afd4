"""Read exported tables back with their types: missing stays missing, an id stays text, a number keeps every digit."""

import csv
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq

from alertreview.exports.formats import ExportFormat
from alertreview.exports.manifest import MANIFEST, changed_files, files_of, manifest_hash, read_manifest
from alertreview.exports.schema import ColumnType, Plain, TableSchema, from_excel_text, table_schema
from alertreview.files import parse_json
from alertreview.reports.signing import content_hash
from core.errors import InvalidInputError
from core.statistics.alert_rate import Budget
from core.studies.make_report import study_report
from core.studies.report import StudyReport
from core.studies.report_input import CASE_COLUMNS, REPEAT_COLUMNS, StudyInput


def read_rows(path: Path, schema: TableSchema, file_format: ExportFormat) -> Iterator[dict[str, Plain]]:
    """Yield the rows of an exported file.

    Parameters
    ----------
    path : Path
    schema : TableSchema
        With its repeating columns written out.
    file_format : ExportFormat
        Any but XLSX, which is for people.

    Yields
    ------
    dict
        Column name to text, int, float, bool or None. In CSV an empty text reads as missing.

    Raises
    ------
    InvalidInputError
        If the file's columns are not the table's, or a value does not have its column's type.
    """
    if file_format is ExportFormat.PARQUET:
        yield from _parquet(path, schema)
    elif file_format is ExportFormat.JSONL:
        yield from _jsonl(path, schema)
    elif file_format is ExportFormat.XLSX:
        raise InvalidInputError(f"{path.name} is for people. Read the CSV, Parquet or JSON lines file instead.")
    else:
        yield from _csv(path, schema, from_excel=file_format is ExportFormat.CSV_EXCEL)


def _demand_columns(path: Path, schema: TableSchema, found: list[str]) -> None:
    if found != list(schema.names):
        missing = [name for name in schema.names if name not in found]
        what = f"has no column '{missing[0]}'" if missing else "has columns in another order, or more of them"
        raise InvalidInputError(f"{path.name} {what}; it is not an export of table '{schema.name}'. Export again.")


def _csv(path: Path, schema: TableSchema, *, from_excel: bool) -> Iterator[dict[str, Plain]]:
    csv.field_size_limit(2**31 - 1)
    with path.open(encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, strict=True)
        _demand_columns(path, schema, next(reader, []))
        for number, cells in enumerate(reader, start=1):
            try:
                row: dict[str, Plain] = {}
                for column, cell in zip(schema.columns, cells, strict=True):
                    text = column.type is ColumnType.TEXT
                    cell = from_excel_text(cell) if from_excel and text else cell
                    row[column.name] = _from_text(cell, column.type)
            except ValueError:
                raise InvalidInputError(f"{path.name}, row {number}: a value does not fit its column.") from None
            yield row


def _from_text(cell: str, kind: ColumnType) -> Plain:
    if cell == "":
        return None
    if kind is ColumnType.INTEGER:
        return int(cell)
    if kind is ColumnType.NUMBER:
        return float(cell)
    if kind is ColumnType.BOOLEAN:
        return {"true": True, "false": False}[cell.lower()] if cell.lower() in ("true", "false") else bool(int(cell))
    return cell


def _jsonl(path: Path, schema: TableSchema) -> Iterator[dict[str, Plain]]:
    with path.open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            try:
                record: Any = parse_json(line)
            except ValueError:
                raise InvalidInputError(f"{path.name}, line {number} is not JSON. Export again.") from None
            _demand_columns(path, schema, list(record))
            yield record


def _parquet(path: Path, schema: TableSchema) -> Iterator[dict[str, Plain]]:
    with pq.ParquetFile(path) as file:
        _demand_columns(path, schema, list(file.schema_arrow.names))
        for batch in file.iter_batches():
            for row in batch.to_pylist():
                yield {k: v.isoformat() if isinstance(v, datetime) else v for k, v in row.items()}


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
        If the manifest or a table is missing, or, with `verify`, a file or the manifest was changed, or the report is
        not the one that was exported.
    """
    manifest = read_manifest(folder)
    if verify and manifest.get("manifest_sha256") != manifest_hash(manifest):
        raise InvalidInputError(
            f"{MANIFEST} was changed after the export: its hash is not {manifest.get('manifest_sha256')}. Export "
            "again, or recompute without verifying."
        )
    if verify and (changed := changed_files(folder, manifest)):
        raise InvalidInputError(
            f"{changed[0]} is missing or was changed after the export. Export again, or recompute without verifying."
        )
    report = study_report(read_study(folder, manifest, file_format))
    if verify and manifest["report_sha256"] != content_hash(report):
        raise InvalidInputError(
            f"The report has content {content_hash(report)}, the exported one {manifest['report_sha256']}. Another "
            "version or machine computes a figure differently, or the manifest was made again; recompute without "
            "verifying to see the report."
        )
    return report


def read_study(folder: Path, manifest: Mapping[str, Any], file_format: ExportFormat | None = None) -> StudyInput:
    """Read what a report is made from out of an export.

    Raises
    ------
    InvalidInputError
        If a table is missing or damaged, is of another study, or has judgments of cases of another run.
    """
    settings = dict(manifest["study"])
    readers = settings.pop("readers")
    cases = _rows(folder, manifest, "cases", file_format, readers)
    votes = _rows(folder, manifest, "judgments", file_format, readers)
    _demand_same_run(cases, votes)
    scores = _rows(folder, manifest, "scores", file_format, readers)
    strata = _rows(folder, manifest, "strata", file_format, readers)
    repeats = _rows(folder, manifest, "repeats", file_format, readers)
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
        repeats=pd.DataFrame({name: [row[name] for row in repeats] for name in REPEAT_COLUMNS}),
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
    rows = list(read_rows(files[chosen], table_schema(table).for_readers(readers), chosen))
    slug = manifest["study"]["slug"]
    for number, row in enumerate(rows, start=1):
        if row["study"] != slug:
            raise InvalidInputError(
                f"{files[chosen].name}, row {number} is of study '{row['study']}', the manifest of '{slug}'. Put files "
                "of one export together, or export again."
            )
    return rows


def _demand_same_run(cases: list[dict[str, Plain]], votes: list[dict[str, Plain]]) -> None:
    run_of = {row["case_id"]: row["run_id"] for row in cases}
    for number, row in enumerate(votes, start=1):
        run = run_of.get(row["case_id"], row["run_id"])
        if row["run_id"] != run:
            raise InvalidInputError(
                f"Table 'judgments', row {number}: case {row['case_id']} is of run {row['run_id']}, in table 'cases' "
                f"of run {run}. Put files of one export together, or export again."
            )


def _scorers(scores: list[dict[str, Plain]]) -> dict[str, str]:
    """Return the scorers in the order of the report."""
    found = {int(str(row["position"])): (str(row["scorer"]), str(row["scorer_label"])) for row in scores}
    return dict(found[position] for position in sorted(found))


def _score_table(scores: list[dict[str, Plain]]) -> pd.DataFrame:
    by_case: dict[Plain, dict[str, Plain]] = {}
    for row in scores:
        by_case.setdefault(row["case_id"], {})[str(row["scorer"])] = row["score"]
    frame = pd.DataFrame([{"case_id": case} | values for case, values in by_case.items()])
    return frame if len(frame) else pd.DataFrame({"case_id": []})
