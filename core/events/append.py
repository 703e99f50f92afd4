"""Append newly arrived events to those already known, and record what was corrected; some patients at a time."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.events.cleaning import OrderShares, decision_marks
from core.events.mapping import SiteMapping
from core.events.parts import EventStream, Spill, Vocabulary
from core.events.series import lexical_order
from core.events.spelling import unit_spelling
from core.events.stream import EVENT_COLUMNS, among, of_kind
from core.kinds import EVENT_NAMES, LABEL_EVENTS, VALUE_EVENTS, EventKind

TRAIL_COLUMNS = ("patient_id", "time", "kind", "item", "old_value", "old_text", "new_value", "new_text")

_PLACE = ["patient_id", "time", "kind", "item"]
_TEXTS = ("patient_id", "kind", "item", "name", "text", "unit")


@dataclass(frozen=True)
class Known:
    """What is known of all events together before others are added."""

    names: dict[str, str]  # of items
    main_units: dict[str, str]  # of items with values
    units: set[str]
    texts: set[str]
    has_labels: bool

    @classmethod
    def of(cls, parts: Iterable[pd.DataFrame]) -> "Known":
        """Walk over events, in order, with kind, item, name, text and unit as categories that occur."""
        names: dict[str, str] = {}
        main_units: dict[str, str] = {}
        units, texts, has_labels = {""}, {""}, False
        for part in parts:
            tells = part[of_kind(part, VALUE_EVENTS) & (part["unit"] != "").to_numpy()]
            for found, column, rows in ((names, "name", part), (main_units, "unit", tells)):
                first = rows[["item", column]].drop_duplicates("item").astype("str")
                found |= dict(zip(first["item"], first[column], strict=True)) | found
            units.update(part["unit"].cat.categories)
            texts.update(part["text"].cat.categories)
            has_labels |= bool(of_kind(part, LABEL_EVENTS).any())
        return cls(names, {item: unit_spelling(unit) for item, unit in main_units.items()}, units, texts, has_labels)


class Merging:
    """Adds new events to known ones, some patients at a time; the result is an event stream.

    The new events are an event stream in memory. What is known already changes nothing; a corrected result replaces its
    value; closed stays stay as they were paired. `trail` has `TRAIL_COLUMNS`, one row for each result whose value was
    replaced, and `n_added` counts new events that were not known before.
    """

    def __init__(
        self, known: Known, new: pd.DataFrame, mapping: SiteMapping, spill: Spill, now: pd.Timestamp | None = None
    ) -> None:
        self._mapping, self._spill, self._now, self._new = mapping, spill, now, new
        first = new[["item", "name"]].drop_duplicates("item").astype("str")
        self._names = {**dict(zip(first["item"], first["name"], strict=True)), **known.names}
        texts = {
            "item": sorted(self._names),
            "name": sorted(set(self._names.values())),
            "text": sorted(known.texts.union(new["text"].cat.categories)),
            "unit": sorted(known.units.union(new["unit"].cat.categories)),
        }
        self._place = {name: {text: i for i, text in enumerate(each)} for name, each in texts.items()}
        of_item = np.array([self._place["name"][self._names[item]] for item in texts["item"]], dtype=np.int32)
        self._vocabulary = Vocabulary(texts["item"], texts["unit"], texts["text"], texts["name"], of_item, [])
        self._shares = OrderShares(len(of_item))
        self._trails: list[pd.DataFrame] = []
        self._kinds: set[EventKind] = set()
        self._times: list[tuple[int, int, Any, Any]] = []
        self.n_added = 0

    def dealt(self, n_known: Mapping[str, int], rows_per_part: int) -> Iterator[list[str]]:
        """Return the patients, known ones with the number of their events, in parts for `add`."""
        counts = self._new["patient_id"].value_counts()
        n_new = {str(patient): int(n) for patient, n in counts.items()}
        part: list[str] = []
        n = 0
        for patient in sorted({*(each for each, n in n_known.items() if n), *n_new}):
            part.append(patient)
            n += n_known.get(patient, 0) + n_new.get(patient, 0)
            if n >= rows_per_part:
                yield part
                part, n = [], 0
        if part:
            yield part

    def add(self, patients: list[str], events: pd.DataFrame, stays: pd.DataFrame) -> None:
        """Merge the events of some patients; `events` and `stays` are all that is known of them."""
        new = self._new[self._new["patient_id"].isin(patients).to_numpy()]
        known = events.assign(stay=_stay_names(events, stays))
        # Most patients have nothing new: their events go on as they are.
        is_touched = known["patient_id"].isin(new["patient_id"]).to_numpy()
        merged, trail, n_added = _merged(known[is_touched], new, self._names)
        self.n_added += n_added
        self._trails.append(trail)
        self._vocabulary.patients.append(patients)
        self._place["patient_id"] = {patient: i for i, patient in enumerate(patients)}
        pieces = [self._as_numbers(each) for each in (known[~is_touched], merged)]
        rows = {name: np.concatenate([piece[name] for piece in pieces]) for name in pieces[0]}
        delay = (rows["known_at"] - rows["time"]).view(np.int64)
        by = [rows[name] for name in ("kind", "item", "unit", "value", "text")]
        order = lexical_order(rows["patient"], rows["time"].view(np.int64), delay, *by)
        self._note(rows)
        self._spill.put(len(self._times) - 1, pd.DataFrame({name: rows[name][order] for name in rows}, copy=False))

    def _as_numbers(self, events: pd.DataFrame) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of some events as the stream keeps them."""
        plain = {name: events[name].to_numpy() for name in ("value", "stay")}
        plain |= {name: events[name].to_numpy().astype("datetime64[us]") for name in ("time", "known_at")}
        for name in ("patient_id", "item", "text", "unit"):
            column, place = events[name].cat, self._place[name]
            numbers = np.array([place.get(text, -1) for text in column.categories], dtype=np.int32)
            plain["patient" if name == "patient_id" else name] = numbers[column.codes.to_numpy()]
        return {**plain, "kind": events["kind"].cat.codes.to_numpy()}

    def _note(self, rows: Mapping[str, npt.NDArray[Any]]) -> None:
        """Note the kinds of a part, who has what, and when it ends."""
        self._kinds |= {each for each in EventKind if (rows["kind"] == each.number).any()}
        self._shares.add(rows["kind"], rows["item"], rows["patient"])
        times = pd.Series(rows["time"][~among(rows["kind"], LABEL_EVENTS)])
        past = times[times <= self._now] if self._now is not None else times
        self._times.append((len(past), len(times), past.max(), times.max()))

    def finish(self) -> tuple[EventStream, pd.DataFrame]:
        """Return the stream and the trail, after all patients were added."""
        n_events = 0
        for part in range(len(self._times)):
            rows = self._spill.read(part)
            marks = decision_marks(rows["kind"].to_numpy(), rows["item"].to_numpy(), self._mapping, self._shares)
            n_events += len(rows)
            self._spill.drop(part)
            self._spill.put(part, rows.assign(is_decision=marks))
        n_past, n_times = (sum(each[i] for each in self._times) for i in range(2))
        # Where most events lie after the import, the calendar is not the wall's: today is no bound then.
        end = pd.Series([each[2 if 2 * n_past >= n_times else 3] for each in self._times]).max()
        stream = EventStream(self._spill, self._vocabulary, frozenset(self._kinds), n_events, end)
        return stream, pd.concat(self._trails, ignore_index=True)


