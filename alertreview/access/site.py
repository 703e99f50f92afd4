"""What pages and commands ask about the site itself: its people, and whether its patients are simulated."""

from alertreview.access.roles import PersonView
from core.errors import NotFoundError
from db.database import Database


class SiteService:
    """The site and its people.

    Parameters
    ----------
    database : Database
        Of the site.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def simulated(self) -> bool:
        """Whether the last import says that no real patient stands behind it."""
        with self._database.read() as uow:
            return uow.snapshots.latest_is_simulated()

    def people(self) -> tuple[PersonView, ...]:
        """Return the active people of the site."""
        with self._database.read() as uow:
            return tuple(
                PersonView(person.id, person.name, person.role, person.simulated)
                for person in uow.people.all()
                if person.active
            )

    def person_named(self, name: str) -> PersonView:
        """Return an active person by name.

        Raises
        ------
        NotFoundError
            If there is none; the text does not list who there is.
        """
        found = next((person for person in self.people() if person.name == name), None)
        if found is None:
            raise NotFoundError(f"There is no active person named '{name}'. Write the name as the site has it.")
        return found
