"""What pages and commands ask about the site itself: its people, and whether its patients are simulated."""

from dataclasses import dataclass

from alertreview.rights import Action, Service, operator_only, requires
from core.errors import NotFoundError
from core.vocabulary import PersonId, Role


@dataclass(frozen=True)
class PersonView:
    """Somebody who may use the dashboard."""

    person_id: PersonId
    name: str
    role: Role
    simulated: bool
    further_roles: frozenset[Role] = frozenset()

    @property
    def roles(self) -> frozenset[Role]:
        """Every role of the person."""
        return self.further_roles | {self.role}


class SiteService(Service):
    """The site and its people."""

    @property
    @requires(None)
    def simulated(self) -> bool:
        """Whether the last import says that no real patient stands behind it."""
        with self._database.read() as uow:
            return uow.snapshots.latest_is_simulated()

    @requires(Action.SEE_STUDIES)
    def people(self) -> tuple[PersonView, ...]:
        """Return the active people of the site."""
        with self._database.read() as uow:
            return tuple(
                PersonView(person.id, person.name, person.role, person.simulated, person.roles - {person.role})
                for person in uow.people.all()
                if person.active
            )

    @operator_only
    def person_named(self, name: str) -> PersonView:
        """Return an active person by name; raise NotFoundError, which does not list who there is, if there is none."""
        found = next((person for person in self.people() if person.name == name), None)
        if found is None:
            raise NotFoundError(f"There is no active person named '{name}'. Write the name as the site has it.")
        return found
