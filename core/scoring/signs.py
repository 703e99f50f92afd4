"""What single signs tell of a task beyond what is expected already: that a drug is on whose level is to be measured.

A graph of the whole state flattens strong, rare evidence. For each task, the few signs whose evidence is beyond chance
enter a ridge logistic regression whose offset is what is expected. Its coefficients are not shrunk towards those of
other tasks. A drug that shares the lab's name needs no such evidence: it counts before any data, which then correct it.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from core.validation import FloatArray, IntArray

N_SIGNS: Final = 10
"""Of a task, at most."""
SMALLEST_SCORE: Final = 3.0
"""Standard errors from no effect. Without such a threshold the noise of 30 signs costs 4 points of td."""
FEWEST_PATIENTS: Final = 5
"""With a sign, for it to count."""
NAMED_EFFECT: Final = 1.5
"""Log odds that a drug of the lab's name adds before any data."""
NAMED_RIDGE: Final = 0.5
"""Of what the data change in that."""
_STEPS: Final = 4
_NAMED_STEPS: Final = 8
_LARGEST_STEP: Final = 2.0


@dataclass(frozen=True)
class SignEffects:
    """Chosen signs of each task, and what they add to its log odds.

    Parameters
    ----------
    signs : int32 array of shape (n_tasks, N_SIGNS)
        Columns of the matrix of signs.
    effects : float32 array of shape (n_tasks, N_SIGNS)
        0 fills up.
    """

    signs: NDArray[np.int32]
    effects: NDArray[np.float32]

    def of_task(self, signs: sparse.csr_array, task: int) -> FloatArray:
        """Return what the signs of instances add to the log odds of a task; shape (n,)."""
        weights = np.zeros(signs.shape[1])
        chosen = self.effects[task] != 0
        weights[self.signs[task][chosen]] = self.effects[task][chosen]
        return np.asarray(signs @ weights)


def named_flags(signs: sparse.csr_array, named: NDArray[np.int32], n_tasks: int) -> sparse.csc_array:
    """Return where a drug that shares the name of a task's lab is on or was given; shape (n, n_tasks).

    Parameters
    ----------
    signs : csr_array of shape (n, n_signs)
    named : int array of shape (n_named, 2)
        As in `core.cohort.feature_roles.FeatureRoles`.
    n_tasks : int
    """
    of_task = (np.ones(len(named)), (named[:, 1], named[:, 0]))
    found = sparse.csc_array(signs @ sparse.csr_array(of_task, shape=(signs.shape[1], n_tasks)))
    found.data = np.ones_like(found.data)
    return found


def fit_named(positive: NDArray[np.bool_], log_odds: NDArray[Any], weights: FloatArray) -> float:
    """Return the log odds that a drug of the lab's name adds, from the days on which it is there, by Newton's method.

    The penalty is `NAMED_RIDGE` / 2 times the squared difference from `NAMED_EFFECT`, the result without any days.

    Parameters
    ----------
    positive, log_odds, weights : arrays of shape (n,)
        Decisions, offset, and weight of each such instance.
    """
    effect, offset = NAMED_EFFECT, log_odds.astype(np.float64)
    for _ in range(_NAMED_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(offset + effect, -500, 500)))
        gradient = float(weights @ (positive - chance)) - NAMED_RIDGE * (effect - NAMED_EFFECT)
        curvature = float(weights @ (chance * (1 - chance))) + NAMED_RIDGE
        effect += float(np.clip(gradient / curvature, -_LARGEST_STEP, _LARGEST_STEP))
    return effect


def patient_weights(groups: IntArray) -> FloatArray:
    """Return 1 / sqrt(days of the patient) for each instance, so that a long stay counts less than many patients."""
    _, place, days = np.unique(groups, return_inverse=True, return_counts=True)
    return np.asarray(1 / np.sqrt(days[place]))


def count_patients(signs: sparse.csr_array, groups: IntArray) -> IntArray:
    """Return how many patients have each sign on some day."""
    entries = sparse.coo_array(signs)
    there = np.unique(np.column_stack((groups[entries.row], entries.col))[entries.data != 0], axis=0)
    return np.bincount(there[:, 1], minlength=signs.shape[1])


def score_signs(
    signs: sparse.csr_array, positive: NDArray[np.bool_], log_odds: NDArray[Any], weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return slope and curvature of the weighted log likelihood at no effect, of shape (n_signs, n_tasks)."""
    chance = 1 / (1 + np.exp(-np.clip(log_odds.astype(np.float64), -500, 500)))
    turned = sparse.csr_array(signs.T)
    slope = turned @ ((positive - chance) * weights[:, None])
    return slope, turned @ (chance * (1 - chance) * weights[:, None])


def fit_signs(
    signs: sparse.csc_array,
    positive: NDArray[np.bool_],
    log_odds: NDArray[Any],
    weights: FloatArray,
    slope: FloatArray,
    curvature: FloatArray,
    n_patients: IntArray,
    ridge: float,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Choose the signs of one task by their score, slope / sqrt(curvature + ridge), and fit them by Newton's method.

    Parameters
    ----------
    signs : csc_array of shape (n, n_signs)
        1.0 where a sign is there.
    positive, log_odds, weights : arrays of shape (n,)
        Decisions, offset, and weight of each instance.
    slope, curvature : float arrays of shape (n_signs,)
        From `score_signs`.
    n_patients : int array of shape (n_signs,)
        From `count_patients`.
    ridge : float
        Half of it times the squared effects is added to the loss.

    Returns
    -------
    signs : int32 array of shape (N_SIGNS,)
    effects : float32 array of shape (N_SIGNS,)
        0 fills up.
    """
    score = np.where(n_patients >= FEWEST_PATIENTS, np.abs(slope) / np.sqrt(curvature + ridge), 0.0)
    chosen = np.argsort(-score, kind="stable")[:N_SIGNS]
    chosen = chosen[score[chosen] > SMALLEST_SCORE]
    found, added = np.zeros(N_SIGNS, dtype=np.int32), np.zeros(N_SIGNS, dtype=np.float32)
    if len(chosen) == 0:
        return found, added
    X = signs[:, chosen].toarray()
    effects = np.zeros(len(chosen))
    offset, y = log_odds.astype(np.float64), positive.astype(np.float64)
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(offset + X @ effects, -500, 500)))
        gradient = X.T @ ((y - chance) * weights) - ridge * effects
        hessian = (X * (chance * (1 - chance) * weights)[:, None]).T @ X + ridge * np.eye(len(chosen))
        effects += np.linalg.solve(hessian, gradient)
    found[: len(chosen)], added[: len(chosen)] = chosen, effects
    return found, added
