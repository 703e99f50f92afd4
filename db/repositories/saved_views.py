"""Saved views of the worklist: a person's own, and those that people share."""

from sqlalchemy import delete, or_

from core.vocabulary import PersonId
from db.models import OwnedView, Person, SavedView
from db.queries.reading import Repository, select_records

_VIEWS = select_records(SavedView, OwnedView, Person.name.label("owner_name")).join(
    Person, Person.id == SavedView.owner_id
)


class SavedViews(Repository):
    """Saved views of the worklist."""

    def offered_to(self, person_id: PersonId) -> list[OwnedView]:
        """Return a person's own views and those that others share, by name."""
        mine = _VIEWS.where(or_(SavedView.owner_id == person_id, SavedView.is_shared))
        return self._all(OwnedView, mine.order_by(SavedView.name, SavedView.id))

    def named(self, owner_id: PersonId, name: str) -> OwnedView | None:
        """Return a person's view with a name, None when there is none."""
        return self._one(OwnedView, _VIEWS.where(SavedView.owner_id == owner_id, SavedView.name == name))

    def put(self, view: SavedView) -> None:
        """Store a view over the owner's view of the same name."""
        self.drop(view.owner_id, view.name)
        self._insert(view)

    def drop(self, owner_id: PersonId, name: str) -> bool:
        """Delete a person's view; False when there was none."""
        return self._change(delete(SavedView).where(SavedView.owner_id == owner_id, SavedView.name == name)) == 1
