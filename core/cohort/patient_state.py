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
    GROUPS,
    PENDING_HOURS,
    RECENT_HOURS,
    UNIT,
    Entries,
    Layout,
    block_name,
    category_group,
)
from core.cohort.feature_loops import (
    DONE,
    ORDER,
    course_features,
    n_pairs,
    pending_features,
    result_features,
    series_rows,
    value_features,
)
from core.cohort.instance_blocks import HOUR, Block, regrouped, whole_block, with_ends
from core.cohort.reference_bands import BandCollector, ReferenceBands
from core.events.mapping import Category
from core.events.series import SeriesSet
from core.events.stream import of_kind, seconds
from core.kinds import EventKind, FeatureGroup, Kind

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PatientState:
    """Features of the instances of some patients."""

    # Shape (n_instances, n_columns): one column for every feature that the layout knows; explicit zeros are values; a
    # missing entry is "not measured", or a flag that is 0.
    features: sparse.csr_matrix
    unit: npt.NDArray[np.object_]  # shape (n_instances,): care unit at the snapshot, "" when unknown


@dataclass(frozen=True)
class Background:
    """What is known of all patients when the features of some are computed."""

    layout: Layout
    bands: BandCollector  # complete
    # Kinds of events that the source has anywhere: where it never tells when drugs stop or are given, a drug counts as
    # on, or as given, for a day after each start.
    kinds: frozenset[EventKind]
    # Shape (n_categories, n_items): members of the categories of each kind of decision.
    members: Mapping[Kind, npt.NDArray[np.bool_]]


def members(items: Sequence[str], categories: Sequence[Category]) -> dict[Kind, npt.NDArray[np.bool_]]:
    """Find the members of every category, of shape (n_categories, n_items), by kind of decision.

    A category has none among the items of another kind.
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
    """Compute the features of the instances of some patients from all their events, a part of the stream.

    Stays and instances are theirs, as in `core.cohort.cohort.Cohort`, with ``stay_id`` = row of `stays`; instances are
    sorted by patient and snapshot; ``unit`` is not read.
    """
    entries = Entries(background.layout)
    whole = with_ends(whole_block(events, stays, instances), events, stays, background.kinds)
    features = _KindFeatures(background, background.bands.bands(events, whole), whole, entries)
    for kind in Kind:
        for group in kind.record.features:
            features.add(kind, group)
        if len(background.members[kind]):
            features.add(kind, category_group(kind), background.members[kind])
    unit = _add_stay(events, whole, stays, instances, entries)
    return PatientState(entries.matrix(len(instances)), unit)


class _KindFeatures:
    """Features of the items of each kind of decision, group by group."""

    def __init__(self, background: Background, bands: ReferenceBands, whole: Block, entries: Entries) -> None:
        self._kinds, self._n_items = background.kinds, bands.low.shape[1]
        self._bands = (bands.low, bands.high, bands.cell_of_instance)
        self._whole, self._entries = whole, entries
        n_patients = int(max(whole.patient.max(initial=-1), whole.instance_patient.max(initial=-1))) + 1
        self._first = np.searchsorted(whole.instance_patient, np.arange(n_patients + 1))
        self._instances = (self._first, whole.snapshot, whole.from_time)

    def add(self, kind: Kind, group: FeatureGroup, members: npt.NDArray[np.bool_] | None = None) -> None:
        """Add a group of features of each item, or of each category of items, where `members` are given."""
        record, roles = kind.record, np.zeros(len(EventKind), dtype=np.int8)
        roles[record.done.number] = DONE
        if group in ("value", "result"):
            roles[[each.number for each in record.also]] = DONE
        else:
            roles[record.order.number] = ORDER
        block, n_items = self._whole, self._n_items
        if members is not None:
            block, n_items = regrouped(block.where(roles[block.kind] > 0), members), len(members)
        role, events = roles[block.kind], (block.patient, block.item, block.known_at, block.time)
        rows, starts = series_rows(block.patient, block.item, role, n_items)
        n = n_pairs(rows, starts, block.patient, self._first)
        number, out = np.empty((2, n), dtype=np.int32), np.empty((len(GROUPS[group]), n), dtype=np.float32)
        recent, within = RECENT_HOURS * HOUR, PENDING_HOURS * HOUR
        if group == "value":
            n = value_features(
                rows, starts, events, role, block.value, self._instances, recent, self._bands, number, out
            )
        elif group == "result":
            n = result_features(rows, starts, events, role, self._instances, recent, number, out)
        elif group == "pending":
            n = pending_features(rows, starts, events, role, self._instances, within, number, out)
        else:
            tells_given = record.done in self._kinds
            n = course_features(
                rows, starts, events, role, block.until, self._instances, recent, tells_given, number, out
            )
        name = block_name(kind, group, of_categories=members is not None)
        for each, values in zip(GROUPS[group], out, strict=True):
            self._entries.add(name, each.key, number[0, :n], number[1, :n], values[:n])


def _add_stay(
    events: pd.DataFrame, whole: Block, stays: pd.DataFrame, instances: pd.DataFrame, entries: Entries
) -> npt.NDArray[np.object_]:
    """Add demographics, the stay's clock, earlier stays and kind of admission; return the care unit at the snapshot."""
    rows = np.arange(len(instances))
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
    _add_admission(events, stays, stay, entries)
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


def _add_admission(events: pd.DataFrame, stays: pd.DataFrame, stay: IntArray, entries: Entries) -> None:
    rows = events[of_kind(events, [EventKind.ADMISSION]) & (events["item"] != "").to_numpy()]
    kinds = pd.DataFrame(
        {"patient_id": rows["patient_id"].astype("str"), "admitted_at": rows["time"], "code": rows["item"].cat.codes}
    ).drop_duplicates(["patient_id", "admitted_at"])
    code = stays.merge(kinds, on=["patient_id", "admitted_at"], how="left")["code"].fillna(-1).to_numpy(np.int64)
    of_row = code[stay]
    known = np.flatnonzero(of_row >= 0)
    entries.flag(ADMISSION, "", known, of_row[known], np.ones(len(known)))


def _add_unit(events: pd.DataFrame, whole: Block, entries: Entries) -> npt.NDArray[np.object_]:
    arrivals = whole.only(EventKind.UNIT)
    n_patients = int(whole.instance_patient.max(initial=-1)) + 1
    keep = arrivals.patient < n_patients
    units = SeriesSet(arrivals.patient[keep], arrivals.known_at[keep], n_patients)
    end = units.before(whole.instance_patient, whole.snapshot)
    here = np.flatnonzero(end > units.before(whole.instance_patient, whole.from_time))
    item = arrivals.item[keep][units.order]
    code = item[end[here] - 1]
    entries.flag(UNIT, "", here, code, np.ones(len(here)))
    entries.value("stay", "hours_on_unit", here, 0, (whole.snapshot[here] - units.time[end[here] - 1]) / HOUR)
    names = np.array([str(each) for each in events["item"].cat.categories], dtype=object)
    unit = np.full(len(whole.snapshot), "", dtype=object)
    unit[here] = names[code]
    return unit
