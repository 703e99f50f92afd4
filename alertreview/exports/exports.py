"""Expert labels and everything they were judged on, as files: one table, or the whole study with a manifest."""

import json
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
from xlsxwriter.exceptions import XlsxWriterException

from alertreview import __version__
from alertreview.exports.formats import (
    ExportFormat,
    WrittenFile,
    digest_of,
    folder_digest,
    scratch_in,
    write_table,
    zip_folder,
)
from alertreview.exports.manifest import MANIFEST, write_manifest
from alertreview.exports.schema import Column, ColumnType, TableSchema, dictionary_rows, table_schema
from alertreview.exports.study_rows import (
    MedsLabel,
    Row,
    label_rows,
    study_rows,
    study_schema,
    study_settings,
    write_meds_labels,
)
from alertreview.files import require_replaceable, sync
from alertreview.records.snapshots import Snapshot
from alertreview.reports.documents import ReportFormat, write_report
from alertreview.reports.report import gather_study, standing_versions
from alertreview.reports.signing import Signature, content_hash
from alertreview.rights import COMMAND_LINE, Action, operator_only, requires
from alertreview.settings import Clock
from alertreview.studies.models import CaseForReport, ExportPreview
from alertreview.studies.studies import OfStudies, StudyService
from core.errors import InvalidInputError, RefusedError, SourceError
from core.studies.make_report import majority_labels, study_report
from core.studies.report import StudyReport
from core.studies.report_input import StudyInput, prepare
from core.vocabulary import CaseId, CaseState, PersonId
from db.database import Database
from db.models import AuditEvent, ScoringRun, Study

TABLE_OF_LAYOUT = {"long": "judgments", "wide": "labels"}
MEDS = "meds"
EXPORTED = "exported"
"""What the audit trail calls an export; nothing else keeps a list of them."""


@dataclass(frozen=True)
class PastExport:
    """One export that was written, from the audit trail."""

    exported_at: datetime  # aware, in UTC
    actor: str  # "person 3", "command line"
    study_slug: str
    what: str
    file_name: str
    n_rows: int | None
    sha256: str  # of the file; empty where an older version did not keep it


