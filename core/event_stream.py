"""From rows with codes to the event stream: chunk by chunk, with exact duplicates out and everything counted."""

from collections import Counter
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.code_book import KIND_NAMES, CodeBook, kind_number
from core.events import EventKind, finish_events, of_kind
from core.import_report import Dropped, ReadCounts
from core.mapping import SiteMapping
from core.values import CleanValues, clean_values, fill_from_texts

NO_CODE = "row without a code"
NO_TIME = "event without a time"

_VALUE_KINDS = (EventKind.LAB_RESULT, EventKind.OBSERVATION)
_HASH_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class StreamBuilder:
    """Takes a source chunk by chunk and ends with the event stream and the counts of the import report.

    Parameters
    ----------
    mapping : SiteMapping
    descriptions : mapping from code to str
        Texts of the source's code table; any may be missing.
    main_units : mapping from item to unit, optional
        Units that items are known to have from earlier imports.
    """

    def __init__(
        self, mapping: SiteMapping, descriptions: Mapping[str, str], main_units: Mapping[str, str] | None = None
    ) -> None:
        self._mapping = mapping
        self._main_units = main_units
        self._book = CodeBook(mapping, descriptions)
        self._hashes: list[npt.NDArray[np.uint64]] = []
        self._parts: list[pd.DataFrame] = []
        self._n_rows = self._n_without_code = self._n_not_finite = 0
        self._without_time: Counter[int] = Counter()
        self._remarks: list[str] = []

    def remark(self, sentence: str) -> None:
        """Add a sentence to the report."""
        self._remarks.append(sentence)

    def add(self, chunk: pd.DataFrame) -> None:
        """Recognise one chunk.

        Parameters
        ----------
        chunk : DataFrame
            ``subject`` (int64 or str), ``time`` (datetime64, site time without zone), ``code`` (category or str),
            ``value`` (float) and, where the source has them, ``text`` and ``unit`` (category or str), ``known_at``
            (datetime64), ``stay`` (int64).
        """
        if chunk.empty:
            return
        code = chunk["code"].astype("category").cat.remove_unused_categories()
        numbers = np.append(self._book.ids_of(code.cat.categories.astype(str)), -1)
        ids = numbers[code.cat.codes.to_numpy()]
        self._book.count(ids[ids >= 0])
        self._n_rows += len(chunk)
        self._n_without_code += int((ids < 0).sum())
        hashes = _row_hashes(chunk, code)
        self._hashes.append(hashes)
        kinds = self._book.kinds()[ids]
        keep = kinds >= 0
        timeless = keep & chunk["time"].isna().to_numpy() & (kinds != kind_number(EventKind.SEX))
        if timeless.any():
            self._without_time.update(ids[timeless].tolist())
            keep &= ~timeless
        if keep.any():
            self._parts.append(self._compact(chunk[keep], ids[keep], kinds[keep], hashes[keep]))

    def _compact(
        self,
        chunk: pd.DataFrame,
        ids: npt.NDArray[np.int64],
        kinds: npt.NDArray[np.int8],
        hashes: npt.NDArray[np.uint64],
    ) -> pd.DataFrame:
        value = chunk["value"].to_numpy(dtype=np.float64)
        infinite = np.isinf(value)
        self._n_not_finite += int(infinite.sum())
        time = chunk["time"].to_numpy(dtype="datetime64[us]")
        part: dict[str, object] = {
            "subject": chunk["subject"].to_numpy(),
            "time": time,
            "known_at": self._known_at(chunk, time, kinds),
            "code_id": ids.astype(np.int32),
            "kind": kinds,
            "value": np.where(infinite, np.nan, value),
            "hash": hashes,
            "stay": chunk["stay"].to_numpy(dtype=np.int64) if "stay" in chunk else np.full(len(chunk), -1),
        }
        for name in ("text", "unit"):
            part[name] = _texts(chunk[name]) if name in chunk else np.full(len(chunk), "", dtype=object)
        return pd.DataFrame(part).astype({"text": "category", "unit": "category"})

    def _known_at(
        self, chunk: pd.DataFrame, time: npt.NDArray[np.datetime64], kinds: npt.NDArray[np.int8]
    ) -> npt.NDArray[np.datetime64]:
        """When an event could be known: never before it happened."""
        delay = np.timedelta64(self._mapping.result_delay_minutes, "m")
        assumed = np.where(kinds == kind_number(EventKind.LAB_RESULT), time + delay, time)
        if "known_at" not in chunk:
            return assumed
        told = chunk["known_at"].to_numpy(dtype="datetime64[us]")
        return np.fmax(np.where(np.isnat(told), assumed, told), time)

    def finish(self) -> tuple[pd.DataFrame, ReadCounts]:
        """Build the event stream.

        Returns
        -------
        events : DataFrame
            `core.events.EVENT_COLUMNS` and ``stay`` (int64, -1 where the source does not tell).
        counts : ReadCounts

        Raises
        ------
        MappingError
            When the mapping recognised no admission, or no lab and no drug.
        """
        self._book.refuse_useless()
        frame = pd.concat(_with_common_categories(self._parts), ignore_index=True)
        self._parts.clear()
        first = _first_of_each(frame.pop("hash").to_numpy())
        n_duplicates_dropped = len(frame) - int(first.sum())
        if n_duplicates_dropped:
            frame = frame[first].reset_index(drop=True)
        n_duplicate_rows = self._n_rows - _n_different(self._hashes)
        cleaned, n_from_text = self._clean(frame)
        counts = ReadCounts(
            n_rows=self._n_rows,
            kinds=self._book.kind_counts(),
            dropped=self._dropped(),
            n_duplicate_rows=n_duplicate_rows,
            n_duplicates_dropped=n_duplicates_dropped,
            n_items_with_several_unit_codes=self._book.n_items_with_several_unit_codes(),
            unit_conflicts=cleaned.unit_conflicts,
            n_converted=cleaned.n_converted,
            n_sentinels=cleaned.n_sentinels,
            implausible=cleaned.implausible,
            n_results_without_number=cleaned.n_without_number,
            n_numbers_from_text=n_from_text,
            n_not_finite=self._n_not_finite,
            remarks=tuple(self._remarks),
        )
        return self._stream(frame, cleaned), counts

    def _clean(self, frame: pd.DataFrame) -> tuple[CleanValues, int]:
        book = self._book
        is_value = np.isin(frame["kind"].to_numpy(), [kind_number(kind) for kind in _VALUE_KINDS])
        codes = frame["code_id"].to_numpy()
        of_code = pd.Categorical([found.item for found in book.found])
        frame["item"] = pd.Categorical.from_codes(of_code.codes[codes], categories=of_code.categories)
        frame["unit"] = self._units(codes, frame["unit"])
        value, n_from_text = fill_from_texts(frame["value"].to_numpy(), frame["text"], is_value)
        return clean_values(
            value, frame["item"], frame["unit"], is_value, book.names(), self._mapping, self._main_units
        ), n_from_text

    def _units(self, codes: npt.NDArray[np.int32], column: pd.Series) -> pd.Categorical:
        """Find the unit of every row: its code's, else its column's, else the mapping's for the item, else unknown."""
        found = self._book.found
        of_code = [self._unit(each.unit) or "" for each in found]
        fallback = [self._mapping.units.get(each.item, "") if each.kind in _VALUE_KINDS else "" for each in found]
        of_column = [self._unit(str(each)) for each in column.cat.categories]
        categories = sorted({"", *of_code, *fallback, *of_column})
        position = {unit: i for i, unit in enumerate(categories)}
        unit = np.array([position[each] for each in of_code], dtype=np.int32)[codes]
        own = np.array([position[each] for each in of_column] + [position[""]], dtype=np.int32)
        unit = np.where(unit == position[""], own[column.cat.codes.to_numpy()], unit)
        last = np.array([position[each] for each in fallback], dtype=np.int32)[codes]
        return pd.Categorical.from_codes(np.where(unit == position[""], last, unit), categories=categories)

    def _unit(self, unit: str) -> str:
        squeezed = " ".join(unit.split())
        return "" if squeezed in self._mapping.unknown_units else self._mapping.unit_aliases.get(squeezed, squeezed)

    def _dropped(self) -> tuple[Dropped, ...]:
        out = self._book.dropped()
        if self._n_without_code:
            out.append(Dropped(NO_CODE, self._n_without_code, 0, ()))
        if self._without_time:
            out.append(self._book.dropped_codes(NO_TIME, self._without_time))
        return tuple(sorted(out, key=lambda drop: (-drop.n_rows, drop.reason)))

    def _stream(self, frame: pd.DataFrame, cleaned: CleanValues) -> pd.DataFrame:
        names = self._book.names()
        of_item = [names.get(str(item), str(item)) for item in frame["item"].cat.categories]
        name = pd.Categorical(of_item)
        subjects, codes = np.unique(frame.pop("subject").to_numpy(), return_inverse=True)
        ids = [self._mapping.patient_id(int(each) if isinstance(each, np.integer) else str(each)) for each in subjects]
        frame["patient_id"] = pd.Categorical.from_codes(codes, categories=ids)
        frame["name"] = pd.Categorical.from_codes(name.codes[frame["item"].cat.codes], categories=name.categories)
        frame["kind"] = pd.Categorical.from_codes(frame["kind"].to_numpy(), categories=KIND_NAMES)
        frame["value"] = cleaned.value
        frame["unit"] = cleaned.unit
        frame["is_decision"] = is_decision(frame, self._mapping)
        return finish_events(frame.drop(columns="code_id"), keep=("stay",))


