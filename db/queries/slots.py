"""Queries that everything about slots goes through: the place of a reader, and the state of every slot.

They are put together once and then only given values: putting such a query together takes longer than running it.
"""

from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Integer,
    Update,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal_column,
    null,
    or_,
    select,
    type_coerce,
    update,
)

from core.vocabulary import NO_VOTES, SlotState, StudyStatus
from db.models import Assignment, CohortSnapshot, Draft, Instance, Judgment, ScoreSeen, Study, StudyCase, StudyReader
from db.models.base import aliased
from db.models.types import UtcDateTime, words
from db.queries.json_rows import JsonRows
from db.queries.reading import Query


def is_current(judgment: Any) -> ColumnElement[bool]:
    """Condition that a version is the highest of its case and reader."""
    later = aliased(Judgment)
    return ~exists().where(
        later.case_id == judgment.case_id,
        later.reviewer_id == judgment.reviewer_id,
        later.version > judgment.version,
    )


def is_claimable(assignment: Any, now: datetime | BindParameter[datetime]) -> ColumnElement[bool]:
    """Condition that a slot can be had: nobody holds it, or the hold has lapsed. A judged slot has no end of hold."""
    return or_(assignment.reviewer_id.is_(None), assignment.held_until < now)


@cache
def hold_slot() -> Update:
    """Hold a case for a reader (``case_id_``, ``study_id_``, ``reviewer``, ``now``, ``until``) while the study is open.

    The own slot is held longer, and stays as it is when it is judged; else the first that can be had is taken. Meets
    no row when there is none.
    """
    reader = bindparam("reviewer", type_=Integer())
    now = bindparam("now", type_=UtcDateTime())
    candidate = aliased(Assignment)
    of_case = bindparam("case_id_", type_=Integer())
    own_first = case((candidate.reviewer_id == reader, 0), else_=1)
    chosen = (
        select(candidate.slot)
        .where(candidate.case_id == of_case, or_(candidate.reviewer_id == reader, is_claimable(candidate, now)))
        .order_by(own_first, candidate.slot)
        .limit(1)
        .scalar_subquery()
    )
    is_own = Assignment.reviewer_id == reader
    is_open = exists().where(
        Study.id == bindparam("study_id_", type_=Integer()), Study.status == literal_column("'open'")
    )
    return (
        update(Assignment)
        .where(Assignment.case_id == of_case, Assignment.slot == chosen)
        .where(or_(is_own, is_claimable(Assignment, now)), is_open)
        .values(
            reviewer_id=reader,
            held_until=case(
                (and_(is_own, Assignment.held_until.is_(None)), null()),
                else_=bindparam("until", type_=UtcDateTime()),
            ),
            put_off_at=case((is_own, Assignment.put_off_at), else_=null()),
        )
    )


@cache
def reader_slots() -> Query:
    """One reader's slot in each case of a study (``study_id``, ``person_id``, ``now``): four lists in JSON rows.

    In no order: the reader's own slots with state and end of hold; cases of which a slot is to be had; all cases;
    repeats with their original and number. Each is read from indexes as far as that goes, which together takes a third
    of the time of one row for each case. Of other readers nothing is read but whether they leave a slot.
    """
    judgment, other, original = aliased(Judgment), aliased(Assignment), aliased(StudyCase)
    person_id = bindparam("person_id", type_=Integer())
    of_study = StudyCase.study_id == bindparam("study_id", type_=Integer())
    own = (
        select(JsonRows(Assignment.case_id, _state(judgment), Assignment.held_until))
        .join(StudyCase, StudyCase.id == Assignment.case_id)
        .outerjoin(judgment, _is_holders(judgment))
        .outerjoin(Draft, and_(Draft.case_id == Assignment.case_id, Draft.reviewer_id == Assignment.reviewer_id))
        .where(Assignment.reviewer_id == person_id, of_study)
    )
    to_be_had = exists().where(
        other.case_id == StudyCase.id,
        or_(other.reviewer_id.is_(None), other.reviewer_id != person_id),
        is_claimable(other, bindparam("now", type_=UtcDateTime())),
    )
    repeats = (
        select(JsonRows(StudyCase.id, original.id, StudyCase.repeat_number))
        .join(
            original,
            and_(
                original.study_id == StudyCase.study_id,
                original.instance_id == StudyCase.instance_id,
                original.task_id == StudyCase.task_id,
                original.repeat_number == 0,
            ),
        )
        .where(of_study, StudyCase.repeat_number > 0)
    )
    return select(
        own.scalar_subquery(),
        select(JsonRows(StudyCase.id)).where(of_study, to_be_had).scalar_subquery(),
        select(JsonRows(StudyCase.id)).where(of_study).scalar_subquery(),
        repeats.scalar_subquery(),
    )


@cache
def holds_of_others() -> Query:
    """When the first hold of somebody else lapses (``study_id``, ``person_id``, ``now``), by case, as JSON rows."""
    first = (
        select(Assignment.case_id, func.min(Assignment.held_until).label("lapses"))
        .join(StudyCase, StudyCase.id == Assignment.case_id)
        .where(
            StudyCase.study_id == bindparam("study_id", type_=Integer()),
            Assignment.reviewer_id != bindparam("person_id", type_=Integer()),
            Assignment.held_until >= bindparam("now", type_=UtcDateTime()),
        )
        .group_by(Assignment.case_id)
        .subquery()
    )
    return select(JsonRows(*first.c))


