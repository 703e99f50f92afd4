"""Random damage to everything a site keeps: found and named, or shown to have changed no figure and no vote."""

import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from alertreview.application import open_application
from alertreview.exports.recompute import recompute
from alertreview.operations.backup import Backups, verify_backup
from alertreview.operations.doctor import Level, examine_site
from alertreview.reports.signing import content_hash
from alertreview.settings import Settings
from core.errors import AlertReviewError

STORES = ("snapshots", "learned", "database", "backup", "export")
HARMS = ("flip", "cut", "exchange", "zero", "remove")
COUNTED = ("judgment", "adjudication", "triage_act", "triage_note", "report_signature", "person", "study", "rubric")
COUNTED += ("study_reader", "study_case", "case_score", "reference_answer", "scoring_run", "task_result", "alert")
COUNTED += ("cohort_snapshot", "instance", "task", "audit_event")


@dataclass(frozen=True)
class Damage:
    """What was done to which file, and what came of it; `said` is empty when nothing noticed."""

    store: str
    file: str
    harm: str
    said: str
    is_harmless: bool

    @property
    def is_missed(self) -> bool:
        """Whether a figure or a vote changed and nothing noticed."""
        return not self.said and not self.is_harmless


class DamagedSite:
    """A site with a backup and an export, to be damaged and mended again and again.

    Parameters
    ----------
    home : Path
        Of a site that may be changed.
    place : Path
        For its backup, its export and a sound copy of everything.
    """

    def __init__(self, home: Path, place: Path) -> None:
        self._settings = Settings(home, f"sqlite:///{home / 'alertreview.db'}")
        self._export = place / "export"
        self._backup = Backups(self._settings, lambda: datetime.now(UTC)).create(place / "backups").folder
        with open_application(home) as application:
            application.exports.study("demo", ["csv", "jsonl"], self._export)
        with closing(sqlite3.connect(home / "alertreview.db")) as raw:
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._places = {
            "snapshots": home / "snapshots",
            "learned": home / "learned",
            "database": home / "alertreview.db",
            "backup": self._backup,
            "export": self._export,
        }
        self._sound = place / "sound"
        for name, path in self._places.items():
            _copy(path, self._sound / name)
        self._report = self._recomputed()

    def damage(self, chance: random.Random, store: str) -> Damage:
        """Damage one file of a store at random, look whether it is found, and mend it."""
        files = self._files(store)
        path, harm = chance.choice(files), chance.choice(HARMS)
        before = path.read_bytes()
        _harm(path, harm, files, chance)
        try:
            said = "" if path.exists() and path.read_bytes() == before else self._noticed(store)
            is_harmless = bool(said) or self._is_harmless(store)
        finally:
            self._mend(store)
        return Damage(store, path.name, harm, said, is_harmless)

    def _files(self, store: str) -> list[Path]:
        path = self._places[store]
        found = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
        # The mark of a verified backup and texts for people are no part of what is kept.
        return [one for one in found if one.name not in {"verified.json", "README.md", "README.txt"}]

    def _noticed(self, store: str) -> str:
        try:
            if store == "backup":
                verify_backup(self._backup, self._settings.database_url)
                return ""
            if store == "export":
                return "" if self._recomputed() == self._report else "the report differs"
            found = examine_site(self._settings, datetime.now(UTC))
            return next((one.text for one in found if one.level is Level.PROBLEM and one.subject != "disk"), "")
        except AlertReviewError as error:
            return str(error)

    def _is_harmless(self, store: str) -> bool:
        """Compare by a plain way of its own: rows of the database as SQLite dumps them."""
        if store == "database":
            return _rows(self._places[store]) == _rows(self._sound / store)
        if store == "export":
            return self._recomputed() == self._report
        return False

    def _recomputed(self) -> str:
        return content_hash(recompute(self._export))

    def _mend(self, store: str) -> None:
        path = self._places[store]
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        for log in self._settings.home.glob("alertreview.db-*"):
            if store == "database":
                log.unlink(missing_ok=True)
        _copy(self._sound / store, path)


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)


def _harm(path: Path, harm: str, files: list[Path], chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    at = chance.randrange(max(1, len(content)))
    if harm == "flip" and content:
        content[at] ^= 1 << chance.randrange(8)
    elif harm == "cut":
        del content[at:]
    elif harm == "zero":
        content[at : at + 64] = bytes(len(content[at : at + 64]))
    elif harm == "exchange":
        other = chance.choice(files).read_bytes()
        content[at : at + 64] = other[:64]
    elif harm == "remove":
        path.unlink()
        return
    path.write_bytes(content)


def _rows(file: Path) -> list[str] | str:
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as raw:
            return [repr(row) for table in COUNTED for row in _sorted(raw, table)]
    except sqlite3.Error as error:
        return str(error)


def _sorted(raw: sqlite3.Connection, table: str) -> Iterator[object]:
    yield from sorted(raw.execute(f"SELECT * FROM {table}").fetchall(), key=repr)
