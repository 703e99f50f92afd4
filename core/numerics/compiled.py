"""Compile numerical loops with Numba, and the sums that several of them share.

The compiler may reorder a sum and fuse a product with an addition, so that both run in vector instructions. Processors
of different kinds then differ in the last digits: results are compared with a tolerance.
"""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba
import numpy as np

F = TypeVar("F", bound=Callable[..., Any])
SOURCES: Final = (
    "features",
    "graph/extension",
    "graph/feature_rows",
    "graph/kernels",
    "graph/neighbour_search",
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


def compiled(function: F) -> F:
    """Compile a loop that runs without the interpreter lock, and cache its machine code on disk where possible.

    Numba's cache knows a function by its name and its own file. A loop contains the code of the loops that it calls,
    so the state of all of them becomes a part of the name and stale code is never loaded.
    """
    function.__qualname__ = f"{function.__qualname__}_{_STATE}"
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": set(_FAST_MATH)}
    try:
        return cast("F", numba.njit(cache=True, **options)(function))
    except RuntimeError:
        # A read-only installation without a writable home has no place for a cache.
        return cast("F", numba.njit(**options)(function))


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
