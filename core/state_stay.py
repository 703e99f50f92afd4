"""Features of the patient, the stay and the care unit at every snapshot."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.aspects import ADMISSION, UNIT
from core.events import EventKind, of_kind, seconds
from core.series import SeriesSet
from core.state_blocks import HOUR, Block
from core.state_layout import Entries

IntArray = npt.NDArray[np.int64]


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
