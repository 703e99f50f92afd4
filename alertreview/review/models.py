"""What pages read: frozen answers of the application, without database objects; see `alertreview.alerts.models`."""

from dataclasses import dataclass
from datetime import datetime

from alertreview.alerts.models import CaseView
from core.kinds import Kind
from core.vocabulary import Answer, CaseId, Certainty, Decision, SlotState


@dataclass(frozen=True)
class QueueView:
    """One reviewer's place in a study."""

    n_mine: int  # cases that are or may become this reviewer's: held, or with a free slot
    n_submitted: int
    n_later: int
    n_left: int
    states: dict[SlotState, int]
    is_reader: bool = True
    """False when a coordinator has not made this person a reader of the study: nothing is assigned."""
    n_held_by_others: int = 0  # cases that others hold and have not judged; they come back when the hold lapses
    next_release_at: datetime | None = None  # when the first of those holds lapses


@dataclass(frozen=True)
class DraftView:
    """What a reviewer has chosen and typed but not saved."""

    answer: Answer | None
    certainty: Certainty | None
    comment: str


@dataclass(frozen=True)
class BlindedCase:
    """A case as a blinded reviewer sees it: it has no field for score, rank, stratum or anybody else's answer."""

    study_slug: str
    case_id: CaseId
    case_label: str  # "A17": the reviewer's own numbering
    position: int
    n_cases: int
    task_name: str
    kind: Kind
    decision: Decision
    decision_words: str  # "Troponin I not ordered"
    sex: str
    age_years: float | None
    unit: str
    day_of_stay: int
    patient: CaseView
    draft: DraftView
    version_seen: int
    """Number of the reviewer's current judgment of this case, 0 when there is none; sent back when saving."""
    form_key: str  # idempotency key of this showing of the form
    is_judged: bool = False
    """The reader has an answer that stands; changing it needs a reason. False again once it was taken back."""
    gives_feedback: bool = False
    """The study is for training: the reference answer is shown once the reader has judged the case."""


@dataclass(frozen=True)
class SavedJudgment:
    """What was read back from the database after the commit."""

    case_id: CaseId
    version: int
    answer: Answer
    saved_at: datetime
    already_saved: bool  # True when the same form had been saved before and nothing was written again


@dataclass(frozen=True)
class JudgmentRow:
    """One of a reviewer's own current judgments."""

    study_slug: str
    case_id: CaseId
    case_label: str
    decision_words: str
    answer: Answer
    certainty: Certainty | None
    comment: str
    saved_at: datetime
    version: int