@cache
def slots_with_state() -> Query:
    """Every slot of a study (``study_id``), or of one case of it (``case_id``, else null), with state and answer."""
    judgment = aliased(Judgment)
    case_id = bindparam("case_id", type_=Integer())
    return (
        select(
            Assignment.case_id,
            StudyCase.repeat_number,
            Assignment.slot,
            Assignment.reviewer_id,
            Assignment.held_until,
            _state(judgment),
            judgment.answer,
        )
        .join(StudyCase, StudyCase.id == Assignment.case_id)
        .outerjoin(judgment, _is_holders(judgment))
        .outerjoin(Draft, and_(Draft.case_id == Assignment.case_id, Draft.reviewer_id == Assignment.reviewer_id))
        .where(StudyCase.study_id == bindparam("study_id", type_=Integer()))
        .where(or_(case_id.is_(None), StudyCase.id == case_id))
        .order_by(StudyCase.number, Assignment.slot)
    )


@cache
def awaited_decisions() -> Query:
    """Patient, time and task of the cases that somebody (``reader``) has still to judge blindly, in open studies.

    A case whose slots all have a judgment, by others, is no longer to be judged by him. Cases of open panels are none
    of them, unless a blinded study has the same decision.
    """
    reader = bindparam("reader", type_=Integer())
    own, others = aliased(Judgment), aliased(Judgment)
    judged = exists().where(
        own.case_id == StudyCase.id, own.reviewer_id == reader, own.answer.is_not(None), is_current(own)
    )
    taken = exists().where(
        others.case_id == Assignment.case_id,
        others.reviewer_id == Assignment.reviewer_id,
        others.answer.is_not(None),
        is_current(others),
    )
    has_room = exists().where(Assignment.case_id == StudyCase.id, ~taken)
    return (
        select(StudyCase.patient_id, StudyCase.snapshot_at, StudyCase.task_key)
        .join(Study, Study.id == StudyCase.study_id)
        .join(StudyReader, (StudyReader.study_id == Study.id) & (StudyReader.person_id == reader))
        .where(Study.status == StudyStatus.OPEN, ~Study.is_open_panel, ~judged, has_room)
        .distinct()
    )


@cache
def awaited_decision() -> Query:
    """One of `awaited_decisions` (``reader``, ``patient``, ``at``, ``task``); no row when it is none of them."""
    return awaited_decisions().where(is_of_decision(StudyCase))


@cache
def panel_slots() -> Query:
    """Columns of `PanelSlot`: cases of a decision (``patient``, ``at``, ``task``) in open panels of a reader.

    Only those in which the reader (``reader``) has a slot or, at this time (``now``), can get one; newest study first.
    """
    reader = bindparam("reader", type_=Integer())
    slot = aliased(Assignment)
    has_slot = exists().where(
        slot.case_id == StudyCase.id,
        or_(slot.reviewer_id == reader, is_claimable(slot, bindparam("now", type_=UtcDateTime()))),
    )
    return (
        select(Study.id, Study.slug, Study.title, StudyCase.id.label("case_id"), CohortSnapshot.site_timezone)
        .select_from(StudyCase)
        .join(Study, Study.id == StudyCase.study_id)
        .join(StudyReader, (StudyReader.study_id == Study.id) & (StudyReader.person_id == reader))
        .join(Instance, Instance.id == StudyCase.instance_id)
        .join(CohortSnapshot, CohortSnapshot.id == Instance.snapshot_id)
        .where(Study.status == StudyStatus.OPEN, Study.is_open_panel, has_slot, is_of_decision(StudyCase))
        .order_by(Study.id.desc())
    )


def is_of_decision(model: type[StudyCase | ScoreSeen]) -> ColumnElement[bool]:
    """Condition that a row is of one decision (``patient``, ``at``, ``task``)."""
    return and_(
        model.patient_id == bindparam("patient"),
        model.snapshot_at == bindparam("at", type_=UtcDateTime()),
        model.task_key == bindparam("task"),
    )


def _state(judgment: Any) -> ColumnElement[Any]:
    """State of a slot, from the joined current judgment and draft of its holder.

    Every count on every page goes through this one expression, which is why they add up.
    """
    states = case(
        (Assignment.reviewer_id.is_(None), SlotState.FREE.value),
        (judgment.answer.in_(NO_VOTES), SlotState.CANNOT_JUDGE.value),
        (judgment.answer.is_not(null()), SlotState.SUBMITTED.value),
        (Assignment.put_off_at.is_not(None), SlotState.LATER.value),
        (Draft.case_id.is_not(None), SlotState.DRAFT.value),
        else_=SlotState.OPENED.value,
    )
    return type_coerce(states, words(SlotState, "state")).label("state")


def _is_holders(judgment: Any) -> ColumnElement[bool]:
    return and_(
        judgment.case_id == Assignment.case_id, judgment.reviewer_id == Assignment.reviewer_id, is_current(judgment)
    )
