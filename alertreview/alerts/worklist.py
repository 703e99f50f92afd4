"""The ranked alerts of a published run, and what stands behind one of them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from alertreview.alerts.explanations import Explanations, Past
from alertreview.alerts.filters import JUDGE_FIRST, WorklistPages, relaxed_one_by_one, restriction_of, show_score
from alertreview.alerts.lines import find_run, lines_in_words
from alertreview.alerts.models import AlertDetail, FilterChoices, WorklistFilters, WorklistPage, histogram_of
from alertreview.alerts.preview_model import AlertPreview
from alertreview.alerts.triage_models import Grouping, ListOrder, TriageChoice
from alertreview.rights import Action, Service, requires
from alertreview.scoring.models import RunView
from alertreview.settings import Clock
from core.errors import RefusedError
from core.scoring.scorers import is_chance, is_retrospective, times_support
from core.vocabulary import AlertId, Decision, PersonId, RunId
from db.database import Database
from db.models import AlertFilters, CohortSnapshot, ListedAlert, ScoringRun
from db.unit_of_work import UnitOfWork

ANY = WorklistFilters()
HIDDEN = "not shown"
"""Stands for a patient who may lie in a unit that is not the reader's."""
CACHED_BUDGET_ENDS = 512
CACHED_CHOICES = 16


@dataclass(frozen=True)
class BudgetEnd:
    """What a run's lists hold of the filters, whatever the ward has done with it; published runs never change."""

    n_alerts: int
    lowest_scores: Mapping[Decision, float]


