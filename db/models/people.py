"""Table of the people who use the dashboard; nobody is ever deleted."""

from datetime import datetime

import sqlalchemy as sa

from core.vocabulary import PersonId, Role
from db.models.base import UNSAVED, Column, Record, column


class Person(Record):
    """Somebody with one role or several; leaves by being deactivated, because judgments keep their reader."""

    __tablename__ = "person"

    id: Column[PersonId] = column(primary_key=True, default=UNSAVED)
    name: Column[str] = column(unique=True)
    """Name for people; nobody has another's."""
    role: Column[Role]
    """What the person may do; with several roles, the one named first."""
    further_roles: Column[str] = column(sa.Text, server_default="", default="")
    """Roles held besides, as words with a space between."""
    simulated: Column[bool] = column(default=False)
    active: Column[bool] = column(default=True)
    """False: may no longer sign in or judge."""
    created_at: Column[datetime]
    all_units: Column[bool] = column(server_default=sa.true(), default=True)
    """False: only patients of the units in `UnitScope`; without a row there, of none."""

    @property
    def roles(self) -> frozenset[Role]:
        """Every role of the person, whose rights add up."""
        return frozenset((self.role, *map(Role, self.further_roles.split())))
