"""From rows with codes to the event stream: chunk by chunk, with exact duplicates out and everything counted."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.events.cleaning import RowHashes, Settling
from core.events.code_book import NOT_DONE, CodeBook, Subjects, Words, different_texts, ranked
from core.events.collect_facts import FactCollector
from core.events.doubted_times import FAR, SENTINEL, TOO_OLD
from core.events.import_report import SHARE_OF_DATES, Dropped, ReadCounts
from core.events.mapping import SiteMapping, normalise
from core.events.parts import EventStream, MakeSpill, MemorySpill
from core.events.plausibility import Finding
from core.events.spelling import identifier, stands_for_nothing, tidy
from core.events.stream import among
from core.kinds import LABEL_EVENTS, PATIENT_EVENTS, EventKind

NO_CODE = "row without a code"
NO_TIME = "event without a time"
SENTINEL_TIME = "event on a date that stands for none"
FAR_TIME = "event months or years away from everything else about its patient"
TOO_OLD_BIRTH = "birth more than 115 years before everything else about its patient"

_MICROSECONDS_OF_DAY = 86_400_000_000
_KNOWN_WITHIN = np.timedelta64(366, "D")
_MOST_WORDS = 20
_OF_EVENTS = ("subject", "time", "known_at", "value", "text", "unit", "stay", "order")
"""Columns of a chunk, beside the code, that events are made of."""
_ENOUGH_OF_A_FILE = 50
_FEW_DATES = 5
ROWS_PER_PART = 400_000
"""Events of the patients that are looked at together: few enough for most arrays to stay in the processor's cache."""


