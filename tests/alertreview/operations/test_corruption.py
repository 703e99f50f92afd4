"""Files that changed behind the program's back: whoever uses, copies or examines them stops and names the file."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from alertreview.files import CHECKSUMS, check_files, write_checksums
from alertreview.operations import doctor
from alertreview.operations.backup import Backups
from alertreview.operations.upgrade import upgrade_site
from alertreview.scoring.new_day import find_base
from alertreview.scoring.publish import last_import
from alertreview.settings import Settings
from core.errors import AlertReviewError, SourceError
from db.database import Database
from tests.alertreview.operations.test_doctor import findings
from tests.support.stored_site import Clock


@pytest.fixture
def settings(own_home: Path) -> Settings:
    return Settings(own_home, f"sqlite:///{own_home / 'alertreview.db'}")


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def remove(path: Path) -> None:
    path.unlink()


def exchange(path: Path) -> None:
    other = next(one for one in sorted(path.parent.iterdir()) if one != path)
    shutil.copy(other, path)


@pytest.mark.checklist("C5")
@pytest.mark.parametrize("harm", [flip, cut, remove, exchange])
def test_every_file_of_an_import_is_compared_before_it_is_used(
    settings: Settings, harm: Callable[[Path], None], tmp_path: Path
) -> None:
    folder = next(settings.snapshots.iterdir())
    with Database(settings.database_url) as database:
        last_import(settings, database)
        for path in sorted(folder.iterdir()):
            sound = shutil.copy(path, tmp_path / "sound")
            harm(path)
            with pytest.raises(SourceError, match=path.name):
                last_import(settings, database)
            shutil.copy(sound, path)
        last_import(settings, database)
        harm(folder / "features_data.npy")
        with pytest.raises(AlertReviewError, match=r"features_data\.npy"):
            Backups(settings, Clock()).create()
    assert "features_data.npy" in findings(settings)["imports"].text


@pytest.mark.checklist("C5")
def test_every_file_of_what_a_run_learned_is_compared_before_it_is_used(settings: Settings, tmp_path: Path) -> None:
    later = pd.Timestamp("2200-01-01")
    [folder] = settings.models.iterdir()
    with Database(settings.database_url) as database:
        with database.read() as uow:
            run = next(str(run.id) for run in uow.runs.published() if run.model_folder)
        find_base(settings, database, run, later)
        for path in sorted(folder.iterdir()):
            sound = shutil.copy(path, tmp_path / "sound")
            flip(path)
            with pytest.raises(SourceError, match=path.name):
                find_base(settings, database, run, later)
            with pytest.raises(SourceError, match=path.name):
                list(doctor._imports(settings, database))
            shutil.copy(sound, path)
        find_base(settings, database, run, later)


def test_a_file_that_was_put_in_is_named_and_checksums_are_not_made_anew_over_it(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"a")
    checksum = write_checksums(tmp_path)
    assert write_checksums(tmp_path) == checksum
    check_files(tmp_path, checksum)
    (tmp_path / "b.npy").write_bytes(b"b")
    for attempt in (lambda: check_files(tmp_path, checksum), lambda: write_checksums(tmp_path)):
        with pytest.raises(SourceError, match=r"b\.npy"):
            attempt()
    (tmp_path / CHECKSUMS).write_text("{}")
    with pytest.raises(SourceError, match="checksums"):
        check_files(tmp_path, checksum)


def test_imports_of_former_versions_get_checksums_once(settings: Settings) -> None:
    folder = next(settings.snapshots.iterdir())
    (folder / CHECKSUMS).unlink()
    with Database(settings.database_url) as database:
        with database.engine.connect() as connection, connection.begin():
            connection.exec_driver_sql("DROP TRIGGER audit_event_refuses_update")
            connection.exec_driver_sql("UPDATE audit_event SET details = '{}' WHERE action = 'records imported'")
        last_import(settings, database)
        upgrade_site(settings, database, Clock()())
        flip(folder / "features_data.npy")
        with pytest.raises(SourceError, match=r"features_data\.npy"):
            last_import(settings, database)
        upgrade_site(settings, database, Clock()())
        with pytest.raises(SourceError, match=r"features_data\.npy"):
            last_import(settings, database)
