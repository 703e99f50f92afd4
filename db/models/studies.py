"""Tables of a study: its rules, rubric versions, readers, cases, the scores apart from them, and the slots."""

from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from core.kinds import Kind, KindWords, done_word
from core.vocabulary import (
    Answer,
    CaseId,
    Certainty,
    Decision,
    InstanceId,
    PersonId,
    RunId,
    SlotState,
    StudyId,
    StudyStatus,
    TaskId,
)
from db.models.base import UNSAVED, Column, JsonObject, Record, column


class Study(Record):
    """A campaign of judging chosen cases of one run by a fixed number of readers for each case."""

    __tablename__ = "study"
    __table_args__ = (sa.CheckConstraint("n_slots >= 1", name="some_slot"),)

    id: Column[StudyId] = column(primary_key=True, default=UNSAVED)
    slug: Column[str] = column(unique=True)
    """Short name, in commands and addresses."""
    title: Column[str]
    """Name for people."""
    run_id: Column[RunId] = column(sa.ForeignKey("scoring_run.id"))
    status: Column[StudyStatus] = column(default=StudyStatus.DRAFT)
    """Where the study stands."""
    rubric_version: Column[int] = column(default=1)
    """Version of the rubric that holds now."""
    n_slots: Column[int]
    """Readers each case needs."""
    order_seed: Column[int] = column(sa.BigInteger)
    """Seed of the order in which each reader meets the cases."""
    hold_hours: Column[float]
    """A case that was opened and not judged becomes free again after this time."""
    simulated: Column[bool]
    is_calibration: Column[bool]
    """For training with feedback; never enters a report."""
    is_open_panel: Column[bool] = column(server_default=sa.false(), default=False)
    """Readers may see the scores of its cases before they judge; false: they judge blindly."""
    selection_design: Column[JsonObject]
    """How cases were chosen: strata, sizes, seed."""
    created_at: Column[datetime]
    opened_at: Column[datetime | None] = column(default=None)
    """When readers could begin."""
    locked_at: Column[datetime | None] = column(default=None)
    """When it took no more judgments; empty while it does."""


class Rubric(Record):
    """One version of what readers are asked and told; answer codes stay, their texts may change."""

    __tablename__ = "rubric"

    study_id: Column[StudyId] = column(sa.ForeignKey("study.id"), primary_key=True)
    version: Column[int] = column(primary_key=True)
    question: Column[str]
    """What readers are asked."""
    guidelines: Column[str]
    """Instructions for readers, in Markdown."""
    answer_texts: Column[JsonObject]
    """Text of each answer, by its code."""
    created_at: Column[datetime]

    @property
    def answers(self) -> dict[Answer, str]:
        """Answers that the study offers, in the order of the page, with its own texts."""
        return {answer: self.answer_texts[answer.key] for answer in Answer if answer.key in self.answer_texts}


class StudyReader(Record):
    """Somebody who may take slots of a study, under a code that stands for the name in exports."""

    __tablename__ = "study_reader"
    __table_args__ = (sa.UniqueConstraint("study_id", "number"),)

    study_id: Column[StudyId] = column(sa.ForeignKey("study.id"), primary_key=True)
    person_id: Column[PersonId] = column(sa.ForeignKey("person.id"), primary_key=True)
    number: Column[int]
    """1, 2, ... in the order of joining: reader code "R1", letter "A" in case labels."""


class NamedReader(StudyReader):
    """A reader of a study with the person's name."""

    name: str
    active: bool

    @property
    def code(self) -> str:
        """What stands for the name in exports and reports."""
        return f"R{self.number}"


class ReadingTerms(NamedTuple):
    """Somebody as a reader of a study, with what of the study matters to opening and judging."""

    study_id: StudyId
    slug: str
    status: StudyStatus
    rubric_version: int
    order_seed: int
    hold_hours: float
    is_calibration: bool
    person_id: PersonId
    number: int
    """1, 2, ... in the order of joining."""
    active: bool
    """Whether the person may still sign in."""
    all_units: bool
    """Whether the person may see every unit's patients."""


class StudyCase(Record):
    """An instance x task chosen for judgment, with how it was chosen.

    Patient, time and task are written out, so that votes stay with them when a later import numbers rows again.
    """

    __tablename__ = "study_case"
    __table_args__ = (
        sa.UniqueConstraint("study_id", "number"),
        sa.UniqueConstraint("study_id", "instance_id", "task_id", "repeat_number"),
        sa.Index(None, "patient_id", "snapshot_at", "task_key"),
        sa.CheckConstraint("inclusion_probability > 0 AND inclusion_probability <= 1", name="probability"),
    )

    id: Column[CaseId] = column(primary_key=True, default=UNSAVED)
    study_id: Column[StudyId] = column(sa.ForeignKey("study.id"), default=UNSAVED)
    number: Column[int] = column(default=UNSAVED)
    """1, 2, ... within the study."""
    instance_id: Column[InstanceId] = column(sa.ForeignKey("instance.id"), index=True)
    task_id: Column[TaskId] = column(sa.ForeignKey("task.id"), index=True)
    repeat_number: Column[int] = column(default=0)
    """0 for a case; 1, 2, ... for a hidden repeat of it, which is not a vote."""
    patient_id: Column[str]
    snapshot_at: Column[datetime]
    task_key: Column[str]
    decision: Column[Decision]
    """Which way the alert points."""
    stratum: Column[str]
    """Range of scores it was chosen from."""
    stratum_size: Column[int]
    """Candidates in the stratum."""
    inclusion_probability: Column[float]
    """Chance with which it was chosen, above 0 to 1; its inverse is the weight."""


