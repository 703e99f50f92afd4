"""Times that cannot be: sentinel dates such as 9999-12-31, and dates far from everything else about the patient.

One such time may make a stay of eighty years, so the event is set aside, counted and named. Whether a time can be is
judged by the patient's own other events: the calendar of de-identified records means nothing.
"""

from collections.abc import Sequence
from datetime import date

import numpy as np
import numpy.typing as npt

from core.events.series import SeriesSet
from core.events.stream import among, seconds
from core.kinds import PATIENT_EVENTS, EventKind, Kind

IntArray = npt.NDArray[np.int64]

PLAUSIBLE, SENTINEL, FAR, TOO_OLD = range(4)
"""What `doubted` says of an event."""

_YEAR = 366 * 86400
_FAR_DISCHARGE = 90 * 86400
"""Who is in hospital has an event now and then; a day and a month that were swapped lie up to eleven months off."""
_FAR_STOP = 5 * _YEAR
"""Orders may run on for years without another event; a drug for life is ordered again."""
_OLDEST = 115 * _YEAR
_NEVER = np.iinfo(np.int64).max // 4
_FIRST, _END = np.datetime64("1700-01-01"), np.datetime64("3000-01-01")
"""No calendar, shifted ones among them, has dates outside these years."""


def doubted(
    patient: npt.NDArray[np.integer],
    time: npt.NDArray[np.datetime64],
    kind: npt.NDArray[np.integer],
    sentinel_dates: Sequence[date],
    now: np.datetime64 | None,
) -> npt.NDArray[np.int8]:
    """Judge the times of events, all of some patients, kinds being places in `EventKind`.

    Return `PLAUSIBLE`; `SENTINEL`, which is a date that means "none" where no other event of the patient lies within a
    year, and every date before 1700 or from 3000 on; `FAR`: a discharge more than 90 days after every other event of
    its patient, a drug stop more than five years after, an admission more than a year before the next event, or another
    event after `now`, the end of the day of the import for a calendar that is not shifted, more than a year away from
    every other event; or `TOO_OLD`: a birth more than 115 years before the patient's first event.
    """
    out = np.full(len(time), PLAUSIBLE, dtype=np.int8)
    timed = ~np.isnat(time)
    own = timed & ~among(kind, PATIENT_EVENTS)
    sentinel = timed & np.isin(time.astype("datetime64[D]"), np.array(sentinel_dates, dtype="datetime64[D]"))
    outside = timed & ((time < _FIRST) | (time >= _END))
    sentinel |= outside
    discharge, admission, birth = (
        kind == each.number for each in (EventKind.DISCHARGE, EventKind.ADMISSION, EventKind.BIRTH)
    )
    stop = among(kind, [each.record.stop for each in Kind if each.record.stop])
    future = own & (time > now) if now is not None else np.zeros(len(time), dtype=bool)
    far_future = future & ~_all_of_patient(patient, own & ~discharge & ~stop, future)
    shows = own & ~sentinel & ~discharge & ~stop & ~far_future
    rows = np.flatnonzero(timed & (sentinel | far_future | discharge | stop | admission | birth))
    near = _Neighbours(patient, seconds(time), rows)
    before, after = near.distances(shows)
    following = near.distances(own & ~sentinel)[1]
    nearest = np.minimum(before, after)
    found = np.full(len(rows), PLAUSIBLE, dtype=np.int8)
    found[far_future[rows] & (nearest > _YEAR)] = FAR
    found[discharge[rows] & (before > _FAR_DISCHARGE) & (before < _NEVER)] = FAR
    found[stop[rows] & (nearest > _FAR_STOP) & (nearest < _NEVER)] = FAR
    found[admission[rows] & (following > _YEAR) & (following < _NEVER)] = FAR
    found[birth[rows] & (after > _OLDEST) & (after < _NEVER)] = TOO_OLD
    found[sentinel[rows] & ~birth[rows] & (nearest > _YEAR)] = SENTINEL
    found[sentinel[rows] & birth[rows] & (after > _OLDEST) & (after < _NEVER)] = SENTINEL
    found[sentinel[rows] & birth[rows] & (before > _YEAR) & (before < _NEVER) & (after == _NEVER)] = SENTINEL
    found[outside[rows]] = SENTINEL
    out[rows] = found
    return out


def _all_of_patient(
    patient: npt.NDArray[np.integer], among: npt.NDArray[np.bool_], mark: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Mark the events of patients all of whose events `among` some are marked."""
    n = int(patient.max(initial=-1)) + 1
    n_marked = np.bincount(patient[among & mark], minlength=n)
    return np.asarray((n_marked == np.bincount(patient[among], minlength=n))[patient], dtype=bool)


class _Neighbours:
    """How far some events lie from others of their patient."""

    def __init__(self, patient: npt.NDArray[np.integer], when: IntArray, rows: IntArray) -> None:
        self._patient, self._when = patient.astype(np.int64), when
        self._who, self._at = self._patient[rows], when[rows]
        self._n_patients = int(self._patient.max(initial=-1)) + 1

    def distances(self, shows: npt.NDArray[np.bool_]) -> tuple[IntArray, IntArray]:
        """Return the seconds since the last event that `shows` marks, and until the next; `_NEVER` if there is none."""
        shown = SeriesSet(self._patient[shows], self._when[shows], self._n_patients)
        none = np.full(len(self._at), _NEVER)
        if not len(shown.time):
            return none, none
        # An event does not vouch for itself, nor for what was entered in the same minute.
        first, last = shown.before(self._who, self._at - 59), shown.before(self._who, self._at + 60)
        before = self._at - shown.time[np.maximum(first - 1, 0)]
        after = shown.time[np.minimum(last, len(shown.time) - 1)] - self._at
        return (
            np.where(first > shown.start(self._who), before, none),
            np.where(last < shown.start(self._who + 1), after, none),
        )
