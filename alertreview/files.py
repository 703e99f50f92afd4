"""Files that are whole or not there."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

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


_READING = RLock()


@contextmanager
def arrays_of(file: Path) -> Iterator[Mapping[str, NDArray[Any]]]:
    """Open the arrays of an .npz file, each read when it is asked for; never a pickled object."""
    with _READING, np.load(file, allow_pickle=False) as arrays:
        yield arrays


def array_of(file: Path, mmap_mode: Literal["c"] | None = None) -> NDArray[Any]:
    """Read the array of an .npy file, or map it into memory; never a pickled object."""
    with _READING:
        array: NDArray[Any] = np.load(file, mmap_mode=mmap_mode, allow_pickle=False)
    return array


_HERE = Path(__file__).resolve().parent


def data_folder() -> Path:
    """Folder with mapping presets and dictionaries.

    Returns
    -------
    Path
    """
    installed = _HERE / "data"
    return installed if installed.is_dir() else _HERE.parent / "data"


def preset_paths() -> dict[str, Path]:
    """Site mappings that come with the program, by name, in alphabetical order."""
    return {path.stem: path for path in sorted((data_folder() / "mappings").glob("*.yaml"))}
