"""Score a site: every task of its last import, written as one run that readers see only when it is whole."""

import resource
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pandas as pd

from alertreview import __version__
from alertreview.ranking import RankedAlerts, rank_alerts
from alertreview.run_assembly import assemble_task
from alertreview.settings import Settings
from alertreview.snapshots import Snapshot, elapsed_features, read_snapshot
from alertreview.splits import FoldOfRow, choose_split, fold_of_row, rows_of_fold
from alertreview.unfinished import UnfinishedScoring
from core.errors import InvalidInputError, NotFoundError
from core.multitask import ScoredTasks, ScoringParameters, score_tasks
from core.stays import HOURS_IN_WINDOW
from core.vocabulary import Decision, Kind, Split
from db.bulk import discard_abandoned, store_alerts, store_task_results
from db.rows import NewAlert, NewRun, NewTaskResult, SnapshotRow, TaskRow
from db.session import Database

Progress = Callable[[int, int], None]

ALERTS_KEPT_PER_PATIENT_DAY = 2.0
"""One indexed row is stored for this many alerts of each decision; the scores of all others stay in the vectors."""


@dataclass(frozen=True)
class ScoringRequest:
    """What somebody asked to be scored, and how."""

    scorers: tuple[str, ...] = ("softhad",)
    """The first one ranks the alerts."""
    split: str = "auto"
    since: str | None = None
    n_nodes: int = 200
    n_graphs: int = 3
    seed: int = 1
    n_jobs: int | None = None


@dataclass(frozen=True)
class ScoringOutcome:
    """What a run came to."""

    run_id: int
    scorer: str
    split: Split
    n_folds: int
    n_past: int
    n_recent: int
    n_tasks_scored: int
    left_out: dict[str, str]
    """Task name -> why it was not scored."""
    n_alerts: dict[Decision, int]
    n_tasks_of_kind: dict[Kind, int]
    seconds: float
    peak_memory_mib: float

    def lines(self) -> Iterator[str]:
        """Say it in lines for the terminal."""
        folds = f", {self.n_folds} folds of patients" if self.split is Split.FOLDS else ""
        yield f"Run {self.run_id} is published: scorer {self.scorer}, split by {self.split.value}{folds}."
        yield (
            f"{self.n_recent} instances scored, {self.n_past} learned from; {self.n_tasks_scored} tasks scored "
            f"({self.n_tasks_of_kind.get(Kind.LAB_ORDER, 0)} lab orders, "
            f"{self.n_tasks_of_kind.get(Kind.MEDICATION, 0)} medications), {len(self.left_out)} left out."
        )
        for reason in list(self.left_out.values())[:5]:
            yield f"  left out: {reason}"
        if len(self.left_out) > 5:
            yield f"  and {len(self.left_out) - 5} more; the Runs page lists them all."
        yield f"Alerts stored: {', '.join(f'{count} {decision.value}s' for decision, count in self.n_alerts.items())}."
        yield f"It took {self.seconds:.1f} s and {self.peak_memory_mib:.0f} MiB at the peak."


def list_named_scorers() -> tuple[tuple[str, str], ...]:
    """Give the named scorers with a line on each."""
    return (
        ("softhad", "support x calibrated probability of the other decision, by the graph (default)"),
        ("softhad-paper", "|l* - y| as in the paper, min-max scaled on the past"),
        ("logistic", "calibrated probability of the other decision, by logistic regression"),
        ("pair", "support x probability from the mean log-odds of softhad and logistic regression"),
    )