class Worklist(Service):
    """Reads runs and alerts for pages and the command line."""

    def __init__(self, database: Database, explanations: Explanations, clock: Clock) -> None:
        super().__init__(database, clock)
        self._explanations = explanations
        self._pages = WorklistPages()
        self._budget_end = lru_cache(maxsize=CACHED_BUDGET_ENDS)(self._count_budget_end)
        self._choices = lru_cache(maxsize=CACHED_CHOICES)(self._read_choices)

    @requires(Action.SEE_RUNS)
    def runs(self, most: int | None = None) -> tuple[RunView, ...]:
        """Return the published runs, newest first, all or the first few."""
        with self._database.read() as uow:
            return tuple(_run_view(run, uow.snapshots.get(run.snapshot_id)) for run in uow.runs.published()[:most])

    @requires(Action.SEE_RUNS)
    def run(self, run_id: RunId | None = None) -> RunView | None:
        """Return a published run, the latest without a number; None when nothing is published yet.

        Raise NotFoundError if the number is of no published run.
        """
        with self._database.read() as uow:
            run = find_run(uow, run_id)
            return None if run is None else _run_view(run, uow.snapshots.get(run.snapshot_id))

    @requires(Action.SEE_ALERTS)
    def filter_choices(
        self, run_id: RunId, scorer: str = "", *, within: Collection[str] | None = None
    ) -> FilterChoices:
        """Return the units (only those `within`, if given) and tasks among the alerts of a run, its days and scores."""
        with self._database.read() as uow:
            if uow.runs.published_run(run_id) is None:
                return FilterChoices((), ())
        choices = self._choices(run_id, scorer)
        if within is None:
            return choices
        return replace(choices, units=tuple(unit for unit in choices.units if unit in within))

    @requires(Action.SEE_ALERTS)
    def page(self, filters: WorklistFilters, after: str | None = None, limit: int = 13) -> WorklistPage:
        """Return one page of the worklist, after the cursor of the page before; without a published run it is empty.

        Raise InvalidInputError if the cursor is damaged, or the run has no such scorer.
        """
        now = self._clock()
        with self._database.read() as uow:
            run = find_run(uow, filters.run_id)
            if run is None:
                return WorklistPage((), None, 0, 0, {})
            snapshot = uow.snapshots.get(run.snapshot_id)
            zone = ZoneInfo(snapshot.site_timezone)
            restriction = restriction_of(uow, run, filters, zone, now)
            found = self._pages.get(uow, run, filters.grouping, filters.order, after, limit, restriction)
            lines = lines_in_words(uow, found.lines, filters.grouping, snapshot, now)
            end = self._end_without_withheld(run, filters, restriction)
            n_alerts = end.n_alerts - found.n_hidden_by_triage
            return WorklistPage(
                rows=tuple(line.first for line in lines),
                next_cursor=found.next_cursor,
                n_within_budget=n_alerts,
                n_patient_days=run.n_patient_days,
                lowest_scores=end.lowest_scores,
                n_hidden_by_filter={} if n_alerts else self._hidden_by(uow, run, filters, zone, now),
                lines=lines,
                n_in_lists=end.n_alerts,
                n_to_judge_first=len(uow.cases.awaited_of(filters.reader)) if filters.reader is not None else 0,
            )

    @requires(Action.SEE_ALERTS, unit_of="alert_id")
    def alert(
        self, alert_id: AlertId, filters: WorklistFilters = ANY, person_id: PersonId | None = None
    ) -> AlertDetail:
        """Return everything that the alert page shows; an alert of a published run opens whatever the filters hide.

        The filters are the list that the reader came from, for the previous and next alert. Limited to units, it hides
        whose stays the similar ones were: they may lie in other units. That the person saw the score is remembered: a
        later judgment of the decision carries the mark. Raise NotFoundError if there is no such alert, RefusedError if
        the person has still to judge the decision without knowing its score.
        """
        self._show_score(person_id, alert_id)
        now = self._clock()
        with self._database.read() as uow:
            record, run, snapshot, past = _behind(uow, alert_id)
            result, zone = past.result, ZoneInfo(snapshot.site_timezone)
            listed = replace(filters, run_id=run.id, scorer=record.scorer)
            if person_id is not None:
                listed = replace(listed, reader=person_id)
            restriction = restriction_of(uow, run, listed, zone, now)
            previous, following = uow.alerts.neighbours(record, **restriction)
            end = self._end_without_withheld(run, listed, restriction)
            row = lines_in_words(uow, [(record,)], Grouping.ALERT, snapshot, now)[0].members[0]
        explanation = self._explanations.explain(snapshot.content_hash, record, past)
        return AlertDetail(
            row=row,
            run=_run_view(run, snapshot),
            day_of_stay=record.day_of_stay,
            soft_label=record.soft_label,
            task_positive_share=result.n_past_positive / max(result.n_past, 1),
            score_histogram=histogram_of(result.score_histogram),
            scaled_histogram=histogram_of(result.scaled_histogram),
            patient=explanation.patient,
            compared=explanation.nearest.comparison,
            neighbours=(
                explanation.neighbours
                if filters.within is None
                else tuple(replace(one, patient_id=HIDDEN) for one in explanation.neighbours)
            ),
            reasons=explanation.reasons,
            record_after=explanation.record_after,
            previous_alert_id=previous,
            next_alert_id=following,
            disagreement=row.score / row.support if times_support(record.scorer) and row.support > 0 else None,
            surprise=_surprise(record.scorer, row.score, row.decision, result.n_past_positive, result.n_past),
            lowest_scaled_score=end.lowest_scores.get(row.decision),
        )

    @requires(Action.SEE_ALERTS, unit_of="alert_id")
    def read_ahead(self, alert_id: AlertId) -> None:
        """Explain an alert that is likely to be opened next, so that it comes at once; nobody has seen its score."""
        with self._database.read() as uow:
            record, _, snapshot, past = _behind(uow, alert_id)
        self._explanations.explain(snapshot.content_hash, record, past)

    @requires(Action.SEE_ALERTS, unit_of="alert_id")
    def preview(self, alert_id: AlertId, person_id: PersonId | None = None) -> AlertPreview:
        """Return the preview of an alert beside the worklist; parameters, errors and mark are those of `alert`."""
        self._show_score(person_id, alert_id)
        with self._database.read() as uow:
            record, run, snapshot, past = _behind(uow, alert_id)
        nearest = self._explanations.nearest(snapshot.content_hash, record, past)
        return AlertPreview(
            run_id=run.id,
            day_of_stay=record.day_of_stay,
            scaled_histogram=histogram_of(past.result.scaled_histogram),
            compared=nearest.comparison,
        )

    def _show_score(self, person_id: PersonId | None, alert_id: AlertId) -> None:
        if person_id is not None and not show_score(self._database, self._clock, person_id, alert_id):
            raise RefusedError(JUDGE_FIRST)

    def _count_budget_end(self, run_id: RunId, filters: WorklistFilters, withheld: tuple[AlertId, ...]) -> BudgetEnd:
        now = self._clock()
        with self._database.read() as uow:
            run = uow.runs.get(run_id)
            zone = ZoneInfo(uow.snapshots.get(run.snapshot_id).site_timezone)
            restriction: AlertFilters = {**restriction_of(uow, run, filters, zone, now), "without": withheld}
            return BudgetEnd(
                uow.alerts.count(run_id, **restriction), uow.alerts.lowest_scaled_scores(run_id, **restriction)
            )

    def _read_choices(self, run_id: RunId, scorer: str) -> FilterChoices:
        with self._database.read() as uow:
            run = uow.runs.get(run_id)
            zone = ZoneInfo(uow.snapshots.get(run.snapshot_id).site_timezone)
            units, tasks = uow.alerts.filter_choices(run_id, scorer)
            days = uow.alerts.days(run_id)
            highest = [
                page.rows[0].scaled_score
                for decision in Decision
                if (
                    page := uow.alerts.page(run_id, limit=1, scorer=scorer, decision=decision, include_cut_windows=True)
                ).rows
            ]
            floors = run.floors(scorer or None).values()
        return FilterChoices(
            units=units,
            tasks=tasks,
            days=(days[0].astimezone(zone).date(), days[1].astimezone(zone).date()) if days else None,
            scores=(min(floors), max(highest)) if highest and floors else None,
        )

    def _hidden_by(
        self, uow: UnitOfWork, run: ScoringRun, filters: WorklistFilters, zone: ZoneInfo, now: datetime
    ) -> dict[str, int]:
        """For each filter in use: how many alerts would be seen without it."""
        hidden = {}
        for name, relaxed in relaxed_one_by_one(filters):
            restriction = restriction_of(uow, run, relaxed, zone, now)
            end = self._end_without_withheld(run, relaxed, restriction)
            hidden[name] = end.n_alerts - uow.alerts.count_hidden_by_triage(run.id, **restriction)
        return hidden

    def _end_without_withheld(self, run: ScoringRun, filters: WorklistFilters, restriction: AlertFilters) -> BudgetEnd:
        """Say where the budget ends for the reader of the filters; the cache knows no reader, only what is withheld.

        An alert that is withheld is left out of the count and of the lowest score: it might be that alert's own.
        """
        return self._budget_end(run.id, _whatever_was_done(filters, run), tuple(sorted(restriction["without"])))


