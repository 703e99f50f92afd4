"""What pages read of triage, notes and saved views: frozen answers in the words of the screen."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from core.vocabulary import TriageState


class TriageChoice(StrEnum):
    """Which alerts the worklist shows by what the ward did with them."""

    ANY = "any"
    OPEN = "open"
    """New and in review; a snooze that is over counts as new."""
    NEW = "new"
    IN_REVIEW = "in_review"
    ACTIONED = "actioned"
    DISMISSED = "dismissed"
    SNOOZED = "snoozed"

    @property
    def states(self) -> frozenset[TriageState]:
        """The states that are shown."""
        if self is TriageChoice.ANY:
            return frozenset(TriageState)
        if self is TriageChoice.OPEN:
            return frozenset({TriageState.NEW, TriageState.IN_REVIEW})
        return frozenset({TriageState(self.value)})


class Grouping(StrEnum):
    """What is one line of the worklist."""

    ALERT = "alert"
    ORDER_GROUP = "order_group"
    """Alerts of one order group and direction on one patient-day."""
    PATIENT_DAY = "patient_day"
    """All alerts on one patient-day."""
    EPISODE = "episode"
    """The same decision in question on several days of one stay."""


class ListOrder(StrEnum):
    """In which order the lines stand."""

    RANK = "rank"
    """Most unusual first; omissions and commissions take turns."""
    NEWEST = "newest"
    """Latest day first, by rank within a day."""


@dataclass(frozen=True)
class Standing:
    """Where a decision stands in the ward's triage."""

    state: TriageState = TriageState.NEW
    """A snooze that is over stands at "new"."""
    version: int = 0
    """0 while nobody has touched it; passed back with an act."""
    snoozed_until: datetime | None = None
    """Also of a snooze that is over."""


@dataclass(frozen=True)
class TriageDone:
    """What was read back from the database after the commit of an act."""

    form_key: str
    """Names the act; passed back to undo it."""
    state: TriageState | None
    """Where it led; None for an undo."""
    n_done: int
    n_already: int
    """Alerts that stood there already and were left alone."""
    n_changed_meanwhile: int
    """Of an undo: alerts that somebody has moved on since and that were left alone."""
    done_at: datetime


@dataclass(frozen=True)
class TriageEntry:
    """One act on a decision, as its alert page lists it."""

    person: str
    acted_at: datetime
    former_state: TriageState
    state: TriageState
    snoozed_until: datetime | None
    reason: str
    version: int


@dataclass(frozen=True)
class NoteEntry:
    """A note on a decision."""

    person: str
    written_at: datetime
    text: str


@dataclass(frozen=True)
class TriageStory:
    """Everything the ward has done with and said about a decision."""

    standing: Standing
    acts: tuple[TriageEntry, ...]
    """Newest first."""
    notes: tuple[NoteEntry, ...]
    """Oldest first."""


@dataclass(frozen=True)
class SavedViewEntry:
    """Filters of the worklist under a name."""

    name: str
    owner: str
    is_mine: bool
    is_shared: bool
    address: dict[str, str]
    """Parameters of the worklist's address."""
