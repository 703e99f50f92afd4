"""The audit trail: one row for each act, sealed with the hash of the row before, so that tampering shows."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from core.errors import InvalidInputError, StoreError
from db.connection.engine import canonical_json, take_turn_at_trail
from db.models import Assignment, AuditEvent, Judgment, Study, StudyCase, StudyReader, Triage, TriageAct
from db.queries.reading import Repository, given, make_records, select_records
from db.queries.seals import LATER, Seals, all_seals, compare, has_marks, kind_of, put_seals, take_seals

GENESIS = "0" * 64
"""What the first row names as the hash before it."""

SEALED = "records sealed"
"""Act of the program: sealing what no act has sealed."""
SEALS = "sealed"
"""Key of the seals in the details of a row."""
LATER_SEALS = "sealed further"
"""Key of the seals that versions before schema 0012 do not look for: after a downgrade they find nothing missing."""
CHECKSUM = "files"
"""Key of the checksum of files in the details of a row."""
_BY_OBJECT = (
    select_records(AuditEvent).where(AuditEvent.object == given("thing")).order_by(AuditEvent.sequence.desc()).limit(1)
)
_MARKED, _MARKED_LATER = f'"{SEALS}":{{', f'"{LATER_SEALS}":{{'
_SEALS_AT_ONCE = 1_000
_LAST = sa.select(AuditEvent.sequence, AuditEvent.hash).order_by(AuditEvent.sequence.desc()).limit(1)
_ALL = select_records(AuditEvent).order_by(AuditEvent.sequence).execution_options(yield_per=5_000)


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What a check of the chain found."""

    n_events: int  # rows looked at
    head: str  # hash of the last row; printed in exports and backups, it also shows a cut tail
    problem: str  # empty when the chain is whole, else a sentence that names the first row that does not fit


@dataclass(frozen=True, slots=True)
class StepBack:
    """A row that is dated before the row in front of it."""

    sequence: int
    by: timedelta


