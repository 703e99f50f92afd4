"""Scores of a run's tasks, from their evidence and the calibration that makes tasks comparable."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from core.errors import NotFoundError
from core.scaling import ScoreScaler
from core.scoring.calibration import Calibration, calibrate
from core.scoring.parameters import ScoringParameters
from core.scoring.prepared import Evidence, PreparedInstances
from core.scoring.scorers import SCORERS, Part
from core.scoring.shared import SharedModel
from core.validation import FloatArray

FloatVector = NDArray[np.float32]
IN_GENERAL: Final = "in_general"
"""Name, in a scale, of what the log odds of a commission are raised by: it is negative for a rare decision."""


@dataclass(frozen=True)
class TaskScores:
    """Scores of one task by one scorer; higher = more unusual.

    Parameters
    ----------
    score, scaled_score : float32 arrays of shape (n_recent,)
        For calibrated scorers in [0, 1], and the same numbers unless commissions are set against what is decided in
        general (`core.scoring.scorers.Scorer.against_general`): then the score is the chance of the other decision, and
        the scaled score orders decisions of all tasks by how likely they are a mistake. For "softhad-paper" the score
        is |l* - y|, for baselines what the method gives in its own unit, and the scaled score its min-max on the past,
        which recent instances may leave.
    soft_label : float32 array of shape (n_recent,)
        Expected decision in [-1, 1]: for "softhad" without the own label, for "softhad-paper" l* with it, for
        calibrated scorers 2 P(taken) - 1. For baselines, which need not expect anything, y (1 - 2 scaled score): the
        decision itself where nothing in the past is less unusual, the other one where nothing is more.
    support : float32 array of shape (n_recent,)
        How strongly the instance is tied to past instances, in [0, 1); 0 = isolated. Also given for "logistic" and for
        baselines, whose scores do not use it.
    past_score, past_scaled_score : float32 arrays of shape (n_past,)
        The same for past instances, each with its own patient left out ("softhad-paper": with its own label in).
    feature_indices : int32 array of shape (n_kept,)
        Features that the task looks at, most telling first.
    feature_weights : float32 array of shape (n_kept,)
        psi = |2 AUC - 1| of each.
    n_past_positive, n_past : int
    scale : dict
        Numbers that made the scaled score: ``center``, ``intercept``, ``slope`` (per part where there are several), and
        ``in_general``, what a commission's log odds are raised by; or ``low``, ``high``, ``n_below``, ``n_above``.
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
    not_scored : dict of int to str
        The other columns with the reason: which task, which rule, which value, what to do.
    scorers : tuple of str
    parameters : ScoringParameters
    seed : int
    calibrations : dict of str to Calibration
        By key of `core.scoring.scorers.Part`; position = place of the task in `tasks`.
    evidence : mapping of int to arrays
        First stage by task.
    prepared : PreparedInstances
    shared : SharedModel, optional
        What "shared" learned of all tasks together.
    """

    tasks: tuple[int, ...]
    not_scored: dict[int, str]
    scorers: tuple[str, ...]
    parameters: ScoringParameters
    seed: int
    calibrations: dict[str, Calibration]
    evidence: Mapping[int, Evidence]
    prepared: PreparedInstances
    shared: SharedModel | None = None

    def scores(self, task: int, scorer: str) -> TaskScores:
        """Return the scores of the task in column `task` of Y by one of `scorers`.

        Raises
        ------
        NotFoundError
            When the run has no such scorer or did not score the task.
        """
        if scorer not in self.scorers:
            raise NotFoundError(f"This run has no scorer {scorer!r}; it has {', '.join(self.scorers)}.")
        if task not in self.tasks:
            raise NotFoundError(self.not_scored.get(task, f"Task {task} is not among the tasks of this run."))
        return _scores_of_task(self, task, scorer)

    def without_features(self) -> "ScoredTasks":
        """Drop the standardised features, the largest part, which scores no longer need."""
        nothing = sparse.csc_array((0, 0), dtype=np.float32)
        return replace(self, prepared=replace(self.prepared, columns=nothing))

    def __iter__(self) -> Iterator[int]:
        return iter(self.tasks)

    def __len__(self) -> int:
        return len(self.tasks)


def calibrate_tasks(
    prepared: PreparedInstances,
    tasks: tuple[int, ...],
    evidence: Mapping[int, Evidence],
    scorers: tuple[str, ...],
    n_jobs: int | None = None,
) -> dict[str, Calibration]:
    """Calibrate every kind of evidence that `scorers` need, over all tasks together."""
    if not tasks:
        return {}

    def positive(place: int) -> FloatArray:
        return prepared.past_positive(tasks[place]).astype(np.float64)

    calibrations: dict[str, Calibration] = {}
    for part in dict.fromkeys(part for scorer in scorers for part in SCORERS[scorer].parts):
        if part.is_log_odds:
            calibrations[part.key] = Calibration.identity(len(tasks))
            continue

        def past(place: int, part: Part = part) -> FloatArray:
            return part.values(evidence[tasks[place]][part.array][: prepared.n_past])

        calibrations[part.key] = calibrate(past, positive, len(tasks), n_jobs)
    return calibrations


@dataclass(frozen=True)
class ScaledScores:
    """Scores of some instances of a task; arrays of shape (n,)."""

    score: FloatArray
    scaled_score: FloatArray
    soft_label: FloatArray


def score_by_scale(evidence: Evidence, y: FloatArray, scorer: str, scale: Mapping[str, float]) -> ScaledScores:
    """Score instances of one task by its evidence and its fixed scale.

    Parameters
    ----------
    evidence : mapping of str to arrays of shape (n,)
        As from `core.scoring.scorers.task_evidence`.
    y : float array of shape (n,)
        Decisions, -1 or +1.
    scorer : str
    scale : mapping
        As in `TaskScores`.
    """
    registered = SCORERS[scorer]
    if not registered.parts:
        score, soft_label = registered.raw_scores(evidence, y)
        scaler = ScoreScaler()
        scaler.low_, scaler.high_ = scale["low"], scale["high"]
        scaled = scaler.transform(score) if len(score) else score
        if soft_label is None:
            soft_label = y * (1 - 2 * np.clip(scaled, 0.0, 1.0))
        return ScaledScores(score, scaled, soft_label)
    found = []
    for part in registered.parts:
        suffix = _suffix(scorer, part)
        centred = part.values(evidence[part.array]) - scale[f"center{suffix}"]
        found.append(scale[f"intercept{suffix}"] + scale[f"slope{suffix}"] * centred)
    weights = np.array([part.weight for part in registered.parts])
    weights /= weights.sum()
    of_parts = np.array(found)
    log_odds = weights @ of_parts
    if registered.pools_chances:
        taken, other = (weights @ np.exp(-np.logaddexp(0.0, np.clip(-side * of_parts, -500, 500))) for side in (1, -1))
        log_odds = np.log(taken / other)
    score = 1.0 / (1.0 + np.exp(y * log_odds))
    if registered.times_support:
        score *= evidence[registered.support]
    array = registered.soft_label
    expected = evidence[array].astype(np.float64) if array else np.tanh(log_odds / 2)
    # The scale of a run that an earlier version stored has nothing to raise by.
    raised = np.where(y > 0, scale.get(IN_GENERAL, 0.0), 0.0)
    scaled_score = 1.0 / (1.0 + np.exp(y * log_odds - raised)) if registered.against_general else score
    return ScaledScores(score, scaled_score, expected)


def _suffix(scorer: str, part: Part) -> str:
    """Return the end of the names of a part's numbers in a scale."""
    return f"_{part.key}" if len(SCORERS[scorer].parts) > 1 else ""


