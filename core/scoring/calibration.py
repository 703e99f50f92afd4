"""From evidence to the chance of the other decision: logistic lines, one per task, whose slopes lean on each other.

A line fitted to one rare task alone often gets a negative slope by accident and turns its list upside down. Slopes are
therefore not negative and shrunk towards their common mean by as much as their spread between tasks allows.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from numpy.typing import ArrayLike

from core.errors import InvalidInputError
from core.numerics.compiled import compiled
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
    """P(y = +1 | e) = 1 / (1 + exp(-(intercept + slope e)))."""

    intercept: float
    slope: float
    slope_error: float  # standard error of the slope


@dataclass(frozen=True)
class Calibration:
    """Calibrated lines of many tasks."""

    centers: FloatArray  # shape (n_tasks,): past mean of the evidence, subtracted before the line is applied
    # `intercepts` and `slopes`: shape (n_tasks,).
    intercepts: FloatArray
    slopes: FloatArray

    @classmethod
    def identity(cls, n_tasks: int) -> "Calibration":
        """Return lines that leave log odds as they are."""
        nothing, ones = np.zeros(n_tasks), np.ones(n_tasks)
        return cls(nothing, nothing, ones)

    def log_odds(self, task: int, evidence: ArrayLike) -> FloatArray:
        """Log odds of y = +1 for evidence of the `task`-th task; shape of `evidence`."""
        values = np.asarray(evidence, dtype=np.float64)
        return np.asarray(self.intercepts[task] + self.slopes[task] * (values - self.centers[task]))


def soft_label_evidence(soft_label: ArrayLike) -> FloatArray:
    """Return the evidence log((1 + l) / (1 - l)) of soft labels found without the own label, clipped at +-0.999."""
    clipped = np.clip(np.asarray(soft_label, dtype=np.float64), -EVIDENCE_CLIP, EVIDENCE_CLIP)
    return np.asarray(np.log1p(clipped) - np.log1p(-clipped))


def fit_line(
    evidence: FloatArray,
    positive: FloatArray,
    *,
    slope_mean: float = FIRST_SLOPE,
    slope_spread: float = FIRST_SLOPE_SPREAD,
    start: LogisticLine | None = None,
) -> LogisticLine:
    """Fit one logistic line with slope ~ N(slope_mean, slope_spread^2) by Newton's method, from a line that is near.

    `positive` is 1.0 where the decision was taken, else 0.0; both must occur.
    """
    share = float(positive.mean())
    if not 0.0 < share < 1.0:
        raise InvalidInputError("A calibration line needs past decisions of both kinds. Leave the task out.")
    precision = 1.0 / max(slope_spread, 1e-6) ** 2
    begin = np.array([np.log(share / (1 - share)), slope_mean if slope_spread < FIRST_SLOPE_SPREAD else 0.0])
    if start is not None:
        begin = np.array([start.intercept, start.slope])
    evidence, positive = np.asarray(evidence, dtype=np.float64), np.asarray(positive, dtype=np.float64)
    intercept, slope, hessian = _newton(evidence, positive, begin, slope_mean, precision)
    variance = hessian[0, 0] / max(hessian[0, 0] * hessian[1, 1] - hessian[0, 1] ** 2, 1e-300)
    return LogisticLine(float(intercept), float(slope), float(np.sqrt(variance)))


@compiled
def _newton(evidence: Any, positive: Any, start: Any, slope_mean: float, precision: float) -> Any:
    """Return intercept, slope and Hessian by Newton's method from `start`."""
    intercept, slope = start[0], start[1]
    loss, gradient, hessian = _loss(evidence, positive, intercept, slope, slope_mean, precision)
    for _ in range(_MAX_STEPS):
        determinant = hessian[0, 0] * hessian[1, 1] - hessian[0, 1] ** 2
        down = (hessian[1, 1] * gradient[0] - hessian[0, 1] * gradient[1]) / determinant
        along = (hessian[0, 0] * gradient[1] - hessian[0, 1] * gradient[0]) / determinant
        # Newton may overshoot far from the optimum: halve until the loss does not grow.
        share = 1.0
        for _halving in range(30):
            trial = _loss(evidence, positive, intercept - share * down, slope - share * along, slope_mean, precision)
            if trial[0] <= loss:
                break
            share /= 2
        intercept, slope = intercept - share * down, slope - share * along
        decrease = loss - trial[0]
        loss, gradient, hessian = trial
        if abs(decrease) <= 1e-12 * max(abs(loss), 1.0):
            break
    return intercept, slope, hessian


