"""Table of who signed which report: append-only, but that a signature can be marked superseded, once."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from db.models.base import Base


class ReportSignature(Base):
    """A person's signature under the report of a study, as the report stood then."""

    __tablename__ = "report_signature"
    __table_args__ = (
        sa.CheckConstraint("signer_name <> '' AND meaning <> ''", name="name_and_meaning"),
        sa.CheckConstraint("length(content_hash) = 64", name="hash_length"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int] = mapped_column(sa.ForeignKey("study.id"), index=True)
    signer_id: Mapped[int] = mapped_column(sa.ForeignKey("person.id"), index=True)
    signer_name: Mapped[str]
    """As it was at signing."""
    meaning: Mapped[str]
    """What the signature says, such as approval."""
    signed_at: Mapped[datetime]
    """When it was given."""
    content_hash: Mapped[str]
    """SHA-256 of the report's canonical JSON, in hexadecimal digits."""
    superseded_at: Mapped[datetime | None]
    """When the report changed or the study was reopened; empty while the signature holds."""
