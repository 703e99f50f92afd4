"""One patient at one snapshot as pages show it: time line, last values, and what the record shows afterwards."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
from scipy import sparse

from alertreview.read_models import LastValue, Timeline, TimelineDrug, TimelineLab
from alertreview.snapshots import Snapshot
from core.events import MEDICATION_KINDS, EventKind, decision_events, of_kind
from core.vocabulary import Kind

WINDOW = pd.Timedelta(hours=24)
TIMELINE_HOURS_BACK = 72
RECORD_HOURS_AFTER = 72
N_LABS_SHOWN = 4
N_DRUGS_SHOWN = 4
N_LAST_VALUES = 12
# An order without an end is drawn this long: a given dose is a mark, not a course.
SINGLE_DOSE = pd.Timedelta(hours=2)
CENTRAL_SHARE = 0.90


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

    def at(self, moment: pd.Timestamp | np.datetime64) -> datetime:
        """Give a site time its zone."""
        naive: datetime = pd.Timestamp(moment).to_pydatetime(warn=False)
        return naive.replace(tzinfo=self._zone)

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
        instance = self._instance(row_index)
        snapshot_at = instance["snapshot_at"]
        events = self.snapshot.events_of(instance["patient_id"])
        known = events[(events["known_at"] < snapshot_at).to_numpy()]
        recent = known[(known["time"] >= snapshot_at - pd.Timedelta(hours=TIMELINE_HOURS_BACK)).to_numpy()]
        orders = decision_events(events, task_key)["time"].drop_duplicates().sort_values()
        before = orders[(orders < snapshot_at) & (orders >= snapshot_at - pd.Timedelta(hours=TIMELINE_HOURS_BACK))]
        within = orders[(orders >= snapshot_at) & (orders < snapshot_at + WINDOW)]
        wanted = [self.task_name(task_key), *related]
        return Timeline(
            snapshot_at=self.at(snapshot_at),
            window_end=self.at(snapshot_at + WINDOW),
            decision_name=self.task_name(task_key),
            past_orders=tuple(map(self.at, before)),
            orders_in_window=tuple(map(self.at, within)),
            labs=self._labs(recent, wanted),
            drugs=self._drugs(recent, snapshot_at, wanted),
        )

    def last_values(self, row_index: int) -> tuple[LastValue, ...]:
        """List the last result of each lab of the stay known at the snapshot, unusual and recent ones first."""
        instance = self._instance(row_index)
        snapshot_at = instance["snapshot_at"]
        events = self.snapshot.events_of(instance["patient_id"])
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
        instance = self._instance(row_index)
        snapshot_at = instance["snapshot_at"]
        events = self.snapshot.events_of(instance["patient_id"])
        horizon = snapshot_at + pd.Timedelta(hours=RECORD_HOURS_AFTER)
        later = decision_events(events, task_key)
        later = later[((later["time"] >= snapshot_at) & (later["time"] < horizon)).to_numpy()]
        task = self._task(task_key)
        done = "ordered" if task["kind"] == Kind.LAB_ORDER else "started or given"
        sentences = [self._first_decision(later, snapshot_at, str(task["name"]), done)]
        if not later.empty and later["time"].iloc[0] >= snapshot_at + WINDOW:
            sentences.append("Nothing within the 24 h in question.")
        for kind, words in ((EventKind.DISCHARGE, "Discharged"), (EventKind.DEATH, "Died")):
            ends = events.loc[of_kind(events, [kind]), "time"]
            ends = ends[(ends >= snapshot_at) & (ends < horizon)]
            if not ends.empty:
                sentences.append(f"{words} {_hours(ends.iloc[0] - snapshot_at)} after 08:00.")
        return tuple(sentences)

    def hours_to_decision(self, row_index: int, task_key: str) -> float | None:
        """Hours from the snapshot to the first such decision in its 24 h window, None when there was none."""
        instance = self._instance(row_index)
        times = decision_events(self.snapshot.events_of(instance["patient_id"]), task_key)["time"]
        within = times[(times >= instance["snapshot_at"]) & (times < instance["snapshot_at"] + WINDOW)]
        return None if within.empty else float((within.min() - instance["snapshot_at"]) / pd.Timedelta(hours=1))

    def _first_decision(self, later: pd.DataFrame, snapshot_at: pd.Timestamp, name: str, done: str) -> str:
        if later.empty:
            return f"{name} was not {done} in the {RECORD_HOURS_AFTER} h after 08:00."
        first = later.iloc[0]
        value = "" if pd.isna(first["value"]) else f" ({first['value']:g} {first['unit']})".replace(" )", ")")
        when = self.at(first["time"]).strftime("%d %b at %H:%M")
        return f"{name} was {done} {_hours(first['time'] - snapshot_at)} after 08:00, on {when}{value}."

    def _labs(self, recent: pd.DataFrame, wanted: list[str]) -> tuple[TimelineLab, ...]:
        is_result = of_kind(recent, [EventKind.LAB_RESULT]) & recent["value"].notna().to_numpy()
        results = recent[is_result]
        present = results["name"].astype(str).value_counts()
        # Related labs first; then those that moved most often, so that an empty lane never wastes the space.
        names = [name for name in dict.fromkeys(wanted) if name in present]
        names += [name for name in present.index if name not in names]
        return tuple(self._lab(name, results[(results["name"] == name).to_numpy()]) for name in names[:N_LABS_SHOWN])

    def _lab(self, name: str, results: pd.DataFrame) -> TimelineLab:
        band = self._bands.get(name)
        return TimelineLab(
            name=name,
            unit=str(results["unit"].iloc[-1]),
            times=tuple(map(self.at, results["time"])),
            values=tuple(map(float, results["value"])),
            low=band.low if band else None,
            high=band.high if band else None,
        )

    def _drugs(self, recent: pd.DataFrame, snapshot_at: pd.Timestamp, wanted: list[str]) -> tuple[TimelineDrug, ...]:
        drugs = recent[of_kind(recent, MEDICATION_KINDS)]
        present = drugs["name"].astype(str).value_counts()
        names = [name for name in dict.fromkeys(wanted) if name in present]
        names += [name for name in present.index if name not in names]
        return tuple(
            TimelineDrug(name=name, periods=self._periods(drugs[(drugs["name"] == name).to_numpy()], snapshot_at))
            for name in names[:N_DRUGS_SHOWN]
        )

    def _periods(self, events: pd.DataFrame, snapshot_at: pd.Timestamp) -> tuple[tuple[datetime, datetime], ...]:
        """Join orders with the stop that follows; what has no stop is a single dose."""
        stops = events.loc[of_kind(events, [EventKind.MEDICATION_STOP]), "time"]
        starts = events.loc[~of_kind(events, [EventKind.MEDICATION_STOP]), "time"].drop_duplicates()
        periods: list[tuple[pd.Timestamp, pd.Timestamp]] = []
        for start in starts:
            following = stops[stops > start]
            end = min(following.iloc[0] if len(following) else start + SINGLE_DOSE, snapshot_at)
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

    def _instance(self, row_index: int) -> dict[str, Any]:
        return dict(self.snapshot.instances.iloc[row_index])

    def _admitted_at(self, instance: dict[str, Any]) -> pd.Timestamp:
        stays = self.snapshot.stays
        return stays.loc[(stays["stay_id"] == instance["stay_id"]).to_numpy(), "admitted_at"].iloc[0]

    def _task(self, task_key: str) -> dict[str, Any]:
        tasks = self.snapshot.tasks
        return dict(tasks.iloc[int(np.flatnonzero((tasks["task_key"] == task_key).to_numpy())[0])])


def _hours(span: pd.Timedelta) -> str:
    return f"{span / pd.Timedelta(hours=1):.0f} h"
