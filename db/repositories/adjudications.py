"""Adjudications: the consensus on a case, in versions of its own, apart from the votes."""

from sqlalchemy import func, select

from core.vocabulary import CaseId, PersonId, StudyId
from db.models import Adjudication, Assignment, Judgment, StudyCase
from db.models.base import aliased
from db.queries.reading import Repository, select_records


class Adjudications(Repository):
    """Adjudications of cases."""

    def append(self, adjudication: Adjudication) -> None:
        """Append a version."""
        self._insert(adjudication)

    def by_form_key(self, form_key: str) -> Adjudication | None:
        """Return the version that a form was saved as, None when it was not."""
        return self._one(Adjudication, select_records(Adjudication).where(Adjudication.form_key == form_key))

    def current(self, case_id: CaseId) -> Adjudication | None:
        """Return the highest version for a case, None when there is none."""
        of_case = select_records(Adjudication).where(Adjudication.case_id == case_id)
        return self._one(Adjudication, of_case.order_by(Adjudication.version.desc()).limit(1))

    def in_study(self, study_id: StudyId) -> list[Adjudication]:
        """Return the current adjudication of each case of a study that has one."""
        later = aliased(Adjudication)
        newest = select(func.max(later.version)).where(later.case_id == Adjudication.case_id).scalar_subquery()
        statement = (
            select_records(Adjudication)
            .join(StudyCase, StudyCase.id == Adjudication.case_id)
            .where(StudyCase.study_id == study_id, Adjudication.version == newest)
            .order_by(StudyCase.number)
        )
        return self._all(Adjudication, statement)

    def count(self, study_id: StudyId) -> int:
        """Count the versions of all adjudications of a study; it changes with every one."""
        statement = (
            select(func.count())
            .select_from(Adjudication)
            .join(StudyCase, StudyCase.id == Adjudication.case_id)
            .where(StudyCase.study_id == study_id)
        )
        return int(self._run(statement).scalar_one())

    def was_reader(self, case_id: CaseId, person_id: PersonId) -> bool:
        """Return whether somebody holds a slot of the case or ever judged it."""
        holds = select(Assignment.slot).where(Assignment.case_id == case_id, Assignment.reviewer_id == person_id)
        judged = select(Judgment.id).where(Judgment.case_id == case_id, Judgment.reviewer_id == person_id)
        return any(self._run(statement).first() is not None for statement in (holds, judged))
