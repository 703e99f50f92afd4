"""Triage: acts only grow, where a decision stands follows them, notes are never changed."""

from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import and_, insert, select, update
from sqlalchemy.engine import Connection

from core.errors import ConflictError
from db.models import CohortSnapshot, Instance, Person, Triage, TriageAct, TriageNote
from db.queries.reading import change, columns, read_all, run, values
from db.queries.runs import latest_triage_change, standing_of_patients
from db.rows import DecisionKey, NewNote, NewTriageAct, NoteRow, TriageActRow, TriageRow

PATIENTS_AT_ONCE = 500
"""Values in one IN list: well below what any database takes."""
_STANDING = ("version", "state", "snoozed_until")


class TriageBook:
    """Triage and notes of the unit of work's connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def standing(self, keys: Collection[DecisionKey]) -> dict[DecisionKey, TriageRow]:
        """Return where decisions stand; those that nobody has touched are not in it."""
        wanted = set(keys)
        remaining = iter(sorted({key.patient_id for key in wanted}))
        found: dict[DecisionKey, TriageRow] = {}
        while patients := list(islice(remaining, PATIENTS_AT_ONCE)):
            rows = read_all(self._connection, TriageRow, standing_of_patients(), patients=patients)
            found |= {row.key: row for row in rows if row.key in wanted}
        return found

    def latest_change(self, now: datetime) -> tuple[int, int]:
        """Return the number of the last act and how many snoozes are over: as long as both stay, every decision stands.

        Acts are numbered in the order in which they are kept, because writers take turns.
        """
        row = run(self._connection, latest_triage_change(), now=now).one()
        return int(row.last_act or 0), int(row.n_over)

    def append(self, acts: Sequence[NewTriageAct]) -> None:
        """Append acts and let the decisions stand where they lead.

        Raises
        ------
        ConflictError
            If a decision has moved on since: its version is not the one before the act's. Leave the unit of work
            without commit then.
        """
        stored = self._connection.execute(
            insert(TriageAct).returning(TriageAct.id, sort_by_parameter_order=True), [values(act) for act in acts]
        )
        rows = [(act, act_id) for act, act_id in zip(acts, stored.scalars(), strict=True)]
        first = [
            {name: getattr(act, name) for name in (*DecisionKey._fields, *_STANDING)} | {"act_id": act_id}
            for act, act_id in rows
            if act.version == 1
        ]
        if first:
            self._connection.execute(insert(Triage), first)
        for act, act_id in rows:
            if act.version > 1:
                self._move(act, act_id)

    def _move(self, act: NewTriageAct, act_id: int) -> None:
        statement = (
            update(Triage)
            .where(
                Triage.patient_id == act.patient_id,
                Triage.snapshot_at == act.snapshot_at,
                Triage.task_key == act.task_key,
                Triage.version == act.version - 1,
            )
            .values({name: getattr(act, name) for name in _STANDING} | {"act_id": act_id})
        )
        if change(self._connection, statement) != 1:
            raise ConflictError("This decision was triaged by somebody else meanwhile. Nothing of this act was kept.")

    def history(self, key: DecisionKey) -> list[TriageActRow]:
        """Return the acts on a decision, newest first."""
        return self._acts(_is(TriageAct, key), TriageAct.version.desc())

    def of_form(self, form_key: str) -> list[TriageActRow]:
        """Return the acts of one press."""
        return self._acts(TriageAct.form_key == form_key, TriageAct.id)

    def add_note(self, note: NewNote) -> None:
        """Append a note."""
        self._connection.execute(insert(TriageNote).values(values(note)))

    def note_of_form(self, form_key: str) -> NoteRow | None:
        """Return the note that a form was saved as, None when it was not."""
        return next(iter(self._notes(TriageNote.form_key == form_key)), None)

    def notes(self, key: DecisionKey) -> list[NoteRow]:
        """Return the notes on a decision, oldest first."""
        return self._notes(_is(TriageNote, key))

    def site_timezone(self, key: DecisionKey) -> str:
        """Return the time zone of the site that a decision comes from; its last import says."""
        statement = (
            select(CohortSnapshot.site_timezone)
            .join(Instance, Instance.snapshot_id == CohortSnapshot.id)
            .where(Instance.patient_id == key.patient_id, Instance.snapshot_at == key.snapshot_at)
            .order_by(CohortSnapshot.id.desc())
            .limit(1)
        )
        return self._connection.execute(statement).scalar_one()

    def _acts(self, condition: Any, order: Any) -> list[TriageActRow]:
        statement = (
            select(*columns(TriageAct, NewTriageAct), TriageAct.id, Person.name.label("person_name"))
            .join(Person, Person.id == TriageAct.person_id)
            .where(condition)
            .order_by(order)
        )
        return read_all(self._connection, TriageActRow, statement)

    def _notes(self, condition: Any) -> list[NoteRow]:
        statement = (
            select(*columns(TriageNote, NewNote), TriageNote.id, Person.name.label("person_name"))
            .join(Person, Person.id == TriageNote.person_id)
            .where(condition)
            .order_by(TriageNote.id)
        )
        return read_all(self._connection, NoteRow, statement)


def _is(model: type[TriageAct | TriageNote], key: DecisionKey) -> Any:
    return and_(
        model.patient_id == key.patient_id, model.snapshot_at == key.snapshot_at, model.task_key == key.task_key
    )