class ListedCase(StudyCase):
    """A case with its instance and task, for reports and coordinators; never for a blinded reader."""

    task_name: str
    kind: Kind
    unit: str
    row_index: int


class BlindedRow(Record):
    """All that the review page may load of a case: nothing of scores, selection or other readers."""

    case_id: CaseId
    instance_id: InstanceId
    row_index: int
    snapshot_hash: str
    site_timezone: str
    task_key: str
    task_name: str
    kind: Kind
    said: JsonObject | None
    """``words`` of `CohortSnapshot.import_summary`; None in imports of former versions."""
    decision: Decision
    sex: str
    age_years: float | None
    unit: str
    day_of_stay: int

    @property
    def words(self) -> KindWords:
        """Words of the decision."""
        return self.kind.worded(done_word(self.said, self.task_key))


class PanelSlot(NamedTuple):
    """A case of an open panel in which a reader has a slot or can get one."""

    study_id: StudyId
    slug: str
    title: str
    case_id: CaseId
    site_timezone: str


class CaseScore(Record):
    """The scores of a case: a separate table, which no query of the blinded review touches."""

    __tablename__ = "case_score"

    case_id: Column[CaseId] = column(sa.ForeignKey("study_case.id"), primary_key=True)
    scorer: Column[str] = column(primary_key=True)
    """Scorer whose score this is."""
    score: Column[float]
    """The scorer's anomaly score; higher = more unusual."""
    scaled_score: Column[float]
    """Score made comparable between tasks; higher = more unusual."""
    soft_label: Column[float | None] = column(default=None)
    """The decision that the past lets expect, from -1 (not done) to 1 (done)."""
    support: Column[float | None] = column(default=None)
    """How strongly the instance is tied to past ones, 0 to 1."""


class ReferenceAnswer(Record):
    """What a calibration study tells a reader after the own judgment: apart from the cases, as scores are."""

    __tablename__ = "reference_answer"

    case_id: Column[CaseId] = column(sa.ForeignKey("study_case.id"), primary_key=True)
    answer: Column[Answer]
    """Answer that a calibration study tells after the own judgment."""
    comment: Column[str]


class Assignment(Record):
    """A slot of a case and who holds it; the database allows one reader in a slot and one slot to a reader."""

    __tablename__ = "assignment"
    __table_args__ = (sa.UniqueConstraint("case_id", "reviewer_id"), sa.Index(None, "reviewer_id"))

    case_id: Column[CaseId] = column(sa.ForeignKey("study_case.id"), primary_key=True)
    slot: Column[int] = column(primary_key=True)
    """1, 2, ... up to the number of readers each case needs."""
    reviewer_id: Column[PersonId | None] = column(sa.ForeignKey("person.id"))
    held_until: Column[datetime | None]
    """When the hold lapses; null while free and for good once judged."""
    put_off_at: Column[datetime | None]
    """When the reader said "later"; null otherwise."""


class Slot(Record):
    """One slot of one case, for coordinators' counts."""

    case_id: CaseId
    repeat_number: int
    slot: int
    reviewer_id: PersonId | None
    held_until: datetime | None
    state: SlotState
    answer: Answer | None

    def is_claimable(self, now: datetime) -> bool:
        """Return whether nobody holds the slot, or the hold has lapsed; a judged slot has no end of hold."""
        return self.reviewer_id is None or (self.held_until is not None and self.held_until < now)


class ReaderSlot(NamedTuple):
    """One reader's slot in one case, from that reader's own rows and whether a slot is to be had.

    A tuple, because hundreds are made whenever somebody opens a case.
    """

    case_id: CaseId
    repeat_number: int
    original_id: CaseId | None
    """The case that this one shows again; None when it is no repeat."""
    holds_slot: bool
    state: SlotState
    """`FREE` when the reader holds no slot."""
    held_until: datetime | None
    """When the reader's own hold lapses; None without a slot and after judging."""
    has_room: bool
    """Whether a slot is free or its hold has lapsed, not counting the reader's own."""


class Draft(Record):
    """What a reader has chosen and typed but not saved; stays with its owner even when the hold lapses."""

    __tablename__ = "draft"

    case_id: Column[CaseId] = column(sa.ForeignKey("study_case.id"), primary_key=True)
    reviewer_id: Column[PersonId] = column(sa.ForeignKey("person.id"), primary_key=True, index=True)
    answer: Column[Answer | None]
    """Answer that is chosen and not saved."""
    certainty: Column[Certainty | None]
    """Certainty that is chosen and not saved."""
    comment: Column[str]
    written_at: Column[datetime]
    """When it was last changed."""


class DraftAnswer(NamedTuple):
    """What a reader has chosen and typed but not saved."""

    answer: Answer | None
    certainty: Certainty | None
    comment: str


class ScoreSeen(Record):
    """Who has seen the score or the votes of an instance x task; later judgments of it carry the mark."""

    __tablename__ = "score_seen"

    person_id: Column[PersonId] = column(sa.ForeignKey("person.id"), primary_key=True)
    patient_id: Column[str] = column(primary_key=True)
    snapshot_at: Column[datetime] = column(primary_key=True)
    task_key: Column[str] = column(primary_key=True)
    first_seen_at: Column[datetime]
    """When the score was first seen."""
