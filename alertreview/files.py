"""Files that are whole or not there."""

import os
from pathlib import Path

from core.errors import SourceError


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file under another name and rename it, so that no half file is ever there.

    Raises
    ------
    SourceError
        If the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.part")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise SourceError(f"{path}: cannot be written ({error.strerror}). Name another file.") from error


def sync(path: Path) -> None:
    """Wait until the disk has a file, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
