"""Sums in vectors against plain loops, to the last bit: the order of every sum is stated, whatever the lengths."""

import numba
import numpy as np
import pytest

from core.numerics import compiled as vector_sums
from core.numerics.compiled import compiled

LENGTHS = [0, 1, 7, 8, 9, 15, 16, 17, 47, 48, 75, 111, 112, 113, 200, 208, 300]


@compiled
def sum_of_products(left, right):
    return vector_sums.dot(left, right)


@compiled
def sum_of_rows(matrix, rows, factors, total):
    vector_sums.combine_rows(matrix, rows, factors, total)


@compiled
def n_up_to(numbers, limit):
    return vector_sums.count_up_to(numbers, limit)


def fused(left, right, total):
    """One rounding: in float64 a product of float32 numbers is exact."""
    return type(left)(float(left) * float(right) + float(total))


def numbers(kind, *shape):
    """Numbers whose sums of products show their order in float32; in float64 whole ones, exact in any order."""
    drawn = np.random.default_rng(5).normal(size=shape)
    return drawn.astype(kind) if kind is np.float32 else np.round(1000 * drawn)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("n", LENGTHS)
def test_a_sum_of_products_is_eight_sums_added_in_pairs_and_then_the_rest(n, kind):
    left, right = numbers(kind, 2, n)
    left.flags.writeable = False
    sums, whole = [kind(0)] * 8, n - n % 8
    for i in range(whole):
        sums[i % 8] = fused(left[i], right[i], sums[i % 8])
    total = ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))
    for i in range(whole, n):
        total = fused(left[i], right[i], total)
    assert sum_of_products(left, right) == total


@pytest.mark.parametrize(("kind", "rows_kind"), [(np.float32, np.uint32), (np.float64, np.int64)])
@pytest.mark.parametrize("n", LENGTHS)
def test_each_column_of_a_sum_of_rows_is_one_sum_in_the_order_of_the_rows(n, kind, rows_kind):
    matrix, factors = numbers(kind, 12, n + 3), numbers(kind, 7)
    rows = np.array([3, 0, 11, 3, 7, 1, 10], dtype=rows_kind)
    expected = np.zeros(n, dtype=kind)
    for row, factor in zip(rows, factors, strict=True):
        expected = np.array([fused(x, factor, total) for x, total in zip(matrix[row, :n], expected, strict=True)], kind)
    total = np.full(n + 2, 9, dtype=kind)
    sum_of_rows(matrix, rows, factors, total[1 : n + 1])
    np.testing.assert_array_equal(total[1 : n + 1], expected)
    assert total[0] == total[-1] == 9


def test_no_rows_give_zeros():
    total = np.full(50, 9.0)
    sum_of_rows(np.ones((3, 50)), np.zeros(0, dtype=np.int64), np.zeros(0), total)
    assert not total.any()


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("n", LENGTHS)
def test_a_count_takes_the_limit_itself_in(n, kind):
    given = np.random.default_rng(n).integers(-5, 6, n).astype(kind)
    for limit in (-6, -2, 0, 5):
        assert n_up_to(given, kind(limit)) == (given <= limit).sum()


FLOATS, WHOLE = np.ones(8), np.ones(8, dtype=np.int64)


@pytest.mark.parametrize(
    ("function", "given"),
    [
        (sum_of_products, (FLOATS, np.ones(8, dtype=np.float32))),
        (sum_of_products, (WHOLE, WHOLE)),
        (sum_of_products, (np.ones(16)[::2], FLOATS)),
        (sum_of_products, (np.ones((2, 4)), np.ones((2, 4)))),
        (sum_of_products, (8.0, 8.0)),
        (sum_of_rows, (np.ones((8, 8)), FLOATS, FLOATS, FLOATS)),
        (sum_of_rows, (np.ones((8, 8)), WHOLE, FLOATS, np.ones(8, dtype=np.float32))),
        (sum_of_rows, (np.ones((8, 8)).T, WHOLE, FLOATS, FLOATS)),
        (n_up_to, (WHOLE, np.int32(1))),
        (n_up_to, (FLOATS, 1.0)),
        (n_up_to, (np.ones(16, dtype=np.int64)[::2], np.int64(1))),
    ],
)
def test_what_the_vectors_cannot_read_is_refused_when_compiled(function, given):
    with pytest.raises(numba.TypingError, match=r"takes (two )?contiguous"):
        function(*given)
