"""A new day: score new instances against the past that an earlier run learned, without learning again."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import joblib
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from alertreview import __version__
from alertreview.files import check_files
from alertreview.records.catalogue import WHERE, other_parameters
from alertreview.records.snapshots import Snapshot
from alertreview.scoring.publish import ScoredImport, last_import, write_run
from alertreview.scoring.resume import ScoringRequest
from alertreview.scoring.score_site import SHARED_NEEDS_TIME, ScoringOutcome, StoredPast, outcome_of, refuse_published
from alertreview.scoring.splits import LEARNED_FROM, LEFT_OUT, FoldOfRow
from alertreview.scoring.stored_past import StoredModel, feature_keys, open_model
from alertreview.settings import Progress, Settings
from core.errors import InvalidInputError, NotFoundError
from core.scoring.new_instances import NewInstances, prepare_new_instances
from core.scoring.parameters import ScoringParameters
from core.scoring.scorers import NEW_INSTANCE_SCORERS, SCORERS, keeps_no_patient_apart, needs_shared_graph, new_evidence
from core.scoring.scores import ScaledScores, score_by_scale
from db.database import Database
from db.maintenance.bulk import discard_abandoned
from db.models import ScoringRun, Task, TaskResult, TaskSummary
from db.repositories.runs import Histograms

LATEST = "latest"
"""Stands for the newest run that fits."""


@dataclass(frozen=True)
class BaseRun:
    """The run whose past is used, and what it said of its tasks."""

    run: ScoringRun
    model: StoredModel
    summaries: dict[tuple[str, str], TaskSummary]  # by task key and scorer
    histograms: dict[tuple[str, str], Histograms]

    @property
    def scorers(self) -> tuple[str, ...]:
        """Scorers of the run that new instances can be scored by."""
        past = self.model.past
        # The shared graph cannot leave out a patient afterwards.
        has_shared = past.shared is not None and past.past_patients is None
        return tuple(
            scorer
            for scorer in self.run.all_scorers
            if scorer in NEW_INSTANCE_SCORERS and (has_shared or not needs_shared_graph([scorer]))
        )


def find_base(settings: Settings, database: Database, wanted: str, since: pd.Timestamp) -> BaseRun | None:
    """Return a run whose kept past ends before a day (site time): the one named, or the "latest" that fits.

    None means that no latest one fits. Raise NotFoundError, InvalidInputError or SourceError if the run that was named
    does not exist, keeps nothing, or has learned from that day or later.
    """
    with database.read() as uow:
        published = uow.runs.published()
    if wanted == LATEST:
        for run in published:
            if run.model_folder and (settings.models / run.model_folder).is_dir():
                base = _open(settings, database, run)
                if base.model.past_end < since and base.scorers:
                    return base
        return None
    chosen = next((run for run in published if str(run.id) == wanted), None)
    if chosen is None:
        raise NotFoundError(f"There is no published scoring run {wanted} to score against (--from-run).")
    if not chosen.model_folder:
        raise InvalidInputError(
            f"Run {chosen.id} kept nothing to score against: only runs with one past and a true calendar do. "
            "Name another run, or --from-run none."
        )
    base = _open(settings, database, chosen)
    if base.model.past_end >= since:
        raise InvalidInputError(
            f"Run {chosen.id} learned from instances up to {base.model.past_end:%Y-%m-%d}; new ones begin after "
            "that day. Give a later --since, or --from-run none."
        )
    if not base.scorers and keeps_no_patient_apart(chosen.all_scorers):
        raise InvalidInputError(
            f"Run {chosen.id} (split by {chosen.split.value}) cannot score new instances by "
            f"{', '.join(chosen.all_scorers)}. {SHARED_NEEDS_TIME} Score once by --split time, add --scorer softhad to "
            "the run, or learn again with --from-run none."
        )
    if not base.scorers:
        raise InvalidInputError(
            f"Run {chosen.id} has no scorer that can score new instances; these are {', '.join(NEW_INSTANCE_SCORERS)}."
        )
    return base


def _open(settings: Settings, database: Database, run: ScoringRun) -> BaseRun:
    with database.read() as uow:
        checksum = uow.audit.checksum(f"run {run.id}")
    folder = settings.models / run.model_folder
    if checksum is not None and folder.is_dir():
        check_files(folder, checksum)
    model = open_model(folder, ScoringParameters.of_stored(run.parameters))
    with database.read() as uow:
        keys = {task.id: task.task_key for task in uow.snapshots.tasks(run.snapshot_id)}
        summaries = {(keys[one.task_id], one.scorer): one for one in uow.runs.task_results(run.id)}
        histograms = {(keys[task_id], scorer): one for task_id, scorer, one in uow.runs.histograms(run.id)}
    return BaseRun(run, model, summaries, histograms)


def score_new_instances(
    settings: Settings,
    database: Database,
    base: BaseRun,
    since: pd.Timestamp,
    *,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    unless_published: ScoringRequest | None = None,
) -> ScoringOutcome:
    """Score the instances of the last import from a day (site time) on against the past of `base`; publish the run.

    Raise InvalidInputError if the last import has no instance from that day on, RefusedError if another scoring job is
    at work, or the last published run has the scores of `unless_published`.
    """
    started = time.monotonic()
    site = last_import(settings, database)
    folds = _folds(site.snapshot, base.model, since)
    rows = np.flatnonzero(folds >= 0)
    if len(rows) == 0:
        raise InvalidInputError(
            f"The last import has no instance from {since:%Y-%m-%d} on. Import the new records first "
            "(alertreview import SOURCE --add), or give an earlier --since."
        )
    with database.scoring_job():
        if unless_published is not None:
            refuse_published(settings, database, unless_published, base.run)
        discard_abandoned(database)
        results = _Results(site, base, rows, n_jobs, progress)
        written = write_run(database, site, _new_run(site, base, folds, since), folds, results)
    left_out = tuple(scorer for scorer in base.run.all_scorers if scorer not in base.scorers)
    against = StoredPast(base.run.id, f"{base.model.past_end:%Y-%m-%d}", left_out)
    return outcome_of(site, written, started, against=against)


def _folds(snapshot: Snapshot, model: StoredModel, since: pd.Timestamp) -> FoldOfRow:
    """Mark new instances, those that the base run learned from, and the rest, which takes no part."""
    instances = snapshot.instances
    mine = pd.MultiIndex.from_arrays([instances["patient_id"].astype(str), instances["snapshot_at"]])
    theirs = pd.MultiIndex.from_arrays([model.past_patients, pd.DatetimeIndex(model.past_times)])
    is_new = (instances["snapshot_at"] >= since).to_numpy()
    folds = np.where(is_new, 0, np.where(mine.isin(theirs), LEARNED_FROM, LEFT_OUT))
    return np.asarray(folds, dtype=np.int16)


def _new_run(site: ScoredImport, base: BaseRun, folds: FoldOfRow, since: pd.Timestamp) -> ScoringRun:
    n_recent = int((folds >= 0).sum())
    return ScoringRun(
        snapshot_id=site.stored.id,
        scorer=base.scorers[0],
        scorers={name: {} for name in base.scorers[1:]},
        parameters=other_parameters(base.run.parameters) | {"since": f"{since:%Y-%m-%d}"} | site.asked,
        seed=base.run.seed,
        code_version=__version__,
        split=base.run.split,
        n_past=base.run.n_past,
        n_recent=n_recent,
        n_patient_days=n_recent,
        created_at=datetime.now(UTC),
        base_run_id=base.run.id,
    )


class _Results:
    """Results of all tasks of the import, by column; tasks are scored side by side and handed on in order."""

    def __init__(
        self, site: ScoredImport, base: BaseRun, rows: NDArray[np.int64], n_jobs: int | None, progress: Progress | None
    ) -> None:
        self._site, self._base, self._rows = site, base, rows
        self._n_jobs, self._progress = n_jobs, progress
        self._column_of = {str(key): column for column, key in enumerate(base.model.task_keys)}
        place = {key: column for column, key in enumerate(feature_keys(site.snapshot))}
        self._here = np.array([place.get(key, -1) for key in base.model.feature_keys], dtype=np.int64)
        self._new = self._prepared()

    def _prepared(self) -> NewInstances:
        """Bring features and decisions into the columns of the base run; what it did not know has no column."""
        snapshot, rows = self._site.snapshot, self._rows
        X = _in_columns(sparse.csr_array(snapshot.features[rows]), self._here)
        tasks = {task.task_key: task.column_index for task in self._site.tasks}
        here = np.array([tasks.get(str(key), -1) for key in self._base.model.task_keys], dtype=np.int64)
        Y = _in_columns(sparse.csr_array(sparse.csr_array(snapshot.decisions)[rows]), here)
        patients = snapshot.instances["patient_id"].to_numpy(dtype=np.str_)[rows]
        return prepare_new_instances(self._base.model.past, X, Y, patients)

    def __iter__(self) -> Iterator[TaskResult]:
        with threadpool_limits(1):
            parallel = joblib.Parallel(n_jobs=self._n_jobs or -1, prefer="threads", return_as="generator")
            tasks = self._site.tasks
            for done, found in enumerate(parallel(joblib.delayed(self._of_task)(task) for task in tasks), start=1):
                if self._progress:
                    self._progress(done, len(tasks))
                yield from found

    def _of_task(self, task: Task) -> list[TaskResult]:
        base = self._base
        summaries = [base.summaries.get((task.task_key, scorer)) for scorer in base.scorers]
        reason = self._reason(task, summaries[0])
        if reason:
            return [
                TaskResult(task_id=task.id, scorer=scorer, reason=reason, n_past=0, n_past_positive=0)
                for scorer in base.scorers
            ]
        column = self._column_of[task.task_key]
        evidence = new_evidence(self._new, column, base.model.of_task(column), base.scorers)
        y = np.where(self._new.prepared.recent_positive(column), 1.0, -1.0)
        return [
            self._result(
                task, column, summary, evidence, score_by_scale(evidence, y, summary.scorer, summary.scaling["0"])
            )
            for summary in summaries
            if summary is not None
        ]

    def _reason(self, task: Task, summary: TaskSummary | None) -> str:
        if reason := self._site.left_out.get(task.column_index):
            return reason
        if summary is None:
            return f"Task '{task.name}' is new since run {self._base.run.id}. Score again to learn it."
        if summary.reason.endswith(WHERE):
            return f"Task '{task.name}' was not asked about in run {self._base.run.id}. Score again to learn it."
        return summary.reason

    def _result(
        self, task: Task, column: int, summary: TaskSummary, evidence: Mapping[str, Any], scores: ScaledScores
    ) -> TaskResult:
        past = self._base.model.past
        kept = past.kept_features[column]
        kept = kept[kept >= 0]
        here = self._here[kept]
        raw, scaled = self._base.histograms[task.task_key, summary.scorer]
        return TaskResult(
            task_id=task.id,
            scorer=summary.scorer,
            n_past=summary.n_past,
            n_past_positive=summary.n_past_positive,
            scaling=summary.scaling,
            diagnostics=summary.diagnostics,
            feature_columns=here[here >= 0].astype(np.int32),
            feature_weights=past.kept_weights[column, : len(kept)][here >= 0],
            score_histogram=_with_new(raw, scores.score),
            scaled_histogram=_with_new(scaled, scores.scaled_score),
            score=scores.score.astype(np.float32),
            scaled_score=scores.scaled_score.astype(np.float32),
            soft_label=scores.soft_label.astype(np.float32),
            support=evidence[SCORERS[summary.scorer].support],
        )


def _in_columns(matrix: sparse.csr_array, here: NDArray[np.int64]) -> sparse.csr_array:
    """Take the columns `here` of a matrix; -1 stands for a column in which nothing is stored.

    Not by a product of matrices: that would drop stored zeros, and a value of 0 is not the same as no value.
    """
    place = np.full(matrix.shape[1], -1, dtype=np.int64)
    there = np.flatnonzero(here >= 0)
    place[here[there]] = there
    columns = place[matrix.indices]
    kept = columns >= 0
    counts = np.concatenate(([0], np.cumsum(kept)))
    return sparse.csr_array(
        (matrix.data[kept], columns[kept], counts[matrix.indptr]), shape=(matrix.shape[0], len(here))
    )


def _with_new(histogram: dict[str, Any], values: NDArray[np.float64]) -> dict[str, Any]:
    """Count new scores into the bins of what the base run saw; what lies outside is in the end bins."""
    edges = np.array(histogram["edges"])
    counts = np.histogram(np.clip(values, edges[0], edges[-1]), bins=edges)[0]
    return {"edges": histogram["edges"], "counts": (np.array(histogram["counts"]) + counts).tolist()}
