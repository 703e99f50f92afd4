"""The Task page: histograms, counts, what the budget means, how well it is judged, and drift from run to run."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from alertreview.alerts.alert_lists import judged_study
from alertreview.alerts.filters import ranks_at_budget, restriction_of
from alertreview.alerts.lines import find_run
from alertreview.alerts.models import WorklistFilters, histogram_of
from alertreview.alerts.triage_models import TriageChoice
from alertreview.records.catalogue import TaskSetting, stored_settings
from alertreview.records.snapshots import open_import
from alertreview.rights import Action, Service, requires
from alertreview.scoring.models import Histogram
from alertreview.settings import Clock, Settings
from alertreview.studies.results import auc_on_candidates, case_rows, majority_labels
from core.errors import NotFoundError
from core.kinds import Kind, KindWords, done_word
from core.statistics.estimate import Estimate, not_computable
from core.vocabulary import Decision, RunId, TriageState
from db.database import Database
from db.models import AlertFilters, ScoringRun, Task
from db.unit_of_work import UnitOfWork


@dataclass(frozen=True)
class TaskChoice:
    """One task that a run has looked at."""

    task_key: str
    name: str
    kind: Kind
    is_scored: bool


@dataclass(frozen=True)
class AlertMarks:
    """How many alerts lie in each bin of a histogram."""

    omissions: tuple[int, ...]
    commissions: tuple[int, ...]

    def of(self, decision: Decision) -> tuple[int, ...]:
        """Return the counts of one decision."""
        return self.omissions if decision is Decision.OMISSION else self.commissions


@dataclass(frozen=True)
class TaskView:
    """One task as a scorer of a run sees it."""

    task_key: str
    name: str
    kind: Kind
    order_group: str
    scorer: str
    reason: str  # why the task was not scored; empty when it was
    n_past: int
    n_past_positive: int  # past instances in which it was ordered or given
    n_scored: int  # recent instances that have a score
    n_patient_days: int  # of the run
    scaled_histogram: Histogram  # of past and recent instances together, as on the alert page
    score_histogram: Histogram
    scaled_marks: AlertMarks  # alerts within the budget, in the bins of the scaled scores
    score_marks: AlertMarks
    thresholds: Mapping[Decision, float]
    """Scaled score at which the budget ends in each list of the run; none where it ends after the lists or before
    the first alert of one."""
    n_alerts: Mapping[Decision, int]  # alerts of this task within the budget
    triage: Mapping[TriageState, int]  # where those alerts stand; adds up to them
    done: str = ""  # as `alertreview.alerts.models.AlertRow.done`
    muted: str = ""  # where and until when it is muted today; empty if it is not

    @property
    def words(self) -> KindWords:
        """Words of its decisions."""
        return self.kind.worded(self.done)


@dataclass(frozen=True)
class JudgedTask:
    """How well the scaled scores of one task order what readers judged relevant."""

    auc: Estimate  # on all candidates, with the interval of reports
    study: str = ""  # title of the judged study; empty when there is none


@dataclass(frozen=True)
class RunPoint:
    """One stored run in a figure over runs."""

    run_id: RunId
    published_at: datetime  # in the site's zone
    n_scored: int  # recent instances
    past_share: float | None
    """Share of past decisions that were taken, in [0, 1]; None for a task that the run does not know."""
    recent_share: float | None
    """The same among the instances that were scored; None when the import is not on this machine any more."""
    n_alerts: Mapping[Decision, int] = field(default_factory=dict)
    """Within the budget for one task; listed above the floor for a whole run."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """Scaled scores by what they are, "median", "9 in 10 lie below"; for a whole run where the budget ends."""


RUNS_SHOWN = 20
CACHED_RUNS = 64
CACHED_POINTS = 512
QUANTILES = {"median": 0.5, "9 in 10 lie below": 0.9, "99 in 100 lie below": 0.99}
Shares = Mapping[str, float]
"""Task key -> share of the scored instances in which it was ordered or given."""


class TaskPages(Service):
    """Reads tasks of published runs."""

    def __init__(self, settings: Settings, database: Database, clock: Clock) -> None:
        super().__init__(database, clock)
        self._settings = settings
        self._shares = lru_cache(maxsize=CACHED_RUNS)(self._read_shares)
        self._task_point = lru_cache(maxsize=CACHED_POINTS)(self._read_task_point)

    @requires(Action.SEE_ALERTS)
    def choices(self, run_id: RunId, scorer: str = "") -> tuple[TaskChoice, ...]:
        """Return every task that a published run has looked at, by name.

        Raise NotFoundError if there is no such run.
        """
        with self._database.read() as uow:
            run = _published(uow, run_id)
            scored = {row.task_id: not row.reason for row in uow.runs.task_results(run.id, scorer or run.scorer)}
            tasks = uow.snapshots.tasks(run.snapshot_id)
        found = [
            TaskChoice(task.task_key, task.name, task.kind, scored[task.id]) for task in tasks if task.id in scored
        ]
        return tuple(sorted(found, key=lambda task: (task.name.casefold(), task.task_key)))

    @requires(Action.SEE_ALERTS)
    def view(self, filters: WorklistFilters) -> TaskView:
        """Return one task of a run; of the filters, task, run, scorer and budget count, and what they hide.

        Raise NotFoundError if nothing is published, or there is no such run or task.
        """
        now = self._clock()
        with self._database.read() as uow:
            run = _published(uow, filters.run_id)
            task = _task(uow, run, filters.task_key)
            snapshot = uow.snapshots.get(run.snapshot_id)
            zone = ZoneInfo(snapshot.site_timezone)
            result = uow.runs.task_result(run.id, task.id, filters.scorer or None)
            restriction = restriction_of(uow, run, _of_the_task(filters, run), zone, now)
            scores = uow.alerts.scores(run.id, **restriction)
            scaled, raw = (histogram_of(stored) for stored in (result.scaled_histogram, result.score_histogram))
            return TaskView(
                task_key=task.task_key,
                name=task.name,
                kind=task.kind,
                order_group=task.order_group,
                scorer=filters.scorer or run.scorer,
                reason=result.reason,
                n_past=result.n_past,
                n_past_positive=result.n_past_positive,
                n_scored=0 if result.reason else run.n_recent,
                n_patient_days=run.n_patient_days,
                scaled_histogram=scaled,
                score_histogram=raw,
                scaled_marks=_marks(scaled, {decision: pairs[1] for decision, pairs in scores.items()}),
                score_marks=_marks(raw, {decision: pairs[0] for decision, pairs in scores.items()}),
                thresholds=_thresholds(uow, run, filters),
                n_alerts={decision: len(scores[decision][0]) for decision in Decision},
                triage=_triage(uow, run, restriction),
                done=done_word(snapshot.import_summary.get("words"), task.task_key),
                muted=stored_settings(uow).get(task.task_key, TaskSetting()).mute_words(now.astimezone(zone).date()),
            )

    @requires(Action.SEE_RESULTS)
    def judged(self, filters: WorklistFilters) -> JudgedTask:
        """Return the AUC of one task's scaled scores, from the newest study of the run whose judging is over.

        Of the filters, task, run and scorer count. Raise NotFoundError if nothing is published, or there is no such run
        or task.
        """
        with self._database.read() as uow:
            run = _published(uow, filters.run_id)
            task = _task(uow, run, filters.task_key)
            study = judged_study(uow, run.id)
            if study is None:
                return JudgedTask(not_computable("no study of this run is complete or locked yet"))
            cases = [case for case in case_rows(uow, study.slug) if case.task_key == task.task_key]
            labels = majority_labels(uow, study.slug, cases)
        if not cases:
            return JudgedTask(not_computable("the study has no case of this task"), study.title)
        says = [case.scores.get(filters.scorer or run.scorer) for case in cases]
        scores = np.array([said.scaled_score if said else np.nan for said in says])
        auc = auc_on_candidates(cases, labels, scores)
        return JudgedTask(auc, study.title)

    @requires(Action.SEE_RUNS)
    def drift(self, filters: WorklistFilters) -> tuple[RunPoint, ...]:
        """Return the newest published runs, oldest first: one task of them, or the whole runs when no task is named.

        Of the filters, task, scorer and budget count, and what they hide. A run without the scorer, or without the
        task, is not among them.
        """
        points = []
        with self._database.read() as uow:
            for run in reversed(uow.runs.published()[:RUNS_SHOWN]):
                scorer = filters.scorer or run.scorer
                if scorer not in run.all_scorers:
                    continue
                asked = replace(_of_the_task(filters, run), scorer=scorer)
                if not filters.task_key:
                    points.append(self._run_point(uow, run, asked))
                elif (point := self._task_point(run.id, replace(asked, reader=None))) is not None:
                    points.append(replace(point, n_alerts=self._n_alerts(uow, run, asked)))
        return tuple(points)

    def _read_task_point(self, run_id: RunId, filters: WorklistFilters) -> RunPoint | None:
        """Read what of a run and a task never changes."""
        with self._database.read() as uow:
            run = uow.runs.get(run_id)
            task = uow.snapshots.task(run.snapshot_id, filters.task_key)
            if task is None:
                return None
            result = uow.runs.task_result(run.id, task.id, filters.scorer)
            zone = ZoneInfo(uow.snapshots.get(run.snapshot_id).site_timezone)
        shares = self._shares(run.id)
        scaled = result.scaled_score
        return RunPoint(
            run_id=run.id,
            published_at=(run.published_at or run.created_at).astimezone(zone),
            n_scored=0 if scaled is None else len(scaled),
            past_share=result.n_past_positive / result.n_past if result.n_past else None,
            recent_share=shares.get(task.task_key) if shares is not None else None,
            scores={}
            if scaled is None or not len(scaled)
            else {name: float(np.quantile(scaled, share)) for name, share in QUANTILES.items()},
        )

    def _n_alerts(self, uow: UnitOfWork, run: ScoringRun, filters: WorklistFilters) -> dict[Decision, int]:
        zone = ZoneInfo(uow.snapshots.get(run.snapshot_id).site_timezone)
        restriction = restriction_of(uow, run, filters, zone, self._clock())
        of_decision: dict[Decision, AlertFilters] = {one: {**restriction, "decision": one} for one in Decision}
        return {one: uow.alerts.count(run.id, **asked) for one, asked in of_decision.items()}

    def _run_point(self, uow: UnitOfWork, run: ScoringRun, filters: WorklistFilters) -> RunPoint:
        zone = ZoneInfo(uow.snapshots.get(run.snapshot_id).site_timezone)
        shares = self._shares(run.id)
        results = [row for row in uow.runs.task_results(run.id, filters.scorer) if row.n_past]
        return RunPoint(
            run_id=run.id,
            published_at=(run.published_at or run.created_at).astimezone(zone),
            n_scored=run.n_recent,
            past_share=float(np.mean([row.n_past_positive / row.n_past for row in results])) if results else None,
            recent_share=float(np.mean(list(shares.values()))) if shares else None,
            n_alerts=run.n_alerts(filters.scorer),
            scores={f"{one.value}s": score for one, score in _thresholds(uow, run, filters).items()},
        )

    def _read_shares(self, run_id: RunId) -> Shares | None:
        """Count the decisions of a run's recent instances, all tasks at once; None when the import is gone."""
        with self._database.read() as uow:
            run = uow.runs.get(run_id)
            folder = uow.snapshots.get(run.snapshot_id).folder
            recent = uow.runs.fold_of_row(run_id) >= 0
            tasks = uow.snapshots.tasks(run.snapshot_id)
            if not (self._settings.snapshots / folder).is_dir():
                return None
            decisions = open_import(self._settings, uow, folder).decisions
        n_recent = int(recent.sum())
        if not n_recent:
            return {}
        share = recent.astype(float) @ (decisions > 0) / n_recent
        return {task.task_key: float(share[task.column_index]) for task in tasks}


