"""Heavily regularised logistic regression with every patient's own days left out in closed form."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from core.validation import FloatArray, IntArray

_MAX_STEPS = 30


@dataclass(frozen=True)
class RidgeLogistic:
    """Fitted logistic regression: log odds = intercept + x coefficients."""

    coefficients: FloatArray  # shape (n_features,)
    intercept: float
    # Shape (n_past,): log odds of each past instance by the fit without its group: one Newton step from the full fit,
    # exact for a quadratic loss and close for a heavily regularised one.
    left_out_log_odds: FloatArray

    def log_odds(self, X: Any) -> FloatArray:
        """Log odds of y = +1 for the rows of `X`; in double precision, so that other rows change nothing."""
        return np.asarray(X.astype(np.float64) @ self.coefficients + self.intercept)


def fit_ridge_logistic(X: Any, positive: FloatArray, strength: float, groups: IntArray) -> RidgeLogistic:
    """Minimise strength * mean(log loss) + |coefficients|^2 / 2 by Newton's method; the intercept is free.

    float32 features are enough and halve the time; `positive` is 1.0 where the decision was taken, both must occur; the
    strength is C n in scikit-learn's terms; groups are patients, left out as a whole for their own instances.
    """
    n, n_features = X.shape
    factor = strength / n
    share = float(positive.mean())
    theta = np.zeros(n_features + 1)
    theta[-1] = np.log(share / (1 - share))
    penalty = np.ones(n_features + 1)
    penalty[-1] = 0.0

    def loss_at(parameters: FloatArray) -> tuple[float, FloatArray]:
        z = np.asarray(X @ parameters[:-1].astype(X.dtype), dtype=np.float64) + parameters[-1]
        value = factor * float(np.logaddexp(0, z).sum() - positive @ z) + 0.5 * float(penalty @ parameters**2)
        return value, z

    loss, z = loss_at(theta)
    for _ in range(_MAX_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(z, -500, 500)))
        residual = chance - positive
        gradient = factor * np.r_[np.asarray(X.T @ residual.astype(X.dtype), dtype=np.float64), residual.sum()]
        gradient += penalty * theta
        hessian = _hessian(X, factor * chance * (1 - chance))
        step = np.linalg.solve(hessian, gradient)
        for halving in range(20):
            trial = theta - step / 2**halving
            trial_loss, trial_z = loss_at(trial)
            if trial_loss <= loss + 1e-9 * abs(loss):
                break
        decrease = loss - trial_loss
        theta, loss, z = trial, trial_loss, trial_z
        if decrease <= 1e-7 * abs(loss):
            break
    return RidgeLogistic(theta[:-1], float(theta[-1]), _left_out(X, z, positive, factor, groups))


def _hessian(X: Any, weight: FloatArray) -> FloatArray:
    n_features = X.shape[1]
    weighted = X * weight[:, None].astype(X.dtype)
    hessian = np.empty((n_features + 1, n_features + 1))
    hessian[:-1, :-1] = weighted.T @ X
    hessian[-1, :-1] = hessian[:-1, -1] = weighted.sum(axis=0, dtype=np.float64)
    hessian[-1, -1] = weight.sum() + 1e-12
    hessian[np.arange(n_features), np.arange(n_features)] += 1.0
    return hessian


def _left_out(X: Any, z: FloatArray, positive: FloatArray, factor: float, groups: IntArray) -> FloatArray:
    """Return z_P + K (I - W K)^-1 (p - t) on each group P, K = factor X_P H^-1 X_P' (one size at a time)."""
    chance = 1 / (1 + np.exp(-np.clip(z, -500, 500)))
    weight, residual = chance * (1 - chance), chance - positive
    half = np.linalg.cholesky(np.linalg.inv(_hessian(X, factor * weight))).astype(X.dtype)
    rotated = X @ half[:-1] + half[-1]
    order = np.argsort(groups, kind="stable")
    _, starts, sizes = np.unique(groups[order], return_index=True, return_counts=True)
    left_out = np.empty(len(z))
    for size in np.unique(sizes):
        members = order[starts[sizes == size][:, None] + np.arange(size)]
        # Bound the stacked matrices to a few megabytes.
        for part in np.array_split(members, max(1, members.size * (size + rotated.shape[1]) // 2_000_000)):
            if len(part) == 0:
                continue
            block = rotated[part]
            kernel = factor * np.asarray(block @ block.transpose(0, 2, 1), dtype=np.float64)
            system = np.eye(size) - weight[part][:, :, None] * kernel
            solved = np.linalg.solve(system, residual[part][:, :, None])
            left_out[part] = z[part] + (kernel @ solved)[:, :, 0]
    return left_out