def score_site(
    settings: Settings, database: Database, request: ScoringRequest, progress: Progress | None = None
) -> ScoringOutcome:
    """Score every task of the last import and publish the run.

    Parameters
    ----------
    settings : Settings
        The site.
    database : Database
        Upgraded and checked.
    request : ScoringRequest
        What to score and how.
    progress : callable(n_done, n_all), optional
        Called after each task (of each fold).

    Returns
    -------
    ScoringOutcome

    Raises
    ------
    NotFoundError
        If nothing was imported yet.
    InvalidInputError
        If the request breaks a rule, or no task can be scored.
    RefusedError
        If another scoring job is at work.
    """
    started = time.monotonic()
    with database.read() as uow:
        stored = uow.snapshots.latest()
        if stored is None:
            raise NotFoundError("There is nothing to score: import health records first (alertreview import SOURCE).")
        tasks = uow.snapshots.tasks(stored.id)
        instance_ids = uow.snapshots.instance_ids(stored.id)
    snapshot = read_snapshot(settings.snapshots / stored.folder)
    split = choose_split(request.split, calendar_is_shifted=stored.calendar_is_shifted)
    folds = fold_of_row(
        split, snapshot.instances, snapshot.patients, since=_parse_day(request.since), seed=request.seed
    )
    parameters = ScoringParameters(n_nodes=request.n_nodes, n_graphs=request.n_graphs)
    cache = UnfinishedScoring(settings.unfinished_scoring, stored.content_hash, request, parameters, folds)
    with database.scoring_job():
        discard_abandoned(database)
        scored = _score_folds(snapshot, tasks, folds, split, request, parameters, cache, progress)
        run_id = _begin(database, stored, request, split, parameters, folds)
        results = _store_results(database, run_id, tasks, folds, request, scored)
        ranked = _store_alerts(database, run_id, snapshot, tasks, folds, instance_ids, results)
        with database.write() as uow:
            run = uow.runs.publish(run_id, published_at=datetime.now(UTC), floors=ranked.floors)
            uow.commit()
        cache.discard()
    reasons = {tasks[column].name: reason for column, reason in results.reasons.items()}
    return ScoringOutcome(
        run_id=run_id,
        scorer=request.scorers[0],
        split=split,
        n_folds=len(scored),
        n_past=run.n_past,
        n_recent=run.n_recent,
        n_tasks_scored=run.n_tasks_scored,
        left_out=reasons,
        n_alerts={Decision.OMISSION: run.n_omissions, Decision.COMMISSION: run.n_commissions},
        n_tasks_of_kind=Counter(task.kind for task in tasks if task.column_index not in results.reasons),
        seconds=time.monotonic() - started,
        peak_memory_mib=_peak_memory_mib(),
    )


@dataclass(frozen=True)
class _StoredResults:
    """What ranking needs of the scorer that ranks, by task column; NaN where a fold could not score the task."""

    scaled: dict[int, npt.NDArray[np.float32]]
    score: dict[int, npt.NDArray[np.float32]]
    soft_label: dict[int, npt.NDArray[np.float32]]
    support: dict[int, npt.NDArray[np.float32]]
    reasons: dict[int, str]


def _score_folds(
    snapshot: Snapshot,
    tasks: list[TaskRow],
    folds: FoldOfRow,
    split: Split,
    request: ScoringRequest,
    parameters: ScoringParameters,
    cache: UnfinishedScoring,
    progress: Progress | None,
) -> list[ScoredTasks]:
    patients = pd.factorize(snapshot.instances["patient_id"].astype(str))[0]
    is_flag = snapshot.feature_dictionary["is_flag"].to_numpy(dtype=bool)
    is_elapsed = elapsed_features(snapshot)
    n_folds = int(folds.max()) + 1
    scored = []
    for fold in range(n_folds):
        past, recent = rows_of_fold(folds, fold)
        scored.append(
            score_tasks(
                snapshot.features,
                snapshot.decisions,
                is_flag=is_flag,
                is_elapsed=is_elapsed,
                patients=patients,
                past=past,
                recent=recent,
                scorers=request.scorers,
                parameters=parameters,
                seed=request.seed,
                n_jobs=request.n_jobs or -1,
                on_progress=_in_fold(progress, fold, n_folds),
                finished=cache.finished(fold),
                on_task_finished=cache.keep(fold),
                # By time, a patient's former days are fair evidence; where patients are split, they are none.
                exclude_same_patient=split is not Split.TIME,
                task_names=[task.name for task in tasks],
            )
        )
    if not any(map(len, scored)):
        raise InvalidInputError(
            f"None of the {len(tasks)} tasks can be scored: each needs at least {parameters.min_past_positives} past "
            "decisions of both kinds. Import more records, or choose another split."
        )
    return scored


