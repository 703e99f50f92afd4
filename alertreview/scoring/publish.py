"""Write a run task by task out of sight, rank it for each of its scorers, and publish it when it is whole."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt

from alertreview.records.catalogue import (
    CatalogueEntry,
    reasons_left_out,
    run_parameters,
    site_day,
    stored_settings,
    task_catalogue,
)
from alertreview.records.snapshots import Snapshot, open_import
from alertreview.scoring.ranking import VALUES, TopDecisions, likelier_than_in_general
from alertreview.scoring.splits import FoldOfRow
from alertreview.settings import Settings
from core.errors import NotFoundError
from core.events.stays import HOURS_IN_WINDOW
from core.scoring.scorers import leaves_out_likelier
from core.scoring.scores import ScoredTasks, TaskScores
from core.vocabulary import InstanceId
from db.audit import CHECKSUM
from db.database import Database
from db.maintenance.bulk import store_results
from db.models import Alert, CohortSnapshot, ScoringRun, Task, TaskResult

ALERTS_KEPT_PER_PATIENT_DAY = 2.0
"""One indexed row is stored for this many alerts of each decision; the scores of all others stay in the vectors."""


@dataclass(frozen=True)
class ScoredImport:
    """The import whose decisions a run scores."""

    stored: CohortSnapshot
    snapshot: Snapshot
    tasks: list[Task]
    instance_ids: npt.NDArray[np.int64]  # numbers of the instances in the database, by row
    catalogue: tuple[CatalogueEntry, ...]  # its tasks in column order, as they are asked about now
    today: date  # day of the site, by which mutes end

    @property
    def left_out(self) -> dict[int, str]:
        """Why tasks are not asked about, by column."""
        return reasons_left_out(self.catalogue)

    @property
    def asked(self) -> dict[str, str]:
        """Parameters of a run that say what its catalogue was; empty where everything is asked about."""
        return run_parameters(self.catalogue, self.today)

    def muted(self, column: int, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Mark the rows in whose care units no alert of a task is listed now."""
        units = self.catalogue[column].muted_units(self.today)
        if units is None:
            return np.zeros(len(rows), dtype=bool)
        mine: npt.NDArray[np.bool_] = self.snapshot.instances["unit"].isin(units).to_numpy()[rows]
        return mine if units else np.ones(len(rows), dtype=bool)


@dataclass(frozen=True)
class WrittenRun:
    """A published run and why some of its tasks were not scored."""

    run: ScoringRun
    reasons: dict[int, str]  # by task column


def last_import(settings: Settings, database: Database) -> ScoredImport:
    """Open the import that was stored last.

    Raise NotFoundError if nothing was imported yet, SourceError if a file of the import is not as it was written.
    """
    with database.read() as uow:
        stored = uow.snapshots.latest()
        if stored is None:
            raise NotFoundError("There is nothing to score: import health records first (alertreview import SOURCE).")
        tasks = uow.snapshots.tasks(stored.id)
        instance_ids = uow.snapshots.instance_ids(stored.id)
        snapshot = open_import(settings, uow, stored.folder, whole=True)
        decided = stored_settings(uow)
    return ScoredImport(
        stored, snapshot, tasks, instance_ids, task_catalogue(snapshot, decided), site_day(snapshot.site_timezone)
    )


def write_run(
    database: Database,
    scored: ScoredImport,
    run: ScoringRun,
    folds: FoldOfRow,
    results: Iterable[TaskResult],
    *,
    checksum: str = "",
) -> WrittenRun:
    """Store results as they come, then the lists of every scorer, and publish; the caller holds the right to score.

    `folds`, of shape (n_instances,), are those of `db.repositories.runs.Runs.start`; results come by ascending task
    column, for each all scorers, and are consumed once, one at a time. The checksum is that of the files of what the
    run learned.
    """
    with database.write() as uow:
        run_id = uow.runs.start(run, folds)
        uow.commit()
    recent = np.flatnonzero(folds >= 0)
    n_kept = max(1, round(ALERTS_KEPT_PER_PATIENT_DAY * len(recent)))
    lists = {scorer: TopDecisions(n_kept) for scorer in (run.scorer, *run.scorers)}
    reasons: dict[int, str] = {}
    columns = {task.id: task.column_index for task in scored.tasks}

    def ranked_on_the_way() -> Iterator[TaskResult]:
        for result in results:
            column = columns[result.task_id]
            if result.scaled_score is not None:
                vectors = {name: getattr(result, name) for name in VALUES}
                taken = _taken(scored.snapshot, column)[recent]
                without = _without_a_place(result, taken) | scored.muted(column, recent)
                lists[result.scorer].add(column, taken, vectors, without)
            elif result.scorer == run.scorer:
                reasons[column] = result.reason
            yield result

    seal = store_results(database, run_id, ranked_on_the_way(), _alerts(scored, recent, lists))
    floors = {scorer: top.floors for scorer, top in lists.items()}
    now = datetime.now(UTC)
    with database.write() as uow:
        own = floors.pop(run.scorer)
        published = uow.runs.publish(run_id, published_at=now, floors=own, other_floors=floors, results_seal=seal)
        details: dict[str, Any] = {"scorer": run.scorer, "tasks": published.n_tasks_scored}
        if checksum:
            details[CHECKSUM] = checksum
        uow.audit.append(now, "command line", "run published", f"run {run_id}", details)
        uow.commit()
    return WrittenRun(published, reasons)


