"""Heads of the audit trail that were kept: in backups, and in an anchor file outside the home."""

import os
from datetime import datetime
from pathlib import Path

from alertreview.files import sync
from alertreview.operations.backup_manifest import read_manifest
from alertreview.settings import Settings
from core.errors import InvalidInputError, SettingsError, SourceError

BACKUPS_COMPARED = 14


def known_heads(settings: Settings, backups: list[Path]) -> dict[str, str]:
    """Return heads that the audit trail must still have, and where each was kept; damaged backups are left out.

    Backups are verified ones, oldest first. Raise SettingsError if the anchor file cannot be read.
    """
    heads = {head: f"line {number} of {settings.anchor}" for number, head in enumerate(_anchored(settings), start=1)}
    for folder in backups[-BACKUPS_COMPARED:]:
        try:
            heads[read_manifest(folder).contents.audit_head] = f"the backup {folder}"
        except InvalidInputError:
            continue
    return heads


def anchor(settings: Settings, at: datetime, n_events: int, head: str) -> None:
    """Append a head to the anchor file, if there is to be one; raise SourceError if it cannot be written."""
    if settings.anchor is None:
        return
    try:
        descriptor = os.open(settings.anchor, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, f"{at.isoformat()} {n_events} {head}\n".encode())
        finally:
            os.close(descriptor)
        sync(settings.anchor)
    except OSError as error:
        raise SourceError(
            f"The anchor file {settings.anchor} cannot be written ({error.strerror}). Create it for this account, or "
            "correct 'anchor' in alertreview.toml."
        ) from None


def _anchored(settings: Settings) -> list[str]:
    if settings.anchor is None or not settings.anchor.exists():
        return []
    try:
        lines = settings.anchor.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"The anchor file {settings.anchor} cannot be read ({error}).") from None
    heads = [line.rpartition(" ")[2] for line in lines]
    for number, head in enumerate(heads, start=1):
        if len(head) != 64 or set(head) - set("0123456789abcdef"):
            raise SettingsError(
                f"Line {number} of the anchor file {settings.anchor} does not end with a head of 64 digits. Put the "
                "line back, or begin a new file after 'alertreview audit verify'."
            )
    return heads
