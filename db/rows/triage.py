"""Rows of triage, notes and saved views."""

from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from core.vocabulary import TriageState


class DecisionKey(NamedTuple):
    """What triage is about: patient, instance time, task; it outlives runs and imports."""

    patient_id: str
    snapshot_at: datetime
    """Aware."""
    task_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageRow:
    """Where a decision stands; one that has no row is new, at version 0."""

    patient_id: str
    snapshot_at: datetime
    task_key: str
    version: int
    state: TriageState
    snoozed_until: datetime | None

    @property
    def key(self) -> DecisionKey:
        """The decision."""
        return DecisionKey(self.patient_id, self.snapshot_at, self.task_key)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTriageAct(TriageRow):
    """An act to be appended: `version` is one more than the version it was decided on."""

    former_state: TriageState
    reason: str
    person_id: int
    acted_at: datetime
    form_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageActRow(NewTriageAct):
    """A stored act."""

    id: int
    person_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewNote:
    """A note to be appended."""

    patient_id: str
    snapshot_at: datetime
    task_key: str
    text: str
    person_id: int
    written_at: datetime
    form_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteRow(NewNote):
    """A stored note."""

    id: int
    person_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSavedView:
    """Filters under a name; `address` holds parameters of the worklist's address and no patient."""

    owner_id: int
    name: str
    is_shared: bool
    address: dict[str, str]
    saved_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedViewRow(NewSavedView):
    """A stored view."""

    id: int
    owner_name: str
