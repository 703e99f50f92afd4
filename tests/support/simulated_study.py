"""A whole study with known truth: many candidates of few patients, cases chosen by score, a simulated panel.

Patients differ both in how sick they are (their decisions are more often unusual) and in how high they score, so cases
of one patient are alike.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import special

from core.kinds import Kind
from core.simulation.study import SimulatedPanel, simulate_votes
from core.statistics import candidate_figures
from core.studies.report_input import StudyInput
from core.studies.selection import AS_IN_THE_PAPER, Selection, SelectionDesign, choose_cases
from core.vocabulary import Decision


@pytest.fixture(scope="module", autouse=True)
def few_draws() -> Iterator[None]:
    """Draw fewer weights and bands, for tests to which it is all one how finely limits are drawn."""
    with pytest.MonkeyPatch.context() as fewer:
        of_all = candidate_figures.CandidateFigures
        fewer.setattr(candidate_figures, "CandidateFigures", functools.partial(of_all, n_draws=100))
        fewer.setattr("core.statistics.auc.N_RESAMPLES", 50)
        yield


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
