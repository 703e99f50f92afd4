"""Put the folds of a task together: one vector over all scored instances, and its histograms."""

from collections.abc import Iterator, Sequence
from typing import Any

import joblib
import numpy as np
import numpy.typing as npt

from alertreview.splits import FoldOfRow
from core.multitask import ScoredTasks, TaskScores
from db.rows import NewTaskResult, TaskRow

N_BINS = 40
_ROUNDING = 1e-6
Vector = npt.NDArray[np.float32]


def assemble_task(scored: list[ScoredTasks], folds: FoldOfRow, task: TaskRow, scorer: str) -> NewTaskResult:
    """Join what the folds scored for one task.

    Parameters
    ----------
    scored : list of ScoredTasks
        By fold.
    folds : int16 array of shape (n_instances,)
        See `alertreview.splits`.
    task : TaskRow
        The task.
    scorer : str
        Named scorer.

    Returns
    -------
    NewTaskResult
        Vectors run over the scored instances in row order, NaN where a fold could not score the task. With one fold the
        histograms count past and recent instances; in folds every instance is counted once, as it was scored.
    """
    by_fold = {
        fold: part.scores(task.column_index, scorer)
        for fold, part in enumerate(scored)
        if task.column_index in part.evidence
    }
    if not by_fold:
        reason = next(part.not_scored[task.column_index].reason for part in scored)
        return NewTaskResult(task_id=task.id, scorer=scorer, reason=reason, n_past=0, n_past_positive=0)
    fold_of_recent = folds[folds >= 0]
    score = _join(by_fold, fold_of_recent, "score")
    scaled_score = _join(by_fold, fold_of_recent, "scaled_score")
    only = by_fold[0] if len(scored) == 1 else None
    raw = _with_past(score, only.past_score if only else None)
    scaled = _with_past(scaled_score, only.past_scaled_score if only else None)
    first = by_fold[min(by_fold)]
    return NewTaskResult(
        task_id=task.id,
        scorer=scorer,
        n_past=first.n_past if only else max(part.n_past for part in by_fold.values()),
        n_past_positive=first.n_past_positive if only else max(part.n_past_positive for part in by_fold.values()),
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
    scored: list[ScoredTasks], folds: FoldOfRow, tasks: Sequence[TaskRow], scorers: Sequence[str], n_jobs: int | None
) -> Iterator[NewTaskResult]:
    """Join what the folds scored, task by task and for each by all scorers, a few in advance and in threads.

    Parameters
    ----------
    scored, folds
        See `assemble_task`.
    tasks : sequence of TaskRow
    scorers : sequence of str
    n_jobs : int or None
        Threads, by joblib's rules.
    """
    in_threads = joblib.Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator", batch_size=1)
    results: Iterator[NewTaskResult] = in_threads(
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
