"""Makes the folder of a backup: private, written under another name, and given its own only when it is whole."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from alertreview import __version__
from alertreview.backup_manifest import BackupManifest, describe_files, sha256_of
from alertreview.files import sync
from core.errors import DatabaseUnavailableError
from db.copies import SQLITE_COPY, Contents, copy_name, examine, write_copy
from db.session import Database


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
