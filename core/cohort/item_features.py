"""Features of labs, observations and drugs at every snapshot."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.cohort.feature_layout import ADMISSION, PENDING_HOURS, RECENT_HOURS, UNIT, Entries
from core.cohort.instance_blocks import HOUR, Block, ItemSeries
from core.cohort.reference_bands import ReferenceBands
from core.events.series import SeriesSet, range_statistics
from core.events.stream import EventKind, of_kind, seconds

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]


def add_results(block: Block, bands: ReferenceBands, entries: Entries) -> None:
    """Add what is known of every lab and observation: values, trends, counts and flags."""
    results = block.only(EventKind.LAB_RESULT, EventKind.OBSERVATION)
    series = ItemSeries(results)
    _add_counts(results, series, entries, "result")
    _add_values(results, series, bands, entries)


def add_panels(block: Block, entries: Entries) -> None:
    """Add when and how often a result of any member of a lab panel came; the block's items are numbers of panels."""
    results = block.only(EventKind.LAB_RESULT, EventKind.OBSERVATION)
    _add_counts(results, ItemSeries(results), entries, "panel")


def _add_counts(results: Block, pairs: ItemSeries, entries: Entries, group: str) -> None:
    events = pairs.sorted_by(results.known_at, np.ones(len(results.item), dtype=bool))
    end = events.before(pairs.series, pairs.snapshot)
    begun = end > events.start(pairs.series)
    series, snapshot, end = pairs.series[begun], pairs.snapshot[begun], end[begun]
    row, item = pairs.row[begun], pairs.item[begun]
    happened = results.time[events.order]
    n_recent = end - events.before(series, snapshot - RECENT_HOURS * HOUR)
    entries.value(group, "hours_since_last", row, item, (snapshot - happened[end - 1]) / HOUR)
    entries.flag(group, "count_24h", row, item, n_recent)
    entries.flag(group, "count_stay", row, item, end - events.before(series, pairs.from_time[begun]))
    entries.flag(group, "measured_24h", row, item, n_recent > 0)
    entries.flag(group, "ever", row, item, np.ones(len(row)))


def _add_values(results: Block, pairs: ItemSeries, bands: ReferenceBands, entries: Entries) -> None:
    numeric = np.isfinite(results.value)
    events = pairs.sorted_by(results.known_at, numeric)
    value, time = results.value[numeric][events.order], results.time[numeric][events.order]
    end, first = events.before(pairs.series, pairs.snapshot), events.start(pairs.series)
    begun = end > first
    series, snapshot, end, first = pairs.series[begun], pairs.snapshot[begun], end[begun], first[begun]
    row, item = pairs.row[begun], pairs.item[begun]
    last, before_last = end - 1, np.maximum(end - 2, first)
    twice = end - first >= 2
    entries.value("value", "last_value", row, item, value[last])
    entries.value("value", "change", row, item, np.where(twice, value[last] - value[before_last], np.nan))
    hours = (time[last] - time[before_last]) / HOUR
    entries.value("value", "hours_between", row, item, np.where(twice, hours, np.nan))
    recent = range_statistics(value, time, events.before(series, snapshot - RECENT_HOURS * HOUR), end)
    entries.value("value", "slope_24h", row, item, recent.slope)
    stay = range_statistics(value, time, events.before(series, pairs.from_time[begun]), end)
    entries.value("value", "slope_stay", row, item, stay.slope)
    entries.value("value", "min_stay", row, item, stay.minimum)
    entries.value("value", "max_stay", row, item, stay.maximum)
    entries.value("value", "mean_stay", row, item, stay.mean)
    entries.value("value", "first_stay", row, item, stay.first)
    entries.value("value", "change_from_first", row, item, np.where(stay.n >= 2, value[last] - stay.first, np.nan))
    cell = bands.cell_of_instance[row]
    entries.flag("value", "is_high", row, item, value[last] > bands.high[cell, item])
    entries.flag("value", "is_low", row, item, value[last] < bands.low[cell, item])


