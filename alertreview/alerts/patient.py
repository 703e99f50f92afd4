"""One patient at one snapshot as pages show it: time line, last values, and what the record shows afterwards."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any, Protocol, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from alertreview.alerts.models import CaseView, LastValue, Timeline, TimelineDrug, TimelineLab
from alertreview.records.snapshots import Snapshot
from core.cohort.catalogue import members_of
from core.cohort.feature_layout import ADMISSION, LOOK_BACK_HOURS, apart_name
from core.events.facts import FactKind
from core.events.stream import decision_events, of_kind
from core.kinds import EventKind, Kind, done_word, task_of
from core.number_texts import hours_text, measured_text
from db.cache import Cache

Times = npt.NDArray[np.datetime64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PatientEvents:
    """Events in the order of time; shared by all who look at the patient, so nobody may change them."""

    frame: pd.DataFrame  # as `alertreview.records.snapshots.Snapshot.events_of` gives it
    # `time` and `known_at`: shape (n_events,).
    time: Times
    known_at: Times
    # `name` and `unit`: shape (n_events,): texts.
    name: npt.NDArray[np.object_]
    unit: npt.NDArray[np.object_]
    value: npt.NDArray[np.float64]  # shape (n_events,): NaN where an event has none

    def __len__(self) -> int:
        """Count the events."""
        return len(self.time)

    def of_kind(self, kinds: Iterable[EventKind]) -> npt.NDArray[np.bool_]:
        """Mask of the events of some kinds."""
        return of_kind(self.frame, kinds)

    def decisions(self, *task_keys: str) -> Rows:
        """Rows of the events that count as "the task was done"; see `core.events.stream.decision_events`."""
        rows: Rows = decision_events(self._what, *task_keys).index.to_numpy(dtype=np.int64)
        return rows

    @property
    def _what(self) -> pd.DataFrame:
        return self.frame[["kind", "is_decision", "item"]]


def patient_events(frame: pd.DataFrame) -> PatientEvents:
    """Take a patient's events of `alertreview.records.snapshots.Snapshot.events_of` apart; they are numbered from 0."""
    return PatientEvents(
        frame=frame,
        time=frame["time"].to_numpy().astype("datetime64[us]"),
        known_at=frame["known_at"].to_numpy().astype("datetime64[us]"),
        name=_texts(frame["name"]),
        unit=_texts(frame["unit"]),
        value=frame["value"].to_numpy(dtype=np.float64),
    )


def _texts(column: "pd.Series[Any]") -> npt.NDArray[np.object_]:
    categories = np.array([*map(str, column.cat.categories), "nan"], dtype=object)
    texts: npt.NDArray[np.object_] = categories[column.cat.codes.to_numpy()]
    return texts


HOUR = np.timedelta64(3600, "s")
WINDOW = 24 * HOUR
RECORD_HOURS_AFTER = 72
HOURS_AFTER = RECORD_HOURS_AFTER * HOUR
N_TREND = 12
# What came up to a day before admission (emergency room, pre-operative visit) belongs to the stay.
LOOK_BACK = LOOK_BACK_HOURS * HOUR
MEASURED = (EventKind.LAB_RESULT, EventKind.OBSERVATION)
BACKGROUND = (
    ("Admitted for", (FactKind.REASON,)),
    ("Problems and diagnoses", (FactKind.PROBLEM, FactKind.DIAGNOSIS)),
    ("Allergies", (FactKind.ALLERGY,)),
    ("Procedures", (FactKind.PROCEDURE,)),
)
"""What is said of a patient beside the numbers, in this order, with the kinds of facts behind it."""
CENTRAL_SHARE = 0.90
CACHED_EVENTS = 200_000
"""Events of recently viewed patients held in memory, some hundred bytes each."""
CACHED_CASES = 128
"""Cases as pages show them, some ten kilobytes each: those just read, and those read ahead."""


@dataclass(frozen=True)
class _Band:
    """Central 90 % of an item's past values at this site."""

    low: float
    high: float


