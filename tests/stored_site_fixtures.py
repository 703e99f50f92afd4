"""Databases for tests: an empty one with tables, copied from a template so that a test costs milliseconds."""

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from db.session import Database
from tests.stored_site import StoredSite


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file with the tables of this version."""
    file = tmp_path_factory.mktemp("template") / "site.db"
    with Database(f"sqlite:///{file}") as database:
        database.upgrade()
    return file


@pytest.fixture
def database_file(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(template, tmp_path / "site.db"))


@pytest.fixture
def database(database_file: Path) -> Iterator[Database]:
    with Database(f"sqlite:///{database_file}") as opened:
        sa.event.listen(opened.engine, "connect", _do_not_wait_for_the_disk)
        yield opened


def _do_not_wait_for_the_disk(connection: sqlite3.Connection, _record: object) -> None:
    connection.execute("PRAGMA synchronous = OFF")


@pytest.fixture
def site(database: Database) -> StoredSite:
    return StoredSite(database)
