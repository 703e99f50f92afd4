"""Scores of many tasks at once: evidence task by task (parallel, resumable), then one calibration over all tasks."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from core.calibration import Calibration, calibrate, soft_label_evidence
from core.day_context import DayContext
from core.errors import InvalidInputError, NotFoundError, TaskNotScorableError
from core.graph import group_codes
from core.scaling import ScoreScaler
from core.scoring_parameters import (
    DAY_ADJUSTED,
    LOGISTIC,
    PAIR,
    RETROSPECTIVE_SCORERS,
    SCORERS,
    SOFTHAD,
    SOFTHAD_PAPER,
    ScoringParameters,
)
from core.task_evidence import Evidence, PreparedInstances, prepare_instances, task_evidence
from core.validation import FloatArray, IntArray, Matrix

__all__ = ["SCORERS", "NotScored", "ScoredTasks", "ScoringParameters", "TaskScores", "score_tasks"]

FloatVector = NDArray[np.float32]


@dataclass(frozen=True)
class NotScored:
    """A task that could not be scored; the run goes on without it.

    Parameters
    ----------
    reason : str
        Which task, which rule, which value, what to do.
    """

    reason: str


@dataclass(frozen=True)
class TaskScores:
    """Scores of one task by one scorer; higher = more unusual.

    Parameters
    ----------
    score, scaled_score : float32 arrays of shape (n_recent,)
        The same numbers for calibrated scorers, in [0, 1]. For "softhad-paper" the score is |l* - y| and the scaled
        score its min-max on the past, which recent instances may leave.
    soft_label : float32 array of shape (n_recent,)
        Expected decision in [-1, 1]: for "softhad" without the own label, for "softhad-paper" l* with it, for the
        others 2 P(taken) - 1.
    support : float32 array of shape (n_recent,)
        How strongly the instance is tied to past instances, in [0, 1); 0 = isolated. Also given for "logistic", whose
        score does not use it.
    past_score, past_scaled_score : float32 arrays of shape (n_past,)
        The same for past instances, each with its own patient left out ("softhad-paper": with its own label in).
    feature_indices : int32 array of shape (n_kept,)
        Features that the task looks at, most telling first.
    feature_weights : float32 array of shape (n_kept,)
        psi = |2 AUC - 1| of each.
    n_past_positive, n_past : int
    scale : dict
        Numbers that made the scaled score: ``center``, ``intercept``, ``slope`` (per part for "pair") or ``low``,
        ``high``, ``n_below``, ``n_above``.
    """

    score: FloatVector
    scaled_score: FloatVector
    soft_label: FloatVector
    support: FloatVector
    past_score: FloatVector
    past_scaled_score: FloatVector
    feature_indices: NDArray[np.int32]
    feature_weights: FloatVector
    n_past_positive: int
    n_past: int
    scale: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ScoredTasks:
    """Everything a run found; the scores of a task are put together when asked for.

    Parameters
    ----------
    tasks : tuple of int
        Columns of Y that were scored, ascending.
    not_scored : dict of int to NotScored
        The other columns with their reasons.
    scorers : tuple of str
    parameters : ScoringParameters
    seed : int
    calibrations : dict of str to Calibration
        By evidence ("softhad", "logistic"); position = place of the task in `tasks`.
    evidence : mapping of int to arrays
        First stage by task.
    prepared : PreparedInstances
    """

    tasks: tuple[int, ...]
    not_scored: dict[int, NotScored]
    scorers: tuple[str, ...]
    parameters: ScoringParameters
    seed: int
    calibrations: dict[str, Calibration]
    evidence: Mapping[int, Evidence]
    prepared: PreparedInstances

    def scores(self, task: int, scorer: str) -> TaskScores:
        """Scores of the task in column `task` of Y by one of `scorers`.

        Raises
        ------
        NotFoundError
            When the run has no such scorer or did not score the task.
        """
        if scorer not in self.scorers:
            raise NotFoundError(f"This run has no scorer {scorer!r}; it has {', '.join(self.scorers)}.")
        if task not in self.evidence:
            reason = self.not_scored.get(task)
            raise NotFoundError(reason.reason if reason else f"Task {task} is not among the tasks of this run.")
        return _put_together(self, task, scorer)

    def __iter__(self) -> Iterator[int]:
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)


def score_tasks(
    X: Matrix,
    Y: Matrix,
    *,
    is_flag: ArrayLike,
    patients: ArrayLike,
    past: ArrayLike,
    recent: ArrayLike,
    scorers: Sequence[str] = (SOFTHAD,),
    parameters: ScoringParameters | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    finished: Mapping[int, Evidence] | None = None,
    on_task_finished: Callable[[int, Evidence], None] | None = None,
    exclude_same_patient: bool = True,
    task_names: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    order_groups: Sequence[str] | None = None,
    is_elapsed: ArrayLike | None = None,
) -> ScoredTasks:
    """Score every recent instance for every task against the past.

    Results depend on the data, the parameters and the seed alone: not on the number of workers, the order of tasks,
    or which other recent instances are scored.

    Parameters
    ----------
    X : sparse matrix of shape (n_instances, n_features)
        Raw features; what is not stored is "not measured" for values and 0 for flags and counts.
    Y : sparse or dense bool matrix of shape (n_instances, n_tasks)
    is_flag : bool array of shape (n_features,)
    patients : array of shape (n_instances,)
        Codes or names of patients.
    past, recent : int arrays
        Rows learned from and rows scored; they share none.
    scorers : sequence of {"softhad", "softhad-paper", "logistic", "pair", "day-adjusted"}
        "day-adjusted" also looks at how many other labs and drugs were decided in the window: for looking back only.
    parameters : ScoringParameters, optional
    seed : int
        Nodes of a task are drawn from (seed, task, graph).
    n_jobs : int, optional
        Workers, by joblib's rules; None lets joblib's configuration decide (one, unless a backend is set).
    on_progress : callable(n_done, n_all), optional
        Called in this thread after each task.
    finished : mapping of task to arrays, optional
        Evidence that `on_task_finished` handed out in an interrupted run of the same data, parameters and seed.
    on_task_finished : callable(task, arrays), optional
        Called in this thread with the first-stage evidence of each newly finished task.
    exclude_same_patient : bool
        Leave an instance's own patient out of its neighbourhood and its evidence. False leaves only itself out.
    task_names : sequence of str, optional
        Names for reasons and errors.
    kinds, order_groups : sequences of str of length n_tasks, optional
        `core.vocabulary.Kind` and order group ("" = alone) of each task; "day-adjusted" needs them. A task's own
        group is hidden from it.
    is_elapsed : bool array of shape (n_features,), optional
        True for hours since something happened, where what is not stored means never.

    Returns
    -------
    ScoredTasks

    Raises
    ------
    InvalidInputError
        When shapes, rows or options break a rule, or no task can be scored.

    References
    ----------
    The paper, eq. (had:sle) and section "Backbone Graph"; docs/method.md for what goes beyond it.
    """
    parameters = parameters or ScoringParameters()
    chosen = _check_scorers(scorers)
    day = DayContext.needed(kinds, order_groups, Y.shape[1]) if DAY_ADJUSTED in chosen else None
    groups, past_rows, recent_rows = _check_rows(X, Y, patients, past, recent, exclude_same_patient)
    flags = np.asarray(is_flag, dtype=bool)
    elapsed = None if is_elapsed is None else np.asarray(is_elapsed, dtype=bool)
    with threadpool_limits(1):
        prepared = prepare_instances(X, Y, flags, groups, past_rows, recent_rows, parameters, elapsed)
        prepared = replace(prepared, day=day)
        names = [f"number {t}" for t in range(prepared.n_tasks)] if task_names is None else list(task_names)
        if len(names) != prepared.n_tasks:
            raise InvalidInputError(
                f"task_names has {len(names)} names for {prepared.n_tasks} tasks. Pass one for each."
            )
        not_scored = _too_few_decisions(prepared, parameters, names)
        wanted = [task for task in range(prepared.n_tasks) if task not in not_scored]
        evidence: dict[int, Evidence] = {t: dict(e) for t, e in (finished or {}).items() if t in set(wanted)}
        work = (
            joblib.delayed(_evidence_or_reason)(prepared, task, parameters, chosen, seed, os.getpid())
            for task in wanted
            if task not in evidence
        )
        if on_progress:
            on_progress(len(not_scored) + len(evidence), prepared.n_tasks)
        parallel = joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator_unordered", batch_size=1)
        for task, found, reason in parallel(work):
            if reason:
                not_scored[task] = NotScored(f"Task '{names[task]}' cannot be scored: {reason}. Leave the task out.")
            else:
                evidence[task] = found
                if on_task_finished:
                    on_task_finished(task, found)
            if on_progress:
                on_progress(len(not_scored) + len(evidence), prepared.n_tasks)
        tasks = tuple(sorted(evidence))
        calibrations = _calibrations(prepared, tasks, evidence, chosen)
    ordered = {task: evidence[task] for task in tasks}
    reasons = dict(sorted(not_scored.items()))
    return ScoredTasks(tasks, reasons, chosen, parameters, seed, calibrations, ordered, prepared)


def _check_scorers(scorers: Sequence[str]) -> tuple[str, ...]:
    known = SCORERS + RETROSPECTIVE_SCORERS
    unknown = [scorer for scorer in scorers if scorer not in known]
    if unknown or not scorers or isinstance(scorers, str):
        raise InvalidInputError(f"Unknown scorers {list(scorers)!r}; choose one or more of {', '.join(known)}.")
    return tuple(dict.fromkeys(scorers))


def _check_rows(
    X: Matrix, Y: Matrix, patients: ArrayLike, past: ArrayLike, recent: ArrayLike, exclude_same_patient: bool
) -> tuple[IntArray, IntArray, IntArray]:
    n = X.shape[0]
    if Y.shape[0] != n:
        raise InvalidInputError(f"X has {n} instances and Y {Y.shape[0]}; row i of both must be the same instance.")
    past_rows, recent_rows = np.asarray(past, dtype=np.int64), np.asarray(recent, dtype=np.int64)
    rows = np.concatenate((past_rows, recent_rows))
    if len(past_rows) == 0 or len(recent_rows) == 0:
        raise InvalidInputError(
            f"There are {len(past_rows)} past and {len(recent_rows)} recent instances; both are needed. "
            "Change the split."
        )
    if rows.min() < 0 or rows.max() >= n or len(np.unique(rows)) < len(rows):
        raise InvalidInputError(
            f"Rows of past and recent must be distinct and in 0..{n - 1}; none may be both learned from and scored. "
            "Change the split."
        )
    groups = group_codes(patients, n)
    return (groups if exclude_same_patient else np.arange(n)), past_rows, recent_rows


def _too_few_decisions(
    prepared: PreparedInstances, parameters: ScoringParameters, names: Sequence[str]
) -> dict[int, NotScored]:
    reasons: dict[int, NotScored] = {}
    for task in range(prepared.n_tasks):
        n_positive = int(prepared.past_positive(task).sum())
        n_negative = prepared.n_past - n_positive
        for word, found, option in (
            ("positive", n_positive, "min_past_positives"),
            ("negative", n_negative, "min_past_negatives"),
        ):
            needed = getattr(parameters, option)
            if found < needed:
                reasons[task] = NotScored(
                    f"Task '{names[task]}' has {found} {word} past instances; at least {needed} are needed. "
                    f"Lower {option} or leave the task out."
                )
                break
    return reasons


def _evidence_or_reason(
    prepared: PreparedInstances,
    task: int,
    parameters: ScoringParameters,
    scorers: tuple[str, ...],
    seed: int,
    parent: int,
) -> tuple[int, dict[str, NDArray[Any]], str]:
    """Run one task in a worker; a reason instead of an error, so that one task does not stop the run."""
    try:
        if os.getpid() == parent:
            return task, task_evidence(prepared, task, parameters, scorers, seed), ""
        # Another process: its own BLAS threads would fight with the other workers.
        with threadpool_limits(1):
            return task, task_evidence(prepared, task, parameters, scorers, seed), ""
    except TaskNotScorableError as problem:
        return task, {}, str(problem)


def _calibrations(
    prepared: PreparedInstances, tasks: tuple[int, ...], evidence: Mapping[int, Evidence], scorers: tuple[str, ...]
) -> dict[str, Calibration]:
    if not tasks:
        return {}

    def positive(place: int) -> FloatArray:
        return prepared.past_positive(tasks[place]).astype(np.float64)

    calibrations: dict[str, Calibration] = {}
    for name in (SOFTHAD, LOGISTIC, DAY_ADJUSTED):
        if name in scorers or (PAIR in scorers and name != DAY_ADJUSTED):

            def past(place: int, name: str = name) -> FloatArray:
                return _evidence_values(evidence[tasks[place]], name)[: prepared.n_past]

            calibrations[name] = calibrate(past, positive, len(tasks))
    return calibrations


def _evidence_values(evidence: Evidence, name: str) -> FloatArray:
    if name == SOFTHAD:
        return soft_label_evidence(evidence["left_out_soft_label"])
    return evidence["logistic_log_odds" if name == LOGISTIC else "day_adjusted_log_odds"].astype(np.float64)


def _put_together(scored: ScoredTasks, task: int, scorer: str) -> TaskScores:
    prepared, evidence = scored.prepared, scored.evidence[task]
    n_past = prepared.n_past
    past_positive = prepared.past_positive(task)
    y = np.where(np.concatenate((past_positive, prepared.recent_positive(task))), 1.0, -1.0)
    support = evidence["support"]
    if scorer == SOFTHAD_PAPER:
        soft_label = evidence["paper_soft_label"].astype(np.float64)
        score = np.abs(soft_label - y)
        scaler = ScoreScaler().fit(score[:n_past])
        scaled = np.concatenate((scaler.transform(score[:n_past]), scaler.transform(score[n_past:])))
        scale = {"low": scaler.low_, "high": scaler.high_, "n_below": scaler.n_below_, "n_above": scaler.n_above_}
    else:
        log_odds, scale = _log_odds(scored, task, scorer)
        score = 1.0 / (1.0 + np.exp(y * log_odds))
        if scorer != LOGISTIC:
            score *= support
        soft_label = evidence["left_out_soft_label"].astype(np.float64) if scorer == SOFTHAD else np.tanh(log_odds / 2)
        scaled = score
    kept = prepared.kept_features[task]
    n_kept = int((kept >= 0).sum())
    return TaskScores(
        score=score[n_past:].astype(np.float32),
        scaled_score=scaled[n_past:].astype(np.float32),
        soft_label=soft_label[n_past:].astype(np.float32),
        support=support[n_past:],
        past_score=score[:n_past].astype(np.float32),
        past_scaled_score=scaled[:n_past].astype(np.float32),
        feature_indices=kept[:n_kept],
        feature_weights=prepared.kept_weights[task, :n_kept],
        n_past_positive=int(past_positive.sum()),
        n_past=n_past,
        scale={name: float(value) for name, value in scale.items()},
    )


def _log_odds(scored: ScoredTasks, task: int, scorer: str) -> tuple[FloatArray, dict[str, float]]:
    """Calibrated log odds of "taken"; those of the pair are the mean of both parts."""
    place = scored.tasks.index(task)
    parts = (SOFTHAD, LOGISTIC) if scorer == PAIR else (scorer,)
    total = np.zeros(len(scored.evidence[task]["support"]))
    scale: dict[str, float] = {}
    for part in parts:
        calibration = scored.calibrations[part]
        total += calibration.log_odds(place, _evidence_values(scored.evidence[task], part))
        suffix = f"_{part}" if len(parts) > 1 else ""
        scale[f"center{suffix}"] = calibration.centers[place]
        scale[f"intercept{suffix}"] = calibration.intercepts[place]
        scale[f"slope{suffix}"] = calibration.slopes[place]
    return total / len(parts), scale
