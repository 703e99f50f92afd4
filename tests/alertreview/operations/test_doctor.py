"""The doctor names what is wrong and what to do, and changes nothing."""

import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from alertreview.operations.backup import BACKUP_MADE, Backups
from alertreview.operations.doctor import Finding, Level, examine_site, file_system
from alertreview.settings import Settings
from db.database import Database
from tests.support.faults import damage

NOW = datetime.now(UTC)


@pytest.fixture
def settings(own_home: Path) -> Settings:
    return Settings(own_home, f"sqlite:///{own_home / 'alertreview.db'}")


def findings(settings: Settings, now: datetime | None = None, **options: Path) -> dict[str, Finding]:
    """What the doctor says, by subject; the worst of each."""
    found: dict[str, Finding] = {}
    order = list(Level)
    for finding in examine_site(settings, now or datetime.now(UTC), **options):
        if order.index(finding.level) >= order.index(found.get(finding.subject, finding).level):
            found[finding.subject] = finding
    return found


def test_a_sound_site_is_said_to_be_sound_and_is_left_as_it_is(settings: Settings) -> None:
    before = sorted((path, path.stat().st_mtime_ns) for path in settings.home.rglob("*") if path.suffix == ".parquet")
    found = findings(settings)
    assert {subject for subject, finding in found.items() if finding.level is Level.PROBLEM} == set()
    assert set(found) == {
        "home", "disk", "leftovers", "backups", "file system", "database", "audit trail", "clock", "imports",
    }  # fmt: skip
    assert before == sorted(
        (path, path.stat().st_mtime_ns) for path in settings.home.rglob("*") if path.suffix == ".parquet"
    )


def open_to_all(settings: Settings) -> None:
    settings.home.chmod(0o755)


def leave_something_over(settings: Settings) -> None:
    folder = settings.home / ".export-abc"
    folder.mkdir()
    os.utime(folder, (time.time() - 7200, time.time() - 7200))


def lose_an_import(settings: Settings) -> None:
    shutil.rmtree(next(settings.snapshots.iterdir()))


def damage_the_database(settings: Settings) -> None:
    damage(settings.home / "alertreview.db", at=8192, n_bytes=200_000)


def tamper_with_the_trail(settings: Settings) -> None:
    with sqlite3.connect(settings.home / "alertreview.db") as raw:
        raw.execute("DROP TRIGGER audit_event_refuses_update")
        raw.execute("UPDATE audit_event SET actor = 'person 9' WHERE sequence = 2")
    raw.close()


def act_in_the_future(settings: Settings) -> None:
    with Database(settings.database_url) as database, database.write() as uow:
        uow.audit.append(NOW + timedelta(days=3), "person 1", "acted", "thing", {})
        uow.commit()


def live_elsewhere(settings: Settings) -> None:
    with sqlite3.connect(settings.home / "alertreview.db") as raw:
        raw.execute("UPDATE cohort_snapshot SET site_timezone = 'Europe/Atlantis'")
    raw.close()


@pytest.mark.parametrize(
    ("harm", "subject", "words"),
    [
        (open_to_all, "home", "chmod 700"),
        (leave_something_over, "leftovers", ".export-abc"),
        (lose_an_import, "imports", "are gone"),
        (damage_the_database, "database", "damaged"),
        (tamper_with_the_trail, "audit", "Row 2 of the audit trail was changed"),
        (act_in_the_future, "clock", "in the future. Set the clock"),
        (live_elsewhere, "time zones", "Europe/Atlantis"),
    ],
)
def test_what_is_wrong_is_named_with_what_to_do(
    settings: Settings, harm: Callable[[Settings], None], subject: str, words: str
) -> None:
    harm(settings)
    finding = findings(settings)[subject]
    assert finding.level is not Level.GOOD
    assert words in finding.text


