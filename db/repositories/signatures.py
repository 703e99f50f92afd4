"""Signatures under reports: appended, marked superseded once, never changed otherwise."""

from datetime import datetime

from sqlalchemy import insert, select, update
from sqlalchemy.engine import Connection

from db.models import ReportSignature
from db.queries.reading import change, columns, read_all, values
from db.rows import NewSignature, SignatureRow


class Signatures:
    """Signatures of the unit of work's connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def append(self, signature: NewSignature) -> None:
        """Append a signature."""
        self._connection.execute(insert(ReportSignature).values(values(signature)))

    def of_study(self, study_id: int) -> list[SignatureRow]:
        """Return the signatures under a study's reports, oldest first, superseded ones among them."""
        statement = (
            select(*columns(ReportSignature, SignatureRow))
            .where(ReportSignature.study_id == study_id)
            .order_by(ReportSignature.id)
        )
        return read_all(self._connection, SignatureRow, statement)

    def supersede(self, study_id: int, at: datetime, *, but_hash: str = "") -> int:
        """Mark what stands as superseded, except signatures of one content, and give their number."""
        statement = (
            update(ReportSignature)
            .where(
                ReportSignature.study_id == study_id,
                ReportSignature.superseded_at.is_(None),
                ReportSignature.content_hash != but_hash,
            )
            .values(superseded_at=at)
        )
        return change(self._connection, statement)