class Exports(OfStudies):
    """Exports of one site.

    Downloads are made in the folder `scratch`, as private as the database, and removed again.
    """

    def __init__(
        self,
        database: Database,
        studies: StudyService,
        open_snapshot: Callable[[str], Snapshot],
        is_blinded: Callable[[str, PersonId | None], bool],
        clock: Clock,
        scratch: Path,
        signatures: Callable[[str, StudyReport], Iterable[Signature]],
    ) -> None:
        super().__init__(database, studies, open_snapshot, is_blinded, clock)
        self._scratch = scratch
        self._signatures = signatures

    @requires(Action.EXPORT, unit_of="slug")
    def preview(
        self, slug: str, output_format: str, layout: str, *, person_id: PersonId | None = None
    ) -> ExportPreview:
        """Count the rows that a download would hold, by where their cases stand; nothing is written.

        Raise NotFoundError if there is no such study, InvalidInputError if there is no such format or layout,
        RefusedError if results of the study are still hidden from the person.
        """
        self._refuse_blinded(slug, person_id)
        _table_of(output_format, layout)
        state_of = {case.case_id: case.state for case in self._studies.case_rows(slug)}
        study = gather_study(self._database, self._studies, self._open_snapshot, slug)
        if output_format == MEDS:
            arrays = prepare(study)
            decided = ~np.isnan(majority_labels(arrays).label)
            of_rows = [CaseId(int(case_id)) for case_id in arrays.column("case_id")[decided]]
        else:
            of_rows = (study.votes if layout == "long" else study.cases)["case_id"].tolist()
        counted = Counter(state_of[case_id] for case_id in of_rows)
        return ExportPreview({state: counted[state] for state in CaseState})

    @operator_only
    def labels(
        self,
        slug: str,
        output_format: str,
        layout: str,
        out: Path,
        *,
        states: Collection[CaseState] = (),
        actor: str = COMMAND_LINE,
    ) -> int:
        """Write the judgments of a study or its labels to one file, whole or not at all, and return the number of rows.

        The format is a value of `ExportFormat`, or "meds": then `out` is a folder with one file of majority labels for
        each task. The layout "long" has one row for each version of each judgment, "wide" one row for each case. Only
        cases in `states`; empty means all. Raise NotFoundError if there is no such study, InvalidInputError if there is
        no such format or layout, SourceError if the file cannot be written.
        """
        with _scratch_beside(out) as folder:
            made = folder / out.name
            n_rows = self._write_labels(slug, output_format, layout, made, states)
            digest = folder_digest(made) if output_format == MEDS else digest_of(made.read_bytes())
            _keep_private(made)
            # First the audit row: a file without one must never be seen.
            self._note_labels(slug, output_format, layout, states, actor, (out.name, n_rows, digest))
            made.replace(out)
        return n_rows

    @requires(Action.EXPORT, unit_of="slug")
    def labels_download(
        self,
        slug: str,
        output_format: str,
        layout: str,
        *,
        states: Collection[CaseState] = (),
        person_id: PersonId | None = None,
    ) -> tuple[str, bytes]:
        """Return name and bytes of the file that `labels` writes, for a download; MEDS labels come as a zip.

        Raise as `labels` does, and RefusedError if results of the study are still hidden from the person.
        """
        self._refuse_blinded(slug, person_id)
        table = _table_of(output_format, layout)
        with _scratch_beside(self._scratch / "download") as folder:
            if output_format == MEDS:
                name = f"{slug}-meds-labels.zip"
                n_rows = self._write_labels(slug, output_format, layout, folder / "labels", states)
                content = zip_folder(folder / "labels", f"{slug}-meds-labels")
            else:
                name = f"{slug}-{table}{ExportFormat(output_format).suffix}"
                n_rows = self._write_labels(slug, output_format, layout, folder / name, states)
                content = (folder / name).read_bytes()
        self._note_labels(slug, output_format, layout, states, _actor(person_id), (name, n_rows, digest_of(content)))
        return name, content

    @operator_only
    def study(
        self, slug: str, formats: Sequence[str], folder: Path, *, actor: str = COMMAND_LINE
    ) -> tuple[WrittenFile, ...]:
        """Write every table of a study and a manifest with checksums, from which its report can be computed again.

        The manifest is written last. Raise InvalidInputError if the folder holds something already.
        """
        if folder.exists() and any(folder.iterdir()):
            raise InvalidInputError(
                f"{folder} is not empty. Name a new folder, so that no older file is mistaken for new."
            )
        with _scratch_beside(folder) as scratch:
            made = scratch / folder.name
            files, _ = self._write_study(slug, formats, made)
            digest = digest_of((made / MANIFEST).read_bytes())
            _keep_private(made)
            self._note_study(slug, formats, actor, files, folder.name, digest)
            made.replace(folder)
        return tuple(replace(file, path=folder / file.path.relative_to(made)) for file in files)

    @requires(Action.EXPORT, unit_of="slug")
    def study_download(
        self, slug: str, formats: Sequence[str], *, person_id: PersonId | None = None
    ) -> tuple[str, bytes]:
        """Return name and content of a zip with everything for a paper.

        It holds tables, dictionary, manifest, report, and ``SHA256SUMS`` for ``sha256sum --check``. Raise NotFoundError
        if there is no such study, RefusedError if results of the study are still hidden from the person.
        """
        self._refuse_blinded(slug, person_id)
        name = f"{slug}-study"
        with _scratch_beside(self._scratch / "download") as folder:
            files, report = self._write_study(slug, formats, folder / name)
            write_report(report, folder / name, list(ReportFormat), self._signatures(slug, report))
            content = zip_folder(folder / name, name, with_checksums=True)
        self._note_study(slug, formats, _actor(person_id), files, f"{name}.zip", digest_of(content))
        return f"{name}.zip", content

    @requires(Action.EXPORT)
    def past(self, slug: str, limit: int = 50) -> tuple[PastExport, ...]:
        """Return the exports of a study that were written, newest first, with their checksums."""
        with self._database.read() as uow:
            rows = uow.audit.latest(limit, action=EXPORTED, thing=f"study {slug}")
        return tuple(_past_export(row, slug) for row in rows)

    def _refuse_blinded(self, slug: str, person_id: PersonId | None) -> None:
        if self._is_blinded(slug, person_id):
            raise RefusedError(
                f"Study '{slug}' is open and you are its reader: an export would show the others' answers. "
                "Judge your cases, or wait until the study is locked; an open panel's readers always wait."
            )

    def _write_labels(
        self, slug: str, output_format: str, layout: str, out: Path, states: Collection[CaseState]
    ) -> int:
        table = _table_of(output_format, layout)
        study = gather_study(self._database, self._studies, self._open_snapshot, slug)
        chosen = {str(case.case_id) for case in self._studies.case_rows(slug) if not states or case.state in states}
        if output_format == MEDS:
            labels = self._meds_labels(slug, study, chosen)
            write_meds_labels(out, labels, slug=slug, simulated=study.simulated)
            return len(labels)
        rows = (row for row in label_rows(study, table, **self._details(slug)) if row["case_id"] in chosen)
        written = write_table(out.parent, rows, study_schema(table, study), [ExportFormat(output_format)])[0]
        written.path.replace(out)
        return written.n_rows

    def _write_study(
        self, slug: str, formats: Sequence[str], folder: Path
    ) -> tuple[tuple[WrittenFile, ...], StudyReport]:
        study = gather_study(self._database, self._studies, self._open_snapshot, slug)
        report = study_report(study)
        chosen = [ExportFormat(one) for one in formats]
        files: list[WrittenFile] = []
        schemas = []
        for table, rows in study_rows(study, report, **self._details(slug)).items():
            schemas.append(study_schema(table, study))
            files += write_table(folder, rows, schemas[-1], chosen)
        schemas.append(table_schema("dictionary"))
        files += write_table(folder, dictionary_rows(schemas[:-1]), schemas[-1], chosen)
        write_data_package(folder, files, schemas, name=slug, title=study.title)
        with self._database.read() as uow:
            stored = uow.studies.by_slug(slug)
            run = uow.runs.get(stored.run_id)
            data_hash = uow.snapshots.get(run.snapshot_id).content_hash
            head = uow.audit.head()
        write_manifest(
            folder,
            files,
            study_settings(study),
            created_at=self._clock(),
            origin=_origin(stored, run, data_hash, head),
            report_hash=content_hash(report),
        )
        return tuple(files), report

    def _details(self, slug: str) -> dict[str, Any]:
        """Columns of cases and votes that no report needs, as `study_rows` takes them."""
        cases = self._studies.case_rows(slug)
        with self._database.read() as uow:
            stored = uow.studies.by_slug(slug)
            versions = standing_versions(uow, stored.id, {case.case_id for case in cases})
            texts = {
                version: uow.studies.rubric(stored.id, version).answer_texts
                for version in {judgment.rubric_version for _, judgment in versions}
            }
            slots = {(slot.case_id, slot.reviewer_id): slot.slot for slot in uow.slots.of_study(stored.id)}
            alerts = uow.alerts.ids_of_decisions(stored.run_id, [(case.row_index, case.task_key) for case in cases])
        vote_details: dict[tuple[str, str, int], Row] = {
            (str(judgment.case_id), reader, judgment.version): {
                "slot": slots.get((judgment.case_id, judgment.reviewer_id)),
                "answer_text": texts[judgment.rubric_version].get(
                    "" if judgment.answer is None else judgment.answer.key
                ),
                "certainty": judgment.certainty.value if judgment.certainty else None,
                "comment": judgment.comment or None,
                "change_reason": judgment.reason or None,
                "saved_at": judgment.judged_at,
                "saw_score": judgment.saw_score_before,
                "rubric_version": str(judgment.rubric_version),
                "guideline_version": str(judgment.rubric_version),
            }
            for reader, judgment in versions
        }
        case_details: dict[str, Row] = {
            str(case.case_id): {
                "alert_id": _text(alerts.get((case.row_index, case.task_key))),
                "run_id": str(stored.run_id),
                "snapshot_at": case.snapshot_at,
            }
            for case in cases
        }
        return {"case_details": case_details, "vote_details": vote_details}

    def _meds_labels(self, slug: str, study: StudyInput, chosen: Collection[str]) -> list[MedsLabel]:
        """Majority labels that are decided; a patient's prefix is no part of a MEDS subject."""
        arrays = prepare(study)
        labels = majority_labels(arrays).label
        by_id: dict[str, CaseForReport] = {str(case.case_id): case for case in self._studies.case_rows(slug)}
        cases = [by_id[case_id] for case_id in arrays.column("case_id")]
        return [
            MedsLabel(case.task_key, _subject(case.patient_id), case.snapshot_at, bool(label == 1.0))
            for case, label in zip(cases, labels, strict=True)
            if not np.isnan(label) and str(case.case_id) in chosen
        ]

    def _note_labels(
        self,
        slug: str,
        output_format: str,
        layout: str,
        states: Collection[CaseState],
        actor: str,
        file: tuple[str, int, str],
    ) -> None:
        name, n_rows, digest = file
        details: dict[str, Any] = {"what": "labels", "format": output_format, "layout": layout}
        details |= {"states": sorted(state.value for state in states)} if states else {}
        self._note(slug, details | {"file": name, "rows": n_rows, "sha256": digest}, actor)

    def _note_study(
        self, slug: str, formats: Sequence[str], actor: str, files: Sequence[WrittenFile], name: str, digest: str
    ) -> None:
        details = {"what": "study", "formats": list(formats), "files": len(files), "file": name, "sha256": digest}
        first = ExportFormat(formats[0])
        self._note(slug, details | {"rows": sum(file.n_rows for file in files if file.format is first)}, actor)

    def _note(self, slug: str, details: dict[str, Any], actor: str) -> None:
        with self._database.write() as uow:
            uow.audit.append(self._clock(), actor, EXPORTED, f"study {slug}", details)
            uow.commit()


