"""Expert labels and everything they were judged on, as files: one table, or the whole study with a manifest."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from alertreview import __version__
from alertreview.export_formats import ExportFormat, WrittenFile, write_table
from alertreview.export_manifest import write_manifest
from alertreview.export_meds import MedsLabel, write_meds_labels
from alertreview.export_study import Row, study_rows, study_schema, study_settings
from alertreview.reporting import gather_study, standing_versions
from alertreview.snapshots import Snapshot
from alertreview.studies import StudyService
from alertreview.study_rows import CaseForReport
from core.consensus import majority_label
from core.errors import InvalidInputError, SourceError
from core.reporting import study_report
from core.study_input import StudyInput, prepare
from db.rows import RunRow, StudyRow
from db.session import Database

TABLE_OF_LAYOUT = {"long": "judgments", "wide": "labels"}
MEDS = "meds"


class Exports:
    """Exports of one site.

    Parameters
    ----------
    database : Database
        The site's database.
    studies : StudyService
        Gives cases and audit rows.
    open_snapshot : callable
        Gives the import with a content hash.
    clock : callable
        Gives the time now, aware.
    """

    def __init__(
        self,
        database: Database,
        studies: StudyService,
        open_snapshot: Callable[[str], Snapshot],
        clock: Callable[[], datetime],
    ) -> None:
        self._database = database
        self._studies = studies
        self._open_snapshot = open_snapshot
        self._clock = clock

    def labels(self, slug: str, output_format: str, layout: str, out: Path) -> int:
        """Write the judgments of a study (one row a version) or its labels (one row a case) to one file.

        Parameters
        ----------
        slug : str
            Short name of the study.
        output_format : str
            A value of `ExportFormat`, or "meds": then `out` is a folder with one file of majority labels for each task.
        layout : {"long", "wide"}
            One row for each version of each judgment, or one row for each case.
        out : Path
            File to write, whole or not at all.

        Returns
        -------
        int
            Number of rows.

        Raises
        ------
        NotFoundError
            If there is no such study.
        SourceError
            If the file cannot be written.
        """
        study = gather_study(self._database, self._studies, self._open_snapshot, slug)
        if output_format == MEDS:
            labels = self._meds_labels(slug, study)
            write_meds_labels(out, labels)
            n_rows = len(labels)
        else:
            table = TABLE_OF_LAYOUT[layout]
            rows = self._rows(slug, study)[table]
            with _scratch_beside(out) as folder:
                written = write_table(folder, rows, study_schema(table, study), [ExportFormat(output_format)])[0]
                written.path.replace(out)
            n_rows = written.n_rows
        self._note(slug, {"what": "labels", "format": output_format, "layout": layout, "rows": n_rows})
        return n_rows

    def study(self, slug: str, formats: Sequence[str], folder: Path) -> tuple[WrittenFile, ...]:
        """Write every table of a study and a manifest with checksums, from which its report can be computed again.

        Parameters
        ----------
        slug : str
            Short name of the study.
        formats : sequence of str
            Values of `ExportFormat`.
        folder : Path
            New or empty; the manifest is written last.

        Raises
        ------
        InvalidInputError
            If the folder holds something already.
        """
        if folder.exists() and any(folder.iterdir()):
            raise InvalidInputError(
                f"{folder} is not empty. Name a new folder, so that no older file is mistaken for new."
            )
        study = gather_study(self._database, self._studies, self._open_snapshot, slug)
        chosen = [ExportFormat(one) for one in formats]
        files: list[WrittenFile] = []
        for table, rows in self._rows(slug, study).items():
            files += write_table(folder, rows, study_schema(table, study), chosen)
        with self._database.read() as uow:
            stored = uow.studies.by_slug(slug)
            run = uow.runs.get(stored.run_id)
            content_hash = uow.snapshots.get(run.snapshot_id).content_hash
            head = uow.audit.head()
        write_manifest(
            folder,
            files,
            study_settings(study),
            created_at=self._clock(),
            origin=_origin(stored, run, content_hash, head),
        )
        self._note(slug, {"what": "study", "formats": list(formats), "files": len(files)})
        return tuple(files)

    def _rows(self, slug: str, study: StudyInput) -> Mapping[str, Any]:
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
                "answer_text": texts[judgment.rubric_version].get(str(int(judgment.answer or 0))),
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
        return study_rows(study, study_report(study), case_details=case_details, vote_details=vote_details)

    def _meds_labels(self, slug: str, study: StudyInput) -> list[MedsLabel]:
        """Majority labels that are decided; a patient's prefix is no part of a MEDS subject."""
        arrays = prepare(study)
        labels = majority_label(arrays.answers).label
        by_id: dict[str, CaseForReport] = {str(case.case_id): case for case in self._studies.case_rows(slug)}
        cases = [by_id[case_id] for case_id in arrays.column("case_id")]
        return [
            MedsLabel(case.task_key, _subject(case.patient_id), case.snapshot_at, bool(label == 1.0))
            for case, label in zip(cases, labels, strict=True)
            if not np.isnan(label)
        ]

    def _note(self, slug: str, details: dict[str, Any]) -> None:
        with self._database.write() as uow:
            uow.audit.append(self._clock(), "command line", "exported", f"study {slug}", details)
            uow.commit()


@contextmanager
def _scratch_beside(out: Path) -> Iterator[Path]:
    """Make a folder beside a file, on the same disk, so that the finished file is moved into place in one step."""
    try:
        folder = Path(tempfile.mkdtemp(prefix=".export-", dir=out.absolute().parent))
    except OSError as error:
        raise SourceError(f"{out}: cannot be written ({error.strerror}). Name another file.") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _origin(study: StudyRow, run: RunRow, content_hash: str, audit_head: str) -> dict[str, str]:
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


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)
