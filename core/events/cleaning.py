"""What can only be settled once a whole source was read: patients together, duplicates out, units, order of events."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.events.code_book import CodeBook, Subjects, ranked
from core.events.doubted_kinds import KindDoubts
from core.events.doubted_times import FAR, PLAUSIBLE, SENTINEL, TOO_OLD, doubted
from core.events.mapping import SiteMapping
from core.events.orders import Orders, settle_orders
from core.events.parts import EventStream, Spill, Vocabulary
from core.events.plausibility import Finding
from core.events.series import SeriesSet, distinct, first_of_each, lexical_order, numbered
from core.events.spelling import COMMA, DOUBTFUL, UNREAD, numbers_in_texts
from core.events.stream import among, seconds
from core.events.value_cleaner import ValueCleaner, fill_from_texts, known_units
from core.events.value_scales import ValueScales
from core.kinds import KIND_OF_EVENT, LABEL_EVENTS, VALUE_EVENTS, EventKind, Kind
from core.number_texts import counted
from core.numerics.compiled import compiled_exactly

HashArray = npt.NDArray[np.uint64]
_MULTIPLIERS = tuple(map(np.uint64, (0xD1342543DE82EF95, 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)))
_SHIFTS = tuple(map(np.uint64, (30, 27, 31)))
""" "splitmix64": its finish mixes well, and a compiler makes a few instructions of it."""
_COLUMNS = ("subject", "time", "code", "value", "text", "unit", "known_at", "stay", "order", "dose", "route")
_N_PARTS = 64
_KEPT = 4_000_000
"""Hashes kept in memory before they go to the spill."""


class RowHashes:
    """Hashes of all rows of a source; equal rows have equal hashes wherever they stand.

    They wait in the spill when there are many.
    """

    def __init__(self, spill: Spill) -> None:
        self._spill = spill
        self._kept: list[HashArray] = []
        self._n_kept = 0
        self._is_spilled = False

    def add(self, chunk: pd.DataFrame, code: pd.Series) -> HashArray:
        """Hash the rows of a chunk (`core.events.reading.StreamBuilder.add`) with their codes, and remember them."""
        hashes = row_hashes(chunk, code)
        self._kept.append(hashes)
        self._n_kept += len(hashes)
        if self._n_kept > _KEPT:
            self._put_away()
        return hashes

    def _put_away(self) -> None:
        hashes = np.concatenate([np.zeros(0, dtype=np.uint64), *self._kept])
        # A stable sort of 8 bits is a radix sort.
        part = (hashes >> np.uint64(58)).astype(np.uint8)
        order = np.argsort(part, kind="stable")
        bounds = np.searchsorted(part[order], np.arange(_N_PARTS + 1))
        for i in range(_N_PARTS):
            mine = hashes[order[bounds[i] : bounds[i + 1]]]
            if len(mine):
                self._spill.put(i, pd.DataFrame({"hash": mine}))
        self._kept.clear()
        self._n_kept = 0
        self._is_spilled = True

    def n_different(self) -> int:
        """Count the rows that differ from each other, and forget them all."""
        if not self._is_spilled:
            n = _n_different(np.concatenate([np.zeros(0, dtype=np.uint64), *self._kept]))
            self._kept.clear()
            return n
        self._put_away()
        n = 0
        for i in range(_N_PARTS):
            part = self._spill.read(i)
            if len(part):
                n += _n_different(part["hash"].to_numpy(dtype=np.uint64, copy=True))
            self._spill.drop(i)
        return n


def _n_different(hashes: HashArray) -> int:
    """Sorting in place is faster than NumPy's hash table here."""
    hashes.sort()
    return int((np.diff(hashes) != 0).sum()) + (len(hashes) > 0)


def row_hashes(chunk: pd.DataFrame, code: pd.Series) -> HashArray:
    """64-bit hashes of whole rows."""
    total = np.zeros(len(chunk), dtype=np.uint64)
    for name in _COLUMNS:
        if name not in chunk:
            continue
        column = code if name == "code" else chunk[name]
        if isinstance(column.dtype, np.dtype) and column.dtype.itemsize == 8 and column.dtype.kind in "iufM":
            bits = column.to_numpy(copy=True).view(np.uint64)
        else:
            values = column.to_numpy() if isinstance(column.dtype, np.dtype) else column.array
            bits = pd.util.hash_array(values, categorize=False)
        _mix(total, bits)
    return total


