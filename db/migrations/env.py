"""Tells Alembic how to run the steps: on the connection it is handed, all in one transaction."""

from typing import Literal

import sqlalchemy as sa
from alembic import context
from alembic.autogenerate.api import AutogenContext

from core.errors import SettingsError
from db.models import Record
from db.models.types import AnswerCode, CompressedVector, UtcDateTime


def render_plainly(kind: str, item: object, autogenerate: AutogenContext) -> str | Literal[False]:
    """Write our own column types as plain ones, so that an old step never depends on today's code."""
    if isinstance(item, UtcDateTime):
        return "sa.DateTime(timezone=True)"
    if isinstance(item, CompressedVector):
        return "sa.LargeBinary()"
    if isinstance(item, AnswerCode):
        return "sa.SmallInteger()"
    return False


def run() -> None:
    """Run the steps on ``config.attributes["connection"]``."""
    connection: sa.Connection | None = context.config.attributes.get("connection")
    if connection is None:
        raise SettingsError("The steps of the schema are run by 'alertreview init', not by the alembic command.")
    context.configure(
        connection=connection,
        target_metadata=Record.metadata,
        render_as_batch=True,
        transactional_ddl=True,
        compare_type=True,
        render_item=render_plainly,
    )
    with context.begin_transaction():
        context.run_migrations()


run()
