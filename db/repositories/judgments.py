"""Judgments: versions that are only ever appended."""

from typing import Any

from sqlalchemy import func, insert, select
from sqlalchemy.engine import Connection

from db.models import Judgment, StudyCase, StudyReader
from db.queries.reading import columns, read_all, read_one, run, values
from db.queries.slots import is_current
from db.queries.votes import current_judgment, form_standing, saved_form
from db.rows import FormState, JudgmentVersion, NewJudgment, ReadingTerms, SavedRow, VoteRow

_APPEND = insert(Judgment)
_VERSION_FIELDS = tuple(JudgmentVersion.__dataclass_fields__)


class Judgments:
    """Judgments of the unit of work's connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def append(self, judgment: NewJudgment) -> None:
        """Append a version; the database refuses a number or form key that is taken."""
        run(self._connection, _APPEND, **values(judgment))

    def standing(self, slug: str, person_id: int, case_id: int, form_key: str) -> FormState:
        """Return what decides about a form that somebody sends for a case of a study."""
        given = {"slug_": slug, "person_id_": person_id, "case_id_": case_id, "form_key_": form_key}
        row = run(self._connection, form_standing(), **given).one()
        n_terms = len(ReadingTerms._fields)
        terms, (found_case, saved_case, saved_reviewer, seen_by, *version) = row[:n_terms], row[n_terms:]
        return FormState(
            has_study=terms[0] is not None,
            terms=None if row.person_id is None else ReadingTerms._make(terms),
            has_case=found_case is not None,
            current=None if version[0] is None else JudgmentVersion(**dict(zip(_VERSION_FIELDS, version, strict=True))),
            saved_for=None if saved_case is None else (saved_case, saved_reviewer),
            score_was_seen=seen_by is not None,
        )

    def saved(self, form_key: str) -> SavedRow | None:
        """Return what a form was saved as, with the time zone of its site; None when it was not."""
        row = run(self._connection, saved_form(), form_key_=form_key).one_or_none()
        return None if row is None else SavedRow._make(row)

    def current(self, case_id: int, reviewer_id: int) -> JudgmentVersion | None:
        """Return a reader's highest version of a case, also one that takes the former back; None when there is none."""
        statement = current_judgment()
        return read_one(self._connection, JudgmentVersion, statement, case_id_=case_id, reviewer_id_=reviewer_id)

    def history(self, case_id: int, reviewer_id: int) -> list[JudgmentVersion]:
        """Return all versions of a reader's judgment of a case, newest first."""
        return read_all(self._connection, JudgmentVersion, self._versions(case_id, reviewer_id))

    def of_person(self, reviewer_id: int, study_id: int) -> list[JudgmentVersion]:
        """Return one reader's current judgments in a study, newest first."""
        statement = (
            select(*columns(Judgment, JudgmentVersion))
            .join(StudyCase, StudyCase.id == Judgment.case_id)
            .where(StudyCase.study_id == study_id, Judgment.reviewer_id == reviewer_id)
            .where(Judgment.answer.is_not(None), is_current(Judgment))
            .order_by(Judgment.judged_at.desc(), Judgment.id.desc())
        )
        return read_all(self._connection, JudgmentVersion, statement)

    def votes(self, study_id: int) -> list[VoteRow]:
        """Return the current judgments of a study, by case and reader."""
        own = [name for name in VoteRow.__dataclass_fields__ if hasattr(Judgment, name)]
        statement = (
            select(
                *(getattr(Judgment, name) for name in own),
                StudyCase.number.label("case_number"),
                StudyCase.repeat_number,
                StudyReader.number.label("reader_number"),
            )
            .join(StudyCase, StudyCase.id == Judgment.case_id)
            .join(
                StudyReader,
                (StudyReader.study_id == StudyCase.study_id) & (StudyReader.person_id == Judgment.reviewer_id),
            )
            .where(StudyCase.study_id == study_id, Judgment.answer.is_not(None), is_current(Judgment))
            .order_by(StudyCase.number, StudyReader.number)
        )
        return read_all(self._connection, VoteRow, statement)

    def versions(self, study_id: int) -> list[JudgmentVersion]:
        """Return every version of every judgment of a study in the order of saving, for the long export."""
        statement = (
            select(*columns(Judgment, JudgmentVersion))
            .join(StudyCase, StudyCase.id == Judgment.case_id)
            .where(StudyCase.study_id == study_id)
            .order_by(Judgment.id)
        )
        return read_all(self._connection, JudgmentVersion, statement)

    def stamp(self, study_id: int) -> tuple[int, int]:
        """Return what changes with every judgment of a study: the newest number and how many there are."""
        statement = (
            select(func.coalesce(func.max(Judgment.id), 0), func.count())
            .join(StudyCase, StudyCase.id == Judgment.case_id)
            .where(StudyCase.study_id == study_id)
        )
        newest, count = self._connection.execute(statement).one()
        return newest, count

    def _versions(self, case_id: int, reviewer_id: int) -> Any:
        return (
            select(*columns(Judgment, JudgmentVersion))
            .where(Judgment.case_id == case_id, Judgment.reviewer_id == reviewer_id)
            .order_by(Judgment.version.desc())
        )