def is_decision(frame: pd.DataFrame, mapping: SiteMapping) -> npt.NDArray[np.bool_]:
    """Mark the events that say "the task was done"; see lab_tasks_from and medication_tasks_from of the mapping.

    Parameters
    ----------
    frame : DataFrame
        Events with ``kind`` and ``item`` as categories.
    mapping : SiteMapping

    Returns
    -------
    array of bool, shape (n_events,)
    """
    mark = np.zeros(len(frame), dtype=bool)
    items = frame["item"].cat.codes.to_numpy()
    for source, asked, done in (
        (mapping.lab_tasks_from, EventKind.LAB_ORDER, EventKind.LAB_RESULT),
        (mapping.medication_tasks_from, EventKind.MEDICATION_ORDER, EventKind.ADMINISTRATION),
    ):
        is_asked, is_done = of_kind(frame, [asked]), of_kind(frame, [done])
        if source == "order":
            mark |= is_asked
        elif source == "auto":
            mark |= is_asked | (is_done & ~np.isin(items, np.unique(items[is_asked])))
        else:
            mark |= is_done
    return mark


def _texts(column: pd.Series) -> pd.Series:
    column = column.astype("category")
    if column.isna().any():
        if "" not in column.cat.categories:
            column = column.cat.add_categories([""])
        column = column.fillna("")
    return column


