"""One patient at one snapshot as pages show it: time line, last values, and what the record shows afterwards."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Protocol, TypeAlias
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from alertreview.alerts.models import LastValue, Timeline, TimelineDrug, TimelineLab
from alertreview.records.snapshots import Snapshot
from core.events.stream import decision_events, of_kind
from core.kinds import EventKind, Kind
from db.cache import Cache

Times = npt.NDArray[np.datetime64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PatientEvents:
    """Events in the order of time; shared by all who look at the patient, so nobody may change them.

    Parameters
    ----------
    frame : DataFrame
        As `alertreview.records.snapshots.Snapshot.events_of` gives it.
    time, known_at : datetime64[us] arrays of shape (n_events,)
    name, unit : object arrays of shape (n_events,)
        Texts.
    value : float array of shape (n_events,)
        NaN where an event has none.
    """

    frame: pd.DataFrame
    time: Times
    known_at: Times
    name: npt.NDArray[np.object_]
    unit: npt.NDArray[np.object_]
    value: npt.NDArray[np.float64]

    def __len__(self) -> int:
        """Count the events."""
        return len(self.time)

    def of_kind(self, kinds: Iterable[EventKind]) -> npt.NDArray[np.bool_]:
        """Mask of the events of some kinds."""
        return of_kind(self.frame, kinds)

    def decisions(self, task_key: str) -> Rows:
        """Rows of the events that count as "the task was done"; see `core.events.stream.decision_events`."""
        rows: Rows = decision_events(self._what, task_key).index.to_numpy(dtype=np.int64)
        return rows

    @property
    def _what(self) -> pd.DataFrame:
        return self.frame[["kind", "is_decision", "item"]]


def patient_events(frame: pd.DataFrame) -> PatientEvents:
    """Take a patient's events apart.

    Parameters
    ----------
    frame : DataFrame
        As `alertreview.records.snapshots.Snapshot.events_of` gives it; numbered from 0.
    """
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
TIMELINE_HOURS_BACK = 72
HOURS_BACK = TIMELINE_HOURS_BACK * HOUR
RECORD_HOURS_AFTER = 72
HOURS_AFTER = RECORD_HOURS_AFTER * HOUR
N_LABS_SHOWN = 4
N_DRUGS_SHOWN = 4
N_LAST_VALUES = 12
# An order without an end is drawn this long: a given dose is a mark, not a course.
SINGLE_DOSE = 2 * HOUR
CENTRAL_SHARE = 0.90
CACHED_EVENTS = 200_000
"""Events of recently viewed patients held in memory, some hundred bytes each."""


@dataclass(frozen=True)
class _Band:
    """Central 90 % of an item's past values at this site."""

    low: float
    high: float


