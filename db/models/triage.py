"""Tables of what the ward does with alerts: acts that only grow, the state of each decision, notes, saved views."""

from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from core.vocabulary import PersonId, TriageState
from db.models.base import UNSAVED, Column, JsonObject, Record, column
from db.models.types import BigId


class DecisionKey(NamedTuple):
    """What triage is about: patient, instance time, task; it outlives runs and imports."""

    patient_id: str
    snapshot_at: datetime
    """Aware."""
    task_key: str


class TriageAct(Record):
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

    id: Column[int] = column(BigId, primary_key=True, default=UNSAVED)
    patient_id: Column[str]
    snapshot_at: Column[datetime]
    task_key: Column[str]
    version: Column[int]
    former_state: Column[TriageState]
    """State before the act."""
    state: Column[TriageState]
    """State after the act."""
    snoozed_until: Column[datetime | None]
    """When it comes back; empty unless snoozed."""
    reason: Column[str]
    """Why; needed for a dismissal."""
    person_id: Column[PersonId] = column(sa.ForeignKey("person.id"))
    acted_at: Column[datetime]
    """When it was done."""
    form_key: Column[str]
    """Shared by all decisions of one press: what makes a repeated press harmless and what an undo takes back."""

    @property
    def key(self) -> DecisionKey:
        """The decision."""
        return DecisionKey(self.patient_id, self.snapshot_at, self.task_key)


class SignedAct(TriageAct):
    """An act with the name of who did it."""

    person_name: str


class Triage(Record):
    """The state of a decision: the last of its acts, kept with them so that a list can be filtered by it.

    A decision without a row is new. Replaying the acts gives this table.
    """

    __tablename__ = "triage"
    __table_args__ = (sa.Index(None, "state"),)

    patient_id: Column[str] = column(primary_key=True)
    snapshot_at: Column[datetime] = column(primary_key=True)
    task_key: Column[str] = column(primary_key=True)
    version: Column[int]
    state: Column[TriageState]
    """What the ward did last."""
    snoozed_until: Column[datetime | None]
    """When it comes back; empty unless snoozed."""
    act_id: Column[int] = column(sa.ForeignKey("triage_act.id"), index=True)

    @property
    def key(self) -> DecisionKey:
        """The decision."""
        return DecisionKey(self.patient_id, self.snapshot_at, self.task_key)


class TriageNote(Record):
    """A note on a decision for everybody who can open its alert; never changed."""

    __tablename__ = "triage_note"
    __table_args__ = (
        sa.Index(None, "patient_id", "snapshot_at", "task_key"),
        sa.CheckConstraint("text <> ''", name="some_text"),
    )

    id: Column[int] = column(BigId, primary_key=True, default=UNSAVED)
    patient_id: Column[str]
    snapshot_at: Column[datetime]
    task_key: Column[str]
    text: Column[str]
    """The note."""
    person_id: Column[PersonId] = column(sa.ForeignKey("person.id"), index=True)
    written_at: Column[datetime]
    """When it was written."""
    form_key: Column[str] = column(unique=True)


class SignedNote(TriageNote):
    """A note with the name of who wrote it."""

    person_name: str


class SavedView(Record):
    """Filters of the worklist under a name, for one person or for all; holds no patient."""

    __tablename__ = "saved_view"
    __table_args__ = (
        sa.UniqueConstraint("owner_id", "name"),
        sa.CheckConstraint("name <> ''", name="some_name"),
    )

    id: Column[int] = column(primary_key=True, default=UNSAVED)
    owner_id: Column[PersonId] = column(sa.ForeignKey("person.id"))
    name: Column[str]
    """Name of the view, unique for its owner."""
    is_shared: Column[bool] = column(index=True)
    """Everybody may use it."""
    address: Column[JsonObject]
    """Parameters of the worklist's address."""
    saved_at: Column[datetime]
    """When it was last saved."""


class OwnedView(SavedView):
    """A saved view with the name of its owner."""

    owner_name: str
