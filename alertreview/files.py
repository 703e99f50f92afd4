"""Files and folders that are complete or absent, arrays on disk, and the data files of the program."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock, RLock
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from core.errors import SourceError

CHECKSUMS = "checksums.json"
"""Checksums of the other files of a folder; its own is in the audit trail."""
_RESTORE = "Stop and restore the folder from the last verified backup, or import and score again."
_READING = RLock()
FileState: TypeAlias = tuple[int, ...]
_HERE = Path(__file__).resolve().parent


def parse_json(text: str | bytes) -> Any:
    """Return what a text in JSON says; raise ValueError if it is no JSON, or nested too deeply to be read."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def require_replaceable(path: Path) -> None:
    """Raise a SourceError if a finished file would replace a device, a pipe or a name in /dev, as root's would."""
    if path.absolute().parent == Path("/dev") or (path.exists() and not (path.is_file() or path.is_dir())):
        raise SourceError(f"{path}: is a device or a pipe, which a file would replace. Name another file.")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside a file; it replaces the file if the block succeeds, and is removed otherwise.

    Raise SourceError if the file cannot be written, or the path is a device or a pipe.
    """
    require_replaceable(path)
    temporary = path.parent / f".{path.name}.part"
    try:
        yield temporary
        temporary.replace(path)
    except OSError as error:
        raise SourceError(f"{path}: cannot be written ({error.strerror}). Name another file.") from error
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file as a whole; raise SourceError if it cannot be written."""
    with replacing(path) as temporary:
        temporary.write_bytes(content)


@contextmanager
def becoming(target: Path, prefix: str) -> Iterator[Path]:
    """Yield a temporary folder; it is synced and renamed if the block succeeds, and removed otherwise.

    Missing parents of the target are created, readable by their owner alone; the temporary folder, beside the target,
    begins with the prefix.
    """
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=target.parent))
    try:
        yield folder
        for path in [*sorted(folder.rglob("*")), folder]:
            if not path.is_symlink():
                sync(path)
        folder.rename(target)
        sync(target.parent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def write_checksums(folder: Path) -> str:
    """Write the checksums of all files of a folder into it, unless they are there and right.

    Return what `check_files` wants. Raise SourceError if the file cannot be written, or the folder has checksums that
    do not fit.
    """
    path = folder / CHECKSUMS
    if path.exists():
        check_files(folder, sha256_of(path))
        return sha256_of(path)
    content = json.dumps(_checksums(folder), indent=1, sort_keys=True, ensure_ascii=False)
    with replacing(path) as temporary:
        temporary.write_text(content, encoding="utf-8")
        temporary.chmod(0o600)
        sync(temporary)
    return sha256_of(path)


def check_files(folder: Path, checksum: str) -> None:
    """Compare all files of a folder with the checksums that `write_checksums` wrote.

    Raise SourceError, which names the file, if one is missing, new or not as it was written.
    """
    known = _written_checksums(folder, checksum)
    with _readable(folder):
        found = _checksums(folder)
    for name in sorted({*known, *found}):
        if name not in found:
            raise SourceError(f"{folder / name} is missing. {_RESTORE}")
        if known.get(name) != found[name]:
            raise SourceError(f"{folder / name} is not as it was written. {_RESTORE}")


class CheckedFiles:
    """Files of a folder, each compared with its checksum when it is first used and whenever it has changed since.

    The checksum is that of `write_checksums`; with None nothing is compared.
    """

    def __init__(self, folder: Path, checksum: str | None) -> None:
        self.folder = folder
        self._known = None if checksum is None else _written_checksums(folder, checksum)
        self._sound: dict[str, FileState] = {}
        self._comparing = Lock()

    def path(self, name: str) -> Path:
        """Return the path of a file that is as it was written; raise SourceError if it is missing or changed."""
        self.state(name)
        return self.folder / name

    def state(self, name: str) -> FileState:
        """Return what changes when a file, compared as in `path`, is written again."""
        path = self.folder / name
        with _readable(self.folder):
            state = _state(path)
            if self._known is None or self._sound.get(name) == state:
                return state
            with self._comparing:  # the second of two readers need not compare again
                state = _state(path)
                if self._sound.get(name) != state and sha256_of(path) != self._known.get(name):
                    raise SourceError(f"{path} is not as it was written. {_RESTORE}")
                self._sound[name] = state
        return state


def _state(path: Path) -> FileState:
    found = path.stat()
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _written_checksums(folder: Path, checksum: str) -> dict[str, str]:
    with _readable(folder):
        content = (folder / CHECKSUMS).read_bytes()
    if hashlib.sha256(content).hexdigest() != checksum:
        raise SourceError(f"{folder / CHECKSUMS} is not as it was written. {_RESTORE}")
    known: dict[str, str] = parse_json(content)
    return known


@contextmanager
def _readable(folder: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise SourceError(f"{error.filename} is missing. {_RESTORE}") from None
    except OSError as error:
        raise SourceError(f"{error.filename or folder}: cannot be read ({error.strerror}). {_RESTORE}") from None


def _checksums(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): sha256_of(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != CHECKSUMS
    }


@contextmanager
def arrays_of(file: Path) -> Iterator[Mapping[str, NDArray[Any]]]:
    """Open the arrays of an .npz file, each read on access; pickled objects are refused."""
    with _READING, np.load(file, allow_pickle=False) as arrays:
        yield arrays


def array_of(file: Path, mmap_mode: Literal["c"] | None = None) -> NDArray[Any]:
    """Return the array of an .npy file, or map it into memory; pickled objects are refused."""
    with _READING:
        array: NDArray[Any] = np.load(file, mmap_mode=mmap_mode, allow_pickle=False)
    return array


def data_folder() -> Path:
    """Return the folder of the mapping presets and dictionaries."""
    installed = _HERE / "data"
    return installed if installed.is_dir() else _HERE.parent / "data"


def preset_paths() -> dict[str, Path]:
    """Return the site mappings that come with the program, by name, in alphabetical order."""
    return {path.stem: path for path in sorted((data_folder() / "mappings").glob("*.yaml"))}