@dataclass(frozen=True, eq=False)
class _Seen:
    """What was known of a stay at a snapshot."""

    snapshot_at: np.datetime64
    admitted_at: np.datetime64
    since: np.datetime64
    events: PatientEvents
    rows: Rows  # of the events: of this stay, and known before the snapshot
    facts: pd.DataFrame  # known before the snapshot, of any stay
    undated: frozenset[str]
    """Kinds of facts that the patient has without a date; nobody can say whether those were known."""


class SnapshotViews:
    """Views of one imported snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._zone = ZoneInfo(snapshot.site_timezone)
        self._events_cache: Cache[PatientEvents] = Cache(CACHED_EVENTS, lambda events: len(events) + 1)
        self._cases_cache: Cache[CaseView] = Cache(CACHED_CASES)
        self._facts_cache: Cache[pd.DataFrame] = Cache(CACHED_EVENTS, lambda facts: len(facts) + 1)

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(self.snapshot.feature_dictionary["source"]) | frozenset(self.snapshot.tasks["name"])

    def _named(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return events or facts under the names of features and tasks, of which no two items have the same."""
        name, item, unit = (rows[column].astype("str").astype("category") for column in ("name", "item", "unit"))
        keys = np.stack([name.cat.codes, item.cat.codes, unit.cat.codes], axis=1)
        found, place = np.unique(keys, axis=0, return_inverse=True)
        kept = [(name.cat.categories[i], item.cat.categories[j], unit.cat.categories[k]) for i, j, k in found]
        units: dict[str, list[str]] = {}
        for _, each, its_unit in kept:
            units.setdefault(each, []).append(its_unit)
        names = [apart_name(called or each, each, units[each], self._names) for called, each, _ in kept]
        return rows.assign(name=pd.Categorical(np.array(names, dtype=object)[place.ravel()]))

    def at(self, moment: pd.Timestamp | np.datetime64) -> datetime:
        """Return a site time its zone."""
        naive: datetime = np.datetime64(moment).astype("datetime64[us]").item()
        return naive.replace(tzinfo=self._zone)

    def _all_at(self, moments: Times) -> tuple[datetime, ...]:
        return tuple(moment.replace(tzinfo=self._zone) for moment in moments.astype("datetime64[us]").tolist())

    def task_name(self, task_key: str) -> str:
        """Name of a task for people."""
        return str(self._task(task_key)["name"])

    def timeline(self, row_index: int, task_key: str, related: Iterable[str] = ()) -> Timeline:
        """Draw what was known at the snapshot of a row, and the decision in question.

        `related` names labs and drugs that are worth showing for the task, best first. Nothing in the time line was
        known only after the snapshot, except the decision in question itself.
        """
        return self._timeline(self._seen(row_index), row_index, task_key, related)

    def _timeline(self, seen: "_Seen", row_index: int, task_key: str, related: Iterable[str]) -> Timeline:
        until = seen.snapshot_at + WINDOW
        events = seen.events
        orders = np.unique(events.time[events.decisions(*self._done_by(task_key))])
        # No label file says when a label could be known: one of an earlier day may tell what comes.
        since = seen.snapshot_at if task_of(task_key)[0] is Kind.LABEL else seen.since
        wanted = [*self._own_names(task_key), *related]
        return Timeline(
            snapshot_at=self.at(seen.snapshot_at),
            window_hours=float(self._instance(row_index)["window_hours"]),
            decision_name=self.task_name(task_key),
            past_orders=self._all_at(orders[(orders >= since) & (orders < seen.snapshot_at)]),
            orders_in_window=self._all_at(orders[(orders >= seen.snapshot_at) & (orders < until)]),
            labs=self._labs(seen, wanted),
            drugs=self._drugs(seen, wanted),
            admitted_at=self.at(seen.admitted_at),
            done=self._done(task_key),
        )

    def case(self, row_index: int, task_key: str, related: Iterable[str] = ()) -> CaseView:
        """Return everything that a physician may see of a patient at the snapshot; parameters as of `timeline`."""
        key = row_index, task_key, tuple(related)
        return self._cases_cache.get(key, lambda: self._case(*key))

    def _case(self, row_index: int, task_key: str, related: tuple[str, ...]) -> CaseView:
        seen = self._seen(row_index)
        timeline = self._timeline(seen, row_index, task_key, related)
        background = self._background(seen)
        said = {BACKGROUND[0][0] if what == ADMISSION else what for what, _ in background}
        unsaid = [(what, kinds) for what, kinds in BACKGROUND if what not in said]
        has = self.snapshot.fact_kinds
        return CaseView(
            timeline=timeline,
            last_values=self._last_values(seen, timeline, task_key),
            background=background,
            absent=tuple(what for what, kinds in unsaid if not has & set(kinds)),
            unknown=tuple(what for what, kinds in unsaid if has & set(kinds) and not seen.undated & set(kinds)),
        )

    def _last_values(self, seen: "_Seen", timeline: Timeline, task_key: str) -> tuple[LastValue, ...]:
        """List the last result of each lab and vital sign of the stay, and of the task even where it has none."""
        # Labs with numbers: of this patient, of others here, or in question.
        has_numbers = {lab.name for lab in timeline.labs}.union(self._bands, self._own_names(task_key))
        worded = {value.name: value for value in self._worded(seen, has_numbers)}
        values = []
        for lab in timeline.labs:
            age = (timeline.snapshot_at - lab.times[-1]).total_seconds() / 3600
            in_words = worded.get(lab.name)
            if in_words is not None and (in_words.hours_old or 0.0) < age:
                # A later result in words, such as "hemolyzed" or "< 0.01", or one in an unknown unit, is the last one.
                worded[lab.name] = replace(in_words, low=lab.low, high=lab.high, trend=lab.values[-N_TREND:])
                continue
            worded.pop(lab.name, None)
            flag = lab.flag(lab.values[-1])
            values.append(
                LastValue(
                    lab.name, lab.values[-1], lab.unit, flag, age,
                    low=lab.low, high=lab.high, trend=lab.values[-N_TREND:],
                )
            )  # fmt: skip
        values += worded.values()
        own = self._own_names(task_key)
        has_values = "value" in Kind(self._task(task_key)["kind"]).record.features
        if has_values and not {value.name for value in values}.intersection(own):
            values.append(LastValue(timeline.decision_name, None, "", "", None))
        # Of a panel in the order of its lanes.
        first = (*own, timeline.decision_name)
        place = {name: i for i, name in reversed(list(enumerate(first)))}
        values.sort(key=lambda value: (value.flag == "", value.hours_old or 0.0, value.name))
        values.sort(key=lambda value: place.get(value.name, len(first)))
        return tuple(values)

    def _worded(self, seen: "_Seen", has_numbers: set[str]) -> list[LastValue]:
        """Return the last results in words, of cultures and labs; of labs with numbers also those without any value.

        A result in a unit that no scale holds has no value, but was measured all the same.
        """
        events, rows = seen.events, seen.rows
        rows = rows[events.of_kind([EventKind.LAB_RESULT])[rows] & np.isnan(events.value[rows])]
        texts = events.frame["text"].astype(str).to_numpy()
        found: dict[str, tuple[np.datetime64, str]] = {}
        for row in rows.tolist():
            if texts[row] or events.name[row] in has_numbers:
                found[str(events.name[row])] = (events.time[row], texts[row] or "no value")
        facts = seen.facts[(seen.facts["kind"] == FactKind.MICROBIOLOGY).to_numpy()]
        for fact in facts.to_dict("records"):
            found[str(fact["name"])] = (np.datetime64(fact["start"]), str(fact["text"]))
        return [
            LastValue(name, None, "", "", float((seen.snapshot_at - time) / HOUR), text=text)
            for name, (time, text) in found.items()
        ]

    def _background(self, seen: "_Seen") -> tuple[tuple[str, str], ...]:
        """Say reasons for admission, problems, allergies and procedures known by then, each once."""
        said = []
        for what, kinds in BACKGROUND:
            facts = seen.facts[seen.facts["kind"].isin(list(kinds)).to_numpy()]
            names = dict(zip(facts["name"].astype(str), facts["known_at"].isna(), strict=True))
            words = [f"{name} (undated)" if undated else name for name, undated in names.items() if _is_name(name)]
            if n_nameless := sum(not _is_name(name) for name in names):
                words.append(f"{n_nameless} without a name in the source")
            if words:
                said.append((what, ", ".join(words)))
        if BACKGROUND[0][0] not in dict(said):
            # What a source says of an admission may be its reason or only its type.
            admissions = seen.rows[seen.events.of_kind([EventKind.ADMISSION])[seen.rows]]
            if names := dict.fromkeys(str(name) for name in seen.events.name[admissions] if name):
                said.insert(0, (ADMISSION, ", ".join(names)))
        return tuple(said)

    def record_after(self, row_index: int, task_key: str) -> tuple[str, ...]:
        """Say in sentences what the record shows in the 72 h after the snapshot."""
        snapshot_at = self._snapshot_at(row_index)
        events = self._events(row_index)
        horizon = snapshot_at + HOURS_AFTER
        keys = self._done_by(task_key)
        later = events.decisions(*keys)
        later = later[(events.time[later] >= snapshot_at) & (events.time[later] < horizon)]
        task = self._task(task_key)
        words = Kind(task["kind"]).worded(self._done(task_key))
        done = words.happened or words.done
        ends = {
            word: times[(times >= snapshot_at) & (times < horizon)][:1]
            for word, event in (("Discharged", EventKind.DISCHARGE), ("Died", EventKind.DEATH))
            for times in [events.time[events.of_kind([event])]]
        }
        if len(ends["Died"]) and (ends["Discharged"] >= ends["Died"]).any():
            del ends["Discharged"]  # as sources write of whoever dies in hospital
        start = self.at(snapshot_at).strftime("%H:%M")
        if len(later):
            # A panel itself has no value.
            value = events.value[later[0]] if len(keys) == 1 else np.nan
            sentences = [self._first_decision(events, later[0], snapshot_at, f"{task['name']} {done}", value)]
            if events.time[later[0]] >= snapshot_at + WINDOW:
                window = float(self._instance(row_index)["window_hours"])
                sentences.append(f"Nothing within the {hours_text(window)} in question.")
        else:
            whole = [horizon, *(time for times in ends.values() for time in times)]
            until = max(min(*whole, self._seen_until(row_index, events)), snapshot_at)
            end = "" if until in whole else ", where the patient's records end"
            sentences = [f"{task['name']} not {done} in the {_hours(until - snapshot_at)} after {start}{end}."]
        sentences += [
            f"{word} {_hours(time - snapshot_at)} after {start}." for word, times in ends.items() for time in times
        ]
        return tuple(sentences)

    def hours_to_decision(self, row_index: int, task_key: str) -> float | None:
        """Hours from the snapshot to the first such decision in its 24 h window, None when there was none."""
        snapshot_at = self._snapshot_at(row_index)
        events = self._events(row_index)
        times = events.time[events.decisions(*self._done_by(task_key))]
        within = times[(times >= snapshot_at) & (times < snapshot_at + WINDOW)]
        return float((within.min() - snapshot_at) / HOUR) if len(within) else None

    def _seen_until(self, row_index: int, events: PatientEvents) -> np.datetime64:
        """Return until when the record tells what was done: of a stay that goes on, to the patient's last event."""
        horizon = self._snapshot_at(row_index) + HOURS_AFTER
        stays = self.snapshot.stays
        is_own = (stays["stay_id"] == self._instance(row_index)["stay_id"]).to_numpy()
        goes_on = bool(stays.loc[is_own, "discharged_at"].isna().iloc[0])
        return min(horizon, events.time.max()) if goes_on else horizon

    def _first_decision(
        self, events: PatientEvents, first: np.int64, snapshot_at: np.datetime64, done: str, value: float
    ) -> str:
        words = "" if np.isnan(value) else f" ({measured_text(value)} {events.unit[first]})".replace(" )", ")")
        at = self.at(events.time[first])
        when = f"{at.day} {at:%b at %H:%M}"
        after = _hours(events.time[first] - snapshot_at)
        lag = "" if after == "0 min" else f"{after} after {self.at(snapshot_at):%H:%M}, "
        return f"{done} {lag}on {when}{words}."

    def _labs(self, seen: "_Seen", wanted: list[str]) -> tuple[TimelineLab, ...]:
        events, rows = seen.events, seen.rows
        rows = rows[events.of_kind(MEASURED)[rows] & ~np.isnan(events.value[rows])]
        # Related labs first, then those that moved most often.
        names = _shown_names(events.name[rows], wanted)
        ranges = self._reference_ranges(seen)
        return tuple(self._lab(events, name, rows[events.name[rows] == name], ranges) for name in names)

    def _lab(
        self, events: PatientEvents, name: str, rows: Rows, ranges: dict[tuple[str, str], tuple[float, float]]
    ) -> TimelineLab:
        band, unit = self._bands.get(name), str(events.unit[rows[-1]])
        low, high = ranges.get((name, unit), (np.nan, np.nan))
        return TimelineLab(
            name=name,
            unit=unit,
            times=self._all_at(events.time[rows]),
            values=tuple(events.value[rows].tolist()),
            low=None if np.isnan(low) else low,
            high=None if np.isnan(high) else high,
            usual_low=band.low if band else None,
            usual_high=band.high if band else None,
        )

    def _reference_ranges(self, seen: "_Seen") -> dict[tuple[str, str], tuple[float, float]]:
        """Return the laboratory's last range of each (name, unit); one in another unit than the value says nothing."""
        facts = seen.facts
        facts = facts[(facts["range_low"].notna() | facts["range_high"].notna()).to_numpy()]
        columns = (facts[name].tolist() for name in ("name", "unit", "range_low", "range_high"))
        return {
            (str(name), str(unit)): (float(low), float(high)) for name, unit, low, high in zip(*columns, strict=True)
        }

    def _drugs(self, seen: "_Seen", wanted: list[str]) -> tuple[TimelineDrug, ...]:
        events, rows = seen.events, seen.rows[seen.events.of_kind(Kind.MEDICATION.events)[seen.rows]]
        is_order, is_stop, is_given = (
            events.of_kind([kind])
            for kind in (EventKind.MEDICATION_ORDER, EventKind.MEDICATION_STOP, EventKind.ADMINISTRATION)
        )
        details = self._details(seen)
        drugs = []
        for name in _shown_names(events.name[rows], wanted):
            own = rows[events.name[rows] == name]
            starts, stops = (np.unique(events.time[own[mark[own]]]) for mark in (is_order, is_stop))
            dose, route = details.get(name, ("", ""))
            drugs.append(
                TimelineDrug(
                    name=name,
                    periods=self._periods(starts, stops, seen.snapshot_at),
                    given_at=self._all_at(np.unique(events.time[own[is_given[own]]])),
                    dose=dose,
                    route=route,
                    is_running=bool(len(starts)) and not (stops > starts[-1]).any(),
                )
            )
        first = {name: place for place, name in enumerate(wanted)}
        drugs.sort(key=lambda drug: (first.get(drug.name, len(first)), not drug.is_running))
        return tuple(drugs)

    def _details(self, seen: "_Seen") -> dict[str, tuple[str, str]]:
        """Return dose and route of the last order of each drug that has any."""
        facts = seen.facts[((seen.facts["dose"] != "") | (seen.facts["route"] != "")).to_numpy()]
        columns = (facts[name].astype(str) for name in ("name", "dose", "route"))
        return {name: (dose, route) for name, dose, route in zip(*columns, strict=True)}

    def _periods(
        self, starts: Times, stops: Times, snapshot_at: np.datetime64
    ) -> tuple[tuple[datetime, datetime], ...]:
        """Join each order with the stop that follows; what has no stop runs on to the snapshot."""
        following = np.searchsorted(stops, starts, side="right")
        periods: list[tuple[np.datetime64, np.datetime64]] = []
        for start, place in zip(starts, following, strict=True):
            end = min(stops[place], snapshot_at) if place < len(stops) else snapshot_at
            if periods and start <= periods[-1][1]:
                periods[-1] = (periods[-1][0], max(end, periods[-1][1]))
            else:
                periods.append((start, end))
        return tuple((self.at(start), self.at(end)) for start, end in periods)

    @cached_property
    def feature_columns(self) -> sparse.csc_matrix:
        """Features column by column: the few columns of one task are then read without touching the others."""
        return sparse.csc_matrix(self.snapshot.features)

    @cached_property
    def _bands(self) -> dict[str, _Band]:
        dictionary = self.snapshot.feature_dictionary
        is_last = (dictionary["aspect"] == "last_value").to_numpy()
        columns = np.flatnonzero(is_last)
        values = self.feature_columns[:, columns]
        tail = (1 - CENTRAL_SHARE) / 2
        bands = {}
        for position, name in enumerate(dictionary["source"].to_numpy()[columns]):
            stored = values.data[values.indptr[position] : values.indptr[position + 1]]
            if len(stored) >= 20:
                low, high = np.quantile(stored.astype(float), [tail, 1 - tail])
                bands[str(name)] = _Band(float(low), float(high))
        return bands

    def _seen(self, row_index: int) -> "_Seen":
        """Return what was known of the stay at a snapshot."""
        instance = self._instance(row_index)
        snapshot_at = self._snapshot_at(row_index)
        admitted_at = np.datetime64(self._admitted_at(instance)).astype("M8[us]")
        events = self._events(row_index)
        since = admitted_at - LOOK_BACK
        known = (events.known_at < snapshot_at) & (events.time < snapshot_at) & (events.time >= since)
        patient_id = str(instance["patient_id"])
        facts = self._facts_cache.get(patient_id, lambda: self._named(self.snapshot.facts_of(patient_id)))
        # An allergy without a date is worth more than the doubt whether it was known by then.
        undated = facts["known_at"].isna() & (facts["kind"] == FactKind.ALLERGY)
        known_facts = facts[((facts["known_at"] < pd.Timestamp(snapshot_at)) | undated).to_numpy()]
        kinds = frozenset(facts["kind"][facts["known_at"].isna()])
        return _Seen(snapshot_at, admitted_at, since, events, np.flatnonzero(known), known_facts, kinds)

    def _snapshot_at(self, row_index: int) -> np.datetime64:
        moment: np.datetime64 = np.datetime64(self.snapshot.instances["snapshot_at"].iat[row_index]).astype("M8[us]")
        return moment

    def _events(self, row_index: int) -> PatientEvents:
        patient_id = self.snapshot.instances["patient_id"].iat[row_index]
        return self._events_cache.get(
            patient_id, lambda: patient_events(self._named(self.snapshot.events_of(patient_id)))
        )

    def _instance(self, row_index: int) -> dict[str, Any]:
        return dict(self.snapshot.instances.iloc[row_index])

    def _admitted_at(self, instance: dict[str, Any]) -> pd.Timestamp:
        stays = self.snapshot.stays
        return stays.loc[(stays["stay_id"] == instance["stay_id"]).to_numpy(), "admitted_at"].iloc[0]

    def _task(self, task_key: str) -> dict[str, Any]:
        tasks = self.snapshot.tasks
        return dict(tasks.iloc[int(np.flatnonzero((tasks["task_key"] == task_key).to_numpy())[0])])

    def _done(self, task_key: str) -> str:
        return done_word(self.snapshot.words, task_key)

    def _done_by(self, task_key: str) -> tuple[str, ...]:
        """Keys of the tasks whose events are decisions of a task: the members of a panel, else its own."""
        return members_of(str(self._task(task_key).get("members", ""))) or (task_key,)

    def _own_names(self, task_key: str) -> tuple[str, ...]:
        """Names of the items of a task."""
        return tuple(self.task_name(key) for key in self._done_by(task_key))


def _is_name(text: str) -> bool:
    """Whether a text is more than a code, which tells a physician nothing."""
    return "//" not in text and any(each.isalpha() for each in text)


def _shown_names(names: npt.NDArray[np.object_], wanted: list[str]) -> list[str]:
    """Names that are there: wanted ones first, then the most frequent."""
    present = Counter(names.tolist())
    first = [name for name in dict.fromkeys(wanted) if name in present]
    return [*first, *(name for name, _ in present.most_common() if name not in first)]


def _hours(span: np.timedelta64) -> str:
    return hours_text(float(span / HOUR))


class PatientViews(Protocol):
    """The patients of one import; `row_index` is the row of an instance in that import's arrays."""

    def case(self, row_index: int, task_key: str) -> CaseView:
        """Return what was known at the snapshot, and the decision in question."""
        ...


OpenPatientViews: TypeAlias = Callable[[str], PatientViews]
"""Returns the patients of the import with this content hash.

A study stays with the import that its cases were chosen from; the same row of a later import is another patient.
"""
