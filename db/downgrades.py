"""Takes a database back to an older schema, and refuses where rows or values would be lost.

What would be lost is found by trying it: down, up again, and a look whether everything is as it was. A column that the
way up fills again from what is there is no loss.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import command
from sqlalchemy.engine import Connection, Engine

from core.errors import ForeignDatabaseError, RefusedError
from db import schema

Layout = dict[str, frozenset[str]]
"""Columns of each table."""

_OWN = "alembic_version"
"""Alembic's own table; it is empty at the very bottom."""


def downgrade(engine: Engine, name: str, revision: str, *, discard: bool = False) -> list[str]:
    """Take the schema back, step by step, in one transaction: all of them or none.

    Parameters
    ----------
    engine : Engine
        Of the database.
    name : str
        What messages call the database.
    revision : str
        The one to end at.
    discard : bool
        Go on although something is lost.

    Returns
    -------
    list of str
        What was lost: "table triage_note (3 rows)".

    Raises
    ------
    RefusedError
        If something would be lost and `discard` is false; it names every table and column.
    ForeignDatabaseError
        If the database is not this program's, or there is no such step below its own.
    """
    with engine.connect() as connection, schema.foreign_keys_at_rest(connection), connection.begin():
        _require_below(connection, name, revision)
        before = _layout(connection)
        lost = _losses(connection, before, revision)
        if lost and not discard:
            raise RefusedError(
                f"Going back to schema {revision} would lose {', '.join(lost)}. Make a backup, then repeat it with "
                "--discard, or restore a backup of that schema."
            )
        command.downgrade(schema.alembic_config(connection), revision)
        schema.refuse_dangling(connection, name)
    return lost


def _require_below(connection: Connection, name: str, revision: str) -> None:
    state = schema.look(connection)
    schema.refuse_foreign(state, name)
    below = [step for step in schema.revisions() if state.revision is not None and step <= state.revision]
    if revision not in below:
        known = ", ".join(below) or "none, because it is empty"
        raise ForeignDatabaseError(
            f"The database {name} has schema {state.revision or 'none'} and cannot go back to {revision!r}. "
            f"It can go back to: {known}."
        )


def _layout(connection: Connection) -> Layout:
    inspector = sa.inspect(connection)
    return {
        table: frozenset(column["name"] for column in inspector.get_columns(table))
        for table in inspector.get_table_names()
    }


def _losses(connection: Connection, before: Layout, revision: str) -> list[str]:
    """Go down and up again in a transaction that is undone, and name what differs from before."""
    counts = {table: _count(connection, table) for table in before}
    trial = connection.begin_nested()
    command.downgrade(schema.alembic_config(connection), revision)
    after = _layout(connection)
    fewer = {table: counts[table] - (_count(connection, table) if table in after else 0) for table in before}
    command.upgrade(schema.alembic_config(connection), schema.head())
    gone = {table: sorted(before[table] - after[table]) for table in sorted(before) if table in after}
    again = {table: _digests(connection, table, columns) for table, columns in gone.items()}
    trial.rollback()
    lost = [
        f"{n} {'row' if n == 1 else 'rows'} of table {table}"
        for table, n in sorted(fewer.items())
        if n and table != _OWN
    ]
    for table, columns in gone.items():
        kept = _digests(connection, table, columns)
        if not fewer[table]:
            lost += [f"the values of column {table}.{name}" for name in columns if kept[name] != again[table][name]]
    return lost


def _digests(connection: Connection, table: str, columns: Sequence[str]) -> dict[str, str]:
    """Hash columns of a table, in the order of its primary key."""
    if not columns:
        return {}
    keys = sa.inspect(connection).get_pk_constraint(table)["constrained_columns"]
    statement: Any = sa.select(*(sa.column(name) for name in columns)).select_from(sa.table(table))
    digests = {name: hashlib.sha256() for name in columns}
    for row in connection.execute(statement.order_by(*(sa.column(key) for key in keys))):
        for name, value in zip(columns, row, strict=True):
            digests[name].update(f"{value!r};".encode())
    return {name: digest.hexdigest() for name, digest in digests.items()}


def _count(connection: Connection, table: str) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(sa.table(table))).scalar_one())
