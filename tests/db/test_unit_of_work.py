"""Units of work: kept whole by a commit and otherwise never there; readers and writers do not stand in the way."""

import gc
import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa

from core.errors import ConflictError, DatabaseUnavailableError, RefusedError, StoreError
from core.vocabulary import Role
from db.connection import engine, failures
from db.connection.engine import poll
from db.database import Database
from db.models import Person
from db.unit_of_work import UnitOfWork
from tests.support.stored_site import EPOCH


def names(database: Database) -> list[str]:
    with database.read() as uow:
        return [person.name for person in uow.people.all()]


def add_people(database: Database, n: int) -> None:
    with database.write() as uow:
        for number in range(n):
            uow.people.add(f"Person {number}", Role.REVIEWER, created_at=EPOCH)
        uow.commit()


def add_people_named(database: Database, name: str) -> None:
    with database.write() as uow:
        uow.people.add(name, Role.REVIEWER, created_at=EPOCH)
        uow.commit()


def test_left_without_commit_nothing_happened(database: Database) -> None:
    with database.write() as uow:
        uow.people.add("Ada", Role.REVIEWER, created_at=EPOCH)
    assert names(database) == []


def test_left_by_an_error_nothing_happened(database: Database) -> None:
    with pytest.raises(ZeroDivisionError), database.write() as uow:  # noqa: PT012
        uow.people.add("Ada", Role.REVIEWER, created_at=EPOCH)
        raise ZeroDivisionError
    assert names(database) == []


def test_a_commit_keeps_everything(database: Database) -> None:
    with database.write() as uow:
        uow.people.add("Ada", Role.REVIEWER, created_at=EPOCH)
        uow.people.add("Emmy", Role.REVIEWER, created_at=EPOCH)
        uow.commit()
    assert names(database) == ["Ada", "Emmy"]


def test_a_reading_unit_of_work_keeps_nothing_and_cannot_write(database: Database) -> None:
    with database.read() as uow, pytest.raises(StoreError, match=r"begin it with write\(\)"):
        uow.commit()
    with pytest.raises(DatabaseUnavailableError, match="read-only"), database.read() as uow:
        uow.people.add("Ada", Role.REVIEWER, created_at=EPOCH)
    with database.write() as uow:
        uow.people.add("Ada", Role.REVIEWER, created_at=EPOCH)
        uow.commit()
    assert names(database) == ["Ada"]


def test_a_reader_sees_one_state_while_a_writer_goes_on(database: Database) -> None:
    with database.read() as reader:
        with database.write() as writer:
            writer.people.add("Ada", Role.REVIEWER, created_at=EPOCH)
            writer.commit()
        assert reader.people.all() == []
    assert names(database) == ["Ada"]


def test_a_reader_does_not_wait_for_a_writer(database: Database) -> None:
    with database.write() as writer:
        writer.people.add("Ada", Role.REVIEWER, created_at=EPOCH)
        # The writer ends after the reader: one that waited would wait until it is refused.
        assert names(database) == []


def test_a_second_writer_waits_for_the_first_and_sees_what_it_wrote(database: Database) -> None:
    seen: list[list[str]] = []

    def second() -> None:
        with database.write() as uow:
            seen.append([person.name for person in uow.people.all()])

    with database.write() as first:
        thread = threading.Thread(target=second)
        thread.start()
        time.sleep(0.05)
        first.people.add("Ada", Role.REVIEWER, created_at=EPOCH)
        first.commit()
    thread.join()
    assert seen == [["Ada"]]


def test_a_refused_commit_leaves_no_row_and_no_lock(sqlite_database: Database) -> None:
    with pytest.raises(ConflictError), sqlite_database.write() as uow:  # noqa: PT012
        uow._connection.execute(sa.text("PRAGMA defer_foreign_keys = ON"))
        uow._connection.execute(sa.text("INSERT INTO study_reader (study_id, person_id, number) VALUES (9, 9, 1)"))
        uow.commit()
    with Database(str(sqlite_database.engine.url)) as other:
        add_people(other, 1)
    add_people(sqlite_database, 0)
    with sqlite_database.read() as uow:
        assert uow.studies.readers(9) == []


def test_the_settings_are_those_that_lost_no_vote(database_file: Path) -> None:
    with Database(f"sqlite:///{database_file}") as database, database.engine.connect() as connection:
        found = {
            pragma: connection.exec_driver_sql(f"PRAGMA {pragma}").scalar()
            for pragma in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout", "wal_autocheckpoint")
        }
    assert found == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 0,
        "wal_autocheckpoint": 8000,
    }


