"""Simulated readers with known truth, and which decisions of a simulated hospital are relevant."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import InvalidInputError
from core.vocabulary import Answer


@dataclass(frozen=True)
class SimulatedPanel:
    """How the simulated readers behave."""

    n_readers: int = 3
    # Chance that a reader misses a relevant case. The default gives Fleiss' kappa of about .3 when a fifth of the cases
    # is relevant.
    error_rate: float = 0.25
    usual_error: float = 0.5  # chance that a usual case is called relevant, as a share of `error_rate`
    # Chance that an unusual but irrelevant case is called relevant, as a share of `error_rate`.
    unusual_error: float = 1.0
    cannot_judge_rate: float = 0.03  # chance of "cannot judge"
    # Readers' own error rates lie between (1 - spread) and (1 + spread) times the stated one, evenly.
    leniency_spread: float = 0.3
    unusual_from: float = 0.7  # True anomaly score from which an unplanted decision is truly unusual
    # True anomaly score from which a planted decision is truly relevant; below, it went unnoticed.
    relevant_from: float = 0.5

    def __post_init__(self) -> None:
        worst = self.error_rate * (1.0 + self.leniency_spread)
        if not 0.0 <= self.error_rate <= worst <= 0.5 or not 0.0 <= self.cannot_judge_rate < 1.0 or self.n_readers < 1:
            raise InvalidInputError(
                f"Simulated readers with error rate {self.error_rate}, spread {self.leniency_spread} and cannot-judge "
                f"rate {self.cannot_judge_rate} are no readers; no error rate may exceed one half."
            )


@dataclass(frozen=True)
class SimulatedVotes:
    """What the panel answered."""

    answers: NDArray[np.int64]  # shape (n_cases, n_readers): codes of `core.vocabulary.Answer`
    truth: NDArray[np.int64]  # shape (n_cases,): what an errorless reader would answer
    is_certain: NDArray[np.bool_]  # shape (n_cases, n_readers)
    # Shape (n_cases, n_readers): reading times, log-normal around a minute and a half.
    active_seconds: NDArray[np.float64]


def simulate_votes(
    is_planted: ArrayLike, true_anomaly: ArrayLike, panel: SimulatedPanel | None = None, *, seed: int = 0
) -> SimulatedVotes:
    """Let a panel of simulated readers judge cases whose truth is known; the same for the same cases, panel and seed.

    The truth is whether the decision was planted as unusual, and its true anomaly score, one minus its probability
    given the patient's state. Raise InvalidInputError if lengths differ or such a score lies outside [0, 1].
    """
    panel = SimulatedPanel() if panel is None else panel
    planted, anomaly = np.asarray(is_planted, dtype=bool), np.asarray(true_anomaly, dtype=np.float64)
    if planted.shape != anomaly.shape or planted.ndim != 1:
        raise InvalidInputError(f"{planted.shape} planted marks, {anomaly.shape} true scores; give one for each case.")
    if not ((anomaly >= 0.0) & (anomaly <= 1.0)).all():
        raise InvalidInputError("A true anomaly score lies outside [0, 1]; give one minus the decision's probability.")
    rng = np.random.default_rng(seed)
    truth = np.where(anomaly >= panel.unusual_from, int(Answer.UNUSUAL), int(Answer.USUAL))
    truth[planted & (anomaly >= panel.relevant_from)] = int(Answer.RELEVANT)
    shape = (planted.size, panel.n_readers)
    error = panel.error_rate * (1.0 + panel.leniency_spread * np.linspace(-1.0, 1.0, panel.n_readers))
    if panel.n_readers == 1:
        error = np.array([panel.error_rate])
    relevant = np.select([truth == 3, truth == 2], [1.0, panel.unusual_error], panel.usual_error)[:, None] * error
    relevant = np.where((truth == 3)[:, None], 1.0 - relevant, relevant)
    # Among the votes that are not "relevant", seven in ten follow the truth on usual or unusual.
    unusual = np.where(truth >= 2, 0.7, 0.3 * (panel.error_rate > 0.0))[:, None]
    if panel.error_rate == 0.0:
        unusual = (truth == 2).astype(np.float64)[:, None]
    first, second = rng.random(shape), rng.random(shape)
    answers = np.where(first < relevant, 3, np.where(second < unusual, 2, 1)).astype(np.int64)
    answers[rng.random(shape) < panel.cannot_judge_rate] = int(Answer.CANNOT_JUDGE)
    is_certain = rng.random(shape) < np.where(answers == truth[:, None], 0.8, 0.5)
    seconds: NDArray[np.float64] = np.round(np.exp(rng.normal(np.log(90.0), 0.5, shape)), 1).astype(np.float64)
    return SimulatedVotes(answers, truth.astype(np.int64), is_certain, seconds)


USUAL_IS_RELEVANT, ODD_IS_RELEVANT, PLANTED_IS_RELEVANT = 0.02, 0.85, 0.9
"""Share of decisions that a physician finds relevant: wholly usual ones, wholly unusual ones, planted ones."""


def simulate_relevance(true_anomaly: ArrayLike, is_planted: ArrayLike, *, seed: int = 0) -> NDArray[np.bool_]:
    """Draw which decisions of a simulated hospital are truly relevant to a physician.

    Relevance rises steeply with how unusual a decision is, one minus its probability given the patient's state, but is
    not the same: some unusual decisions do not matter, and physicians question a few usual ones, because they judge by
    more than the habits of their hospital. No detector of unusual decisions can find the latter.
    """
    anomaly = np.asarray(true_anomaly, dtype=np.float64)
    chance = USUAL_IS_RELEVANT + (ODD_IS_RELEVANT - USUAL_IS_RELEVANT) * anomaly**4
    chance = np.where(np.asarray(is_planted, dtype=bool), PLANTED_IS_RELEVANT, chance)
    # A separate stream from that of the readers with the same seed.
    return np.asarray(np.random.default_rng([seed, 3]).random(anomaly.shape) < chance)


RELEVANT_FROM = 0.9
"""The simulated readers find relevant what was planted, and what the hospital's own rule does once in ten at most."""
