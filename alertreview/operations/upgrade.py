"""The database of a site: opened and known to be ours; its schema upgraded after a copy, or taken back."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from alertreview.operations.backup_manifest import copy_database, describe, new_backup
from alertreview.settings import Settings, now
from core.errors import AlertReviewError
from db import schema
from db.database import Database

BEFORE_UPGRADE = "before-upgrade"


def upgrade_site(settings: Settings, database: Database, now: datetime, *, backup: bool = True) -> Path | None:
    """Bring a site's database to this version's schema.

    Parameters
    ----------
    settings : Settings
        The site; the copy goes to the folder of its backups.
    database : Database
        Of the site.
    now : datetime
        Aware.
    backup : bool
        Copy the database first, when it is an older version's; False says that somebody has a backup already.

    Returns
    -------
    Path or None
        Folder of the copy; None when none was needed.

    Raises
    ------
    StoreError
        If the copy cannot be made; then nothing was changed.
    """
    state = database.state()
    copy = None
    if backup and state.is_ours and state.revision is not None and state.revision < schema.head():
        copy = _copy(settings, database, f"{BEFORE_UPGRADE}-{state.revision}", now)
    database.upgrade()
    return copy


def downgrade_site(
    settings: Settings, database: Database, revision: str, now: datetime, *, discard: bool = False
) -> tuple[Path, list[str]]:
    """Take a site's schema back to an older one, for a former version of the program; a copy is made first.

    Returns
    -------
    copy : Path
        Folder of the copy.
    lost : list of str
        What was lost, empty unless `discard` allowed it.

    Raises
    ------
    RefusedError
        If something would be lost and `discard` is false; nothing was changed.
    """
    copy = _copy(settings, database, f"before-downgrade-{database.state().revision}", now)
    try:
        return copy, database.downgrade(revision, discard=discard)
    except AlertReviewError:
        shutil.rmtree(copy, ignore_errors=True)
        raise


def _copy(settings: Settings, database: Database, title: str, now: datetime) -> Path:
    with new_backup(settings.backups, title, now) as pending:
        held = copy_database(database, pending.folder)
        describe(database, pending.folder, held, now, with_snapshots=False)
    return pending.target


@contextmanager
def open_database(settings: Settings, *, upgrade: bool = False) -> Iterator[Database]:
    """Open the site's database and make sure that it is ours.

    Parameters
    ----------
    settings : Settings
        The site.
    upgrade : bool
        Make or renew its tables.

    Raises
    ------
    ForeignDatabaseError
        If it belongs to another program or a newer version.
    """
    database = Database(settings.database_url)
    try:
        if upgrade:
            upgrade_site(settings, database, now())
        database.check()
        yield database
    finally:
        database.dispose()
