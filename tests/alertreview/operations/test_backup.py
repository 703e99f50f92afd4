"""Backups: made while people work, tried before they count, restored whole or not at all, and damage is named."""

import json
import shutil
import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from alertreview.application import open_application
from alertreview.operations.backup import Backups, list_backups, remove_oldest, verify_backup
from alertreview.reports.signing import content_hash
from alertreview.settings import Settings
from core.errors import DatabaseUnavailableError, InvalidInputError, StoreError
from db.database import Database
from tests.support.faults import damage
from tests.support.units import run_unit


def now() -> datetime:
    return datetime.now(UTC)


def settings_of(home: Path) -> Settings:
    return Settings(home, f"sqlite:///{home / 'alertreview.db'}")


@pytest.fixture
def site_home(own_home: Path) -> Settings:
    return settings_of(own_home)


@pytest.mark.checklist("C6")
def test_the_unit_of_the_night_makes_a_backup_that_is_restored_into_a_new_home(
    site_home: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = {"/var/lib/alertreview": site_home.home, "/var/backups/alertreview": tmp_path / "backups"}
    run_unit("alertreview-backup.service", folders, monkeypatch)
    [made] = list_backups(tmp_path / "backups")
    assert verify_backup(made, site_home.database_url).reports
    restored = settings_of(tmp_path / "restored")
    manifest = Backups(restored, now).restore(made)
    with Database(restored.database_url) as database, database.read() as uow:
        uow.audit.require_whole(manifest.contents.audit_head)


@pytest.mark.checklist("C6", "A3")
def test_a_backup_made_while_people_write_restores_with_everything_up_to_its_head(
    site_home: Settings, tmp_path: Path
) -> None:
    stop = threading.Event()
    with Database(site_home.database_url) as database:

        def write() -> None:
            while not stop.is_set():
                with database.write() as uow:
                    uow.audit.append(now(), "person 1", "acted", "thing", {})
                    uow.commit()

        writer = threading.Thread(target=write)
        writer.start()
        try:
            verified = Backups(site_home, now).create(tmp_path / "backups")
        finally:
            stop.set()
            writer.join()
        with database.read() as uow:
            live = uow.audit.count()
            uow.audit.require_whole(verified.manifest.contents.audit_head)
    restored = settings_of(tmp_path / "restored")
    manifest = Backups(restored, now).restore(verified.folder)
    assert manifest == verified.manifest
    assert manifest.contents.n_audit_events <= live
    with open_application(restored.home) as application, open_application(site_home.home) as original:
        assert content_hash(application.reports.report("demo")) == content_hash(original.reports.report("demo"))
        assert verified.reports == {"demo": content_hash(original.reports.report("demo"))}
        with application.database.read() as uow:
            chain = uow.audit.require_whole(manifest.contents.audit_head)
            last = uow.audit.latest(1)[0]
    assert chain.n_events == manifest.contents.n_audit_events + 1
    assert last.action == "backup restored"
    assert (restored.home.stat().st_mode & 0o777, verified.folder.stat().st_mode & 0o777) == (0o700, 0o700)
    for path in verified.folder.rglob("*"):
        if path.is_file():
            assert path.stat().st_mode & 0o077 == 0, path


@pytest.mark.checklist("C6", "A1")
def test_the_backup_is_an_act_with_the_head_in_it_and_unchanged_files_take_no_room_twice(site_home: Settings) -> None:
    backups = Backups(site_home, now)
    first, second = backups.create(), backups.create(keep=1)
    with Database(site_home.database_url) as database, database.read() as uow:
        acts = uow.audit.latest(10, action="backup made")
    assert [act.object for act in acts] == [f"backup {second.folder.name}", f"backup {first.folder.name}"]
    assert json.loads(acts[0].details)["head"] == second.manifest.contents.audit_head
    assert list_backups(site_home.backups) == [second.folder]
    assert not first.folder.exists()
    assert [path.name for path in site_home.backups.iterdir()] == [second.folder.name], "nothing is left over"
    assert verify_backup(second.folder, site_home.database_url).reports == second.reports


@pytest.mark.parametrize("name", ["database.sqlite", "snapshots/*/events.parquet", "snapshots/*/manifest.json"])
@pytest.mark.checklist("C6")
def test_a_damaged_or_lacking_file_is_named_and_nothing_is_restored(
    verified_backup: Path, tmp_path: Path, name: str
) -> None:
    copy = Path(shutil.copytree(verified_backup, tmp_path / "copy"))
    file = next(copy.glob(name))
    restored = settings_of(tmp_path / "restored")
    damage(file, at=min(100, file.stat().st_size // 2), n_bytes=4)
    for act in (lambda: verify_backup(copy, restored.database_url), lambda: Backups(restored, now).restore(copy)):
        with pytest.raises(InvalidInputError, match=rf"damaged: {file.relative_to(copy)} is not as it was written"):
            act()
    file.unlink()
    with pytest.raises(InvalidInputError, match=f"lacks {file.relative_to(copy)}"):
        Backups(restored, now).restore(copy)
    assert not restored.home.exists()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


@pytest.fixture(scope="module")
def verified_backup(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of the small demonstration; tests must not change it."""
    folder = tmp_path_factory.mktemp("backup")
    home = Path(shutil.copytree(demo_home, folder / "home"))
    return Backups(settings_of(home), now).create(folder / "backups").folder


@pytest.mark.checklist("C6")
def test_a_manifest_that_says_otherwise_than_the_database_is_no_backup(verified_backup: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(verified_backup, tmp_path / "copy"))
    manifest = json.loads((copy / "backup.json").read_text())
    manifest["contents"]["n_rows"]["judgment"] += 1
    (copy / "backup.json").write_text(json.dumps(manifest))
    with pytest.raises(StoreError, match="not what was backed up: judgment"):
        verify_backup(copy, "sqlite:///unused.db")


@pytest.mark.parametrize(
    ("content", "words"),
    [("{", "no readable backup.json"), ('{"format_version": 99}', "backup of version 99"), (None, "no readable")],
)
def test_a_folder_that_is_no_backup_is_refused(tmp_path: Path, content: str | None, words: str) -> None:
    if content is not None:
        (tmp_path / "backup.json").write_text(content)
    with pytest.raises(InvalidInputError, match=words):
        verify_backup(tmp_path, "sqlite:///unused.db")


def test_nothing_that_exists_is_overwritten(verified_backup: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "something").write_text("mine")
    with pytest.raises(InvalidInputError, match="is not empty"):
        Backups(settings_of(home), now).restore(verified_backup)
    elsewhere = Settings(tmp_path / "new", f"sqlite:///{tmp_path / 'taken.db'}")
    (tmp_path / "taken.db").write_text("mine")
    with pytest.raises(StoreError, match=r"taken\.db exists already"):
        Backups(elsewhere, now).restore(verified_backup)
    assert (home / "something").read_text() == (tmp_path / "taken.db").read_text() == "mine"
    assert not elsewhere.home.exists()


def test_a_database_outside_the_home_is_restored_there(verified_backup: Path, tmp_path: Path) -> None:
    apart = Settings(tmp_path / "new", f"sqlite:///{tmp_path / 'apart.db'}")
    Backups(apart, now).restore(verified_backup)
    with open_application(apart.home, apart.database_url) as application:
        assert application.studies.view("demo").n_cases == 36


def test_a_backup_of_a_site_whose_import_is_gone_is_refused_and_leaves_nothing(site_home: Settings) -> None:
    shutil.rmtree(next(site_home.snapshots.iterdir()))
    with pytest.raises(StoreError, match=r"its folder .* is not there"):
        Backups(site_home, now).create()
    assert list(site_home.backups.iterdir()) == []


@pytest.mark.checklist("C5")
def test_a_place_that_cannot_be_written_is_named(site_home: Settings, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DatabaseUnavailableError, match=r"file.* cannot be written .*nothing was kept"):
        Backups(site_home, now).create(tmp_path / "file" / "backups")


def test_the_last_backup_always_stays(verified_backup: Path) -> None:
    with pytest.raises(InvalidInputError, match="At least 1"):
        remove_oldest(verified_backup.parent, 0)
    assert remove_oldest(verified_backup.parent, 1) == []
