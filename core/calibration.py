"""From evidence to the chance of the other decision: logistic lines, one per task, whose slopes lean on each other.

A line fitted to one rare task alone often gets a negative slope by accident and turns its list upside down. Slopes are
therefore not negative and shrunk towards their common mean by as much as their spread between tasks allows.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from core.errors import InvalidInputError
from core.validation import FloatArray

EVIDENCE_CLIP = 0.999
FIRST_SLOPE = 1.0
FIRST_SLOPE_SPREAD = 10.0
"""Standard deviation of the prior of a first, lone slope: wide, it only keeps separable tasks finite."""
LONE_SLOPE_SPREAD = 1.0
"""Spread used when there are too few tasks to learn it."""
MIN_TASKS_FOR_SPREAD = 3
_MAX_STEPS = 50


@dataclass(frozen=True)
class LogisticLine:
    """P(y = +1 | e) = 1 / (1 + exp(-(intercept + slope e))).

    Parameters
    ----------
    intercept, slope : float
    slope_error : float
        Standard error of the slope.
    """

    intercept: float
    slope: float
    slope_error: float


@dataclass(frozen=True)
class Calibration:
    """Calibrated lines of many tasks.

    Parameters
    ----------
    centers : float array of shape (n_tasks,)
        Past mean of the evidence, subtracted before the line is applied.
    intercepts, slopes : float arrays of shape (n_tasks,)
    slope_mean, slope_spread : float
        beta_0 and tau of the slopes between tasks.
    """

    centers: FloatArray
    intercepts: FloatArray
    slopes: FloatArray
    slope_mean: float
    slope_spread: float

    def log_odds(self, task: int, evidence: ArrayLike) -> FloatArray:
        """Log odds of y = +1 for evidence of the `task`-th task; shape of `evidence`."""
        values = np.asarray(evidence, dtype=np.float64)
        return np.asarray(self.intercepts[task] + self.slopes[task] * (values - self.centers[task]))


def soft_label_evidence(soft_label: ArrayLike) -> FloatArray:
    """Evidence log((1 + l) / (1 - l)) of soft labels found without the own label, clipped at +-0.999."""
    clipped = np.clip(np.asarray(soft_label, dtype=np.float64), -EVIDENCE_CLIP, EVIDENCE_CLIP)
    return np.asarray(np.log1p(clipped) - np.log1p(-clipped))


def fit_line(
    evidence: FloatArray,
    positive: FloatArray,
    *,
    slope_mean: float = FIRST_SLOPE,
    slope_spread: float = FIRST_SLOPE_SPREAD,
) -> LogisticLine:
    """Fit one logistic line with slope ~ N(slope_mean, slope_spread^2) by Newton's method.

    Parameters
    ----------
    evidence : float array of shape (n_past,)
    positive : float array of shape (n_past,)
        1.0 where the decision was taken, else 0.0; both must occur.
    slope_mean, slope_spread : float
        Prior of the slope.
    """
    share = float(positive.mean())
    if not 0.0 < share < 1.0:
        raise InvalidInputError("A calibration line needs past decisions of both kinds. Leave the task out.")
    precision = 1.0 / max(slope_spread, 1e-6) ** 2
    parameters = np.array([np.log(share / (1 - share)), slope_mean if slope_spread < FIRST_SLOPE_SPREAD else 0.0])
    prior = np.array([0.0, precision])
    centre = np.array([0.0, slope_mean])
    loss = _loss(evidence, positive, parameters, prior, centre)
    for _ in range(_MAX_STEPS):
        chance = _sigmoid(parameters[0] + parameters[1] * evidence)
        residual = chance - positive
        gradient = np.array([residual.sum(), residual @ evidence]) + prior * (parameters - centre)
        hessian = _hessian(chance, evidence, prior)
        step = np.linalg.solve(hessian, gradient)
        # Newton may overshoot far from the optimum: halve until the loss does not grow.
        for halving in range(30):
            trial = parameters - step / 2**halving
            trial_loss = _loss(evidence, positive, trial, prior, centre)
            if trial_loss <= loss:
                break
        parameters, decrease, loss = trial, loss - trial_loss, trial_loss
        if abs(decrease) <= 1e-12 * max(abs(loss), 1.0):
            break
    hessian = _hessian(_sigmoid(parameters[0] + parameters[1] * evidence), evidence, prior)
    variance = hessian[0, 0] / max(hessian[0, 0] * hessian[1, 1] - hessian[0, 1] ** 2, 1e-300)
    return LogisticLine(float(parameters[0]), float(parameters[1]), float(np.sqrt(variance)))


def _sigmoid(x: FloatArray) -> FloatArray:
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(x, -500, 500))))


def _loss(
    evidence: FloatArray, positive: FloatArray, parameters: FloatArray, prior: FloatArray, centre: FloatArray
) -> float:
    z = parameters[0] + parameters[1] * evidence
    return float(np.logaddexp(0.0, z).sum() - positive @ z + 0.5 * (prior * (parameters - centre) ** 2).sum())


def _hessian(chance: FloatArray, evidence: FloatArray, prior: FloatArray) -> FloatArray:
    weight = chance * (1 - chance)
    cross = weight @ evidence
    return np.array([[weight.sum() + 1e-12, cross], [cross, (weight * evidence) @ evidence + prior[1] + 1e-12]])


def pool_slopes(slopes: FloatArray, errors: FloatArray) -> tuple[float, float]:
    """Mean and spread of slopes between tasks by DerSimonian and Laird's moments.

    Parameters
    ----------
    slopes, errors : float arrays of shape (n_tasks,)
        Slopes of lone lines and their standard errors.

    Returns
    -------
    slope_mean : float
        beta_0, not negative.
    slope_spread : float
        tau; 0 when the slopes differ no more than their errors explain.
    """
    if len(slopes) < MIN_TASKS_FOR_SPREAD:
        return FIRST_SLOPE, LONE_SLOPE_SPREAD
    weights = errors**-2.0
    mean = float(weights @ slopes / weights.sum())
    excess = float(weights @ (slopes - mean) ** 2) - (len(slopes) - 1)
    variance = max(0.0, excess / float(weights.sum() - (weights**2).sum() / weights.sum()))
    weights = 1.0 / (errors**2 + variance)
    return max(0.0, float(weights @ slopes / weights.sum())), float(np.sqrt(variance))


def calibrate(
    evidence: Sequence[FloatArray] | Callable[[int], FloatArray],
    positive: Sequence[FloatArray] | Callable[[int], FloatArray],
    n_tasks: int | None = None,
) -> Calibration:
    """Calibrate all tasks together: lone lines, their pooled slope, then lines shrunk towards it.

    Parameters
    ----------
    evidence : sequence of float arrays, or callable of the task's position
        Past evidence of each task, found without the instance's own patient.
    positive : sequence of float arrays, or callable
        1.0 where the past decision was taken, else 0.0.
    n_tasks : int, optional
        Needed with callables, which spare holding all tasks at once.

    Returns
    -------
    Calibration
    """
    if n_tasks is None:
        if callable(evidence):
            raise InvalidInputError("calibrate needs n_tasks when the evidence comes from a callable. Pass it.")
        n_tasks = len(evidence)
    get_evidence = evidence if callable(evidence) else evidence.__getitem__
    get_positive = positive if callable(positive) else positive.__getitem__
    centers, slopes, errors = np.zeros(n_tasks), np.zeros(n_tasks), np.zeros(n_tasks)
    for task in range(n_tasks):
        values = np.asarray(get_evidence(task), dtype=np.float64)
        centers[task] = values.mean()
        line = fit_line(values - centers[task], get_positive(task))
        slopes[task], errors[task] = line.slope, line.slope_error
    mean, spread = pool_slopes(slopes, errors)
    intercepts = np.zeros(n_tasks)
    for task in range(n_tasks):
        positives = get_positive(task)
        values = np.asarray(get_evidence(task), dtype=np.float64) - centers[task]
        line = fit_line(values, positives, slope_mean=mean, slope_spread=spread)
        if line.slope < 0:
            # Evidence against its own direction is noise: the task falls back to its base rate.
            share = float(positives.mean())
            line = LogisticLine(float(np.log(share / (1 - share))), 0.0, line.slope_error)
        intercepts[task], slopes[task] = line.intercept, line.slope
    return Calibration(centers, intercepts, slopes, mean, spread)
