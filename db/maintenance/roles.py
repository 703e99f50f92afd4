"""Rights of an account that works with a PostgreSQL database and owns nothing of it: no more than the program needs."""

from sqlalchemy.engine import Connection

from core.errors import SettingsError
from db.connection.failures import readable_errors
from db.database import Database

_GUARDS = """
SELECT relname, max(CASE WHEN tgname LIKE '%%refuses_update' AND tgqual IS NULL THEN 1 ELSE 0 END) AS keeps,
       max(CASE WHEN tgname LIKE '%%refuses_delete' THEN 1 ELSE 0 END) AS stays
FROM pg_class LEFT JOIN pg_trigger ON tgrelid = pg_class.oid
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
GROUP BY relname ORDER BY relname
"""
_READ_ONLY = {"alembic_version"}


def grant(database: Database, role: str) -> dict[str, str]:
    """Grant an account the rights to work with the database, revoke all others, and return its rights by table.

    Tables whose triggers refuse a change get no right to it either: two locks on the audit trail, of which the second
    needs the owner's account to open. The database was opened as the owner of its tables. Raise SettingsError if it is
    a file, or there is no such account, or it rules over the server and needs no rights.
    """
    if database.engine.dialect.name != "postgresql":
        raise SettingsError(
            "Roles are those of a PostgreSQL server. What may be done to an SQLite file is decided by its permissions."
        )
    with readable_errors(), database.engine.connect() as connection, connection.begin():
        _require_role(connection, role)
        quote = connection.dialect.identifier_preparer.quote
        name, base = quote(role), quote(str(database.engine.url.database))
        connection.exec_driver_sql(f"REVOKE ALL ON DATABASE {base} FROM PUBLIC")
        connection.exec_driver_sql(f"GRANT CONNECT ON DATABASE {base} TO {name}")
        connection.exec_driver_sql("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        connection.exec_driver_sql(f"GRANT USAGE ON SCHEMA public TO {name}")
        rights = {
            table: _rights(table, keeps=bool(keeps), stays=bool(stays))
            for table, keeps, stays in connection.exec_driver_sql(_GUARDS)
        }
        for table, right in rights.items():
            connection.exec_driver_sql(f"REVOKE ALL ON {quote(table)} FROM {name}, PUBLIC")
            connection.exec_driver_sql(f"GRANT {right} ON {quote(table)} TO {name}")
        connection.exec_driver_sql(f"GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {name}")
    return rights


def _rights(table: str, *, keeps: bool, stays: bool) -> str:
    if table in _READ_ONLY:
        return "SELECT"
    return ", ".join(["SELECT", "INSERT", *([] if keeps else ["UPDATE"]), *([] if stays else ["DELETE"])])


def _require_role(connection: Connection, role: str) -> None:
    found = connection.exec_driver_sql("SELECT rolsuper FROM pg_roles WHERE rolname = %s", (role,)).scalar_one_or_none()
    if found is None:
        raise SettingsError(
            f"The server has no role '{role}'. Make it first, as the server's administrator: "
            f"CREATE ROLE {role} LOGIN PASSWORD '...'"
        )
    if found:
        raise SettingsError(f"The role '{role}' rules over the server, so no right can be kept from it. Name another.")
