"""Tables of what the ward does with alerts: acts that only grow, where each decision stands, notes, saved views."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from core.vocabulary import TriageState
from db.models.base import Base, JsonObject
from db.models.types import BigId, words


class TriageAct(Base):
    """One act of triage, never changed: who moved which decision from what to what, when and why.

    A decision is patient, instance time and task, so that triage outlives the run whose alert it was done on.
    """

    __tablename__ = "triage_act"
    __table_args__ = (
        sa.UniqueConstraint("patient_id", "snapshot_at", "task_key", "version"),
        sa.UniqueConstraint("form_key", "patient_id", "snapshot_at", "task_key"),
        sa.Index(None, "person_id"),
        sa.CheckConstraint("version >= 1", name="version_from_one"),
        sa.CheckConstraint("state <> 'dismissed' OR reason <> ''", name="reason_given"),
        sa.CheckConstraint("(state = 'snoozed') = (snoozed_until IS NOT NULL)", name="snooze_ends"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    patient_id: Mapped[str]
    snapshot_at: Mapped[datetime]
    task_key: Mapped[str]
    version: Mapped[int]
    former_state: Mapped[TriageState] = mapped_column(words(TriageState, "former_state"))
    """State before the act."""
    state: Mapped[TriageState] = mapped_column(words(TriageState, "state"))
    """State after the act."""
    snoozed_until: Mapped[datetime | None]
    """When it comes back; empty unless snoozed."""
    reason: Mapped[str]
    """Why; needed for a dismissal."""
    person_id: Mapped[int] = mapped_column(sa.ForeignKey("person.id"))
    acted_at: Mapped[datetime]
    """When it was done."""
    form_key: Mapped[str]
    """Shared by all decisions of one press: what makes a repeated press harmless and what an undo takes back."""


class Triage(Base):
    """Where a decision stands: the last of its acts, kept beside them so that a list can be filtered by it.

    A decision without a row is new. Replaying the acts gives this table.
    """

    __tablename__ = "triage"
    __table_args__ = (sa.Index(None, "state"),)

    patient_id: Mapped[str] = mapped_column(primary_key=True)
    snapshot_at: Mapped[datetime] = mapped_column(primary_key=True)
    task_key: Mapped[str] = mapped_column(primary_key=True)
    version: Mapped[int]
    state: Mapped[TriageState] = mapped_column(words(TriageState, "state"))
    """What the ward did last."""
    snoozed_until: Mapped[datetime | None]
    """When it comes back; empty unless snoozed."""
    act_id: Mapped[int] = mapped_column(sa.ForeignKey("triage_act.id"), index=True)


class TriageNote(Base):
    """A note on a decision for everybody who can open its alert; never changed."""

    __tablename__ = "triage_note"
    __table_args__ = (
        sa.Index(None, "patient_id", "snapshot_at", "task_key"),
        sa.CheckConstraint("text <> ''", name="some_text"),
    )

    id: Mapped[int] = mapped_column(BigId, primary_key=True)
    patient_id: Mapped[str]
    snapshot_at: Mapped[datetime]
    task_key: Mapped[str]
    text: Mapped[str]
    """The note."""
    person_id: Mapped[int] = mapped_column(sa.ForeignKey("person.id"), index=True)
    written_at: Mapped[datetime]
    """When it was written."""
    form_key: Mapped[str] = mapped_column(unique=True)


class SavedView(Base):
    """Filters of the worklist under a name, for one person or for all; holds no patient."""

    __tablename__ = "saved_view"
    __table_args__ = (
        sa.UniqueConstraint("owner_id", "name"),
        sa.CheckConstraint("name <> ''", name="some_name"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    owner_id: Mapped[int] = mapped_column(sa.ForeignKey("person.id"))
    name: Mapped[str]
    """Name of the view, unique for its owner."""
    is_shared: Mapped[bool] = mapped_column(index=True)
    """Everybody may use it."""
    address: Mapped[JsonObject]
    """Parameters of the worklist's address."""
    saved_at: Mapped[datetime]
    """When it was last saved."""
