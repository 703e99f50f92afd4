"""Backups of a site: database and imports in one folder, restored in a scratch place before they count."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from alertreview import __version__
from alertreview.application import Application
from alertreview.files import becoming, parse_json
from alertreview.operations.backup_manifest import (
    MANIFEST,
    VERIFIED,
    BackupManifest,
    backup_name,
    check_files,
    copy_database,
    copy_or_link,
    new_backup,
    read_manifest,
    write_json,
    write_manifest,
    writing,
)
from alertreview.operations.heads import anchor, known_heads
from alertreview.records.snapshots import open_import
from alertreview.reports.signing import content_hash
from alertreview.settings import Clock, Settings
from core.errors import InvalidInputError, StoreError
from db.connection.engine import parse_url, sqlite_file
from db.database import Database
from db.maintenance.copies import contents, examine, read_copy, scratch_database
from db.unit_of_work import UnitOfWork

TITLE = "site"
BACKUP_MADE = "backup made"
"""The act, as the audit trail names it, of a backup that was made and verified."""


@dataclass(frozen=True)
class VerifiedBackup:
    """A backup that was restored in a scratch place."""

    folder: Path  # of the backup
    manifest: BackupManifest
    reports: dict[str, str]  # SHA-256 of the report of each study, computed from the restored backup


class Backups:
    """Backups of one site."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        self._settings = settings
        self._clock = clock

    def create(
        self, parent: Path | None = None, *, keep: int | None = None, scratch_url: str | None = None
    ) -> VerifiedBackup:
        """Copy the site while it is in use, and verify the copy; a copy that fails is removed.

        Without a parent, backups lie in the home and are lost with its disk. `keep` removes the oldest verified backups
        beyond this number. `scratch_url` is an empty database to verify the copy in, where the account may not create
        one. Raise StoreError if the copy cannot be made, or is not sound.
        """
        parent = parent or self._settings.backups
        now = self._clock()
        target = parent / backup_name(now, TITLE)
        with Database(self._settings.database_url) as database:
            database.check()
            with new_backup(target) as folder:
                # The database first: an import's folder is complete before its row, so every row has its folder.
                held = copy_database(database, folder)
                former = next(iter(reversed(list_backups(parent))), None)
                with database.read() as uow:
                    for name in held.snapshot_folders:
                        self._copy_snapshot(uow, name, folder, former)
                write_manifest(database, folder, held, now, with_snapshots=True)
                kept = known_heads(self._settings, list_backups(parent))
                verified = verify_backup(folder, self._settings.database_url, scratch_url=scratch_url, kept=kept)
            with database.write() as uow:
                details = {
                    "head": verified.manifest.contents.audit_head,
                    "reports": len(verified.reports),
                    "folder": str(target.absolute()),
                }
                uow.audit.append(now, "command line", BACKUP_MADE, f"backup {target.name}", details)
                uow.commit()
            anchor(
                self._settings, now, verified.manifest.contents.n_audit_events, verified.manifest.contents.audit_head
            )
        if keep is not None:
            remove_oldest(parent, keep)
        return VerifiedBackup(target, verified.manifest, verified.reports)

    def restore(self, backup: Path) -> BackupManifest:
        """Create the site from a backup, as a whole or not at all; nothing is overwritten.

        Everybody has to sign in again: sessions ended since the backup must not be valid again. Raise InvalidInputError
        if the folder is not a backup, is damaged, or the home is not empty, StoreError if the database exists already
        or cannot be written.
        """
        manifest = read_manifest(backup)
        check_files(backup, manifest)
        home = self._settings.home
        if home.exists() and any(home.iterdir()):
            raise InvalidInputError(
                f"{home} is not empty, and a restored site overwrites nothing. Name a folder that does not exist."
            )
        if not manifest.with_snapshots:
            raise InvalidInputError(
                f"{backup} holds the database alone, as it was before an upgrade. To go back, stop the program, "
                f"install the former version, and put {manifest.database} in the place of the site's database."
            )
        with writing(home, "Name another folder with --home."), becoming(home, ".restoring-") as folder:
            for name in manifest.contents.snapshot_folders:
                shutil.copytree(backup / "snapshots" / name, folder / "snapshots" / name)
            with _restored(backup / manifest.database, self._settings, folder) as database:
                _require_same(database, manifest)
                with database.write() as uow:
                    uow.sessions.end_everybodys(self._clock(), "restored from a backup")
                    uow.api_tokens.revoke_everybodys(self._clock())
                    details = {"head": manifest.contents.audit_head, "made_at": manifest.made_at.isoformat()}
                    uow.audit.append(self._clock(), "command line", "backup restored", f"backup {backup.name}", details)
                    uow.commit()
        return manifest

    def _copy_snapshot(self, uow: UnitOfWork, name: str, folder: Path, former: Path | None) -> None:
        source = self._settings.snapshots / name
        if not (source / "manifest.json").is_file():
            raise StoreError(
                f"The import {name} is in the database, and its folder {source} is not there. "
                "Put the folder back from an earlier backup; without it there is nothing to back up."
            )
        open_import(self._settings, uow, name, whole=True)
        for path in sorted(source.rglob("*")):
            if path.is_file():
                place = Path("snapshots") / name / path.relative_to(source)
                copy_or_link(path, folder / place, former / place if former is not None else None)


