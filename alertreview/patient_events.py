"""One patient's events as plain arrays: views look at a handful of them many times, and tables are slow at that."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.events import EventKind, decision_events, of_kind

Times = npt.NDArray[np.datetime64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PatientEvents:
    """Events in the order of time; shared by all who look at the patient, so nobody may change them.

    Parameters
    ----------
    frame : DataFrame
        As `alertreview.snapshots.Snapshot.events_of` gives it.
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
        """Rows of the events that count as "the task was done"; see `core.events.decision_events`."""
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
        As `alertreview.snapshots.Snapshot.events_of` gives it; numbered from 0.
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