def add_pending(block: Block, entries: Entries) -> None:
    """Add a flag where a lab was ordered or taken and its result is not known yet."""
    labs = block.only(EventKind.LAB_ORDER, EventKind.LAB_RESULT)
    pairs = ItemSeries(labs)
    is_result = labs.kind == list(EventKind).index(EventKind.LAB_RESULT)
    known = pairs.sorted_by(labs.known_at, is_result)
    taken = pairs.sorted_by(labs.time, is_result)
    asked = pairs.sorted_by(labs.time, ~is_result)
    since = pairs.snapshot - PENDING_HOURS * HOUR
    n_known = known.before(pairs.series, pairs.snapshot) - known.start(pairs.series)
    last_known = _last(known.time, known.before(pairs.series, pairs.snapshot), n_known > 0)
    end = asked.before(pairs.series, pairs.snapshot)
    last_asked = _last(asked.time, end, end > asked.start(pairs.series))
    unanswered = (last_asked >= since) & (last_asked > last_known)
    end = taken.before(pairs.series, pairs.snapshot)
    last_taken = _last(taken.time, end, end > taken.start(pairs.series))
    on_its_way = (end - taken.start(pairs.series) > n_known) & (last_taken >= since)
    entries.flag("pending", "pending", pairs.row, pairs.item, unanswered | on_its_way)


def _last(time: IntArray, end: IntArray, exists: npt.NDArray[np.bool_]) -> IntArray:
    """Time of the event before position `end`; the smallest integer where there is none."""
    if not len(time):
        return np.full(len(end), np.iinfo(np.int64).min)
    return np.where(exists, time[np.maximum(end - 1, 0)], np.iinfo(np.int64).min)


def add_drugs(
    block: Block, entries: Entries, *, has_stops: bool, has_administrations: bool, group: str = "drug"
) -> None:
    """Add what is known of every drug, or of the drugs of a class together.

    Parameters
    ----------
    block : Block
    entries : Entries
    has_stops, has_administrations : bool
        Whether the source tells when drugs stop and when they are given; where it does not, a drug counts as on, or as
        given, for 24 h after each start.
    group : {"drug", "class"}
        What the numbers of the block's items stand for.
    """
    drugs = block.only(EventKind.MEDICATION_ORDER, EventKind.MEDICATION_STOP, EventKind.ADMINISTRATION)
    pairs = ItemSeries(drugs)
    kinds = list(EventKind)
    starts = pairs.sorted_by(drugs.known_at, drugs.kind == kinds.index(EventKind.MEDICATION_ORDER))
    stops = pairs.sorted_by(drugs.known_at, drugs.kind == kinds.index(EventKind.MEDICATION_STOP))
    given = pairs.sorted_by(drugs.known_at, drugs.kind == kinds.index(EventKind.ADMINISTRATION))
    series, snapshot, recent = pairs.series, pairs.snapshot, pairs.snapshot - RECENT_HOURS * HOUR
    n_before = {each: each.before(series, snapshot) for each in (starts, stops, given)}
    in_stay = {each: n_before[each] - each.before(series, pairs.from_time) for each in (starts, stops, given)}
    last_start = _last(starts.time, n_before[starts], n_before[starts] > starts.start(series))
    last_given = _last(given.time, n_before[given], n_before[given] > given.start(series))
    last_any = np.maximum(last_start, last_given)
    ever = last_any > np.iinfo(np.int64).min
    was_given = (last_given if has_administrations else last_any) >= recent
    on_order = (in_stay[starts] > in_stay[stops]) if has_stops else last_start >= recent
    first_given = given.before(series, pairs.from_time)
    first_time = given.time[np.minimum(first_given, len(given.time) - 1)] if len(given.time) else last_start
    start = np.where(last_start > np.iinfo(np.int64).min, last_start, np.where(in_stay[given] > 0, first_time, -1))
    has_start = (last_start > np.iinfo(np.int64).min) | (in_stay[given] > 0)
    hours_since_start = np.where(has_start, (snapshot - start) / HOUR, np.nan)
    hours_since_last = np.where(ever, (snapshot - np.where(ever, last_any, snapshot)) / HOUR, np.nan)
    n_starts = np.where(in_stay[starts] > 0, in_stay[starts], in_stay[given])
    row, item = pairs.row, pairs.item
    entries.flag(group, "on_now", row, item, on_order | (last_given >= recent))
    entries.flag(group, "given_24h", row, item, was_given)
    entries.value(group, "hours_since_start", row, item, hours_since_start)
    entries.value(group, "hours_since_last", row, item, hours_since_last)
    entries.flag(group, "count_starts", row, item, n_starts)
    entries.flag(group, "ever", row, item, ever)


def add_stay(
    events: pd.DataFrame, whole: Block, stays: pd.DataFrame, instances: pd.DataFrame, entries: Entries
) -> npt.NDArray[np.object_]:
    """Add demographics, the stay's clock, earlier stays, care unit and kind of admission.

    Parameters
    ----------
    events, stays, instances : DataFrame
    whole : Block
        All events and instances.
    entries : Entries

    Returns
    -------
    array of str, shape (n_instances,)
        Care unit at the snapshot, "" when unknown.
    """
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
    """Per stay: number of the patient's stays that ended by its admission, and when the last of them ended."""
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