@compiled
def _loss(evidence: Any, positive: Any, intercept: float, slope: float, slope_mean: float, precision: float) -> Any:
    """Return the penalised negative log likelihood, its gradient and its Hessian, in one pass."""
    gradient, hessian = np.zeros(2), np.zeros((2, 2))
    total, factor, h0, h1, h2 = 0.0, 1.0, 1e-12, 0.0, 1e-12
    for i in range(len(evidence)):
        e = evidence[i]
        z = intercept + slope * e
        small = np.exp(-abs(z))
        total += max(z, 0.0) - positive[i] * z
        # One logarithm for several factors, none of which is above 2.
        factor *= 1.0 + small
        if i % 64 == 63:
            total += np.log(factor)
            factor = 1.0
        chance = (1.0 if z >= 0 else small) / (1.0 + small)
        residual, weight = chance - positive[i], small / (1.0 + small) ** 2
        gradient[0] += residual
        gradient[1] += residual * e
        h0 += weight
        h1 += weight * e
        h2 += weight * e * e
    gradient[1] += precision * (slope - slope_mean)
    hessian[0, 0], hessian[0, 1], hessian[1, 0], hessian[1, 1] = h0, h1, h1, h2 + precision
    total += np.log(factor)
    return total + 0.5 * precision * (slope - slope_mean) ** 2, gradient, hessian


def pool_slopes(slopes: FloatArray, errors: FloatArray) -> tuple[float, float]:
    """Return mean and spread of slopes between tasks, beta_0 >= 0 and tau, by DerSimonian and Laird's moments.

    The slopes are those of lone lines, the errors their standard errors; tau is 0 when they differ no more than these
    explain.
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
    evidence: Callable[[int], FloatArray],
    positive: Callable[[int], FloatArray],
    n_tasks: int,
    n_jobs: int | None = None,
) -> Calibration:
    """Calibrate all tasks together: lone lines, their pooled slope, then lines shrunk towards it.

    Evidence of the past is found without the instance's own patient, `positive` is 1.0 where the decision was taken,
    else 0.0: of the task at a position, one at a time, which spares holding all at once; both are called from threads.
    """
    in_threads = joblib.Parallel(n_jobs=n_jobs, require="sharedmem")

    def alone(task: int) -> tuple[float, LogisticLine]:
        values = np.asarray(evidence(task), dtype=np.float64)
        center = float(values.mean())
        return center, fit_line(values - center, positive(task))

    found = in_threads(joblib.delayed(alone)(task) for task in range(n_tasks))
    centers = np.array([center for center, _ in found])
    alone_lines = [line for _, line in found]
    alone_slopes = np.array([line.slope for line in alone_lines])
    mean, spread = pool_slopes(alone_slopes, np.array([line.slope_error for line in alone_lines]))

    def together(task: int) -> LogisticLine:
        positives = positive(task)
        values = np.asarray(evidence(task), dtype=np.float64) - centers[task]
        line = fit_line(values, positives, slope_mean=mean, slope_spread=spread, start=alone_lines[task])
        if line.slope >= 0:
            return line
        # Evidence against its own direction is noise: the task falls back to its base rate.
        share = float(positives.mean())
        return LogisticLine(float(np.log(share / (1 - share))), 0.0, line.slope_error)

    lines = list(in_threads(joblib.delayed(together)(task) for task in range(n_tasks)))
    return Calibration(centers, np.array([line.intercept for line in lines]), np.array([line.slope for line in lines]))