def _in_fold(progress: Progress | None, fold: int, n_folds: int) -> Progress | None:
    if progress is None:
        return None
    return lambda done, total: progress(fold * total + done, n_folds * total)


def _begin(
    database: Database,
    stored: SnapshotRow,
    request: ScoringRequest,
    split: Split,
    parameters: ScoringParameters,
    folds: FoldOfRow,
) -> int:
    n_recent = int((folds >= 0).sum())
    n_learned = int((folds != -2).sum())
    run = NewRun(
        snapshot_id=stored.id,
        scorer=request.scorers[0],
        scorers={name: {} for name in request.scorers[1:]},
        parameters=asdict(parameters) | {"since": request.since},
        seed=request.seed,
        code_version=__version__,
        split=split,
        fold_of_row=folds,
        n_past=n_learned if split is Split.FOLDS else n_learned - n_recent,
        n_recent=n_recent,
        n_patient_days=n_recent,
        created_at=datetime.now(UTC),
    )
    with database.write() as uow:
        run_id = uow.runs.start(run)
        uow.commit()
    return run_id


def _store_results(
    database: Database,
    run_id: int,
    tasks: list[TaskRow],
    folds: FoldOfRow,
    request: ScoringRequest,
    scored: list[ScoredTasks],
) -> _StoredResults:
    kept = _StoredResults({}, {}, {}, {}, {})

    def results() -> Iterator[NewTaskResult]:
        for task in tasks:
            for scorer in request.scorers:
                assembled = assemble_task(scored, folds, task, scorer)
                if scorer == request.scorers[0]:
                    _keep(kept, task.column_index, assembled)
                yield assembled

    store_task_results(database, run_id, results())
    return kept


def _keep(kept: _StoredResults, column: int, result: NewTaskResult) -> None:
    if result.reason:
        kept.reasons[column] = result.reason
        return
    for name in ("score", "soft_label", "support"):
        getattr(kept, name)[column] = getattr(result, name)
    if result.scaled_score is not None:
        kept.scaled[column] = result.scaled_score


def _store_alerts(
    database: Database,
    run_id: int,
    snapshot: Snapshot,
    tasks: list[TaskRow],
    folds: FoldOfRow,
    instance_ids: npt.NDArray[np.int64],
    results: _StoredResults,
) -> RankedAlerts:
    """Rank omissions and commissions apart and store the top of each."""
    recent = np.flatnonzero(folds >= 0)
    ranked = rank_alerts(
        results.scaled, snapshot.decisions, recent, n_kept=max(1, round(ALERTS_KEPT_PER_PATIENT_DAY * len(recent)))
    )
    units = snapshot.instances["unit"].to_numpy()
    window_hours = snapshot.instances["window_hours"].to_numpy()

    def alerts() -> Iterator[NewAlert]:
        for decision, place in ranked.places():
            task, row = tasks[place.column], recent[place.position]
            yield NewAlert(
                task_id=task.id,
                instance_id=int(instance_ids[row]),
                rank=place.rank,
                decision=decision,
                kind=task.kind,
                unit=str(units[row]),
                window_cut=bool(window_hours[row] < HOURS_IN_WINDOW),
                score=float(results.score[place.column][place.position]),
                scaled_score=float(results.scaled[place.column][place.position]),
                soft_label=float(results.soft_label[place.column][place.position]),
                support=float(results.support[place.column][place.position]),
            )

    store_alerts(database, run_id, alerts())
    return ranked


def _parse_day(text: str | None) -> pd.Timestamp | None:
    if text is None:
        return None
    try:
        return pd.Timestamp(datetime.strptime(text, "%Y-%m-%d"))  # noqa: DTZ007 - a site's day, without a zone
    except ValueError:
        raise InvalidInputError(f"--since {text!r} is no day; write it as 2026-01-31.") from None


def _peak_memory_mib() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024**2 if sys.platform == "darwin" else 1024)