class StreamBuilder:
    """Takes a source chunk by chunk and ends with the event stream and the counts of the import report.

    Of the texts of the source's code table any may be missing; `main_units` are known from earlier imports. Rows wait
    in a spill, in memory unless told otherwise, and `rows_per_part` are looked at together, but never less than one
    patient's. Events after `now`, the end of the day of the import where the calendar is not shifted, are doubted.
    """

    def __init__(
        self,
        mapping: SiteMapping,
        descriptions: Mapping[str, str],
        main_units: Mapping[str, str] | None = None,
        *,
        make_spill: MakeSpill = MemorySpill,
        rows_per_part: int = ROWS_PER_PART,
        now: pd.Timestamp | None = None,
    ) -> None:
        self._mapping = mapping
        self._now = None if now is None else now.to_datetime64()
        self._places: list[tuple[int, str, int]] = []
        """First number of the rows of each chunk, and its file and first row."""
        self._n_places = 0
        self._main_units = main_units
        self._book = CodeBook(mapping, descriptions)
        self._make_spill = make_spill
        self._facts = FactCollector(self._book, make_spill("facts"))
        self._rows_per_part = rows_per_part
        self._hashes = RowHashes(make_spill("hashes"))
        self._arrived = make_spill("arrived")
        self._n_chunks = 0
        self._texts, self._units, self._subjects = Words(), Words(), Subjects()
        self._n_rows = self._n_without_code = self._n_not_finite = 0
        self._without_time: Counter[int] = Counter()
        self._remarks: list[str] = []
        self._findings: list[Finding] = []
        self._n_respelled_codes = 0
        self._not_done: Counter[int] = Counter()
        self._unknown_statuses: Counter[str] = Counter()
        self._n_known_late = self._n_known = self._n_held = 0
        self._over = [np.zeros(0, dtype=np.int64)]
        """Numbers of the rows of drug orders that have ended by their status."""
        self._n_dates = np.zeros(len(EventKind), dtype=np.int64)
        self._n_timed: Counter[tuple[str, EventKind]] = Counter()
        self._n_results: Counter[str] = Counter()
        self._n_empty: Counter[str] = Counter()
        self._n_midnight: Counter[tuple[str, EventKind]] = Counter()

    @property
    def subjects(self) -> Sequence[int | str]:
        """Patients of the rows that were recognised so far, as the source names them."""
        return self._subjects.names

    def remark(self, sentence: str) -> None:
        """Add a sentence to the report."""
        self._remarks.append(sentence)

    def find(self, finding: Finding) -> None:
        """Add what the source found while it was opened or read."""
        self._findings.append(finding)

    def add(self, chunk: pd.DataFrame) -> None:
        """Recognise one chunk.

        It has ``subject`` (int64 or str), ``time`` (datetime64, site time without zone), ``code`` (category or str),
        ``value`` (float) and, where the source has them, ``text`` and ``unit`` (category or str), ``known_at``
        (datetime64), ``stay`` (int64), ``order`` (int64, 0 for none, or str; rows of one order share it), ``is_date``
        (bool: the time is a day without a time of day); for facts
        also ``end`` (datetime64), ``dose`` and ``route`` (category or str), ``range_low`` and ``range_high`` (float).
        Its index counts rows from the first of the chunk; ``attrs`` may tell where that is: ``file`` and ``first_row``.
        """
        if chunk.empty:
            return
        self._places.append(
            (self._n_places, chunk.attrs.get("file", ""), chunk.attrs.get("first_row", self._n_rows + 1))
        )
        places = self._n_places + chunk.index.to_numpy(dtype=np.int64)
        self._n_places = int(places.max()) + 1
        chunk = chunk.reset_index(drop=True)
        codes, places_of_code = self._tidied(chunk["code"])
        ids = np.append(self._book.ids_of(codes), -1)[places_of_code]
        self._book.count(ids[ids >= 0])
        self._n_rows += len(chunk)
        self._n_without_code += int((ids < 0).sum())
        hashes = self._hashes.add(_in_one_spelling(chunk), _column_of(codes, places_of_code))
        self._facts.add(chunk, ids)
        kinds = self._book.kinds()[ids]
        keep = kinds >= 0
        timeless = keep & chunk["time"].isna().to_numpy() & (kinds != EventKind.SEX.number)
        if "status" in chunk:
            called_off, is_over = self._look_at_statuses(chunk["status"], np.where(keep, kinds, -1))
            self._over.append(places[is_over])
            self._not_done.update(ids[called_off].tolist())
            keep &= ~called_off
        if timeless.any():
            self._without_time.update(ids[timeless].tolist())
            keep &= ~timeless
        if keep.any():
            kept = slice(None) if keep.all() else np.flatnonzero(keep)
            mine = chunk[[name for name in _OF_EVENTS if name in chunk]].iloc[kept]
            self._count_midnights(mine["time"].to_numpy(dtype="datetime64[us]"), kinds[kept])
            if "is_date" in chunk:
                is_date = chunk["is_date"].to_numpy()[kept]
                self._n_dates += np.bincount(kinds[kept][is_date], minlength=len(EventKind))
            compact = self._compact(mine, ids[kept], kinds[kept], hashes[kept])
            self._count_empty(compact[kinds[kept] == EventKind.LAB_RESULT.number])
            self._arrived.put(self._n_chunks, compact.assign(row=places[kept]))
            self._n_chunks += 1

    def _count_midnights(self, times: npt.NDArray[np.datetime64], kinds: npt.NDArray[np.int8]) -> None:
        at_midnight = times.view(np.int64) % _MICROSECONDS_OF_DAY == 0
        n, n_midnight = (np.bincount(each, minlength=len(EventKind)) for each in (kinds, kinds[at_midnight]))
        file = self._places[-1][1]
        for kind in EventKind:
            if n[kind.number]:
                self._n_timed[file, kind] += int(n[kind.number])
                self._n_midnight[file, kind] += int(n_midnight[kind.number])

    def _count_empty(self, results: pd.DataFrame) -> None:
        is_empty = results["value"].isna().to_numpy() & (results["text"].to_numpy() == 0)
        self._n_results[self._places[-1][1]] += len(results)
        self._n_empty[self._places[-1][1]] += int(is_empty.sum())

    def _empty_results(self) -> Finding:
        """Count the results that say nothing; name the files in which nearly all do."""
        files = [
            file for file, n in self._n_empty.items() if file and n and n >= SHARE_OF_DATES * self._n_results[file]
        ]
        return Finding("empty_results", self._n_empty.total(), self._n_results.total(), tuple(files))

    def _some_dates(self) -> Finding:
        """Count the events that the source dates without a time of day, of kinds of which others have one."""
        n = _by_kind(self._n_timed)
        dated = {kind: int(self._n_dates[kind.number]) for kind in n if kind not in self._without_clock()}
        mixed = [kind for kind, n_dates in dated.items() if _FEW_DATES <= n_dates < SHARE_OF_DATES * n[kind]]
        shown = tuple(f"{kind} ({dated[kind] / n[kind]:.0%} without a time of day)" for kind in mixed)
        return Finding("some_dates", sum(dated[kind] for kind in mixed), n.total(), shown)

    def _without_clock(self) -> tuple[EventKind, ...]:
        return (*PATIENT_EVENTS, *LABEL_EVENTS, *self._mapping.day_level)

    def _dated_files(self) -> Finding:
        """Count the events of files that have dates, where the other files have times of the same kind."""
        of_kind, midnights = _by_kind(self._n_timed), _by_kind(self._n_midnight)
        dated = [
            (file, kind)
            for (file, kind), n in self._n_timed.items()
            if file and kind not in self._without_clock()
            if n >= _ENOUGH_OF_A_FILE and self._n_midnight[file, kind] >= SHARE_OF_DATES * n
            if midnights[kind] < SHARE_OF_DATES * of_kind[kind]
        ]
        shares = [(self._n_midnight[each] / self._n_timed[each], *each) for each in dated]
        shown = tuple(f"{kind.value} in {file} ({share:.0%} at midnight)" for share, file, kind in shares)
        return Finding("midnight_times", sum(self._n_timed[each] for each in dated), 0, shown)

    def _tidied(self, column: pd.Series) -> tuple[list[str], npt.NDArray[np.integer]]:
        """Return codes in their one spelling and the place of each row's, and count the rows that had another."""
        texts, places = different_texts(column)
        new = [self._book.spelling(text) for text in texts]
        changed = np.array([a != b for a, b in zip(new, texts, strict=True)], dtype=bool)
        if not changed.any():
            return texts, places
        self._n_respelled_codes += int(np.append(changed, False)[places].sum())
        return _joined(new, places)

    def _look_at_statuses(
        self, column: pd.Series, kinds: npt.NDArray[np.int8]
    ) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Mark the statuses of what was never done, and of orders that have ended; count the unknown ones and the held.

        A dose on hold, or whose status is an event word that does not count, was not given.
        """
        texts, places = different_texts(column)
        means = [self._mapping.word_meanings.get(normalise(text)) for text in texts]
        counts = np.bincount(places[(kinds >= 0) & (places >= 0)], minlength=len(texts))
        for text, meaning, n in zip(texts, means, counts.tolist(), strict=True):
            if n and not meaning and not self._mapping.is_known_status(text):
                self._unknown_statuses[tidy(text)] += n
        says, held, over, not_given = (
            np.array([*each, False], dtype=bool)[places]
            for each in (
                map(self._mapping.says_not_done, texts),
                map(self._mapping.says_held, texts),
                map(self._mapping.says_over, texts),
                (meaning == "does_not_count" for meaning in means),
            )
        )
        is_order, is_dose = (kinds == kind.number for kind in (EventKind.MEDICATION_ORDER, EventKind.ADMINISTRATION))
        self._n_held += int((held & is_order).sum())
        return (kinds >= 0) & (says | (is_dose & (held | not_given))), is_order & over

    def _place(self, number: int) -> str:
        """Return the place of a row."""
        start, file, first_row = self._places[bisect_right(self._places, number, key=lambda each: each[0]) - 1]
        return f"{file or 'the source'}, row {first_row + number - start:,}"

    def _places_of(self, settling: Settling, reason: int) -> tuple[str, ...]:
        return tuple(map(self._place, settling.doubted_rows[reason]))

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
        by_day = among(kinds, self._mapping.day_level)
        midnight = time.astype("datetime64[D]").astype("datetime64[us]") if by_day.any() else time
        if by_day.any():
            time = np.where(by_day, midnight + np.timedelta64(self._mapping.snapshot_hour, "h"), time)
        known_at = self._known_at(chunk, time, kinds)
        if by_day.any():
            known_at = np.where(by_day, midnight + np.timedelta64(1, "D"), known_at)
        nothing = np.zeros(len(chunk), dtype=np.int32)
        return pd.DataFrame(
            {
                "subject": self._subjects.numbers(chunk["subject"].to_numpy()),
                "time": time,
                "known_at": known_at,
                "code": ids.astype(np.int32),
                "value": np.where(infinite, np.nan, value),
                "text": self._texts.numbers(chunk["text"]) if "text" in chunk else nothing,
                "unit": self._units.numbers(chunk["unit"]) if "unit" in chunk else nothing,
                "stay": chunk["stay"].to_numpy(dtype=np.int64) if "stay" in chunk else nothing.astype(np.int64) - 1,
                "hash": hashes,
                "order": self._order_ids(chunk),
            },
            copy=False,
        )

    @staticmethod
    def _order_ids(chunk: pd.DataFrame) -> npt.NDArray[np.int64]:
        """Return the identity of each row's order; 0 where the source tells none."""
        if "order" not in chunk:
            return np.zeros(len(chunk), dtype=np.int64)
        orders = chunk["order"]
        if pd.api.types.is_integer_dtype(orders.dtype):
            return np.asarray(orders.to_numpy(), dtype=np.int64)
        named = orders.astype("category").cat
        texts = np.array([identifier(str(each)) for each in named.categories], dtype=object)
        nothing = np.array([stands_for_nothing(each) for each in texts], dtype=bool)
        numbers = np.where(nothing, 0, pd.util.hash_array(texts, categorize=False).view(np.int64))
        return np.asarray(np.append(numbers, 0)[named.codes.to_numpy()], dtype=np.int64)

    def _known_at(
        self, chunk: pd.DataFrame, time: npt.NDArray[np.datetime64], kinds: npt.NDArray[np.int8]
    ) -> npt.NDArray[np.datetime64]:
        """When an event could be known: never before it happened; a time a year later stands for none."""
        delay = np.timedelta64(self._mapping.result_delay_minutes, "m")
        assumed = np.where(kinds == EventKind.LAB_RESULT.number, time + delay, time)
        if "known_at" not in chunk:
            return assumed
        told = chunk["known_at"].to_numpy(dtype="datetime64[us]")
        late = told - time > _KNOWN_WITHIN
        self._n_known += int((~np.isnat(told)).sum())
        self._n_known_late += int(late.sum())
        told = np.where(late, np.datetime64("NaT", "us"), told)
        return np.fmax(np.where(np.isnat(told), assumed, told), time)

    def finish_parts(self) -> tuple[EventStream, ReadCounts]:
        """Build the event stream, with one part of it in memory at a time; return it and what was counted.

        The column ``stay`` is -1 where the source does not tell. Raise MappingError when the mapping recognised no
        admission, or nothing that could be a task, unless there are earlier imports.
        """
        self._book.refuse_useless(is_addition=self._main_units is not None)
        self._book.keep_families_apart()
        self._book.join_twins(self._main_units or ())
        settling = Settling(
            book=self._book,
            mapping=self._mapping,
            texts=self._texts.texts,
            units=self._units.texts,
            subjects=self._subjects,
            main_units=self._main_units,
            now=self._now,
            over=np.concatenate(self._over),
        )
        stream = settling.run(self._arrived, self._n_chunks, self._make_spill("events"), self._rows_per_part)
        cleaner, names = settling.cleaner, self._book.names()
        return stream, replace(
            self.counts(),
            problem="",
            dropped=self._dropped(settling),
            n_duplicate_rows=self._n_rows - self._hashes.n_different(),
            n_duplicates_dropped=settling.n_duplicates,
            n_items_with_several_unit_codes=self._book.n_items_with_several_unit_codes(),
            unit_conflicts=cleaner.unit_conflicts(names),
            n_converted=cleaner.n_converted,
            n_sentinels=cleaner.n_sentinels,
            implausible=cleaner.implausible(names),
            n_results_without_number=cleaner.n_without_number,
            n_numbers_from_text=settling.n_from_text,
            n_not_finite=self._n_not_finite,
            remarks=(*self._mapping.without_item(), *settling.remarks(), *self._remarks),
            findings=(*self._findings, *self._doubts(settling, stream.n_events)),
        )

    def counts(self) -> ReadCounts:
        """Return what was counted while rows were added; what only whole patients show is not in it."""
        return ReadCounts(
            n_rows=self._n_rows,
            n_codes=len(self._book.found),
            kinds=self._book.kind_counts(),
            facts=self._book.fact_counts(),
            dropped=self._dropped(None),
            idle_rules=self._book.idle_rules(),
            problem=self._book.greedy_rule(),
        )

    def facts(self, patients: Collection[str]) -> Iterator[pd.DataFrame]:
        """Return the facts of some patients, once, after all rows were added; see `FactCollector.parts`."""
        return self._facts.parts(self._mapping, patients)

    def _doubts(self, settling: Settling, n_events: int) -> list[Finding]:
        rounded = self._book.rounded()
        words = self._unknown_statuses + self._book.unknown_words()
        doubted = (("sentinel_dates", SENTINEL), ("far_dates", FAR), ("impossible_ages", TOO_OLD))
        n_of = {TOO_OLD: len(self._subjects.names)}
        return [
            *(
                Finding(name, settling.doubted[why].total(), n_of.get(why, n_events), self._places_of(settling, why))
                for name, why in doubted
            ),
            Finding("impossible_known_at", self._n_known_late, self._n_known),
            Finding("timeless_events", self._without_time.total(), self._n_rows),
            Finding("unknown_words", words.total(), self._n_rows, _named(words)),
            self._empty_results(),
            self._dated_files(),
            self._some_dates(),
            Finding("future_events", settling.n_future, n_events),
            self._respelled(settling),
            Finding("rounded_codes", rounded.total(), self._n_rows, tuple(code for code, _ in rounded.most_common())),
            Finding("alike_patients", self._subjects.n_alike(), len(self._subjects.names)),
            Finding("doubtful_numbers", settling.n_doubtful_numbers, n_events),
            Finding("unread_numbers", settling.n_unread_numbers, settling.n_results),
            Finding("contradicted_values", settling.n_contradicted, settling.n_values),
            settling.lost_values(self._book.names()),
            *settling.doubts(),
            self._book.hidden_rules(),
            Finding("ungiven_orders", *settling.ungiven_orders()),
            Finding("open_orders", settling.n_open_orders if settling.has_stops() else 0, settling.n_orders),
            Finding("turned_orders", settling.n_turned_orders, settling.n_orders),
            Finding("held_orders", self._n_held, settling.n_orders),
            Finding("ended_orders", settling.n_over_orders, settling.n_orders),
            Finding("never_done", self._not_done.total() + settling.called_off.total(), self._n_rows),
            Finding("stray_orders", len(settling.stray_orders()), 0, settling.stray_orders()),
        ]

    def _respelled(self, settling: Settling) -> Finding:
        respelled = (
            ("identifiers", self._subjects.n_respelled),
            ("codes", self._n_respelled_codes),
            ("names", self._book.n_joined),
            ("units", settling.n_respelled_units),
            ("numbers with a decimal comma", settling.n_commas),
        )
        shown = tuple(f"{what} in {n:,} rows" for what, n in respelled if n)
        return Finding("respelled", sum(n for _, n in respelled), 0, shown)

    def _dropped(self, settling: Settling | None) -> tuple[Dropped, ...]:
        out = self._book.dropped()
        if self._n_without_code:
            out.append(Dropped(NO_CODE, self._n_without_code, 0, ()))
        if self._without_time:
            out.append(self._book.dropped_codes(NO_TIME, self._without_time))
        doubted = settling.doubted if settling else {}
        not_done = self._not_done + settling.called_off if settling else self._not_done
        for reason, counts in (
            (SENTINEL_TIME, doubted.get(SENTINEL)),
            (FAR_TIME, doubted.get(FAR)),
            (TOO_OLD_BIRTH, doubted.get(TOO_OLD)),
            (NOT_DONE, not_done),
        ):
            if counts:
                out.append(self._book.dropped_codes(reason, counts))
        return tuple(sorted(out, key=lambda drop: (-drop.n_rows, drop.reason)))


