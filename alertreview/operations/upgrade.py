"""Open the database of a site, upgrade its schema after a copy, or take it back."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from alertreview.operations.backup_manifest import backup_name, copy_database, new_backup, write_manifest
from alertreview.records.import_site import seal_former_imports
from alertreview.settings import Settings, now
from core.errors import AlertReviewError
from db import schema
from db.database import Database

BEFORE_UPGRADE = "before-upgrade"


def upgrade_site(settings: Settings, database: Database, now: datetime, *, backup: bool = True) -> Path | None:
    """Upgrade a site's database to the schema of this version.

    Return the folder of the copy made before, None without one. Raise StoreError if an older database cannot be copied
    first; nothing was changed then.
    """
    state = database.state()
    copy = None
    if backup and state.is_ours and state.revision is not None and state.revision < schema.head():
        copy = _copy(settings, database, f"{BEFORE_UPGRADE}-{state.revision}", now)
    database.upgrade()
    seal_former_imports(settings, database)
    return copy


def downgrade_site(
    settings: Settings, database: Database, revision: str, now: datetime, *, discard: bool = False
) -> tuple[Path, list[str]]:
    """Copy a site's database, then downgrade its schema for a former version of the program.

    Return the copy and what was lost. Raise RefusedError if something would be lost and `discard` is false; nothing was
    changed then.
    """
    copy = _copy(settings, database, f"before-downgrade-{database.state().revision}", now)
    try:
        return copy, database.downgrade(revision, discard=discard)
    except AlertReviewError:
        shutil.rmtree(copy, ignore_errors=True)
        raise


def _copy(settings: Settings, database: Database, title: str, now: datetime) -> Path:
    target = settings.backups / backup_name(now, title)
    with new_backup(target) as folder:
        held = copy_database(database, folder)
        write_manifest(database, folder, held, now, with_snapshots=False)
    return target


@contextmanager
def open_database(settings: Settings, *, upgrade: bool = False) -> Iterator[Database]:
    """Open the site's database and check its schema, created or upgraded first if wanted.

    Raise ForeignDatabaseError if it belongs to another program or a newer version.
    """
    database = Database(settings.database_url)
    try:
        if upgrade:
            upgrade_site(settings, database, now())
        database.check()
        yield database
    finally:
        database.dispose()