def _surprise(scorer: str, chance: float, decision: Decision, n_taken: int, n_past: int) -> float | None:
    """Return how many times higher the odds of the other decision are by the state than in general."""
    other = n_taken if decision is Decision.OMISSION else n_past - n_taken
    if not is_chance(scorer) or not 0 < chance < 1 or not 0 < other < n_past:
        return None
    return chance / (1 - chance) * (n_past - other) / other


def _behind(uow: UnitOfWork, alert_id: AlertId) -> tuple[ListedAlert, ScoringRun, CohortSnapshot, Past]:
    """Return an alert, its run and import, and what it was compared with."""
    record = uow.alerts.get(alert_id)
    run = uow.runs.get(record.run_id)
    result = uow.runs.past_of_task(run, record.task_id, record.scorer)
    return record, run, uow.snapshots.get(run.snapshot_id), Past(run, result, uow.runs.cached_folds(run))


def _whatever_was_done(filters: WorklistFilters, run: ScoringRun) -> WorklistFilters:
    """Leave out what changes while a run does not, and what only arranges the list."""
    return replace(
        filters,
        run_id=run.id,
        triage=TriageChoice.ANY,
        grouping=Grouping.ALERT,
        order=ListOrder.RANK,
        reader=None,
    )


def _run_view(run: ScoringRun, snapshot: CohortSnapshot) -> RunView:
    floors = [floor for floor in (run.floor_omission, run.floor_commission) if floor is not None]
    published_at: datetime = run.published_at or run.created_at
    scorers = (run.scorer, *run.scorers)
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
        scorers=scorers,
        retrospective_scorers=tuple(filter(is_retrospective, scorers)),
        base_run_id=run.base_run_id,
    )
