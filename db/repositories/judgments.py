"""Judgments: versions that are only ever appended."""

from typing import Any

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from db.models import Judgment, StudyCase, StudyReader
from db.queries import is_current
from db.repositories.reading import columns, read_all, read_one, run, values
from db.rows import JudgmentVersion, NewJudgment, VoteRow
from db.vote_queries import current_judgment, judgment_of_form


class Judgments:
    """Judgments of the unit of work's session."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def append(self, judgment: NewJudgment) -> None:
        """Append a version; the database refuses a number or form key that is taken."""
        run(self._session, insert(Judgment), **values(judgment))

    def by_form_key(self, form_key: str) -> JudgmentVersion | None:
        """Give the version that a form was saved as, None when it was not."""
        return read_one(self._session, JudgmentVersion, judgment_of_form(), form_key_=form_key)

    def current(self, case_id: int, reviewer_id: int) -> JudgmentVersion | None:
        """Give a reader's highest version of a case, also one that takes the former back; None when there is none."""
        statement = current_judgment()
        return read_one(self._session, JudgmentVersion, statement, case_id_=case_id, reviewer_id_=reviewer_id)

    def history(self, case_id: int, reviewer_id: int) -> list[JudgmentVersion]:
        """Give all versions of a reader's judgment of a case, newest first."""
        return read_all(self._session, JudgmentVersion, self._versions(case_id, reviewer_id))

    def of_person(self, reviewer_id: int, study_id: int) -> list[JudgmentVersion]:
        """Give one reader's current judgments in a study, newest first."""
        statement = (
            select(*columns(Judgment, JudgmentVersion))
            .join(StudyCase, StudyCase.id == Judgment.case_id)
            .where(StudyCase.study_id == study_id, Judgment.reviewer_id == reviewer_id)
            .where(Judgment.answer.is_not(None), is_current(Judgment))
            .order_by(Judgment.judged_at.desc(), Judgment.id.desc())
        )
        return read_all(self._session, JudgmentVersion, statement)

    def votes(self, study_id: int) -> list[VoteRow]:
        """Give the current judgments of a study, by case and reader."""
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
        return read_all(self._session, VoteRow, statement)

    def versions(self, study_id: int) -> list[JudgmentVersion]:
        """Give every version of every judgment of a study in the order of saving, for the long export."""
        statement = (
            select(*columns(Judgment, JudgmentVersion))
            .join(StudyCase, StudyCase.id == Judgment.case_id)
            .where(StudyCase.study_id == study_id)
            .order_by(Judgment.id)
        )
        return read_all(self._session, JudgmentVersion, statement)

    def stamp(self, study_id: int) -> tuple[int, int]:
        """Give what changes with every judgment of a study: the newest number and how many there are."""
        statement = (
            select(func.coalesce(func.max(Judgment.id), 0), func.count())
            .join(StudyCase, StudyCase.id == Judgment.case_id)
            .where(StudyCase.study_id == study_id)
        )
        newest, count = self._session.execute(statement).one()
        return newest, count

    def _versions(self, case_id: int, reviewer_id: int) -> Any:
        return (
            select(*columns(Judgment, JudgmentVersion))
            .where(Judgment.case_id == case_id, Judgment.reviewer_id == reviewer_id)
            .order_by(Judgment.version.desc())
        )
