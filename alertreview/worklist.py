"""The ranked alerts of a published run, and what stands behind one of them."""

import math
from dataclasses import fields, replace
from datetime import datetime
from zoneinfo import ZoneInfo

from alertreview.decision_words import headline
from alertreview.explanations import Explanations
from alertreview.read_models import (
    AlertDetail,
    AlertRow,
    FilterChoices,
    Histogram,
    RunView,
    WorklistFilters,
    WorklistPage,
)
from core.errors import NotFoundError
from core.vocabulary import Decision
from db.rows import AlertFilters, AlertRecord, RunRow, SnapshotRow
from db.session import Database
from db.unit_of_work import UnitOfWork


class Worklist:
    """Reads runs and alerts for pages and the command line.

    Parameters
    ----------
    database : Database
        The site's database.
    explanations : Explanations
        Opens snapshots for time lines and neighbours.
    """

    def __init__(self, database: Database, explanations: Explanations) -> None:
        self._database = database
        self._explanations = explanations

    def runs(self) -> tuple[RunView, ...]:
        """Give the published runs, newest first."""
        with self._database.read() as uow:
            return tuple(_run_view(run, uow.snapshots.get(run.snapshot_id)) for run in uow.runs.published())

    def run(self, run_id: int | None = None) -> RunView | None:
        """Give a published run, the latest without a number; None when nothing is published yet.

        Raises
        ------
        NotFoundError
            If the number is of no published run.
        """
        with self._database.read() as uow:
            run = _find_run(uow, run_id)
            return None if run is None else _run_view(run, uow.snapshots.get(run.snapshot_id))

    def filter_choices(self, run_id: int) -> FilterChoices:
        """Give the units and tasks that occur among the alerts of a run."""
        with self._database.read() as uow:
            units, tasks = uow.alerts.filter_choices(run_id)
        return FilterChoices(units=units, tasks=tasks)

    def page(self, filters: WorklistFilters, after: str | None = None, limit: int = 13) -> WorklistPage:
        """Give one page of the worklist; without a published run it is empty.

        Parameters
        ----------
        filters : WorklistFilters
            What is shown.
        after : str or None
            `WorklistPage.next_cursor` of the page before.
        limit : int
            Rows on the page.
        """
        with self._database.read() as uow:
            run = _find_run(uow, filters.run_id)
            if run is None:
                return WorklistPage((), None, 0, 0, None)
            zone = ZoneInfo(uow.snapshots.get(run.snapshot_id).site_timezone)
            restriction = _restriction(uow, run, filters)
            page = uow.alerts.page(run.id, after=after, limit=limit, **restriction)
            n_within_budget = uow.alerts.count(run.id, **restriction)
            return WorklistPage(
                rows=tuple(_alert_row(record, zone) for record in page.rows),
                next_cursor=page.next_cursor,
                n_within_budget=n_within_budget,
                n_patient_days=run.n_patient_days,
                lowest_scaled_score=uow.alerts.lowest_scaled_score(run.id, **restriction),
                n_hidden_by_filter={} if n_within_budget else _hidden_by(uow, run, filters),
            )

    def alert(self, alert_id: int, filters: WorklistFilters | None = None) -> AlertDetail:
        """Give everything that the alert page shows.

        Parameters
        ----------
        alert_id : int
            Number of an alert of a published run; it opens whatever the filters hide.
        filters : WorklistFilters or None
            The list that the reader came from, for the previous and next alert.

        Raises
        ------
        NotFoundError
            If there is no such alert.
        """
        with self._database.read() as uow:
            record = uow.alerts.get(alert_id)
            run = uow.runs.get(record.run_id)
            snapshot = uow.snapshots.get(run.snapshot_id)
            result = uow.runs.task_result(run.id, record.task_id)
            folds = uow.runs.fold_of_row(run.id)
            listed = replace(filters or WorklistFilters(), run_id=run.id)
            previous, following = uow.alerts.neighbours(alert_id, **_restriction(uow, run, listed))
        explanation = self._explanations.explain(snapshot.content_hash, record, run, result, folds)
        return AlertDetail(
            row=_alert_row(record, ZoneInfo(snapshot.site_timezone)),
            run=_run_view(run, snapshot),
            day_of_stay=record.day_of_stay,
            window_hours=record.window_hours,
            soft_label=record.soft_label,
            task_positive_share=result.n_past_positive / max(result.n_past, 1),
            score_histogram=_histogram(result.score_histogram),
            scaled_histogram=_histogram(result.scaled_histogram),
            timeline=explanation.timeline,
            n_neighbours=explanation.n_neighbours,
            n_neighbours_decided=explanation.n_neighbours_decided,
            neighbours=explanation.neighbours,
            near_features=explanation.near_features,
            record_after=explanation.record_after,
            previous_alert_id=previous,
            next_alert_id=following,
        )