def waits_for_disk(database: Database, uow: UnitOfWork) -> bool:
    question = "SHOW synchronous_commit" if database.engine.dialect.name == "postgresql" else "PRAGMA synchronous"
    return uow._connection.execute(sa.text(question)).scalar_one() in {"on", 2}


@pytest.fixture
def patient(request: pytest.FixtureRequest, database_file: Path) -> Iterator[Database]:
    """A database that waits for the disk as a site's does, with one connection that every unit of work gets."""
    if request.param == "sqlite":
        url = f"sqlite:///{database_file}"
    else:
        url = request.getfixturevalue("postgresql_database").url
    with Database(url) as database:
        if request.param == "postgresql":
            listen = sa.event.listen
            listen(database.engine, "connect", lambda raw, _: raw.execute("SET synchronous_commit = on"))
        yield database


@pytest.mark.parametrize("patient", ["sqlite", "postgresql"], indirect=True)
def test_only_what_promises_nothing_does_not_wait_for_the_disk(patient: Database) -> None:
    def found(*, lasting: bool, ended: str) -> bool:
        with patient.write(lasting=lasting) as uow:
            waits = waits_for_disk(patient, uow)
            if ended == "committed":
                uow.commit()
            elif ended == "refused":
                with pytest.raises(ConflictError):
                    uow.people.add("Ada", Role.REVIEWER, created_at=EPOCH)
        return waits

    add_people_named(patient, "Ada")
    for ended in ("committed", "left", "refused"):
        assert not found(lasting=False, ended=ended)
        assert found(lasting=True, ended=ended), f"after one that was {ended}"
    with patient.write(lasting=False) as uow:
        uow.people.add("Emmy", Role.REVIEWER, created_at=EPOCH)
        uow.commit()
    assert names(patient) == ["Ada", "Emmy"]


def test_the_log_is_moved_into_the_file_while_others_read_and_write(database_file: Path) -> None:
    log = database_file.with_name(database_file.name + "-wal")
    with Database(f"sqlite:///{database_file}") as database:
        add_people(database, 50)
        before = database_file.read_bytes()
        with database.write() as writer:
            writer.people.add("Ada", Role.REVIEWER, created_at=EPOCH)
            database.shorten_log()
            writer.commit()
        assert database_file.read_bytes() != before
        with database.read() as reader:
            n_seen = len(reader.people.all())
            database.shorten_log()
            add_people_named(database, "late")
            database.shorten_log()
            assert len(reader.people.all()) == n_seen
        database.shorten_log()
        length = log.stat().st_size
        for number in range(20):
            add_people_named(database, f"later {number}")
            database.shorten_log()
        assert log.stat().st_size == length, "a log that was moved is written anew from its beginning"
        assert len(names(database)) == n_seen + 21


def test_a_lock_that_is_never_given_back_is_reported_in_words(
    sqlite_database: Database, database_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "LOCK_WAIT_SECONDS", 0.05)
    with sqlite3.connect(database_file, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseUnavailableError, match=r"locked for 0\.05 s.*Nothing of this change was kept"):
            sqlite_database.write().__enter__()
        other.execute("ROLLBACK")
    other.close()


def test_polling_stops_at_the_first_success_and_passes_other_errors_on() -> None:
    attempts = []

    def attempt() -> int:
        attempts.append(1)
        if len(attempts) < 4:
            error = sqlite3.OperationalError("database is locked")
            error.sqlite_errorcode = sqlite3.SQLITE_BUSY
            raise error
        return 7

    assert poll(attempt) == 7
    assert len(attempts) == 4

    def broken() -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise error

    with pytest.raises(sqlite3.OperationalError, match="I/O"):
        poll(broken)


def test_a_full_disk_is_reported_and_leaves_nothing_half_written(sqlite_database: Database) -> None:
    @sa.event.listens_for(sqlite_database.engine, "connect")
    def no_more_pages(connection: sqlite3.Connection, _record: object) -> None:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")

    sqlite_database.dispose()
    with pytest.raises(DatabaseUnavailableError, match=r"disk of the database is full.*Free some space"):
        add_people(sqlite_database, 5_000)
    assert names(sqlite_database) == []


def test_a_database_that_nobody_holds_any_more_closes_its_connections(database_file: Path) -> None:
    forgotten = Database(f"sqlite:///{database_file}")
    with forgotten.engine.connect() as connection:
        kept = connection.connection.dbapi_connection
    assert kept is not None
    del forgotten
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        kept.cursor()


def test_a_read_only_database_is_reported_in_words(database_file: Path) -> None:
    read_only = f"sqlite:///file:{database_file}?mode=ro&uri=true"
    with (
        Database(read_only) as database,
        pytest.raises(DatabaseUnavailableError, match=r"read-only.*right to write"),
    ):
        add_people(database, 1)


