"""People: added, given another role, deactivated; never deleted."""

from datetime import datetime

from sqlalchemy import insert, select, update
from sqlalchemy.engine import Connection

from core.errors import ConflictError
from core.vocabulary import Role
from db.models import Person
from db.queries.reading import columns, read_all, read_one, read_the
from db.queries.runs import all_people, person_by_number
from db.rows import PersonRow


class People:
    """People of the unit of work's connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def add(self, name: str, role: Role, *, created_at: datetime, simulated: bool = False) -> PersonRow:
        """Add somebody.

        Raises
        ------
        ConflictError
            If the name is taken, also by somebody who was deactivated.
        """
        if self.by_name(name) is not None:
            raise ConflictError(
                f"There is a person named '{name}' already. Choose another name, or activate that person."
            )
        person_id = self._connection.execute(
            insert(Person)
            .values(name=name, role=role, simulated=simulated, active=True, created_at=created_at)
            .returning(Person.id)
        ).scalar_one()
        return self.get(person_id)

    def get(self, person_id: int) -> PersonRow:
        """Return a person by number.

        Raises
        ------
        NotFoundError
            If there is none.
        """
        missing = f"There is no person {person_id}."
        return read_the(self._connection, PersonRow, person_by_number(), missing, person_id_=person_id)

    def by_name(self, name: str) -> PersonRow | None:
        """Return a person by name, None when there is none."""
        return read_one(self._connection, PersonRow, select(*columns(Person, PersonRow)).where(Person.name == name))

    def all(self, *, active_only: bool = False) -> list[PersonRow]:
        """Return people in the order of joining."""
        people = read_all(self._connection, PersonRow, all_people())
        return [person for person in people if person.active] if active_only else people

    def change(self, person_id: int, *, role: Role, active: bool) -> PersonRow:
        """Return somebody another role, deactivate or activate."""
        self.get(person_id)
        self._connection.execute(update(Person).where(Person.id == person_id).values(role=role, active=active))
        return self.get(person_id)