def verify_backup(
    backup: Path,
    server_url: str,
    *,
    scratch_url: str | None = None,
    place: Path | None = None,
    kept: Mapping[str, str] | None = None,
) -> VerifiedBackup:
    """Restore a backup in a scratch place and compute the reports of its studies.

    A backup of a PostgreSQL database is restored in a new one on the same server, or in the empty one of `scratch_url`.
    The scratch folder lies in `place`, by default beside the backup. `kept` are heads, from `known_heads`, that its
    audit trail must have. Raise InvalidInputError if the folder is not a backup or a file of it is damaged, StoreError
    if the restored database differs from the manifest or a report cannot be computed.
    """
    manifest = read_manifest(backup)
    check_files(backup, manifest)
    place = place or backup.parent
    with (
        writing(place, "Name another folder with --scratch."),
        tempfile.TemporaryDirectory(prefix=".verifying-", dir=place, ignore_cleanup_errors=True) as scratch,
    ):
        folder = Path(scratch)
        for name in manifest.contents.snapshot_folders if manifest.with_snapshots else ():
            (folder / "snapshots").mkdir(exist_ok=True)
            (folder / "snapshots" / name).symlink_to((backup / "snapshots" / name).absolute())
        with scratch_database(backup / manifest.database, folder, server_url, scratch_url) as url:
            read_copy(backup / manifest.database, url)
            examine(url)
            with Database(url) as database:
                _require_same(database, manifest, kept)
                with database.read() as uow:
                    for name in manifest.contents.snapshot_folders if manifest.with_snapshots else ():
                        open_import(Settings(folder, url), uow, name, whole=True)
                reports = _reports(Settings(folder, url), database) if manifest.with_snapshots else {}
    _require_same_reports(backup, reports)
    write_json(
        backup / VERIFIED,
        {"program_version": __version__, "reports": reports, "audit_head": manifest.contents.audit_head},
    )
    return VerifiedBackup(backup, manifest, reports)


def list_backups(parent: Path) -> list[Path]:
    """Return the verified backups of whole sites in a folder, oldest first."""
    return sorted(path.parent for path in parent.glob(f"*-{TITLE}/{VERIFIED}") if (path.parent / MANIFEST).is_file())


@dataclass(frozen=True)
class NotedBackup:
    """A backup that the audit trail tells of."""

    made_at: datetime  # aware
    folder: Path | None  # None: not in the home, and made by a version that did not note where
    problem: str  # why nothing can be restored from it, as a sentence; empty when nothing speaks against it


def noted_backups(settings: Settings, uow: UnitOfWork) -> Iterator[NotedBackup]:
    """Look for the backups that the audit trail tells of, and compare the sizes of their files; newest first."""
    for act in uow.audit.latest(_MOST_NOTED, action=BACKUP_MADE):
        details = parse_json(act.details)
        in_home = settings.backups / act.object.removeprefix("backup ")
        noted = Path(details["folder"]) if "folder" in details else None
        folder = in_home if in_home.exists() else noted
        problem = _problem(folder, details.get("head")) if folder is not None else ""
        yield NotedBackup(datetime.fromisoformat(act.at), folder, problem)


_MOST_NOTED = 100


def _problem(folder: Path, head: str | None) -> str:
    if not os.path.lexists(folder):
        return f"It is not at {folder} any more: it was deleted or moved, or its disk is not there."
    try:
        manifest = read_manifest(folder)
        check_files(folder, manifest, by_size=True)
    except InvalidInputError as error:
        return str(error)
    is_it = head in (None, manifest.contents.audit_head)
    return "" if is_it else f"What lies at {folder} is another backup."


def remove_oldest(parent: Path, keep: int) -> list[Path]:
    """Remove the oldest verified backups beyond a number, never the last one, and return those removed.

    Raise InvalidInputError if fewer than one is to stay.
    """
    if keep < 1:
        raise InvalidInputError(f"At least 1 backup must stay, not {keep}.")
    surplus = list_backups(parent)[:-keep]
    for folder in surplus:
        # Under another name first: a half removed backup must not pass for one.
        shutil.rmtree(folder.rename(folder.with_name(f".removing-{folder.name}")))
    return surplus


def _require_same(database: Database, manifest: BackupManifest, kept: Mapping[str, str] | None = None) -> None:
    """Compare a restored database with the manifest; then upgrade it and check its audit trail."""
    found = contents(database.url)
    if found != manifest.contents:
        wrong = sorted(table for table, n in manifest.contents.n_rows.items() if found.n_rows.get(table) != n) or [
            "the audit trail"
        ]
        raise StoreError(f"The restored database is not what was backed up: {', '.join(wrong)}. Use another backup.")
    database.upgrade()
    with database.read() as uow:
        uow.audit.require_whole(manifest.contents.audit_head, kept)


def _reports(settings: Settings, database: Database) -> dict[str, str]:
    application = Application(settings, database)
    return {study.slug: content_hash(application.reports.report(study.slug)) for study in application.studies.all()}


def _require_same_reports(backup: Path, reports: dict[str, str]) -> None:
    """Compare the reports with those of the first verification by the same version."""
    try:
        former = parse_json((backup / VERIFIED).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    if former.get("program_version") == __version__ and former.get("reports") != reports:
        raise StoreError(
            f"The reports computed from {backup} are not those of its first verification. Use another backup, and "
            "please report this."
        )


@contextmanager
def _restored(copy: Path, settings: Settings, folder: Path) -> Iterator[Database]:
    """Yield the restored database: in the folder that becomes the home, or where the site's URL says."""
    file = sqlite_file(parse_url(settings.database_url))
    is_inside = file is not None and file.is_relative_to(settings.home)
    place = folder / file.relative_to(settings.home) if file is not None and is_inside else file
    url = settings.database_url if place is None else f"sqlite:///{place}"
    read_copy(copy, url)
    try:
        with Database(url) as database:
            yield database
    except BaseException:
        if place is not None:
            place.unlink(missing_ok=True)
        raise
