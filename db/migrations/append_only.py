"""Triggers by which the database itself refuses to change or delete rows that must stay."""

from collections.abc import Sequence
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


def guard(connection: Connection, table: str) -> None:
    """Create the triggers of a guarded table; repeat it in a step that has rebuilt the table in a batch."""
    _refuse(connection, table, GUARDED[table])
    refuse_replacing(connection, table)
    if table == "report_signature":
        _allow_once(connection, table, "superseded_at")


def guard_all(connection: Connection) -> None:
    """Create the triggers of all guarded tables, in a new database."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text(_POSTGRESQL_FUNCTION))
    for table in GUARDED:
        guard(connection, table)


def _refuse(connection: Connection, table: str, acts: Sequence[str]) -> None:
    if connection.dialect.name == "postgresql":
        for act in (*acts, *(["TRUNCATE"] if "DELETE" in acts else [])):
            each = "STATEMENT" if act == "TRUNCATE" else "ROW"
            connection.exec_driver_sql(
                f"CREATE TRIGGER {_name(table, act)} BEFORE {act} ON {table} "
                f"FOR EACH {each} EXECUTE FUNCTION refuse_change()"
            )
        return
    for act in acts:
        connection.exec_driver_sql(
            f"CREATE TRIGGER {_name(table, act)} BEFORE {act} ON {table} "
            f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
        )


def _allow_once(connection: Connection, table: str, column: str) -> None:
    """Refuse every update but one: an empty (NULL) column gets its value, all others, of which none is NULL, stay."""
    others = [found["name"] for found in sa.inspect(connection).get_columns(table) if found["name"] != column]
    same = " AND ".join(f"NEW.{name} = OLD.{name}" for name in others)
    wrong = f"OLD.{column} IS NOT NULL OR NEW.{column} IS NULL OR NOT ({same})"
    begin = f"CREATE TRIGGER {_name(table, 'UPDATE')} BEFORE UPDATE ON {table}"
    if connection.dialect.name == "postgresql":
        connection.execute(sa.text(f"{begin} FOR EACH ROW WHEN ({wrong}) EXECUTE FUNCTION refuse_change()"))
    else:
        connection.execute(sa.text(f"{begin} WHEN {wrong} BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"))


def refuse_replacing(connection: Connection, table: str) -> None:
    """Create a trigger that refuses to replace a row.

    SQLite's ``INSERT OR REPLACE`` deletes the rows that are in the way and fires no trigger for that, unless the
    connection asks for it. On PostgreSQL ``ON CONFLICT DO UPDATE`` is an update, which `refuse` refuses. A row with one
    of the table's keys must not be put in again; an empty value equals no other.
    """
    if connection.dialect.name == "postgresql":
        return
    inspector = sa.inspect(connection)
    keys: list[Any] = [inspector.get_pk_constraint(table)["constrained_columns"]]
    keys += [key["column_names"] for key in inspector.get_unique_constraints(table)]
    keys += [index["column_names"] for index in inspector.get_indexes(table) if index["unique"]]
    same = " OR ".join(f"({' AND '.join(f'{name} = NEW.{name}' for name in key)})" for key in keys)
    is_there = f"EXISTS (SELECT 1 FROM {table} WHERE {same})"  # noqa: S608 - names of our own schema
    connection.exec_driver_sql(
        f"CREATE TRIGGER {_name(table, 'REPLACE')} BEFORE INSERT ON {table} WHEN {is_there} "
        f"BEGIN SELECT RAISE(ABORT, '{table} has this row'); END"
    )


def _name(table: str, act: str) -> str:
    return f"{table}_refuses_{act.lower()}"
