"""Rows of studies, cases, slots and judgments."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from core.vocabulary import Answer, Certainty, Decision, Kind, SlotState, StudyStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStudy:
    """A study to be made."""

    slug: str
    title: str
    run_id: int
    n_slots: int
    order_seed: int
    hold_hours: float
    simulated: bool
    is_calibration: bool
    is_open_panel: bool = False
    selection_design: dict[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyRow(NewStudy):
    """A stored study."""

    id: int
    status: StudyStatus
    rubric_version: int
    opened_at: datetime | None
    locked_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricRow:
    """One version of question, guidelines and answer texts; keys of `answer_texts` are the answer codes as text."""

    study_id: int
    version: int
    question: str
    guidelines: str
    answer_texts: dict[str, str]
    created_at: datetime

    @property
    def answers(self) -> dict[Answer, str]:
        """Answers that the study offers, in the order of the page, with its own texts."""
        return {answer: self.answer_texts[answer.key] for answer in Answer if answer.key in self.answer_texts}


@dataclass(frozen=True, slots=True)
class ReaderRow:
    """A reader of a study."""

    person_id: int
    number: int
    name: str
    active: bool

    @property
    def code(self) -> str:
        """What stands for the name in exports and reports."""
        return f"R{self.number}"


class ReadingTerms(NamedTuple):
    """Somebody as a reader of a study, with what of the study matters to opening and judging."""

    study_id: int
    slug: str
    status: StudyStatus
    rubric_version: int
    order_seed: int
    hold_hours: float
    is_calibration: bool
    person_id: int
    number: int
    """1, 2, ... in the order of joining."""
    active: bool
    """Whether the person may still sign in."""
    all_units: bool
    """Whether the person may see every unit's patients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCase:
    """A case to be stored, with how it was chosen."""

    instance_id: int
    task_id: int
    patient_id: str
    snapshot_at: datetime
    task_key: str
    decision: Decision
    stratum: str
    stratum_size: int
    inclusion_probability: float
    repeat_number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRow(NewCase):
    """A stored case, for reports and coordinators; never for a blinded reader."""

    id: int
    study_id: int
    number: int
    task_name: str
    kind: Kind
    unit: str
    row_index: int


@dataclass(frozen=True, slots=True)
class CaseScoreRow:
    """What a scorer said of a case."""

    case_id: int
    scorer: str
    score: float
    scaled_score: float
    soft_label: float | None
    support: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindedRow:
    """All that the review page may load of a case: nothing of scores, selection or other readers."""

    case_id: int
    instance_id: int
    row_index: int
    snapshot_hash: str
    site_timezone: str
    task_key: str
    task_name: str
    kind: Kind
    decision: Decision
    sex: str
    age_years: float | None
    unit: str
    day_of_stay: int
    window_hours: float


@dataclass(frozen=True, slots=True)
class DraftRow:
    """What a reader has chosen and typed but not saved."""

    answer: Answer | None
    certainty: Certainty | None
    comment: str


class OwnAnswer(NamedTuple):
    """A reader's own highest version of a case; without answer it takes the former ones back."""

    version: int
    answer: Answer | None
    certainty: Certainty | None
    comment: str


class ShownRow(NamedTuple):
    """What the review page shows of a case, and what its reader has answered or begun to."""

    case: BlindedRow
    current: OwnAnswer | None
    draft: DraftRow | None


class ReaderSlotRow(NamedTuple):
    """One reader's place in one case, from that reader's own rows and whether a slot is to be had.

    A tuple, because hundreds are made whenever somebody opens a case.
    """

    case_id: int
    repeat_number: int
    original_id: int | None
    """The case that this one shows again; None when it is no repeat."""
    holds_slot: bool
    state: SlotState
    """`FREE` when the reader holds no slot."""
    held_until: datetime | None
    """When the reader's own hold lapses; None without a slot and after judging."""
    has_room: bool
    """Whether a slot is free or its hold has lapsed, not counting the reader's own."""


class PanelPlace(NamedTuple):
    """A case of an open panel in which a reader has a place or can get one."""

    study_id: int
    slug: str
    title: str
    case_id: int
    site_timezone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotRow:
    """One slot of one case, for coordinators' counts."""

    case_id: int
    repeat_number: int
    slot: int
    reviewer_id: int | None
    held_until: datetime | None
    state: SlotState
    answer: Answer | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJudgment:
    """A version to be appended."""

    case_id: int
    reviewer_id: int
    version: int
    answer: Answer | None
    """None takes the former versions back."""
    certainty: Certainty | None
    comment: str
    reason: str
    form_key: str
    judged_at: datetime
    active_seconds: float | None
    saw_score_before: bool
    rubric_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgmentVersion(NewJudgment):
    """A stored version."""

    id: int


class FormState(NamedTuple):
    """What the database knows of a form that is sent: who may send it, and what was saved before."""

    has_study: bool
    terms: ReadingTerms | None
    """None when there is no such study, or the person is no reader of it."""
    has_case: bool
    """Whether the case is one of the study's."""
    current: JudgmentVersion | None
    """The reader's own highest version of the case."""
    saved_for: tuple[int, int] | None
    """Case and reader of the version that this form was saved as; None when it was not."""
    score_was_seen: bool
    """The reader has seen the score or the votes of this decision."""


class SavedRow(NamedTuple):
    """What a form was saved as, and the time zone of the site that its case comes from."""

    case_id: int
    version: int
    answer: Answer | None
    judged_at: datetime
    site_timezone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteRow:
    """A reader's current judgment of a case, for reports and exports."""

    case_id: int
    case_number: int
    repeat_number: int
    reviewer_id: int
    reader_number: int
    version: int
    answer: Answer
    certainty: Certainty | None
    comment: str
    reason: str
    judged_at: datetime
    active_seconds: float | None
    saw_score_before: bool
    rubric_version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjudicationRow:
    """One version of the consensus on a case."""

    case_id: int
    version: int
    adjudicator_id: int
    answer: Answer
    comment: str
    reason: str
    form_key: str
    adjudicated_at: datetime
