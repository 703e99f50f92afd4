"""What is kept beside sealed records and follows from them: where triage stands, and who holds which slot.

It is compared and not sealed: a hold changes whenever somebody opens a case, which leaves no row in the audit trail.
Who holds a slot for the coming hours follows from nothing; any reader of the study may open the case.
"""

from datetime import datetime, timedelta

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from db.models import Assignment, Judgment, Study, StudyCase, StudyReader, Triage, TriageAct
from db.models.base import aliased
from db.queries.reading import given
from db.queries.slots import is_current

_CLOCK_ASTRAY = timedelta(days=1)
_WRONG = "it was changed past the program"
_later = aliased(TriageAct)
_DECISION = ("patient_id", "snapshot_at", "task_key")


def _same(one: type[Triage | TriageAct], other: type[Triage | TriageAct], *names: str) -> sa.ColumnElement[bool]:
    return sa.and_(*(getattr(one, name) == getattr(other, name) for name in names))


_STANDS = sa.and_(
    Triage.act_id == TriageAct.id,
    _same(Triage, TriageAct, *_DECISION, "version", "state"),
    Triage.snoozed_until.is_not_distinct_from(TriageAct.snoozed_until),
)
_LAST = ~sa.exists().where(_same(_later, TriageAct, *_DECISION), _later.version > TriageAct.version)
_ACT_WITHOUT_STANDING = sa.select(TriageAct.id).where(_LAST, ~sa.exists().where(_STANDS)).limit(1)
_STANDING_WITHOUT_ACT = sa.select(Triage.act_id).where(~sa.exists().where(_LAST, _STANDS)).limit(1)

_HOLDER = sa.and_(Judgment.case_id == Assignment.case_id, Judgment.reviewer_id == Assignment.reviewer_id)
_JUDGED = sa.exists().where(_HOLDER, Judgment.answer.is_not(None), is_current(Judgment))
_IS_READER = sa.exists().where(
    StudyCase.id == Assignment.case_id,
    StudyReader.study_id == StudyCase.study_id,
    StudyReader.person_id == Assignment.reviewer_id,
)
_IS_KEPT = sa.and_(Assignment.held_until.is_(None), Assignment.put_off_at.is_(None))
_VOTE_WITHOUT_SLOT = (
    sa.select(Judgment.case_id)
    .where(Judgment.answer.is_not(None), is_current(Judgment), ~sa.exists().where(_HOLDER, _IS_KEPT))
    .limit(1)
)
_WRONGLY_HELD = (
    sa.select(Assignment.case_id)
    .where(
        sa.case(
            (Assignment.reviewer_id.is_(None), ~_IS_KEPT),
            (Assignment.held_until.is_(None), ~_JUDGED),
            else_=sa.false(),
        )
        | (Assignment.reviewer_id.is_not(None) & ~_IS_READER)
    )
    .limit(1)
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

    Parameters
    ----------
    connection : Connection
        On which the seals were found whole.
    now : datetime
        Aware; a hold that ends much later than a hold may last was put in past the program.
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
