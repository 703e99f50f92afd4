"""Adjudications: the consensus on a case, in versions of its own, apart from the votes."""

from sqlalchemy import func, insert, select
from sqlalchemy.engine import Connection
from sqlalchemy.orm import aliased

from db.models import Adjudication, Assignment, Judgment, StudyCase
from db.queries.reading import columns, read_all, read_one, values
from db.rows import AdjudicationRow


class Adjudications:
    """Adjudications of the unit of work's connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def append(self, adjudication: AdjudicationRow) -> None:
        """Append a version."""
        self._connection.execute(insert(Adjudication).values(values(adjudication)))

    def by_form_key(self, form_key: str) -> AdjudicationRow | None:
        """Return the version that a form was saved as, None when it was not."""
        statement = select(*columns(Adjudication, AdjudicationRow)).where(Adjudication.form_key == form_key)
        return read_one(self._connection, AdjudicationRow, statement)

    def current(self, case_id: int) -> AdjudicationRow | None:
        """Return the highest version for a case, None when there is none."""
        statement = (
            select(*columns(Adjudication, AdjudicationRow))
            .where(Adjudication.case_id == case_id)
            .order_by(Adjudication.version.desc())
            .limit(1)
        )
        return read_one(self._connection, AdjudicationRow, statement)

    def in_study(self, study_id: int) -> list[AdjudicationRow]:
        """Return the current adjudication of each case of a study that has one."""
        later = aliased(Adjudication)
        newest = select(func.max(later.version)).where(later.case_id == Adjudication.case_id).scalar_subquery()
        statement = (
            select(*columns(Adjudication, AdjudicationRow))
            .join(StudyCase, StudyCase.id == Adjudication.case_id)
            .where(StudyCase.study_id == study_id, Adjudication.version == newest)
            .order_by(StudyCase.number)
        )
        return read_all(self._connection, AdjudicationRow, statement)

    def count(self, study_id: int) -> int:
        """Count the versions of all adjudications of a study; it changes with every one."""
        statement = (
            select(func.count())
            .select_from(Adjudication)
            .join(StudyCase, StudyCase.id == Adjudication.case_id)
            .where(StudyCase.study_id == study_id)
        )
        return self._connection.execute(statement).scalar_one()

    def was_reader(self, case_id: int, person_id: int) -> bool:
        """Return whether somebody holds a slot of the case or ever judged it."""
        holds = select(Assignment.slot).where(Assignment.case_id == case_id, Assignment.reviewer_id == person_id)
        judged = select(Judgment.id).where(Judgment.case_id == case_id, Judgment.reviewer_id == person_id)
        return any(self._connection.execute(statement).first() is not None for statement in (holds, judged))
