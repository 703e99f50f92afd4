"""Table of what was done, by whom and when: append-only, each row sealed with the hash of the one before."""

from sqlalchemy.orm import Mapped, mapped_column

from db.models.base import Base
from db.models.types import BigId


class AuditEvent(Base):
    """One act. `sequence` has no gaps, so that a removed row shows."""

    __tablename__ = "audit_event"

    sequence: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    """1, 2, ... without gaps."""
    at: Mapped[str]
    """ISO 8601 in UTC with microseconds: text, because it is hashed as it stands."""
    actor: Mapped[str]
    """Who acted: a person's name, or the command line."""
    action: Mapped[str]
    """What was done, in a few words."""
    object: Mapped[str]
    """What it was done to."""
    details: Mapped[str]
    """Canonical JSON text: before, after, reason; hashed as it stands."""
    previous_hash: Mapped[str]
    """Hash of the row before."""
    hash: Mapped[str] = mapped_column(unique=True)
    """SHA-256 of this row together with the hash before, in hexadecimal digits."""