@compiled_exactly
def _mix(total: Any, bits: Any) -> None:
    """Bring the numbers of a column into the hashes of the rows; every bit of both changes half of the result."""
    for i in range(len(total)):
        mixed = (total[i] ^ bits[i]) * _MULTIPLIERS[0] + _MULTIPLIERS[1]
        mixed = (mixed ^ (mixed >> _SHIFTS[0])) * _MULTIPLIERS[2]
        mixed = (mixed ^ (mixed >> _SHIFTS[1])) * _MULTIPLIERS[3]
        total[i] = mixed ^ (mixed >> _SHIFTS[2])


def _taken(rows: pd.DataFrame, take: npt.NDArray[np.int64]) -> pd.DataFrame:
    """Return some rows in an order; the table itself where that is all of them as they are."""
    if len(take) == len(rows) and (take == np.arange(len(rows))).all():
        return rows
    return rows.iloc[take].reset_index(drop=True)


_STARTS = tuple(kind.record.order for kind in Kind if kind.record.stop)
_STOPS = tuple(kind.record.stop for kind in Kind if kind.record.stop)
"""Events between which a drug, or what else has a course, is on."""
_EXAMPLES = 3
"""Rows named for each doubt."""
_CALLED_OFF_WITHIN = 24 * 3600
"""A cancellation is that of the item's last unanswered order, if that is no older."""
_ENOUGH_ORDERS, _PARTS_TO_LOOK_AT = 5, 5
"""So many orders tell that an item is ordered once; so many parts are looked at for them."""
_MOST_PARTS = 400
"""As many files may be open at a time."""


