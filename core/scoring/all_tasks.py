"""Score many tasks at once: evidence task by task (parallel, resumable), then one calibration over all tasks."""

import os
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cache, partial
from typing import Any, Final, TypeAlias

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from threadpoolctl import threadpool_limits

from core.cohort.feature_roles import FeatureRoles
from core.errors import InvalidInputError, TaskNotScorableError
from core.graph.similarity import group_codes
from core.scoring.look_back import explain_by_window
from core.scoring.parameters import ScoringParameters
from core.scoring.prepared import DayContext, Evidence, PreparedInstances, TaskData, prepare_instances
from core.scoring.scorers import (
    LOOKING_BACK,
    SCORERS,
    SHARED,
    SOFTHAD,
    is_retrospective,
    needs_shared_graph,
    task_evidence,
)
from core.scoring.scores import ScoredTasks, calibrate_tasks
from core.scoring.shared import SharedModel, patient_parts, shared_evidence
from core.scoring.signs import OtherMembers
from core.validation import IntArray, Matrix

Workers: TypeAlias = Callable[[PreparedInstances], AbstractContextManager[object]]
"""Given what all tasks share, makes the context in which joblib runs them."""
_PARTS: Final = 1 << 21
"""Beside the seed in the state of the generator of patients' parts, beyond the numbers of tasks."""