class AuditTrail(Repository):
    """The audit trail."""

    def append(self, at: datetime, actor: str, action: str, thing: str, details: dict[str, Any]) -> None:
        """Add the row of an act, with seals of what the act wrote; kept or lost together with the act.

        Writers take turns (see `db.connection.engine`), so the row before is known for certain. The actor is "person 3"
        or "command line", the action a past tense ("judgment saved"), the thing "case 17 of study demo", never a
        patient's identifier; details are before, after and reason, in values that JSON knows.
        """
        take_turn_at_trail(self._connection)
        last = self._run(_LAST).one_or_none()
        for name, seal in take_seals(self._connection).items():
            key = LATER_SEALS if name.rpartition(" ")[0] in LATER else SEALS
            details = details | {key: details.get(key, {}) | {name: seal}}
        event = AuditEvent(
            sequence=last.sequence + 1 if last else 1,
            at=at.astimezone(UTC).isoformat(timespec="microseconds"),
            actor=actor,
            action=action,
            object=thing,
            details=canonical_json(details),
            previous_hash=last.hash if last else GENESIS,
            hash="",
        )
        self._insert(replace(event, hash=_seal(event)))

    def latest(
        self, limit: int = 100, before: int | None = None, *, action: str = "", thing: str = "", actor: str = ""
    ) -> list[AuditEvent]:
        """Return the newest rows, newest first, before a sequence number.

        Action, thing and actor, where given, must be exactly these.
        """
        statement = select_records(AuditEvent).order_by(AuditEvent.sequence.desc()).limit(limit)
        if before is not None:
            statement = statement.where(AuditEvent.sequence < before)
        if action:
            statement = statement.where(AuditEvent.action == action)
        if thing:
            statement = statement.where(AuditEvent.object == thing)
        if actor:
            statement = statement.where(AuditEvent.actor == actor)
        return self._all(AuditEvent, statement)

    def checksum(self, thing: str) -> str | None:
        """Return the checksum of the files of an import or a run that its newest such row holds, None without any."""
        rows = self._all(AuditEvent, _BY_OBJECT.where(AuditEvent.details.contains(f'"{CHECKSUM}":')), thing_=thing)
        return str(json.loads(rows[0].details)[CHECKSUM]) if rows else None

    def actions(self) -> list[str]:
        """Return every kind of act there is, in alphabetical order."""
        return sorted(self._run(sa.select(AuditEvent.action).distinct()).scalars())

    def all(self) -> Iterator[dict[str, Any]]:
        """Yield every row as it is hashed, oldest first, few in memory at a time."""
        with self._stream() as events:
            yield from map(vars, events)

    @contextmanager
    def _stream(self) -> Iterator[Iterator[AuditEvent]]:
        """Open all rows, and close what the server holds for them however the reading ends."""
        with self._run(_ALL) as found:
            yield make_records(AuditEvent, tuple(found.keys()), found)

    def count(self) -> int:
        """Return the number of rows; they are numbered without gaps."""
        return self._run(sa.select(sa.func.max(AuditEvent.sequence))).scalar_one_or_none() or 0

    def head(self) -> str:
        """Return the hash of the last row."""
        last = self._run(_LAST).one_or_none()
        return last.hash if last else GENESIS

    def step_back(self) -> StepBack | None:
        """Return the row that is dated farthest before the row in front of it, None if none is."""
        earlier = sa.func.lag(AuditEvent.at).over(order_by=AuditEvent.sequence).label("earlier")
        rows = sa.select(AuditEvent.sequence, AuditEvent.at, earlier).subquery()
        steps = [
            StepBack(sequence, datetime.fromisoformat(before) - datetime.fromisoformat(at))
            for sequence, at, before in self._run(sa.select(rows).where(rows.c.at < rows.c.earlier))
        ]
        return max(steps, key=lambda step: step.by, default=None)

    def seal_rest(self) -> None:
        """Add a row with the seals of what no act has sealed."""
        if has_marks(self._connection):
            self.append(datetime.now(UTC), "program", SEALED, "database", {})

    def seal_former(self, *, again: bool = False) -> bool:
        """Seal everything stored by versions that did not seal it; return whether there was any.

        From then on every change is found; what was changed before cannot be known. `again`: a version that knows no
        `LATER` seals was at work since; what it changed is sealed again.
        """
        if not self._has_details(_MARKED):
            seals = list(all_seals(self._connection))
        elif again or not self._has_details(_MARKED_LATER):
            known = self._last_seals()
            found = all_seals(self._connection)
            seals = [(name, seal) for name, seal in found if kind_of(name) in LATER and known.get(name) != seal]
        else:
            return False
        for start in range(0, len(seals), _SEALS_AT_ONCE):
            put_seals(self._connection, seals[start : start + _SEALS_AT_ONCE])
            self.append(datetime.now(UTC), "program", SEALED, "database", {"reason": "saved by a former version"})
        return bool(seals)

    def _has_details(self, text: str) -> bool:
        asked = sa.select(AuditEvent.sequence).where(AuditEvent.details.contains(text)).limit(1)
        return self._run(asked).first() is not None

    def _last_seals(self) -> Seals:
        with self._stream() as events:
            return {name: seal for event in events for name, seal in _seals_of(event).items()}

    def verify(self, known_head: str | None = None, kept: Mapping[str, str] | None = None) -> ChainReport:
        """Check every row against the one before, and all sealed records against their seals.

        An edited, inserted, removed or swapped row of the trail is found, and so is whatever `db.queries.seals` seals
        and is not as it was saved, and what `db.audit` derives from it. Heads printed earlier, or kept
        somewhere, must still be among the hashes, or the tail was cut. What cannot be a head raises InvalidInputError.
        """
        if known_head is not None and not re.fullmatch(r"[0-9a-f]{64}", known_head := known_head.strip().lower()):
            raise InvalidInputError(f"{known_head!r} is no head. Copy all 64 digits of one that was printed.")
        previous, expected = GENESIS, 0
        awaited = {**(kept or {}), **({known_head: "an earlier print"} if known_head else {})}
        awaited.pop(GENESIS, None)
        sealed: Seals = {}
        with self._stream() as events:
            for event in events:
                expected += 1
                if event.sequence != expected:
                    return ChainReport(expected, previous, f"Row {expected} of the audit trail is missing.")
                if event.previous_hash != previous or event.hash != _seal(event):
                    problem = f"Row {event.sequence} of the audit trail was changed or put in."
                    return ChainReport(expected, previous, problem)
                previous = event.hash
                sealed.update(_seals_of(event))
                awaited.pop(previous, None)
        if awaited:
            where = next(iter(awaited.values()))
            problem = f"The end of the audit trail was cut, or the trail exchanged: the head of {where} is gone."
        else:
            problem = compare(self._connection, sealed) or derived_problem(self._connection, datetime.now(UTC))
        return ChainReport(expected, previous, problem)

    def require_whole(self, known_head: str | None = None, kept: Mapping[str, str] | None = None) -> ChainReport:
        """Check like `verify`; raise StoreError, which names the first row that does not fit, if something does not."""
        report = self.verify(known_head, kept)
        if report.problem:
            raise StoreError(
                f"{report.problem} Restore the last verified backup and inform whoever is responsible for the data."
            )
        return report


def _seals_of(event: AuditEvent) -> Seals:
    if _MARKED not in event.details and _MARKED_LATER not in event.details:
        return {}
    details = json.loads(event.details)
    return {**details.get(SEALS, {}), **details.get(LATER_SEALS, {})}


def _seal(event: AuditEvent) -> str:
    """Hash all fields, texts with their lengths, so that no shifting of text between fields gives the same hash."""
    texts = "".join([f"{len(text)}:{text}" for text in (event.actor, event.action, event.object, event.details)])
    return hashlib.sha256(f"{event.sequence}:{event.at}:{texts}{event.previous_hash}".encode()).hexdigest()


_CLOCK_ASTRAY = timedelta(days=1)
_WRONG = "it was changed past the program"
_DECISION = ("patient_id", "snapshot_at", "task_key")
_READING = ("case_id", "reviewer_id")


