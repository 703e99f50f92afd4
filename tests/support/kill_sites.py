"""Where acts are killed: a folder with SQLite files, or a PostgreSQL server; each gives sites that look alike."""

import contextlib
import functools
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy.engine.interfaces import ReflectedForeignKeyConstraint

from alertreview.settings import Settings
from core.vocabulary import Decision
from db.connection.engine import parse_url
from db.database import Database
from db.maintenance.copies import PROGRAMS_VARIABLE
from tests.support.postgresql import connected, copy_rows, kept_database, own_database, programs, url_of
from tests.support.stored_site import StoredSite

GONE_SECONDS = 30.0
"""Within which a server has to notice that a client was killed."""


class Place(Protocol):
    """Returns sites, each its own, and looks after what a killed process leaves behind."""

    folder: Path
    """Empty; for what an act writes beside the database."""

    n_voters: int
    """Readers who vote from processes of their own while an act is killed."""

    def site(self, revision: str = "head") -> str:
        """URL of a new site with one published run and an open study, in the schema of that revision."""

    def demonstration(self) -> Settings:
        """Copy of a demonstration with records, runs and an open study."""

    def settle(self, url: str) -> None:
        """Wait until nothing of a killed process is at work on the database."""

    def require_sound(self, database: Database) -> None:
        """Fail if the database has a half row."""


class Files:
    """Sites in SQLite files below a folder."""

    def __init__(self, folder: Path, demo: Path | None, n_voters: int) -> None:
        self.folder = folder
        self.n_voters = n_voters
        self._demo = demo
        self._n_sites = 0

    def site(self, revision: str = "head") -> str:
        """URL of a new site; the file is as it was before anything happened."""
        self._n_sites += 1
        file = self.folder / f"site-{self._n_sites}.db"
        file.write_bytes(_file_of_site(revision))
        return f"sqlite:///{file}"

    def demonstration(self) -> Settings:
        """Copy the home with the file in it."""
        home = _copied(self._demo, self.folder)
        return Settings(home, f"sqlite:///{home / 'alertreview.db'}")

    def settle(self, url: str) -> None:
        """Return at once: what held the file ended with the process."""

    def require_sound(self, database: Database) -> None:
        """Have SQLite look at every page and every reference."""
        with database.engine.connect() as connection, connection.begin():
            assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
            assert connection.exec_driver_sql("PRAGMA foreign_key_check").first() is None


class Server:
    """Sites in databases of a PostgreSQL server; they are dropped when `stack` is closed."""

    def __init__(self, folder: Path, demo: Path | None, n_voters: int, stack: contextlib.ExitStack) -> None:
        self.folder = folder
        self.n_voters = n_voters
        self._demo = demo
        self._stack = stack

    def site(self, revision: str = "head") -> str:
        """URL of a new site."""
        return self._stack.enter_context(own_database(source=_database_of_site(revision)))

    def demonstration(self) -> Settings:
        """Copy the home, and the rows of its file to the server."""
        home = _copied(self._demo, self.folder)
        (home / "alertreview.db").unlink()
        return Settings(home, self._stack.enter_context(own_database(source=_database_of_demo(self._demo))))

    def settle(self, url: str) -> None:
        """Wait for the server's processes that served the killed one: they end their statement first."""
        asked = sa.text("SELECT count(*) FROM pg_stat_activity WHERE datname = :name")
        deadline = time.monotonic() + GONE_SECONDS
        while time.monotonic() < deadline:
            with connected() as connection:
                if connection.execute(asked, {"name": parse_url(url).database}).scalar_one() == 0:
                    return
            time.sleep(0.01)
        raise AssertionError(f"the server still serves a killed client after {GONE_SECONDS:g} s")

    def require_sound(self, database: Database) -> None:
        """Look at every reference anew: the server itself checks a row only when it is written."""
        with database.engine.connect().execution_options(readonly=True) as connection, connection.begin():
            for (_, table), keys in sa.inspect(connection).get_multi_foreign_keys().items():
                for key in keys:
                    assert not _dangles(connection, table, key), f"{table} points to rows of {key['referred_table']}"


@contextlib.contextmanager
def place(kind: str, folder: Path, demo: Path | None = None, n_voters: int = 0) -> Iterator[Place]:
    """A place of a kind, "sqlite" or "postgresql"; its databases are gone afterwards.

    Parameters
    ----------
    kind : str
    folder : Path
        Empty.
    demo : Path or None
        Home of a demonstration on SQLite, which is not changed; for acts on whole sites.
    n_voters : int
        Readers who vote meanwhile.
    """
    with contextlib.ExitStack() as stack:
        if kind == "sqlite":
            yield Files(folder, demo, n_voters)
            return
        former = os.environ.get(PROGRAMS_VARIABLE)
        os.environ[PROGRAMS_VARIABLE] = programs()
        try:
            yield Server(folder, demo, n_voters, stack)
        finally:
            os.environ.pop(PROGRAMS_VARIABLE) if former is None else os.environ.update({PROGRAMS_VARIABLE: former})


def _copied(demo: Path | None, folder: Path) -> Path:
    if demo is None:
        raise LookupError("this place has no demonstration")
    return Path(shutil.copytree(demo, folder / "home"))


def _dangles(connection: sa.Connection, table: str, key: ReflectedForeignKeyConstraint) -> bool:
    """Return whether a row of a table points to a row that is not there."""
    own = sa.table(table, *map(sa.column, key["constrained_columns"])).alias("own")
    other = sa.table(key["referred_table"], *map(sa.column, key["referred_columns"])).alias("other")
    pairs = list(zip(own.c, other.c, strict=True))
    found = sa.select(sa.literal(1)).select_from(other).where(*(left == right for left, right in pairs))
    orphans = (
        sa.select(sa.literal(1)).select_from(own).where(*(left.is_not(None) for left, _ in pairs), ~found.exists())
    )
    return connection.execute(orphans.limit(1)).first() is not None


@functools.cache
def _file_of_site(revision: str) -> bytes:
    """The file of such a site, made once."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "site.db"
        _fill(f"sqlite:///{file}", revision)
        assert not file.with_name("site.db-wal").exists(), "rows stand outside of the file"
        return file.read_bytes()


@functools.cache
def _database_of_site(revision: str) -> str:
    """Name of a database with such a site, made once."""
    name = kept_database(f"site_{revision}")
    _fill(url_of(name), revision)
    return name


@functools.cache
def _database_of_demo(demo: Path | None) -> str:
    """Name of a database with the rows of the demonstration in a home, made once."""
    if demo is None:
        raise LookupError("this place has no demonstration")
    name = kept_database("demonstration")
    with Database(url_of(name)) as database:
        database.upgrade()
        copy_rows(f"sqlite:///{demo / 'alertreview.db'}", database)
    return name


def _fill(url: str, revision: str) -> None:
    with Database(url) as database:
        database.upgrade()
        site = StoredSite(database)
        site.publish([site.alert(row, 0, row + 1, Decision.OMISSION) for row in range(12)])
        site.study(40, 3)
        if revision != "head":
            database.downgrade(revision)
