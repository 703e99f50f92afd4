"""Table of the people who use the dashboard; nobody is ever deleted."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from core.vocabulary import Role
from db.models.base import Base
from db.models.types import words


class Person(Base):
    """Somebody with a role; leaves by being deactivated, because judgments keep their reader."""

    __tablename__ = "person"

    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(unique=True)
    """Name for people; nobody has another's."""
    role: Mapped[Role] = mapped_column(words(Role, "role"))
    """What the person may do."""
    simulated: Mapped[bool]
    active: Mapped[bool]
    """False: may no longer sign in or judge."""
    created_at: Mapped[datetime]
    all_units: Mapped[bool] = mapped_column(server_default=sa.true())
    """False: only patients of the units in `UnitScope`; without a row there, of none."""
