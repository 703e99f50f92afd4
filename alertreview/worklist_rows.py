"""Brings stored alerts into the words of the screen, with where their decisions stand."""

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from alertreview.decision_words import headline, line_words
from alertreview.read_models import AlertRow, WorklistLine
from alertreview.triage import standing_of
from alertreview.triage_models import Grouping, Standing
from alertreview.worklist_lines import Line
from core.errors import NotFoundError
from db.rows import AlertRecord, DecisionKey, RunRow
from db.unit_of_work import UnitOfWork


def find_run(uow: UnitOfWork, run_id: int | None) -> RunRow | None:
    """Give a published run, the latest without a number; None when nothing is published yet.

    Raises
    ------
    NotFoundError
        If the number is of no published run.
    """
    if run_id is None:
        return uow.runs.latest_published()
    run = uow.runs.published_run(run_id)
    if run is not None:
        return run
    raise NotFoundError(f"There is no published scoring run {run_id}. The link may come from another site.")


def decision_of(record: AlertRecord) -> DecisionKey:
    """Name the decision that an alert is about."""
    return DecisionKey(record.patient_id, record.snapshot_at, record.task_key)


def lines_in_words(
    uow: UnitOfWork, found: Sequence[Line], grouping: Grouping, zone: ZoneInfo, now: datetime
) -> tuple[WorklistLine, ...]:
    """Bring lines into the words of the screen, with where their decisions stand."""
    standing = uow.triage.standing([decision_of(record) for line in found for record in line])
    lines = []
    for line in found:
        rows = tuple(
            _alert_row(record, zone, standing_of(standing.get(decision_of(record)), now, zone)) for record in line
        )
        lines.append(WorklistLine(rows, line_words(rows, grouping)))
    return tuple(lines)


def _alert_row(record: AlertRecord, zone: ZoneInfo, standing: Standing) -> AlertRow:
    return AlertRow(
        alert_id=record.id,
        rank=record.rank,
        task_key=record.task_key,
        task_name=record.task_name,
        kind=record.kind,
        decision=record.decision,
        decision_words=headline(record.task_name, record.kind, record.decision),
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
        standing=standing,
    )
