"""Statements of opening a case and saving a judgment: put together once, and then only given values.

Thirty readers who judge at once share one processor; putting a statement together costs three times as much as running
it. Names of values end in `_` where a column has the same name.
"""

from functools import cache
from typing import Any

from sqlalchemy import BindParameter, Delete, Select, Update, bindparam, delete, select, update

from db.models import (
    Assignment,
    CohortSnapshot,
    Draft,
    Instance,
    Judgment,
    Person,
    ScoreSeen,
    Study,
    StudyCase,
    StudyReader,
    Task,
)
from db.repositories.reading import columns
from db.rows import JudgmentVersion, StudyRow

Query = Select[*tuple[Any, ...]]


def _given(name: str) -> BindParameter[Any]:
    return bindparam(f"{name}_")


@cache
def study_by_slug() -> Query:
    """Study by its short name (``slug_``)."""
    return select(*columns(Study, StudyRow)).where(Study.slug == _given("slug"))


@cache
def reader_of_study() -> Query:
    """One reader of a study (``study_id_``, ``person_id_``)."""
    return (
        select(StudyReader.person_id, StudyReader.number, Person.name, Person.active)
        .join(Person, Person.id == StudyReader.person_id)
        .where(StudyReader.study_id == _given("study_id"), StudyReader.person_id == _given("person_id"))
    )


@cache
def current_judgment() -> Query:
    """Highest version of a reader's judgment (``case_id_``, ``reviewer_id_``)."""
    return (
        select(*columns(Judgment, JudgmentVersion))
        .where(Judgment.case_id == _given("case_id"), Judgment.reviewer_id == _given("reviewer_id"))
        .order_by(Judgment.version.desc())
        .limit(1)
    )


@cache
def judgment_of_form() -> Query:
    """Version that a form was saved as (``form_key_``)."""
    return select(*columns(Judgment, JudgmentVersion)).where(Judgment.form_key == _given("form_key"))


@cache
def draft_of_reader() -> Query:
    """Draft of a case (``case_id_``, ``reviewer_id_``)."""
    return select(Draft.answer, Draft.certainty, Draft.comment).where(
        Draft.case_id == _given("case_id"), Draft.reviewer_id == _given("reviewer_id")
    )


@cache
def drop_draft() -> Delete:
    """Forget a draft (``case_id_``, ``reviewer_id_``)."""
    return delete(Draft).where(Draft.case_id == _given("case_id"), Draft.reviewer_id == _given("reviewer_id"))


@cache
def case_of_study() -> Query:
    """Case of a study (``case_id_``, ``study_id_``); no row when it is another's."""
    return select(StudyCase.id).where(StudyCase.id == _given("case_id"), StudyCase.study_id == _given("study_id"))


@cache
def zone_of_case() -> Query:
    """Time zone of the site that a case comes from (``case_id_``)."""
    return (
        select(CohortSnapshot.site_timezone)
        .join(Instance, Instance.snapshot_id == CohortSnapshot.id)
        .join(StudyCase, StudyCase.instance_id == Instance.id)
        .where(StudyCase.id == _given("case_id"))
    )


@cache
def score_seen_of_case() -> Query:
    """Whether somebody saw a case's score (``person_id_``, ``case_id_``); no row when not."""
    return (
        select(ScoreSeen.person_id)
        .join(
            StudyCase,
            (StudyCase.patient_id == ScoreSeen.patient_id)
            & (StudyCase.snapshot_at == ScoreSeen.snapshot_at)
            & (StudyCase.task_key == ScoreSeen.task_key),
        )
        .where(ScoreSeen.person_id == _given("person_id"), StudyCase.id == _given("case_id"))
    )


@cache
def blinded_cases(*, one: bool) -> Query:
    """Give what may be known of the cases of a study (``study_id_``), or of one (``case_id_``), while blinded."""
    statement = (
        select(
            StudyCase.id.label("case_id"),
            StudyCase.instance_id,
            StudyCase.task_key,
            StudyCase.decision,
            Task.name.label("task_name"),
            Task.kind,
            Instance.row_index,
            Instance.sex,
            Instance.age_years,
            Instance.unit,
            Instance.day_of_stay,
            Instance.window_hours,
            CohortSnapshot.content_hash.label("snapshot_hash"),
            CohortSnapshot.site_timezone,
        )
        .join(Task, Task.id == StudyCase.task_id)
        .join(Instance, Instance.id == StudyCase.instance_id)
        .join(CohortSnapshot, CohortSnapshot.id == Instance.snapshot_id)
        .where(StudyCase.study_id == _given("study_id"))
        .order_by(StudyCase.number)
    )
    return statement.where(StudyCase.id == _given("case_id")) if one else statement


@cache
def change_own_slot(*changed: str) -> Update:
    """Change columns of a reader's slot (``case_id_``, ``reviewer_id_``, and each column with `_`)."""
    return (
        update(Assignment)
        .where(Assignment.case_id == _given("case_id"), Assignment.reviewer_id == _given("reviewer_id"))
        .values({name: _given(name) for name in changed})
    )
