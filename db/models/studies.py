"""Tables of a study: its rules, rubric versions, readers, cases, the scores apart from them, and the slots."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from core.vocabulary import Answer, Certainty, Decision, StudyStatus
from db.models.base import Base, JsonObject
from db.models.types import AnswerCode, words


class Study(Base):
    """A campaign of judging chosen cases of one run by a fixed number of readers for each case."""

    __tablename__ = "study"
    __table_args__ = (sa.CheckConstraint("n_slots >= 1", name="some_slot"),)

    id: Mapped[int] = mapped_column(primary_key=True)
    slug: Mapped[str] = mapped_column(unique=True)
    """Short name, in commands and addresses."""
    title: Mapped[str]
    """Name for people."""
    run_id: Mapped[int] = mapped_column(sa.ForeignKey("scoring_run.id"))
    status: Mapped[StudyStatus] = mapped_column(words(StudyStatus, "status"))
    """Where the study stands."""
    rubric_version: Mapped[int]
    """Version of the rubric that holds now."""
    n_slots: Mapped[int]
    """Readers each case needs."""
    order_seed: Mapped[int] = mapped_column(sa.BigInteger)
    """Seed of the order in which each reader meets the cases."""
    hold_hours: Mapped[float]
    """A case that was opened and not judged becomes free again after this time."""
    simulated: Mapped[bool]
    is_calibration: Mapped[bool]
    """For training with feedback; never enters a report."""
    is_open_panel: Mapped[bool] = mapped_column(server_default=sa.false())
    """Readers may see the scores of its cases before they judge; false: they judge blindly."""
    selection_design: Mapped[JsonObject]
    """How cases were chosen: strata, sizes, seed."""
    created_at: Mapped[datetime]
    opened_at: Mapped[datetime | None]
    """When readers could begin."""
    locked_at: Mapped[datetime | None]
    """When it took no more judgments; empty while it does."""


class Rubric(Base):
    """One version of what readers are asked and told; answer codes stay, their texts may change."""

    __tablename__ = "rubric"

    study_id: Mapped[int] = mapped_column(sa.ForeignKey("study.id"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    question: Mapped[str]
    """What readers are asked."""
    guidelines: Mapped[str]
    """What readers are told, in Markdown."""
    answer_texts: Mapped[JsonObject]
    """Text of each answer, by its code."""
    created_at: Mapped[datetime]


class StudyReader(Base):
    """Somebody who may take slots of a study, under a code that stands for the name in exports."""

    __tablename__ = "study_reader"
    __table_args__ = (sa.UniqueConstraint("study_id", "number"),)

    study_id: Mapped[int] = mapped_column(sa.ForeignKey("study.id"), primary_key=True)
    person_id: Mapped[int] = mapped_column(sa.ForeignKey("person.id"), primary_key=True)
    number: Mapped[int]
    """1, 2, ... in the order of joining: reader code "R1", letter "A" in case labels."""


class StudyCase(Base):
    """An instance x task chosen for judgment, with how it was chosen.

    Patient, time and task are written out, so that votes stay with them when a later import numbers rows anew.
    """

    __tablename__ = "study_case"
    __table_args__ = (
        sa.UniqueConstraint("study_id", "number"),
        sa.UniqueConstraint("study_id", "instance_id", "task_id", "repeat_number"),
        sa.Index(None, "patient_id", "snapshot_at", "task_key"),
        sa.CheckConstraint("inclusion_probability > 0 AND inclusion_probability <= 1", name="probability"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    study_id: Mapped[int] = mapped_column(sa.ForeignKey("study.id"))
    number: Mapped[int]
    """1, 2, ... within the study."""
    instance_id: Mapped[int] = mapped_column(sa.ForeignKey("instance.id"), index=True)
    task_id: Mapped[int] = mapped_column(sa.ForeignKey("task.id"), index=True)
    repeat_number: Mapped[int]
    """0 for a case; 1, 2, ... for a hidden second showing of it, which is no vote of its own."""
    patient_id: Mapped[str]
    snapshot_at: Mapped[datetime]
    task_key: Mapped[str]
    decision: Mapped[Decision] = mapped_column(words(Decision, "decision"))
    """Which way the alert points."""
    stratum: Mapped[str]
    """Range of scores it was chosen from."""
    stratum_size: Mapped[int]
    """Candidates in the stratum."""
    inclusion_probability: Mapped[float]
    """Chance with which it was chosen, above 0 to 1; its inverse is the weight."""


class CaseScore(Base):
    """What a scorer said of a case: a table of its own, which no query of the blinded review touches."""

    __tablename__ = "case_score"

    case_id: Mapped[int] = mapped_column(sa.ForeignKey("study_case.id"), primary_key=True)
    scorer: Mapped[str] = mapped_column(primary_key=True)
    """Scorer whose score this is."""
    score: Mapped[float]
    """The scorer's anomaly score; higher = more unusual."""
    scaled_score: Mapped[float]
    """Score made comparable between tasks; higher = more unusual."""
    soft_label: Mapped[float | None]
    """The decision that the past lets expect, from -1 (not done) to 1 (done)."""
    support: Mapped[float | None]
    """How strongly the instance is tied to past ones, 0 to 1."""


