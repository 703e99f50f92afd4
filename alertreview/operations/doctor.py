"""Checks of a site: folders, disk, database, clocks, imports, backups, leftovers. Nothing is changed."""

import os
import shlex
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from alertreview.files import check_files
from alertreview.operations.backup import list_backups, noted_backups
from alertreview.operations.heads import known_heads
from alertreview.records.snapshots import open_import
from alertreview.settings import Settings
from core.errors import AlertReviewError
from core.number_texts import counted
from db.database import Database
from db.maintenance.inspection import check_pages, file_of, inspect

PROBLEM_BELOW_BYTES = 500 * 1024**2
WARNING_BELOW_BYTES = 5 * 1024**3
BACKUP_DUE_AFTER = timedelta(days=2)
LEFT_OVER_AFTER = timedelta(hours=1)
CLOCK_MAY_STEP_BACK = timedelta(minutes=10)
CLOCKS_MAY_DIFFER = timedelta(seconds=2)
_LEFTOVERS = (".writing-*", ".export-*", ".verifying-*", ".removing-*", ".restoring-*", ".*.part")
_NETWORK = ("nfs", "cifs", "smb", "9p", "afs", "ceph", "gluster", "lustre", "sshfs", "webdav", "davfs", "vboxsf")
_GIB = 1024**3


class Level(StrEnum):
    """How serious a finding is."""

    GOOD = "good"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class Finding:
    """Result of a check, with what to do."""

    level: Level
    subject: str
    text: str


def examine_site(settings: Settings, now: datetime, *, mounts: Path = Path("/proc/mounts")) -> Iterator[Finding]:
    """Check a site and yield what was found; `mounts` is the file in which the system lists its file systems."""
    yield from _home(settings.home)
    yield from _disk(settings.home)
    yield from _leftovers(settings, now)
    with Database(settings.database_url) as database:
        yield from _network(database, mounts)
        try:
            database.check()
        except AlertReviewError as error:
            yield Finding(Level.PROBLEM, "database", str(error))
            return
        checks = {
            "database": _database(database),
            "audit": _audit(settings, database, now),
            "backups": _backups(settings, database, now),
            "clocks": _clocks(settings.home, database, now),
            "imports": _imports(settings, database),
        }
        for subject, findings in checks.items():
            try:
                yield from findings
            except AlertReviewError as error:
                yield Finding(Level.PROBLEM, subject, str(error))


def _home(home: Path) -> Iterator[Finding]:
    status = home.stat()
    if status.st_mode & 0o077:
        yield Finding(Level.PROBLEM, "home", f"{home} may be read by other accounts. Run: chmod 700 {home}")
    elif status.st_uid != os.geteuid():
        yield Finding(Level.WARNING, "home", f"{home} belongs to another account than the one that runs this.")
    else:
        yield Finding(Level.GOOD, "home", f"{home}, readable by its owner alone")
    if not os.access(home, os.W_OK | os.X_OK):
        yield Finding(Level.PROBLEM, "home", f"{home} cannot be written by this account.")


def _disk(home: Path) -> Iterator[Finding]:
    free = shutil.disk_usage(home).free
    level = Level.PROBLEM if free < PROBLEM_BELOW_BYTES else Level.WARNING if free < WARNING_BELOW_BYTES else Level.GOOD
    advice = "" if level is Level.GOOD else " Free some space: an import or a backup may not fit."
    yield Finding(level, "disk", f"{free / _GIB:.1f} GiB free.{advice}")


def _network(database: Database, mounts: Path) -> Iterator[Finding]:
    file = file_of(database)
    if file is None:
        return
    kind = file_system(Path(file).parent, mounts)
    if kind is not None and any(word in kind for word in _NETWORK):
        text = (
            f"The database lies on a network file system ({kind}), where its locks cannot be relied on. "
            "Move the home to a local disk, or use PostgreSQL."
        )
        yield Finding(Level.PROBLEM, "file system", text)
    else:
        yield Finding(Level.GOOD, "file system", kind or "not known on this system")


def file_system(folder: Path, mounts: Path) -> str | None:
    """Return the type of a folder's file system, None where the system does not list them."""
    try:
        lines = mounts.read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    place = str(folder.resolve()) + "/"
    points = [(line.split(" ")[1].replace("\\040", " "), line.split(" ")[2]) for line in lines]
    found = [
        (len(point), at, kind) for at, (point, kind) in enumerate(points) if place.startswith(point.rstrip("/") + "/")
    ]
    return max(found)[2] if found else None


def _leftovers(settings: Settings, now: datetime) -> Iterator[Finding]:
    places = (settings.home, settings.snapshots, settings.backups)
    paths = [path for place in places for pattern in _LEFTOVERS for path in place.glob(pattern)]
    old = sorted(str(path) for path in paths if _age(path, now) > LEFT_OVER_AFTER)
    if old:
        names = ", ".join(old[:5]) + (f" and {len(old) - 5} more" if len(old) > 5 else "")
        text = f"What an interrupted command left behind may hold patient data: {names}. Remove it."
        yield Finding(Level.WARNING, "leftovers", text)
    else:
        yield Finding(Level.GOOD, "leftovers", "none")


