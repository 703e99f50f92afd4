"""Saved views: filters of the worklist under a name, for oneself or for everybody; they never hold a patient."""

from alertreview.callbacks import Clock
from alertreview.triage_models import SavedViewEntry
from core.errors import ConflictError, InvalidInputError, NotFoundError, RefusedError
from db.rows import NewSavedView
from db.session import Database

LONGEST_NAME = 60
NEVER_KEPT = ("after", "page", "alert", "patient")
"""Parameters of a place in the list or of a person: not part of a view."""


class SavedViewService:
    """Keeps named filters of the worklist.

    Parameters
    ----------
    database : Database
        The site's database.
    clock : callable
        Gives the time, aware.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def offered_to(self, person_id: int) -> tuple[SavedViewEntry, ...]:
        """Give a person's own views and those that others share, by name."""
        with self._database.read() as uow:
            return tuple(
                SavedViewEntry(
                    view.name, view.owner_name, view.owner_id == person_id, view.is_shared, dict(view.address)
                )
                for view in uow.saved_views.offered_to(person_id)
            )

    def save(
        self, person_id: int, name: str, address: dict[str, str], *, shared: bool = False, replace: bool = False
    ) -> None:
        """Keep filters under a name.

        Parameters
        ----------
        person_id : int
            Who saves, and owns the view.
        name : str
        address : dict of str to str
            Parameters of the worklist's address; a place in the list and a patient are left out.
        shared : bool
            Whether everybody is offered the view.
        replace : bool
            Write over one's own view of the same name.

        Raises
        ------
        RefusedError
            If there is no name.
        InvalidInputError
            If the name is too long.
        ConflictError
            If a view of this person has the name and `replace` is not set.
        """
        name = " ".join(name.split())
        if not name:
            raise RefusedError("The view has no name. Type one, then save.")
        if len(name) > LONGEST_NAME or "\0" in name:
            raise InvalidInputError(f"A view's name has at most {LONGEST_NAME} characters of text. Shorten it.")
        kept = {key: value for key, value in address.items() if key not in NEVER_KEPT}
        now = self._clock()
        with self._database.write() as uow:
            former = uow.saved_views.named(person_id, name)
            if former is not None and not replace:
                raise ConflictError(f"You have a view named '{name}'. Choose another name, or replace it.")
            uow.saved_views.put(
                NewSavedView(owner_id=person_id, name=name, is_shared=shared, address=kept, saved_at=now)
            )
            details = {
                "before": former and {"shared": former.is_shared, "address": former.address},
                "after": {"shared": shared, "address": kept},
            }
            uow.audit.append(now, f"person {person_id}", "view saved", f"view '{name}'", details)
            uow.commit()

    def delete(self, person_id: int, name: str) -> None:
        """Delete a view of one's own.

        Raises
        ------
        NotFoundError
            If this person has no view of the name.
        """
        now = self._clock()
        with self._database.write() as uow:
            former = uow.saved_views.named(person_id, name)
            if former is None or not uow.saved_views.drop(person_id, name):
                raise NotFoundError(f"You have no view named '{name}'. It may be somebody else's, or deleted already.")
            details = {"before": {"shared": former.is_shared, "address": former.address}, "after": None}
            uow.audit.append(now, f"person {person_id}", "view deleted", f"view '{name}'", details)
            uow.commit()
