"""What a coordinator's pages read and send: a study's plan and preview, and how readers agree with themselves."""

from dataclasses import dataclass, field

from alertreview.read_models import Histogram
from core.vocabulary import Decision

OWN_CHOICE = "own choice"


@dataclass(frozen=True)
class StudyPlan:
    """How the cases of a study are to be chosen.

    Parameters
    ----------
    scorer : str
        Whose scaled scores divide the strata: a scorer of the run, its first when empty.
    n_cases, n_readers : int
        Cases in all; readers for each.
    edges : tuple of float
        Scaled scores that divide the strata, rising.
    balance_decisions : bool
        Whether omissions and commissions get half of each stratum each.
    n_repeats : int
        Cases that are shown twice to their readers without a word, for the agreement of readers with themselves.
    seed : int
        Of the choice and of the readers' orders.
    preset : str
        What reports call the design.
    """

    scorer: str = ""
    n_cases: int = 222
    n_readers: int = 3
    edges: tuple[float, ...] = (1.0 / 3.0, 2.0 / 3.0)
    balance_decisions: bool = False
    n_repeats: int = 0
    seed: int = 1
    preset: str = OWN_CHOICE


PRESETS = (
    StudyPlan(preset="as in the paper"),
    StudyPlan(balance_decisions=True, preset="as in the paper, as many omissions as commissions"),
    StudyPlan(n_cases=30, balance_decisions=True, preset="pilot of 30 cases"),
    StudyPlan(n_cases=222, edges=(0.5, 0.8, 0.95), n_repeats=12, preset="four strata, finer at the top"),
)
"""Designs with a name; the first is the method paper's: 222 cases of low, middle and high scores, three readers."""


@dataclass(frozen=True)
class StratumPreview:
    """One stratum as it would be drawn from."""

    name: str
    low: float
    """Scaled score from which on; minus infinity for the lowest."""
    high: float
    """Scaled score below which; infinity for the highest."""
    decision: Decision | None
    n_candidates: int
    n_chosen: int
    inclusion_probability: float
    """Chance of each candidate of the stratum; 0 for an empty one."""


@dataclass(frozen=True)
class PlanPreview:
    """What a plan would choose, before anything is stored."""

    run_id: int
    scorer: str
    candidates: Histogram
    """Scaled scores of every decision that can be chosen."""
    strata: tuple[StratumPreview, ...]
    n_candidates: int
    n_chosen: int
    n_patients: int
    """Patients behind the chosen cases."""
    left_out: dict[str, int]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Rubric:
    """What readers are asked and told; answer texts by code."""

    question: str
    answer_texts: dict[int, str]
    guidelines: str = ""


@dataclass(frozen=True)
class StudyPaper:
    """What a coordinator wrote for a study, as of its current rubric version, and how it was chosen."""

    slug: str
    rubric: Rubric
    rubric_version: int
    run_id: int
    order_seed: int
    design: dict[str, object]
    reader_ids: tuple[int, ...]
    n_repeats: int
    """Hidden second showings, which count nowhere but in the agreement of readers with themselves."""
    is_calibration: bool
    history: tuple[str, ...] = field(default=())
    """Sentences about opening, locking and reopening, oldest first, with who and why."""


@dataclass(frozen=True)
class SelfAgreement:
    """How often a reader gave the same answer to the same case twice; never a vote, never in an AUC."""

    reader_code: str
    n_pairs: int
    n_same: int
