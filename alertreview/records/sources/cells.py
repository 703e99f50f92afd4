"""Cells of text tables and database rows as whole numbers, times and numbers, with errors that name the row."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from alertreview.records.sources.base import microseconds, site_time
from core.errors import SourceError
from core.events.mapping import SiteMapping
from core.events.plausibility import Finding
from core.events.spelling import (
    NO_DATES,
    TIME_SPELLINGS,
    has_decimal_comma,
    identifier,
    is_pointed,
    is_rounded,
    shape_of,
    stands_for_nothing,
    tidy,
    time_in_text,
)

NO_ID = -(2**63)
"""Stands for a missing identifier; no source uses the smallest 64-bit number."""
_LARGEST_EXACT = 2.0**53


def whole_numbers(column: pa.Array, where: str, name: str, first_row: int) -> npt.NDArray[np.int64]:
    """Read identifiers as 64-bit integers, never through floats; `NO_ID` where a cell is empty.

    Raise SourceError, naming row, column and rule. Here and below, `where` is the file or table.
    """
    if pa.types.is_string(column.type):
        column = _without_nothing(column)
    if pa.types.is_floating(column.type):
        _refuse_rounded(column, where, name, first_row)
    try:
        return np.asarray(pc.fill_null(column.cast(pa.int64()), NO_ID).to_numpy(zero_copy_only=False))
    except pa.ArrowException:
        row = first_row + _first_bad(column, lambda cell: cell.cast(pa.int64()))
        raise SourceError(
            f"{where}: row {row:,}, column {name!r}: is not a whole number of 64 bits. Correct the cell."
        ) from None


def _refuse_rounded(column: pa.Array, where: str, name: str, first_row: int) -> None:
    """Raise an error for floats among which several identifiers may have become one."""
    large = np.flatnonzero(np.abs(pc.fill_null(column, 0).to_numpy(zero_copy_only=False)) >= _LARGEST_EXACT)
    if len(large):
        raise SourceError(
            f"{where}: row {first_row + int(large[0]):,}, column {name!r}: holds floating-point numbers, which keep 15 "
            "digits, and one is longer: several may have become one. Convert the column to whole numbers at its origin."
        )


def _without_nothing(column: pa.Array) -> pa.Array:
    """Return texts as identifiers, null where they stand for nothing."""
    encoded = column.dictionary_encode()
    named = [identifier(text) for text in encoded.dictionary.to_pylist()]
    return pa.array([None if stands_for_nothing(each) else each for each in named], pa.string()).take(encoded.indices)


def patients(column: pa.Array, where: str, first_row: int) -> npt.NDArray[np.object_]:
    """Read the identifiers of patients.

    Raise SourceError, naming the row, when it has no patient or a spreadsheet rounded the identifier.
    """
    encoded = column.dictionary_encode()
    named = [identifier(text) for text in encoded.dictionary.to_pylist()]
    codes = pc.fill_null(encoded.indices, len(named)).to_numpy(zero_copy_only=False)
    nobody = np.array([*map(stands_for_nothing, named), True], dtype=bool)[codes]
    if nobody.any():
        row = first_row + int(np.flatnonzero(nobody)[0])
        raise SourceError(f"{where}: row {row:,} has no patient. Every event belongs to one; correct the row.")
    rounded = np.array([*map(is_rounded, named), False], dtype=bool)[codes]
    if rounded.any():
        at = int(np.flatnonzero(rounded)[0])
        raise SourceError(
            f"{where}: row {first_row + at:,}: the patient {shape_of(named[codes[at]])!r} (each 9 is a digit) was "
            "rounded by a spreadsheet, so that several patients may have become one. Export the table again as text."
        )
    return np.asarray(texts(column).astype(object))


def _first_bad(column: pa.Array, convert: "object") -> int:
    """Find the first cell that cannot be converted, by halving."""
    low, high = 0, len(column)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            convert(column.slice(low, middle - low))  # type: ignore[operator]
            low = middle
        except pa.ArrowException:
            high = middle
    return low


class Zones:
    """Counts the times of a source with a zone, without one, and in another zone than the site's."""

    def __init__(self) -> None:
        self.n_with = self._n_without = self._n_foreign = 0

    def add(self, counts: npt.NDArray[np.int64], texts: Sequence[str], parsed: "_Parsed") -> None:
        """Count texts, each as often as it occurs; a date alone and UTC say nothing."""
        self.n_with += int(counts[parsed.has_zone].sum())
        naive = np.array([":" in text for text in texts], dtype=bool) & ~parsed.has_zone
        self._n_without += int(counts[naive].sum())
        self._n_foreign += int(counts[parsed.is_foreign].sum())

    def count(self, *, has_zone: bool, is_foreign: bool) -> None:
        """Count one time."""
        self.n_with += has_zone
        self._n_without += not has_zone
        self._n_foreign += is_foreign

    def findings(self) -> list[Finding]:
        """Return what was counted, for the checks of the import."""
        n = self.n_with + self._n_without
        return [
            Finding("mixed_zones", self._n_without if self.n_with else 0, n),
            Finding("foreign_zones", self._n_foreign, n),
        ]


