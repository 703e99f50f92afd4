"""Scores of many tasks at once: evidence task by task (parallel, resumable), then one calibration over all tasks."""

import os
from collections.abc import Callable, Collection, Hashable, MutableMapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any, TypeAlias

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from core.errors import InvalidInputError, TaskNotScorableError
from core.graph.similarity import group_codes
from core.scoring.baseline_evidence import baseline_evidence
from core.scoring.evidence import DayContext, Evidence, PreparedInstances, prepare_instances, task_evidence
from core.scoring.parameters import ALL_SCORERS, DAY_ADJUSTED, SCORERS, SOFTHAD, ScoringParameters
from core.scoring.scores import NotScored, ScoredTasks, TaskScores, calibrate_tasks
from core.statistics.estimate import Estimate
from core.validation import IntArray, Matrix

__all__ = ["SCORERS", "NotScored", "ScoredTasks", "ScoringParameters", "TaskScores", "score_tasks"]
Workers: TypeAlias = Callable[[PreparedInstances], AbstractContextManager[object]]
"""Given what all tasks share, makes the context in which joblib runs them."""


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
    store: MutableMapping[int, Evidence] | None = None,
    workers: Workers | None = None,
    keep_graphs: bool = False,
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
    scorers : sequence of {"softhad", "softhad-paper", "logistic", "pair", "day-adjusted"} or baselines
        "day-adjusted" also looks at how many other labs and drugs were decided in the window: for looking back only.
        Baselines are in `core.scoring.parameters.BASELINE_SCORERS`.
    parameters : ScoringParameters, optional
    seed : int
        Nodes of a task are drawn from (seed, task, graph).
    n_jobs : int, optional
        Workers, by joblib's rules; None lets joblib's configuration decide (one, unless a backend is set).
    on_progress : callable(n_done, n_all), optional
        Called in this thread after each task.
    store : mutable mapping of task to arrays, optional
        Where evidence is kept, one task at a time; on disk, say, when it is too large for memory. Tasks that are in it
        already are not computed again: an interrupted run of the same data, parameters and seed goes on from there.
    workers : callable, optional
        Given the prepared instances, makes the context in which joblib runs the tasks, on a cluster say.
    keep_graphs : bool
        Let the evidence hold what later instances can be scored against; see `core.scoring.new_instances`.
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
        prepared = prepare_instances(X, Y, flags, groups, past_rows, recent_rows, parameters, elapsed, n_jobs)
        prepared = replace(prepared, day=day, keep_graphs=keep_graphs)
        names = _names(task_names, prepared.n_tasks)
        not_scored = _too_few_decisions(prepared, parameters, names)
        wanted = [task for task in range(prepared.n_tasks) if task not in not_scored]
        evidence: MutableMapping[int, Evidence] = {} if store is None else store
        finished = {task for task in wanted if task in evidence}
        work = (
            joblib.delayed(_evidence_or_reason)(prepared, task, parameters, chosen, seed, os.getpid())
            for task in wanted
            if task not in finished
        )
        if on_progress:
            on_progress(len(not_scored) + len(finished), prepared.n_tasks)
        with workers(prepared) if workers else nullcontext():
            parallel = joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator_unordered", batch_size=1)
            for task, found, reason in parallel(work):
                if reason:
                    text = f"Task '{names[task]}' cannot be scored: {reason}. Leave the task out."
                    not_scored[task] = NotScored(text)
                else:
                    evidence[task] = found
                    finished.add(task)
                if on_progress:
                    on_progress(len(not_scored) + len(finished), prepared.n_tasks)
        tasks = tuple(sorted(finished))
        calibrations = calibrate_tasks(prepared, tasks, evidence, chosen, n_jobs)
    reasons = dict(sorted(not_scored.items()))
    return ScoredTasks(tasks, reasons, chosen, parameters, seed, calibrations, evidence, prepared)


def _names(task_names: Sequence[str] | None, n_tasks: int) -> list[str]:
    names = [f"number {task}" for task in range(n_tasks)] if task_names is None else list(task_names)
    if len(names) != n_tasks:
        raise InvalidInputError(f"task_names has {len(names)} names for {n_tasks} tasks. Pass one for each.")
    return names


def _check_scorers(scorers: Sequence[str]) -> tuple[str, ...]:
    unknown = [scorer for scorer in scorers if scorer not in ALL_SCORERS]
    if unknown or not scorers or isinstance(scorers, str):
        raise InvalidInputError(f"Unknown scorers {list(scorers)!r}; choose one or more of {', '.join(ALL_SCORERS)}.")
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
    if os.getpid() != parent:
        _use_one_thread()
    try:
        evidence = task_evidence(prepared, task, parameters, scorers, seed)
        evidence.update(baseline_evidence(prepared, task, parameters, scorers, seed))
    except TaskNotScorableError as problem:
        return task, {}, str(problem)
    return task, evidence, ""


@cache
def _use_one_thread() -> None:
    """Pin linear algebra to one thread in a worker process, for good.

    Its threads would fight with the other workers, and add up in another order. Several tasks in one process would
    undo each other's limits, if these ended with a task.
    """
    threadpool_limits(1)


N_TOP = 50
"""Length of the top of each list that is compared, as in the paper."""


class Varied(StrEnum):
    """What is changed while everything else stays as in the run."""

    GRAPH_SIZE = "graph size"
    """Nodes of a backbone graph."""
    REGULARIZATION = "regularisation"
    """gamma_g, the edge of every node to a sink with label 0."""


@dataclass(frozen=True)
class SensitivityPoint:
    """One setting.

    Parameters
    ----------
    varied : Varied
    setting : float
        Nodes, or gamma_g.
    scorer : str
    shared : float
        Share of the run's first alerts that are among the first at this setting as well, in [0, 1].
    auc : Estimate
        Of the scaled scores against the judged study of the run; "not computable" without one.
    """

    varied: Varied
    setting: float
    scorer: str
    shared: float
    auc: Estimate


@dataclass(frozen=True)
class Sensitivity:
    """The curves of a run.

    Parameters
    ----------
    points : tuple of SensitivityPoint
        By scorer, what is varied, and setting.
    n_top : int
        Alerts of each list that `shared` compares.
    seed : int
        Of the nodes: another one than the run's, so that what is shared at the run's own setting tells what another
        draw of nodes changes by itself.
    study : str
        Title of the judged study; empty without one.
    n_nodes, regularization : float
        The run's own setting.
    """

    points: tuple[SensitivityPoint, ...]
    n_top: int
    seed: int
    study: str
    n_nodes: float
    regularization: float


def share_in_common(first: Collection[Hashable], second: Collection[Hashable]) -> float:
    """Share of the members of a list that stand in another list as well, in [0, 1].

    Raises
    ------
    InvalidInputError
        If the first list is empty: nothing can be shared then.

    Examples
    --------
    >>> share_in_common(["a", "b", "c", "d"], ["d", "e", "a"])
    0.5
    """
    if not first:
        raise InvalidInputError("The list to compare with is empty. Score the run first, then compare.")
    known = set(second)
    return sum(member in known for member in first) / len(first)
