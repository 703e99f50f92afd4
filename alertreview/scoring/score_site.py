"""Score a site: every task of its last import, written as one run that readers see only when it is whole."""

import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from alertreview import __version__
from alertreview.files import write_checksums
from alertreview.records.catalogue import current_catalogue, other_parameters, run_parameters, site_day
from alertreview.records.snapshots import Snapshot, elapsed_features
from alertreview.scoring.publish import ScoredImport, WrittenRun, assemble_tasks, last_import, write_run
from alertreview.scoring.resume import GROUP_WEIGHTS, ScoringCheckpoint, ScoringRequest
from alertreview.scoring.splits import LEFT_OUT, FoldOfRow, choose_split, fold_of_row, rows_of_fold
from alertreview.scoring.stored_past import RUNS_KEPT, discard_old, store_model
from alertreview.settings import Progress, Settings
from core.cohort.feature_roles import FeatureRoles
from core.errors import InvalidInputError, RefusedError
from core.kinds import CHARTED, Kind
from core.number_texts import counted
from core.scoring.all_tasks import Workers, score_tasks
from core.scoring.parameters import ScoringParameters
from core.scoring.scorers import is_retrospective, keeps_no_patient_apart
from core.scoring.scores import ScoredTasks
from core.vocabulary import Decision, RunId, Split
from db.database import Database
from db.maintenance.bulk import discard_abandoned
from db.models import ScoringRun

SHARED_NEEDS_TIME = (
    "The shared graph is kept for new instances only where the run split days by time: once it is solved, a patient "
    "who was learned from cannot be left out of it."
)


@dataclass(frozen=True)
class StoredPast:
    """The kept past of an earlier run, against which new instances were scored."""

    run_id: RunId
    last_day: str
    left_out_scorers: tuple[str, ...]  # scorers of that run by which new instances cannot be scored

    def lines(self) -> Iterator[str]:
        """Say it in lines for the terminal."""
        yield (
            f"Only new instances, against the stored past of run {self.run_id} (up to {self.last_day}); nothing was "
            "learned again. --from-run none learns again."
        )
        if self.left_out_scorers:
            yield f"Not possible against a stored past: {', '.join(self.left_out_scorers)}."
        if keeps_no_patient_apart(self.left_out_scorers):
            yield f"{SHARED_NEEDS_TIME} --from-run none scores by it."


@dataclass(frozen=True)
class ScoringOutcome:
    """What a run came to."""

    run_id: RunId
    scorer: str
    split: Split
    n_folds: int
    n_past: int
    n_recent: int
    n_tasks_scored: int
    left_out: dict[str, str]  # task name -> why it was not scored
    n_alerts: dict[Decision, int]
    n_tasks_of_kind: dict[Kind, int]
    seconds: float
    peak_memory_mib: float
    other_scorers: tuple[str, ...] = ()  # further scorers, each with its own lists
    against: StoredPast | None = None  # None for a run that learned its own past
    n_not_asked: int = 0  # tasks that the task catalogue leaves out, besides those of `left_out`

    def lines(self) -> Iterator[str]:
        """Say it in lines for the terminal."""
        folds = f", {self.n_folds} folds of patients" if self.split is Split.FOLDS else ""
        yield f"Run {self.run_id} is published: scorer {self.scorer}, split by {self.split.value}{folds}."
        if self.against is not None:
            yield from self.against.lines()
        if self.other_scorers:
            yield f"Separate lists: {', '.join(map(_marked, self.other_scorers))}."
        tasks = {kind: self.n_tasks_of_kind.get(kind, 0) for kind in Kind}
        counts = [
            f"{n} {kind.words.item if n == 1 else kind.words.items}"
            for kind, n in tasks.items()
            if n or kind in CHARTED
        ]
        yield (
            f"{counted(self.n_recent, 'instance')} scored, {self.n_past:,} learned from; "
            f"{counted(self.n_tasks_scored, 'task')} scored ({', '.join(counts)}), {len(self.left_out)} left out."
        )
        if self.n_not_asked:
            yield f"Not asked about: {counted(self.n_not_asked, 'task')}; alertreview tasks list says why."
        for reason in list(self.left_out.values())[:5]:
            yield f"  left out: {reason}"
        if len(self.left_out) > 5:
            yield f"  and {len(self.left_out) - 5} more; the Runs page lists them all."
        yield f"Alerts stored: {', '.join(counted(n, decision.value) for decision, n in self.n_alerts.items())}."
        yield f"Took {self.seconds:.1f} s and {self.peak_memory_mib:.0f} MiB peak memory."


