"""What the import report says about events, stays and times, counted part by part."""

from collections import Counter

import numpy as np
import pandas as pd

from core.events import LAB_KINDS, PATIENT_KINDS, EventKind, of_kind, seconds
from core.import_report import OutsideStays
from core.series import SeriesSet

_CHECKED_KINDS = [kind for kind in EventKind if kind not in (*PATIENT_KINDS, EventKind.ADMISSION, EventKind.DISCHARGE)]


class StreamChecks:
    """Counts over all parts of an event stream.

    Attributes
    ----------
    n_before_birth, n_after_death, n_results_before_order : int
    """

    def __init__(self) -> None:
        self._n_of_kind: Counter[EventKind] = Counter()
        self._n_outside: Counter[EventKind] = Counter()
        self._n_midnight = self._n_timed = 0
        self.n_before_birth = self.n_after_death = self.n_results_before_order = 0

    def add(self, events: pd.DataFrame, stays: pd.DataFrame, patients: pd.DataFrame) -> None:
        """Count one part, with its stays and patients."""
        inside = _inside_stays(events, stays)
        for kind in _CHECKED_KINDS:
            of_this = of_kind(events, [kind])
            self._n_of_kind[kind] += int(of_this.sum())
            self._n_outside[kind] += int((of_this & ~inside).sum())
        time = events.loc[~of_kind(events, PATIENT_KINDS), "time"]
        self._n_timed += len(time)
        self._n_midnight += int((seconds(time) % 86400 == 0).sum())
        self.n_results_before_order += _n_results_before_order(events)
        self._add_outside_life(events, patients)

    @property
    def outside_stays(self) -> tuple[OutsideStays, ...]:
        """Events outside any stay, by kind."""
        return tuple(
            OutsideStays(kind.value, self._n_of_kind[kind], self._n_outside[kind])
            for kind in _CHECKED_KINDS
            if self._n_of_kind[kind]
        )

    @property
    def share_midnight(self) -> float:
        """Share of events other than births and deaths whose time is midnight, in [0, 1]."""
        return self._n_midnight / self._n_timed if self._n_timed else 0.0

    def _add_outside_life(self, events: pd.DataFrame, patients: pd.DataFrame) -> None:
        numbers = events["patient_id"].cat.codes.to_numpy()
        by_patient = patients.set_index("patient_id").loc[events["patient_id"].cat.categories]
        own = ~of_kind(events, PATIENT_KINDS)
        time = events["time"].to_numpy()
        birth = by_patient["birth_time"].to_numpy().astype("datetime64[us]")[numbers]
        death = by_patient["death_time"].to_numpy().astype("datetime64[us]")[numbers]
        # A death is often a date without a time of day: only what happened on a later day is after it.
        after = time.astype("datetime64[D]") > death.astype("datetime64[D]")
        self.n_before_birth += int((own & (time < birth)).sum())
        self.n_after_death += int((own & after).sum())


def _inside_stays(events: pd.DataFrame, stays: pd.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    patients = events["patient_id"].cat.categories
    who = patients.get_indexer(stays["patient_id"]).astype(np.int64)
    admitted, ended = seconds(stays["admitted_at"]), seconds(stays["discharged_at"])
    ended = np.where(stays["discharged_at"].isna(), np.iinfo(np.int64).max, ended)
    begun = SeriesSet(who, admitted, len(patients))
    # Stays may overlap: compare with the latest end among the patient's stays that have begun.
    latest = pd.Series(ended[begun.order]).groupby(who[begun.order]).cummax().to_numpy()
    patient, time = events["patient_id"].cat.codes.to_numpy().astype(np.int64), seconds(events["time"])
    place = begun.before(patient, time + 1) - 1
    exists = place >= begun.start(patient)
    return exists & (latest[np.maximum(place, 0)] >= time) if len(latest) else exists


def _n_results_before_order(events: pd.DataFrame) -> int:
    """Results of items that have orders, known before the patient's first order of the item."""
    labs = events.loc[of_kind(events, LAB_KINDS), ["patient_id", "item", "kind", "time", "known_at"]]
    is_order = (labs["kind"] == EventKind.LAB_ORDER.value).to_numpy()
    if not is_order.any():
        return 0
    keys = ["patient_id", "item"]
    first = labs[is_order].groupby(keys, observed=True)["time"].min().rename("ordered").reset_index()
    results = labs[~is_order].merge(first, on=keys, how="inner")
    return int((results["known_at"] < results["ordered"]).sum())
