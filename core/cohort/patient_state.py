"""The state of a patient at each snapshot: sparse features from everything known strictly before it.

An event counts as known when both its own time and the time at which it could be known lie before the snapshot; what
happens at the very snapshot belongs to the decision window, which begins there. Values of one stay are those known from
24 h before admission on; "ever", "last value" and "hours since last" look at the patient's whole past.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from core.cohort.feature_layout import (
    ADMISSION,
    PENDING_HOURS,
    RECENT_HOURS,
    UNIT,
    Entries,
    Layout,
    block_name,
    category_group,
)
from core.cohort.instance_blocks import HOUR, Block, ItemSeries, blocks, whole_block, with_ends
from core.cohort.reference_bands import BandCollector, ReferenceBands
from core.events.mapping import Category
from core.events.series import SeriesSet, range_statistics
from core.events.stream import of_kind, seconds
from core.kinds import EventKind, FeatureGroup, Kind

IntArray = npt.NDArray[np.int64]
_NEVER = np.iinfo(np.int64).min


@dataclass(frozen=True)
class PatientState:
    """Features of the instances of some patients.

    Parameters
    ----------
    features : csr_matrix of shape (n_instances, n_columns), float32
        One column for every feature that the layout knows; explicit zeros are values; a missing entry is "not
        measured", or a flag that is 0.
    unit : array of str, shape (n_instances,)
        Care unit at the snapshot, "" when unknown.
    """

    features: sparse.csr_matrix
    unit: npt.NDArray[np.object_]


@dataclass(frozen=True)
class Background:
    """What is known of all patients when the features of some are computed.

    Parameters
    ----------
    layout : Layout
    bands : BandCollector
        Complete.
    kinds : frozenset of EventKind
        Kinds of events that the source has anywhere: where it never tells when drugs stop or are given, a drug counts
        as on, or as given, for a day after each start.
    members : mapping from Kind to array of bool, shape (n_categories, n_items)
        Members of the categories of each kind of decision.
    """

    layout: Layout
    bands: BandCollector
    kinds: frozenset[EventKind]
    members: Mapping[Kind, npt.NDArray[np.bool_]]


def members(items: Sequence[str], categories: Sequence[Category]) -> dict[Kind, npt.NDArray[np.bool_]]:
    """Find the members of every category; a category has none among the items of another kind of decision.

    Returns
    -------
    dict from Kind to array of bool, shape (n_categories, n_items)
    """
    out = {kind: np.zeros((len(categories), len(items)), dtype=bool) for kind in Kind}
    for i, category in enumerate(categories):
        patterns = [re.compile(pattern) for pattern in category.items]
        kind = next(kind for kind in Kind if kind.words.item == category.kind)
        out[kind][i] = [any(pattern.fullmatch(item) for pattern in patterns) for item in items]
    return out


def patient_state(
    events: pd.DataFrame, stays: pd.DataFrame, instances: pd.DataFrame, background: Background
) -> PatientState:
    """Compute the features of the instances of some patients.

    Parameters
    ----------
    events : DataFrame
        All events of these patients, as a part of `core.events.parts.EventStream`.
    stays, instances : DataFrame
        Theirs, as in `core.cohort.cohort.Cohort`, with ``stay_id`` = row of `stays`; instances sorted by patient and
        snapshot; ``unit`` is not read.
    background : Background

    Returns
    -------
    PatientState
    """
    entries = Entries(background.layout)
    whole = with_ends(whole_block(events, stays, instances), events, stays, background.kinds)
    features = _KindFeatures(background, background.bands.bands(events, whole), entries)
    for block in blocks(whole):
        for kind in Kind:
            for group in kind.record.features:
                features.add(block, kind, group, block_name(kind, group))
            if len(background.members[kind]):
                group = category_group(kind)
                of_members = block.only(*kind.events, *kind.record.also).regrouped(background.members[kind])
                features.add(of_members, kind, group, block_name(kind, group, of_categories=True))
    unit = _add_stay(events, whole, stays, instances, entries)
    return PatientState(entries.matrix(len(instances)), unit)


class _KindFeatures:
    """Features of the items of each kind of decision, group by group."""

    def __init__(self, background: Background, bands: ReferenceBands, entries: Entries) -> None:
        self._kinds = background.kinds
        self._bands = bands
        self._entries = entries

    def add(self, block: Block, kind: Kind, group: FeatureGroup, name: str) -> None:
        """Add a group of features to the columns of a name."""
        if group == "value":
            self._add_values(block.only(kind.record.done, *kind.record.also), name)
        elif group == "result":
            self._add_counts(block.only(kind.record.done, *kind.record.also), name)
        elif group == "pending":
            self._add_pending(block, kind, name)
        else:
            self._add_course(block, kind, name)

    def _add_counts(self, results: Block, name: str) -> None:
        """Add when and how often results came."""
        pairs, entries = ItemSeries(results), self._entries
        events = pairs.sorted_by(results.known_at, np.ones(len(results.item), dtype=bool))
        end = events.before(pairs.series, pairs.snapshot)
        begun = end > events.start(pairs.series)
        series, snapshot, end = pairs.series[begun], pairs.snapshot[begun], end[begun]
        row, item = pairs.row[begun], pairs.item[begun]
        happened = results.time[events.order]
        n_recent = end - events.before(series, snapshot - RECENT_HOURS * HOUR)
        entries.value(name, "hours_since_last", row, item, (snapshot - happened[end - 1]) / HOUR)
        entries.flag(name, "count_24h", row, item, n_recent)
        entries.flag(name, "count_stay", row, item, end - events.before(series, pairs.from_time[begun]))
        entries.flag(name, "measured_24h", row, item, n_recent > 0)
        entries.flag(name, "ever", row, item, np.ones(len(row)))

    def _add_values(self, results: Block, name: str) -> None:
        """Add last values, changes, trends, figures of the stay, and flags against the reference band."""
        pairs, entries = ItemSeries(results), self._entries
        numeric = np.isfinite(results.value)
        events = pairs.sorted_by(results.known_at, numeric)
        value, time = results.value[numeric][events.order], results.time[numeric][events.order]
        end, first = events.before(pairs.series, pairs.snapshot), events.start(pairs.series)
        begun = end > first
        series, snapshot, end, first = pairs.series[begun], pairs.snapshot[begun], end[begun], first[begun]
        row, item = pairs.row[begun], pairs.item[begun]
        last, before_last = end - 1, np.maximum(end - 2, first)
        twice = end - first >= 2
        entries.value(name, "last_value", row, item, value[last])
        entries.value(name, "change", row, item, np.where(twice, value[last] - value[before_last], np.nan))
        hours = (time[last] - time[before_last]) / HOUR
        entries.value(name, "hours_between", row, item, np.where(twice, hours, np.nan))
        recent = range_statistics(value, time, events.before(series, snapshot - RECENT_HOURS * HOUR), end)
        entries.value(name, "slope_24h", row, item, recent.slope)
        stay = range_statistics(value, time, events.before(series, pairs.from_time[begun]), end)
        entries.value(name, "slope_stay", row, item, stay.slope)
        entries.value(name, "min_stay", row, item, stay.minimum)
        entries.value(name, "max_stay", row, item, stay.maximum)
        entries.value(name, "mean_stay", row, item, stay.mean)
        entries.value(name, "first_stay", row, item, stay.first)
        entries.value(name, "change_from_first", row, item, np.where(stay.n >= 2, value[last] - stay.first, np.nan))
        cell = self._bands.cell_of_instance[row]
        entries.flag(name, "is_high", row, item, value[last] > self._bands.high[cell, item])
        entries.flag(name, "is_low", row, item, value[last] < self._bands.low[cell, item])

    def _add_pending(self, block: Block, kind: Kind, name: str) -> None:
        """Add a flag where something was ordered or taken and its result is not known yet."""
        asked_or_done = block.only(kind.record.order, kind.record.done)
        pairs = ItemSeries(asked_or_done)
        is_result = asked_or_done.kind == kind.record.done.number
        known = pairs.sorted_by(asked_or_done.known_at, is_result)
        taken = pairs.sorted_by(asked_or_done.time, is_result)
        asked = pairs.sorted_by(asked_or_done.time, ~is_result)
        since = pairs.snapshot - PENDING_HOURS * HOUR
        n_known = known.before(pairs.series, pairs.snapshot) - known.start(pairs.series)
        last_known = _last(known.time, known.before(pairs.series, pairs.snapshot), n_known > 0)
        end = asked.before(pairs.series, pairs.snapshot)
        last_asked = _last(asked.time, end, end > asked.start(pairs.series))
        unanswered = (last_asked >= since) & (last_asked > last_known)
        end = taken.before(pairs.series, pairs.snapshot)
        last_taken = _last(taken.time, end, end > taken.start(pairs.series))
        on_its_way = (end - taken.start(pairs.series) > n_known) & (last_taken >= since)
        self._entries.flag(name, "pending", pairs.row, pairs.item, unanswered | on_its_way)

    def _add_course(self, block: Block, kind: Kind, name: str) -> None:
        """Add what is on now, when it began and when it was given last."""
        drugs = block.only(*kind.events)
        record, entries = kind.record, self._entries
        pairs = ItemSeries(drugs)
        starts = pairs.sorted_by(drugs.known_at, drugs.kind == record.order.number)
        ends = pairs.sorted_by(drugs.until, drugs.kind == record.order.number)
        given = pairs.sorted_by(drugs.known_at, drugs.kind == record.done.number)
        series, snapshot, recent = pairs.series, pairs.snapshot, pairs.snapshot - RECENT_HOURS * HOUR
        n_before = {each: each.before(series, snapshot) for each in (starts, ends, given)}
        in_stay = {each: n_before[each] - each.before(series, pairs.from_time) for each in (starts, given)}
        last_start = _last(starts.time, n_before[starts], n_before[starts] > starts.start(series))
        last_given = _last(given.time, n_before[given], n_before[given] > given.start(series))
        last_any = np.maximum(last_start, last_given)
        ever = last_any > _NEVER
        was_given = (last_given if record.done in self._kinds else last_any) >= recent
        # As many orders go on as began before the snapshot and did not end before it.
        on_order = n_before[starts] > n_before[ends]
        first_given = given.before(series, pairs.from_time)
        first_time = given.time[np.minimum(first_given, len(given.time) - 1)] if len(given.time) else last_start
        start = np.where(last_start > _NEVER, last_start, np.where(in_stay[given] > 0, first_time, -1))
        has_start = (last_start > _NEVER) | (in_stay[given] > 0)
        hours_since_start = np.where(has_start, (snapshot - start) / HOUR, np.nan)
        hours_since_last = np.where(ever, (snapshot - np.where(ever, last_any, snapshot)) / HOUR, np.nan)
        n_starts = np.where(in_stay[starts] > 0, in_stay[starts], in_stay[given])
        row, item = pairs.row, pairs.item
        entries.flag(name, "on_now", row, item, on_order | (last_given >= recent))
        entries.flag(name, "given_24h", row, item, was_given)
        entries.value(name, "hours_since_start", row, item, hours_since_start)
        entries.value(name, "hours_since_last", row, item, hours_since_last)
        entries.flag(name, "count_starts", row, item, n_starts)
        entries.flag(name, "ever", row, item, ever)


def _last(time: IntArray, end: IntArray, exists: npt.NDArray[np.bool_]) -> IntArray:
    """Return the time of the event before position `end`, `_NEVER` where there is none."""
    if not len(time):
        return np.full(len(end), _NEVER)
    return np.where(exists, time[np.maximum(end - 1, 0)], _NEVER)


def _add_stay(
    events: pd.DataFrame, whole: Block, stays: pd.DataFrame, instances: pd.DataFrame, entries: Entries
) -> npt.NDArray[np.object_]:
    """Add demographics, the stay's clock, earlier stays and kind of admission; return the care unit at the snapshot."""
    rows = whole.row
    stay = instances["stay_id"].to_numpy()
    admitted = seconds(stays["admitted_at"])
    sex = instances["sex"].to_numpy(dtype=object)
    entries.value("stay", "age_years", rows, 0, instances["age_years"].to_numpy(dtype=np.float64))
    entries.flag("stay", "is_female", rows, 0, sex == "F")
    entries.flag("stay", "is_male", rows, 0, sex == "M")
    entries.value("stay", "hours_since_admission", rows, 0, (whole.snapshot - admitted[stay]) / HOUR)
    entries.value("stay", "day_of_stay", rows, 0, instances["day_of_stay"].to_numpy(dtype=np.float64))
    n_previous, last_end = _earlier_stays(stays)
    entries.flag("stay", "previous_stays", rows, 0, n_previous[stay])
    hours = np.where(n_previous > 0, (admitted - last_end) / HOUR, np.nan)
    entries.value("stay", "hours_since_discharge", rows, 0, hours[stay])
    _add_admission(events, whole, stays, stay, entries)
    return _add_unit(events, whole, entries)


