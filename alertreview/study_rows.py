"""What goes into a study and what comes out for reports: chosen cases, votes, cases with scores, progress."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from core.vocabulary import Answer, CaseState, Certainty, Decision, Kind, SlotState


@dataclass(frozen=True)
class ScorerSays:
    """What one scorer says of a case; higher scores are more unusual."""

    score: float
    scaled_score: float
    soft_label: float | None = None
    support: float | None = None


@dataclass(frozen=True, kw_only=True)
class ChosenCase:
    """An instance x task chosen for judgment."""

    row_index: int
    """Row of the instance in the arrays of the run's import."""
    task_key: str
    decision: Decision
    stratum: str
    stratum_size: int
    """How many candidates the stratum had."""
    inclusion_probability: float
    """In (0, 1]: the chance that the design gave this case."""
    scores: Mapping[str, ScorerSays] = field(default_factory=dict)
    """By name of the scorer."""
    repeat_number: int = 0
    """1, 2, ... for a hidden second showing of a case to its own readers."""
    reference: tuple[Answer, str] | None = None
    """Answer and comment that a calibration study shows after the own judgment."""


@dataclass(frozen=True, kw_only=True)
class Vote:
    """A reader's current judgment of a case."""

    case_id: int
    case_number: int
    repeat_number: int
    reviewer_id: int
    reader_code: str
    """ "R1": stands for the name."""
    version: int
    answer: Answer
    certainty: Certainty | None
    comment: str
    reason: str
    judged_at: datetime
    """In the site's zone."""
    active_seconds: float | None
    saw_score_before: bool
    rubric_version: int


@dataclass(frozen=True, kw_only=True)
class CaseForReport:
    """A case with how it was chosen, what scorers say and where it stands."""

    case_id: int
    case_number: int
    row_index: int
    patient_id: str
    snapshot_at: datetime
    """In the site's zone."""
    task_key: str
    task_name: str
    kind: Kind
    decision: Decision
    unit: str
    stratum: str
    stratum_size: int
    inclusion_probability: float
    state: CaseState
    n_slots: int
    scores: dict[str, ScorerSays]
    adjudicated: Answer | None = None


@dataclass(frozen=True)
class ReaderProgress:
    """How far a reader has come; names and answers stay out of it."""

    person_id: int
    reader_code: str
    name: str
    states: dict[SlotState, int]
    """Of the slots the reader holds."""


@dataclass(frozen=True)
class StudyProgress:
    """How far a study has come; the states add up to the numbers of cases and slots."""

    n_cases: int
    n_complete: int
    case_states: dict[CaseState, int]
    n_slots: int
    slot_states: dict[SlotState, int]
    readers: tuple[ReaderProgress, ...]
