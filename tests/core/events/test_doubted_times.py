"""Times that cannot be, at the bounds from which on they are doubted."""

from datetime import date

import numpy as np
import pytest

from core.events.doubted_times import FAR, PLAUSIBLE, SENTINEL, TOO_OLD, doubted
from core.kinds import EventKind

FIRST = np.datetime64("2026-01-01T12:00")
DAY, YEAR, MINUTE = 1.0, 366.0, 1 / 1440
NONE_DATE = date(2099, 12, 31)


def judged(*events, now=None):
    """Judge the first event; each is (kind, days after `FIRST` or a date, patient)."""
    whole = [(kind, at, *(patient or (0,))) for kind, at, *patient in events]
    times = [
        np.datetime64(at) if isinstance(at, str) else FIRST.astype("datetime64[s]") + round(at * 86400)
        for _, at, _ in whole
    ]
    return doubted(
        np.array([patient for *_, patient in whole]),
        np.array(times, dtype="datetime64[s]"),
        np.array([kind.number for kind, *_ in whole]),
        [NONE_DATE],
        now,
    )[0]


RESULT = (EventKind.LAB_RESULT, 0.0)


@pytest.mark.parametrize(
    ("kind", "last", "doubt"),
    [
        (EventKind.DISCHARGE, 90 * DAY, FAR),
        (EventKind.MEDICATION_STOP, 5 * YEAR, FAR),
        (EventKind.ADMISSION, -YEAR, FAR),
        (EventKind.BIRTH, -115 * YEAR, TOO_OLD),
        (EventKind.LAB_RESULT, 300 * YEAR, PLAUSIBLE),
        (EventKind.ADMISSION, 300 * YEAR, PLAUSIBLE),
        (EventKind.DISCHARGE, -300 * YEAR, PLAUSIBLE),
    ],
)
def test_a_time_is_doubted_beyond_the_bound_of_its_kind(kind, last, doubt):
    beyond = last + np.sign(last) * MINUTE
    assert judged((kind, last), RESULT) == PLAUSIBLE
    assert judged((kind, beyond), RESULT) == doubt
    assert judged((kind, beyond), (EventKind.LAB_RESULT, 0.0, 1)) == PLAUSIBLE, "nothing else is known of the patient"
    assert judged((kind, beyond), RESULT, (EventKind.LAB_RESULT, beyond - np.sign(last) * DAY)) == PLAUSIBLE
    assert judged((kind, beyond), RESULT, (EventKind.LAB_RESULT, beyond, 1)) == doubt, "another patient does not vouch"


def test_what_is_entered_in_the_same_minute_does_not_vouch():
    together, before = 91 * DAY, 91 * DAY - MINUTE
    assert judged((EventKind.DISCHARGE, together), RESULT, (EventKind.LAB_RESULT, together)) == FAR
    assert judged((EventKind.DISCHARGE, together), RESULT, (EventKind.LAB_RESULT, before)) == PLAUSIBLE


@pytest.mark.parametrize(("days", "doubt"), [(YEAR, PLAUSIBLE), (YEAR + MINUTE, FAR)])
def test_an_event_after_the_import_is_doubted_over_a_year_from_all_others(days, doubt):
    now, event = FIRST + np.timedelta64(1, "D"), (EventKind.LAB_RESULT, days)
    assert judged(event, RESULT, now=now) == doubt
    assert judged(event, RESULT) == PLAUSIBLE, "a shifted calendar has no future"
    assert judged(event, RESULT, now=FIRST + np.timedelta64(1000, "D")) == PLAUSIBLE
    assert judged(event, (EventKind.LAB_RESULT, 2 * DAY), now=now) == PLAUSIBLE, "all of the patient is later"


@pytest.mark.parametrize(
    ("kind", "other", "doubt"),
    [
        (EventKind.LAB_RESULT, "2098-12-30", PLAUSIBLE),
        (EventKind.LAB_RESULT, "2098-12-29T23:59", SENTINEL),
        (EventKind.LAB_RESULT, "2101-01-03", SENTINEL),
        # Who was born on that day is seen after it, and not over 115 years after it.
        (EventKind.BIRTH, "2098-12-30", PLAUSIBLE),
        (EventKind.BIRTH, "2098-12-29T23:59", SENTINEL),
        (EventKind.BIRTH, "2180-01-01", PLAUSIBLE),
        (EventKind.BIRTH, "2216-01-01", SENTINEL),
    ],
)
def test_a_date_that_stands_for_none_is_taken_for_one_unless_the_patient_was_there(kind, other, doubt):
    assert judged((kind, str(NONE_DATE)), (EventKind.LAB_RESULT, other)) == doubt


@pytest.mark.parametrize(
    ("at", "doubt"),
    [
        ("1699-12-31T23:59", SENTINEL),
        ("1700-01-01", PLAUSIBLE),
        ("2999-12-31T23:59", PLAUSIBLE),
        ("3000-01-01", SENTINEL),
        ("NaT", PLAUSIBLE),
    ],
)
def test_no_calendar_reaches_beyond_1700_and_3000(at, doubt):
    beside = str(np.datetime64(at) + 86_400) if at != "NaT" else "2026-01-01"
    assert judged((EventKind.LAB_RESULT, at), (EventKind.LAB_RESULT, beside)) == doubt