def _same(one: Any, other: Any, *names: str) -> sa.ColumnElement[bool]:
    return sa.and_(*(getattr(one, name) == getattr(other, name) for name in names))


def _latest(model: type[Judgment | TriageAct], *names: str) -> Any:
    """Return the highest version of each, grouped: row by row, a server compares every version with every other."""
    owners = [getattr(model, name) for name in names]
    return sa.select(*owners, sa.func.max(model.version).label("version")).group_by(*owners).subquery().c


_LATEST_ACTS = _latest(TriageAct, *_DECISION)
_STANDS = sa.and_(
    Triage.act_id == TriageAct.id,
    _same(Triage, TriageAct, *_DECISION, "version", "state"),
    Triage.snoozed_until.is_not_distinct_from(TriageAct.snoozed_until),
)
_ACT_WITHOUT_STANDING = (
    sa.select(sa.func.min(TriageAct.id))
    .join(_LATEST_ACTS.version.table, _same(TriageAct, _LATEST_ACTS, *_DECISION, "version"))
    .outerjoin(Triage, _STANDS)
    .where(Triage.act_id.is_(None))
)
_STANDING_WITHOUT_ACT = (
    sa.select(sa.func.min(Triage.act_id))
    .outerjoin(_LATEST_ACTS.version.table, _same(Triage, _LATEST_ACTS, *_DECISION))
    .where(_LATEST_ACTS.version.is_(None))
)

_LATEST_JUDGMENTS = _latest(Judgment, *_READING)
_VOTE = (
    sa.select(Judgment.case_id, Judgment.reviewer_id)
    .join(_LATEST_JUDGMENTS.version.table, _same(Judgment, _LATEST_JUDGMENTS, *_READING, "version"))
    .where(Judgment.answer.is_not(None))
    .subquery()
)
_IS_READER = sa.exists().where(
    StudyCase.id == Assignment.case_id,
    StudyReader.study_id == StudyCase.study_id,
    StudyReader.person_id == Assignment.reviewer_id,
)
_IS_KEPT = sa.and_(Assignment.held_until.is_(None), Assignment.put_off_at.is_(None))
_VOTE_WITHOUT_SLOT = (
    sa.select(sa.func.min(_VOTE.c.case_id))
    .outerjoin(Assignment, sa.and_(_same(_VOTE.c, Assignment, *_READING), _IS_KEPT))
    .where(Assignment.case_id.is_(None))
)
_WRONGLY_HELD = (
    sa.select(sa.func.min(Assignment.case_id))
    .outerjoin(_VOTE, _same(_VOTE.c, Assignment, *_READING))
    .where(
        sa.case(
            (Assignment.reviewer_id.is_(None), ~_IS_KEPT),
            (~_IS_READER, sa.true()),
            else_=sa.and_(Assignment.held_until.is_(None), _VOTE.c.case_id.is_(None)),
        )
    )
)
_OTHER_SLOTS = (
    sa.select(StudyCase.id)
    .join(Study, Study.id == StudyCase.study_id)
    .outerjoin(Assignment, Assignment.case_id == StudyCase.id)
    .group_by(StudyCase.id, Study.n_slots)
    .having(
        (sa.func.count(Assignment.slot) != Study.n_slots)
        | (sa.func.min(Assignment.slot) != 1)
        | (sa.func.max(Assignment.slot) != Study.n_slots)
    )
    .limit(1)
)
_HELD_TOO_LONG = (
    sa.select(Assignment.case_id)
    .join(StudyCase, StudyCase.id == Assignment.case_id)
    .where(StudyCase.study_id == given("study_id"), Assignment.held_until > given("longest"))
    .limit(1)
)
_HOLD_HOURS = sa.select(Study.id, Study.hold_hours)


def derived_problem(connection: Connection, now: datetime) -> str:
    """Return a sentence on the first thing that does not follow from the sealed records, or "".

    The seals were found whole. A hold that ends much later than a hold may last was put in past the program.
    """
    for asked, said in (
        (_ACT_WITHOUT_STANDING, "What the triage act {} led to is not as it was saved"),
        (_STANDING_WITHOUT_ACT, "Where triage stands by act {} does not follow from its acts"),
        (_VOTE_WITHOUT_SLOT, "A judgment of case {} has lost its reader's slot"),
        (_WRONGLY_HELD, "A slot of case {} is held by somebody who neither judged nor may open it"),
        (_OTHER_SLOTS, "The case {} does not have the slots of its study"),
    ):
        number = connection.execute(asked).scalar_one_or_none()
        if number is not None:
            return f"{said.format(number)}: {_WRONG}, or the disk is failing."
    for study_id, hours in connection.execute(_HOLD_HOURS).all():
        values = {"study_id_": study_id, "longest_": now + timedelta(hours=hours) + _CLOCK_ASTRAY}
        number = connection.execute(_HELD_TOO_LONG, values).scalar_one_or_none()
        if number is not None:
            return (
                f"A slot of case {number} is held for longer than its study allows: {_WRONG}, or the clock was wrong."
            )
    return ""
