"""Score a run's import again at other graph sizes and regularisers, and keep beside the run what that changes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from alertreview import __version__
from alertreview.alerts.alert_lists import judged_study
from alertreview.alerts.lines import find_run
from alertreview.records.snapshots import Snapshot, open_import
from alertreview.rights import Action, Service, requires
from alertreview.scoring.ranking import TopDecisions
from alertreview.scoring.score_site import score_fold
from alertreview.scoring.splits import FoldOfRow, rows_of_fold
from alertreview.settings import Progress, Settings
from alertreview.studies.models import CaseForReport
from alertreview.studies.results import auc_on_candidates, case_rows, majority_labels
from core.errors import InvalidInputError, NotFoundError, RefusedError
from core.scoring.parameters import ScoringParameters
from core.scoring.scorers import SOFTHAD, SOFTHAD_PAPER
from core.scoring.sensitivity import N_TOP, Sensitivity, SensitivityPoint, Varied, share_in_common
from core.statistics.estimate import Estimate, not_computable
from core.studies.report import from_plain, to_plain
from core.vocabulary import Decision, RunId
from db.database import Database
from db.models import ScoringRun, Task
from db.unit_of_work import UnitOfWork

SIZES = (50, 100, 200, 400)
REGULARIZERS = (0.0, 0.01, 0.1, 1.0, 10.0)
SCORERS = (SOFTHAD.key, SOFTHAD_PAPER.key)
"""Whose graphs have nodes and a regulariser."""
Decided = tuple[int, int, Decision]
"""Row of the instance, column of the task, decision."""


@dataclass(frozen=True)
class RunToVary:
    """Everything that stays while one parameter is changed."""

    run: ScoringRun
    snapshot: Snapshot
    tasks: list[Task]
    folds: FoldOfRow
    parameters: ScoringParameters
    scorers: tuple[str, ...]
    tops: dict[str, list[Decided]]  # by scorer the first alerts of the run, both lists together
    cases: list[CaseForReport]
    labels: npt.NDArray[np.float64]
    study: str


def compute_sensitivity(
    settings: Settings,
    database: Database,
    run_id: RunId | None = None,
    *,
    sizes: Sequence[int] = SIZES,
    regularizers: Sequence[float] = REGULARIZERS,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> tuple[int, Sensitivity]:
    """Compute the curves of a run that learned its own past, by default the newest; return both.

    The sizes are nodes of a backbone graph, the regularizers gamma_g. Raise NotFoundError if there is no such run,
    RefusedError if the run scored against the past of another one, or has no scorer with a graph.
    """
    with database.read() as uow:
        varied = _open(settings, uow, run_id)
    settings_of = [
        *((Varied.GRAPH_SIZE, float(size)) for size in sizes),
        *((Varied.REGULARIZATION, value) for value in regularizers),
    ]
    points: list[SensitivityPoint] = []
    for place, (what, setting) in enumerate(settings_of):
        points += _at(varied, what, setting, n_jobs)
        if progress:
            progress(place + 1, len(settings_of))
    order = list(varied.scorers)
    found = Sensitivity(
        points=tuple(sorted(points, key=lambda point: (order.index(point.scorer), point.varied, point.setting))),
        n_top=N_TOP,
        seed=varied.run.seed + 1,
        study=varied.study,
        n_nodes=float(varied.parameters.n_nodes),
        regularization=varied.parameters.regularization,
    )
    now = datetime.now(UTC)
    with database.write() as uow:
        uow.runs.put_sensitivity(varied.run.id, to_plain(found), __version__, now)
        uow.audit.append(now, "command line", "sensitivity computed", f"run {varied.run.id}", {"points": len(points)})
        uow.commit()
    return varied.run.id, found


def _open(settings: Settings, uow: UnitOfWork, run_id: RunId | None) -> RunToVary:
    run = find_run(uow, run_id)
    if run is None:
        raise NotFoundError("Nothing is published yet. Import records and score them.")
    if run.base_run_id is not None:
        raise RefusedError(
            f"Run {run.id} scored new instances against what run {run.base_run_id} had learned. Compute the curves of "
            f"run {run.base_run_id}."
        )
    scorers = tuple(scorer for scorer in run.all_scorers if scorer in SCORERS)
    if not scorers:
        raise RefusedError(
            f"Run {run.id} has no scorer with a graph of a size to choose; curves need one of {', '.join(SCORERS)}. "
            f"Score again with it beside the others: --scorer shared --scorer {SCORERS[0]}."
        )
    tasks = uow.snapshots.tasks(run.snapshot_id)
    column = {task.id: task.column_index for task in tasks}
    tops = {}
    for scorer in scorers:
        first = [
            (record.row_index, column[record.task_id], decision)
            for decision in Decision
            for record in uow.alerts.page(
                run.id, limit=N_TOP, scorer=scorer, decision=decision, include_cut_windows=True
            ).rows
        ]
        if not first:
            raise RefusedError(f"Run {run.id} has no alert of scorer {scorer}, so there is nothing to compare with.")
        tops[scorer] = first
    cases, labels, study = _judged(uow, run)
    return RunToVary(
        run=run,
        snapshot=open_import(settings, uow, uow.snapshots.get(run.snapshot_id).folder, whole=True),
        tasks=tasks,
        folds=uow.runs.fold_of_row(run.id),
        parameters=ScoringParameters.of_stored(run.parameters),
        scorers=scorers,
        tops=tops,
        cases=cases,
        labels=labels,
        study=study,
    )


def _judged(uow: UnitOfWork, run: ScoringRun) -> tuple[list[CaseForReport], npt.NDArray[np.float64], str]:
    """Return cases and majority labels of the newest study of the run whose judging is over."""
    study = judged_study(uow, run.id)
    if study is None:
        return [], np.empty(0), ""
    cases = list(case_rows(uow, study.slug))
    return cases, majority_labels(uow, study.slug, cases), study.title


def _at(varied: RunToVary, what: Varied, setting: float, n_jobs: int | None) -> Iterator[SensitivityPoint]:
    """Score at one setting; the regulariser of the paper's scorer is a separate parameter."""
    if what is Varied.GRAPH_SIZE:
        if setting != int(setting):
            raise InvalidInputError(f"A graph cannot have {setting} nodes. Give a whole number.")
        parameters = replace(varied.parameters, n_nodes=int(setting))
    else:
        parameters = replace(varied.parameters, regularization=setting, paper_regularization=setting)
    scaled = _scaled_scores(varied, parameters, n_jobs)
    for scorer in varied.scorers:
        found = scaled[scorer]
        yield SensitivityPoint(
            what, setting, scorer, share_in_common(varied.tops[scorer], _top(varied, found)), _auc(varied, found)
        )