class ReferenceAnswer(Base):
    """What a calibration study tells a reader after the own judgment: apart from the cases, as scores are."""

    __tablename__ = "reference_answer"

    case_id: Mapped[int] = mapped_column(sa.ForeignKey("study_case.id"), primary_key=True)
    answer: Mapped[Answer] = mapped_column(AnswerCode)
    """Answer that a calibration study tells after the own judgment."""
    comment: Mapped[str]


class Assignment(Base):
    """A slot of a case and who holds it; the database allows one reader in a slot and one slot to a reader."""

    __tablename__ = "assignment"
    __table_args__ = (sa.UniqueConstraint("case_id", "reviewer_id"), sa.Index(None, "reviewer_id"))

    case_id: Mapped[int] = mapped_column(sa.ForeignKey("study_case.id"), primary_key=True)
    slot: Mapped[int] = mapped_column(primary_key=True)
    """1, 2, ... up to the number of readers each case needs."""
    reviewer_id: Mapped[int | None] = mapped_column(sa.ForeignKey("person.id"))
    held_until: Mapped[datetime | None]
    """When the hold lapses; null while free and for good once judged."""
    put_off_at: Mapped[datetime | None]
    """When the reader said "later"; null otherwise."""


class Draft(Base):
    """What a reader has chosen and typed but not saved; stays with its owner even when the hold lapses."""

    __tablename__ = "draft"

    case_id: Mapped[int] = mapped_column(sa.ForeignKey("study_case.id"), primary_key=True)
    reviewer_id: Mapped[int] = mapped_column(sa.ForeignKey("person.id"), primary_key=True, index=True)
    answer: Mapped[Answer | None] = mapped_column(AnswerCode)
    """Answer that is chosen and not saved."""
    certainty: Mapped[Certainty | None] = mapped_column(words(Certainty, "certainty"))
    """Certainty that is chosen and not saved."""
    comment: Mapped[str]
    written_at: Mapped[datetime]
    """When it was last changed."""


class ScoreSeen(Base):
    """Who has seen the score or the votes of an instance x task; later judgments of it carry the mark."""

    __tablename__ = "score_seen"

    person_id: Mapped[int] = mapped_column(sa.ForeignKey("person.id"), primary_key=True)
    patient_id: Mapped[str] = mapped_column(primary_key=True)
    snapshot_at: Mapped[datetime] = mapped_column(primary_key=True)
    task_key: Mapped[str] = mapped_column(primary_key=True)
    first_seen_at: Mapped[datetime]
    """When the score was first seen."""
