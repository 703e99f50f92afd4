"""Cells of text tables and database rows as whole numbers, times and numbers, with errors that name the row."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from alertreview.records.sources.base import microseconds, site_time
from core.errors import SourceError
from core.events.mapping import SiteMapping

NO_ID = -(2**63)
"""Stands for a missing identifier; no source uses the smallest 64-bit number."""


def whole_numbers(column: pa.Array, where: str, name: str, first_row: int) -> npt.NDArray[np.int64]:
    """Read identifiers as 64-bit integers, never through floats.

    Parameters
    ----------
    column : Array
        Texts or integers.
    where, name : str
        File or table and column, for errors.
    first_row : int

    Returns
    -------
    array of int64
        `NO_ID` where a cell is empty.

    Raises
    ------
    SourceError
        Naming row, column and rule.
    """
    if pa.types.is_string(column.type):
        column = pc.utf8_trim_whitespace(column)
        column = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
    try:
        return np.asarray(pc.fill_null(column.cast(pa.int64()), NO_ID).to_numpy(zero_copy_only=False))
    except pa.ArrowException:
        row = first_row + _first_bad(column, lambda cell: cell.cast(pa.int64()))
        raise SourceError(
            f"{where}: row {row:,}, column {name!r}: is no whole number of 64 bits. Correct the cell."
        ) from None


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


def times(column: pa.Array, mapping: SiteMapping, where: str, name: str, first_row: int) -> pd.Series:
    """Read times as site time without a zone; an empty cell is a missing time.

    Parameters
    ----------
    column : Array
        Texts in ISO 8601 ("2026-02-28", "2026-02-28 06:15", "2026-02-28T06:15:00+01:00"), dates or timestamps.
    mapping : SiteMapping
    where, name : str
    first_row : int

    Returns
    -------
    Series of datetime64[us]

    Raises
    ------
    SourceError
        Naming row, column and rule.
    """
    if not pa.types.is_string(column.type):
        try:
            return site_time(microseconds(column), mapping)
        except (pa.ArrowException, ValueError, OverflowError):
            raise SourceError(f"{where}: column {name!r} holds no times, or one outside the calendar.") from None
    encoded = column.dictionary_encode()
    texts = pd.Series(encoded.dictionary.to_pylist(), dtype="str").str.strip()
    parsed = _parse(texts, mapping)
    bad = np.flatnonzero((parsed.isna() & (texts != "")).to_numpy())
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    if len(bad):
        row = first_row + int(np.flatnonzero(np.isin(codes, bad))[0])
        raise SourceError(
            f"{where}: row {row:,}, column {name!r}: is no time in ISO 8601 such as 2026-02-28 06:15. Correct the cell."
        )
    values = np.append(parsed.to_numpy(dtype="datetime64[us]"), np.datetime64("NaT", "us"))
    return pd.Series(values[codes])


def _parse(texts: pd.Series, mapping: SiteMapping) -> pd.Series:
    has_zone = texts.str.contains(r"\d(?:Z|[+-]\d{2}:?\d{2})$", regex=True, na=False) & texts.str.contains(
        ":", na=False
    )
    out = pd.Series(np.full(len(texts), np.datetime64("NaT", "us")), index=texts.index)
    for rows, utc in ((has_zone, True), (~has_zone, False)):
        if rows.any():
            parsed = pd.to_datetime(texts[rows], format="ISO8601", errors="coerce", utc=utc)
            out[rows] = site_time(parsed, mapping)
    return out


def numbers(column: pa.Array) -> tuple[npt.NDArray[np.float64], pa.Array | None]:
    """Read values; what is no number stays a text.

    Parameters
    ----------
    column : Array
        Texts or numbers.

    Returns
    -------
    value : array of float
        NaN where there is no number.
    text : Array of string or None
        The cells that are no number, null elsewhere; None when the column holds numbers.
    """
    if not (pa.types.is_string(column.type) or pa.types.is_null(column.type)):
        return pc.fill_null(column.cast(pa.float64()), float("nan")).to_numpy(zero_copy_only=False), None
    encoded = column.cast(pa.string()).dictionary_encode()
    texts = pd.Series(encoded.dictionary.to_pylist(), dtype="str")
    parsed = pd.to_numeric(texts.str.strip(), errors="coerce").to_numpy(dtype=np.float64)
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    value = np.append(parsed, np.nan)[codes]
    text = pc.if_else(pa.array(np.isnan(value)), column.cast(pa.string()), pa.scalar(None, pa.string()))
    return value, text


def texts(column: pa.Array) -> pd.Categorical:
    """Read texts; categories are those that occur."""
    if not pa.types.is_string(column.type):
        column = column.cast(pa.string())
    encoded = column.dictionary_encode()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    return pd.Categorical.from_codes(codes, categories=pd.Index(encoded.dictionary.to_pylist(), dtype="str"))


def details(columns: Mapping[str, pa.Array], mapping: SiteMapping, where: str, first_row: int) -> dict[str, object]:
    """Return the columns of a chunk that say more of an event; see `core.events.facts`.

    Parameters
    ----------
    columns : mapping from name to Array
        Of the source.
    mapping : SiteMapping
        Its ``details`` names them; those that the source lacks are left out.
    where : str
    first_row : int

    Returns
    -------
    dict
        ``end`` as times, ``dose`` and ``route`` as texts, ``range_low`` and ``range_high`` as numbers.

    Raises
    ------
    SourceError
        As `times`.
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