def _actor(person_id: PersonId | None) -> str:
    """Name who downloads in the audit trail."""
    return "dashboard" if person_id is None else f"person {person_id}"


def _table_of(output_format: str, layout: str) -> str:
    """Table of a layout, once format and layout are known to exist."""
    if layout not in TABLE_OF_LAYOUT:
        raise InvalidInputError(f"There is no layout '{layout}'. Layouts are {', '.join(TABLE_OF_LAYOUT)}.")
    known = [*(one.value for one in ExportFormat), MEDS]
    if output_format not in known:
        raise InvalidInputError(f"There is no format '{output_format}'. Formats are {', '.join(known)}.")
    return TABLE_OF_LAYOUT[layout]


@contextmanager
def _scratch_beside(out: Path) -> Iterator[Path]:
    """Make a folder beside a file or folder, on the same disk: what is finished is moved into place in one step."""
    require_replaceable(out)
    try:
        with scratch_in(out.absolute().parent) as folder:
            yield folder
    except (OSError, XlsxWriterException) as error:
        cause = error if isinstance(error, OSError) else error.__context__
        number = cause.errno if isinstance(cause, OSError) else None
        reason = os.strerror(number) if number else "the program that writes it gave up"
        raise SourceError(f"{out}: cannot be written ({reason}); nothing was kept. Name another place.") from None


