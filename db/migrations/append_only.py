"""Triggers by which the database itself refuses to change or delete rows that must stay."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

GUARDED = {
    "adjudication": ("UPDATE", "DELETE"),
    "audit_event": ("UPDATE", "DELETE"),
    "judgment": ("UPDATE", "DELETE"),
    "person": ("DELETE",),
    "report_signature": ("DELETE",),
    "rubric": ("UPDATE", "DELETE"),
    "triage": ("DELETE",),
    "triage_act": ("UPDATE", "DELETE"),
    "triage_note": ("UPDATE", "DELETE"),
}
"""What is refused to rows of each guarded table. None of them is replaced either."""
_POSTGRESQL_FUNCTION = """
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END
$$
"""


def guard_all(connection: Connection) -> None:
    """Create the triggers of all guarded tables, in a new database."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text(_POSTGRESQL_FUNCTION))
    for table in GUARDED:
        guard(connection, table)


def guard(connection: Connection, table: str) -> None:
    """Create the triggers of a guarded table, also in a step that has changed it: SQLite rebuilds it without them."""
    for act in GUARDED[table]:
        _refuse(connection, table, act)
    if connection.dialect.name == "postgresql" and "DELETE" in GUARDED[table]:
        _refuse(connection, table, "TRUNCATE")
    refuse_replacing(connection, table)
    if table == "report_signature":
        _refuse(connection, table, "UPDATE", _but_filling_once(connection, table, "superseded_at"))


def _but_filling_once(connection: Connection, table: str, column: str) -> str:
    """Return what an update breaks unless it fills an empty (NULL) column, and leaves all others, none NULL, alone."""
    others = [found["name"] for found in sa.inspect(connection).get_columns(table) if found["name"] != column]
    same = " AND ".join(f"NEW.{name} = OLD.{name}" for name in others)
    return f"OLD.{column} IS NOT NULL OR NEW.{column} IS NULL OR NOT ({same})"


def refuse_replacing(connection: Connection, table: str) -> None:
    """Create a trigger that refuses to replace a row.

    SQLite's ``INSERT OR REPLACE`` deletes the rows that are in the way and fires no trigger for that, unless the
    connection asks for it. On PostgreSQL ``ON CONFLICT DO UPDATE`` is an update, which is refused as such. A row with
    one of the table's keys must not be put in again; an empty value equals no other.
    """
    if connection.dialect.name == "postgresql":
        return
    inspector = sa.inspect(connection)
    keys: list[Any] = [inspector.get_pk_constraint(table)["constrained_columns"]]
    keys += [key["column_names"] for key in inspector.get_unique_constraints(table)]
    keys += [index["column_names"] for index in inspector.get_indexes(table) if index["unique"]]
    same = " OR ".join(f"({' AND '.join(f'{name} = NEW.{name}' for name in key)})" for key in keys)
    is_there = f"EXISTS (SELECT 1 FROM {table} WHERE {same})"  # noqa: S608 - names of our own schema
    _refuse(connection, table, "REPLACE", is_there)


def _refuse(connection: Connection, table: str, act: str, when: str = "") -> None:
    """Create a trigger, over a former one of its name, that refuses an act to rows of which a condition holds."""
    name, condition = f"{table}_refuses_{act.lower()}", f"WHEN ({when})" if when else ""
    if connection.dialect.name == "postgresql":
        each = "STATEMENT" if act == "TRUNCATE" else "ROW"
        statement = (
            f"CREATE OR REPLACE TRIGGER {name} BEFORE {act} ON {table} "
            f"FOR EACH {each} {condition} EXECUTE FUNCTION refuse_change()"
        )
    else:
        event, said = ("INSERT", "has this row") if act == "REPLACE" else (act, "is append-only")
        connection.execute(sa.text(f"DROP TRIGGER IF EXISTS {name}"))
        statement = (
            f"CREATE TRIGGER {name} BEFORE {event} ON {table} {condition} "
            f"BEGIN SELECT RAISE(ABORT, '{table} {said}'); END"
        )
    connection.execute(sa.text(statement))
