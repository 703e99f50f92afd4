"""What pages read of triage, notes and saved views: frozen answers in the words of the screen."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from alertreview.rights import Action, Service, requires
from core.errors import ConflictError, InvalidInputError, NotFoundError, RefusedError
from core.vocabulary import PersonId, TriageState
from db.models import SavedView


class TriageChoice(StrEnum):
    """Which alerts the worklist shows by what the ward did with them."""

    ANY = "any"
    OPEN = "open"  # new and in review; a snooze that is over counts as new
    NEW = "new"
    IN_REVIEW = "in_review"
    ACTIONED = "actioned"
    DISMISSED = "dismissed"
    SNOOZED = "snoozed"


STATES_SHOWN: Mapping[TriageChoice, frozenset[TriageState]] = {
    TriageChoice.ANY: frozenset(TriageState),
    TriageChoice.OPEN: frozenset({TriageState.NEW, TriageState.IN_REVIEW}),
    **{TriageChoice(state.value): frozenset({state}) for state in TriageState},
}
"""Triage states that a choice shows."""


class Grouping(StrEnum):
    """What is one line of the worklist."""

    ALERT = "alert"
    ORDER_GROUP = "order_group"  # alerts of one order group and direction on one patient-day
    PATIENT_DAY = "patient_day"  # all alerts on one patient-day
    EPISODE = "episode"  # the same decision in question on several days of one stay


class ListOrder(StrEnum):
    """In which order the lines stand."""

    RANK = "rank"  # most unusual first; omissions and commissions take turns
    NEWEST = "newest"  # latest day first, by rank within a day


@dataclass(frozen=True)
class TriageStatus:
    """Triage status of a decision."""

    state: TriageState = TriageState.NEW  # a snooze that is over counts as "new"
    version: int = 0  # 0 while nobody has touched it; passed back with an act
    snoozed_until: datetime | None = None  # also of a snooze that is over


@dataclass(frozen=True)
class TriageDone:
    """What was read back from the database after the commit of an act."""

    form_key: str  # names the act; passed back to undo it
    state: TriageState | None  # where it led; None for an undo
    n_done: int
    n_already: int  # alerts that were in this state already and were left alone
    n_changed_meanwhile: int  # of an undo: alerts that somebody has moved on since and that were left alone
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

    status: TriageStatus
    acts: tuple[TriageEntry, ...]  # newest first
    notes: tuple[NoteEntry, ...]  # oldest first


@dataclass(frozen=True)
class SavedViewEntry:
    """Filters of the worklist under a name."""

    name: str
    owner: str
    is_mine: bool
    is_shared: bool
    address: dict[str, str]  # parameters of the worklist's address


LONGEST_NAME = 60
NEVER_KEPT = ("after", "page", "alert", "patient")
"""Parameters of a place in the list or of a person: not part of a view."""


class SavedViewService(Service):
    """Keeps named filters of the worklist."""

    @requires(Action.SEE_ALERTS)
    def offered_to(self, person_id: PersonId) -> tuple[SavedViewEntry, ...]:
        """Return a person's own views and those that others share, by name."""
        with self._database.read() as uow:
            return tuple(
                SavedViewEntry(
                    view.name, view.owner_name, view.owner_id == person_id, view.is_shared, dict(view.address)
                )
                for view in uow.saved_views.offered_to(person_id)
            )

    @requires(Action.SEE_ALERTS)
    def save(
        self, person_id: PersonId, name: str, address: dict[str, str], *, shared: bool = False, replace: bool = False
    ) -> None:
        """Keep filters under a name: the parameters of the worklist's address without a place in the list or a patient.

        A shared view is offered to everybody; `replace` writes over one's own view of the same name. Raise RefusedError
        if there is no name, InvalidInputError if it is too long, ConflictError if it is taken and `replace` is not set.
        """
        name = " ".join(name.split())
        if not name:
            raise RefusedError("The view has no name. Type one, then save.")
        if len(name) > LONGEST_NAME or "\0" in name:
            raise InvalidInputError(f"A view's name has at most {LONGEST_NAME} characters of text. Shorten it.")
        kept = {key: value for key, value in address.items() if key not in NEVER_KEPT}
        now = self._clock()
        with self._database.write() as uow:
            former = uow.saved_views.named(person_id, name)
            if former is not None and not replace:
                raise ConflictError(f"You have a view named '{name}'. Choose another name, or replace it.")
            uow.saved_views.put(SavedView(owner_id=person_id, name=name, is_shared=shared, address=kept, saved_at=now))
            details = {
                "before": former and {"shared": former.is_shared, "address": former.address},
                "after": {"shared": shared, "address": kept},
            }
            uow.audit.append(now, f"person {person_id}", "view saved", f"view '{name}'", details)
            uow.commit()

    @requires(Action.SEE_ALERTS)
    def delete(self, person_id: PersonId, name: str) -> None:
        """Delete a view of one's own; raise NotFoundError if this person has no view of the name."""
        now = self._clock()
        with self._database.write() as uow:
            former = uow.saved_views.named(person_id, name)
            if former is None or not uow.saved_views.drop(person_id, name):
                raise NotFoundError(f"You have no view named '{name}'. It may be somebody else's, or deleted already.")
            details = {"before": {"shared": former.is_shared, "address": former.address}, "after": None}
            uow.audit.append(now, f"person {person_id}", "view deleted", f"view '{name}'", details)
            uow.commit()