def _scores_of_task(scored: ScoredTasks, task: int, scorer: str) -> TaskScores:
    prepared, evidence = scored.prepared, scored.evidence[task]
    n_past = prepared.n_past
    past_positive = prepared.past_positive(task)
    y = np.where(np.concatenate((past_positive, prepared.recent_positive(task))), 1.0, -1.0)
    scale = _scale(scored, task, scorer, evidence, y)
    found = score_by_scale(evidence, y, scorer, scale)
    if not SCORERS[scorer].parts:
        recent = found.scaled_score[n_past:]
        scale |= {"n_below": float((recent < 0).sum()), "n_above": float((recent > 1).sum())}
    kept = prepared.kept_features[task]
    n_kept = int((kept >= 0).sum())
    return TaskScores(
        score=found.score[n_past:].astype(np.float32),
        scaled_score=found.scaled_score[n_past:].astype(np.float32),
        soft_label=found.soft_label[n_past:].astype(np.float32),
        support=evidence[SCORERS[scorer].support][n_past:],
        past_score=found.score[:n_past].astype(np.float32),
        past_scaled_score=found.scaled_score[:n_past].astype(np.float32),
        feature_indices=kept[:n_kept],
        feature_weights=prepared.kept_weights[task, :n_kept],
        n_past_positive=int(past_positive.sum()),
        n_past=n_past,
        scale=scale,
    )


def _scale(scored: ScoredTasks, task: int, scorer: str, evidence: Evidence, y: FloatArray) -> dict[str, float]:
    """Return the numbers that make the scaled score, learned on the past."""
    if not SCORERS[scorer].parts:
        scaler = ScoreScaler().fit(SCORERS[scorer].raw_scores(evidence, y)[0][: scored.prepared.n_past])
        return {"low": scaler.low_, "high": scaler.high_}
    place = scored.tasks.index(task)
    scale: dict[str, float] = {}
    for part in SCORERS[scorer].parts:
        calibration, suffix = scored.calibrations[part.key], _suffix(scorer, part)
        scale[f"center{suffix}"] = float(calibration.centers[place])
        scale[f"intercept{suffix}"] = float(calibration.intercepts[place])
        scale[f"slope{suffix}"] = float(calibration.slopes[place])
    if SCORERS[scorer].against_general:
        share = float(scored.prepared.past_positive(task).mean())
        scale[IN_GENERAL] = SCORERS[scorer].against_general * float(np.log(share / (1 - share)))
    return scale
