"""A whole study with known truth: many candidates of few patients, cases chosen by score, a simulated panel.

For the coverage benchmark, the planner's documentation and tests. Patients differ both in how sick they are (their
decisions are more often unusual) and in how high they score, so cases of one patient are alike.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special

from core.errors import InvalidInputError
from core.kinds import Kind
from core.studies.report_input import StudyInput
from core.studies.selection import AS_IN_THE_PAPER, Selection, SelectionDesign, choose_cases
from core.vocabulary import Answer, Decision


@dataclass(frozen=True)
class SimulatedPanel:
    """How the simulated readers behave.

    Parameters
    ----------
    n_readers : int
    error_rate : float
        Chance that a reader misses a relevant case.
        The default gives Fleiss' kappa of about .3 when a fifth of the cases is relevant.
    usual_error : float
        Chance that a usual case is called relevant, as a share of `error_rate`.
    unusual_error : float
        Chance that an unusual but irrelevant case is called relevant, as a share of `error_rate`.
    cannot_judge_rate : float
        Chance of "cannot judge".
    leniency_spread : float
        Readers' own error rates lie between (1 - spread) and (1 + spread) times the stated one, evenly.
    unusual_from : float
        True anomaly score from which an unplanted decision is truly unusual.
    relevant_from : float
        True anomaly score from which a planted decision is truly relevant; below, it went unnoticed.
    """

    n_readers: int = 3
    error_rate: float = 0.25
    usual_error: float = 0.5
    unusual_error: float = 1.0
    cannot_judge_rate: float = 0.03
    leniency_spread: float = 0.3
    unusual_from: float = 0.7
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
    """What the panel answered.

    Attributes
    ----------
    answers : ndarray of shape (n_cases, n_readers), int
        Codes of `core.vocabulary.Answer`.
    truth : ndarray of shape (n_cases,), int
        What an errorless reader would answer.
    is_certain : ndarray of shape (n_cases, n_readers), bool
    active_seconds : ndarray of shape (n_cases, n_readers)
        Reading times, log-normal around a minute and a half.
    """

    answers: NDArray[np.int64]
    truth: NDArray[np.int64]
    is_certain: NDArray[np.bool_]
    active_seconds: NDArray[np.float64]


def simulate_votes(
    is_planted: ArrayLike, true_anomaly: ArrayLike, panel: SimulatedPanel | None = None, *, seed: int = 0
) -> SimulatedVotes:
    """Let a panel of simulated readers judge cases whose truth is known.

    Parameters
    ----------
    is_planted : array-like of shape (n_cases,), bool
        Whether the decision was planted as unusual.
    true_anomaly : array-like of shape (n_cases,)
        True anomaly score of the decision, in [0, 1]: one minus its probability given the patient's state.
    panel : SimulatedPanel, optional
    seed : int

    Returns
    -------
    SimulatedVotes
        The same for the same cases, panel and seed.

    Raises
    ------
    InvalidInputError
        If lengths differ or a true anomaly score lies outside [0, 1].
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

    Relevance rises steeply with how unusual a decision is, but is not the same: some unusual decisions do not matter,
    and physicians question a few usual ones, because they judge by more than the habits of their hospital. No detector
    of unusual decisions can find the latter.

    Parameters
    ----------
    true_anomaly : array-like of shape (n,)
        One minus the decision's probability given the patient's state, in [0, 1].
    is_planted : array-like of shape (n,), bool
    seed : int

    Returns
    -------
    ndarray of shape (n,), bool
    """
    anomaly = np.asarray(true_anomaly, dtype=np.float64)
    chance = USUAL_IS_RELEVANT + (ODD_IS_RELEVANT - USUAL_IS_RELEVANT) * anomaly**4
    chance = np.where(np.asarray(is_planted, dtype=bool), PLANTED_IS_RELEVANT, chance)
    # A stream of its own, beside that of the readers with the same seed.
    return np.asarray(np.random.default_rng([seed, 3]).random(anomaly.shape) < chance)


@dataclass(frozen=True)
class SimulatedCandidates:
    """Scored decisions with known truth.

    Attributes
    ----------
    patient : ndarray of shape (n,), int
    is_relevant : ndarray of shape (n,), bool
    score : ndarray of shape (n,)
        Scaled score in (0, 1).
    other_score : ndarray of shape (n,)
        A weaker scorer's.
    """

    patient: NDArray[np.int64]
    is_relevant: NDArray[np.bool_]
    score: NDArray[np.float64]
    other_score: NDArray[np.float64]


def simulate_candidates(
    n_patients: int,
    n_per_patient: int,
    rng: np.random.Generator,
    *,
    clustering: float = 0.2,
    separation: float = 1.2,
    relevant_share: float = 0.16,
) -> SimulatedCandidates:
    """Draw candidates.

    Parameters
    ----------
    n_patients, n_per_patient : int
    rng : Generator
    clustering : float
        Share of the variance, of severity and of score, that lies between patients, in [0, 1).
    separation : float
        Distance between the scores of relevant and other decisions, in standard deviations.
    relevant_share : float
        Expected share of relevant decisions.

    Returns
    -------
    SimulatedCandidates
    """
    n = n_patients * n_per_patient
    patient = np.repeat(np.arange(n_patients), n_per_patient)

    def shared_noise() -> NDArray[np.float64]:
        between = rng.normal(size=n_patients)[patient] * np.sqrt(clustering)
        noise: NDArray[np.float64] = between + rng.normal(size=n) * np.sqrt(1.0 - clustering)
        return noise

    limit = -float(special.ndtri(relevant_share))
    relevant = shared_noise() > limit
    raw = separation * relevant + shared_noise()
    other = 0.5 * separation * relevant + 0.6 * (raw - separation * relevant) + 0.8 * rng.normal(size=n)
    return SimulatedCandidates(patient, relevant, _squash(raw), _squash(other))


def _squash(raw: NDArray[np.float64]) -> NDArray[np.float64]:
    scaled: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-(raw - 0.5)))
    return scaled


def simulate_study(
    *,
    seed: int = 0,
    n_patients: int = 60,
    n_per_patient: int = 60,
    design: SelectionDesign = AS_IN_THE_PAPER,
    panel: SimulatedPanel | None = None,
    locked: bool = True,
) -> StudyInput:
    """Make a complete study of the paper's design, with simulated readers.

    Parameters
    ----------
    seed : int
    n_patients, n_per_patient : int
        Patients and candidates of each.
    design : SelectionDesign
    panel : SimulatedPanel, optional
    locked : bool

    Returns
    -------
    StudyInput
        Marked as simulated; the same for the same arguments.
    """
    rng = np.random.default_rng(seed)
    candidates = simulate_candidates(n_patients, n_per_patient, rng)
    is_commission = rng.random(candidates.patient.size) < 0.5
    chosen = choose_cases(candidates.score, candidates.patient, design, is_commission=is_commission)
    relevant = candidates.is_relevant[chosen.index]
    anomaly = np.where(relevant, rng.uniform(0.6, 1.0, relevant.size), rng.beta(1.0, 3.0, relevant.size))
    panel = SimulatedPanel(n_readers=design.n_readers) if panel is None else panel
    judged = simulate_votes(relevant, anomaly, panel, seed=seed)
    case_id = np.arange(1, relevant.size + 1)
    readers = [f"reader-{i + 1}" for i in range(panel.n_readers)]
    votes = pd.DataFrame(
        {
            "case_id": np.repeat(case_id, panel.n_readers),
            "reader": np.tile(readers, relevant.size),
            "answer": judged.answers.ravel(),
            "version": 1,
            "active_seconds": judged.active_seconds.ravel(),
        }
    )
    other = candidates.other_score[chosen.index]
    scores = pd.DataFrame({"case_id": case_id, "softhad": candidates.score[chosen.index], "weighted_knn": other})
    return StudyInput(
        slug="simulated",
        title="Simulated study",
        question="Is this decision unusual, and is that clinically relevant?",
        simulated=True,
        locked=locked,
        n_slots=design.n_readers,
        cases=_cases(candidates, chosen, is_commission[chosen.index], case_id, rng),
        votes=votes,
        scores=scores,
        scorer_labels={"softhad": "SoftHAD", "weighted_knn": "Weighted k-NN"},
        strata=[(s.name, s.n_population, s.n_chosen) for s in chosen.strata],
        n_instances=candidates.patient.size // 4,
        n_candidates=chosen.n_candidates,
        design={"selection seed": str(design.seed), "simulation seed": str(seed)},
    )


_TASKS = (
    ("LAB_ORDER/potassium", "Potassium", Kind.LAB_ORDER),
    ("LAB_ORDER/troponin", "Troponin", Kind.LAB_ORDER),
    ("MEDICATION/heparin", "Heparin", Kind.MEDICATION),
    ("MEDICATION/vancomycin", "Vancomycin", Kind.MEDICATION),
)


def _cases(
    candidates: SimulatedCandidates,
    chosen: Selection,
    is_commission: NDArray[np.bool_],
    case_id: NDArray[np.int64],
    rng: np.random.Generator,
) -> pd.DataFrame:
    patient = candidates.patient[chosen.index]
    task = [_TASKS[t] for t in rng.integers(0, len(_TASKS), case_id.size)]
    relevant = candidates.is_relevant[chosen.index]
    record = np.where(rng.random(relevant.size) < 0.8, relevant, ~relevant).astype(float)
    record[rng.random(relevant.size) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "case_id": case_id,
            "case_label": [f"A{i}" for i in case_id],
            "patient_id": [f"{p:06d}" for p in patient],
            "task_key": [t[0] for t in task],
            "task_name": [t[1] for t in task],
            "kind": [str(t[2]) for t in task],
            "decision": np.where(is_commission, str(Decision.COMMISSION), str(Decision.OMISSION)),
            "unit": np.array(["Medical ICU", "Surgical ICU", "Ward"])[patient % 3],
            "sex": np.array(["F", "M"])[patient % 2],
            "age_band": np.array(["18–44", "45–64", "65–79", "80+"])[patient % 4],
            "stratum": [chosen.strata[s].name for s in chosen.stratum],
            "inclusion_probability": chosen.inclusion_probability,
            "adjudicated_answer": np.nan,
            "record_reference": record,
        }
    )


RELEVANT_FROM = 0.9
"""The simulated readers find relevant what was planted, and what the hospital's own rule does once in ten at most."""
