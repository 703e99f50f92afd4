"""Tables of what was judged: append-only versions of answers, and adjudications apart from them."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from core.vocabulary import Answer, Certainty
from db.models.base import Base
from db.models.types import AnswerCode, words

_KNOWN_CODE = f"answer BETWEEN {min(Answer):d} AND {max(Answer):d}"
_WITH_REASON = ", ".join(answer.key for answer in Answer if answer.needs_reason)


class Judgment(Base):
    """One version of one reader's answer to a case; the highest version is the current one, nothing is ever changed.

    A version without answer takes the former ones back.
    """

    __tablename__ = "judgment"
    __table_args__ = (
        sa.UniqueConstraint("case_id", "reviewer_id", "version"),
        sa.Index(None, "reviewer_id"),
        sa.CheckConstraint(_KNOWN_CODE, name="answer_code"),
        sa.CheckConstraint("version >= 1", name="version_from_one"),
        sa.CheckConstraint(f"answer IS NULL OR answer NOT IN ({_WITH_REASON}) OR reason <> ''", name="reason_given"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    case_id: Mapped[int] = mapped_column(sa.ForeignKey("study_case.id"))
    reviewer_id: Mapped[int] = mapped_column(sa.ForeignKey("person.id"))
    version: Mapped[int]
    answer: Mapped[Answer | None] = mapped_column(AnswerCode)
    """The answer; empty when the version takes the former ones back."""
    certainty: Mapped[Certainty | None] = mapped_column(words(Certainty, "certainty"))
    """How sure the reader was; empty when not said."""
    comment: Mapped[str]
    reason: Mapped[str]
    """Why the case cannot be judged, or why the answer was changed."""
    form_key: Mapped[str] = mapped_column(unique=True)
    judged_at: Mapped[datetime]
    """When it was saved."""
    active_seconds: Mapped[float | None]
    """Time for which the case was worked on, in seconds, without pauses."""
    saw_score_before: Mapped[bool]
    """The reader had seen the score or the votes of this decision before."""
    rubric_version: Mapped[int]
    """Version of the rubric that the reader saw."""


class Adjudication(Base):
    """One version of the consensus on a case, by somebody who never was a reader of it; never mixed with votes."""

    __tablename__ = "adjudication"
    __table_args__ = (sa.CheckConstraint(_KNOWN_CODE, name="answer_code"),)

    case_id: Mapped[int] = mapped_column(sa.ForeignKey("study_case.id"), primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    adjudicator_id: Mapped[int] = mapped_column(sa.ForeignKey("person.id"), index=True)
    answer: Mapped[Answer] = mapped_column(AnswerCode)
    """The consensus."""
    comment: Mapped[str]
    reason: Mapped[str]
    """Why a former consensus was changed; empty for a first one."""
    form_key: Mapped[str] = mapped_column(unique=True)
    adjudicated_at: Mapped[datetime]
    """When it was saved."""
