"""Collects context facts while a source is read, beside the event stream."""

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.events.code_book import CodeBook, Subjects, Words, ranked
from core.events.facts import FactKind, rows_with_details, sorted_facts
from core.events.mapping import SiteMapping
from core.events.parts import Spill

_PATIENTS_PER_PART = 4096
_OF_A_DAY = frozenset(FactKind) - {FactKind.REASON, FactKind.VITAL_SIGN}
"""Facts that sources often date by the day alone; a reason is known with the admission, a vital sign has its time."""
_TIMES = ("end", "known_at")
_NUMBERS = ("value", "range_low", "range_high")
_TEXTS = ("text", "unit", "dose", "route")


class FactCollector:
    """Takes the rows of a source that are facts, or that say more of an event than the stream keeps."""

    def __init__(self, book: CodeBook, spill: Spill) -> None:
        self._book = book
        self._spill = spill
        self._subjects, self._words = Subjects(), Words()

    def add(self, chunk: pd.DataFrame, ids: npt.NDArray[np.int64]) -> None:
        """Take the facts of a chunk; `ids` has the number of each row's code in the code book; -1 where it has none."""
        is_fact = np.array([found.fact is not None for found in self._book.found] + [False])[ids]
        is_event = np.array([found.kind is not None for found in self._book.found] + [False])[ids]
        keep = is_fact | (is_event & rows_with_details(chunk) & chunk["time"].notna().to_numpy())
        if not keep.any():
            return
        wanted = [name for name in ("subject", "time", *_TIMES, *_NUMBERS, *_TEXTS) if name in chunk]
        rows, n = chunk[wanted].iloc[np.flatnonzero(keep)], int(keep.sum())
        subject = self._subjects.numbers(rows["subject"].to_numpy())
        columns: dict[str, object] = {"code": ids[keep].astype(np.int32)}
        columns["start"] = rows["time"].to_numpy(dtype="datetime64[us]")
        for name in _TIMES:
            missing = np.full(n, np.datetime64("NaT", "us"))
            columns[name] = rows[name].to_numpy(dtype="datetime64[us]") if name in rows else missing
        for name in _NUMBERS:
            columns[name] = rows[name].to_numpy(dtype=np.float64) if name in rows else np.full(n, np.nan)
        for name in _TEXTS:
            columns[name] = self._words.numbers(rows[name]) if name in rows else np.zeros(n, dtype=np.int32)
        table = pd.DataFrame({"subject": subject, **columns}, copy=False)
        for part, mine in table.groupby(subject // _PATIENTS_PER_PART):
            self._spill.put(int(str(part)), mine.reset_index(drop=True))

    def parts(self, mapping: SiteMapping, patients: Collection[str]) -> Iterator[pd.DataFrame]:
        """Yield the facts of some patients, whole patients in each part, as `core.events.facts.FACT_COLUMNS`.

        They are sorted, each fact once; texts are categories.
        """
        wanted = frozenset(patients)
        names = [mapping.patient_id(each) for each in self._subjects.names]
        is_wanted = np.array([name in wanted for name in names], dtype=bool)
        found = self._book.found
        words = _Texts(self._words.texts)
        kinds = _Texts([str(each.fact or each.kind or "") for each in found])
        items, labels = _Texts([each.item for each in found]), _Texts(self._book.names_by_code())
        of_a_day = np.array([each.fact in _OF_A_DAY for each in found], dtype=bool)
        units = _Texts([mapping.known_unit(each) for each in (*(each.unit for each in found), *self._words.texts)])
        for part, first in enumerate(range(0, len(names), _PATIENTS_PER_PART)):
            rows = self._spill.read(part)
            self._spill.drop(part)
            mine = is_wanted[rows["subject"].to_numpy()]
            rows = rows if mine.all() else rows[mine]
            if not len(rows):
                continue
            code = rows["code"].to_numpy()
            facts = rows.assign(
                patient_id=_Texts(names[first : first + _PATIENTS_PER_PART]).of(rows["subject"].to_numpy() - first),
                kind=kinds.of(code),
                item=items.of(code),
                name=labels.of(code),
                unit=units.of(np.where(units.is_empty[code], rows["unit"].to_numpy() + len(found), code)),
                known_at=_known_at(rows, of_a_day[code]),
                **{name: words.of(rows[name].to_numpy()) for name in ("text", "dose", "route")},
            )
            yield sorted_facts(facts)


def _known_at(rows: pd.DataFrame, is_of_a_day: npt.NDArray[np.bool_]) -> npt.NDArray[np.datetime64]:
    """Return when facts could be known; a date without a time is known when the day is over."""
    known = np.fmax(rows["known_at"].to_numpy(), rows["start"].to_numpy())
    is_midnight = known == known.astype("datetime64[D]")
    return np.asarray(np.where(is_midnight & is_of_a_day, known + np.timedelta64(1, "D"), known))


class _Texts:
    """Texts behind numbers; columns of them are sorted and compared as numbers."""

    def __init__(self, texts: Sequence[str]) -> None:
        ordered, self._rank = ranked(texts)
        self._ordered = np.array(ordered, dtype=object)
        self.is_empty = np.array([text == "" for text in texts], dtype=bool)

    def of(self, numbers: npt.NDArray[np.integer]) -> pd.Categorical:
        """Return a column of texts; its categories are those that occur, sorted."""
        rank = self._rank[numbers]
        used = np.bincount(rank, minlength=len(self._ordered)) > 0
        categories = pd.Index(self._ordered[used], dtype="str")
        return pd.Categorical.from_codes((np.cumsum(used) - 1)[rank], categories=categories, validate=False)