class Settling:
    """Three walks over rows that wait in a spill; after the last one they are the event stream.

    First each row goes to the part of its patient. Then duplicates are taken out of each part and its values looked at.
    Then, with units known, values are settled and the events put in order. The code book is complete; texts and units
    are what the numbers of the rows stand for; `now` is the end of the day of the import, for a calendar that is not
    shifted; `over` numbers the rows of drug orders that have ended by their status. Doubted times are counted by
    `SENTINEL`, `FAR` and `TOO_OLD` and the number of the code.
    """

    def __init__(
        self,
        *,
        book: CodeBook,
        mapping: SiteMapping,
        texts: Sequence[str],
        units: Sequence[str],
        subjects: Subjects,
        main_units: Mapping[str, str] | None,
        now: np.datetime64 | None = None,
        over: npt.NDArray[np.int64],
    ) -> None:
        self._mapping = mapping
        self._now = now
        self._over = over
        self._subjects = subjects
        found = book.found
        items, self._item_of_code = ranked([each.item for each in found])
        names = book.names()
        of_item = [names.get(item, item) for item in items]
        all_names, name_of_item = ranked(of_item)
        of_code = [mapping.known_unit(each.unit) for each in found]
        fallback = [mapping.units.get(each.item, "") if each.kind in VALUE_EVENTS else "" for each in found]
        of_column = [mapping.known_unit(unit) for unit in units]
        all_texts, self._rank_of_text = ranked(texts)
        numbers = numbers_in_texts(all_texts)
        self._number_of_text, self._written_as = numbers.values, numbers.written
        self._low_of_text, self._high_of_text = numbers.low, numbers.high
        of_text = [mapping.known_unit(unit) for unit in numbers.units]
        all_units = sorted({*of_code, *fallback, *of_column, *of_text, *known_units(mapping, main_units or {})})
        place = {unit: i for i, unit in enumerate(all_units)}
        self._unit_of_code, self._unit_of_column, self._fallback_of_code, self._unit_of_text = (
            np.array([place[unit] for unit in each], dtype=np.int32) for each in (of_code, of_column, fallback, of_text)
        )
        self._no_unit = place[""]
        self._kind_of_code = book.kinds()
        self._vocabulary = Vocabulary(items, all_units, all_texts, all_names, name_of_item, [])
        self._asked = np.zeros((len(EventKind), len(items)), dtype=bool)
        self._shares = OrderShares(len(items))
        self._is_ordered_once = np.zeros(len(items), dtype=bool)
        self._calls_off = np.array(
            [0 if each.calls_off is None else 2 if each.is_order_row else 1 for each in found], dtype=np.int8
        )
        self._text_calls_off = np.array([mapping.says_not_done(text) for text in texts], dtype=bool)
        self.called_off: Counter[int] = Counter()
        self.n_values = self.n_orders = self.n_open_orders = self.n_over_orders = self.n_turned_orders = 0
        self._end = self._end_by_now = np.datetime64("NaT", "us")
        self.cleaner = ValueCleaner(items, all_units, mapping, main_units)
        self._scales = ValueScales()
        self._kinds = KindDoubts(book, all_units, is_addition=main_units is not None)
        self._stay_numbers = StayNumbers()
        self._is_respelled = np.array(
            [unit != " ".join(raw.split()) and unit != "" for unit, raw in zip(of_column, units, strict=True)]
        )
        self.n_duplicates = self.n_from_text = self.n_future = self._n_events = 0
        self.n_contradicted = self.n_commas = self.n_doubtful_numbers = self.n_unread_numbers = (
            self.n_respelled_units
        ) = self.n_results = 0
        self.doubted: dict[int, Counter[int]] = {SENTINEL: Counter(), FAR: Counter(), TOO_OLD: Counter()}
        self.doubted_rows: dict[int, list[int]] = {SENTINEL: [], FAR: [], TOO_OLD: []}

    def run(self, arrived: Spill, n_chunks: int, spill: Spill, rows_per_part: int) -> EventStream:
        """Walk over rows as the source had them, in parts 0 to n_chunks - 1.

        The stream comes to lie in the other spill.
        """
        self._deal(arrived, n_chunks, spill, rows_per_part)
        n_parts = len(self._vocabulary.patients)
        self._find_ordered_once(spill, n_parts)
        for part in range(n_parts):
            self._replace(spill, part, self._looked_at(spill.read(part)))
        for part in range(n_parts):
            self._replace(spill, part, self._settled(spill.read(part)))
        kinds = frozenset(kind for i, kind in enumerate(EventKind) if self._asked[i].any())
        # Where most events lie after the import, the calendar is not the wall's: today is no bound then.
        is_wall_clock = self._now is not None and 2 * self.n_future <= self._n_events
        end = self._end_by_now if is_wall_clock else self._end
        return EventStream(spill, self._vocabulary, kinds, self._n_events, pd.Timestamp(end))

    @staticmethod
    def _replace(spill: Spill, part: int, rows: pd.DataFrame) -> None:
        spill.drop(part)
        spill.put(part, rows)

    def _deal(self, arrived: Spill, n_chunks: int, spill: Spill, rows_per_part: int) -> None:
        """Bring the rows of each patient together, patients in the order of their pseudonyms."""
        ids = [self._mapping.patient_id(subject) for subject in self._subjects.names]
        order = np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int64)
        n_rows = self._subjects.n_rows[order]
        size = max(rows_per_part, -(-int(n_rows.sum()) // _MOST_PARTS))
        part = (np.cumsum(n_rows) - n_rows) // size
        _, first, part = np.unique(part, return_index=True, return_inverse=True)
        self._vocabulary.patients.extend([ids[i] for i in mine] for mine in np.split(order, first[1:]) if len(mine))
        part_of, place_of = np.empty((2, len(ids)), dtype=np.int32)
        part_of[order] = part
        place_of[order] = np.arange(len(ids)) - first[part] if ids else []
        for chunk in range(n_chunks):
            rows = arrived.read(chunk)
            arrived.drop(chunk)
            subject = rows.pop("subject").to_numpy()
            rows.insert(0, "patient", place_of[subject])
            to = part_of[subject]
            by_part = np.argsort(to, kind="stable")
            numbers, starts = np.unique(to[by_part], return_index=True)
            for number, mine in zip(numbers.tolist(), np.split(by_part, starts[1:]), strict=True):
                spill.put(number, rows if len(numbers) == 1 else rows.iloc[mine].reset_index(drop=True))

    def _looked_at(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Take out duplicates; know kind, item, text and unit; look at the values."""
        rows = self._without_called_off(self._without_doubted(self._without_duplicates(rows)))
        codes = rows.pop("code").to_numpy()
        kind, item = self._kind_of_code[codes], self._item_of_code[codes]
        text = self._rank_of_text[rows["text"].to_numpy()]
        is_value = among(kind, VALUE_EVENTS)
        value, n_filled = fill_from_texts(rows["value"].to_numpy(), self._number_of_text[text], is_value)
        is_bare = is_value & np.isnan(rows["value"].to_numpy())
        self.n_values += int((is_value & ~np.isnan(value)).sum())
        self.n_contradicted += self._n_contradicted(value[is_value], text[is_value])
        self.n_commas += int((is_bare & (self._written_as[text] == COMMA)).sum())
        self.n_doubtful_numbers += int((is_bare & (self._written_as[text] == DOUBTFUL)).sum())
        self.n_unread_numbers += int((is_bare & (self._written_as[text] == UNREAD)).sum())
        self.n_results += int(is_value.sum())
        self.n_respelled_units += int(self._is_respelled[rows["unit"].to_numpy()].sum())
        unit = self._units(codes, rows["unit"].to_numpy())
        said = is_bare & ~np.isnan(value) & (self._unit_of_text[text] != self._no_unit)
        unit = np.where(said, self._unit_of_text[text], unit)
        patient, time = rows["patient"].to_numpy(), rows["time"].to_numpy()
        self._kinds.add(codes, value, rows["text"].to_numpy() != 0, unit)
        self._kinds.add_courses(kind, patient.astype(np.int64) * len(self._vocabulary.items) + item, time)
        value, unit = self.cleaner.look(value, item, unit, is_value)
        self.n_from_text += n_filled
        self._n_events += len(rows)
        self._asked[kind, item] = True
        self._shares.add(kind, item, patient)
        self._stay_numbers.add(patient, rows["stay"].to_numpy())
        is_label = among(kind, LABEL_EVENTS)
        self._note_times(time[~is_label] if is_label.any() else time)
        return rows.drop(columns="row").assign(kind=kind, item=item, text=text, value=value, unit=unit)

    def _n_contradicted(self, value: npt.NDArray[np.float64], text: npt.NDArray[np.integer]) -> int:
        """Count the values whose text is another number; a unit in the text may be another one."""
        other = (value < self._low_of_text[text]) | (value > self._high_of_text[text])
        return int((other & (self._unit_of_text[text] == self._no_unit)).sum())

    def _without_duplicates(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Take out rows that repeat another exactly, and orders stopped in the minute of their start."""
        course, found = self._orders(rows)
        codes, hashes, _ = (rows.pop(name).to_numpy() for name in ("code", "hash", "order"))
        others = first_of_each(hashes)
        others[course] = False
        when = seconds(rows["time"])
        self.called_off.update(codes[course[found.called_off]].tolist())
        self.n_orders, self.n_open_orders = self.n_orders + found.n_orders, self.n_open_orders + len(found.open)
        if len(self._over):
            self.n_over_orders += int(np.isin(rows["row"].to_numpy()[course[found.open]], self._over).sum())
        self.n_turned_orders += found.n_turned
        take = np.concatenate([np.flatnonzero(others), course[found.rows]])
        self.n_duplicates += len(rows) - len(distinct(take)) - len(found.called_off)
        time = np.concatenate([when[others], found.time])
        by_row = np.argsort(take, kind="stable")
        take, time = take[by_row], time[by_row]
        rows.insert(0, "code", codes)
        kept = _taken(rows, take)
        moved = np.flatnonzero(time != when[take])
        for name in ("time", "known_at") if len(moved) else ():
            times = kept[name].to_numpy().copy()
            times[moved] = time[moved].astype("datetime64[s]")
            kept[name] = times
        return kept

    def _orders(self, rows: pd.DataFrame) -> tuple[npt.NDArray[np.int64], Orders]:
        """Return the places of starts and stops, and which of these are orders."""
        codes = rows["code"].to_numpy()
        kind = self._kind_of_code[codes]
        starts = among(kind, _STARTS) & (self._calls_off[codes] == 0)
        course = np.flatnonzero(starts | among(kind, _STOPS))
        mine, kind, item = rows.iloc[course], kind[course], self._item_of_code[codes[course]]
        family = np.array([list(Kind).index(KIND_OF_EVENT[each]) if each in KIND_OF_EVENT else 0 for each in EventKind])
        series = mine["patient"].to_numpy().astype(np.int64) * len(self._vocabulary.items) + item
        return course, settle_orders(
            series * len(Kind) + family[kind],
            seconds(mine["time"]),
            starts[course],
            mine["order"].to_numpy(),
            mine["hash"].to_numpy().view(np.int64),
            among(kind, self._mapping.day_level) | self._is_ordered_once[item],
            self._mapping.timezone,
        )

    def _find_ordered_once(self, spill: Spill, n_parts: int) -> None:
        """Mark the items most of whose orders end in the minute of their start: of one dose, not called off."""
        n_short, n_stops = np.zeros((2, len(self._is_ordered_once)), dtype=np.int64)
        for part in range(min(n_parts, _PARTS_TO_LOOK_AT)):
            rows = spill.read(part, ["patient", "time", "code", "hash", "order"])
            course, found = self._orders(rows)
            for n, places in ((n_short, found.called_off), (n_stops, found.rows)):
                codes = rows["code"].to_numpy()[course[places]]
                stops = codes[among(self._kind_of_code[codes], _STOPS)]
                n += np.bincount(self._item_of_code[stops], minlength=len(n))
        self._is_ordered_once = (n_short >= _ENOUGH_ORDERS) & (n_short > n_stops)

    def _without_doubted(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Set aside events whose time cannot be; note their codes, and where a few of them stand."""
        codes = rows["code"].to_numpy()
        times = rows["time"].to_numpy()
        kind = self._kind_of_code[codes]
        verdict = doubted(rows["patient"].to_numpy(), times, kind, self._mapping.sentinel_dates, self._now)
        for reason, counts in self.doubted.items():
            mine = verdict == reason
            if not mine.any():
                continue
            counts.update(codes[mine].tolist())
            some = rows["row"].to_numpy()[mine][: _EXAMPLES - len(self.doubted_rows[reason])]
            self.doubted_rows[reason] += some.tolist()
        return rows if (verdict == PLAUSIBLE).all() else rows[verdict == PLAUSIBLE].reset_index(drop=True)

    def has_stops(self) -> bool:
        """Return whether the source tells of the end of any order."""
        return bool(self._asked[[stop.number for stop in _STOPS]].any())

    def doubts(self) -> list[Finding]:
        """Doubt the settled numbers of items, the kinds that rules give to codes, and the numbers of stays."""
        names = [self._vocabulary.names[place] for place in self._vocabulary.name_of_item]
        kinds = self._kinds.findings([names[item] for item in self._item_of_code])
        return [*self._scales.findings(names), *kinds, self._stay_numbers.shared()]

    def lost_values(self, names: Mapping[str, str]) -> Finding:
        """Count the numbers of results that were given up, sentinels or of another unit or range; name the items."""
        lost = Counter[str]()
        for name, n in self.cleaner.implausible(names):
            lost[name] += n
        for each in self.cleaner.unit_conflicts(names):
            lost[each.name] += sum(n for _, n in each.others)
        shown = tuple(f"{name} ({n:,} values)" for name, n in lost.most_common(_EXAMPLES))
        return Finding("lost_values", lost.total() + self.cleaner.n_sentinels, self.n_values, shown)

    def ungiven_orders(self) -> tuple[int, int]:
        """Count the pairs of patient and drug with an order that nobody gave, and all with an order."""
        return self._shares.ungiven(Kind.MEDICATION)

    def _names_of(self, is_meant: npt.NDArray[np.bool_]) -> list[str]:
        """Return the names of the items that are marked, sorted."""
        names = self._vocabulary.names
        return sorted(names[self._vocabulary.name_of_item[item]] for item in np.flatnonzero(is_meant))

    def stray_orders(self) -> tuple[str, ...]:
        """Return the names of items that some patients have an order of, but most only a dose or result."""
        return tuple(
            name
            for kind in Kind
            if self._mapping.decision_source(kind) == "auto"
            for name in self._names_of(self._shares.has_orders(kind) & ~self._shares.orders_decide(kind))
        )

    def remarks(self) -> tuple[str, ...]:
        """Say what was done without orders where the mapping lets orders alone decide, and what is ordered once."""
        out = []
        for kind in Kind:
            names = self._names_of(self._shares.mostly_without_order(kind))
            if names and kind.record.setting and self._mapping.decision_source(kind) == "order":
                out.append(
                    f"{counted(len(names), kind.words.item)} ({_first(names)}): of "
                    f"most patients for whom it was done there is no order. {kind.record.setting} in the mapping lets "
                    "orders alone decide; with auto, what was done decides for these."
                )
        if self.n_orders and not self.has_stops():
            out.append("No drug order has a stop: a drug counts as on for a day after each order.")
        once = self._names_of(self._is_ordered_once)
        if once:
            out.append(
                f"{_first(once)}: most orders end in the minute in which they start. They count as ordered once, not "
                "as called off."
            )
        return tuple(out)

    def _without_called_off(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Take out what was never done, and the orders that were called off."""
        codes = rows["code"].to_numpy()
        how = self._calls_off[codes]
        kind, item, patient = self._kind_of_code[codes], self._item_of_code[codes], rows["patient"].to_numpy()
        when = seconds(rows["time"])
        says = self._text_calls_off[rows["text"].to_numpy()]
        gone = how > 0
        for each in Kind:
            order, done = each.record.order.number, each.record.done.number
            by_text = says & np.isin(kind, (order, done)) & (how == 0)
            gone |= by_text
            event = ((how == 1) & (kind == order)) | (by_text & (kind == done))
            status = ((how == 2) | by_text) & (kind == order)
            if not (event | status).any():
                continue
            series = patient.astype(np.int64) * len(self._vocabulary.items) + item
            orders = np.flatnonzero((kind == order) & ~gone)
            names, number = np.unique(series, return_inverse=True)
            asked = SeriesSet(number[orders], when[orders], len(names))
            answered = SeriesSet(number[(kind == done) & ~gone], when[(kind == done) & ~gone], len(names))
            rows_off = np.flatnonzero(event | status)
            last = asked.before(number[rows_off], when[rows_off] + 60) - 1
            exists = last >= asked.start(number[rows_off])
            last = np.maximum(last, 0)
            if not len(orders):
                continue
            ordered = asked.time[last]
            n_answers = answered.before(number[rows_off], when[rows_off] + 1) - answered.before(
                number[rows_off], ordered
            )
            near = np.abs(when[rows_off] - ordered) <= np.where(event[rows_off], _CALLED_OFF_WITHIN, 59)
            gone[orders[asked.order[last[exists & near & (n_answers == 0)]]]] = True
        called_off = gone & (how == 0)
        self.called_off.update(codes[called_off].tolist())
        return rows if not gone.any() else rows[~gone].reset_index(drop=True)

    def _note_times(self, times: npt.NDArray[np.datetime64]) -> None:
        self._end = np.fmax(self._end, np.fmax.reduce(times, initial=np.datetime64("NaT", "us")))
        if self._now is not None:
            past = times <= self._now
            self.n_future += int((times > self._now).sum())
            self._end_by_now = np.fmax(
                self._end_by_now, np.fmax.reduce(times[past], initial=np.datetime64("NaT", "us"))
            )

    def _units(self, codes: npt.NDArray[np.int32], column: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
        """Find the unit of every row: its code's, else its column's, else the mapping's for the item, else unknown."""
        unit = self._unit_of_code[codes]
        unit = np.where(unit == self._no_unit, self._unit_of_column[column], unit)
        return np.where(unit == self._no_unit, self._fallback_of_code[codes], unit)

    def _settled(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Settle the values, mark decisions and sort; `core.events.stream.finish_events` gives the same order."""
        kind, item = rows["kind"].to_numpy(), rows["item"].to_numpy()
        is_value = among(kind, VALUE_EVENTS)
        value, unit = self.cleaner.settle(rows["value"].to_numpy(), item, rows["unit"].to_numpy(), is_value)
        self._scales.add(value, item)
        marks = decision_marks(kind, item, self._mapping, self._shares)
        rows = rows.assign(value=value, unit=unit, is_decision=marks)
        patient, time, known_at, text = (rows[name].to_numpy() for name in ("patient", "time", "known_at", "text"))
        # Of equal times, those known later come later.
        delay = (known_at - time).view(np.int64)
        order = lexical_order(patient, time.view(np.int64), delay, kind, item, unit, value, text)
        return _taken(rows, order)


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:3]) + (", ..." if names[3:] else "")


class StayNumbers:
    """The numbers of stays as the source has them; -1 stands for none."""

    def __init__(self) -> None:
        self._of_patients: list[npt.NDArray[np.int64]] = []

    def add(self, patient: npt.NDArray[np.integer], stay: npt.NDArray[np.int64]) -> None:
        """Note each number of each patient once; the events are all of these patients'."""
        named = np.flatnonzero(stay >= 0)
        if len(named):
            self._of_patients.append(stay[named][first_of_each(numbered(patient[named], stay[named]))])

    def shared(self) -> Finding:
        """Count the numbers under which several patients have events."""
        _, n_patients = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *self._of_patients]), return_counts=True)
        return Finding("shared_stays", int((n_patients > 1).sum()), len(n_patients))


class OrderShares:
    """Whether orders or what was done decide about an item, from how many patients have either."""

    def __init__(self, n_items: int) -> None:
        self._n = np.zeros((len(Kind), 3, n_items), dtype=np.int64)
        """Patients with an order, with the act done, with both."""

    def add(
        self, kind: npt.NDArray[np.integer], item: npt.NDArray[np.integer], patient: npt.NDArray[np.integer]
    ) -> None:
        """Count the events of some patients, all of theirs."""
        n_items = self._n.shape[2]
        for i, each in enumerate(Kind):
            ordered, done = (
                distinct(patient[rows].astype(np.int64) * n_items + item[rows])
                for rows in (kind == each.record.order.number, kind == each.record.done.number)
            )
            for j, pairs in enumerate((ordered, done, np.intersect1d(ordered, done, assume_unique=True))):
                self._n[i, j] += np.bincount(pairs % n_items, minlength=n_items) if len(pairs) else 0

    def has_orders(self, kind: Kind) -> npt.NDArray[np.bool_]:
        """Return whether an item has orders, of shape (n_items,)."""
        return np.asarray(self._n[list(Kind).index(kind), 0] > 0, dtype=bool)

    def ungiven(self, kind: Kind) -> tuple[int, int]:
        """Count the patients with an order of an item without the act, and all with an order; of items ever done."""
        ordered, done, both = self._n[list(Kind).index(kind)]
        return int((ordered - both)[done > 0].sum()), int(ordered[done > 0].sum())

    def mostly_without_order(self, kind: Kind) -> npt.NDArray[np.bool_]:
        """Return whether an item was done, and for most of its patients without an order, of shape (n_items,)."""
        return np.asarray((self._n[list(Kind).index(kind), 1] > 0) & ~self.orders_decide(kind), dtype=bool)

    def orders_decide(self, kind: Kind) -> npt.NDArray[np.bool_]:
        """Return whether half the patients for whom an item was done have an order of it, of shape (n_items,)."""
        _, done, both = self._n[list(Kind).index(kind)]
        return np.asarray(self.has_orders(kind) & (2 * both >= done), dtype=bool)


def decision_marks(
    kind: npt.NDArray[np.int8], item: npt.NDArray[np.integer], mapping: SiteMapping, shares: OrderShares
) -> npt.NDArray[np.bool_]:
    """Mark the events that say "the task was done", by the mapping's `decision_source` of every kind of decision.

    The shares are those of the whole source.
    """
    mark = np.zeros(len(kind), dtype=bool)
    for each in Kind:
        order, done = each.record.order.number, each.record.done.number
        source = mapping.decision_source(each)
        if source != "done":
            mark |= kind == order
        if source != "order":
            mark |= (kind == done) & ~(shares.orders_decide(each)[item] & (source == "auto"))
    return mark