def _find_run(uow: UnitOfWork, run_id: int | None) -> RunRow | None:
    if run_id is None:
        return uow.runs.latest_published()
    for run in uow.runs.published():
        if run.id == run_id:
            return run
    raise NotFoundError(f"There is no published scoring run {run_id}. The link may come from another site.")


def _restriction(uow: UnitOfWork, run: RunRow, filters: WorklistFilters) -> AlertFilters:
    """Translate filters for the database; the budget is counted before any other filter, on what the lists offer."""
    return AlertFilters(
        decision=filters.decision,
        kind=filters.kind,
        unit=filters.unit,
        task_key=filters.task_key,
        text=filters.text,
        include_cut_windows=filters.include_cut_windows,
        max_ranks=_ranks_at_budget(uow, run, filters),
    )


def _ranks_at_budget(uow: UnitOfWork, run: RunRow, filters: WorklistFilters) -> dict[Decision, int]:
    """Rank at which the budget ends in each list; a list that is shorter than the budget is not in it."""
    if math.isinf(filters.alerts_per_patient_day):
        return {}
    n_alerts = round(filters.alerts_per_patient_day * run.n_patient_days)
    ranks = {
        decision: uow.alerts.rank_of_nth(run.id, n_alerts, decision, include_cut_windows=filters.include_cut_windows)
        for decision in Decision
    }
    return {decision: rank for decision, rank in ranks.items() if rank is not None}


def _hidden_by(uow: UnitOfWork, run: RunRow, filters: WorklistFilters) -> dict[str, int]:
    """For each filter in use: how many alerts would be seen without it."""
    unrestricted = WorklistFilters()
    hidden = {}
    for field in fields(WorklistFilters):
        if field.name == "run_id" or getattr(filters, field.name) == getattr(unrestricted, field.name):
            continue
        relaxed = replace(filters, **{field.name: getattr(unrestricted, field.name)})
        hidden[field.name] = uow.alerts.count(run.id, **_restriction(uow, run, relaxed))
    return hidden


def _alert_row(record: AlertRecord, zone: ZoneInfo) -> AlertRow:
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
    )


def _run_view(run: RunRow, snapshot: SnapshotRow) -> RunView:
    floors = [floor for floor in (run.floor_omission, run.floor_commission) if floor is not None]
    published_at: datetime = run.published_at or run.created_at
    return RunView(
        run_id=run.id,
        scorer=run.scorer,
        published_at=published_at.astimezone(ZoneInfo(snapshot.site_timezone)),
        site_timezone=snapshot.site_timezone,
        simulated=snapshot.simulated,
        calendar_is_shifted=snapshot.calendar_is_shifted,
        split=run.split.value,
        seed=run.seed,
        n_past=run.n_past,
        n_recent=run.n_recent,
        n_tasks_scored=run.n_tasks_scored,
        n_tasks_left_out=run.n_tasks_left_out,
        n_alerts=run.n_omissions + run.n_commissions,
        floor=min(floors, default=0.0),
        parameters=dict(run.parameters),
        import_summary=dict(snapshot.import_summary),
    )


def _histogram(stored: dict[str, list[float]] | None) -> Histogram:
    stored = stored or {"edges": [0.0, 1.0], "counts": [0]}
    return Histogram(edges=tuple(stored["edges"]), counts=tuple(int(count) for count in stored["counts"]))
