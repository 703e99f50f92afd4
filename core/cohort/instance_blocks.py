"""Events and instances of a part as numbers."""

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.cohort.feature_layout import LOOK_BACK_HOURS, RECENT_HOURS
from core.events.orders import stops_of
from core.events.series import SeriesSet, numbered
from core.events.stream import among, seconds
from core.kinds import EventKind, Kind

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

HOUR = 3600
NO_END = np.iinfo(np.int64).max // 4


@dataclass(frozen=True)
class Block:
    """Events and instances of some patients, both sorted by patient: of shape (n_events,) and (n_instances,)."""

    # Numbers of patient and item, places in `EventKind`, and seconds.
    patient: IntArray
    item: IntArray
    kind: npt.NDArray[np.int8]
    time: IntArray
    known_at: IntArray
    value: FloatArray
    until: IntArray  # when an order ends; `NO_END` for other events, and while nothing is known of an end
    # Patient number; seconds of the snapshot and of what belongs to the stay.
    instance_patient: IntArray
    snapshot: IntArray
    from_time: IntArray

    def only(self, *kinds: EventKind) -> "Block":
        """Keep the events of some kinds."""
        return self.where(np.flatnonzero(among(self.kind, kinds)))

    def where(self, keep: npt.NDArray[np.bool_] | IntArray) -> "Block":
        """Keep some events."""
        return replace(self, **{name: getattr(self, name)[keep] for name in _OF_EVENTS})


_OF_EVENTS = ("patient", "item", "kind", "time", "known_at", "value", "until")


def whole_block(events: pd.DataFrame, stays: pd.DataFrame, instances: pd.DataFrame) -> Block:
    """Turn an event stream and its instances into numbers."""
    patients = events["patient_id"].cat.categories
    admitted = seconds(stays["admitted_at"])[instances["stay_id"].to_numpy()]
    time = seconds(events["time"])
    return Block(
        patient=events["patient_id"].cat.codes.to_numpy().astype(np.int64),
        item=events["item"].cat.codes.to_numpy().astype(np.int64),
        kind=events["kind"].cat.codes.to_numpy(),
        time=time,
        known_at=np.maximum(seconds(events["known_at"]), time),
        value=events["value"].to_numpy(copy=True),
        until=np.full(len(events), NO_END),
        instance_patient=patients.get_indexer(instances["patient_id"]).astype(np.int64),
        snapshot=seconds(instances["snapshot_at"]),
        from_time=admitted - LOOK_BACK_HOURS * HOUR,
    )


def regrouped(block: Block, members: npt.NDArray[np.bool_]) -> Block:
    """Let items be numbers of categories; an event is there once for each category that its item is a member of.

    `members` has shape (n_categories, n_items).
    """
    category, row = np.nonzero(members[:, block.item])
    order = np.argsort(block.patient[row], kind="stable")
    return replace(block.where(row[order]), item=category[order])


def with_ends(whole: Block, events: pd.DataFrame, stays: pd.DataFrame, kinds: Collection[EventKind]) -> Block:
    """Return the events with the ends of orders; `kinds` are those that the source has anywhere.

    An order ends with its stop. One without a stop lapses at the end of the stay in which it began, or after a day
    outside of stays. Where a source has no stops at all, every order ends after a day.
    """
    until = whole.until.copy()
    in_stay = _Stays(events, stays)
    for kind in (each for each in Kind if "course" in each.record.features):
        starts = whole.kind == kind.record.order.number
        until[starts] = whole.known_at[starts] + RECENT_HOURS * HOUR
        if kind.record.stop is None or kind.record.stop not in kinds:
            continue
        rows = np.flatnonzero(starts | (whole.kind == kind.record.stop.number))
        who, time, begins = whole.patient[rows], whole.known_at[rows], starts[rows]
        series = (who << np.int64(32)) | whole.item[rows]
        stop = stops_of(series, time, begins)
        _, number = np.unique(series, return_inverse=True)
        unsure = np.bincount(number[begins & (stop < 0)], minlength=int(number.max(initial=-1)) + 1)[number] > 0
        if unsure.any():
            # Some stop is missing: those of another stay end nothing here.
            mine = np.flatnonzero(unsure)
            episode = in_stay.n_ended(who[mine], time[mine])
            found = stops_of(numbered(number[mine], episode), time[mine], begins[mine])
            stop[mine] = np.where(found >= 0, mine[np.maximum(found, 0)], -1)
        ended = begins & (stop >= 0)
        until[rows[ended]] = time[stop[ended]]
        lapsed = begins & (stop < 0)
        until[rows[lapsed]] = in_stay.end_of(who[lapsed], time[lapsed], until[rows[lapsed]])
    return replace(whole, until=until)


class _Stays:
    """When the stays of patients end."""

    def __init__(self, events: pd.DataFrame, stays: pd.DataFrame) -> None:
        patients = events["patient_id"].cat.categories
        who = patients.get_indexer(stays["patient_id"]).astype(np.int64)
        self._admitted = SeriesSet(who, seconds(stays["admitted_at"]) - LOOK_BACK_HOURS * HOUR, len(patients))
        end = np.where(stays["discharged_at"].isna(), NO_END, seconds(stays["discharged_at"]))
        self._end = end[self._admitted.order]
        closed = stays["discharged_at"].notna().to_numpy()
        self._ended = SeriesSet(who[closed], end[closed], len(patients))

    def n_ended(self, patient: IntArray, time: IntArray) -> IntArray:
        """Count the stays of the patient that ended before a time."""
        return self._ended.before(patient, time) - self._ended.start(patient)

    def end_of(self, patient: IntArray, time: IntArray, otherwise: IntArray) -> IntArray:
        """Return the end of the stay that a time belongs to, or something else outside of stays."""
        place = self._admitted.before(patient, time + 1) - 1
        exists = place >= self._admitted.start(patient)
        if not len(self._end):
            return otherwise
        end = self._end[np.maximum(place, 0)]
        return np.where(exists & (time < end), end, otherwise)
