"""Triage: acts only grow, the state of a decision follows them, notes are never changed. Saved views of the list."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import and_, bindparam, delete, func, insert, or_, select, tuple_, update

from core.errors import ConflictError
from core.vocabulary import PersonId, SnapshotId, TriageState
from db.models import (
    CohortSnapshot,
    DecisionKey,
    Instance,
    OwnedView,
    Person,
    SavedView,
    SignedAct,
    SignedNote,
    Triage,
    TriageAct,
    TriageNote,
)
from db.models.types import UtcDateTime
from db.queries.reading import Repository, given, in_parts, select_records, stored_values
from db.queries.seals import mark

_OF_PATIENTS = select_records(Triage).where(Triage.patient_id.in_(bindparam("patients", expanding=True)))
_LATEST_CHANGE = select(
    select(func.max(TriageAct.id)).scalar_subquery(),
    select(func.count())
    .select_from(Triage)
    .where(Triage.state == TriageState.SNOOZED, Triage.snoozed_until <= bindparam("now", type_=UtcDateTime()))
    .scalar_subquery(),
)
_SITE_TIMEZONE = (
    select(CohortSnapshot.site_timezone)
    .join(Instance, Instance.snapshot_id == CohortSnapshot.id)
    .where(Instance.patient_id == given("patient_id"), Instance.snapshot_at == given("snapshot_at"))
    .order_by(CohortSnapshot.id.desc())
    .limit(1)
)
_ACTS = select_records(TriageAct, SignedAct, Person.name.label("person_name")).join(
    Person, Person.id == TriageAct.person_id
)
_NOTES = (
    select_records(TriageNote, SignedNote, Person.name.label("person_name"))
    .join(Person, Person.id == TriageNote.person_id)
    .order_by(TriageNote.id)
)


class TriageBook(Repository):
    """Triage and notes."""

    def status(self, keys: Collection[DecisionKey]) -> dict[DecisionKey, Triage]:
        """Return where decisions stand; those that nobody has touched are not in it."""
        wanted = set(keys)
        return {
            triage.key: triage
            for patients in in_parts(sorted({key.patient_id for key in wanted}))
            for triage in self._all(Triage, _OF_PATIENTS, patients=patients)
            if triage.key in wanted
        }

    def latest_change(self, now: datetime) -> tuple[int, int]:
        """Return the number of the last act and how many snoozes are over: as long as both stay, every decision stands.

        Acts are numbered in the order in which they are kept, because writers take turns.
        """
        last_act, n_over = self._run(_LATEST_CHANGE, now=now).one()
        return int(last_act or 0), int(n_over)

    def append(self, acts: Sequence[TriageAct]) -> None:
        """Append acts and let the decisions stand where they lead.

        Raise ConflictError if a decision has moved on since: its version is not the one before the act's. Leave the
        unit of work without commit then.
        """
        stored = self._connection.execute(
            insert(TriageAct).returning(TriageAct.id, sort_by_parameter_order=True),
            [stored_values(act) for act in acts],
        )
        act_ids = stored.scalars().all()
        for act_id in act_ids:
            mark(self._connection, "triage act", act_id)
        standing = [
            Triage(
                **act.key._asdict(),
                version=act.version,
                state=act.state,
                snoozed_until=act.snoozed_until,
                act_id=act_id,
            )
            for act, act_id in zip(acts, act_ids, strict=True)
        ]
        self._insert_all(triage for triage in standing if triage.version == 1)
        for triage in standing:
            if triage.version > 1:
                self._move(triage)

    def _move(self, triage: Triage) -> None:
        of_version = update(Triage).where(_is(Triage, triage.key), Triage.version == triage.version - 1)
        if self._change(of_version.values(stored_values(triage))) != 1:
            raise ConflictError("This decision was triaged by somebody else meanwhile. Nothing of this act was kept.")

    def history(self, key: DecisionKey) -> list[SignedAct]:
        """Return the acts on a decision, newest first."""
        return self._all(SignedAct, _ACTS.where(_is(TriageAct, key)).order_by(TriageAct.version.desc()))

    def of_moved(self, snapshot_id: SnapshotId, since: datetime, units: Collection[str] | None) -> list[SignedAct]:
        """Return every act, in order, on the decisions of an import that somebody acted on since, in some units or all.

        The decisions of one import only: it says in which unit a patient was.
        """
        decision = (TriageAct.patient_id, TriageAct.snapshot_at, TriageAct.task_key)
        moved = select(*decision).where(TriageAct.acted_at >= since).correlate(None)
        here = select(Instance.patient_id, Instance.snapshot_at).where(Instance.snapshot_id == snapshot_id)
        if units is not None:
            here = here.where(Instance.unit.in_(units))
        listed = _ACTS.where(tuple_(*decision).in_(moved), tuple_(*decision[:2]).in_(here))
        return self._all(SignedAct, listed.order_by(TriageAct.id))

    def of_form(self, form_key: str) -> list[SignedAct]:
        """Return the acts of one press."""
        return self._all(SignedAct, _ACTS.where(TriageAct.form_key == form_key).order_by(TriageAct.id))

    def add_note(self, note: TriageNote) -> None:
        """Append a note."""
        self._insert(note)

    def note_of_form(self, form_key: str) -> SignedNote | None:
        """Return the note that a form was saved as, None when it was not."""
        return self._one(SignedNote, _NOTES.where(TriageNote.form_key == form_key))

    def notes(self, key: DecisionKey) -> list[SignedNote]:
        """Return the notes on a decision, oldest first."""
        return self._all(SignedNote, _NOTES.where(_is(TriageNote, key)))

    def site_timezone(self, key: DecisionKey) -> str:
        """Return the time zone of the site that a decision comes from; its last import says."""
        found = self._run(_SITE_TIMEZONE, patient_id_=key.patient_id, snapshot_at_=key.snapshot_at)
        return str(found.scalar_one())


def _is(model: type[Triage | TriageAct | TriageNote], key: DecisionKey) -> Any:
    return and_(
        model.patient_id == key.patient_id, model.snapshot_at == key.snapshot_at, model.task_key == key.task_key
    )


_VIEWS = select_records(SavedView, OwnedView, Person.name.label("owner_name")).join(
    Person, Person.id == SavedView.owner_id
)


class SavedViews(Repository):
    """Saved views of the worklist."""

    def offered_to(self, person_id: PersonId) -> list[OwnedView]:
        """Return a person's own views and those that others share, by name."""
        mine = _VIEWS.where(or_(SavedView.owner_id == person_id, SavedView.is_shared))
        return self._all(OwnedView, mine.order_by(SavedView.name, SavedView.id))

    def named(self, owner_id: PersonId, name: str) -> OwnedView | None:
        """Return a person's view with a name, None when there is none."""
        return self._one(OwnedView, _VIEWS.where(SavedView.owner_id == owner_id, SavedView.name == name))

    def put(self, view: SavedView) -> None:
        """Store a view over the owner's view of the same name."""
        self.drop(view.owner_id, view.name)
        self._insert(view)

    def drop(self, owner_id: PersonId, name: str) -> bool:
        """Delete a person's view; False when there was none."""
        return self._change(delete(SavedView).where(SavedView.owner_id == owner_id, SavedView.name == name)) == 1
