"""Dates that a database stores as numbers: days, seconds, milliseconds or microseconds since 1970, or 20260228."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.errors import SourceError

_LAST_SECOND = 253_402_300_799
"""End of the year 9999."""
_MOST_DAYS = 200_000
"""Days until the year 2517; as seconds, all of them lie within the first three days of 1970."""


class Unit(NamedTuple):
    """What the numbers of a column are."""

    words: str
    microseconds: int  # how many there are in one; 0 for dates written as eight digits


_DIGITS = Unit("dates of eight digits", 0)
_UNITS = (
    Unit("days", 86_400_000_000),
    Unit("seconds", 1_000_000),
    Unit("milliseconds", 1_000),
    Unit("microseconds", 1),
)


def is_time(column: str) -> bool:
    """Return whether a column of an OMOP CDM holds dates or times."""
    return column.endswith(("_date", "_datetime"))


def unit_of(low: float, high: float) -> Unit:
    """Return what the numbers of a column are, from the smallest and the largest.

    Examples
    --------
    >>> unit_of(16_000, 20_000).words, unit_of(-5e8, 1.7e9).words, unit_of(19_500_101, 20_261_231).words
    ('days', 'seconds', 'dates of eight digits')
    """
    most = max(abs(low), abs(high))
    if low >= 1800_01_01 and high <= 2999_12_31:
        return _DIGITS
    limits = (_MOST_DAYS, _LAST_SECOND, _LAST_SECOND * 1000, np.inf)
    return next(unit for unit, limit in zip(_UNITS, limits, strict=True) if most <= limit)


def times_of(column: pa.Array, unit: Unit, where: str, name: str, first_row: int) -> pa.Array:
    """Turn numbers into times; raise SourceError, naming row, column and rule, when there is no such date."""
    missing = np.asarray(pc.is_null(column, nan_is_null=True))
    values = np.where(missing, 0, pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False))
    if unit is _DIGITS:
        whole = values.astype(np.int64)
        year, month, day = whole // 10_000, whole // 100 % 100, whole % 100
        months = (year - 1970) * 12 + month - 1
        dates = months.astype("datetime64[M]").astype("datetime64[D]") + (day - 1)
        is_date = (month >= 1) & (month <= 12) & (day >= 1) & (dates.astype("datetime64[M]").astype(int) == months)
        bad = ~missing & ~is_date
        found = dates.astype("datetime64[us]")
    else:
        limit = _LAST_SECOND * 1_000_000 / unit.microseconds
        bad = ~missing & ~(np.abs(values) <= limit)
        found = np.round(np.where(bad, 0, values) * unit.microseconds).astype(np.int64).astype("datetime64[us]")
    if bad.any():
        row = first_row + int(np.flatnonzero(bad)[0])
        raise SourceError(
            f"{where}: row {row:,}, column {name!r}: is none of the {unit.words} that the rest of the column holds. "
            "Correct the cell."
        )
    return pa.array(np.where(missing, np.datetime64("NaT", "us"), found), pa.timestamp("us"))
