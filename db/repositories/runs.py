"""Scoring runs: begun as running, filled out of sight, published in one small transaction."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt
from sqlalchemy import Dialect, Table, delete, func, insert, select, update
from sqlalchemy.engine import Connection

from core.errors import RefusedError
from core.vocabulary import Decision, RunStatus
from db.cache import Caches, cached_of_run
from db.models import Alert, Instance, RunSensitivity, ScoringRun, Task, TaskResult
from db.models.types import CompressedVector, deflate
from db.queries.reading import change, columns, read_all, read_one, read_the, run, values
from db.queries.runs import folds_of_run, latest_run, past_of_task, published_runs, run_by_number
from db.repositories.inserting import Bound, bind, insert_bound
from db.rows import NewAlert, NewRun, NewTaskResult, RankedAlert, RunRow, TaskPast, TaskResultRow, TaskSummary
from db.rows.scoring import Histograms

VectorName = Literal["score", "scaled_score", "soft_label", "support"]


def prepare_alerts(dialect: Dialect, run_id: int, rows: Iterable[NewAlert]) -> Bound:
    """Make alerts ready for the database; a matter of milliseconds that need not be spent under its lock."""
    return bind(dialect, cast(Table, Alert.__table__), [values(row) | {"run_id": run_id} for row in rows])


def prepare_task_results(run_id: int, rows: Iterable[NewTaskResult]) -> list[dict[str, Any]]:
    """Make task results ready for the database, their vectors deflated in threads; best done without its lock."""
    prepared = [{"run_id": run_id, **values(row)} for row in rows]
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


class Runs:
    """Runs of the unit of work's connection."""

    def __init__(self, connection: Connection, caches: Caches | None = None) -> None:
        self._connection = connection
        self._caches = caches

    def start(self, run: NewRun) -> int:
        """Begin a run; nobody sees it before it is published.

        Returns
        -------
        int
            Number of the run.

        Raises
        ------
        RefusedError
            If another run is being written.
        """
        running = self._connection.execute(
            select(ScoringRun.id).where(ScoringRun.status == RunStatus.RUNNING)
        ).scalar_one_or_none()
        if running is not None:
            raise RefusedError(
                f"Scoring run {running} is being written. Wait until it has ended; if its job died, the next "
                "'alertreview score' sweeps it away."
            )
        new = values(run) | {
            "status": RunStatus.RUNNING,
            "n_omissions": 0,
            "n_commissions": 0,
            "n_tasks_scored": 0,
            "n_tasks_left_out": 0,
        }
        return self._connection.execute(insert(ScoringRun).values(new).returning(ScoringRun.id)).scalar_one()

    def add_task_results(self, run_id: int, rows: Iterable[NewTaskResult]) -> None:
        """Add what tasks scored to a running run; see `db.maintenance.bulk` for many."""
        self.add_prepared_task_results(run_id, prepare_task_results(run_id, rows))

    def add_prepared_task_results(self, run_id: int, prepared: list[dict[str, Any]]) -> None:
        """Add task results that `prepare_task_results` has made ready before the lock was taken."""
        self._require_running(run_id)
        if prepared:
            self._connection.execute(insert(TaskResult), prepared)

    def add_alerts(self, run_id: int, rows: Iterable[NewAlert]) -> None:
        """Add alerts to a running run; see `db.maintenance.bulk` for many."""
        self.add_prepared_alerts(run_id, prepare_alerts(self._connection.dialect, run_id, rows))

    def add_prepared_alerts(self, run_id: int, prepared: Bound) -> None:
        """Add alerts that `prepare_alerts` has made ready before the lock was taken."""
        self._require_running(run_id)
        insert_bound(self._connection, cast(Table, Alert.__table__), prepared)

    def publish(
        self,
        run_id: int,
        *,
        published_at: datetime,
        floors: dict[Decision, float],
        other_floors: Mapping[str, Mapping[Decision, float]] | None = None,
    ) -> RunRow:
        """Show a run to readers, from the commit on.

        Parameters
        ----------
        run_id : int
            A running run with all its results and alerts.
        published_at : datetime
            Aware.
        floors : dict of Decision to float
            Scaled score below which nothing was stored as an alert of the first scorer.
        other_floors : dict of str to dict of Decision to float, optional
            The same for each further scorer.

        Raises
        ------
        RefusedError
            If the run is not running.
        """
        counts = self._task_counts(run_id)
        run = self.get(run_id)
        lists = {
            scorer: said | self._lists(run_id, scorer, (other_floors or {}).get(scorer, {}))
            for scorer, said in run.scorers.items()
        }
        changed = change(
            self._connection,
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
        return self.get(run_id)

    def abandon_unfinished(self) -> int:
        """Mark runs that are still "running" as abandoned; only for the holder of the scoring lock.

        Returns
        -------
        int
            Number of runs abandoned.
        """
        statement = update(ScoringRun).where(ScoringRun.status == RunStatus.RUNNING).values(status=RunStatus.ABANDONED)
        return change(self._connection, statement)

    def discard_abandoned(self, limit: int) -> int:
        """Delete at most `limit` alerts, or else the task results, of abandoned runs; the runs themselves stay listed.

        Returns
        -------
        int
            Number of rows deleted; 0 when nothing is left.
        """
        abandoned = select(ScoringRun.id).where(ScoringRun.status == RunStatus.ABANDONED)
        some = select(Alert.id).where(Alert.run_id.in_(abandoned)).limit(limit)
        n_deleted = change(self._connection, delete(Alert).where(Alert.id.in_(some)))
        if n_deleted == 0:
            n_deleted = change(self._connection, delete(TaskResult).where(TaskResult.run_id.in_(abandoned)))
        return n_deleted

    def get(self, run_id: int) -> RunRow:
        """Return a run in any state.

        Raises
        ------
        NotFoundError
            If there is none.
        """
        missing = f"There is no scoring run {run_id}."
        return read_the(self._connection, RunRow, run_by_number(), missing, run_id_=run_id)

    def all(self) -> list[RunRow]:
        """Return every run in any state, newest first."""
        return read_all(self._connection, RunRow, select(*columns(ScoringRun, RunRow)).order_by(ScoringRun.id.desc()))

    def published_run(self, run_id: int) -> RunRow | None:
        """Return a run by number if it is published, else None."""
        found = read_one(self._connection, RunRow, run_by_number(), run_id_=run_id)
        return found if found is not None and found.status is RunStatus.PUBLISHED else None

    def published(self) -> list[RunRow]:
        """Return the published runs, newest first."""
        return read_all(self._connection, RunRow, published_runs())

    def latest_published(self) -> RunRow | None:
        """Return the run published last, None when there is none."""
        return read_one(self._connection, RunRow, latest_run())

    def fold_of_row(self, run_id: int) -> npt.NDArray[np.int16]:
        """Return for each instance of the snapshot the fold it is scored in; -1 only learned from, -2 left out.

        The vectors of the run's task results run over ``numpy.flatnonzero(folds >= 0)``.
        """
        folds: npt.NDArray[np.int16] = run(self._connection, folds_of_run(), run_id_=run_id).scalar_one()
        return folds

    def cached_folds(self, run: RunRow) -> npt.NDArray[np.int16]:
        """Return `fold_of_row` of a run, cached once it is published."""
        return cached_of_run(self._caches, "folds", run, (), lambda: self.fold_of_row(run.id))

    def past_of_task(self, run: RunRow, task_id: int, scorer: str) -> TaskPast:
        """Return what a scorer of a run learned of a task, cached once the run is published.

        Raises
        ------
        NotFoundError
            If the run has no result of this task and scorer.
        """
        missing = f"Scoring run {run.id} has no result of scorer '{scorer}' for task number {task_id}."
        key = {"run_id_": run.id, "task_id_": task_id, "scorer_": scorer}
        return cached_of_run(
            self._caches,
            "task",
            run,
            (task_id, scorer),
            lambda: read_the(self._connection, TaskPast, past_of_task(), missing, **key),
        )

    def task_results(self, run_id: int, scorer: str | None = None) -> list[TaskSummary]:
        """Return what the tasks of a run scored, without vectors, by task.

        Parameters
        ----------
        run_id : int
            Number of the run.
        scorer : str or None
            Only this scorer's; None for all.
        """
        statement = select(*columns(TaskResult, TaskSummary)).where(TaskResult.run_id == run_id)
        if scorer is not None:
            statement = statement.where(TaskResult.scorer == scorer)
        return read_all(self._connection, TaskSummary, statement.order_by(TaskResult.task_id, TaskResult.scorer))

    def histograms(self, run_id: int) -> Iterator[tuple[int, str, Histograms]]:
        """Yield (task number, scorer, histograms) of everything that the run scored, without vectors."""
        statement = select(
            TaskResult.task_id, TaskResult.scorer, TaskResult.score_histogram, TaskResult.scaled_histogram
        ).where(TaskResult.run_id == run_id, TaskResult.reason == "")
        for task_id, scorer, raw, scaled in self._connection.execute(statement):
            yield task_id, scorer, (raw, scaled)

    def task_result(self, run_id: int, task_id: int, scorer: str | None = None) -> TaskResultRow:
        """Return one task's result with vectors and histograms; None means the scorer that ranks the run's alerts.

        Raises
        ------
        NotFoundError
            If the run has no result of this task and scorer.
        """
        wanted = scorer if scorer is not None else self.get(run_id).scorer
        statement = select(*columns(TaskResult, TaskResultRow)).where(
            TaskResult.run_id == run_id, TaskResult.task_id == task_id, TaskResult.scorer == wanted
        )
        missing = f"Scoring run {run_id} has no result of scorer '{wanted}' for task number {task_id}."
        return read_the(self._connection, TaskResultRow, statement, missing)

    def vectors(
        self, run_id: int, name: VectorName, scorer: str | None = None
    ) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
        """Yield (task number, vector over the recent instances) for each scored task, one in memory at a time."""
        wanted = scorer if scorer is not None else self.get(run_id).scorer
        column = getattr(TaskResult, name)
        statement: Any = (
            select(TaskResult.task_id, column)
            .where(TaskResult.run_id == run_id, TaskResult.scorer == wanted, column.is_not(None))
            .order_by(TaskResult.task_id)
            .execution_options(yield_per=4)
        )
        for task_id, vector in self._connection.execute(statement):  # noqa: UP028 - rows become plain pairs
            yield task_id, vector

    def ranked(self, run_id: int, decision: Decision, limit: int, scorer: str | None = None) -> list[RankedAlert]:
        """Return the first alerts of a list by rank, each under what it is about: comparable between runs and imports.

        Parameters
        ----------
        run_id : int
            Number of the run.
        decision : Decision
            Which of the two lists.
        limit : int
            At most so many.
        scorer : str or None
            Whose list; None for the scorer that ranks the run.
        """
        wanted = scorer if scorer is not None else self.get(run_id).scorer
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
        return read_all(self._connection, RankedAlert, statement)

    def put_sensitivity(self, run_id: int, curves: dict[str, Any], code_version: str, computed_at: datetime) -> None:
        """Keep the sensitivity curves of a run in place of former ones."""
        self._connection.execute(delete(RunSensitivity).where(RunSensitivity.run_id == run_id))
        self._connection.execute(
            insert(RunSensitivity).values(
                run_id=run_id, curves=curves, code_version=code_version, computed_at=computed_at
            )
        )

    def sensitivity(self, run_id: int) -> tuple[dict[str, Any], datetime] | None:
        """Return the sensitivity curves of a run and when they were computed, None when there are none."""
        statement = select(RunSensitivity.curves, RunSensitivity.computed_at).where(RunSensitivity.run_id == run_id)
        row = self._connection.execute(statement).one_or_none()
        return None if row is None else (row.curves, row.computed_at)

    def _require_running(self, run_id: int) -> None:
        status = self._connection.execute(select(ScoringRun.status).where(ScoringRun.id == run_id)).scalar_one_or_none()
        if status is not RunStatus.RUNNING:
            raise RefusedError(f"Scoring run {run_id} takes no more results: it is {status or 'not there'}.")

    def _lists(self, run_id: int, scorer: str, floors: Mapping[Decision, float]) -> dict[str, Any]:
        """Floors and lengths of a further scorer's lists, as `RunRow.floors` and `RunRow.n_alerts` read them."""
        lengths = {f"n_{decision.value}s": self._lowest_rank(run_id, scorer, decision) for decision in Decision}
        return {**{f"floor_{decision.value}": floor for decision, floor in floors.items()}, **lengths}

    def _lowest_rank(self, run_id: int, scorer: str, decision: Decision) -> int:
        """Ranks have no gaps, so the last one is the number of alerts, found by one seek."""
        statement = select(func.max(Alert.rank)).where(
            Alert.run_id == run_id, Alert.scorer == scorer, Alert.decision == decision
        )
        return self._connection.execute(statement).scalar() or 0

    def _task_counts(self, run_id: int) -> dict[bool, int]:
        """Return the number of tasks scored (True) and left out (False) by the scorer that ranks."""
        scored = (TaskResult.reason == "").label("scored")
        statement = (
            select(scored, func.count())
            .join(ScoringRun, ScoringRun.id == TaskResult.run_id)
            .where(TaskResult.run_id == run_id, TaskResult.scorer == ScoringRun.scorer)
            .group_by(scored)
        )
        return {bool(key): count for key, count in self._connection.execute(statement)}
