"""Triggers by which the database itself refuses to change or delete rows that must stay; used by the steps."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from alembic import op

_POSTGRESQL_FUNCTION = """
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END
$$
"""


def refuse(table: str, *acts: str) -> None:
    """Create triggers that refuse acts ("UPDATE", "DELETE"); repeat it after a batch step has rebuilt the table."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute(_POSTGRESQL_FUNCTION)
        for act in (*acts, *(["TRUNCATE"] if "DELETE" in acts else [])):
            each = "STATEMENT" if act == "TRUNCATE" else "ROW"
            op.execute(
                f"CREATE TRIGGER {_name(table, act)} BEFORE {act} ON {table} "
                f"FOR EACH {each} EXECUTE FUNCTION refuse_change()"
            )
        return
    for act in acts:
        op.execute(
            f"CREATE TRIGGER {_name(table, act)} BEFORE {act} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        )


def allow_once(table: str, column: str, fixed: Sequence[str]) -> None:
    """Create a trigger that refuses every update but one: an empty (NULL) column gets its value, all others stay.

    `fixed` are all other columns; none of them may hold NULL.
    """
    same = " AND ".join(f"NEW.{name} = OLD.{name}" for name in fixed)
    wrong = f"OLD.{column} IS NOT NULL OR NEW.{column} IS NULL OR NOT ({same})"
    begin = f"CREATE TRIGGER {_name(table, 'UPDATE')} BEFORE UPDATE ON {table}"
    if op.get_bind().dialect.name == "postgresql":
        op.execute(_POSTGRESQL_FUNCTION)
        op.execute(f"{begin} FOR EACH ROW WHEN ({wrong}) EXECUTE FUNCTION refuse_change()")
        return
    op.execute(f"{begin} WHEN {wrong} BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END")


def refuse_replacing(table: str) -> None:
    """Create a trigger that refuses to replace a row; call it again after a batch step has rebuilt the table.

    SQLite's ``INSERT OR REPLACE`` deletes the rows that are in the way and fires no trigger for that, unless the
    connection asks for it. On PostgreSQL ``ON CONFLICT DO UPDATE`` is an update, which `refuse` refuses. A row with one
    of the table's keys must not be put in again; an empty value equals no other.
    """
    if op.get_bind().dialect.name == "postgresql":
        return
    inspector = sa.inspect(op.get_bind())
    keys: list[Any] = [inspector.get_pk_constraint(table)["constrained_columns"]]
    keys += [key["column_names"] for key in inspector.get_unique_constraints(table)]
    keys += [index["column_names"] for index in inspector.get_indexes(table) if index["unique"]]
    same = " OR ".join(f"({' AND '.join(f'{name} = NEW.{name}' for name in key)})" for key in keys)
    is_there = f"EXISTS (SELECT 1 FROM {table} WHERE {same})"  # noqa: S608 - names of our own schema
    op.execute(
        f"CREATE TRIGGER {_name(table, 'REPLACE')} BEFORE INSERT ON {table} WHEN {is_there} "
        f"BEGIN SELECT RAISE(ABORT, '{table} has this row'); END"
    )


def drop_function() -> None:
    """Drop what the triggers call, once the last of their tables is gone."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION IF EXISTS refuse_change()")


def _name(table: str, act: str) -> str:
    return f"{table}_refuses_{act.lower()}"