def _keep_private(made: Path) -> None:
    """Let only the owner read a file or folder, and wait for the disk."""
    for path in [made, *sorted(made.rglob("*"))]:
        path.chmod(0o700 if path.is_dir() else 0o600)
        sync(path)


def _origin(study: Study, run: ScoringRun, content_hash: str, audit_head: str) -> dict[str, str]:
    return {
        "code_version": __version__,
        "data_hash": content_hash,
        "scoring_run": str(run.id),
        "scorer": run.scorer,
        "rubric_version": str(study.rubric_version),
        "audit_head": audit_head,
    }


def _subject(patient_id: str) -> str:
    """Take a readable prefix and zeros off: "SIM-0412" is the MEDS subject 412."""
    digits = patient_id.rpartition("-")[2] if patient_id[:1].isalpha() else patient_id
    return str(int(digits)) if digits.isdigit() else digits


def _past_export(row: AuditEvent, slug: str) -> PastExport:
    details = json.loads(row.details)
    formats = details.get("formats") or [details.get("format", "")]
    n_rows = details.get("rows")
    return PastExport(
        exported_at=row.moment,
        actor=row.actor,
        study_slug=slug,
        what=", ".join(str(part) for part in (details.get("what", "labels"), details.get("layout"), *formats) if part),
        file_name=str(details.get("file", "")),
        n_rows=None if n_rows is None else int(n_rows),
        sha256=str(details.get("sha256", "")),
    )


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


DATA_PACKAGE = "datapackage.json"
_TYPES = {
    ColumnType.TEXT: "string",
    ColumnType.INTEGER: "integer",
    ColumnType.NUMBER: "number",
    ColumnType.BOOLEAN: "boolean",
    ColumnType.TIME: "datetime",
}


def write_data_package(
    folder: Path, files: Iterable[WrittenFile], schemas: Sequence[TableSchema], *, name: str, title: str
) -> None:
    """Write ``datapackage.json``: columns, types, keys and allowed values of every plain CSV file of an export.

    Parquet files hold their types themselves; the CSV for Excel and XLSX change texts that a spreadsheet would
    calculate. An export without plain CSV gets no descriptor. `name` and `title` are those of the study.
    """
    tables = {schema.name: schema for schema in schemas}
    resources = [_resource(f, folder, tables[f.table]) for f in files if f.format is ExportFormat.CSV]
    if resources:
        package = {"name": name, "title": title, "profile": "tabular-data-package", "resources": resources}
        text = json.dumps(package, ensure_ascii=False, indent=2) + "\n"
        (folder / DATA_PACKAGE).write_text(text, encoding="utf-8")


def _resource(file: WrittenFile, folder: Path, schema: TableSchema) -> dict[str, Any]:
    return {
        "name": schema.name.replace("_", "-"),
        "path": file.path.relative_to(folder).as_posix(),
        "title": schema.title,
        "description": f"One row is {schema.one_row}.",
        "profile": "tabular-data-resource",
        "encoding": "utf-8",
        "bytes": file.n_bytes,
        "hash": f"sha256:{file.sha256}",
        "schema": {
            "fields": [_field(column) for column in schema.columns],
            "primaryKey": list(schema.key),
            "missingValues": [""],
        },
    }


def _field(column: Column) -> dict[str, Any]:
    constraints: dict[str, Any] = {} if column.missing else {"required": True}
    if column.values:
        constraints["enum"] = [int(v) if column.type is ColumnType.INTEGER else v for v, _ in column.values]
    field: dict[str, Any] = {"name": column.name, "type": _TYPES[column.type], "description": column.meaning}
    if column.unit:
        field["unit"] = column.unit
    return field | ({"constraints": constraints} if constraints else {})