def test_an_act_that_is_dated_back_raises_a_warning(settings: Settings) -> None:
    assert findings(settings)["clock"].level is Level.GOOD
    with Database(settings.database_url) as database, database.write() as uow:
        uow.audit.append(NOW - timedelta(days=400), "person 1", "acted", "thing", {})
        uow.audit.append(NOW, "person 1", "acted", "thing", {})
        uow.commit()
    found = findings(settings)["clock"]
    assert found.level is Level.WARNING
    assert "The clock was set back, or somebody dated an act back" in found.text


def test_a_network_file_system_is_a_problem_for_a_file(settings: Settings, tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"/dev/sda / ext4 rw 0 0\nserver:/x {str(tmp_path).replace(' ', chr(92) + '040')} nfs4 rw 0 0\n")
    finding = findings(settings, mounts=mounts)["file system"]
    assert finding.level is Level.PROBLEM
    assert "nfs4" in finding.text
    assert file_system(Path("/"), mounts) == "ext4"
    assert file_system(Path("/"), tmp_path / "none") is None


@pytest.mark.parametrize(("free", "level"), [(10 * 2**20, Level.PROBLEM), (2**30, Level.WARNING), (2**40, Level.GOOD)])
def test_a_disk_that_fills_up_is_told(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, free: int, level: Level
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: shutil._ntuple_diskusage(2**41, 2**41 - free, free))
    assert findings(settings)["disk"].level is level


def test_a_missing_and_an_older_database_are_told(settings: Settings) -> None:
    with Database(settings.database_url) as database:
        database.downgrade("0007", discard=True)
    assert "has schema 0007" in findings(settings)["database"].text
    (settings.home / "alertreview.db").unlink()
    assert "no database" in findings(settings)["database"].text


def test_backups_are_due_after_two_days_wherever_they_are(settings: Settings) -> None:
    assert "No backup of this site was ever made" in findings(settings)["backups"].text
    with Database(settings.database_url) as database, database.write() as uow:
        uow.audit.append(NOW, "command line", BACKUP_MADE, "backup 20260101T000000Z-site", {})
        uow.commit()
    found = findings(settings, NOW + timedelta(hours=5))["backups"]
    assert (found.level, found.text) == (
        Level.GOOD,
        "the last was made and verified 5 h ago; it is not in the home: look whether it is still there",
    )
    (settings.backups / "20260101T000000Z-site").mkdir(parents=True)
    assert "is not a backup" in findings(settings, NOW)["backups"].text


@pytest.mark.parametrize("outside", [True, False])
def test_a_backup_that_is_gone_or_damaged_since_is_told_with_the_last_one_found(
    settings: Settings, tmp_path: Path, outside: bool
) -> None:
    place = tmp_path / "elsewhere" if outside else settings.backups
    early, late = (
        Backups(settings, lambda made_at=NOW - age: made_at).create(place).folder
        for age in (timedelta(hours=30), timedelta(hours=6))
    )
    sound = findings(settings, NOW)["backups"]
    assert (sound.level, sound.text) == (
        Level.GOOD,
        f"the last was made and verified 6 h ago, on the same disk as the site: {late}",
    )
    database = late / "database.sqlite"
    whole = database.read_bytes()
    for damage_it, said in (
        (lambda: database.write_bytes(whole[:-1]), f"The backup {late} is damaged: database.sqlite is not as it was"),
        (database.unlink, f"The backup {late} lacks database.sqlite."),
        (lambda: shutil.rmtree(late), f"It is not at {late} any more"),
        (lambda: shutil.copytree(early, late), f"What lies at {late} is another backup."),
    ):
        damage_it()
        lost = findings(settings, NOW)["backups"]
        assert lost.level is Level.WARNING
        assert said in lost.text
        assert f"The last one found is {early}, made 30 h ago. Run: alertreview backup create" in lost.text
    for folder in (early, late):
        shutil.rmtree(folder)
    assert "No other is found. Run: alertreview backup create" in findings(settings, NOW)["backups"].text
