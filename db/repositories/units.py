"""Units: which ones a person may see, and which one an alert, a case or a study belongs to."""

from collections.abc import Collection

from sqlalchemy import delete, select, update

from core.errors import NotFoundError
from core.vocabulary import AlertId, CaseId, PersonId, StudyId
from db.models import Alert, Instance, Person, Study, StudyCase, UnitScope
from db.queries.reading import Repository
from db.queries.seals import UNITS, mark

_OF_CASES = select(Instance.unit).join(StudyCase, StudyCase.instance_id == Instance.id)


class Units(Repository):
    """Units of a hospital, and who may see their patients."""

    def of_person(self, person_id: PersonId) -> frozenset[str] | None:
        """Return the units whose patients a person may see; None for all of them."""
        if self._run(select(Person.all_units).where(Person.id == person_id)).scalar_one():
            return None
        return frozenset(self._run(select(UnitScope.unit).where(UnitScope.person_id == person_id)).scalars())

    def give(self, person_id: PersonId, units: Collection[str] | None) -> None:
        """Let a person see these units only; None for all of them, nothing at all for an empty collection."""
        self._run(delete(UnitScope).where(UnitScope.person_id == person_id))
        self._run(update(Person).where(Person.id == person_id).values(all_units=units is None))
        mark(self._connection, "person", person_id)
        mark(self._connection, UNITS, person_id)
        self._insert_all(UnitScope(person_id=person_id, unit=unit) for unit in sorted(set(units or ())))

    def all(self) -> tuple[str, ...]:
        """Return the units of the last import, by name."""
        latest = select(Instance.snapshot_id).order_by(Instance.snapshot_id.desc()).limit(1).scalar_subquery()
        found = self._run(select(Instance.unit).where(Instance.snapshot_id == latest).distinct())
        return tuple(sorted(unit for unit in found.scalars() if unit))

    def of_alert(self, alert_id: AlertId) -> str:
        """Return the unit of an alert; raise NotFoundError if there is no such alert."""
        unit: str | None = self._run(select(Alert.unit).where(Alert.id == alert_id)).scalar_one_or_none()
        if unit is None:
            raise NotFoundError(f"There is no alert {alert_id}. The link may come from another site.")
        return unit

    def of_case(self, case_id: CaseId) -> str | None:
        """Return the unit of a case; None when there is no such case."""
        return self._run(_OF_CASES.where(StudyCase.id == case_id)).scalar_one_or_none()

    def of_study(self, slug: str) -> frozenset[str]:
        """Return the units of a study's cases; empty for a study without cases, or that is not there."""
        of_study = _OF_CASES.join(Study, Study.id == StudyCase.study_id).where(Study.slug == slug)
        return frozenset(self._run(of_study.distinct()).scalars())

    def cases_within(self, study_id: StudyId, units: Collection[str]) -> frozenset[CaseId]:
        """Return the cases of a study whose patients lie in one of the units."""
        statement = (
            select(StudyCase.id)
            .join(Instance, Instance.id == StudyCase.instance_id)
            .where(StudyCase.study_id == study_id, Instance.unit.in_(units))
        )
        return frozenset(self._run(statement).scalars())