def _alerts(scored: ScoredImport, recent: npt.NDArray[np.int64], lists: dict[str, TopDecisions]) -> Iterator[Alert]:
    units = scored.snapshot.instances["unit"].to_numpy()
    window_hours = scored.snapshot.instances["window_hours"].to_numpy()
    for scorer, top in lists.items():
        for decision, place in top.places():
            task, row = scored.tasks[place.column], recent[place.position]
            yield Alert(
                task_id=task.id,
                instance_id=InstanceId(int(scored.instance_ids[row])),
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


def _without_a_place(result: TaskResult, taken: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    if result.soft_label is None or not leaves_out_likelier(result.scorer):
        return np.zeros(len(taken), dtype=bool)
    return likelier_than_in_general(result.soft_label, taken, result.n_past_positive / result.n_past)


def _taken(snapshot: Snapshot, column: int) -> npt.NDArray[np.bool_]:
    decisions = snapshot.decisions
    taken = np.zeros(decisions.shape[0], dtype=bool)
    start, end = decisions.indptr[column : column + 2]
    taken[decisions.indices[start:end]] = decisions.data[start:end]
    return taken


N_BINS = 40
_ROUNDING = 1e-6
Vector = npt.NDArray[np.float32]


def assemble_task(scored: list[ScoredTasks], folds: FoldOfRow, task: Task, scorer: str) -> TaskResult:
    """Join what the folds scored for one task.

    Vectors run over the scored instances in row order, NaN where a fold could not score the task. With one fold the
    histograms count past and recent instances; in folds every instance is counted once, as it was scored.
    """
    by_fold = {
        fold: part.scores(task.column_index, scorer)
        for fold, part in enumerate(scored)
        if task.column_index in part.evidence
    }
    if not by_fold:
        reason = next(part.not_scored[task.column_index] for part in scored)
        return TaskResult(task_id=task.id, scorer=scorer, reason=reason, n_past=0, n_past_positive=0)
    fold_of_recent = folds[folds >= 0]
    score = _join(by_fold, fold_of_recent, "score")
    scaled_score = _join(by_fold, fold_of_recent, "scaled_score")
    only = by_fold[0] if len(scored) == 1 else None
    raw = _with_past(score, only.past_score if only else None)
    scaled = _with_past(scaled_score, only.past_scaled_score if only else None)
    first = by_fold[min(by_fold)]
    return TaskResult(
        task_id=task.id,
        scorer=scorer,
        # The mean, not the most: days and decisions of two folds would make a share that no past has.
        n_past=round(np.mean([part.n_past for part in by_fold.values()])),
        n_past_positive=round(np.mean([part.n_past_positive for part in by_fold.values()])),
        scaling={str(fold): part.scale for fold, part in by_fold.items()},
        diagnostics={"folds_left_out": len(scored) - len(by_fold)},
        feature_columns=first.feature_indices,
        feature_weights=first.feature_weights,
        score_histogram=_histogram(raw),
        scaled_histogram=_histogram(scaled),
        score=score,
        scaled_score=scaled_score,
        soft_label=_join(by_fold, fold_of_recent, "soft_label"),
        support=_join(by_fold, fold_of_recent, "support"),
    )


def assemble_tasks(
    scored: list[ScoredTasks], folds: FoldOfRow, tasks: Sequence[Task], scorers: Sequence[str], n_jobs: int | None
) -> Iterator[TaskResult]:
    """Join what the folds scored, task by task and for each by all scorers, a few in advance and in threads."""
    in_threads = joblib.Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator", batch_size=1)
    results: Iterator[TaskResult] = in_threads(
        joblib.delayed(assemble_task)(scored, folds, task, scorer) for task in tasks for scorer in scorers
    )
    return results


def _join(by_fold: dict[int, TaskScores], fold_of_recent: npt.NDArray[np.int16], name: str) -> Vector:
    joined = np.full(len(fold_of_recent), np.nan, dtype=np.float32)
    for fold, part in by_fold.items():
        joined[fold_of_recent == fold] = getattr(part, name)
    return joined


def _with_past(recent: Vector, past: Vector | None) -> Vector:
    values = recent if past is None else np.concatenate((past, recent))
    return values[np.isfinite(values)]


def _histogram(values: Vector) -> dict[str, Any]:
    """Count in equal bins from 0 to 1, or to 2 where a score can reach it; other units get their own range."""
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    if low >= -_ROUNDING and high <= 1.0 + _ROUNDING:
        low, high = 0.0, 1.0
    elif low >= -_ROUNDING and high <= 2.0 + _ROUNDING:
        low, high = 0.0, 2.0
    edges = np.linspace(low, high, N_BINS + 1)
    # Told as a number and a range, bins are found by arithmetic; told as edges, by sorting, ten times as slow.
    counts = np.histogram(np.clip(values, low, high), bins=N_BINS, range=(low, high))[0]
    return {"edges": edges.round(6).tolist(), "counts": counts.tolist()}
