"""Scoring runs: begun as running, filled out of sight, published in one small transaction."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from sqlalchemy import Dialect, delete, func, insert, select, update

from core.errors import RefusedError
from core.vocabulary import Decision, RunId, RunStatus, TaskId
from db.cache import cached_of_run
from db.models import Alert, Instance, RankedAlert, RunSensitivity, ScoringRun, Task, TaskPast, TaskResult, TaskSummary
from db.models.types import CompressedVector, deflate
from db.queries.reading import Repository, given, select_records, stored_values
from db.queries.seals import RESULTS, ResultsSeal, mark
from db.repositories.inserting import Bound, bind, insert_bound

VectorName = Literal["score", "scaled_score", "soft_label", "support"]
Histograms: TypeAlias = tuple[dict[str, Any], dict[str, Any]]
"""Of the scores and of the scaled scores of a task: {"edges": [...], "counts": [...]}."""

_BY_ID = select_records(ScoringRun).where(ScoringRun.id == given("run_id"))
_PUBLISHED = (
    select_records(ScoringRun)
    .where(ScoringRun.status == RunStatus.PUBLISHED)
    .order_by(ScoringRun.published_at.desc(), ScoringRun.id.desc())
)
_LATEST = _PUBLISHED.limit(1)
_FOLDS = select(ScoringRun.fold_of_row).where(ScoringRun.id == given("run_id"))
_PAST = select_records(TaskResult, TaskPast).where(
    TaskResult.run_id == given("run_id"),
    TaskResult.task_id == given("task_id"),
    TaskResult.scorer == given("scorer"),
)


def prepare_alerts(dialect: Dialect, run_id: RunId, alerts: Iterable[Alert]) -> Bound:
    """Make alerts ready for the database; a matter of milliseconds that need not be spent under its lock."""
    return bind(dialect, Alert.__table__, [stored_values(alert) | {"run_id": run_id} for alert in alerts])


def prepare_task_results(run_id: RunId, results: Iterable[TaskResult]) -> list[dict[str, Any]]:
    """Make task results ready for the database, their vectors deflated in threads; best done without its lock."""
    prepared = [stored_values(result) | {"run_id": run_id} for result in results]
    vectors = {
        column.name: column.type.number
        for column in TaskResult.__table__.columns
        if isinstance(column.type, CompressedVector)
    }
    places = [(row, name) for row in prepared for name in vectors if row.get(name) is not None]
    with ThreadPoolExecutor() as threads:
        deflated = threads.map(lambda place: deflate(place[0][place[1]], vectors[place[1]]), places)
        for (row, name), done in zip(places, deflated, strict=True):
            row[name] = done
    return prepared


class Runs(Repository):
    """Scoring runs with their task results."""

    def start(self, run: ScoringRun, fold_of_row: npt.NDArray[np.int16]) -> RunId:
        """Begin a run; nobody sees it before it is published.

        `fold_of_row`, of shape (n_instances,), has for each instance of the snapshot the fold it is scored in; -1 only
        learned from, -2 left out. Raise RefusedError if another run is being written.
        """
        running = self._run(select(ScoringRun.id).where(ScoringRun.status == RunStatus.RUNNING)).scalar_one_or_none()
        if running is not None:
            raise RefusedError(
                f"Scoring run {running} is being written. Wait until it has ended; if its job died, the next "
                "'alertreview score' sweeps it away."
            )
        new = stored_values(run) | {"fold_of_row": fold_of_row}
        return RunId(self._run(insert(ScoringRun).values(new).returning(ScoringRun.id)).scalar_one())

    def add_task_results(self, run_id: RunId, prepared: list[dict[str, Any]]) -> None:
        """Add task results that `prepare_task_results` has made ready before the lock was taken."""
        self._require_running(run_id)
        if prepared:
            self._connection.execute(insert(TaskResult), prepared)

    def add_alerts(self, run_id: RunId, prepared: Bound) -> None:
        """Add alerts that `prepare_alerts` has made ready before the lock was taken."""
        self._require_running(run_id)
        insert_bound(self._connection, Alert.__table__, prepared)

    def publish(
        self,
        run_id: RunId,
        *,
        published_at: datetime,
        floors: dict[Decision, float],
        other_floors: Mapping[str, Mapping[Decision, float]] | None = None,
        results_seal: str | None = None,
    ) -> ScoringRun:
        """Show a run with all its results and alerts to readers, from the commit on.

        Below its floor no scaled score was stored as an alert: of the first scorer, and of each further one. Without
        the seal from `db.maintenance.bulk.store_results` the results are hashed in this transaction. Raise
        RefusedError if the run is not running.
        """
        counts = self._task_counts(run_id)
        run = self.get(run_id)
        lists = {
            scorer: said | self._lists(run_id, scorer, (other_floors or {}).get(scorer, {}))
            for scorer, said in run.scorers.items()
        }
        changed = self._change(
            update(ScoringRun)
            .where(ScoringRun.id == run_id, ScoringRun.status == RunStatus.RUNNING)
            .values(
                status=RunStatus.PUBLISHED,
                published_at=published_at,
                floor_omission=floors.get(Decision.OMISSION),
                floor_commission=floors.get(Decision.COMMISSION),
                n_omissions=self._lowest_rank(run_id, run.scorer, Decision.OMISSION),
                n_commissions=self._lowest_rank(run_id, run.scorer, Decision.COMMISSION),
                scorers=lists,
                n_tasks_scored=counts.get(True, 0),
                n_tasks_left_out=counts.get(False, 0),
            ),
        )
        if changed != 1:
            raise RefusedError(f"Scoring run {run_id} cannot be published: it is not being written any more.")
        mark(self._connection, "run", run_id)
        mark(self._connection, RESULTS, run_id, seal=results_seal)
        return self.get(run_id)

    def extend_seal(self, seal: ResultsSeal) -> None:
        """Hash what was stored of a run since the last time."""
        seal.extend(self._connection)

    def abandon_unfinished(self) -> int:
        """Mark runs that are still "running" as abandoned, for the holder of the scoring lock; return how many."""
        statement = update(ScoringRun).where(ScoringRun.status == RunStatus.RUNNING).values(status=RunStatus.ABANDONED)
        return self._change(statement)

    def discard_abandoned(self, limit: int) -> int:
        """Delete at most `limit` alerts, or else the task results, of abandoned runs; the runs themselves stay listed.

        Return the number of rows deleted; 0 when nothing is left.
        """
        abandoned = select(ScoringRun.id).where(ScoringRun.status == RunStatus.ABANDONED)
        some = select(Alert.id).where(Alert.run_id.in_(abandoned)).limit(limit)
        n_deleted = self._change(delete(Alert).where(Alert.id.in_(some)))
        if n_deleted == 0:
            n_deleted = self._change(delete(TaskResult).where(TaskResult.run_id.in_(abandoned)))
        return n_deleted

    def get(self, run_id: RunId) -> ScoringRun:
        """Return a run in any state; raise NotFoundError if there is none."""
        missing = f"There is no scoring run {run_id}."
        return self._the(ScoringRun, _BY_ID, missing, run_id_=run_id)

    def all(self) -> list[ScoringRun]:
        """Return every run in any state, newest first."""
        return self._all(ScoringRun, select_records(ScoringRun).order_by(ScoringRun.id.desc()))

    def published_run(self, run_id: RunId) -> ScoringRun | None:
        """Return a run by number if it is published, else None."""
        found = self._one(ScoringRun, _BY_ID, run_id_=run_id)
        return found if found is not None and found.status is RunStatus.PUBLISHED else None

    def published(self) -> list[ScoringRun]:
        """Return the published runs, newest first."""
        return self._all(ScoringRun, _PUBLISHED)

    def latest_published(self) -> ScoringRun | None:
        """Return the run published last, None when there is none."""
        return self._one(ScoringRun, _LATEST)

    def fold_of_row(self, run_id: RunId) -> npt.NDArray[np.int16]:
        """Return for each instance of the snapshot the fold it is scored in; -1 only learned from, -2 left out.

        The vectors of the run's task results run over ``numpy.flatnonzero(folds >= 0)``.
        """
        folds: npt.NDArray[np.int16] = self._run(_FOLDS, run_id_=run_id).scalar_one()
        return folds

    def cached_folds(self, run: ScoringRun) -> npt.NDArray[np.int16]:
        """Return `fold_of_row` of a run, cached once it is published."""
        return cached_of_run(self._caches, "folds", run, (), lambda: self.fold_of_row(run.id))

    def past_of_task(self, run: ScoringRun, task_id: TaskId, scorer: str) -> TaskPast:
        """Return what a scorer of a run learned of a task, cached once the run is published.

        Raise NotFoundError if the run has no result of this task and scorer.
        """
        missing = f"Scoring run {run.id} has no result of scorer '{scorer}' for task number {task_id}."
        key = {"run_id_": run.id, "task_id_": task_id, "scorer_": scorer}
        return cached_of_run(
            self._caches,
            "task",
            run,
            (task_id, scorer),
            lambda: self._the(TaskPast, _PAST, missing, **key),
        )

    def task_results(self, run_id: RunId, scorer: str | None = None) -> list[TaskSummary]:
        """Return what the tasks of a run scored, without vectors, by task; of one scorer or of all."""
        statement = select_records(TaskResult, TaskSummary).where(TaskResult.run_id == run_id)
        if scorer is not None:
            statement = statement.where(TaskResult.scorer == scorer)
        return self._all(TaskSummary, statement.order_by(TaskResult.task_id, TaskResult.scorer))

    def histograms(self, run_id: RunId) -> Iterator[tuple[TaskId, str, Histograms]]:
        """Yield (task number, scorer, histograms) of everything that the run scored, without vectors."""
        statement = select(
            TaskResult.task_id, TaskResult.scorer, TaskResult.score_histogram, TaskResult.scaled_histogram
        ).where(TaskResult.run_id == run_id, TaskResult.reason == "")
        for task_id, scorer, raw, scaled in self._run(statement):
            yield task_id, scorer, (raw, scaled)

    def task_result(self, run_id: RunId, task_id: TaskId, scorer: str | None = None) -> TaskResult:
        """Return one task's result with vectors and histograms; None means the scorer that ranks the run's alerts.

        Raise NotFoundError if the run has no result of this task and scorer.
        """
        wanted = scorer if scorer is not None else self.get(run_id).scorer
        statement = select_records(TaskResult).where(
            TaskResult.run_id == run_id, TaskResult.task_id == task_id, TaskResult.scorer == wanted
        )
        missing = f"Scoring run {run_id} has no result of scorer '{wanted}' for task number {task_id}."
        return self._the(TaskResult, statement, missing)

    def vectors(
        self, run_id: RunId, name: VectorName, scorer: str | None = None
    ) -> Iterator[tuple[TaskId, npt.NDArray[np.float32]]]:
        """Yield (task number, vector over the recent instances) for each scored task, one in memory at a time."""
        wanted = scorer if scorer is not None else self.get(run_id).scorer
        column = getattr(TaskResult, name)
        statement: Any = (
            select(TaskResult.task_id, column)
            .where(TaskResult.run_id == run_id, TaskResult.scorer == wanted, column.is_not(None))
            .order_by(TaskResult.task_id)
            .execution_options(yield_per=4)
        )
        for task_id, vector in self._run(statement):  # noqa: UP028 - rows become plain pairs
            yield task_id, vector

    def ranked(self, run_id: RunId, decision: Decision, limit: int) -> list[RankedAlert]:
        """Return the first alerts of a list by rank, each under what it is about.

        So they can be compared between runs and imports.
        """
        wanted = self.get(run_id).scorer
        statement = (
            select(
                Alert.id.label("alert_id"),
                Instance.patient_id,
                Instance.snapshot_at,
                Task.task_key,
                Task.name.label("task_name"),
                Task.kind,
                Alert.rank,
                Alert.scaled_score,
            )
            .join(Instance, Instance.id == Alert.instance_id)
            .join(Task, Task.id == Alert.task_id)
            .where(Alert.run_id == run_id, Alert.scorer == wanted, Alert.decision == decision, Alert.rank <= limit)
            .order_by(Alert.rank)
        )
        return self._all(RankedAlert, statement)

    def put_sensitivity(self, run_id: RunId, curves: dict[str, Any], code_version: str, computed_at: datetime) -> None:
        """Keep the sensitivity curves of a run in place of former ones."""
        self._run(delete(RunSensitivity).where(RunSensitivity.run_id == run_id))
        self._insert(RunSensitivity(run_id=run_id, curves=curves, code_version=code_version, computed_at=computed_at))

    def sensitivity(self, run_id: RunId) -> tuple[dict[str, Any], datetime] | None:
        """Return the sensitivity curves of a run and when they were computed, None when there are none."""
        statement = select(RunSensitivity.curves, RunSensitivity.computed_at).where(RunSensitivity.run_id == run_id)
        row = self._run(statement).one_or_none()
        return None if row is None else (row.curves, row.computed_at)

    def _require_running(self, run_id: RunId) -> None:
        status = self._connection.execute(select(ScoringRun.status).where(ScoringRun.id == run_id)).scalar_one_or_none()
        if status is not RunStatus.RUNNING:
            raise RefusedError(f"Scoring run {run_id} takes no more results: it is {status or 'not there'}.")

    def _lists(self, run_id: RunId, scorer: str, floors: Mapping[Decision, float]) -> dict[str, Any]:
        """Return floors and lengths of a further scorer's lists, for `ScoringRun.floors` and `n_alerts`."""
        lengths = {f"n_{decision.value}s": self._lowest_rank(run_id, scorer, decision) for decision in Decision}
        return {**{f"floor_{decision.value}": floor for decision, floor in floors.items()}, **lengths}

    def _lowest_rank(self, run_id: RunId, scorer: str, decision: Decision) -> int:
        """Ranks have no gaps, so the last one is the number of alerts, found by one seek."""
        statement = select(func.max(Alert.rank)).where(
            Alert.run_id == run_id, Alert.scorer == scorer, Alert.decision == decision
        )
        return self._run(statement).scalar() or 0

    def _task_counts(self, run_id: RunId) -> dict[bool, int]:
        """Return the number of tasks scored (True) and left out (False) by the scorer that ranks."""
        scored = (TaskResult.reason == "").label("scored")
        statement = (
            select(scored, func.count())
            .join(ScoringRun, ScoringRun.id == TaskResult.run_id)
            .where(TaskResult.run_id == run_id, TaskResult.scorer == ScoringRun.scorer)
            .group_by(scored)
        )
        return {bool(key): count for key, count in self._run(statement)}
