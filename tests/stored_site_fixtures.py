"""Fixtures of the store: a database with tables for each test, copied from a template so that it costs milliseconds.

Tests run on SQLite, and once more on PostgreSQL where ALERTREVIEW_TEST_POSTGRESQL holds the URL of a server on which
the tests may make databases. Tests that ask for `database_file` or `sqlite_database` are about SQLite alone.
"""

import itertools
import os
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from db.engine import parse_url
from db.session import Database
from tests.stored_site import StoredSite

POSTGRESQL = os.environ.get("ALERTREVIEW_TEST_POSTGRESQL", "")
_numbers = itertools.count()


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with the tables of this version."""
    file = tmp_path_factory.mktemp("template") / "site.db"
    with Database(f"sqlite:///{file}") as database:
        database.upgrade()
    return file


@pytest.fixture
def database_file(template: Path, tmp_path: Path) -> Path:
    """An SQLite file of the test's own."""
    return Path(shutil.copy(template, tmp_path / "site.db"))


@pytest.fixture
def sqlite_database(database_file: Path) -> Iterator[Database]:
    """An SQLite database of the test's own."""
    with Database(f"sqlite:///{database_file}") as opened:
        sa.event.listen(opened.engine, "connect", _do_not_wait_for_the_disk)
        yield opened


@pytest.fixture(params=["sqlite", "postgresql"] if POSTGRESQL else ["sqlite"])
def database(request: pytest.FixtureRequest) -> Database:
    """A database of the test's own, of each kind there is."""
    database: Database = request.getfixturevalue(f"{request.param}_database")
    return database


@pytest.fixture
def site(database: Database) -> StoredSite:
    """A small import with tasks."""
    return StoredSite(database)


@pytest.fixture
def postgresql_database() -> Iterator[Database]:
    """A database of the test's own on the PostgreSQL server."""
    server = sa.create_engine(parse_url(POSTGRESQL), isolation_level="AUTOCOMMIT")
    template, name = f"alertreview_template_{os.getpid()}", f"alertreview_test_{os.getpid()}_{next(_numbers)}"
    with server.connect() as connection:
        if not connection.execute(sa.text("SELECT 1 FROM pg_database WHERE datname = :n"), {"n": template}).first():
            connection.exec_driver_sql(f"CREATE DATABASE {template}")
            with Database(_url(template)) as database:
                database.upgrade()
        connection.exec_driver_sql(f"CREATE DATABASE {name} TEMPLATE {template}")
    with Database(_url(name)) as database:
        yield database
    with server.connect() as connection:
        connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")
    server.dispose()


def _url(name: str) -> str:
    return parse_url(POSTGRESQL).set(database=name).render_as_string(hide_password=False)


def _do_not_wait_for_the_disk(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA synchronous = OFF")
