"""What all tables share: the base class and the rule by which constraints and indexes are named."""

from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase

from db.models.types import UtcDateTime

NAMES = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
}

JsonObject = dict[str, Any]


class Base(DeclarativeBase):
    """Base of all tables."""

    metadata = sa.MetaData(naming_convention=NAMES)
    type_annotation_map = {  # noqa: RUF012 - read by SQLAlchemy as it is
        datetime: UtcDateTime(),
        str: sa.Text(),
        JsonObject: sa.JSON(),
    }
