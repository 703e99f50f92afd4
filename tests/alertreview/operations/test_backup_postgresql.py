"""Backups of a site on a PostgreSQL server: by its own programs, tried in a database of their own, restored anew."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from alertreview.application import open_application
from alertreview.operations.backup import Backups, list_backups, verify_backup
from alertreview.operations.backup_manifest import read_manifest
from alertreview.reports.signing import content_hash
from alertreview.settings import Settings
from core.errors import InvalidInputError, SettingsError, StoreError
from db.connection.engine import parse_url
from db.database import Database
from db.maintenance.copies import PROGRAMS_VARIABLE, contents
from db.maintenance.roles import grant
from tests.support import postgresql
from tests.support.faults import damage
from tests.support.units import run_unit


def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PROGRAMS_VARIABLE, postgresql.programs())


@pytest.fixture
def settings(own_home: Path, postgresql_database: Database) -> Settings:
    """The small demonstration, its rows on the server."""
    postgresql.copy_rows(f"sqlite:///{own_home / 'alertreview.db'}", postgresql_database)
    return Settings(own_home, postgresql_database.url)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Settings]:
    """A site that is to come, on an empty database of the same server."""
    with postgresql.own_database(empty=True) as url:
        yield Settings(tmp_path / "restored", url)


def names_on_server() -> set[str]:
    with postgresql.connected() as connection:
        return set(connection.exec_driver_sql("SELECT datname FROM pg_database").scalars())


@pytest.mark.checklist("C6", "A3")
def test_a_backup_made_while_people_write_is_tried_and_restored_on_the_server(
    settings: Settings, elsewhere: Settings, postgresql_database: Database
) -> None:
    before = names_on_server()
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            with postgresql_database.write() as uow:
                uow.audit.append(now(), "person 1", "acted", "thing", {})
                uow.commit()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        verified = Backups(settings, now).create()
    finally:
        stop.set()
        writer.join()
    assert list_backups(settings.backups) == [verified.folder]
    assert (verified.folder / verified.manifest.database).stat().st_mode & 0o077 == 0
    assert names_on_server() == before, "the database it was tried in is gone"
    assert verify_backup(verified.folder, settings.database_url).reports == verified.reports

    manifest = Backups(elsewhere, now).restore(verified.folder)
    assert manifest == verified.manifest
    with open_application(elsewhere.home, elsewhere.database_url) as restored:
        assert verified.reports == {"demo": content_hash(restored.reports.report("demo"))}
        with restored.database.read() as uow:
            chain = uow.audit.require_whole(manifest.contents.audit_head)
            last = uow.audit.latest(1)[0]
            assert uow.judgments.votes(uow.studies.by_slug("demo").id)
    assert (chain.n_events, last.action) == (manifest.contents.n_audit_events + 1, "backup restored")
    with Database(elsewhere.database_url) as database, pytest.raises(sa.exc.DBAPIError), database.engine.begin() as raw:
        raw.exec_driver_sql("DELETE FROM audit_event")
    with pytest.raises(StoreError, match="has tables already and is never overwritten"):
        Backups(Settings(elsewhere.home.parent / "again", elsewhere.database_url), now).restore(verified.folder)


@pytest.mark.checklist("C6")
def test_a_damaged_copy_is_named_and_restores_nothing(settings: Settings, elsewhere: Settings) -> None:
    verified = Backups(settings, now).create()
    copy = verified.folder / verified.manifest.database
    damage(copy, at=200, n_bytes=8)
    before = names_on_server()
    for act in (
        lambda: verify_backup(verified.folder, settings.database_url),
        lambda: Backups(elsewhere, now).restore(verified.folder),
    ):
        with pytest.raises(InvalidInputError, match=r"damaged: .* is not as it was written"):
            act()
    assert names_on_server() == before
    assert not elsewhere.home.exists()
    assert contents_or_none(elsewhere) is None


@pytest.mark.checklist("C6", "A2")
def test_the_account_of_the_program_makes_the_nightly_backup_and_the_next_one(
    settings: Settings,
    elsewhere: Settings,
    postgresql_database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    role = "alertreview_nightly"
    with postgresql.connected() as connection:
        connection.exec_driver_sql(f"CREATE ROLE {role} LOGIN")
    try:
        grant(postgresql_database, role)
        with postgresql.own_database(empty=True) as scratch:
            with postgresql.connected() as connection:
                connection.exec_driver_sql(f"ALTER DATABASE {parse_url(scratch).database} OWNER TO {role}")
            own = Settings(settings.home, as_role(settings.database_url, role))
            with pytest.raises(StoreError, match="--scratch-database URL"):
                Backups(own, now).create()
            folders = {"/var/lib/alertreview": settings.home, "/var/backups/alertreview": tmp_path / "backups"}
            urls = {
                "postgresql+psycopg://alertreview@host/site": own.database_url,
                "postgresql+psycopg://alertreview@host/alertreview_scratch": as_role(scratch, role),
            }
            for _night in range(2):
                run_unit("alertreview-backup.service", folders, monkeypatch, urls)
            first, second = list_backups(tmp_path / "backups")
            assert verify_backup(second, settings.database_url, scratch_url=scratch).reports
        Backups(elsewhere, now).restore(second)
        assert contents(elsewhere.database_url).n_rows["judgment"] == read_manifest(first).contents.n_rows["judgment"]
        with Database(elsewhere.database_url) as restored, restored.read() as uow:
            uow.audit.require_whole(read_manifest(second).contents.audit_head)
    finally:
        with postgresql_database.engine.connect() as connection, connection.begin():
            connection.exec_driver_sql(f"DROP OWNED BY {role}")
        with postgresql.connected() as connection:
            connection.exec_driver_sql(f"DROP ROLE {role}")


def as_role(url: str, role: str) -> str:
    return parse_url(url).set(username=role).render_as_string(hide_password=False)


def contents_or_none(settings: Settings) -> object:
    with Database(settings.database_url) as database:
        return None if database.state().is_empty else contents(settings.database_url)


@pytest.mark.checklist("C6")
def test_what_is_needed_and_missing_is_said(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified = Backups(settings, now).create()
    with pytest.raises(StoreError, match=r"is a copy of a PostgreSQL database.*--database URL"):
        verify_backup(verified.folder, f"sqlite:///{tmp_path / 'site.db'}")
    with postgresql.own_database(empty=True) as scratch:
        tried = verify_backup(verified.folder, f"sqlite:///{tmp_path / 'site.db'}", scratch_url=scratch)
        assert tried.reports == verified.reports
    with pytest.raises(StoreError, match="database of another kind"):
        Backups(Settings(tmp_path / "new", f"sqlite:///{tmp_path / 'new.db'}"), now).restore(verified.folder)
    assert not (tmp_path / "new").exists()
    monkeypatch.setenv(PROGRAMS_VARIABLE, str(tmp_path))
    with pytest.raises(SettingsError, match=f"pg_dump was not found.*{PROGRAMS_VARIABLE}"):
        Backups(settings, now).create()
    old = tmp_path / "pg_dump"
    old.write_text("#!/bin/sh\necho 'aborting because of server version mismatch' >&2\nexit 1\n")
    old.chmod(0o700)
    with pytest.raises(SettingsError, match="pg_dump is older than the database server"):
        Backups(settings, now).create()
    old.write_text("#!/bin/sh\necho 'canary of a patient' >&2\nexit 3\n")
    with pytest.raises(StoreError, match="pg_dump ended with code 3; nothing was kept") as failed:
        Backups(settings, now).create()
    assert "canary" not in str(failed.value)
    old.write_text("#!/bin/sh\necho 'pg_dump: error: permission denied for sequence x' >&2\nexit 1\n")
    with pytest.raises(StoreError, match='It says: "permission denied for sequence x"'):
        Backups(settings, now).create()
    assert list_backups(settings.backups) == [verified.folder]
    assert [path.name for path in settings.backups.iterdir()] == [verified.folder.name]
