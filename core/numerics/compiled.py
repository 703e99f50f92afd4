"""Compile numerical loops with Numba, and the sums that several of them share.

The compiler may reorder a sum and fuse a product with an addition, so that both run in vector instructions. Processors
of different kinds then differ in the last digits: results are compared with a tolerance.
"""

import functools
import hashlib
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])
SOURCES: Final = (
    "cohort/feature_loops",
    "cohort/reference_bands",
    "events/cleaning",
    "features",
    "graph/extension",
    "graph/feature_rows",
    "graph/kernels",
    "graph/shared_graph",
    "numerics/boosted_trees",
    "numerics/compiled",
    "numerics/distances",
    "scoring/calibration",
)
"""Modules whose code ends up in each other's loops."""
_FAST_MATH: Final = frozenset({"reassoc", "contract"})
"""What LLVM may assume: no more, because infinite distances and signed zeros mean something here."""


def digest_of(files: Iterable[Path]) -> str:
    """Return a short text that changes whenever one of the files does."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:12]


_STATE: Final = digest_of(Path(__file__).parents[1] / f"{module}.py" for module in SOURCES)


_AT_FIRST_USE: Final = threading.RLock()


class _Loop:
    """A loop that imports Numba, a quarter of a second, when Python calls it or Numba compiles a loop that calls it."""

    def __init__(self, function: Callable[..., Any], fast_math: frozenset[str]) -> None:
        functools.update_wrapper(self, function)
        self._fast_math = fast_math
        self.__qualname__ = function.__qualname__ = f"{function.__qualname__}_{_STATE}"
        self._function = function
        self._machine_code: Any = None

    def __call__(self, *arguments: Any) -> Any:
        return self._compiler()(*arguments)

    def _compiler(self) -> Any:
        if self._machine_code is None:
            with _AT_FIRST_USE:
                self._machine_code = self._machine_code or _jit(self._function, self._fast_math)
        return self._machine_code

    @property
    def _numba_type_(self) -> Any:
        # Numba asks for this attribute of a global that a loop names.
        return self._compiler()._numba_type_


def _jit(function: Callable[..., Any], fast_math: frozenset[str]) -> Any:
    import numba

    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": set(fast_math)}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        # A read-only installation without a writable home has no place for a cache.
        return numba.njit(**options)(function)


def compiled(function: F) -> F:
    """Return a loop that runs without the interpreter lock; compiled when first used, and cached on disk if possible.

    Numba's cache knows a function by its name and its own file. A loop contains the code of the loops that it calls,
    so the state of all of them becomes a part of the name and stale code is never loaded.
    """
    return cast("F", _Loop(function, _FAST_MATH))


def compiled_exactly(function: F) -> F:
    """Return a loop as `compiled` does, whose operations run as they are written: every machine rounds alike."""
    return cast("F", _Loop(function, frozenset()))


@compiled
def dot(left: Any, right: Any) -> Any:
    """Return the sum of the products of two float arrays of shape (n,) and one precision, in that precision."""
    total = left.dtype.type(0)
    for i in range(len(left)):
        total += left[i] * right[i]
    return total


@compiled
def combine_rows(matrix: Any, rows: Any, factors: Any, total: Any) -> None:
    """Write the sum of factors times rows of a matrix into `total`, which may have fewer columns than the matrix.

    Takes ``matrix`` of shape (n_rows, n_columns), ``rows`` and ``factors`` of shape (m,), ``total`` of shape (n,).
    """
    n_whole = len(rows) - len(rows) % 4
    total[:] = 0
    # Four rows at a time: `total` is read and written a quarter as often.
    for i in range(0, n_whole, 4):
        a, b, c, d = matrix[rows[i]], matrix[rows[i + 1]], matrix[rows[i + 2]], matrix[rows[i + 3]]
        of_a, of_b, of_c, of_d = factors[i], factors[i + 1], factors[i + 2], factors[i + 3]
        for j in range(len(total)):
            total[j] += of_a * a[j] + of_b * b[j] + of_c * c[j] + of_d * d[j]
    for i in range(n_whole, len(rows)):
        row, factor = matrix[rows[i]], factors[i]
        for j in range(len(total)):
            total[j] += factor * row[j]


@compiled
def count_up_to(numbers: Any, limit: Any) -> Any:
    """Return how many entries of an integer array of shape (n,) are at most `limit`, which has their type."""
    count = np.int32(0)
    for i in range(len(numbers)):
        # Cast back, or the count would be of 64 bits and half as many would fit a vector.
        count = np.int32(count + (numbers[i] <= limit))
    return count
