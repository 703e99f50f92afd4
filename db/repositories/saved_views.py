"""Saved views of the worklist: a person's own, and those that people share."""

from typing import Any

from sqlalchemy import delete, insert, or_, select
from sqlalchemy.engine import Connection

from db.models import Person, SavedView
from db.queries.reading import change, columns, read_all, read_one, values
from db.rows import NewSavedView, SavedViewRow


class SavedViews:
    """Saved views of the unit of work's connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def offered_to(self, person_id: int) -> list[SavedViewRow]:
        """Return a person's own views and those that others share, by name."""
        statement = self._views().where(or_(SavedView.owner_id == person_id, SavedView.is_shared))
        return read_all(self._connection, SavedViewRow, statement.order_by(SavedView.name, SavedView.id))

    def named(self, owner_id: int, name: str) -> SavedViewRow | None:
        """Return a person's view with a name, None when there is none."""
        statement = self._views().where(SavedView.owner_id == owner_id, SavedView.name == name)
        return read_one(self._connection, SavedViewRow, statement)

    def put(self, view: NewSavedView) -> None:
        """Store a view over the owner's view of the same name."""
        self.drop(view.owner_id, view.name)
        self._connection.execute(insert(SavedView).values(values(view)))

    def drop(self, owner_id: int, name: str) -> bool:
        """Delete a person's view; False when there was none."""
        statement = delete(SavedView).where(SavedView.owner_id == owner_id, SavedView.name == name)
        return change(self._connection, statement) == 1

    @staticmethod
    def _views() -> Any:
        return select(*columns(SavedView, NewSavedView), SavedView.id, Person.name.label("owner_name")).join(
            Person, Person.id == SavedView.owner_id
        )