def outcome_of(
    site: ScoredImport, written: WrittenRun, started: float, *, n_folds: int = 1, against: StoredPast | None = None
) -> ScoringOutcome:
    """Say what a run came to that began at `started` on the monotonic clock."""
    run = written.run
    return ScoringOutcome(
        run_id=run.id,
        scorer=run.scorer,
        split=run.split,
        n_folds=n_folds,
        n_past=run.n_past,
        n_recent=run.n_recent,
        n_tasks_scored=run.n_tasks_scored,
        left_out={
            site.tasks[column].name: reason for column, reason in written.reasons.items() if column not in site.left_out
        },
        n_not_asked=len(site.left_out),
        n_alerts=run.n_alerts(),
        n_tasks_of_kind=Counter(task.kind for task in site.tasks if task.column_index not in written.reasons),
        seconds=time.monotonic() - started,
        peak_memory_mib=peak_memory_mib(),
        other_scorers=tuple(run.scorers),
        against=against,
    )


def _marked(scorer: str) -> str:
    return f"{scorer} (looks back only)" if is_retrospective(scorer) else scorer


@dataclass(frozen=True)
class PublishedRun:
    """The last run, which has the scores that somebody asks for."""

    run_id: RunId

    def lines(self) -> Iterator[str]:
        """Say it in lines for the terminal."""
        yield (
            f"Run {self.run_id} was scored from the same records, with the same options and version: "
            "nothing was scored. --again scores once more."
        )


def published_already(
    settings: Settings, database: Database, request: ScoringRequest, base: ScoringRun | None = None
) -> PublishedRun | None:
    """Return the last published run if a request would give the same scores again, else None.

    Without a base, whose stored past is used, the request learns its own past.
    """
    with database.read() as uow:
        stored, run = uow.snapshots.latest(), uow.runs.latest_published()
    if stored is None or run is None or run.snapshot_id != stored.id or run.code_version != __version__:
        return None
    asked = run_parameters(current_catalogue(settings, database), site_day(stored.site_timezone))
    if base is not None:
        learned = other_parameters(base.parameters)
        is_same = run.base_run_id == base.id and run.parameters == learned | {"since": request.since} | asked
    else:
        split = choose_split(request.split, calendar_is_shifted=stored.calendar_is_shifted)
        scorers = dict.fromkeys(request.scorers)
        is_same = (
            run.base_run_id is None
            and (run.split, run.seed, run.scorer) == (split, request.seed, request.scorers[0])
            and set(run.all_scorers) == set(scorers)
            # What it learned was not asked for.
            and {name: value for name, value in run.parameters.items() if name != GROUP_WEIGHTS}
            == asdict(request.parameters()) | {"since": request.since} | asked
        )
    return PublishedRun(run.id) if is_same else None


def refuse_published(
    settings: Settings, database: Database, request: ScoringRequest, base: ScoringRun | None = None
) -> None:
    """Raise RefusedError if another job has published the scores of a request since; call it inside the job."""
    if (done := published_already(settings, database, request, base)) is not None:
        raise RefusedError(
            f"Another job has just published run {done.run_id} from the same records, with the same options; "
            "nothing was scored. --again scores once more."
        )


def score_site(
    settings: Settings,
    database: Database,
    request: ScoringRequest,
    progress: Progress | None = None,
    workers: Workers | None = None,
    *,
    again: bool = True,
) -> ScoringOutcome:
    """Score every task of the last import, on this machine or by `workers`, and publish the run.

    Raise NotFoundError if nothing was imported yet, InvalidInputError if the request breaks a rule or no task can be
    scored, RefusedError if another scoring job is at work, or has published the same scores since and it is not scored
    `again`.
    """
    started = time.monotonic()
    site = last_import(settings, database)
    split = choose_split(request.split, calendar_is_shifted=site.stored.calendar_is_shifted)
    snapshot = site.snapshot
    folds = fold_of_row(split, snapshot.instances, snapshot.patients, since=parse_day(request.since), seed=request.seed)
    parameters = request.parameters()
    cache = ScoringCheckpoint(
        settings.scoring_checkpoint, site.stored.content_hash, request, parameters, folds, tuple(site.left_out)
    )
    with database.scoring_job():
        if not again:
            refuse_published(settings, database, request)
        discard_abandoned(database)
        scored = _score_folds(site, folds, split, request, parameters, cache, progress, workers)
        model_folder = _store_model(settings, site, folds, split, cache.name, scored)
        run = _new_run(site, request, split, asdict(parameters) | _learned(scored), folds, model_folder)
        checksum = write_checksums(settings.models / model_folder) if model_folder else ""
        scorers = tuple(dict.fromkeys(request.scorers))
        results = assemble_tasks(scored, folds, site.tasks, scorers, request.n_jobs or -1)
        written = write_run(database, site, run, folds, results, checksum=checksum)
        cache.discard()
        with database.read() as uow:
            folders = [one.model_folder for one in uow.runs.published() if one.model_folder]
        discard_old(settings.models, folders[:RUNS_KEPT])
    return outcome_of(site, written, started, n_folds=len(scored))


