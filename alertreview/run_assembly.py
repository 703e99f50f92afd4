"""Put the folds of a task together: one vector over all scored instances, and its histograms."""

from typing import Any

import numpy as np
import numpy.typing as npt

from alertreview.splits import FoldOfRow
from core.multitask import ScoredTasks, TaskScores
from db.rows import NewTaskResult, TaskRow

N_BINS = 40
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


def _join(by_fold: dict[int, TaskScores], fold_of_recent: npt.NDArray[np.int16], name: str) -> Vector:
    joined = np.full(len(fold_of_recent), np.nan, dtype=np.float32)
    for fold, part in by_fold.items():
        joined[fold_of_recent == fold] = getattr(part, name)
    return joined


def _with_past(recent: Vector, past: Vector | None) -> Vector:
    values = recent if past is None else np.concatenate((past, recent))
    return values[np.isfinite(values)]


def _histogram(values: Vector) -> dict[str, Any]:
    """Count in equal bins from 0 to 1, or to 2 where a score can reach it; what lies outside is in the end bins."""
    top = 1.0 if len(values) == 0 or values.max() <= 1.0 + 1e-6 else 2.0
    edges = np.linspace(0.0, top, N_BINS + 1)
    counts = np.histogram(np.clip(values, 0.0, top), bins=edges)[0]
    return {"edges": edges.round(6).tolist(), "counts": counts.tolist()}