def _scaled_scores(
    varied: RunToVary, parameters: ScoringParameters, n_jobs: int | None
) -> dict[str, npt.NDArray[np.float32]]:
    """Scaled scores of shape (n_instances, n_tasks) by scorer, NaN where nothing was scored."""
    folds = varied.folds
    found = {scorer: np.full((len(folds), len(varied.tasks)), np.nan, dtype=np.float32) for scorer in varied.scorers}
    for fold in range(int(folds.max()) + 1):
        scored = score_fold(
            varied.snapshot,
            folds,
            fold,
            varied.run.split,
            scorers=varied.scorers,
            parameters=parameters,
            seed=varied.run.seed + 1,
            n_jobs=n_jobs or -1,
        )
        _, recent = rows_of_fold(folds, fold)
        for scorer in varied.scorers:
            for column in scored:
                found[scorer][recent, column] = scored.scores(column, scorer).scaled_score
    return found


def _top(varied: RunToVary, scaled: npt.NDArray[np.float32]) -> list[Decided]:
    """First decisions of both lists, as a run lists them."""
    recent = np.flatnonzero(varied.folds >= 0)
    tops = TopDecisions(N_TOP)
    for column in range(scaled.shape[1]):
        vector = scaled[recent, column]
        if np.isfinite(vector).any():
            taken = varied.snapshot.decisions[:, [column]].toarray().ravel()[recent].astype(bool)
            tops.add(column, taken, dict.fromkeys(("score", "scaled_score", "soft_label", "support"), vector))
    return [(int(recent[place.position]), place.column, decision) for decision, place in tops.places()]


def _auc(varied: RunToVary, scaled: npt.NDArray[np.float32]) -> Estimate:
    if not varied.cases:
        return not_computable("no study of this run is complete or locked yet")
    column = {task.task_key: task.column_index for task in varied.tasks}
    scores = np.array([float(scaled[case.row_index, column[case.task_key]]) for case in varied.cases])
    return auc_on_candidates(varied.cases, varied.labels, scores)


@dataclass(frozen=True)
class StoredSensitivity:
    """The curves of a run and when they were computed."""

    curves: Sensitivity
    computed_at: datetime  # in the site's zone


class SensitivityCurves(Service):
    """Reads curves."""

    @requires(Action.SEE_RUNS)
    def of_run(self, run_id: RunId) -> StoredSensitivity | None:
        """Return the curves of a published run, None when none are stored.

        Raise NotFoundError if there is no such run.
        """
        with self._database.read() as uow:
            run = find_run(uow, run_id)
            stored = uow.runs.sensitivity(run_id)
            if run is None or stored is None:
                return None
            zone = ZoneInfo(uow.snapshots.get(run.snapshot_id).site_timezone)
        plain, computed_at = stored
        return StoredSensitivity(from_plain(Sensitivity, plain), computed_at.astimezone(zone))
