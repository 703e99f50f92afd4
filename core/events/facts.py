"""Context facts: what a reader of a case needs beside the event stream, and what never becomes a feature or a task.

A fact either stands alone (a diagnosis, an allergy) or says more of an event of the stream, which has the same patient,
kind, item and time (the dose and route of a drug order, the reference range of a result).
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.events.series import lexical_order


class FactKind(StrEnum):
    """What a fact is that stands alone; others carry the kind of their event, `core.events.stream.EventKind`."""

    DIAGNOSIS = "DIAGNOSIS"
    PROBLEM = "PROBLEM"  # an entry of the problem list, which outlives a stay
    REASON = "REASON"  # why the patient was admitted
    PROCEDURE = "PROCEDURE"
    ALLERGY = "ALLERGY"
    VITAL_SIGN = "VITAL_SIGN"  # a vital sign that is no feature; one that is comes as an event of kind OBSERVATION
    MICROBIOLOGY = "MICROBIOLOGY"
    REPORT = "REPORT"  # a diagnostic report, such as of radiology


FACT_COLUMNS = (
    "patient_id",
    "kind",
    "item",
    "name",
    "start",
    "end",
    "known_at",
    "value",
    "text",
    "unit",
    "dose",
    "route",
    "range_low",
    "range_high",
)
"""Columns of facts: texts are "" and numbers NaN where the source has none; ``start`` and ``end`` may be missing times,
and ``known_at`` is when the fact could be known, never before ``start``."""

DETAIL_COLUMNS = ("dose", "route", "range_low", "range_high")
"""Columns of a chunk, texts and then numbers, that make a fact of an event which has any of them."""

_TIMES = ("start", "end", "known_at")
_NUMBERS = ("value", "range_low", "range_high")
_SORTED_BY = ("patient_id", "start", "kind", "item", "end", "known_at", "value", "text", "dose", "route", "range_low")


def empty_facts() -> pd.DataFrame:
    """Return a table of facts without rows, with the right types."""
    columns = {name: pd.Series([], dtype="str") for name in FACT_COLUMNS}
    columns |= {name: pd.Series([], dtype="datetime64[us]") for name in _TIMES}
    columns |= {name: pd.Series([], dtype="float64") for name in _NUMBERS}
    return pd.DataFrame(columns)


def rows_with_details(chunk: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Mark the rows of a chunk that have a dose, a route or a reference range, of shape (n_rows,)."""
    mark = np.zeros(len(chunk), dtype=bool)
    for name in DETAIL_COLUMNS:
        if name in chunk:
            column = chunk[name]
            mark |= column.notna().to_numpy() & (column != "").to_numpy()
    return mark


def sorted_facts(facts: pd.DataFrame) -> pd.DataFrame:
    """Return facts by patient and time, each once."""
    keys = [_sort_key(facts[name]) for name in _SORTED_BY]
    order = lexical_order(*keys)
    ordered = facts[list(FACT_COLUMNS)].take(order).reset_index(drop=True)
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.logical_or.reduce([key[order[1:]] != key[order[:-1]] for key in keys])
    # Only facts that agree in what they are sorted by can be the same.
    alike = np.flatnonzero(~(new & np.append(new[1:], True)))
    doubled = alike[ordered.take(alike).duplicated().to_numpy()]
    return ordered.drop(index=doubled).reset_index(drop=True) if len(doubled) else ordered


def _sort_key(column: pd.Series) -> npt.NDArray[np.generic]:
    """Return numbers in the order of the values of a column, missing values first."""
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return np.asarray(column.to_numpy(), dtype="datetime64[us]").astype(np.int64)
    if pd.api.types.is_float_dtype(column.dtype):
        numbers = column.to_numpy()
        return np.asarray(np.nan_to_num(numbers, nan=-np.inf, posinf=np.inf, neginf=-np.finfo(float).max))
    if isinstance(column.dtype, pd.CategoricalDtype):
        return np.asarray(column.cat.codes.to_numpy())
    return np.asarray(pd.factorize(column, sort=True)[0])


@dataclass(frozen=True)
class FactsDigest:
    """A hash of facts that does not depend on their order."""

    n: int = 0
    total: int = 0

    def __add__(self, facts: pd.DataFrame) -> "FactsDigest":
        """Return the digest with further facts."""
        plain = facts.assign(
            **{name: facts[name].to_numpy().astype("datetime64[us]").astype("int64") for name in _TIMES}
        )
        hashes = pd.util.hash_pandas_object(plain[list(FACT_COLUMNS)], index=False, categorize=True).to_numpy()
        return FactsDigest(self.n + len(facts), (self.total + int(hashes.sum(dtype=np.uint64))) % 2**64)

    def onto(self, content_hash: str) -> str:
        """Return the hash of a cohort together with its facts; without facts it is that of the cohort."""
        if self.n == 0:
            return content_hash
        return hashlib.sha256(f"{content_hash} {self.n} {self.total}".encode()).hexdigest()


def digest_of(parts: Iterable[pd.DataFrame]) -> FactsDigest:
    """Return the digest of facts that come in parts."""
    digest = FactsDigest()
    for part in parts:
        digest += part
    return digest