def _published(uow: UnitOfWork, run_id: RunId | None) -> ScoringRun:
    run = find_run(uow, run_id)
    if run is None:
        raise NotFoundError("Nothing is published yet. Import records and score them.")
    return run


def _task(uow: UnitOfWork, run: ScoringRun, task_key: str) -> Task:
    task = uow.snapshots.task(run.snapshot_id, task_key)
    if task is None:
        raise NotFoundError(
            f"Scoring run {run.id} has no such task. The link may come from another site or import; choose a task."
        )
    return task


def _of_the_task(filters: WorklistFilters, run: ScoringRun) -> WorklistFilters:
    """Keep of some filters what names the task, the budget, and what must stay hidden."""
    return WorklistFilters(
        run_id=run.id,
        scorer=filters.scorer,
        task_key=filters.task_key,
        alerts_per_patient_day=filters.alerts_per_patient_day,
        include_cut_windows=filters.include_cut_windows,
        within=filters.within,
        reader=filters.reader,
        triage=TriageChoice.ANY,
    )


def _thresholds(uow: UnitOfWork, run: ScoringRun, filters: WorklistFilters) -> dict[Decision, float]:
    """Scaled score at which the budget ends in each list of the run, whatever the task."""
    ranks = ranks_at_budget(uow, run, filters)
    if not ranks:
        return {}
    return uow.alerts.lowest_scaled_scores(run.id, scorer=filters.scorer, include_cut_windows=True, max_ranks=ranks)


def _triage(uow: UnitOfWork, run: ScoringRun, restriction: AlertFilters) -> dict[TriageState, int]:
    at_state: dict[TriageState, AlertFilters] = {state: {**restriction, "triage": (state,)} for state in TriageState}
    return {state: uow.alerts.count(run.id, **asked) for state, asked in at_state.items()}


def _marks(histogram: Histogram, scores: Mapping[Decision, npt.NDArray[np.float64]]) -> AlertMarks:
    """Count alerts in the bins of a histogram; what lies outside its ends is counted in the outer bins."""
    edges = np.array(histogram.edges)
    counts = {
        decision: tuple(np.histogram(np.clip(scores[decision], edges[0], edges[-1]), edges)[0].tolist())
        for decision in Decision
    }
    return AlertMarks(counts[Decision.OMISSION], counts[Decision.COMMISSION])
