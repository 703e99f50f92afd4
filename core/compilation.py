"""How loops are compiled: to machine code that gives the same bits whoever compiles it, and when.

Sums keep the order in which the source writes them, and a product is fused with an addition only where the source says
so. Machine code that may reorder has several roads for one loop and chooses by where arrays lie in memory: that gave
two answers in the last bit on one day.
"""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba
from numba.core import errors, types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

SOURCES: Final = (
    "calibration",
    "compilation",
    "distances",
    "extension",
    "feature_rows",
    "features",
    "kernels",
    "neighbour_search",
    "vector_sums",
)
"""Modules whose code ends up in each other's loops."""


def digest_of(files: Iterable[Path]) -> str:
    """Give a short text that changes whenever one of the files does."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:12]


_STATE: Final = digest_of(Path(__file__).with_name(f"{module}.py") for module in SOURCES)


def compiled(function: F) -> F:
    """Compile for threads without the interpreter lock; keep the machine code on disk where there is a place for it.

    What is kept is known by the function's name and the state of its own file. A loop holds the code of those that it
    calls as well, so the state of all of them is made a part of the name: old code is never taken for new.
    """
    function.__qualname__ = f"{function.__qualname__}_{_STATE}"
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        return cast("F", numba.njit(cache=True, **options)(function))
    except RuntimeError:
        # A read-only installation without a writable home has no place for a cache.
        return cast("F", numba.njit(**options)(function))


def _fma(_context: Any, a: Any, b: Any, c: Any) -> Any:
    """Give a * b + c with one rounding; all of one float type, because a conversion would be a rounding unseen."""
    if not isinstance(a, types.Float) or a != b or a != c:
        raise errors.TypingError(f"fma takes three floats of one type, not {a}, {b}, {c}")

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return a(a, a, a), code


fma: Callable[[Any, Any, Any], Any] = intrinsic(_fma)
"""The product of two floats and a third added to it, rounded once."""
