"""Statements of opening a case and saving a judgment: put together once, and then only given values.

Thirty readers who judge at once share one processor; putting a statement together costs three times as much as running
it. Names of values end in `_` where a column has the same name.
"""

from functools import cache

from sqlalchemy import ColumnElement, Update, and_, literal_column, select, update

from db.models import (
    Assignment,
    CohortSnapshot,
    Draft,
    Instance,
    Judgment,
    Person,
    Rubric,
    ScoreSeen,
    Study,
    StudyCase,
    StudyReader,
    Task,
)
from db.models.base import aliased, columns
from db.queries.reading import Query, given
from db.queries.slots import is_current

_VERSION = columns(Judgment)


_TERMS = (
    Study.id,
    Study.slug,
    Study.status,
    Study.rubric_version,
    Study.order_seed,
    Study.hold_hours,
    Study.is_calibration,
    StudyReader.person_id,
    StudyReader.number,
    Person.active,
    Person.all_units,
)
"""Columns in the order of `ReadingTerms`."""


@cache
def reader_at_study() -> Query:
    """Study by its short name (``slug_``) with somebody as its reader (``person_id_``), null when he is none."""
    return _with_reader(select(*_TERMS).select_from(Study)).where(Study.slug == given("slug"))


def _with_reader(query: Query) -> Query:
    is_reader = and_(StudyReader.study_id == Study.id, StudyReader.person_id == given("person_id"))
    return query.outerjoin(StudyReader, is_reader).outerjoin(Person, Person.id == StudyReader.person_id)


@cache
def state_of_form() -> Query:
    """Everything that decides about a form (``slug_``, ``person_id_``, ``case_id_``, ``form_key_``): always one row.

    The terms of the reader, whether the study has the case, the answers that its rubric offers, case and reader of what
    the form was saved as, whether the reader saw the score, and the reader's current judgment.
    """
    nothing = select(literal_column("1").label("one")).subquery()
    current, same = aliased(Judgment), aliased(Judgment)
    is_own = and_(current.case_id == given("case_id"), current.reviewer_id == given("person_id"), is_current(current))
    return (
        _with_reader(
            select(
                *_TERMS,
                StudyCase.id.label("case_id"),
                Rubric.answer_texts,
                same.case_id.label("saved_case_id"),
                same.reviewer_id.label("saved_reviewer_id"),
                ScoreSeen.person_id.label("seen_by"),
                *(getattr(current, column.key).label(f"current_{column.key}") for column in _VERSION),
            )
            .select_from(nothing)
            .outerjoin(Study, Study.slug == given("slug"))
        )
        .outerjoin(StudyCase, and_(StudyCase.id == given("case_id"), StudyCase.study_id == Study.id))
        .outerjoin(Rubric, and_(Rubric.study_id == Study.id, Rubric.version == Study.rubric_version))
        .outerjoin(ScoreSeen, and_(ScoreSeen.person_id == given("person_id"), _is_of_case(ScoreSeen)))
        .outerjoin(current, is_own)
        .outerjoin(same, same.form_key == given("form_key"))
    )


def _is_of_case(seen: type[ScoreSeen]) -> ColumnElement[bool]:
    return and_(
        seen.patient_id == StudyCase.patient_id,
        seen.snapshot_at == StudyCase.snapshot_at,
        seen.task_key == StudyCase.task_key,
    )


@cache
def saved_form() -> Query:
    """Return what a form was saved as (``form_key_``), with the time zone of the site that its case comes from."""
    return (
        select(Judgment.case_id, Judgment.version, Judgment.answer, Judgment.judged_at, CohortSnapshot.site_timezone)
        .join(StudyCase, StudyCase.id == Judgment.case_id)
        .join(Instance, Instance.id == StudyCase.instance_id)
        .join(CohortSnapshot, CohortSnapshot.id == Instance.snapshot_id)
        .where(Judgment.form_key == given("form_key"))
    )


_BLINDED = (
    StudyCase.id.label("case_id"),
    StudyCase.instance_id,
    Instance.row_index,
    CohortSnapshot.content_hash.label("snapshot_hash"),
    CohortSnapshot.site_timezone,
    StudyCase.task_key,
    Task.name.label("task_name"),
    Task.kind,
    CohortSnapshot.import_summary["words"].label("said"),
    StudyCase.decision,
    Instance.sex,
    Instance.age_years,
    Instance.unit,
    Instance.day_of_stay,
)
"""Columns of `BlindedRow`."""


def _of_study(query: Query) -> Query:
    return (
        query.join(Task, Task.id == StudyCase.task_id)
        .join(Instance, Instance.id == StudyCase.instance_id)
        .join(CohortSnapshot, CohortSnapshot.id == Instance.snapshot_id)
        .where(StudyCase.study_id == given("study_id"))
    )


@cache
def blinded_cases(*, one: bool) -> Query:
    """Return what may be known of the cases of a study (``study_id_``), or of one (``case_id_``), while blinded."""
    statement = _of_study(select(*_BLINDED).select_from(StudyCase)).order_by(StudyCase.number)
    return statement.where(StudyCase.id == given("case_id")) if one else statement


@cache
def shown_case() -> Query:
    """Return one blinded case (``study_id_``, ``case_id_``) with its reader's own answer and draft (``person_id_``).

    Columns of `OwnAnswer`, the draft's case, which is null without one, columns of `DraftAnswer`, then the case.
    """
    own = and_(Judgment.case_id == StudyCase.id, Judgment.reviewer_id == given("person_id"), is_current(Judgment))
    drafted = and_(Draft.case_id == StudyCase.id, Draft.reviewer_id == given("person_id"))
    columns_of_own = (Judgment.version, Judgment.answer, Judgment.certainty, Judgment.comment)
    columns_of_draft = (Draft.case_id.label("draft_of"), Draft.answer, Draft.certainty, Draft.comment)
    return (
        _of_study(select(*columns_of_own, *columns_of_draft, *_BLINDED).select_from(StudyCase))
        .outerjoin(Judgment, own)
        .outerjoin(Draft, drafted)
        .where(StudyCase.id == given("case_id"))
    )


@cache
def change_own_slot(*changed: str) -> Update:
    """Change columns of a reader's slot (``case_id_``, ``reviewer_id_``, and each column with `_`)."""
    return (
        update(Assignment)
        .where(Assignment.case_id == given("case_id"), Assignment.reviewer_id == given("reviewer_id"))
        .values({name: given(name) for name in changed})
    )