def _backups(settings: Settings, database: Database, now: datetime) -> Iterator[Finding]:
    how = f"Run: alertreview backup create --to DIR --home {shlex.quote(str(settings.home))}"
    with database.read() as uow:
        noted = list(noted_backups(settings, uow))
    if not noted:
        yield Finding(Level.WARNING, "backups", f"No backup of this site was ever made. {how}")
        return
    last, usable = noted[0], next((each for each in noted if each.folder and not each.problem), None)
    ages = {each.made_at: f"{(now - each.made_at).total_seconds() / 3600:.0f} h ago" for each in noted}
    text = f"the last was made and verified {ages[last.made_at]}"
    if last.problem:
        found = f"The last one found is {usable.folder}, made {ages[usable.made_at]}" if usable else "No other is found"
        yield Finding(Level.WARNING, "backups", f"{text}. {last.problem} {found}. {how}")
        return
    if last.folder is None:
        text += "; it is not in the home: look whether it is still there"
    elif last.folder.stat().st_dev == settings.home.stat().st_dev:
        text += f", on the same disk as the site: {last.folder}"
    else:
        text += f": {last.folder}"
    is_due = now - last.made_at > BACKUP_DUE_AFTER
    yield Finding(Level.WARNING if is_due else Level.GOOD, "backups", text)


def _age(path: Path, now: datetime) -> timedelta:
    return now - datetime.fromtimestamp(path.lstat().st_mtime, UTC)


def _database(database: Database) -> Iterator[Finding]:
    check_pages(database)
    found = inspect(database)
    if found.unsafe:
        text = f"{found.server}: a vote may be lost, because {', '.join(found.unsafe)}. Set them back."
        yield Finding(Level.PROBLEM, "database", text)
    else:
        revision = database.state().revision
        yield Finding(Level.GOOD, "database", f"{found.server}, schema {revision}, settings as they should be")
    if not found.has_checksums:
        text = (
            f"{found.server} keeps no checksums of its pages, so what a failing disk changes in an index stays unseen. "
            "Stop the server and run: pg_checksums --enable --pgdata=FOLDER"
        )
        yield Finding(Level.WARNING, "database pages", text)
    if found.may_do_too_much:
        text = (
            "The account owns the tables and could change the audit trail. Let the program use a separate account: "
            "alertreview db grant NAME"
        )
        yield Finding(Level.WARNING, "database account", text)


def _audit(settings: Settings, database: Database, now: datetime) -> Iterator[Finding]:
    with database.read() as uow:
        report = uow.audit.require_whole(kept=known_heads(settings, list_backups(settings.backups)))
        last = next(iter(uow.audit.latest(1)), None)
        back = uow.audit.step_back()
    yield Finding(Level.GOOD, "audit trail", f"{counted(report.n_events, 'row')}, whole, head {report.head[:16]}")
    if back is not None and back.by > CLOCK_MAY_STEP_BACK:
        text = (
            f"Row {back.sequence} of the audit trail is dated {back.by.total_seconds() / 3600:.1f} h before the row in "
            "front of it. The clock was set back, or somebody dated an act back; ask who worked on the machine."
        )
        yield Finding(Level.WARNING, "clock", text)
    if last is not None and last.moment > now + CLOCKS_MAY_DIFFER:
        dated = f"{last.moment:%Y-%m-%d %H:%M:%S} UTC"
        text = f"The last act is dated {dated}, in the future. Set the clock of this machine."
        yield Finding(Level.PROBLEM, "clock", text)


def _clocks(home: Path, database: Database, now: datetime) -> Iterator[Finding]:
    with tempfile.NamedTemporaryFile(dir=home, prefix=".clock-") as file:
        offsets = {"disk": Path(file.name).stat().st_mtime - time.time()}
    clock = inspect(database).clock
    if clock is not None:
        offsets["database server"] = (clock - now).total_seconds()
    limit = CLOCKS_MAY_DIFFER.total_seconds()
    wrong = [f"{name} {seconds:+.1f} s" for name, seconds in offsets.items() if abs(seconds) > limit]
    if wrong:
        text = f"Clocks differ from this machine's: {', '.join(wrong)}. Synchronise the clocks."
        yield Finding(Level.WARNING, "clock", text)
    else:
        yield Finding(Level.GOOD, "clock", f"{now:%Y-%m-%d %H:%M:%S} UTC")


def _imports(settings: Settings, database: Database) -> Iterator[Finding]:
    with database.read() as uow:
        snapshots = uow.snapshots.all()
    missing = [row.folder for row in snapshots if not (settings.snapshots / row.folder / "manifest.json").is_file()]
    if missing:
        text = f"The folders of these imports are gone: {', '.join(missing)}. Restore them from a backup."
        yield Finding(Level.PROBLEM, "imports", text)
    else:
        with database.read() as uow:
            for row in snapshots:
                open_import(settings, uow, row.folder, whole=True)
        yield Finding(Level.GOOD, "imports", f"{len(snapshots)}, all in their place and as they were written")
    with database.read() as uow:
        kept = {run.id: settings.models / run.model_folder for run in uow.runs.published() if run.model_folder}
        checksums = {folder: uow.audit.checksum(f"run {run_id}") for run_id, folder in kept.items() if folder.is_dir()}
    for folder, checksum in checksums.items():
        if checksum is not None:
            check_files(folder, checksum)
    for zone in sorted({row.site_timezone for row in snapshots}):
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError):
            yield Finding(Level.PROBLEM, "time zones", f"This system does not know the zone {zone}. Install tzdata.")
