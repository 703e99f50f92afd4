"""Triggers by which the database itself refuses to change or delete rows that must stay; used by the steps."""

from alembic import op

_POSTGRESQL_FUNCTION = """
CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only', TG_TABLE_NAME USING ERRCODE = 'integrity_constraint_violation';
END
$$
"""


def refuse(table: str, *acts: str) -> None:
    """Create triggers that refuse acts on a table; call it again after a batch step has rebuilt the table.

    Parameters
    ----------
    table : str
        Name of the table.
    *acts : str
        "UPDATE", "DELETE".
    """
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


def drop_function() -> None:
    """Drop what the triggers call, once the last of their tables is gone."""
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION IF EXISTS refuse_change()")


def _name(table: str, act: str) -> str:
    return f"{table}_refuses_{act.lower()}"