def times(
    column: pa.Array, mapping: SiteMapping, where: str, name: str, first_row: int, zones: Zones | None = None
) -> pd.Series:
    """Read times, as `core.events.spelling.time_in_text` does, as site time without a zone.

    An empty cell is a missing time. Zones are counted, where wanted. Raise SourceError, naming row, column and rule.
    """
    if not pa.types.is_string(column.type):
        try:
            return site_time(microseconds(column), mapping)
        except (pa.ArrowException, ValueError, OverflowError):
            raise SourceError(
                f"{where}: column {name!r} holds no times, or one outside the calendar. Correct the rows."
            ) from None
    encoded = column.dictionary_encode()
    tidied = map(tidy, encoded.dictionary.to_pylist())
    texts = ["" if stands_for_nothing(each) or each in NO_DATES else each for each in tidied]
    parsed = _parse(texts, mapping)
    bad = np.flatnonzero(parsed.times.isna().to_numpy() & np.array([text != "" for text in texts], dtype=bool))
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    if len(bad):
        at = int(np.flatnonzero(np.isin(codes, bad))[0])
        raise SourceError(
            f"{where}: row {first_row + at:,}, column {name!r}: {shape_of(texts[codes[at]])!r} (each 9 is a digit) is "
            f"not a time in ISO 8601, such as {TIME_SPELLINGS}. Correct the cell."
        )
    if zones is not None:
        zones.add(np.bincount(codes[codes >= 0], minlength=len(texts)), texts, parsed)
    values = np.append(parsed.times.to_numpy(dtype="datetime64[us]"), np.datetime64("NaT", "us"))
    return pd.Series(values[codes])


_LONGEST_DATE = len("2026-02-28")


def are_dates(column: pa.Array) -> npt.NDArray[np.bool_]:
    """Mark the cells that are a day without a time of day."""
    if pa.types.is_string(column.type):
        is_date = pc.fill_null(pc.less_equal(pc.utf8_length(column), _LONGEST_DATE), False)
        return np.asarray(is_date.to_numpy(zero_copy_only=False), dtype=bool)
    return np.full(len(column), pa.types.is_date(column.type))


class _Parsed(NamedTuple):
    """Site times, missing where a text is not a time, and what was said of their zones."""

    times: pd.Series
    has_zone: npt.NDArray[np.bool_]
    is_foreign: npt.NDArray[np.bool_]


def _parse(texts: Sequence[str], mapping: SiteMapping) -> _Parsed:
    read = [time_in_text(text) or ("", None) for text in texts]
    local = pd.to_datetime(pd.Series([iso for iso, _ in read], dtype="str"), format="ISO8601", errors="coerce")
    local = local.astype("datetime64[us]")
    offset = np.array([seconds or 0 for _, seconds in read], dtype="timedelta64[s]")
    has_zone = np.array([seconds is not None for _, seconds in read], dtype=bool)
    out = site_time(local, mapping)
    if has_zone.any():
        utc = pd.Series(local.to_numpy()[has_zone] - offset[has_zone]).dt.tz_localize("UTC")
        out[has_zone] = site_time(utc, mapping).to_numpy()
    moved = has_zone & (out.to_numpy() != local.to_numpy()) & ~np.isnat(local.to_numpy())
    return _Parsed(out, has_zone, moved & (offset != np.timedelta64(0, "s")))


def numbers(column: pa.Array) -> tuple[npt.NDArray[np.float64], pa.Array | None]:
    """Read values; what is no number stays a text.

    Return the numbers, NaN where there is none, and the texts, null elsewhere; None when the column holds numbers.
    """
    if not (pa.types.is_string(column.type) or pa.types.is_null(column.type)):
        return pc.fill_null(column.cast(pa.float64()), float("nan")).to_numpy(zero_copy_only=False), None
    encoded = column.cast(pa.string()).dictionary_encode()
    texts = pd.Series(encoded.dictionary.to_pylist(), dtype="str")
    parsed = pd.to_numeric(texts.str.strip(), errors="coerce").to_numpy(dtype=np.float64, copy=True)
    parsed[_may_be_thousands(texts)] = np.nan
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    value = np.append(parsed, np.nan)[codes]
    text = pc.if_else(pa.array(np.isnan(value)), column.cast(pa.string()), pa.scalar(None, pa.string()))
    return value, text


def _may_be_thousands(texts: pd.Series) -> npt.NDArray[np.bool_]:
    """Mark numbers such as 1.234 that stand among decimal commas and no decimal points; they are read as texts."""
    tidied = [tidy(text) for text in texts] if texts.str.contains(",", regex=False).any() else []
    pointed = np.array([is_pointed(text) for text in tidied], dtype=bool)
    if not pointed.any() or not any(map(has_decimal_comma, tidied)):
        return np.zeros(len(texts), dtype=bool)
    plain = [text for text, is_it in zip(tidied, pointed, strict=True) if "." in text and "," not in text and not is_it]
    return pointed & (not plain)


def texts(column: pa.Array) -> pd.Categorical:
    """Read texts; categories are those that occur."""
    if not (pa.types.is_string(column.type) or pa.types.is_dictionary(column.type)):
        column = column.cast(pa.string())
    encoded = column.dictionary_encode()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    return pd.Categorical.from_codes(codes, categories=pd.Index(encoded.dictionary.to_pylist(), dtype="str"))


def details(columns: Mapping[str, pa.Array], mapping: SiteMapping, where: str, first_row: int) -> dict[str, object]:
    """Return the columns of a chunk that say more of an event and that the source has; see `core.events.facts`.

    These are ``end`` as times, ``dose`` and ``route`` as texts, ``range_low`` and ``range_high`` as numbers. Raise
    SourceError as `times` does.
    """
    out: dict[str, object] = {}
    for ours, theirs in mapping.details.items():
        if theirs not in columns:
            continue
        column = columns[theirs]
        if ours == "end":
            out[ours] = times(column, mapping, where, theirs, first_row)
        else:
            out[ours] = texts(column) if ours in ("dose", "route") else numbers(column)[0]
    return out