def score_fold(snapshot: Snapshot, folds: FoldOfRow, fold: int, split: Split, **options: Any) -> ScoredTasks:
    """Score the recent instances of one fold against its past ones; the options go to `score_tasks`."""
    past, recent = rows_of_fold(folds, fold)
    return score_tasks(
        snapshot.features,
        snapshot.decisions,
        is_flag=snapshot.feature_dictionary["is_flag"].to_numpy(dtype=bool),
        is_elapsed=elapsed_features(snapshot),
        patients=pd.factorize(snapshot.instances["patient_id"].astype(str))[0],
        past=past,
        recent=recent,
        # By time, a patient's former days are fair evidence; where patients are split, they are none.
        exclude_same_patient=split is not Split.TIME,
        **options,
    )


def _score_folds(
    site: ScoredImport,
    folds: FoldOfRow,
    split: Split,
    request: ScoringRequest,
    parameters: ScoringParameters,
    cache: ScoringCheckpoint,
    progress: Progress | None,
    workers: Workers | None,
) -> list[ScoredTasks]:
    n_folds = int(folds.max()) + 1
    scored = []
    for fold in range(n_folds):
        found = score_fold(
            site.snapshot,
            folds,
            fold,
            split,
            scorers=request.scorers,
            parameters=parameters,
            seed=request.seed,
            n_jobs=request.n_jobs or -1,
            on_progress=_in_fold(progress, fold, n_folds),
            store=cache.of_fold(fold),
            workers=workers,
            keep_graphs=_has_one_past(site, split),
            task_names=[task.name for task in site.tasks],
            kinds=[task.kind for task in site.tasks],
            order_groups=[task.order_group for task in site.tasks],
            roles=FeatureRoles.of(
                site.snapshot.feature_dictionary,
                [entry.item for entry in site.catalogue],
                [entry.kind for entry in site.catalogue],
            ),
            left_out=site.left_out,
        )
        scored.append(found.without_features())
    if not any(map(len, scored)):
        n_asked = len(site.tasks) - len(site.left_out)
        if not n_asked:
            raise InvalidInputError(
                "The import has no task to score: no decision was taken often enough, or none is asked about. See "
                "'alertreview tasks list', lower min_positive in the mapping, or import more records."
            )
        raise InvalidInputError(
            f"None of the {n_asked} tasks can be scored: each needs at least {parameters.min_past_positives} "
            "past decisions of both kinds. Import more records, or choose another split."
        )
    return scored


def _has_one_past(site: ScoredImport, split: Split) -> bool:
    """Return whether later instances can be scored against what is learned: not in folds, not in a shifted calendar."""
    return split is not Split.FOLDS and not site.stored.calendar_is_shifted


def _store_model(
    settings: Settings, site: ScoredImport, folds: FoldOfRow, split: Split, name: str, scored: list[ScoredTasks]
) -> str:
    if not _has_one_past(site, split):
        return ""
    past, _ = rows_of_fold(folds, 0)
    exclude = split is not Split.TIME
    return store_model(settings.models, name, site.snapshot, past, scored[0], exclude_patients=exclude)


def _in_fold(progress: Progress | None, fold: int, n_folds: int) -> Progress | None:
    if progress is None:
        return None
    return lambda done, total: progress(fold * total + done, n_folds * total)


def _learned(scored: list[ScoredTasks]) -> dict[str, Any]:
    """Return what a run keeps beside its parameters: weights of groups of features that its folds learned, if any."""
    weights = [one.shared.group_weights if one.shared is not None else {} for one in scored]
    return {GROUP_WEIGHTS: weights} if any(weights) else {}


def _new_run(
    site: ScoredImport,
    request: ScoringRequest,
    split: Split,
    parameters: dict[str, Any],
    folds: FoldOfRow,
    model_folder: str,
) -> ScoringRun:
    n_recent = int((folds >= 0).sum())
    n_learned = int((folds != LEFT_OUT).sum())
    return ScoringRun(
        snapshot_id=site.stored.id,
        scorer=request.scorers[0],
        scorers={name: {} for name in request.scorers if name != request.scorers[0]},
        parameters=parameters | {"since": request.since} | site.asked,
        seed=request.seed,
        code_version=__version__,
        split=split,
        n_past=n_learned if split is Split.FOLDS else n_learned - n_recent,
        n_recent=n_recent,
        n_patient_days=n_recent,
        created_at=datetime.now(UTC),
        model_folder=model_folder,
    )


def parse_day(text: str | None) -> pd.Timestamp | None:
    """Read a day of the command line, in the site's zone; raise InvalidInputError if it is none."""
    if text is None:
        return None
    try:
        return pd.Timestamp(datetime.strptime(text, "%Y-%m-%d"))  # noqa: DTZ007 - a site's day, without a zone
    except ValueError:
        raise InvalidInputError(f"--since {text!r} is not a day; write it as 2026-01-31.") from None


def peak_memory_mib() -> float:
    """Return the most memory that this process has held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1024**2 if sys.platform == "darwin" else 1024)