def score_tasks(
    X: Matrix,
    Y: Matrix,
    *,
    is_flag: ArrayLike,
    patients: ArrayLike,
    past: ArrayLike,
    recent: ArrayLike,
    scorers: Sequence[str] = (SOFTHAD.key,),
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
    roles: FeatureRoles | None = None,
    left_out: Mapping[int, str] | None = None,
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
    scorers : sequence of str
        Of `core.scoring.scorers.SCORERS`.
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
        `core.vocabulary.Kind` and order group ("" = alone) of each task; retrospective scorers need them. A task's own
        group is hidden from them.
    is_elapsed : bool array of shape (n_features,), optional
        True for hours since something happened, where what is not stored means never.
    roles : FeatureRoles, optional
        Groups of features and the features of each task's own item, for "shared"; without them, or without kinds and
        order groups, it uses the graph alone.
    left_out : mapping of task to str, optional
        Tasks that are not to be scored, with the reason.

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
    tell = on_progress or (lambda n_done, n_all: None)
    chosen = _check_scorers(scorers)
    day = _day_of(chosen, roles, kinds, order_groups, Y.shape[1])
    groups, past_rows, recent_rows = _check_rows(X, Y, patients, past, recent, exclude_same_patient)
    flags = np.asarray(is_flag, dtype=bool)
    elapsed = None if is_elapsed is None else np.asarray(is_elapsed, dtype=bool)
    with threadpool_limits(1):
        prepared = prepare_instances(X, Y, flags, groups, past_rows, recent_rows, parameters, elapsed, n_jobs)
        prepared = replace(prepared, day=day, keep_graphs=keep_graphs)
        names = _names(task_names, prepared.n_tasks)
        not_scored = {**_too_few_decisions(prepared, parameters, names), **(left_out or {})}
        wanted = [task for task in range(prepared.n_tasks) if task not in not_scored]
        evidence: MutableMapping[int, Evidence] = {} if store is None else store
        finished = {task for task in wanted if task in evidence}
        one = joblib.delayed(_evidence_or_reason)
        work = (one(prepared, t, parameters, chosen, seed, os.getpid()) for t in wanted if t not in finished)
        tell(len(not_scored) + len(finished), prepared.n_tasks)
        with workers(prepared) if workers else nullcontext():
            parallel = joblib.Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator_unordered", batch_size=1)
            for task, found, reason in parallel(work):
                if reason:
                    not_scored[task] = f"Task '{names[task]}' cannot be scored: {reason}. Leave the task out."
                else:
                    evidence[task] = found
                    finished.add(task)
                tell(len(not_scored) + len(finished), prepared.n_tasks)
        tasks = tuple(sorted(finished))
        shared = None
        if tasks and needs_shared_graph(chosen):
            rows = np.concatenate((past_rows, recent_rows))
            raw, people = partial(_columns_of, X, rows), group_codes(patients, X.shape[0])[rows]
            shared = _add_shared(evidence, prepared, raw, roles, tasks, chosen, parameters, seed, n_jobs, people)
        calibrations = calibrate_tasks(prepared, tasks, evidence, chosen, n_jobs)
    not_scored = dict(sorted(not_scored.items()))
    return ScoredTasks(tasks, not_scored, chosen, parameters, seed, calibrations, evidence, prepared, shared)


def _day_of(
    scorers: tuple[str, ...],
    roles: FeatureRoles | None,
    kinds: Sequence[str] | None,
    order_groups: Sequence[str] | None,
    n_tasks: int,
) -> DayContext | None:
    """Return kinds and order groups of the tasks where a scorer uses them."""
    is_needed = any(map(is_retrospective, scorers)) or (roles is not None and None not in (kinds, order_groups))
    return DayContext.needed(kinds, order_groups, n_tasks) if is_needed else None


def _add_shared(
    evidence: MutableMapping[int, Evidence],
    prepared: PreparedInstances,
    raw: Callable[[], sparse.csc_array],
    roles: FeatureRoles | None,
    tasks: tuple[int, ...],
    scorers: tuple[str, ...],
    parameters: ScoringParameters,
    seed: int,
    n_jobs: int | None,
    patients: IntArray,
) -> SharedModel:
    """Add the evidence of all tasks together to that of each, and return what was learned."""
    others = partial(_other_members, evidence, prepared, tasks, n_jobs)
    together, shared = shared_evidence(prepared, raw, roles, tasks, parameters, seed, n_jobs, others, patients)
    found = {"shared_log_odds": together.log_odds}
    if LOOKING_BACK.key in scorers and prepared.day is not None:
        chosen = list(tasks)
        found["looking_back_log_odds"] = explain_by_window(
            together.log_odds,
            np.column_stack([prepared.positive(task) for task in tasks]),
            prepared.n_past,
            DayContext(prepared.day.kinds[chosen], prepared.day.groups[chosen]),
            prepared.groups,
            patient_parts(prepared.groups, prepared.n_past, np.random.default_rng([seed, _PARTS])),
            n_jobs,
        )
    for place, task in enumerate(tasks):
        mine = {name: log_odds[:, place] for name, log_odds in found.items()}
        evidence[task] = dict(evidence[task].items()) | mine | {"shared_support": together.support}
    return shared


def _other_members(
    evidence: Mapping[int, Evidence], prepared: PreparedInstances, tasks: tuple[int, ...], n_jobs: int | None
) -> OtherMembers:
    """Return what the members of "shared" beside the shared graph expect of the past."""
    lines = calibrate_tasks(prepared, tasks, evidence, (SHARED.key,), n_jobs)
    parts = [part for part in SHARED.parts if not part.is_log_odds]
    total = sum(part.weight for part in SHARED.parts)
    chances = np.zeros((prepared.n_past, len(tasks)), dtype=np.float32)
    for place, task in enumerate(tasks):
        mine = evidence[task]
        for part in parts:
            log_odds = lines[part.key].log_odds(place, part.values(mine[part.array][: prepared.n_past]))
            chances[:, place] += part.weight / total / (1 + np.exp(-np.clip(log_odds, -500, 500)))
    return OtherMembers(chances, 1 - sum(part.weight for part in parts) / total)


def _columns_of(X: Matrix, rows: IntArray) -> sparse.csc_array:
    """Return some rows column by column; all of them, the usual case, without a copy by rows in between."""
    if len(rows) < X.shape[0]:
        return sparse.csc_array(sparse.csr_array(X)[rows])
    place = np.empty(len(rows), dtype=np.int32)
    place[rows] = np.arange(len(rows), dtype=np.int32)
    found = sparse.csc_array(X)
    return sparse.csc_array((found.data, place[found.indices], found.indptr), shape=found.shape)


def _names(task_names: Sequence[str] | None, n_tasks: int) -> list[str]:
    names = [f"number {task}" for task in range(n_tasks)] if task_names is None else list(task_names)
    if len(names) != n_tasks:
        raise InvalidInputError(f"task_names has {len(names)} names for {n_tasks} tasks. Pass one for each.")
    return names


def _check_scorers(scorers: Sequence[str]) -> tuple[str, ...]:
    unknown = [scorer for scorer in scorers if scorer not in SCORERS]
    if unknown or not scorers or isinstance(scorers, str):
        raise InvalidInputError(f"Unknown scorers {list(scorers)!r}; choose one or more of {', '.join(SCORERS)}.")
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
) -> dict[int, str]:
    reasons: dict[int, str] = {}
    for task in range(prepared.n_tasks):
        n_positive = int(prepared.past_positive(task).sum())
        n_negative = prepared.n_past - n_positive
        for word, found, option in (
            ("positive", n_positive, "min_past_positives"),
            ("negative", n_negative, "min_past_negatives"),
        ):
            needed = getattr(parameters, option)
            if found < needed:
                reasons[task] = (
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
        return task, task_evidence(TaskData(prepared, task, parameters, seed), scorers), ""
    except TaskNotScorableError as problem:
        return task, {}, str(problem)


@cache
def _use_one_thread() -> None:
    """Limit linear algebra to one thread in a worker process.

    Its threads would fight with the other workers, and add up in another order. Several tasks in one process would
    undo each other's limits, if these ended with a task.
    """
    threadpool_limits(1)
