"""Numbers that only all numbers of their lab give away: another scale under one unit, and stray negatives."""

import numpy as np
import pytest

from core.events.import_report import StreamChecks
from core.events.stays import make_patients, pair_stays
from core.events.value_scales import ValueScales
from tests.support.records import stream

RNG = np.random.default_rng(0)
HEMATOCRIT = RNG.normal(40, 5, 200)
FERRITIN = RNG.lognormal(5, 1.5, 2000)


def doubts(*values):
    """What is doubted of an item whose numbers come in several parts, beside another item."""
    scales = ValueScales()
    for part in values:
        scales.add(np.array(part, dtype=float), np.ones(len(part), dtype=int))
    scales.add(HEMATOCRIT, np.zeros(len(HEMATOCRIT), dtype=int))
    return {found.name: found.count for found in scales.findings(["Other", "Lab"]) if found.count}


@pytest.mark.parametrize(
    ("numbers", "second"),
    [
        (HEMATOCRIT, HEMATOCRIT[:20] / 100),
        (HEMATOCRIT, HEMATOCRIT[:20] * 10),
        (RNG.normal(6, 0.5, 200), RNG.normal(108, 9, 20)),
        (FERRITIN[np.abs(np.log(FERRITIN / 150)) < 1], np.array([0.1, 0.12, 0.15, 0.16, 0.2] * 10)),
    ],
    ids=["fraction", "per litre", "glucose", "milligram"],
)
def test_a_few_numbers_on_another_scale_are_doubted(numbers, second):
    assert doubts(numbers, second) == {"two_scales": len(second)}


def test_only_sizes_that_occur_take_room():
    scales = ValueScales()
    items = np.arange(100_000).repeat(2)
    scales.add(np.linspace(1, 2, len(items)), items)
    kept = (each for each in vars(scales).values() if isinstance(each, np.ndarray))
    assert sum(each.nbytes for each in kept) <= len(items) * 40


@pytest.mark.parametrize(
    "numbers",
    [
        HEMATOCRIT,
        FERRITIN,
        np.append(HEMATOCRIT, np.full(30, 0.4)),
        np.append(HEMATOCRIT, [0.4, 0.44]),
        np.append(HEMATOCRIT, HEMATOCRIT[:50] * 30),
        np.append(FERRITIN, [0.0] * 100 + [np.nan]),
    ],
    ids=["one", "wide", "limit of detection", "two typing errors", "no factor of units", "zeros"],
)
def test_what_a_lab_may_be_is_not_doubted(numbers):
    assert doubts(numbers) == {}


def test_negatives_are_doubted_where_nearly_all_others_are_not():
    assert doubts(HEMATOCRIT, [-1.0, -1.0]) == {"stray_negatives": 2}
    assert doubts(RNG.normal(0, 3, 200)) == {}
    assert doubts([1.0, 2.0, -1.0]) == {}


def test_the_import_doubts_settled_values_by_name():
    """Values in a unit that was given up, or sentinels, are no second scale."""
    days = range(1, 29)
    rows = [(who, f"2026-01-{day:02} 09:00", "LAB//Hct//%", 40 + day / 7) for who in (1, 2) for day in days]
    rows += [(3, f"2026-01-{day:02} 09:00", "LAB//Hct//%", 0.4 + day / 700) for day in days]
    rows += [(4, "2026-01-02 09:00", "LAB//Hct//g/L", 0.4), (1, "2026-01-01 07:00", "IN")]
    found = {each.name: each for each in stream(rows)[1].findings}
    assert (found["two_scales"].count, found["two_scales"].examples) == (28, ("Hct",))
    assert found["stray_negatives"].count == 0


def test_dates_among_times_of_a_kind_are_counted():
    """A system that knows the day beside one that knows the time: a fifth of all is far more than midnights are."""
    at = [f"2026-01-{day:02}{'' if day % 5 == 0 else f' {day % 20:02}:{day}'}" for day in range(1, 29)]
    rows = [(1, time, "LAB//Hct//%", 40.0) for time in at] + [(1, f"{time[:10]} 10:00", "ASK//Hct") for time in at]
    events, _ = stream([*rows, (1, "2026-01-01 07:00", "IN")])
    checks, patients = StreamChecks(), make_patients(events, {})
    checks.add(events, pair_stays(events).table, patients)
    of_all, of_some = checks.midnights()
    assert (of_all.count, of_some.count, of_some.examples) == (0, 5, ("LAB_RESULT (18% at midnight)",))


def test_a_round_at_midnight_is_no_date():
    at = [f"2026-01-{day:02} {hour}:00" for day in range(1, 29) for hour in ("00", "06", "12", "18")]
    events, _ = stream([(1, "2026-01-01 07:00", "IN"), *((1, time, "LAB//Hct//%", 40.0) for time in at)])
    checks = StreamChecks()
    checks.add(events, pair_stays(events).table, make_patients(events, {}))
    assert [each.count for each in checks.midnights()] == [0, 0]
