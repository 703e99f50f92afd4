"""A cut audit trail is found with the heads that backups and an anchor file keep, and rotates no good backup out."""

import shutil
import sqlite3
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from alertreview.operations.backup import Backups, list_backups
from alertreview.settings import Settings, load_settings
from core.errors import SettingsError, SourceError, StoreError
from db.database import Database
from tests.alertreview.operations.test_doctor import findings
from tests.support.stored_site import EPOCH, Clock


@pytest.fixture
def settings(own_home: Path, tmp_path: Path) -> Settings:
    return Settings(own_home, f"sqlite:///{own_home / 'alertreview.db'}", anchor=tmp_path / "anchor")


def act(settings: Settings, n: int) -> None:
    with Database(settings.database_url) as database, database.write() as uow:
        for number in range(n):
            uow.audit.append(EPOCH, "person 1", "acted", f"thing {number}", {})
        uow.commit()


def cut(settings: Settings, n: int) -> None:
    """Delete the last rows, as somebody does who has the file."""
    with sqlite3.connect(settings.home / "alertreview.db") as raw:
        raw.execute("DROP TRIGGER audit_event_refuses_delete")
        raw.execute(f"DELETE FROM audit_event WHERE sequence > (SELECT max(sequence) - {n} FROM audit_event)")
    raw.close()


@pytest.mark.checklist("A3")
def test_a_trail_without_the_head_of_a_backup_is_found_and_its_backup_is_refused(settings: Settings) -> None:
    settings = replace(settings, anchor=None)
    clock = Clock()
    act(settings, 3)
    kept = Backups(settings, clock).create().folder
    assert "whole" in findings(settings)["audit trail"].text
    cut(settings, 3)
    assert f"the head of the backup {kept} is gone" in findings(settings)["audit"].text
    clock.pass_hours(24)
    for _night in range(3):
        with pytest.raises(StoreError, match="audit trail was cut, or the trail exchanged: the head of the backup"):
            Backups(settings, clock).create(keep=1)
        clock.pass_hours(24)
    assert list_backups(settings.backups) == [kept]


@pytest.mark.checklist("A3")
def test_a_trail_without_a_head_of_the_anchor_is_found_where_no_backup_is_left(settings: Settings) -> None:
    act(settings, 2)
    Backups(settings, Clock()).create()
    act(settings, 1)
    Backups(settings, lambda: EPOCH + timedelta(days=1)).create()
    assert settings.anchor is not None
    assert len(settings.anchor.read_text(encoding="utf-8").splitlines()) == 2
    assert settings.anchor.stat().st_mode & 0o077 == 0
    shutil.rmtree(settings.backups)
    assert "whole" in findings(settings)["audit trail"].text
    cut(settings, 3)
    assert f"the head of line 2 of {settings.anchor} is gone" in findings(settings)["audit"].text


def test_an_anchor_that_cannot_be_used_is_named_with_its_line(settings: Settings, tmp_path: Path) -> None:
    assert settings.anchor is not None
    settings.anchor.write_text("2026-01-01 5 abc\n", encoding="utf-8")
    with pytest.raises(SettingsError, match="Line 1 of the anchor file"):
        Backups(settings, Clock()).create()
    with pytest.raises(SourceError, match=r"anchor file .* cannot be written"):
        Backups(replace(settings, anchor=tmp_path / "none" / "anchor"), Clock()).create()


def test_the_anchor_is_a_setting_of_the_home(own_home: Path, tmp_path: Path) -> None:
    (own_home / "alertreview.toml").write_text(f'anchor = "{tmp_path / "heads"}"\n', encoding="utf-8")
    assert load_settings(own_home).anchor == tmp_path / "heads"
