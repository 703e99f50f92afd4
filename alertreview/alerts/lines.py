"""Lines of the worklist: alerts that belong together are one, at the place of the first of them, and in words."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias
from zoneinfo import ZoneInfo

from alertreview.alerts.models import AlertRow, WorklistLine
from alertreview.alerts.triage_models import Grouping, ListOrder, TriageStatus
from core.errors import NotFoundError
from core.kinds import KindWords, done_word, in_words
from core.vocabulary import Decision, RunId, TriageState
from db.models import AlertFilters, CohortSnapshot, DecisionKey, ListedAlert, ScoringRun, Triage
from db.queries.reading import in_parts
from db.unit_of_work import UnitOfWork

Line: TypeAlias = tuple[ListedAlert, ...]
"""The alerts of a line in the order of the list; the first one gives the line its place."""
GroupKey: TypeAlias = tuple[object, ...]


def lines_after(
    uow: UnitOfWork,
    run_id: RunId,
    grouping: Grouping,
    order: ListOrder,
    after: str | None,
    limit: int,
    restriction: AlertFilters,
) -> tuple[list[Line], str | None]:
    """Return a page of lines and the cursor of the page after it.

    A line stands where its first alert stands. `after` is the cursor of the page before; only alerts that the
    restriction lets through are members.
    """
    page = uow.alerts.page(
        run_id,
        by_day=order is ListOrder.NEWEST,
        line_of=None if grouping is Grouping.ALERT else partial(_key, grouping),
        after=after,
        limit=limit,
        **restriction,
    )
    groups = _groups(uow, run_id, grouping, order, page.rows, restriction)
    return [groups[_key(grouping, row)] for row in page.rows], page.next_cursor


def members_of(
    uow: UnitOfWork, run_id: RunId, grouping: Grouping, order: ListOrder, alert: ListedAlert, restriction: AlertFilters
) -> Line:
    """Return the line that an alert belongs to, the alert alone if the restriction does not let it through."""
    groups = _groups(uow, run_id, grouping, order, (alert,), restriction)
    line = groups.get(_key(grouping, alert), (alert,))
    return line if any(one.id == alert.id for one in line) else (alert,)


def _groups(
    uow: UnitOfWork,
    run_id: RunId,
    grouping: Grouping,
    order: ListOrder,
    rows: Sequence[ListedAlert],
    restriction: AlertFilters,
) -> dict[GroupKey, Line]:
    """All members of the lines that these rows belong to, in the order of the list."""
    wanted = {_key(grouping, row) for row in rows}
    members: list[ListedAlert] = []
    if grouping is Grouping.EPISODE:
        members = uow.alerts.of_stays(run_id, {(row.patient_id, row.stay_id) for row in rows}, **restriction)
    elif grouping is Grouping.ORDER_GROUP:
        grouped = sorted({(row.instance_id, row.decision, row.order_group) for row in rows if row.order_group})
        for some in in_parts(grouped):
            members += uow.alerts.of_groups(run_id, some, **restriction)
    elif grouping is not Grouping.ALERT:
        ids = sorted({row.instance_id for row in rows})
        for instance_ids in in_parts(ids):
            members += uow.alerts.of_instances(run_id, instance_ids, **restriction)
    place = _place(order)
    known = {row.id: row for row in (*rows, *members)}
    groups: dict[GroupKey, list[ListedAlert]] = {}
    for member in sorted(known.values(), key=place):
        if (key := _key(grouping, member)) in wanted:
            groups.setdefault(key, []).append(member)
    return {key: tuple(line) for key, line in groups.items()}


def _key(grouping: Grouping, alert: Any) -> GroupKey:
    if grouping is Grouping.ORDER_GROUP and alert.order_group:
        return alert.instance_id, alert.decision, alert.order_group
    if grouping is Grouping.PATIENT_DAY:
        return (alert.instance_id,)
    if grouping is Grouping.EPISODE:
        return alert.patient_id, alert.stay_id, alert.task_id, alert.decision
    return (alert.id, "alone")


def _place(order: ListOrder) -> Callable[[ListedAlert], tuple[float, int, str]]:
    """Return the place of an alert in the list."""
    if order is ListOrder.NEWEST:
        return lambda alert: (-alert.snapshot_at.timestamp(), alert.rank, alert.decision.value)
    return lambda alert: (0.0, alert.rank, alert.decision.value)


def find_run(uow: UnitOfWork, run_id: RunId | None) -> ScoringRun | None:
    """Return a published run, the latest without a number; None when nothing is published yet.

    Raise NotFoundError if the number is of no published run.
    """
    if run_id is None:
        return uow.runs.latest_published()
    run = uow.runs.published_run(run_id)
    if run is not None:
        return run
    raise NotFoundError(f"There is no published scoring run {run_id}. The link may come from another site.")


def decision_of(record: ListedAlert) -> DecisionKey:
    """Name the decision that an alert is about."""
    return DecisionKey(record.patient_id, record.snapshot_at, record.task_key)


def lines_in_words(
    uow: UnitOfWork, found: Sequence[Line], grouping: Grouping, snapshot: CohortSnapshot, now: datetime
) -> tuple[WorklistLine, ...]:
    """Bring lines into the words of the screen, with where their decisions stand."""
    status = uow.triage.status([decision_of(record) for line in found for record in line])
    zone, said = ZoneInfo(snapshot.site_timezone), snapshot.import_summary.get("words")
    lines = []
    for line in found:
        rows = tuple(
            _alert_row(record, zone, said, triage_status(status.get(decision_of(record)), now, zone)) for record in line
        )
        lines.append(WorklistLine(rows, line_words(rows, grouping)))
    return tuple(lines)


def triage_status(row: Triage | None, now: datetime, zone: ZoneInfo) -> TriageStatus:
    """Return the triage status of a decision at a moment: a snooze that is over counts as "new"."""
    if row is None:
        return TriageStatus()
    until = row.snoozed_until
    over = row.state is TriageState.SNOOZED and until is not None and until <= now
    return TriageStatus(
        state=TriageState.NEW if over else row.state,
        version=row.version,
        snoozed_until=until.astimezone(zone) if until else None,
    )


def _alert_row(record: ListedAlert, zone: ZoneInfo, said: Mapping[str, str] | None, triage: TriageStatus) -> AlertRow:
    done = done_word(said, record.task_key)
    return AlertRow(
        alert_id=record.id,
        rank=record.rank,
        task_key=record.task_key,
        task_name=record.task_name,
        kind=record.kind,
        decision=record.decision,
        decision_words=headline(record.task_name, record.kind.worded(done), record.decision),
        done=done,
        patient_id=record.patient_id,
        sex=record.sex,
        age_years=record.age_years,
        unit=record.unit,
        snapshot_at=record.snapshot_at.astimezone(zone),
        score=record.score,
        scaled_score=record.scaled_score,
        support=record.support,
        scorer=record.scorer,
        order_group=record.order_group,
        window_cut=record.window_cut,
        triage=triage,
    )


def headline(task_name: str, words: KindWords, decision: Decision) -> str:
    """Say it without a verb: whether "Platelets" is one thing or many, nothing tells.

    Examples
    --------
    >>> from core.kinds import Kind
    >>> headline("Troponin I", Kind.LAB_ORDER.words, Decision.OMISSION)
    'Troponin I not ordered'
    """
    return f"{task_name} {'not ' if decision is Decision.OMISSION else ''}{words.done}"


def line_words(members: Sequence[AlertRow], grouping: Grouping) -> str:
    """Say a line of the worklist: the decision alone, or what its members have in common and how many they are."""
    first, n = members[0], len(members)
    if n == 1:
        return first.decision_words
    if grouping is Grouping.EPISODE:
        return f"{first.decision_words}, {n} days"
    if grouping is Grouping.PATIENT_DAY:
        return f"{first.decision_words} and {n - 1} more"
    kinds = {member.kind for member in members}
    things = first.kind.words.items if len(kinds) == 1 else "decisions"
    verb = in_words(member.words.done for member in members) if len(kinds) == 1 else "taken"
    negation = "not " if first.decision is Decision.OMISSION else ""
    return f"{first.order_group}: {n} {things} {negation}{verb}"
