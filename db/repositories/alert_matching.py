"""Turns restrictions on alerts into conditions that an index or the order of ranks can answer."""

from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, false, func, not_, or_, select
from sqlalchemy.engine import Connection

from core.vocabulary import AlertId, Decision, InstanceId, RunId, TaskId, TriageState
from db.models import Alert, AlertFilters, Instance, ScoringRun, Task, Triage
from db.queries.reading import SEEN, in_parts, run

FEW_INSTANCES = 2_000
"""Up to so many instances of some days, their alerts are gathered; beyond, the list is walked by rank."""


def of_scorer(run_id: RunId, scorer: str = "") -> ColumnElement[bool]:
    """Restrict alerts to the lists of one scorer of a run; without a name to those of its first."""
    if "\0" in scorer:
        return false()  # no name holds it, and PostgreSQL would not even take the question
    first = select(ScoringRun.scorer).where(ScoringRun.id == run_id).scalar_subquery()
    return and_(Alert.run_id == run_id, Alert.scorer == (scorer or first))


_CONDITIONS: dict[str, Callable[[Any, RunId], ColumnElement[bool]]] = {
    "decision": lambda decision, _: Alert.decision == decision,
    "kind": lambda kind, _: Alert.kind == kind,
    "unit": lambda unit, _: Alert.unit == unit,
    "patient_id": lambda patient, run_id: Alert.instance_id.in_(
        _instances(run_id).where(Instance.patient_id == patient)
    ),
}
"""Filters that one condition answers, from the value and the number of the run; nothing is asked for an empty value."""


def matching(connection: Connection, run_id: RunId, filters: AlertFilters) -> Select[AlertId]:
    """Select the ids of the alerts of a run that filters let through, without an order.

    Parameters
    ----------
    connection : Connection
        Looks up what the shape of the question depends on.
    run_id : RunId
        Number of the run.
    filters : AlertFilters
    """
    statement = select(Alert.id).where(of_scorer(run_id, filters.get("scorer", "")))
    if any("\0" in value for value in filters.values() if isinstance(value, str)):
        return statement.where(false())  # no name holds it, and PostgreSQL would not even take the question
    for name, condition in _CONDITIONS.items():
        if value := filters.get(name):
            statement = statement.where(condition(value, run_id))
    if (within := filters.get("within")) is not None:
        statement = statement.where(Alert.unit.in_(within))
    statement = statement.where(*_between_ranks(filters))
    if not filters.get("include_cut_windows", False):
        statement = statement.where(not_(and_(Alert.decision == Decision.OMISSION, Alert.window_cut)))
    if filters.get("since") or filters.get("before"):
        statement = statement.where(_in_days(connection, run_id, filters.get("since"), filters.get("before")))
    if filters.get("task_key") or filters.get("text"):
        statement = statement.where(_searched(connection, run_id, filters.get("task_key", ""), filters.get("text", "")))
    if without := filters.get("without"):
        statement = statement.where(Alert.id.not_in(without))
    states, now = filters.get("triage"), filters.get("now")
    if states is not None and now is not None and set(states) != set(TriageState):
        statement = statement.where(_stands_at(connection, run_id, states, now))
    return statement


def triaged(connection: Connection, run_id: RunId, states: Collection[TriageState], now: datetime) -> list[AlertId]:
    """Return the ids of a run's alerts that somebody has triaged and that stand at one of these states.

    A reader, who sees one state of the database as long as he reads, looks once.
    """
    seen: dict[Any, list[AlertId]] | None = connection.get_execution_options().get(SEEN)
    if seen is None:
        return _triaged(connection, run_id, states, now)
    key = (run_id, frozenset(states), now)
    if key not in seen:
        seen[key] = _triaged(connection, run_id, states, now)
    return seen[key]


