"""What is kept beside sealed records and follows from them: where triage stands, and who holds which slot.

It is compared and not sealed: a hold changes whenever somebody opens a case, which leaves no row in the audit trail.
Who holds a slot for the coming hours follows from nothing; any reader of the study may open the case.
"""

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from db.models import Assignment, Judgment, Study, StudyCase, StudyReader, Triage, TriageAct
from db.queries.reading import given

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
