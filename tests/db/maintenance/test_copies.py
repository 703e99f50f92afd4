"""Databases in which copies are tried: gone afterwards, also after a program that was killed."""

from pathlib import Path

import pytest
import sqlalchemy as sa

from core.errors import StoreError
from db.connection.engine import parse_url
from db.database import Database
from db.maintenance.copies import POSTGRESQL_COPY, PROGRAMS_VARIABLE, read_copy, scratch_database, write_copy
from tests.support import postgresql


@pytest.fixture
def copy(postgresql_database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(PROGRAMS_VARIABLE, postgresql.programs())
    write_copy(postgresql_database.url, tmp_path / POSTGRESQL_COPY)
    return tmp_path / POSTGRESQL_COPY


def names_on_server() -> set[str]:
    with postgresql.connected() as connection:
        return set(connection.exec_driver_sql("SELECT datname FROM pg_database").scalars())


def lose_the_client(of: str) -> None:
    """End the sessions that hold a lock in a database, as the server does when their client was killed."""
    ended = "SELECT pg_terminate_backend(l.pid, 5000) FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
    with postgresql.connected() as connection:
        connection.execute(sa.text(f"{ended} WHERE l.locktype = 'advisory' AND d.datname = :name"), {"name": of})


@pytest.mark.checklist("C6")
def test_a_database_that_a_killed_program_left_is_dropped_by_the_next_and_one_in_use_is_not(
    copy: Path, postgresql_database: Database, tmp_path: Path
) -> None:
    before, url = names_on_server(), postgresql_database.url
    killed = scratch_database(copy, tmp_path, url)
    left = parse_url(killed.__enter__()).database
    with scratch_database(copy, tmp_path, url):
        pass
    assert names_on_server() - before == {left}, "another program is at work in it"
    lose_the_client(str(parse_url(url).database))
    with scratch_database(copy, tmp_path, url):
        assert left not in names_on_server()
    assert names_on_server() == before
    killed.__exit__(None, None, None)


@pytest.mark.checklist("C6")
def test_a_given_database_that_a_killed_program_left_full_is_emptied_and_one_in_use_is_not(
    copy: Path, tmp_path: Path
) -> None:
    with postgresql.own_database(empty=True) as given:
        killed = scratch_database(copy, tmp_path, "", given)
        read_copy(copy, killed.__enter__())
        with (
            pytest.raises(StoreError, match="Another backup is being tried"),
            scratch_database(copy, tmp_path, "", given),
        ):
            pass
        lose_the_client(str(parse_url(given).database))
        with scratch_database(copy, tmp_path, "", given):
            read_copy(copy, given)
        killed.__exit__(None, None, None)
        read_copy(copy, given)
        with pytest.raises(StoreError, match="has tables already"), scratch_database(copy, tmp_path, "", given):
            pass