def _triaged(connection: Connection, run_id: RunId, states: Collection[TriageState], now: datetime) -> list[AlertId]:
    """Look for triaged alerts.

    A snooze that is over stands at "new". Step by step from what was triaged to its alerts: left to itself, the
    database would begin at the alerts, of which there are millions.
    """
    over = and_(Triage.state == TriageState.SNOOZED, Triage.snoozed_until <= now)
    stands: list[Any] = [and_(Triage.state.in_(states), not_(over))]
    if TriageState.NEW in states:
        stands.append(over)
    keys = select(Triage.patient_id, Triage.snapshot_at, Triage.task_key).where(or_(*stands))
    wanted = {(row.patient_id, row.snapshot_at, row.task_key) for row in run(connection, keys)}
    patients = sorted({patient for patient, _, _ in wanted})
    found: list[AlertId] = []
    run_of_alert: Any = Alert.run_id + 0
    for some in in_parts(patients):
        for ids in in_parts(run(connection, _instances(run_id).where(Instance.patient_id.in_(some))).scalars().all()):
            rows = run(
                connection,
                select(Alert.id, Instance.patient_id, Instance.snapshot_at, Task.task_key)
                .join(Instance, Instance.id == Alert.instance_id)
                .join(Task, Task.id == Alert.task_id)
                .where(run_of_alert == run_id, Alert.instance_id.in_(ids)),
            )
            found += [id_ for id_, *key in rows if tuple(key) in wanted]
    return found


def _stands_at(
    connection: Connection, run_id: RunId, states: Collection[TriageState], now: datetime
) -> ColumnElement[bool]:
    """Whether an alert stands at one of these states; what nobody has touched is new."""
    if TriageState.NEW not in states:
        found = triaged(connection, run_id, states, now)
        return Alert.id.in_(found) if found else false()
    return Alert.id.not_in(triaged(connection, run_id, [state for state in TriageState if state not in states], now))


def _between_ranks(filters: AlertFilters) -> list[ColumnElement[bool]]:
    decision = filters.get("decision")
    max_ranks, min_ranks = filters.get("max_ranks") or {}, filters.get("min_ranks") or {}
    conditions = [not_(and_(Alert.decision == limited, Alert.rank > rank)) for limited, rank in max_ranks.items()]
    conditions += [not_(and_(Alert.decision == limited, Alert.rank < rank)) for limited, rank in min_ranks.items()]
    shown = [decision] if decision else list(Decision)
    if all(one in max_ranks for one in shown):  # said once more for all, so that the index can stop there
        conditions.append(Alert.rank <= max(max_ranks[one] for one in shown))
    if all(one in min_ranks for one in shown):
        conditions.append(Alert.rank >= min(min_ranks[one] for one in shown))
    return conditions


def _instances(run_id: RunId) -> Select[InstanceId]:
    of_run = select(ScoringRun.snapshot_id).where(ScoringRun.id == run_id).scalar_subquery()
    return select(Instance.id).where(Instance.snapshot_id == of_run)


def _in_days(
    connection: Connection, run_id: RunId, since: datetime | None, before: datetime | None
) -> ColumnElement[bool]:
    """Find the instances first; many of them are no reason to leave the order of ranks."""
    within = _instances(run_id)
    if since is not None:
        within = within.where(Instance.snapshot_at >= since)
    if before is not None:
        within = within.where(Instance.snapshot_at < before)
    some = within.limit(FEW_INSTANCES + 1).subquery()
    n_instances = run(connection, select(func.count()).select_from(some)).scalar_one()
    # The plus keeps the database from gathering every alert of many instances only to sort them.
    column: Any = Alert.instance_id if n_instances <= FEW_INSTANCES else Alert.instance_id + 0
    return column.in_(within)  # type: ignore[no-any-return]


def _searched(connection: Connection, run_id: RunId, task_key: str, text: str) -> ColumnElement[bool]:
    """Restrict alerts to a task, and to tasks named like a text or the patient of this identifier.

    Tasks are found first, in all alphabets; many of them are no reason to leave the order of ranks.
    """
    tasks = run(
        connection,
        select(Task.id, Task.task_key, Task.name)
        .join(ScoringRun, ScoringRun.snapshot_id == Task.snapshot_id)
        .where(ScoringRun.id == run_id),
    )
    wanted = text.casefold()
    listed = {id_: name for id_, key, name in tasks if not task_key or key == task_key}
    named = _of_tasks([id_ for id_, name in listed.items() if wanted in name.casefold()])
    if not text:
        return named
    spellings = {text, text.upper(), text.lower()}
    days = run(connection, _instances(run_id).where(Instance.patient_id.in_(spellings)).limit(FEW_INSTANCES))
    ids = days.scalars().all()
    if not ids:
        return named
    of_patient = Alert.instance_id.in_(ids)
    return or_(named, and_(of_patient, _of_tasks(list(listed))) if task_key else of_patient)


def _of_tasks(ids: list[TaskId]) -> ColumnElement[bool]:
    # The plus keeps the database from gathering every alert of many tasks only to sort them.
    column: Any = Alert.task_id if len(ids) == 1 else Alert.task_id + 0
    return column.in_(ids)  # type: ignore[no-any-return]
