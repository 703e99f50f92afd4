"""Write a run task by task out of sight, rank it for each of its scorers, and publish it when it is whole."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt

from alertreview.ranking import VALUES, TopDecisions
from alertreview.settings import Settings
from alertreview.snapshots import Snapshot, read_snapshot
from core.errors import NotFoundError
from core.stays import HOURS_IN_WINDOW
from db.bulk import store_alerts, store_task_results
from db.rows import NewAlert, NewRun, NewTaskResult, RunRow, SnapshotRow, TaskRow
from db.session import Database

ALERTS_KEPT_PER_PATIENT_DAY = 2.0
"""One indexed row is stored for this many alerts of each decision; the scores of all others stay in the vectors."""


@dataclass(frozen=True)
class ScoredImport:
    """The import whose decisions a run scores."""

    stored: SnapshotRow
    snapshot: Snapshot
    tasks: list[TaskRow]
    instance_ids: npt.NDArray[np.int64]
    """Numbers of the instances in the database, by row."""


@dataclass(frozen=True)
class WrittenRun:
    """A published run and why some of its tasks were not scored."""

    run: RunRow
    reasons: dict[int, str]
    """By task column."""


def last_import(settings: Settings, database: Database) -> ScoredImport:
    """Open the import that was stored last.

    Raises
    ------
    NotFoundError
        If nothing was imported yet.
    """
    with database.read() as uow:
        stored = uow.snapshots.latest()
        if stored is None:
            raise NotFoundError("There is nothing to score: import health records first (alertreview import SOURCE).")
        tasks = uow.snapshots.tasks(stored.id)
        instance_ids = uow.snapshots.instance_ids(stored.id)
    return ScoredImport(stored, read_snapshot(settings.snapshots / stored.folder), tasks, instance_ids)


def write_run(database: Database, scored: ScoredImport, run: NewRun, results: Iterable[NewTaskResult]) -> WrittenRun:
    """Store results as they come, then the lists of every scorer, and publish.

    Parameters
    ----------
    database : Database
        The caller holds the right to score.
    scored : ScoredImport
    run : NewRun
    results : iterable of NewTaskResult
        By ascending task column, for each all scorers; consumed once, one at a time.

    Returns
    -------
    WrittenRun
    """
    with database.write() as uow:
        run_id = uow.runs.start(run)
        uow.commit()
    recent = np.flatnonzero(run.fold_of_row >= 0)
    n_kept = max(1, round(ALERTS_KEPT_PER_PATIENT_DAY * len(recent)))
    lists = {scorer: TopDecisions(n_kept) for scorer in (run.scorer, *run.scorers)}
    reasons: dict[int, str] = {}
    columns = {task.id: task.column_index for task in scored.tasks}

    def ranked_on_the_way() -> Iterator[NewTaskResult]:
        for result in results:
            column = columns[result.task_id]
            if result.scaled_score is not None:
                vectors = {name: getattr(result, name) for name in VALUES}
                lists[result.scorer].add(column, _taken(scored.snapshot, column)[recent], vectors)
            elif result.scorer == run.scorer:
                reasons[column] = result.reason
            yield result

    store_task_results(database, run_id, ranked_on_the_way())
    store_alerts(database, run_id, _alerts(scored, recent, lists))
    floors = {scorer: top.floors for scorer, top in lists.items()}
    now = datetime.now(UTC)
    with database.write() as uow:
        published = uow.runs.publish(run_id, published_at=now, floors=floors.pop(run.scorer), other_floors=floors)
        details = {"scorer": run.scorer, "tasks": published.n_tasks_scored}
        uow.audit.append(now, "command line", "run published", f"run {run_id}", details)
        uow.commit()
    return WrittenRun(published, reasons)


def _alerts(scored: ScoredImport, recent: npt.NDArray[np.int64], lists: dict[str, TopDecisions]) -> Iterator[NewAlert]:
    units = scored.snapshot.instances["unit"].to_numpy()
    window_hours = scored.snapshot.instances["window_hours"].to_numpy()
    for scorer, top in lists.items():
        for decision, place in top.places():
            task, row = scored.tasks[place.column], recent[place.position]
            yield NewAlert(
                task_id=task.id,
                instance_id=int(scored.instance_ids[row]),
                rank=place.rank,
                decision=decision,
                kind=task.kind,
                unit=str(units[row]),
                window_cut=bool(window_hours[row] < HOURS_IN_WINDOW),
                score=place.score,
                scaled_score=place.scaled_score,
                soft_label=place.soft_label,
                support=place.support,
                scorer=scorer,
            )


def _taken(snapshot: Snapshot, column: int) -> npt.NDArray[np.bool_]:
    decisions = snapshot.decisions
    taken = np.zeros(decisions.shape[0], dtype=bool)
    start, end = decisions.indptr[column : column + 2]
    taken[decisions.indices[start:end]] = decisions.data[start:end]
    return taken
