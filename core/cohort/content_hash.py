"""The content hash of a cohort: the same import gives the same hash, on every machine and however it was cut."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.events.mapping import SiteMapping
from core.events.parts import EventStream
from core.events.stream import EVENT_COLUMNS
from core.kinds import EVENT_NAMES

if TYPE_CHECKING:
    from core.cohort.cohort import Built

_LATER_KEYS = (
    "categories",
    "checks",
    "min_positive_of_kind",
    "details",
    "patient_identifier",
    "code_prefix",
    "tables",
    "origins",
    "sentinel_dates",
    "not_done_words",
    "done_words",
    "day_level",
    "ask_about",
    "act_words",
)
_N_FIRST_EVENTS = 12
"""Kinds of events that every hash names; one that came later counts only where it occurs."""
_TABLES = ("patients", "stays", "instances", "feature_dictionary", "tasks")


def content_hash(
    built: "Built",
    stream: EventStream,
    used_texts: Mapping[str, npt.NDArray[np.bool_]],
    features: Iterator[npt.NDArray[Any]],
    mapping: SiteMapping,
) -> str:
    """Hash everything in a cohort and the mapping that made it, in 64 hex digits.

    `used_texts` says of each column which of the stream's categories occur; the features are those of
    `core.cohort.cohort.CohortSink.feature_chunks`.
    """
    digest = hashlib.sha256(json.dumps(_said(mapping), sort_keys=True).encode())
    for name in _TABLES:
        table: pd.DataFrame = getattr(built, name)
        for column in table.columns:
            digest.update(f"{name}.{column}".encode())
            _hash_column(digest, table[column])
    for column in EVENT_COLUMNS:
        digest.update(f"events.{column}".encode())
        _hash_events(digest, column, stream, used_texts)
    for chunk in features:
        digest.update(np.ascontiguousarray(chunk).data)
    decisions = built.decisions
    for part, kind in ((decisions.indptr, np.int64), (decisions.indices, np.int64), (decisions.data, None)):
        digest.update(np.ascontiguousarray(part, dtype=kind).tobytes())
    digest.update(f"{built.site_timezone} {built.calendar_is_shifted} {built.simulated}".encode())
    return digest.hexdigest()


def _said(mapping: SiteMapping) -> dict[str, Any]:
    """Return everything that a mapping says; a key that came later counts only where it is used."""
    later = mapping.model_dump(mode="json", include=set(_LATER_KEYS), exclude_defaults=True)
    return {**mapping.model_dump(mode="json", exclude=set(_LATER_KEYS)), **later}


def _hash_events(
    digest: "hashlib._Hash", column: str, stream: EventStream, used_texts: Mapping[str, npt.NDArray[np.bool_]]
) -> None:
    if column == "patient_id":
        _hash_texts(digest, (each for part in stream.parts([column]) for each in part[column].cat.categories.tolist()))
        n_before = 0
        for part in stream.parts([column]):
            digest.update((part[column].cat.codes.to_numpy(dtype=np.int64) + n_before).data)
            n_before += len(part[column].cat.categories)
    elif column in used_texts:
        used = used_texts[column]
        _hash_texts(digest, (text for text, is_used in zip(stream.categories[column], used, strict=True) if is_used))
        place = np.cumsum(used, dtype=np.int64) - 1
        for part in stream.parts([column]):
            digest.update(place[part[column].cat.codes.to_numpy()].data)
    else:
        for i, part in enumerate(stream.parts([column])):
            if i == 0 and column == "kind":
                _hash_texts(
                    digest, iter(EVENT_NAMES[: max(_N_FIRST_EVENTS, *(kind.number + 1 for kind in stream.kinds))])
                )
            digest.update(_as_bytes(part[column]))


def _hash_texts(digest: "hashlib._Hash", texts: Iterable[str]) -> None:
    digest.update("\0".join(texts).encode())


def _as_bytes(column: pd.Series) -> memoryview:
    values: npt.NDArray[Any]
    if isinstance(column.dtype, pd.CategoricalDtype):
        values = column.cat.codes.to_numpy(dtype=np.int64)
    elif pd.api.types.is_datetime64_any_dtype(column.dtype):
        values = column.to_numpy().astype("datetime64[us]", copy=False).view("int64")
    else:
        values = column.to_numpy().astype("float64" if column.dtype.kind == "f" else "int64", copy=False)
    return np.ascontiguousarray(values).data


def _hash_column(digest: "hashlib._Hash", column: pd.Series) -> None:
    if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_datetime64_any_dtype(column.dtype):
        digest.update(_as_bytes(column))
        return
    _hash_texts(digest, map(str, column.to_numpy(dtype=object, na_value="\1").tolist()))
