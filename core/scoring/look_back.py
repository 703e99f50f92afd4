"""What the other decisions of a window tell, once they are made: how busy the day was, and which of them came.

Retrospective evidence. From log odds found without the window, each decision leaves a residual. A task is explained by
the residuals of the others, its own order group never among them, in two ways whose log odds are averaged. Where nearly
everything is missing, that would explain the absence away: days in the lowest tail of what was done, and those on which
nothing else was done at all, are gated and keep the log odds that they had.
"""

from typing import Any, Final

import joblib
import numpy as np
from numpy.typing import NDArray

from core.kinds import Kind
from core.scoring.calibration import calibrate
from core.scoring.logistic import fit_ridge_logistic
from core.scoring.prepared import DayContext
from core.validation import FloatArray, IntArray

SMALLEST_VARIANCE: Final = 0.02
"""Of a decision, where its residual is divided by it."""
LARGEST_RESIDUAL: Final = 4.0
LARGEST_COUNT: Final = 6.0
RIDGE: Final = 0.3
"""Of the regression on all residuals, as a share of the number of past instances."""
STRENGTH: Final = 50.0
"""Of the logistic regressions on counts; see `fit_ridge_logistic`."""
GATE: Final = (0.05, 0.10)
"""Days below the first share of the past keep their log odds, those above the second are explained in full."""


def explain_by_window(
    log_odds: NDArray[np.float32],
    taken: NDArray[np.bool_],
    n_past: int,
    day: DayContext,
    groups: IntArray,
    part: IntArray,
    n_jobs: int | None = None,
) -> NDArray[np.float32]:
    """Return log odds that also know the window's other decisions; all arrays have shape (n_past + n_recent, n_tasks).

    Given are the log odds found without the window, and of past instances without their own patient, and the decisions
    of the windows, recent ones too. What is expected of a part of the patients that the past has is learned from the
    others.
    """
    chance: NDArray[Any] = 1 / (1 + np.exp(-np.clip(log_odds, -80, 80)))
    residuals, variances = taken - chance, chance * (1 - chance)
    counts = [_count(residuals, variances, day, kind) for kind in range(len(Kind)) if (day.kinds == kind).any()]
    whitened = residuals / np.sqrt(variances + np.float32(SMALLEST_VARIANCE))
    np.clip(whitened, -LARGEST_RESIDUAL, LARGEST_RESIDUAL, out=whitened)
    del variances
    soft_labels = 2 * chance - 1 + _regress(whitened, 2 * residuals, day.groups, n_past, part)
    positive = taken[:n_past]
    means = 2 * positive.mean(axis=0) - 1
    evidence = 2 * (soft_labels - means) / (1 - means**2)
    lines = calibrate(
        lambda task: evidence[:n_past, task].astype(np.float64),
        lambda task: positive[:, task].astype(np.float64),
        taken.shape[1],
        n_jobs,
    )
    found, n_taken = np.empty_like(log_odds), taken.sum(axis=1)

    def explain(task: int) -> None:
        X = np.column_stack((log_odds[:, task], *(count[:, task] for count in counts))).astype(np.float32)
        fit = fit_ridge_logistic(X[:n_past], positive[:, task].astype(np.float64), STRENGTH, groups[:n_past])
        by_counts = np.concatenate((fit.left_out_log_odds, fit.log_odds(X[n_past:])))
        explained = (by_counts + lines.log_odds(task, evidence[:, task])) / 2
        gate = gate_of_day(np.sum([np.minimum(count[:, task], 0) for count in counts], axis=0), n_past)
        gate[n_taken == taken[:, day.groups == day.groups[task]].sum(axis=1)] = 0.0
        found[:, task] = gate * explained + (1 - gate) * log_odds[:, task]

    joblib.Parallel(n_jobs=n_jobs, require="sharedmem")(joblib.delayed(explain)(task) for task in range(taken.shape[1]))
    return found


def gate_of_day(tail: FloatArray, n_past: int) -> FloatArray:
    """Return how far a day may be explained by what else was done, in [0, 1], from its place among the past.

    `tail`, of shape (n_past + n_recent,), is how far below expectation the other decisions were; 0 or less.
    """
    place = np.searchsorted(np.sort(tail[:n_past]), tail, side="right") / n_past
    return np.asarray(np.clip((place - GATE[0]) / (GATE[1] - GATE[0]), 0.0, 1.0))


def _count(residuals: NDArray[Any], variances: NDArray[Any], day: DayContext, kind: int) -> NDArray[Any]:
    """Return, for each task, the standardised sum of the residuals of a kind outside the task's order group."""
    outside = ((day.groups[:, None] != day.groups) & (day.kinds == kind)[:, None]).astype(np.float32)
    counts = (residuals @ outside) / np.sqrt(variances @ outside + 1)
    return np.asarray(np.clip(counts, -LARGEST_COUNT, LARGEST_COUNT))


def _regress(
    X: NDArray[Any], targets: NDArray[Any], order_groups: IntArray, n_past: int, part: IntArray
) -> NDArray[Any]:
    """Return ridge predictions of each task's targets from the columns of `X` outside its order group, by part."""
    found = np.empty_like(targets)
    for number in np.unique(part):
        learned = np.flatnonzero(part[:n_past] != number)
        coefficients = coefficients_outside(X[learned], targets[learned], order_groups, RIDGE * len(learned))
        rows = np.flatnonzero(part == number)
        found[rows] = X[rows] @ coefficients.astype(np.float32)
    return found


def coefficients_outside(X: NDArray[Any], targets: NDArray[Any], order_groups: IntArray, penalty: float) -> FloatArray:
    """Return ridge coefficients, (n_tasks, n_tasks), of each target on the columns outside its group; 0 on its group's.

    One inverse B of the whole system serves all: without group g, the solution is B r - B_g B_gg^-1 (B r)_g. Column t
    belongs to target t.
    """
    inverse = np.linalg.inv((X.T @ X).astype(np.float64) + penalty * np.eye(X.shape[1]))
    products = (X.T @ targets).astype(np.float64)
    found = np.zeros_like(inverse)
    for group in np.unique(order_groups):
        own, others = np.flatnonzero(order_groups == group), np.flatnonzero(order_groups != group)
        solved = inverse[:, others] @ products[np.ix_(others, own)]
        found[:, own] = solved - inverse[:, own] @ np.linalg.solve(inverse[np.ix_(own, own)], solved[own])
        found[np.ix_(own, own)] = 0.0
    return found