class SnapshotViews:
    """Views of one imported snapshot.

    Parameters
    ----------
    snapshot : Snapshot
        The import, opened.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._zone = ZoneInfo(snapshot.site_timezone)
        self._events_cache: Cache[PatientEvents] = Cache(CACHED_EVENTS, lambda events: len(events) + 1)

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
        """Draw what was known at the snapshot, and the decision in question.

        Parameters
        ----------
        row_index : int
            Row of the instance in the snapshot.
        task_key : str
            The task whose decision is in question.
        related : iterable of str
            Names of labs and drugs that are worth showing for this task, best first.

        Returns
        -------
        Timeline
            Nothing in it was known only after the snapshot, except the decision in question itself.
        """
        snapshot_at = self._snapshot_at(row_index)
        events = self._events(row_index)
        since, until = snapshot_at - HOURS_BACK, snapshot_at + WINDOW
        recent = (events.known_at < snapshot_at) & (events.time >= since)
        orders = np.unique(events.time[events.decisions(task_key)])
        wanted = [self.task_name(task_key), *related]
        return Timeline(
            snapshot_at=self.at(snapshot_at),
            window_end=self.at(until),
            decision_name=self.task_name(task_key),
            past_orders=self._all_at(orders[(orders >= since) & (orders < snapshot_at)]),
            orders_in_window=self._all_at(orders[(orders >= snapshot_at) & (orders < until)]),
            labs=self._labs(events, recent, wanted),
            drugs=self._drugs(events, recent, snapshot_at, wanted),
        )

    def last_values(self, row_index: int) -> tuple[LastValue, ...]:
        """List the last result of each lab of the stay known at the snapshot, unusual and recent ones first."""
        instance = self._instance(row_index)
        snapshot_at = instance["snapshot_at"]
        events = self._events(row_index).frame
        results = events[
            of_kind(events, [EventKind.LAB_RESULT])
            & (events["known_at"] < snapshot_at).to_numpy()
            & (events["time"] >= self._admitted_at(instance)).to_numpy()
            & events["value"].notna().to_numpy()
        ]
        last = results.drop_duplicates("item", keep="last")
        values = [
            LastValue(
                name=str(row["name"]),
                value=float(row["value"]),
                unit=str(row["unit"]),
                flag=self._flag(str(row["name"]), float(row["value"])),
                hours_old=(snapshot_at - row["time"]) / pd.Timedelta(hours=1),
            )
            for row in last.to_dict("records")
        ]
        values.sort(key=lambda value: (value.flag == "", value.hours_old, value.name))
        return tuple(values[:N_LAST_VALUES])

    def record_after(self, row_index: int, task_key: str) -> tuple[str, ...]:
        """Say in sentences what the record shows in the 72 h after the snapshot."""
        snapshot_at = self._snapshot_at(row_index)
        events = self._events(row_index)
        horizon = snapshot_at + HOURS_AFTER
        later = events.decisions(task_key)
        later = later[(events.time[later] >= snapshot_at) & (events.time[later] < horizon)]
        task = self._task(task_key)
        words = Kind(task["kind"]).words
        done = words.happened or words.done
        sentences = [self._first_decision(events, later, snapshot_at, str(task["name"]), done)]
        if len(later) and events.time[later[0]] >= snapshot_at + WINDOW:
            sentences.append("Nothing within the 24 h in question.")
        for event, ended in ((EventKind.DISCHARGE, "Discharged"), (EventKind.DEATH, "Died")):
            ends = events.time[events.of_kind([event])]
            ends = ends[(ends >= snapshot_at) & (ends < horizon)]
            if len(ends):
                sentences.append(f"{ended} {_hours(ends[0] - snapshot_at)} after {self.at(snapshot_at):%H:%M}.")
        return tuple(sentences)

    def hours_to_decision(self, row_index: int, task_key: str) -> float | None:
        """Hours from the snapshot to the first such decision in its 24 h window, None when there was none."""
        snapshot_at = self._snapshot_at(row_index)
        events = self._events(row_index)
        times = events.time[events.decisions(task_key)]
        within = times[(times >= snapshot_at) & (times < snapshot_at + WINDOW)]
        return float((within.min() - snapshot_at) / HOUR) if len(within) else None

    def _first_decision(
        self, events: PatientEvents, later: Rows, snapshot_at: np.datetime64, name: str, done: str
    ) -> str:
        start = self.at(snapshot_at).strftime("%H:%M")
        if not len(later):
            return f"{name} was not {done} in the {RECORD_HOURS_AFTER} h after {start}."
        first = later[0]
        value = events.value[first]
        words = "" if np.isnan(value) else f" ({value:g} {events.unit[first]})".replace(" )", ")")
        when = self.at(events.time[first]).strftime("%d %b at %H:%M")
        return f"{name} was {done} {_hours(events.time[first] - snapshot_at)} after {start}, on {when}{words}."

    def _labs(self, events: PatientEvents, recent: npt.NDArray[np.bool_], wanted: list[str]) -> tuple[TimelineLab, ...]:
        rows = np.flatnonzero(recent & events.of_kind([EventKind.LAB_RESULT]) & ~np.isnan(events.value))
        # Related labs first; then those that moved most often, so that an empty lane never wastes the space.
        names = _shown_names(events.name[rows], wanted, N_LABS_SHOWN)
        return tuple(self._lab(events, name, rows[events.name[rows] == name]) for name in names)

    def _lab(self, events: PatientEvents, name: str, rows: Rows) -> TimelineLab:
        band = self._bands.get(name)
        return TimelineLab(
            name=name,
            unit=str(events.unit[rows[-1]]),
            times=self._all_at(events.time[rows]),
            values=tuple(events.value[rows].tolist()),
            low=band.low if band else None,
            high=band.high if band else None,
        )

    def _drugs(
        self,
        events: PatientEvents,
        recent: npt.NDArray[np.bool_],
        snapshot_at: np.datetime64,
        wanted: list[str],
    ) -> tuple[TimelineDrug, ...]:
        rows = np.flatnonzero(recent & events.of_kind(Kind.MEDICATION.events))
        is_stop = events.of_kind([EventKind.MEDICATION_STOP])
        drugs = []
        for name in _shown_names(events.name[rows], wanted, N_DRUGS_SHOWN):
            own = rows[events.name[rows] == name]
            starts, stops = np.unique(events.time[own[~is_stop[own]]]), np.unique(events.time[own[is_stop[own]]])
            drugs.append(TimelineDrug(name=name, periods=self._periods(starts, stops, snapshot_at)))
        return tuple(drugs)

    def _periods(
        self, starts: Times, stops: Times, snapshot_at: np.datetime64
    ) -> tuple[tuple[datetime, datetime], ...]:
        """Join orders with the stop that follows; what has no stop is a single dose."""
        following = np.searchsorted(stops, starts, side="right")
        periods: list[tuple[np.datetime64, np.datetime64]] = []
        for start, place in zip(starts, following, strict=True):
            end = min(stops[place] if place < len(stops) else start + SINGLE_DOSE, snapshot_at)
            if periods and start <= periods[-1][1]:
                periods[-1] = (periods[-1][0], max(end, periods[-1][1]))
            else:
                periods.append((start, end))
        return tuple((self.at(start), self.at(end)) for start, end in periods)

    def _flag(self, name: str, value: float) -> str:
        band = self._bands.get(name)
        if band is None:
            return ""
        return "high" if value > band.high else "low" if value < band.low else ""

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

    def _snapshot_at(self, row_index: int) -> np.datetime64:
        moment: np.datetime64 = np.datetime64(self.snapshot.instances["snapshot_at"].iat[row_index]).astype("M8[us]")
        return moment

    def _events(self, row_index: int) -> PatientEvents:
        patient_id = self.snapshot.instances["patient_id"].iat[row_index]
        return self._events_cache.get(patient_id, lambda: patient_events(self.snapshot.events_of(patient_id)))

    def _instance(self, row_index: int) -> dict[str, Any]:
        return dict(self.snapshot.instances.iloc[row_index])

    def _admitted_at(self, instance: dict[str, Any]) -> pd.Timestamp:
        stays = self.snapshot.stays
        return stays.loc[(stays["stay_id"] == instance["stay_id"]).to_numpy(), "admitted_at"].iloc[0]

    def _task(self, task_key: str) -> dict[str, Any]:
        tasks = self.snapshot.tasks
        return dict(tasks.iloc[int(np.flatnonzero((tasks["task_key"] == task_key).to_numpy())[0])])


def _shown_names(names: npt.NDArray[np.object_], wanted: list[str], most: int) -> list[str]:
    """Names that are there: wanted ones first, then the most frequent."""
    present = Counter(names.tolist())
    first = [name for name in dict.fromkeys(wanted) if name in present]
    return [*first, *(name for name, _ in present.most_common() if name not in first)][:most]


def _hours(span: np.timedelta64) -> str:
    return f"{span / HOUR:.0f} h"


class PatientViews(Protocol):
    """The patients of one import; `row_index` is the row of an instance in that import's arrays."""

    def timeline(self, row_index: int, task_key: str) -> Timeline:
        """Return what was known at the snapshot, and the decision in question."""
        ...

    def last_values(self, row_index: int) -> tuple[LastValue, ...]:
        """Return the last result of each lab before the snapshot."""
        ...


OpenPatientViews: TypeAlias = Callable[[str], PatientViews]
"""Returns the patients of the import with this content hash.

A study stays with the import that its cases were chosen from; the same row of a later import is another patient.
"""