def _earlier_stays(stays: pd.DataFrame) -> tuple[IntArray, IntArray]:
    """Return, by stay, how many of the patient's stays had ended by its admission, and when the last of them did."""
    patient = pd.factorize(stays["patient_id"])[0].astype(np.int64)
    closed = stays["discharged_at"].notna().to_numpy()
    ends = SeriesSet(patient[closed], seconds(stays["discharged_at"])[closed], int(patient.max(initial=-1)) + 1)
    admitted = seconds(stays["admitted_at"])
    # A stay that ends in the minute of the next admission has ended: strictly before the following second.
    end = ends.before(patient, admitted + 1)
    n = end - ends.start(patient)
    own = closed & (seconds(stays["discharged_at"]) == admitted)
    n = np.maximum(n - own, 0)
    return n, ends.time[np.maximum(end - 1 - own, 0)] if len(ends.time) else admitted


def _add_admission(events: pd.DataFrame, whole: Block, stays: pd.DataFrame, stay: IntArray, entries: Entries) -> None:
    rows = events[of_kind(events, [EventKind.ADMISSION]) & (events["item"] != "").to_numpy()]
    kinds = pd.DataFrame(
        {"patient_id": rows["patient_id"].astype("str"), "admitted_at": rows["time"], "code": rows["item"].cat.codes}
    ).drop_duplicates(["patient_id", "admitted_at"])
    code = stays.merge(kinds, on=["patient_id", "admitted_at"], how="left")["code"].fillna(-1).to_numpy(np.int64)
    of_row = code[stay]
    known = of_row >= 0
    entries.flag(ADMISSION, "", whole.row[known], of_row[known], np.ones(int(known.sum())))


def _add_unit(events: pd.DataFrame, whole: Block, entries: Entries) -> npt.NDArray[np.object_]:
    arrivals = whole.only(EventKind.UNIT)
    n_patients = int(whole.instance_patient.max(initial=-1)) + 1
    keep = arrivals.patient < n_patients
    units = SeriesSet(arrivals.patient[keep], arrivals.known_at[keep], n_patients)
    end = units.before(whole.instance_patient, whole.snapshot)
    here = end > units.before(whole.instance_patient, whole.from_time)
    item = arrivals.item[keep][units.order]
    code = item[end[here] - 1]
    entries.flag(UNIT, "", whole.row[here], code, np.ones(int(here.sum())))
    entries.value(
        "stay", "hours_on_unit", whole.row[here], 0, (whole.snapshot[here] - units.time[end[here] - 1]) / HOUR
    )
    names = np.array([str(each) for each in events["item"].cat.categories], dtype=object)
    unit = np.full(len(whole.row), "", dtype=object)
    unit[here] = names[code]
    return unit
