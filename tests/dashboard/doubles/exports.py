"""Exports, signatures and plans of the double: the rules a page can meet, without files."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from alertreview.exports.past_exports import PastExport
from alertreview.reports.signing import Signature, content_hash
from alertreview.studies.models import ExportPreview
from core.errors import RefusedError
from core.statistics.planning import PlannedStudy, required_cases
from core.studies.report import StudyReport
from core.vocabulary import CaseState, StudyStatus
from tests.dashboard.doubles.reading import FakeReading


@dataclass
class FakeExports(FakeReading):
    """What the double gives away, and to whom it does not."""

    exported: list[PastExport] = field(default_factory=list)
    signed: list[Signature] = field(default_factory=list)

    def is_blinded(self, slug: str, person_id: int | None) -> bool:
        if person_id is None or self.study(slug).status is not StudyStatus.OPEN:
            return False
        queue = self.queue(slug, person_id)
        return bool(queue.is_reader and queue.n_left)

    def signatures(self, slug: str, report: StudyReport | None = None) -> tuple[Signature, ...]:
        self.study(slug)
        return tuple(self.signed)

    def report_file(self, report: StudyReport, output_format: str) -> bytes:
        return f"{output_format} of {report.slug}".encode()

    def content_hash(self, report: StudyReport) -> str:
        return content_hash(report)

    def sign_report(self, slug: str, person_id: int, meaning: str, *, seen_hash: str | None = None) -> Signature:
        name = next(person.name for person in self.people() if person.person_id == person_id)
        signature = Signature(name, meaning, datetime(2026, 11, 27, 9, tzinfo=UTC), seen_hash or "")
        self.signed.append(signature)
        return signature

    def plan_study(self, auc: float, positive_share: float, half_width: float, **options: Any) -> PlannedStudy:
        return required_cases(auc, positive_share, half_width, **options)

    def export_preview(
        self, slug: str, output_format: str, layout: str, *, person_id: int | None = None
    ) -> ExportPreview:
        self._refuse(slug, person_id)
        each = 3 if layout == "long" and output_format != "meds" else 1
        return ExportPreview({state: each * n for state, n in self.study(slug).case_states.items()})

    def export_labels(
        self,
        slug: str,
        output_format: str,
        layout: str,
        *,
        states: Collection[CaseState] = (),
        person_id: int | None = None,
    ) -> tuple[str, bytes]:
        n_rows = self.export_preview(slug, output_format, layout, person_id=person_id).chosen(states)
        name = f"{slug}-{layout}.{output_format}"
        return self._written(slug, f"labels, {layout}, {output_format}", name, n_rows, person_id)

    def export_study_zip(self, slug: str, formats: Sequence[str], *, person_id: int | None = None) -> tuple[str, bytes]:
        self._refuse(slug, person_id)
        return self._written(slug, f"study, {', '.join(formats)}", f"{slug}-study.zip", 99, person_id)

    def past_exports(self, slug: str, limit: int = 50) -> tuple[PastExport, ...]:
        self.study(slug)
        return tuple(reversed(self.exported))[:limit]

    def _refuse(self, slug: str, person_id: int | None) -> None:
        if self.is_blinded(slug, person_id):
            raise RefusedError(f"Study '{slug}' is open and you still judge its cases.")

    def _written(self, slug: str, what: str, name: str, n_rows: int, person_id: int | None) -> tuple[str, bytes]:
        content = f"{name}: {n_rows} rows".encode()
        at, digest = datetime(2026, 11, 27, 9, tzinfo=UTC), hashlib.sha256(content).hexdigest()
        self.exported.append(PastExport(at, f"person {person_id}", slug, what, name, n_rows, digest))
        return name, content
