"""A server that goes away, is busy, foreign or newer: a plain message, and nothing half-written."""

import pytest
import sqlalchemy as sa

from core.errors import DatabaseUnavailableError, ForeignDatabaseError
from core.vocabulary import Role
from db.connection import engine
from db.connection.engine import parse_url
from db.database import Database
from tests.db.test_faults import refused, vote
from tests.support.postgresql import connected, own_database
from tests.support.stored_site import EPOCH, StoredSite

WRITER_LOCK = f"SELECT pg_advisory_lock({engine._WRITER_KEY})"


def votes(database: Database) -> int:
    with database.read() as uow:
        return len(uow.judgments.votes(uow.studies.by_slug("demo").id))


@pytest.mark.checklist("C5")
def test_a_server_that_ends_the_connection_in_mid_save_keeps_nothing_and_the_next_save_goes_on(
    postgresql_database: Database,
) -> None:
    readers = StoredSite(postgresql_database).study(6, 3)
    name = parse_url(postgresql_database.url).database

    def save() -> None:
        with postgresql_database.write() as uow:
            uow.people.add("Ada", Role.REVIEWER, created_at=EPOCH)
            with connected() as other:
                ended = sa.text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name")
                other.execute(ended, {"name": name})
            uow.commit()

    refused(save, DatabaseUnavailableError, "went away. Nothing of this change was kept")
    with postgresql_database.read() as uow:
        assert "Ada" not in {person.name for person in uow.people.all()}
    vote(postgresql_database, readers[0])
    assert votes(postgresql_database) == 1


@pytest.mark.checklist("C5")
def test_a_server_whose_writers_are_held_up_says_so_and_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "LOCK_WAIT_SECONDS", 1.0)
    with own_database() as url, Database(url) as database:
        readers = StoredSite(database).study(6, 3)
        other = sa.create_engine(parse_url(url), isolation_level="AUTOCOMMIT")
        with other.connect() as holder:
            holder.exec_driver_sql(WRITER_LOCK)
            refused(lambda: vote(database, readers[0]), DatabaseUnavailableError, "busy for too long. Nothing")
        other.dispose()
        assert votes(database) == 0
        vote(database, readers[0])
        assert votes(database) == 1


@pytest.mark.checklist("C5")
def test_a_foreign_or_newer_database_of_a_server_is_left_as_it_is(postgresql_database: Database) -> None:
    with own_database(empty=True) as url, Database(url) as foreign:
        with foreign.engine.begin() as connection:
            connection.exec_driver_sql("CREATE TABLE patient (id integer)")
        for act in (foreign.upgrade, foreign.check):
            refused(act, ForeignDatabaseError, "belongs to another program")
        with foreign.engine.connect().execution_options(readonly=True) as connection:
            assert sa.inspect(connection).get_table_names() == ["patient"]
    with postgresql_database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    for act in (postgresql_database.upgrade, postgresql_database.check):
        refused(act, ForeignDatabaseError, "schema 9999.*newer version")
