"""What a backup says of itself: its files with checksums, the rows of each table, and the head of the audit trail."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from alertreview import __version__
from alertreview.files import sync
from core.errors import DatabaseUnavailableError, InvalidInputError
from db.database import Database
from db.maintenance.copies import SQLITE_COPY, Contents, copy_name, examine, write_copy

MANIFEST = "backup.json"
VERIFIED = "verified.json"
FORMAT_VERSION = 1
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class BackedUpFile:
    """One file of a backup; `path` is relative to it, with slashes."""

    path: str
    n_bytes: int
    sha256: str


@dataclass(frozen=True)
class BackupManifest:
    """What a backup holds.

    Parameters
    ----------
    made_at : datetime
        Aware.
    program_version : str
        Of the program that made it.
    database : str
        Name of the database's file.
    with_snapshots : bool
        False when only the database was copied, before an upgrade.
    contents : Contents
        Of the database: rows of each table, schema, head of the audit trail, folders of the imports.
    files : tuple of BackedUpFile
        Everything but the manifest itself.
    """

    made_at: datetime
    program_version: str
    database: str
    with_snapshots: bool
    contents: Contents
    files: tuple[BackedUpFile, ...]

    def write(self, folder: Path) -> None:
        """Write it into a backup's folder."""
        content = asdict(self) | {"format_version": FORMAT_VERSION, "made_at": self.made_at.isoformat()}
        write_json(folder / MANIFEST, content)


def read_manifest(folder: Path) -> BackupManifest:
    """Read a backup's manifest.

    Raises
    ------
    InvalidInputError
        If the folder is no backup, or of a version that this program does not read.
    """
    try:
        content = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        version = content.pop("format_version")
        if version != FORMAT_VERSION:
            raise InvalidInputError(
                f"{folder} is a backup of version {version}; this program reads version {FORMAT_VERSION}. "
                "Use the program that made it."
            )
        files = tuple(BackedUpFile(**entry) for entry in content.pop("files"))
        held = content.pop("contents")
        folders = tuple(held.pop("snapshot_folders"))
        made_at = datetime.fromisoformat(content.pop("made_at"))
        return BackupManifest(
            made_at=made_at, contents=Contents(snapshot_folders=folders, **held), files=files, **content
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(
            f"{folder} is no backup: it has no readable {MANIFEST}. "
            "Name a folder that 'alertreview backup create' made."
        ) from None


def describe_files(folder: Path) -> tuple[BackedUpFile, ...]:
    """List every file below a folder with size and checksum."""
    return tuple(
        BackedUpFile(path.relative_to(folder).as_posix(), path.stat().st_size, sha256_of(path))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in {MANIFEST, VERIFIED}
    )


def check_files(folder: Path, manifest: BackupManifest) -> None:
    """Compare every file with its checksum.

    Raises
    ------
    InvalidInputError
        It names the first file that is missing or not as it was written.
    """
    for file in manifest.files:
        path = folder / file.path
        if not path.is_file():
            raise InvalidInputError(f"The backup {folder} lacks {file.path}. Use another backup.")
        if path.stat().st_size != file.n_bytes or sha256_of(path) != file.sha256:
            raise InvalidInputError(
                f"The backup {folder} is damaged: {file.path} is not as it was written. Use another backup."
            )


def sha256_of(path: Path) -> str:
    """SHA-256 of a file in hexadecimal digits, read piece by piece."""
    digest = hashlib.sha256()
    with path.open("rb") as opened:
        while chunk := opened.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write JSON for people and programs, under another name first, and wait for the disk."""
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False), encoding="utf-8")
    sync(temporary)
    temporary.chmod(0o600)
    temporary.replace(path)


@dataclass(frozen=True)
class PendingBackup:
    """A backup that is being written into `folder` and will be `target`."""

    folder: Path
    target: Path


@contextmanager
def new_backup(parent: Path, title: str, now: datetime) -> Iterator[PendingBackup]:
    """Make a folder for a backup; it gets its name when the block ends well and is removed otherwise.

    Parameters
    ----------
    parent : Path
        Folder of the backups; made when it is not there.
    title : str
        What stands behind the time in the name.
    now : datetime
        Aware.

    Raises
    ------
    DatabaseUnavailableError
        If it cannot be written; nothing was kept.
    """
    target = parent / f"{now:%Y%m%dT%H%M%S%fZ}-{title}"
    folder = None
    try:
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".writing-", dir=parent))
        yield PendingBackup(folder, target)
        for path in [*sorted(folder.rglob("*")), folder]:
            sync(path)
        folder.rename(target)
        sync(parent)
    except OSError as error:
        raise DatabaseUnavailableError(
            f"The backup cannot be written to {parent} ({error.strerror}); nothing of it was kept. "
            "Free some space there, or name another folder."
        ) from None
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def copy_database(database: Database, folder: Path) -> Contents:
    """Copy a database into a backup's folder and have an SQLite copy look over itself; gives what it holds."""
    copy = folder / copy_name(database.url)
    held = write_copy(database.url, copy)
    if copy.name == SQLITE_COPY:
        examine(f"sqlite:///{copy}")
    return held


def describe(database: Database, folder: Path, held: Contents, now: datetime, *, with_snapshots: bool) -> None:
    """Write the manifest of a backup whose files are all there."""
    BackupManifest(
        made_at=now,
        program_version=__version__,
        database=copy_name(database.url),
        with_snapshots=with_snapshots,
        contents=held,
        files=describe_files(folder),
    ).write(folder)


def copy_or_link(source: Path, target: Path, former: Path | None) -> None:
    """Copy a file, or link it to a former backup's copy of the same content, so that it takes no room twice."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if former is not None and former.is_file() and _same(source, former):
        try:
            os.link(former, target)
        except OSError:
            pass
        else:
            return
    shutil.copyfile(source, target)
    target.chmod(0o600)


def _same(one: Path, other: Path) -> bool:
    if one.stat().st_size != other.stat().st_size:
        return False
    return sha256_of(one) == sha256_of(other)