def test_a_damaged_database_is_reported_in_words(database_file: Path) -> None:
    content = bytearray(database_file.read_bytes())
    content[4096 * 2 :] = b"\xff" * (len(content) - 4096 * 2)
    database_file.write_bytes(content)
    with (
        Database(f"sqlite:///{database_file}") as database,
        pytest.raises(DatabaseUnavailableError, match=r"damaged.*restore the last verified backup"),
    ):
        names(database)


def test_a_lost_table_is_reported_in_words(database: Database) -> None:
    with database.engine.connect() as connection, connection.begin():
        connection.exec_driver_sql("DROP TABLE case_score")
    with pytest.raises(StoreError, match="lacks a table"), database.read() as uow:
        uow.cases.scores(1)


def test_an_error_never_repeats_what_was_in_the_row(database: Database) -> None:
    with database.write() as uow:
        uow.people.add("canary", Role.REVIEWER, created_at=EPOCH)
        uow.commit()
    with pytest.raises(ConflictError) as caught, database.write() as uow:
        uow._connection.execute(
            sa.insert(Person).values(name="canary", role=Role.VIEWER, simulated=False, active=True, created_at=EPOCH)
        )
    assert "canary" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def test_a_taken_name_and_a_person_are_refused_by_name_and_number(database: Database) -> None:
    with database.write() as uow:
        ada = uow.people.add("Ada", Role.REVIEWER, created_at=EPOCH)
        with pytest.raises(ConflictError, match="named 'Ada' already"):
            uow.people.add("Ada", Role.VIEWER, created_at=EPOCH)
        with pytest.raises(StoreError, match="no person 99"):
            uow.people.get(99)
        gone = uow.people.change(ada.id, role=Role.VIEWER, active=False)
        assert (gone.role, gone.active) == (Role.VIEWER, False)
        assert uow.people.all(active_only=True) == []
        assert uow.people.all() == [gone]


def test_nobody_can_be_deleted(database: Database) -> None:
    with database.write() as uow:
        uow.people.add("Ada", Role.REVIEWER, created_at=EPOCH)
        uow.commit()
    with pytest.raises(RefusedError, match="deactivate the person"), database.write() as uow:
        uow._connection.execute(sa.delete(Person))
    assert names(database) == ["Ada"]


def test_every_kind_of_driver_error_has_its_words() -> None:
    for words, (kind, text) in failures._BY_DRIVER_WORDS.items():
        error = failures.as_store_error(sqlite3.OperationalError(f"it says: {words.upper()}!"))
        assert type(error) is kind
        assert str(error) == text
    unknown = failures.as_store_error(sqlite3.OperationalError("canary in the coal mine"))
    assert isinstance(unknown, DatabaseUnavailableError)
    assert "OperationalError" in str(unknown)
    assert "canary" not in str(unknown)
    for state in failures._DAMAGED_STATES:
        original = psycopg.errors.lookup(state)('invalid page in block 3 of relation "base/1/2"')
        damaged = failures.as_store_error(sa.exc.DBAPIError("SELECT canary", {}, original))
        assert isinstance(damaged, DatabaseUnavailableError)
        assert "damaged or gone" in str(damaged)
    strange = failures.as_store_error(sa.exc.InvalidRequestError("canary"))
    assert "InvalidRequestError" in str(strange)
    assert "canary" not in str(strange)


@pytest.mark.checklist("C4")
def test_a_program_that_stops_waits_for_who_is_writing_and_lets_nobody_begin(database: Database) -> None:
    at_work, go_on, ended = threading.Event(), threading.Event(), []

    def write_slowly() -> None:
        with database.write() as uow:
            uow.people.add("Ada", Role.REVIEWER, created_at=EPOCH)
            at_work.set()
            go_on.wait(30)
            uow.commit()

    writer = threading.Thread(target=write_slowly)
    writer.start()
    assert at_work.wait(30)
    assert not database.finish_writing(0.01), "somebody is still at work"
    with pytest.raises(DatabaseUnavailableError, match="is being stopped, so nothing of this change was kept"):
        add_people_named(database, "Emmy")
    stopper = threading.Thread(target=lambda: ended.append(database.finish_writing(30)))
    stopper.start()
    go_on.set()
    stopper.join()
    writer.join()
    assert ended == [True]
    assert names(database) == ["Ada"], "reading goes on"


def test_a_writer_that_cannot_begin_is_not_waited_for(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError

    monkeypatch.setattr("sqlalchemy.engine.Engine.connect", refuse)
    with pytest.raises(OSError), database.write():  # noqa: PT011
        raise AssertionError
    assert database.finish_writing(0.01)
