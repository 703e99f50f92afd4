"""What single signs tell of a task beyond what is expected already: that a drug is on whose level is to be measured.

A graph of the whole state flattens strong, rare evidence. For each task, the few signs whose evidence is beyond chance
enter a ridge logistic regression whose offset is what is expected. Its coefficients are not shrunk towards those of
other tasks. A drug that shares the lab's name needs no such evidence: it counts before any data, which then correct it.

The scorer averages the chances found here with those of its other members, which flatten the same evidence. Effects are
therefore fitted to the likelihood of that mean.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from core.validation import FloatArray, IntArray

N_SIGNS: Final = 10
"""Of a task, at most."""
SMALLEST_SCORE: Final = 2.9
"""Standard errors from no effect. Without such a threshold the noise of 30 signs costs 4 points of td."""
STRONG_EFFECT: Final = 1.0
"""Log odds beyond which the penalty of an effect grows like their logarithm: strong evidence is penalised less."""
FEWEST_PATIENTS: Final = 5
"""With a sign, for it to count."""
NAMED_EFFECT: Final = 1.5
"""Log odds that a drug of the lab's name adds before any data."""
NAMED_RIDGE: Final = 0.5
"""Of what the data change in that."""
_STEPS: Final = 8
_NAMED_STEPS: Final = 12
_LARGEST_STEP: Final = 2.0
_SMALLEST_VARIANCE: Final = 1e-12


@dataclass(frozen=True)
class OtherMembers:
    """What the other members of the scorer expect, whose chances are averaged with those that signs are added to."""

    # Shape (n_past, n_tasks): of "taken", times the weights of the members, which add up to less than 1.
    chances: NDArray[Any]
    share: float  # the weight that is left

    def __getitem__(self, place: Any) -> "OtherMembers":
        return OtherMembers(self.chances[place], self.share)

    def slopes(
        self, log_odds: NDArray[Any], positive: NDArray[np.bool_], weights: NDArray[Any]
    ) -> tuple[FloatArray, FloatArray]:
        """Return slope and expected curvature of the weighted log likelihood of the mean chance, by the log odds."""
        own = 1 / (1 + np.exp(-np.clip(log_odds.astype(np.float64), -500, 500)))
        chance, moved = self.share * own + self.chances, self.share * own * (1 - own)
        relative = moved / np.maximum(chance * (1 - chance), _SMALLEST_VARIANCE) * weights
        return (positive - chance) * relative, moved * relative


@dataclass(frozen=True)
class SignEffects:
    """Chosen signs of each task, and what they add to its log odds."""

    signs: NDArray[np.int32]  # shape (n_tasks, N_SIGNS): columns of the matrix of signs
    effects: NDArray[np.float32]  # shape (n_tasks, N_SIGNS): 0 fills up

    def of_task(self, signs: sparse.csc_array, task: int) -> FloatArray:
        """Return what the signs of instances, 1.0 where one is there, add to the log odds of a task; shape (n,)."""
        found = np.zeros(signs.shape[0])
        for sign, effect in zip(self.signs[task], self.effects[task], strict=True):
            if effect:
                found[signs.indices[signs.indptr[sign] : signs.indptr[sign + 1]]] += effect
        return found


def named_flags(signs: sparse.csc_array, named: NDArray[np.int32], n_tasks: int) -> sparse.csc_array:
    """Return where a drug that shares the name of a task's lab is on or was given; shape (n, n_tasks).

    `named`, of shape (n_named, 2), is that of `core.cohort.feature_roles.FeatureRoles`.
    """
    of_task = (np.ones(len(named)), (named[:, 1], named[:, 0]))
    found = sparse.csc_array(signs @ sparse.csr_array(of_task, shape=(signs.shape[1], n_tasks)))
    found.data = np.ones_like(found.data)
    return found


def fit_named(positive: NDArray[np.bool_], log_odds: NDArray[Any], weights: FloatArray, others: OtherMembers) -> float:
    """Return the log odds that a drug of the lab's name adds, from the days on which it is there, by Fisher's scoring.

    The penalty is `NAMED_RIDGE` / 2 times the squared difference from `NAMED_EFFECT`, the result without any days. Log
    odds are an offset; arrays, and the chances of the others, have shape (n,).
    """
    effect, offset = NAMED_EFFECT, log_odds.astype(np.float64)
    for _ in range(_NAMED_STEPS):
        slope, curvature = (found.sum() for found in others.slopes(offset + effect, positive, weights))
        step = (slope - NAMED_RIDGE * (effect - NAMED_EFFECT)) / (curvature + NAMED_RIDGE)
        effect += float(np.clip(step, -_LARGEST_STEP, _LARGEST_STEP))
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
    signs: sparse.csr_array,
    positive: NDArray[np.bool_],
    log_odds: NDArray[Any],
    weights: FloatArray,
    others: OtherMembers,
) -> tuple[FloatArray, FloatArray]:
    """Return slope and curvature of the weighted log likelihood at no effect, of shape (n_signs, n_tasks)."""
    slope, curvature = others.slopes(log_odds, positive, weights[:, None])
    turned = sparse.csr_array(signs.T)
    return turned @ slope, turned @ curvature


def fit_signs(
    signs: sparse.csc_array,
    positive: NDArray[np.bool_],
    log_odds: NDArray[Any],
    weights: FloatArray,
    others: OtherMembers,
    slope: FloatArray,
    curvature: FloatArray,
    n_patients: IntArray,
    ridge: float,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Choose the signs of one task by their score, slope / sqrt(curvature + ridge), and fit them by Fisher's scoring.

    Signs, of shape (n, n_signs), are 1.0 where a sign is there; log odds are an offset; slope and curvature come from
    `score_signs`, numbers of patients from `count_patients`. The loss grows by ridge / 2 times log(1 + effect^2) for
    each sign, in units of `STRONG_EFFECT`: near 0 it is ridge regression's. Return the signs and their effects, of
    shape (N_SIGNS,); 0 fills up.
    """
    score = np.where(n_patients >= FEWEST_PATIENTS, np.abs(slope) / np.sqrt(curvature + ridge), 0.0)
    chosen = np.argsort(-score, kind="stable")[:N_SIGNS]
    chosen = chosen[score[chosen] > SMALLEST_SCORE]
    found, added = np.zeros(N_SIGNS, dtype=np.int32), np.zeros(N_SIGNS, dtype=np.float32)
    if len(chosen) == 0:
        return found, added
    X = signs[:, chosen].toarray()
    # Other instances pull at no effect.
    there = X.any(axis=1)
    X, positive, weights, others = X[there], positive[there], weights[there], others[there]
    effects, offset = np.zeros(len(chosen)), log_odds[there].astype(np.float64)
    for _ in range(_STEPS):
        gradient, curvatures = others.slopes(offset + X @ effects, positive, weights)
        pull = ridge / (1 + (effects / STRONG_EFFECT) ** 2)
        hessian = (X * curvatures[:, None]).T @ X + np.diag(pull)
        step = np.linalg.solve(hessian, X.T @ gradient - pull * effects)
        effects += np.clip(step, -_LARGEST_STEP, _LARGEST_STEP)
    found[: len(chosen)], added[: len(chosen)] = chosen, effects
    return found, added
