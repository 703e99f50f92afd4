"""How loops are compiled: to machine code that gives the same bits whoever compiles it, and when.

Sums keep the order in which the source writes them, and a product is fused with an addition only where the source says
so. Machine code that may reorder has several roads for one loop and chooses by where arrays lie in memory: that gave
two answers in the last bit on one day.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import errors, types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile for threads without the interpreter lock; keep the machine code on disk where there is a place for it."""
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
