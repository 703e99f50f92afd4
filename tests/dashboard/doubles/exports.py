"""Doubles of reports, signatures and exports: the rules a page can meet, without files."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from alertreview.exports.exports import Exports, PastExport
from alertreview.reports.service import ReportService
from alertreview.reports.signing import Signature
from alertreview.rights import Service
from alertreview.studies.models import ExportPreview
from core.errors import RefusedError
from core.studies.report import StudyReport
from core.vocabulary import CaseState
from tests.dashboard.doubles.report import simulated_report
from tests.dashboard.doubles.sign_in import guarded_as

if TYPE_CHECKING:
    from tests.dashboard.doubles.application import FakeApplication


@guarded_as(ReportService)
@dataclass
class FakeReports(Service):
    """Reports and their signatures."""

    app: "FakeApplication"

    def report(self, slug: str, person_id: int | None = None) -> StudyReport:
        return simulated_report(self.app.studies.view(slug))

    def signatures(self, slug: str, report: StudyReport | None = None) -> tuple[Signature, ...]:
        self.app.studies.view(slug)
        return tuple(self.app.signed)

    def file(self, report: StudyReport, output_format: str) -> bytes:
        return f"{output_format} of {report.slug}".encode()

    def sign(self, slug: str, person_id: int, meaning: str, *, seen_hash: str | None = None) -> Signature:
        name = next(person.name for person in self.app.site.people() if person.person_id == person_id)
        signature = Signature(name, meaning, datetime(2026, 11, 27, 9, tzinfo=UTC), seen_hash or "")
        self.app.signed.append(signature)
        return signature


@guarded_as(Exports)
@dataclass
class FakeExports(Service):
    """What the double gives away, and to whom it does not."""

    app: "FakeApplication"

    def preview(self, slug: str, output_format: str, layout: str, *, person_id: int | None = None) -> ExportPreview:
        self._refuse(slug, person_id)
        each = 3 if layout == "long" and output_format != "meds" else 1
        return ExportPreview({state: each * n for state, n in self.app.studies.view(slug).case_states.items()})

    def labels_download(
        self,
        slug: str,
        output_format: str,
        layout: str,
        *,
        states: Collection[CaseState] = (),
        person_id: int | None = None,
    ) -> tuple[str, bytes]:
        n_rows = self.preview(slug, output_format, layout, person_id=person_id).chosen(states)
        name = f"{slug}-{layout}.{output_format}"
        return self._written(slug, f"labels, {layout}, {output_format}", name, n_rows, person_id)

    def study_download(self, slug: str, formats: Sequence[str], *, person_id: int | None = None) -> tuple[str, bytes]:
        self._refuse(slug, person_id)
        return self._written(slug, f"study, {', '.join(formats)}", f"{slug}-study.zip", 99, person_id)

    def past(self, slug: str, limit: int = 50) -> tuple[PastExport, ...]:
        self.app.studies.view(slug)
        return tuple(reversed(self.app.exported))[:limit]

    def _refuse(self, slug: str, person_id: int | None) -> None:
        if self.app.review.is_blinded(slug, person_id):
            raise RefusedError(f"Study '{slug}' is open and you still judge its cases.")

    def _written(self, slug: str, what: str, name: str, n_rows: int, person_id: int | None) -> tuple[str, bytes]:
        content = f"{name}: {n_rows} rows".encode()
        at, digest = datetime(2026, 11, 27, 9, tzinfo=UTC), hashlib.sha256(content).hexdigest()
        self.app.exported.append(PastExport(at, f"person {person_id}", slug, what, name, n_rows, digest))
        return name, content
