"""The folder of a backup: how files get into it, and a manifest with their checksums."""

import filecmp
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from alertreview import __version__
from alertreview.files import becoming, parse_json, replacing, sha256_of, sync
from core.errors import DatabaseUnavailableError, InvalidInputError
from db.database import Database
from db.maintenance.copies import SQLITE_COPY, Contents, copy_name, examine, write_copy

MANIFEST = "backup.json"
VERIFIED = "verified.json"
FORMAT_VERSION = 1


@dataclass(frozen=True)
class BackedUpFile:
    """One file of a backup; `path` is relative to it, with slashes."""

    path: str
    n_bytes: int
    sha256: str


@dataclass(frozen=True)
class BackupManifest:
    """What a backup holds."""

    made_at: datetime  # aware
    program_version: str  # of the program that made it
    database: str  # name of the database's file
    with_snapshots: bool  # False when only the database was copied, before an upgrade
    contents: Contents  # of the database: rows of each table, schema, head of the audit trail, folders of the imports
    files: tuple[BackedUpFile, ...]  # everything but the manifest itself
    format_version: int = FORMAT_VERSION


_MANIFESTS = TypeAdapter(BackupManifest)


def read_manifest(folder: Path) -> BackupManifest:
    """Return the manifest of a backup.

    Raise InvalidInputError if the folder is not a backup, or this program does not read its version.
    """
    try:
        content = parse_json((folder / MANIFEST).read_text(encoding="utf-8"))
        version = content["format_version"]
        if version == FORMAT_VERSION:
            return _MANIFESTS.validate_python(content)
    except (OSError, ValueError, KeyError, TypeError):
        raise InvalidInputError(
            f"{folder} is not a backup: it has no readable {MANIFEST}. "
            "Name a folder that 'alertreview backup create' made."
        ) from None
    raise InvalidInputError(
        f"{folder} is a backup of version {version}; this program reads version {FORMAT_VERSION}. "
        "Use the program that made it."
    )


def check_files(folder: Path, manifest: BackupManifest, *, by_size: bool = False) -> None:
    """Compare every file with its checksum, or with its size alone.

    Raise InvalidInputError, naming the first that is missing or differs.
    """
    for file in manifest.files:
        path = folder / file.path
        if not path.is_file():
            raise InvalidInputError(f"The backup {folder} lacks {file.path}. Use another backup.")
        if path.stat().st_size != file.n_bytes or not (by_size or sha256_of(path) == file.sha256):
            raise InvalidInputError(
                f"The backup {folder} is damaged: {file.path} is not as it was written. Use another backup."
            )


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write indented JSON as a whole, readable by its owner alone, and wait for the disk."""
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False), encoding="utf-8")
        temporary.chmod(0o600)
        sync(temporary)


@contextmanager
def writing(place: Path, advice: str) -> Iterator[None]:
    """Raise DatabaseUnavailableError, with advice, for an OSError of the block."""
    try:
        yield
    except OSError as error:
        raise DatabaseUnavailableError(
            f"{place} cannot be written ({error.strerror}); nothing was kept. {advice}"
        ) from None


@contextmanager
def new_backup(target: Path) -> Iterator[Path]:
    """Yield the folder of a backup; it gets its name if the block succeeds, and is removed otherwise.

    Raise DatabaseUnavailableError if it cannot be written.
    """
    with (
        writing(target.parent, "Free some space there, or name another folder."),
        becoming(target, ".writing-") as folder,
    ):
        yield folder


def backup_name(now: datetime, title: str) -> str:
    """Return the name of a backup's folder; names sort by time."""
    return f"{now:%Y%m%dT%H%M%S%fZ}-{title}"


def copy_database(database: Database, folder: Path) -> Contents:
    """Copy a database into a backup's folder, check an SQLite copy, and return what it holds."""
    copy = folder / copy_name(database.url)
    held = write_copy(database.url, copy)
    if copy.name == SQLITE_COPY:
        examine(f"sqlite:///{copy}")
    return held


def write_manifest(database: Database, folder: Path, held: Contents, now: datetime, *, with_snapshots: bool) -> None:
    """Write the manifest of a backup whose files are complete."""
    manifest = BackupManifest(
        made_at=now,
        program_version=__version__,
        database=copy_name(database.url),
        with_snapshots=with_snapshots,
        contents=held,
        files=tuple(
            BackedUpFile(path.relative_to(folder).as_posix(), path.stat().st_size, sha256_of(path))
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        ),
    )
    write_json(folder / MANIFEST, _MANIFESTS.dump_python(manifest, mode="json"))


def copy_or_link(source: Path, target: Path, former: Path | None) -> None:
    """Copy a file, or link it to an equal file of a former backup to save space."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if former is not None and former.is_file() and filecmp.cmp(source, former, shallow=False):
        try:
            os.link(former, target)
        except OSError:
            pass
        else:
            return
    shutil.copyfile(source, target)
    target.chmod(0o600)
