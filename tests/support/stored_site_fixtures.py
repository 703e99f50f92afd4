"""Fixtures of the store: a database with tables for each test, copied from a template so that it costs milliseconds.

Tests run on SQLite, and once more on PostgreSQL (`tests.support.postgresql`). Tests that ask for `database_file` or
`sqlite_database` are about SQLite alone.
"""

import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from db.database import Database
from tests.support.postgresql import lent_database, own_database
from tests.support.stored_site import StoredSite


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


@pytest.fixture(params=["sqlite", "postgresql"])
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
    with lent_database() as url, Database(url) as opened:
        yield opened


@pytest.fixture
def database_of_release_0_1_0(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database as release 0.1.0 made it, without rows: its own statements, written down when the steps before went.

    Parametrized with "sqlite" or "postgresql".
    """
    script = (Path(__file__).parent / "release_0_1_0" / f"{request.param}.sql").read_text(encoding="utf-8")
    if request.param == "sqlite":
        with contextlib.closing(sqlite3.connect(tmp_path / "released.db")) as connection:
            connection.executescript(script)
        with Database(f"sqlite:///{tmp_path / 'released.db'}") as opened:
            yield opened
    else:
        with own_database(empty=True) as url, Database(url) as opened:
            with opened.engine.connect() as connection, connection.begin():
                connection.exec_driver_sql(script.replace("%", "%%"))
            yield opened


def _do_not_wait_for_the_disk(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA synchronous = OFF")
