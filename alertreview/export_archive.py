"""Folders of exported files: made in private and removed, packed as one zip, and checksums of what is in them."""

import hashlib
import io
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CHECKSUMS = "SHA256SUMS"
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""Earliest date a zip can hold: the same files give the same bytes."""


@contextmanager
def scratch_in(place: Path) -> Iterator[Path]:
    """Make a folder that only its owner may read, and remove it whatever happens."""
    folder = Path(tempfile.mkdtemp(prefix=".export-", dir=place))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def digest_of(content: bytes) -> str:
    """SHA-256 in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def checksums(folder: Path) -> str:
    """List the SHA-256 of every file below a folder, in the form that ``sha256sum --check`` reads."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = [f"{digest_of(path.read_bytes())}  {path.relative_to(folder).as_posix()}" for path in files]
    return "".join(f"{line}\n" for line in lines)


def folder_digest(folder: Path) -> str:
    """SHA-256 of the list of checksums: one number that changes with any file of a folder, or its name."""
    return digest_of(checksums(folder).encode())


def zip_folder(folder: Path, name: str, *, with_checksums: bool = False) -> bytes:
    """Pack a folder.

    Parameters
    ----------
    folder : Path
    name : str
        Of the folder inside the zip, so that unpacking makes one thing.
    with_checksums : bool
        Add ``SHA256SUMS`` of all files.

    Returns
    -------
    bytes
        The same for the same files.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            _add(archive, f"{name}/{path.relative_to(folder).as_posix()}", path.read_bytes())
        if with_checksums:
            _add(archive, f"{name}/{CHECKSUMS}", checksums(folder).encode())
    return packed.getvalue()


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, _EPOCH)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o600 << 16
    archive.writestr(entry, content)
