"""Table of what was done, by whom and when: append-only, each row sealed with the hash of the one before."""

from datetime import datetime

from db.models.base import Column, Record, column
from db.models.types import BigId


class AuditEvent(Record):
    """One act. `sequence` has no gaps, so that a removed row shows."""

    __tablename__ = "audit_event"

    sequence: Column[int] = column(BigId, primary_key=True, autoincrement=False)
    """1, 2, ... without gaps."""
    at: Column[str]
    """ISO 8601 in UTC with microseconds: text, because it is hashed as it stands."""
    actor: Column[str]
    """Who acted: a person's name, or the command line."""
    action: Column[str]
    """What was done, in a few words."""
    object: Column[str]
    """What it was done to."""
    details: Column[str]
    """Canonical JSON text: before, after, reason, seals of what the act wrote; hashed as it stands."""
    previous_hash: Column[str]
    """Hash of the row before."""
    hash: Column[str] = column(unique=True)
    """SHA-256 of this row together with the hash before, in hexadecimal digits."""

    @property
    def moment(self) -> datetime:
        """When it was done, aware."""
        return datetime.fromisoformat(self.at)
