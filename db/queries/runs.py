"""Statements that every look at a list or an alert asks: put together once, and then only given values.

A press in the worklist asks a score of small questions; putting them together would take several times as long as
answering them. Names of values end in `_` where a column has the same name.
"""

from functools import cache
from typing import Any

from sqlalchemy import Select, bindparam, func, select

from core.vocabulary import RunStatus, TriageState
from db.models import (
    Account,
    Alert,
    CohortSnapshot,
    Instance,
    Person,
    ScoreSeen,
    ScoringRun,
    SignInSession,
    Task,
    TaskResult,
    Triage,
    TriageAct,
)
from db.models.types import UtcDateTime
from db.queries.reading import columns
from db.rows import AccountRow, AlertRecord, PersonRow, RunRow, SessionRow, SnapshotRow, TaskPast, TriageRow

Query = Select[*tuple[Any, ...]]

_OF_TASK = {
    "task_name": Task.name,
    **{name: getattr(Task, name) for name in ("task_key", "order_group", "column_index")},
}
_OF_INSTANCE = ("row_index", "patient_id", "stay_id", "snapshot_at", "day_of_stay", "age_years", "sex", "window_hours")


def _column(name: str) -> Any:
    """Column of an alert's record by its name."""
    if name in _OF_TASK:
        return _OF_TASK[name].label(name)
    return getattr(Instance if name in _OF_INSTANCE else Alert, name)


@cache
def snapshot_by_number() -> Query:
    """Import (``snapshot_id``)."""
    return select(*columns(CohortSnapshot, SnapshotRow)).where(CohortSnapshot.id == bindparam("snapshot_id"))


@cache
def latest_snapshot() -> Query:
    """Import stored last."""
    return select(*columns(CohortSnapshot, SnapshotRow)).order_by(CohortSnapshot.id.desc()).limit(1)


@cache
def latest_is_simulated() -> Query:
    """Whether the import stored last has no real patients."""
    return select(CohortSnapshot.simulated).order_by(CohortSnapshot.id.desc()).limit(1)


@cache
def any_account() -> Query:
    """Somebody who has an account."""
    return select(Account.person_id).limit(1)


@cache
def session_of_token() -> Query:
    """Session, ended or not (``token_hash_``)."""
    return select(*columns(SignInSession, SessionRow)).where(SignInSession.token_hash == bindparam("token_hash_"))


@cache
def account_of_person() -> Query:
    """Account (``person_id_``)."""
    return select(*columns(Account, AccountRow)).where(Account.person_id == bindparam("person_id_"))


@cache
def person_by_number() -> Query:
    """Person (``person_id_``)."""
    return select(*columns(Person, PersonRow)).where(Person.id == bindparam("person_id_"))


@cache
def all_people() -> Query:
    """People in the order of joining."""
    return select(*columns(Person, PersonRow)).order_by(Person.id)


@cache
def run_by_number() -> Query:
    """Run in any state (``run_id_``)."""
    return select(*columns(ScoringRun, RunRow)).where(ScoringRun.id == bindparam("run_id_"))


@cache
def published_runs() -> Query:
    """All published runs, newest first."""
    return (
        select(*columns(ScoringRun, RunRow))
        .where(ScoringRun.status == RunStatus.PUBLISHED)
        .order_by(ScoringRun.published_at.desc(), ScoringRun.id.desc())
    )


@cache
def latest_run() -> Query:
    """Run published last."""
    return published_runs().limit(1)


@cache
def folds_of_run() -> Query:
    """Folds of a run (``run_id_``)."""
    return select(ScoringRun.fold_of_row).where(ScoringRun.id == bindparam("run_id_"))


@cache
def past_of_task() -> Query:
    """Past of a task as a scorer knows it (``run_id_``, ``task_id_``, ``scorer_``), without vectors over instances."""
    return select(*columns(TaskResult, TaskPast)).where(
        TaskResult.run_id == bindparam("run_id_"),
        TaskResult.task_id == bindparam("task_id_"),
        TaskResult.scorer == bindparam("scorer_"),
    )


@cache
def alert_records() -> Query:
    """Alerts with instance and task, columns in the order of `AlertRecord`, by number (``ids``)."""
    return (
        select(*(_column(name) for name in AlertRecord.__dataclass_fields__))
        .join(Task, Task.id == Alert.task_id)
        .join(Instance, Instance.id == Alert.instance_id)
        .where(Alert.id.in_(bindparam("ids", expanding=True)))
    )


@cache
def published_alert() -> Query:
    """One alert (``alert_id``) of a published run, as `alert_records`."""
    return (
        select(*(_column(name) for name in AlertRecord.__dataclass_fields__))
        .join(Task, Task.id == Alert.task_id)
        .join(Instance, Instance.id == Alert.instance_id)
        .join(ScoringRun, ScoringRun.id == Alert.run_id)
        .where(Alert.id == bindparam("alert_id"), ScoringRun.published_at.is_not(None))
    )


@cache
def standing_of_patients() -> Query:
    """Where the decisions of some patients (``patients``) stand, as far as anybody has touched them."""
    return select(*columns(Triage, TriageRow)).where(Triage.patient_id.in_(bindparam("patients", expanding=True)))


@cache
def latest_triage_change() -> Query:
    """Return the number of the last act of triage, and how many snoozes are over (``now``)."""
    over = (Triage.state == TriageState.SNOOZED, Triage.snoozed_until <= bindparam("now", type_=UtcDateTime()))
    return select(
        select(func.max(TriageAct.id)).scalar_subquery().label("last_act"),
        select(func.count()).select_from(Triage).where(*over).scalar_subquery().label("n_over"),
    )


@cache
def score_seen_of_decision() -> Query:
    """Whether somebody (``person_id_``) saw the score of a decision (``patient``, ``at``, ``task``) before."""
    return select(ScoreSeen.person_id).where(
        ScoreSeen.person_id == bindparam("person_id_"),
        ScoreSeen.patient_id == bindparam("patient"),
        ScoreSeen.snapshot_at == bindparam("at", type_=UtcDateTime()),
        ScoreSeen.task_key == bindparam("task"),
    )
