"""How loops are compiled: to machine code that gives the same bits whoever compiles it, and when.

Sums keep the order in which the source writes them, and a product is fused with an addition only where the source says
so. Machine code that may reorder has several roads for one loop and chooses by where arrays lie in memory: that gave
two answers in the last bit on one day.
"""

import functools
import hashlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba
from llvmlite import ir
from numba.core import cgutils, errors, types
from numba.extending import intrinsic

F = TypeVar("F", bound=Callable[..., Any])
SOURCES: Final = (
    "features",
    "graph/extension",
    "graph/feature_rows",
    "graph/kernels",
    "graph/neighbour_search",
    "numerics/compiled",
    "numerics/distances",
    "scoring/calibration",
)
"""Modules whose code ends up in each other's loops."""


def digest_of(files: Iterable[Path]) -> str:
    """Return a short text that changes whenever one of the files does."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:12]


_STATE: Final = digest_of(Path(__file__).parents[1] / f"{module}.py" for module in SOURCES)


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
    """Return a * b + c with one rounding; all of one float type, because a conversion would be a rounding unseen."""
    if not isinstance(a, types.Float) or a != b or a != c:
        raise errors.TypingError(f"fma takes three floats of one type, not {a}, {b}, {c}")

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return a(a, a, a), code


fma: Callable[[Any, Any, Any], Any] = intrinsic(_fma)
"""The product of two floats and a third added to it, rounded once."""


_DOT_LANES: Final = 8
"""Sums side by side in `dot`, and counts in `count_up_to`."""
_ROW_LANES: Final = 16
"""Columns side by side in `combine_rows`: float32 numbers of one cache line."""
_BLOCKS: Final = (7, 3, 1)
"""Vectors of columns that `combine_rows` keeps in registers at a time, the most that the columns fill."""


class _Vectors:
    """Writes steps on vectors of one type of number into the code that is being made."""

    def __init__(self, context: Any, builder: Any, dtype: Any, n_lanes: int) -> None:
        self._builder = builder
        self._n_lanes = n_lanes
        self._alignment = dtype.bitwidth // 8
        self.kind = ir.VectorType(context.get_value_type(dtype), n_lanes)

    def zeros(self) -> Any:
        """Make room for a vector of zeros and give its pointer."""
        room = cgutils.alloca_once(self._builder, self.kind)
        self._builder.store(self.kind(None), room)
        return room

    def add_product(self, left: Any, right: Any, room: Any) -> None:
        """Add a product of two vectors to the one in a room, rounded once."""
        name = f"llvm.fma.v{self._n_lanes}f{8 * self._alignment}"
        fused = self._builder.module.declare_intrinsic(name, fnty=ir.FunctionType(self.kind, [self.kind] * 3))
        self._builder.store(self._builder.call(fused, [left, right, self._builder.load(room)]), room)

    def read(self, pointer: Any) -> Any:
        """Read the numbers from a pointer to the first."""
        return self._builder.load(self._at(pointer), align=self._alignment)

    def write(self, vector: Any, pointer: Any) -> None:
        """Write the numbers to a pointer to the first."""
        self._builder.store(vector, self._at(pointer), align=self._alignment)

    def lanes(self, vector: Any) -> list[Any]:
        """Return the numbers one by one."""
        return [self._builder.extract_element(vector, ir.IntType(32)(lane)) for lane in range(self._n_lanes)]

    def spread(self, number: Any) -> Any:
        """Return a vector that holds one number everywhere."""
        first = self._builder.insert_element(self.kind(ir.Undefined), number, ir.IntType(32)(0))
        places = ir.VectorType(ir.IntType(32), self._n_lanes)(None)
        return self._builder.shuffle_vector(first, self.kind(ir.Undefined), places)

    def _at(self, pointer: Any) -> Any:
        return self._builder.bitcast(pointer, self.kind.as_pointer())


def _dot(_context: Any, left: Any, right: Any) -> Any:
    """Return the sum of products: eight sums side by side, added in pairs, then the remainder one by one."""
    if not _are_contiguous_floats((left, 1), (right, 1)):
        raise errors.TypingError(f"dot takes two contiguous float arrays of one precision, not {left}, {right}")

    def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        sides = _arrays(context, builder, (left, right), arguments)
        index = context.get_value_type(types.intp)
        vectors = _Vectors(context, builder, left.dtype, _DOT_LANES)
        n = builder.extract_value(sides[0].shape, 0)
        end = builder.and_(n, index(-_DOT_LANES))
        sums = vectors.zeros()
        with cgutils.for_range_slice(builder, index(0), end, index(_DOT_LANES)) as (place, _):
            factors = [vectors.read(builder.gep(side.data, [place])) for side in sides]
            vectors.add_product(factors[0], factors[1], sums)
        parts = vectors.lanes(builder.load(sums))
        while len(parts) > 1:
            half = len(parts) // 2
            parts = [builder.fadd(low, high) for low, high in zip(parts[:half], parts[half:], strict=True)]
        total = cgutils.alloca_once_value(builder, parts[0])
        with cgutils.for_range_slice(builder, end, n, index(1)) as (place, _):
            factors = [builder.load(builder.gep(side.data, [place])) for side in sides]
            builder.store(builder.fma(*factors, builder.load(total)), total)
        return builder.load(total)

    return left.dtype(left, right), code


def _combine_rows(_context: Any, matrix: Any, rows: Any, factors: Any, total: Any) -> Any:
    """Write the sum of factors times rows: every column is one sum, in the order of the rows."""
    fits = _are_contiguous_floats((total, 1), (factors, 1), (matrix, 2))
    if not (fits and isinstance(rows, types.Array) and isinstance(rows.dtype, types.Integer) and rows.layout == "C"):
        given = f"{matrix}, {rows}, {factors}, {total}"
        raise errors.TypingError(f"combine_rows takes contiguous arrays of one precision and whole rows, not {given}")

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table, chosen, weights, sums = _arrays(context, builder, signature.args, arguments)
        index = context.get_value_type(types.intp)
        vectors = _Vectors(context, builder, total.dtype, _ROW_LANES)
        n, n_rows = builder.extract_value(sums.shape, 0), builder.extract_value(chosen.shape, 0)
        width = builder.extract_value(table.shape, 1)

        def each_row(first: Any) -> Any:
            """Go through the rows; give where a row's part begins that begins with a column, and the row's factor."""
            with cgutils.for_range(builder, n_rows, intp=index) as loop:
                row = context.cast(
                    builder, builder.load(builder.gep(chosen.data, [loop.index])), rows.dtype, types.intp
                )
                part = builder.gep(table.data, [builder.add(builder.mul(row, width), first)])
                yield part, builder.load(builder.gep(weights.data, [loop.index]))

        def write_block(first: Any, n_vectors: int) -> None:
            rooms = [vectors.zeros() for _ in range(n_vectors)]
            places = [index(vector * _ROW_LANES) for vector in range(n_vectors)]
            for part, factor in each_row(first):
                spread = vectors.spread(factor)
                for place, room in zip(places, rooms, strict=True):
                    vectors.add_product(vectors.read(builder.gep(part, [place])), spread, room)
            start = builder.gep(sums.data, [first])
            for place, room in zip(places, rooms, strict=True):
                vectors.write(builder.load(room), builder.gep(start, [place]))

        def write_blocks(sizes: Sequence[int]) -> None:
            if not sizes:
                with cgutils.for_range(builder, n, intp=index) as loop:
                    write_column(loop.index)
                return
            size = index(sizes[0] * _ROW_LANES)
            with builder.if_else(builder.icmp_signed(">=", n, size)) as (enough, too_few):
                with enough, cgutils.for_range_slice(builder, index(0), n, size) as (start, _):
                    # The last block begins earlier instead of being shorter; columns met twice come out the same.
                    last = builder.sub(n, size)
                    write_block(builder.select(builder.icmp_signed("<", start, last), start, last), sizes[0])
                with too_few:
                    write_blocks(sizes[1:])

        def write_column(column: Any) -> None:
            room = cgutils.alloca_once(builder, vectors.kind.element)
            builder.store(vectors.kind.element(0), room)
            for part, factor in each_row(column):
                builder.store(builder.fma(builder.load(part), factor, builder.load(room)), room)
            builder.store(builder.load(room), builder.gep(sums.data, [column]))

        write_blocks(_BLOCKS)
        return context.get_dummy_value()

    return types.void(matrix, rows, factors, total), code


def _count_up_to(_context: Any, numbers: Any, limit: Any) -> Any:
    """Count the entries up to a limit, eight at a time, then what is left over."""
    whole = isinstance(numbers, types.Array) and isinstance(numbers.dtype, types.Integer)
    if not (whole and (numbers.ndim, numbers.layout, numbers.dtype) == (1, "C", limit)):
        raise errors.TypingError(f"count_up_to takes contiguous whole numbers and one of them, not {numbers}, {limit}")

    def code(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        (entries,) = _arrays(context, builder, (numbers,), arguments[:1])
        index, number = context.get_value_type(types.intp), context.get_value_type(numbers.dtype)
        vectors = _Vectors(context, builder, numbers.dtype, _DOT_LANES)
        n, top = builder.extract_value(entries.shape, 0), vectors.spread(arguments[1])
        end = builder.and_(n, index(-_DOT_LANES))
        counts = vectors.zeros()
        with cgutils.for_range_slice(builder, index(0), end, index(_DOT_LANES)) as (place, _):
            is_counted = builder.icmp_signed("<=", vectors.read(builder.gep(entries.data, [place])), top)
            builder.store(builder.add(builder.load(counts), builder.zext(is_counted, vectors.kind)), counts)
        parts = vectors.lanes(builder.load(counts))
        total = cgutils.alloca_once_value(builder, functools.reduce(builder.add, parts))
        with cgutils.for_range_slice(builder, end, n, index(1)) as (place, _):
            is_counted = builder.icmp_signed("<=", builder.load(builder.gep(entries.data, [place])), arguments[1])
            builder.store(builder.add(builder.load(total), builder.zext(is_counted, number)), total)
        return builder.load(total)

    return numbers.dtype(numbers, limit), code


def _are_contiguous_floats(*arrays: tuple[Any, int]) -> bool:
    """Return whether all are contiguous float arrays of one precision, each of its number of dimensions."""
    precision = getattr(arrays[0][0], "dtype", None)
    return isinstance(precision, types.Float) and all(
        isinstance(kind, types.Array) and (kind.dtype, kind.ndim, kind.layout) == (precision, n_dimensions, "C")
        for kind, n_dimensions in arrays
    )


def _arrays(context: Any, builder: Any, kinds: Any, arguments: Any) -> list[Any]:
    return [context.make_array(kind)(context, builder, given) for kind, given in zip(kinds, arguments, strict=True)]


dot: Callable[[Any, Any], Any] = intrinsic(_dot)
"""The sum of the products of two float arrays of shape (n,) and of one precision, which is also that of the sum."""
combine_rows: Callable[[Any, Any, Any, Any], None] = intrinsic(_combine_rows)
"""Write the sum of factors times rows of a matrix into `total`, which may have fewer columns than the matrix.

Takes ``matrix`` of shape (n_rows, n_columns), ``rows`` and ``factors`` of shape (m,), ``total`` of shape (n,).
"""
count_up_to: Callable[[Any, Any], Any] = intrinsic(_count_up_to)
"""The number of entries of at most a limit, which has their type, in whole numbers of shape (n,)."""
