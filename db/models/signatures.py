"""Table of who signed which report: append-only, but that a signature can be marked superseded, once."""

from datetime import datetime

import sqlalchemy as sa

from core.vocabulary import PersonId, StudyId
from db.models.base import UNSAVED, Column, Record, column


class ReportSignature(Record):
    """A person's signature under the report of a study, as the report stood then."""

    __tablename__ = "report_signature"
    __table_args__ = (
        sa.CheckConstraint("signer_name <> '' AND meaning <> ''", name="name_and_meaning"),
        sa.CheckConstraint("length(content_hash) = 64", name="hash_length"),
    )

    id: Column[int] = column(primary_key=True, default=UNSAVED)
    study_id: Column[StudyId] = column(sa.ForeignKey("study.id"), index=True)
    signer_id: Column[PersonId] = column(sa.ForeignKey("person.id"), index=True)
    signer_name: Column[str]
    """As it was at signing."""
    meaning: Column[str]
    """What the signature says, such as approval."""
    signed_at: Column[datetime]
    """When it was given."""
    content_hash: Column[str]
    """SHA-256 of the report's canonical JSON, in hexadecimal digits."""
    superseded_at: Column[datetime | None] = column(default=None)
    """When the report changed or the study was reopened; empty while the signature holds."""