def _named(words: Counter[str]) -> tuple[str, ...]:
    """Name unknown words, most frequent first; none where so many are no words."""
    return tuple(word[:30] for word, _ in words.most_common()) if len(words) <= _MOST_WORDS else ()


def _by_kind(counts: Mapping[tuple[str, EventKind], int]) -> Counter[EventKind]:
    """Return counts by file and kind as counts by kind."""
    out = Counter[EventKind]()
    for (_, kind), n in counts.items():
        out[kind] += n
    return out


def _in_one_spelling(chunk: pd.DataFrame) -> pd.DataFrame:
    """Return a chunk whose rows are equal where they differ only by the spelling of the patient or the unit."""
    for name, spell in (("subject", identifier), ("unit", tidy)):
        if name in chunk and not pd.api.types.is_integer_dtype(chunk[name].dtype):
            texts, places = different_texts(chunk[name])
            new = [spell(text) for text in texts]
            if new != texts:
                joined, places = _joined(new, places)
                said = np.array([*map(bool, joined), False])
                chunk = chunk.assign(**{name: _column_of(joined, np.where(said[places], places, -1))})
    return chunk


def _joined(texts: list[str], places: npt.NDArray[np.integer]) -> tuple[list[str], npt.NDArray[np.integer]]:
    """Return texts sorted, each once, and the places of rows among them."""
    different, place = ranked(texts)
    return different, np.append(place, -1)[places]


def _column_of(texts: list[str], places: npt.NDArray[np.integer]) -> pd.Series:
    return pd.Series(pd.Categorical.from_codes(places, categories=pd.Index(texts, dtype="str")))
