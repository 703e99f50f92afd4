"""Signatures under reports: appended, marked superseded once, never changed otherwise."""

from datetime import datetime

from sqlalchemy import update

from core.vocabulary import StudyId
from db.models import ReportSignature
from db.queries.reading import Repository, select_records


class Signatures(Repository):
    """Signatures under reports."""

    def append(self, signature: ReportSignature) -> None:
        """Append a signature."""
        self._insert(signature)

    def of_study(self, study_id: StudyId) -> list[ReportSignature]:
        """Return the signatures under a study's reports, oldest first, superseded ones among them."""
        of_study = select_records(ReportSignature).where(ReportSignature.study_id == study_id)
        return self._all(ReportSignature, of_study.order_by(ReportSignature.id))

    def supersede(self, study_id: StudyId, at: datetime, *, but_hash: str = "") -> int:
        """Mark what stands as superseded, except signatures of one content, and return their number."""
        standing = update(ReportSignature).where(
            ReportSignature.study_id == study_id,
            ReportSignature.superseded_at.is_(None),
            ReportSignature.content_hash != but_hash,
        )
        return self._change(standing.values(superseded_at=at))
