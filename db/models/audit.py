"""Table of what was done, by whom and when: append-only, each row sealed with the hash of the one before."""

from sqlalchemy.orm import Mapped, mapped_column

from db.models.base import Base
from db.types import BigId


class AuditEvent(Base):
    """One act. `sequence` has no gaps, so that a removed row shows."""

    __tablename__ = "audit_event"

    sequence: Mapped[int] = mapped_column(BigId, primary_key=True, autoincrement=False)
    at: Mapped[str]
    """ISO 8601 in UTC with microseconds: text, because it is hashed as it stands."""
    actor: Mapped[str]
    action: Mapped[str]
    object: Mapped[str]
    details: Mapped[str]
    """Canonical JSON text: before, after, reason; hashed as it stands."""
    previous_hash: Mapped[str]
    hash: Mapped[str] = mapped_column(unique=True)
