"""Records: frozen dataclasses, of which those with a `__tablename__` are tables as well."""

import dataclasses
from collections.abc import Sequence
from datetime import datetime, tzinfo
from enum import StrEnum
from types import NoneType, UnionType
from typing import (
    Any,
    ClassVar,
    Final,
    Generic,
    Self,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
    overload,
)

import sqlalchemy as sa
from sqlalchemy.orm import InstrumentedAttribute

from core.vocabulary import Answer
from db.models.types import AnswerCode, UtcDateTime, words

R = TypeVar("R", bound="Record")
T = TypeVar("T")
JsonObject = dict[str, Any]
UNSAVED: Final[Any] = 0
"""Number of a record that is not stored yet: the database or the repository gives the real one."""
_TYPES: dict[Any, Any] = {
    Answer: AnswerCode,
    JsonObject: sa.JSON,
    bool: sa.Boolean,
    datetime: UtcDateTime,
    float: sa.Double,
    int: sa.Integer,
    str: sa.Text,
}


class Column(Generic[T]):
    """Annotation of a field that is a column too: a class has the column, a record the value."""

    @overload
    def __get__(self, instance: None, owner: object) -> InstrumentedAttribute[T]: ...
    @overload
    def __get__(self, instance: object, owner: object) -> T: ...
    def __get__(self, instance: object, owner: object) -> Any:
        """Exist for type checkers: classes hold the column itself, records the value."""

    def __set__(self, instance: object, value: T) -> None:
        """Exist for type checkers: records are frozen."""


@dataclasses.dataclass(frozen=True)
class _Given:
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    field: Any


def column(
    *arguments: Any, default: Any = dataclasses.MISSING, default_factory: Any = dataclasses.MISSING, **options: Any
) -> Any:
    """Declare a column where its annotation does not say everything.

    The default is that of the field; the column has none.
    """
    return _Given(arguments, options, dataclasses.field(default=default, default_factory=default_factory))


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(column, dataclasses.field))
class Record:
    """Frozen dataclass with fields by keyword.

    A subclass with a `__tablename__` is a table too: an annotation ``Column[type]`` makes a column, which the class has
    under the name of the field (``Person.name`` in a query, ``person.name`` for a value). ``ClassVar[Column[type]]``
    makes a column that records do not carry; an annotation without ``Column`` is a field that a query has to join.
    A subclass without a `__tablename__` adds fields to a table's or stands alone.
    """

    metadata: ClassVar[sa.MetaData] = sa.MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    __table__: ClassVar[sa.Table]
    __table_args__: ClassVar[Sequence[sa.schema.SchemaItem]] = ()
    __fields__: ClassVar[tuple[str, ...]]
    """Names of the fields, in their order."""

    def __init_subclass__(cls) -> None:
        given = {name: value for name, value in vars(cls).items() if isinstance(value, _Given)}
        hints = get_type_hints(cls)
        for name, value in given.items():
            setattr(cls, name, None if get_origin(hints[name]) is ClassVar else value.field)
        dataclasses.dataclass(frozen=True, kw_only=True)(cls)
        cls.__fields__ = tuple(field.name for field in dataclasses.fields(cast(Any, cls)))
        if "__tablename__" not in vars(cls):
            return
        columns = [_column(name, found[0], given.get(name)) for name, hint in hints.items() if (found := _mapped(hint))]
        tablename: str = vars(cls)["__tablename__"]
        cls.__table__ = sa.Table(tablename, cls.metadata, *columns, *cls.__table_args__)
        for name, own in cls.__table__.columns.items():
            setattr(cls, name, own)

    def in_zone(self, zone: tzinfo) -> Self:
        """Return the record with its times in a zone."""
        local = {name: at.astimezone(zone) for name, at in vars(self).items() if isinstance(at, datetime)}
        record = object.__new__(type(self))
        record.__dict__.update(vars(self), **local)
        return record

    @classmethod
    def __clause_element__(cls) -> sa.Table:
        """Return the table, where SQLAlchemy is given the class."""
        return cls.__table__


def _mapped(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) is ClassVar:
        return _mapped(get_args(hint)[0])
    return get_args(hint) if get_origin(hint) is Column else ()


def _column(name: str, hint: Any, given: _Given | None) -> sa.Column[Any]:
    arguments, options = (given.arguments, given.options) if given else ((), {})
    nullable = False
    if get_origin(hint) in (Union, UnionType):
        kinds = [kind for kind in get_args(hint) if kind is not NoneType]
        nullable, hint = len(kinds) < len(get_args(hint)), kinds[0]
    if not any(isinstance(one, (sa.types.TypeEngine, sa.ForeignKey, type)) for one in arguments):
        hint = getattr(hint, "__supertype__", hint)
        is_word = isinstance(hint, type) and issubclass(hint, StrEnum)
        arguments = (words(hint, name) if is_word else _TYPES[hint], *arguments)
    return sa.Column(name, *arguments, nullable=nullable, **options)


class _Alias:
    def __init__(self, alias: sa.FromClause) -> None:
        vars(self).update(alias.c.items())
        self._alias = alias

    def __clause_element__(self) -> sa.FromClause:
        return self._alias


def aliased(model: type[R]) -> type[R]:
    """Return a table under another name, for a query that meets it twice."""
    return cast("type[R]", _Alias(model.__table__.alias()))


def columns(model: type[Record], row_type: type[Record] | None = None) -> list[InstrumentedAttribute[Any]]:
    """Return the columns of a table that a record type has fields for, in its order; all its fields by default."""
    return [getattr(model, name) for name in (row_type or model).__fields__ if name in model.__table__.c]