def _merged(known: pd.DataFrame, new: pd.DataFrame, names: Mapping[str, str]) -> tuple[pd.DataFrame, pd.DataFrame, int]:
    """Return the events of some patients, what was corrected, and how many are new; `known` has the column ``stay``."""
    before = _plain(known).assign(stay=known["stay"].to_numpy())
    after = _plain(new).assign(stay=-1)
    after["name"] = after["item"].map(names)
    places = [
        pd.MultiIndex.from_frame(each[[*_PLACE, "value", "text"]].fillna({"value": np.inf})) for each in (before, after)
    ]
    after = after[~places[1].isin(places[0])]
    trail, replaced = _corrections(before, after)
    both = pd.concat([before[~replaced], after], ignore_index=True).astype(dict.fromkeys(_TEXTS, "category"))
    return both.assign(kind=both["kind"].cat.set_categories(EVENT_NAMES)), trail, len(after)


def _plain(events: pd.DataFrame) -> pd.DataFrame:
    return events[list(EVENT_COLUMNS)].astype(dict.fromkeys(_TEXTS, "str")).reset_index(drop=True)


def _stay_names(events: pd.DataFrame, stays: pd.DataFrame) -> npt.NDArray[np.int64]:
    """Return each admission's or discharge's closed stay, -1 else: open stays may still be closed."""
    out = np.full(len(events), -1, dtype=np.int64)
    closed = stays[stays["discharged_at"].notna()]
    for kind, column in ((EventKind.ADMISSION, "admitted_at"), (EventKind.DISCHARGE, "discharged_at")):
        rows = np.flatnonzero(of_kind(events, [kind]))
        mine = events.iloc[rows][["patient_id", "time"]].astype({"patient_id": "str"})
        # Two stays may begin or end in the same minute: the i-th such event belongs to the i-th of them.
        mine["i"] = mine.groupby(["patient_id", "time"]).cumcount()
        named = closed[["patient_id", column, "stay_id"]].rename(columns={column: "time"})
        named["i"] = named.groupby(["patient_id", "time"]).cumcount()
        out[rows] = (
            mine.merge(named, on=["patient_id", "time", "i"], how="left")["stay_id"].fillna(-1).to_numpy(np.int64)
        )
    return out


def _corrections(before: pd.DataFrame, after: pd.DataFrame) -> tuple[pd.DataFrame, npt.NDArray[np.bool_]]:
    """Find results of the same patient, time and item whose value or text has changed."""
    values = [EventKind.LAB_RESULT.value, EventKind.OBSERVATION.value]
    old, new = before[before["kind"].isin(values)], after[after["kind"].isin(values)]
    new = new.drop_duplicates(_PLACE, keep="last")
    old = old.assign(row=old.index).drop_duplicates(_PLACE, keep=False)
    pairs = old.merge(new, on=_PLACE, suffixes=("_old", "_new"))
    replaced = np.zeros(len(before), dtype=bool)
    replaced[pairs["row"].to_numpy(dtype=np.int64)] = True
    trail = pd.DataFrame(
        {
            **{name: pairs[name] for name in _PLACE},
            "old_value": pairs["value_old"],
            "old_text": pairs["text_old"],
            "new_value": pairs["value_new"],
            "new_text": pairs["text_new"],
        }
    )
    return trail[list(TRAIL_COLUMNS)], replaced
