"""Frozen dataclasses to plain dicts and lists and back, in a fixed order: JSON files and content hashes rest on it."""

import dataclasses
import math
import types
import typing
from collections.abc import Mapping
from enum import Enum
from typing import Any, TypeVar

from core.errors import InvalidInputError

T = TypeVar("T")


def to_plain(value: object) -> Any:
    """Turn dataclasses, tuples, mappings and enum members into dicts, lists and numbers.

    Parameters
    ----------
    value : object
        Made of dataclasses, tuples, lists, mappings with text keys, enum members, text, numbers, bool and None.

    Returns
    -------
    object
        Ready for `json.dumps`; fields in the order of their definition, keys of mappings sorted.

    Raises
    ------
    InvalidInputError
        If a number is NaN or infinite (a report says "not computable" instead), or a type has no plain form.

    Examples
    --------
    >>> to_plain({"b": (1, 2), "a": None})
    {'a': None, 'b': [1, 2]}
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Enum):
        return to_plain(value.value)
    if isinstance(value, Mapping):
        return {str(key): to_plain(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, (tuple, list)):
        return [to_plain(item) for item in value]
    if isinstance(value, bool) or value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InvalidInputError(f"A report cannot hold the number {value}; it must say why it is not computable.")
        return float(value)
    raise InvalidInputError(f"A report cannot hold a {type(value).__name__}; make it a plain number or text first.")


def from_plain(kind: type[T], plain: object) -> T:
    """Rebuild a value of type `kind` from what `to_plain` returned.

    Raises
    ------
    InvalidInputError
        If a field is missing or unknown, or a value does not have the type of its field; the text names the field.
    """
    rebuilt: T = _rebuild(kind, plain, kind.__name__)
    return rebuilt


def _rebuild(kind: Any, plain: Any, where: str) -> Any:
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _rebuild_dataclass(kind, plain, where)
    origin = typing.get_origin(kind)
    if origin in (types.UnionType, typing.Union):
        inner = [a for a in typing.get_args(kind) if a is not type(None)]
        return None if plain is None else _rebuild(inner[0], plain, where)
    if origin is tuple:
        _demand(plain, list, where)
        item_kind = typing.get_args(kind)[0]
        return tuple(_rebuild(item_kind, item, f"{where}[{i}]") for i, item in enumerate(plain))
    if origin is not None and issubclass(origin, Mapping):
        _demand(plain, dict, where)
        item_kind = typing.get_args(kind)[1]
        return {key: _rebuild(item_kind, item, f"{where}[{key!r}]") for key, item in plain.items()}
    if isinstance(kind, type) and issubclass(kind, Enum):
        try:
            return kind(plain)
        except ValueError:
            raise InvalidInputError(f"{where} is {plain!r}; it must be one of {[m.value for m in kind]}.") from None
    return _rebuild_number_or_text(kind, plain, where)


def _rebuild_dataclass(kind: type, plain: Any, where: str) -> Any:
    _demand(plain, dict, where)
    hints = typing.get_type_hints(kind)
    names = {f.name for f in dataclasses.fields(kind)}
    missing, unknown = sorted(names - plain.keys()), sorted(plain.keys() - names)
    if missing or unknown:
        raise InvalidInputError(
            f"{where} does not have the fields of this version (missing: {', '.join(missing) or 'none'}; "
            f"unknown: {', '.join(unknown) or 'none'}). Make the report again with this version."
        )
    return kind(**{name: _rebuild(hints[name], plain[name], f"{where}.{name}") for name in plain})


def _rebuild_number_or_text(kind: Any, plain: Any, where: str) -> Any:
    if kind is float and isinstance(plain, int) and not isinstance(plain, bool):
        return float(plain)
    _demand(plain, kind, where)
    return plain


def _demand(plain: Any, kind: type, where: str) -> None:
    if not isinstance(plain, kind) or (kind is int and isinstance(plain, bool)):
        raise InvalidInputError(f"{where} is a {type(plain).__name__}; it must be a {kind.__name__}.")
