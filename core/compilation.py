"""How loops are compiled: to machine code that gives the same bits whoever compiles it, and when.

Sums keep the order in which the source writes them, and a product is fused with an addition only where the source says
so. Machine code that may reorder has several roads for one loop and chooses by where arrays lie in memory: that gave
two answers in the last bit on one day.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar, cast

import numba
from llvmlite import ir
from numba.core import cgutils, errors, types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])

_LANES: Final = 8
"""Sums side by side in `dot`: as many float32 as a register of the usual processors holds."""


def compiled(function: F) -> F:
    """Compile for threads without the interpreter lock; keep the machine code on disk where there is a place for it."""
    return _compile(function, fastmath=False)


def compiled_for_exact_sums(function: F) -> F:
    """Compile a loop whose sums may be reordered, because it adds only whole numbers, which floats hold exactly."""
    return _compile(function, fastmath={"reassoc", "nsz"})


def _compile(function: F, fastmath: Any) -> F:
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}
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


def _dot(_context: Any, left: Any, right: Any) -> Any:
    """Give the sum of products: eight sums side by side, added in pairs, then what is left over, one after another.

    Written in vectors, because eight variables of a loop are not reliably kept in one register.
    """
    if not all(
        isinstance(side, types.Array)
        and isinstance(side.dtype, types.Float)
        and (side.dtype, side.ndim, side.layout) == (left.dtype, 1, "C")
        for side in (left, right)
    ):
        raise errors.TypingError(f"dot takes two contiguous float arrays of one precision, not {left}, {right}")

    def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        kinds = zip((left, right), arguments, strict=True)
        sides = [context.make_array(kind)(context, builder, argument) for kind, argument in kinds]
        index, size = context.get_value_type(types.intp), left.dtype.bitwidth
        lanes = ir.VectorType(context.get_value_type(left.dtype), _LANES)
        fused = builder.module.declare_intrinsic(f"llvm.fma.v{_LANES}f{size}", fnty=ir.FunctionType(lanes, [lanes] * 3))
        n = builder.extract_value(sides[0].shape, 0)
        end = builder.and_(n, index(-_LANES))
        sums = cgutils.alloca_once_value(builder, lanes(None))
        with cgutils.for_range_slice(builder, index(0), end, index(_LANES)) as (place, _):
            pointers = [builder.bitcast(builder.gep(side.data, [place]), lanes.as_pointer()) for side in sides]
            factors = [builder.load(pointer, align=size // 8) for pointer in pointers]
            builder.store(builder.call(fused, [*factors, builder.load(sums)]), sums)
        parts = [builder.extract_element(builder.load(sums), ir.IntType(32)(lane)) for lane in range(_LANES)]
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [builder.fadd(low, high) for low, high in zip(parts[:half], parts[half:], strict=True)]
        total = cgutils.alloca_once_value(builder, parts[0])
        with cgutils.for_range_slice(builder, end, n, index(1)) as (place, _):
            factors = [builder.load(builder.gep(side.data, [place])) for side in sides]
            builder.store(builder.fma(*factors, builder.load(total)), total)
        return builder.load(total)

    return left.dtype(left, right), code


dot: Callable[[Any, Any], Any] = intrinsic(_dot)
"""The sum of the products of two float arrays of shape (n,) and of one precision, which is also that of the sum."""
