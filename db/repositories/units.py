"""Units: which ones a person may see, and which one an alert, a case or a study belongs to."""

from collections.abc import Collection

from sqlalchemy import delete, insert, select, update
from sqlalchemy.engine import Connection

from core.errors import NotFoundError
from db.models import Alert, Instance, Person, Study, StudyCase, UnitScope


class Units:
    """Units of the unit of work's connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def of_person(self, person_id: int) -> frozenset[str] | None:
        """Return the units whose patients a person may see; None for all of them."""
        if self._connection.execute(select(Person.all_units).where(Person.id == person_id)).scalar_one():
            return None
        mine = select(UnitScope.unit).where(UnitScope.person_id == person_id)
        return frozenset(self._connection.execute(mine).scalars())

    def give(self, person_id: int, units: Collection[str] | None) -> None:
        """Let a person see these units only; None for all of them, nothing at all for an empty collection."""
        self._connection.execute(delete(UnitScope).where(UnitScope.person_id == person_id))
        self._connection.execute(update(Person).where(Person.id == person_id).values(all_units=units is None))
        rows = [{"person_id": person_id, "unit": unit} for unit in sorted(set(units or ()))]
        if rows:
            self._connection.execute(insert(UnitScope), rows)

    def all(self) -> tuple[str, ...]:
        """Return the units of the last import, by name."""
        latest = select(Instance.snapshot_id).order_by(Instance.snapshot_id.desc()).limit(1).scalar_subquery()
        found = self._connection.execute(select(Instance.unit).where(Instance.snapshot_id == latest).distinct())
        return tuple(sorted(unit for unit in found.scalars() if unit))

    def of_alert(self, alert_id: int) -> str:
        """Return the unit of an alert.

        Raises
        ------
        NotFoundError
            If there is no such alert.
        """
        unit = self._connection.execute(select(Alert.unit).where(Alert.id == alert_id)).scalar_one_or_none()
        if unit is None:
            raise NotFoundError(f"There is no alert {alert_id}. The link may come from another site.")
        return unit

    def of_case(self, case_id: int) -> str | None:
        """Return the unit of a case; None when there is no such case."""
        statement = select(Instance.unit).join(StudyCase, StudyCase.instance_id == Instance.id)
        return self._connection.execute(statement.where(StudyCase.id == case_id)).scalar_one_or_none()

    def of_study(self, slug: str) -> frozenset[str]:
        """Return the units of a study's cases; empty for a study without cases, or that is not there."""
        statement = (
            select(Instance.unit)
            .join(StudyCase, StudyCase.instance_id == Instance.id)
            .join(Study, Study.id == StudyCase.study_id)
            .where(Study.slug == slug)
        )
        return frozenset(self._connection.execute(statement.distinct()).scalars())

    def cases_within(self, study_id: int, units: Collection[str]) -> frozenset[int]:
        """Return the cases of a study whose patients lie in one of the units."""
        statement = (
            select(StudyCase.id)
            .join(Instance, Instance.id == StudyCase.instance_id)
            .where(StudyCase.study_id == study_id, Instance.unit.in_(units))
        )
        return frozenset(self._connection.execute(statement).scalars())
