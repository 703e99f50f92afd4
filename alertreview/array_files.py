"""Reads arrays from files, one reader at a time: parsing their headers is not safe in threads on every Python.

NumPy parses a header with the compiler of Python. In CPython 3.11 its count of nesting is shared by all threads: when
garbage is collected in the middle and Python code runs then (Dask's, for one), parsing ends in a SystemError.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

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
