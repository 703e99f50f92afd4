"""Tables of what was judged: append-only versions of answers, adjudications apart from them, signatures."""

from datetime import datetime
from typing import NamedTuple

import sqlalchemy as sa

from core.vocabulary import Answer, CaseId, Certainty, JudgmentId, PersonId, StudyId
from db.models.base import UNSAVED, Column, JsonObject, Record, column
from db.models.studies import BlindedRow, DraftAnswer, ReadingTerms

_KNOWN_CODE = f"answer BETWEEN {min(Answer):d} AND {max(Answer):d}"
_WITH_REASON = ", ".join(answer.key for answer in Answer if answer.needs_reason)


class Judgment(Record):
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

    id: Column[JudgmentId] = column(primary_key=True, default=UNSAVED)
    case_id: Column[CaseId] = column(sa.ForeignKey("study_case.id"))
    reviewer_id: Column[PersonId] = column(sa.ForeignKey("person.id"))
    version: Column[int]
    answer: Column[Answer | None]
    """The answer; empty when the version takes the former ones back."""
    certainty: Column[Certainty | None]
    """How sure the reader was; empty when not said."""
    comment: Column[str]
    reason: Column[str]
    """Why the case cannot be judged, or why the answer was changed."""
    form_key: Column[str] = column(unique=True)
    judged_at: Column[datetime]
    """When it was saved."""
    active_seconds: Column[float | None]
    """Time for which the case was worked on, in seconds, without pauses."""
    saw_score_before: Column[bool]
    """The reader had seen the score or the votes of this decision before."""
    rubric_version: Column[int]
    """Version of the rubric that the reader saw."""


class CastVote(Judgment):
    """A reader's current judgment of a case, with the numbers that exports and reports name it by."""

    answer: Column[Answer]
    case_number: int
    repeat_number: int
    reader_number: int

    @property
    def reader_code(self) -> str:
        """What stands for the reader's name."""
        return f"R{self.reader_number}"


class OwnAnswer(NamedTuple):
    """A reader's own highest version of a case; without answer it takes the former ones back."""

    version: int
    answer: Answer | None
    certainty: Certainty | None
    comment: str


class ShownCase(NamedTuple):
    """What the review page shows of a case, and what its reader has answered or begun to."""

    case: BlindedRow
    current: OwnAnswer | None
    draft: DraftAnswer | None


class FormState(NamedTuple):
    """What the database knows of a form that is sent: who may send it, and what was saved before."""

    has_study: bool
    terms: ReadingTerms | None
    """None when there is no such study, or the person is no reader of it."""
    has_case: bool
    """Whether the case is one of the study's."""
    answer_texts: JsonObject
    """Text of each answer that the study's rubric offers, by its code."""
    current: Judgment | None
    """The reader's own highest version of the case."""
    saved_for: tuple[CaseId, PersonId] | None
    """Case and reader of the version that this form was saved as; None when it was not."""
    score_was_seen: bool
    """The reader has seen the score or the votes of this decision."""


class SavedForm(NamedTuple):
    """What a form was saved as, and the time zone of the site that its case comes from."""

    case_id: CaseId
    version: int
    answer: Answer | None
    judged_at: datetime
    site_timezone: str


class Adjudication(Record):
    """One version of the consensus on a case, by somebody who never was a reader of it; never mixed with votes."""

    __tablename__ = "adjudication"
    __table_args__ = (sa.CheckConstraint(_KNOWN_CODE, name="answer_code"),)

    case_id: Column[CaseId] = column(sa.ForeignKey("study_case.id"), primary_key=True)
    version: Column[int] = column(primary_key=True)
    adjudicator_id: Column[PersonId] = column(sa.ForeignKey("person.id"), index=True)
    answer: Column[Answer]
    """The consensus."""
    comment: Column[str]
    reason: Column[str]
    """Why a former consensus was changed; empty for a first one."""
    form_key: Column[str] = column(unique=True)
    adjudicated_at: Column[datetime]
    """When it was saved."""


class ReportSignature(Record):
    """A person's signature under the report of a study, as the report stood then."""

    __tablename__ = "report_signature"
    __table_args__ = (
        sa.CheckConstraint("signer_name <> '' AND meaning <> ''", name="name_and_meaning"),
        sa.CheckConstraint("length(content_hash) = 64", name="hash_length"),
    )

    id: Column[int] = column(primary_key=True, default=UNSAVED)
    study_id: Column[StudyId] = column(sa.ForeignKey("study.id"), index=True)
    signer_id: Column[PersonId] = column(sa.ForeignKey("person.id"), index=True)
    signer_name: Column[str]
    """As it was at signing."""
    meaning: Column[str]
    """What the signature says, such as approval."""
    signed_at: Column[datetime]
    """When it was given."""
    content_hash: Column[str]
    """SHA-256 of the report's canonical JSON, in hexadecimal digits."""
    superseded_at: Column[datetime | None] = column(default=None)
    """When the report changed or the study was reopened; empty while the signature holds."""
