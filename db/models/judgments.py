"""Tables of what was judged: append-only versions of answers, and adjudications apart from them."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from core.vocabulary import Answer, Certainty
from db.models.base import Base
from db.types import AnswerCode, words


class Judgment(Base):
    """One version of one reader's answer to a case; the highest version is the current one, nothing is ever changed.

    A version without answer takes the former ones back.
    """

    __tablename__ = "judgment"
    __table_args__ = (
        sa.UniqueConstraint("case_id", "reviewer_id", "version"),
        sa.Index(None, "reviewer_id"),
        sa.CheckConstraint("answer BETWEEN 0 AND 3", name="answer_code"),
        sa.CheckConstraint("version >= 1", name="version_from_one"),
        sa.CheckConstraint("answer IS NULL OR answer <> 0 OR reason <> ''", name="reason_given"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    case_id: Mapped[int] = mapped_column(sa.ForeignKey("study_case.id"))
    reviewer_id: Mapped[int] = mapped_column(sa.ForeignKey("person.id"))
    version: Mapped[int]
    answer: Mapped[Answer | None] = mapped_column(AnswerCode)
    certainty: Mapped[Certainty | None] = mapped_column(words(Certainty, "certainty"))
    comment: Mapped[str]
    reason: Mapped[str]
    form_key: Mapped[str] = mapped_column(unique=True)
    judged_at: Mapped[datetime]
    active_seconds: Mapped[float | None]
    saw_score_before: Mapped[bool]
    rubric_version: Mapped[int]


class Adjudication(Base):
    """One version of the consensus on a case, by somebody who never was a reader of it; never mixed with votes."""

    __tablename__ = "adjudication"
    __table_args__ = (sa.CheckConstraint("answer BETWEEN 0 AND 3", name="answer_code"),)

    case_id: Mapped[int] = mapped_column(sa.ForeignKey("study_case.id"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    adjudicator_id: Mapped[int] = mapped_column(sa.ForeignKey("person.id"), index=True)
    answer: Mapped[Answer] = mapped_column(AnswerCode)
    comment: Mapped[str]
    reason: Mapped[str]
    form_key: Mapped[str] = mapped_column(unique=True)
    adjudicated_at: Mapped[datetime]