def _with_common_categories(parts: list[pd.DataFrame]) -> list[pd.DataFrame]:
    """Give all chunks the same categories, so that joining them keeps codes instead of texts."""
    for name in ("text", "unit"):
        union = pd.Index(sorted(set().union(*(set(part[name].cat.categories) for part in parts))))
        for part in parts:
            part[name] = part[name].cat.set_categories(union)
    return parts


def _first_of_each(hashes: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Mark the first row of each hash."""
    order = np.argsort(hashes, kind="stable")
    mark = np.empty(len(hashes), dtype=bool)
    mark[order] = np.append(True, np.diff(hashes[order]) != 0)[: len(hashes)]
    return mark


def _n_different(parts: list[npt.NDArray[np.uint64]]) -> int:
    """Count different hashes and let the parts go; sorting in place is faster than NumPy's hash table here."""
    hashes = np.concatenate(parts)
    parts.clear()
    hashes.sort()
    return int((np.diff(hashes) != 0).sum()) + 1


def _row_hashes(chunk: pd.DataFrame, code: pd.Series) -> npt.NDArray[np.uint64]:
    """64-bit hashes of whole rows; equal rows have equal hashes wherever they stand."""
    total = np.zeros(len(chunk), dtype=np.uint64)
    for name in ("subject", "time", "code", "value", "text", "unit", "known_at", "stay"):
        if name not in chunk:
            continue
        column = code if name == "code" else chunk[name]
        values = column.to_numpy() if isinstance(column.dtype, np.dtype) else column.array
        with np.errstate(over="ignore"):
            total = total * _HASH_MULTIPLIER + pd.util.hash_array(values, categorize=False)
            total ^= total >> np.uint64(29)
    return total
