"""People: added, given another role, deactivated; never deleted."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import update

from core.errors import ConflictError
from core.vocabulary import PersonId, Role
from db.models import Person
from db.queries.reading import Repository, given, select_records
from db.queries.seals import UNITS, mark

_BY_ID = select_records(Person).where(Person.id == given("person_id"))
_ALL = select_records(Person).order_by(Person.id)


class People(Repository):
    """People who use the dashboard, or did."""

    def add(self, name: str, role: Role, *, created_at: datetime, simulated: bool = False) -> Person:
        """Add somebody; raise ConflictError if the name is taken, also by somebody who was deactivated."""
        if self.by_name(name) is not None:
            raise ConflictError(
                f"There is a person named '{name}' already. Choose another name, or activate that person."
            )
        person_id = self._insert(Person(name=name, role=role, simulated=simulated, created_at=created_at))
        mark(self._connection, UNITS, person_id)
        return self.get(person_id)

    def get(self, person_id: PersonId) -> Person:
        """Return a person by number; raise NotFoundError if there is none."""
        return self._the(Person, _BY_ID, f"There is no person {person_id}.", person_id_=person_id)

    def by_name(self, name: str) -> Person | None:
        """Return a person by name, None when there is none."""
        return self._one(Person, select_records(Person).where(Person.name == name))

    def all(self, *, active_only: bool = False) -> list[Person]:
        """Return people in the order of joining."""
        return [person for person in self._all(Person, _ALL) if person.active or not active_only]

    def change(self, person_id: PersonId, *, role: Role, active: bool, further_roles: Collection[Role] = ()) -> Person:
        """Give somebody other roles, deactivate or activate; return the person as changed."""
        self.get(person_id)
        further = " ".join(one for one in Role if one in further_roles and one is not role)
        changed = update(Person).where(Person.id == person_id)
        self._run(changed.values(role=role, further_roles=further, active=active))
        mark(self._connection, "person", person_id)
        return self.get(person_id)
