"""Column types of our own: aware UTC times, compressed vectors, answer codes, and enumerations of the house words."""

import zlib
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt
import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from core.errors import InvalidInputError
from core.vocabulary import Answer

BigId = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
"""Row number of a table that may grow into the millions; SQLite numbers rows by itself only in an INTEGER column."""


class UtcDateTime(TypeDecorator[datetime]):
    """A moment: aware in, aware out, stored in UTC (SQLite as text without zone, PostgreSQL as timestamptz)."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Refuse a time without zone: nobody could say later when it was."""
        if value is None:
            return None
        if value.tzinfo is None or value.utcoffset() is None:
            raise InvalidInputError("A time without time zone cannot be stored; attach the site's zone first.")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the zone back that SQLite does not keep."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


_BYTES_TRIED = 4096
_WORTH_DEFLATING = 0.8


class Deflated(bytes):
    """A vector that was deflated before it is bound, where nobody waits for it."""


def deflate(value: npt.ArrayLike, number: str) -> Deflated:
    """Return the bytes of a one-dimensional array, deflated (level 1) if that makes them smaller.

    Scores of a whole run hardly shrink, and deflating them costs ten times what writing them does; vectors with many
    gaps or equal values do shrink. The beginning of a vector tells. Raise InvalidInputError if the array has more
    dimensions.
    """
    array = np.asarray(value)
    if array.ndim != 1:
        raise InvalidInputError(f"A stored vector has one dimension; this array has {array.ndim}.")
    stored = array.astype(np.dtype(number).newbyteorder("<"), casting="same_kind")
    raw = stored.tobytes()
    beginning = raw[:_BYTES_TRIED]
    shrinks = len(zlib.compress(beginning, level=1)) < _WORTH_DEFLATING * len(beginning)
    return Deflated(zlib.compress(raw, level=1 if shrinks else 0))


class CompressedVector(TypeDecorator[npt.NDArray[Any]]):
    """A one-dimensional array as deflated bytes of one number type (little-endian): "float32", "int32" or "int16".

    NaN is kept. A run scores millions of instance x task pairs; as single rows they cost ten times the space and
    minutes to write.
    """

    impl = sa.LargeBinary
    cache_ok = True

    def __init__(self, number: str) -> None:
        super().__init__()
        self.number = number

    def process_bind_param(self, value: npt.ArrayLike | None, dialect: Dialect) -> bytes | None:
        """Deflate, unless already done."""
        if value is None or isinstance(value, Deflated):
            return value
        return deflate(value, self.number)

    def process_result_value(self, value: bytes | None, dialect: Dialect) -> npt.NDArray[Any] | None:
        """Inflate into a read-only array."""
        if value is None:
            return None
        return np.frombuffer(zlib.decompress(value), dtype=np.dtype(self.number).newbyteorder("<"))


class AnswerCode(TypeDecorator[Answer]):
    """A reviewer's answer as its number, which never changes."""

    impl = sa.SmallInteger
    cache_ok = True

    def process_bind_param(self, value: Answer | None, dialect: Dialect) -> int | None:
        """Store the number."""
        return None if value is None else int(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> Answer | None:
        """Return the word back."""
        return None if value is None else Answer(value)


def words(vocabulary: type[StrEnum], name: str, *, checked: bool = True) -> sa.Enum:
    """Return a text column that takes only the values of a vocabulary, checked by the constraint `name`.

    When values are checked, a new one needs a migration.
    """
    return sa.Enum(
        vocabulary,
        native_enum=False,
        create_constraint=checked,
        validate_strings=True,
        values_callable=lambda members: [member.value for member in members],
        name=name,
        length=20,
    )
