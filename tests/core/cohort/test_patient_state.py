"""Features of a patient at a snapshot: the record read event by event, and never the future."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from core.cohort.feature_layout import Layout, note_first_texts, with_unit
from core.cohort.instance_blocks import whole_block
from core.cohort.patient_state import Background, members, patient_state
from core.cohort.reference_bands import BandCollector
from core.events.parts import MemorySpill
from core.events.stays import pair_stays
from core.kinds import EventKind
from tests.support.records import instances_of, site, stream

DAY = pd.Timedelta(days=1)
HOUR = pd.Timedelta(hours=1)


def state_of(rows, mapping=None, shifted=True):
    events, _ = stream(rows, mapping)
    stays = pair_stays(events).table
    instances, _ = instances_of(events, stays, shifted=shifted)
    items = list(events["item"].cat.categories)
    units = [""] * len(items)
    note_first_texts(with_unit(events), "unit", units)
    bands = BandCollector(len(items), len(events), MemorySpill(), calendar_is_shifted=shifted)
    bands.add(events, whole_block(events, stays, instances))
    bands.finish()
    names = [""] * len(items)
    note_first_texts(events, "name", names)
    categories = (mapping or site()).categories
    layout = Layout(items, names, units, [category.name for category in categories])
    background = Background(
        layout, bands, frozenset(map(EventKind, events["kind"].unique())), members(items, categories)
    )
    state = patient_state(events, stays, instances, background)
    used = np.flatnonzero(state.features.getnnz(axis=0))
    return events, stays, instances, Described(state.features[:, used], layout.dictionary(used), state.unit)


@dataclass(frozen=True)
class Described:
    features: sparse.csr_matrix
    dictionary: pd.DataFrame
    unit: np.ndarray


def value(state, row, source, feature_kind):
    """The stored entry, or None where nothing is stored."""
    column = np.flatnonzero((state.dictionary["source"] == source) & (state.dictionary["aspect"] == feature_kind))
    if not len(column):
        return None
    stored = state.features[row].tocoo()
    found = stored.data[stored.col == column[0]]
    return float(found[0]) if len(found) else None


def random_rows(seed, n=80):
    """Two patients with overlapping histories, many items, equal times, results without a number."""
    rng = np.random.default_rng(seed)
    rows = []
    for patient in (1, 2):
        start = pd.Timestamp("2026-01-01 10:00") + DAY * int(rng.integers(0, 3))
        for length in (3, 4):
            rows += [(patient, start, "IN//Fall"), (patient, start + DAY * length, "OUT")]
            start += DAY * (length + int(rng.integers(0, 5)))
        for _ in range(n):
            time = pd.Timestamp("2025-12-30") + pd.Timedelta(minutes=30 * int(rng.integers(0, 48 * 20)))
            code = rng.choice(
                [
                    "LAB//K//mmol/L",
                    "LAB//Na//mmol/L",
                    "SIGN//Pulse",
                    "ASK//K",
                    "START//A",
                    "STOP//A",
                    "GIVE//A",
                    "WARD//East",
                    "WARD//West",
                ]
            )
            number = float(rng.integers(1, 9)) if code.startswith(("LAB", "SIGN")) and rng.random() < 0.85 else np.nan
            rows.append((patient, time, code, number))
    return list(dict.fromkeys(rows))


def slope(times, values):
    days = np.array([time / DAY for time in times])
    centred = days - days.mean() if len(days) else days
    spread = (centred**2).sum()
    return None if spread == 0 else float((centred * (np.array(values) - np.mean(values))).sum() / spread)


def slow_lab(events, snapshot, admitted, item):
    """Everything said about one lab, by reading its events one after the other."""
    rows = events[(events["item"] == item) & events["kind"].isin([EventKind.LAB_RESULT, EventKind.OBSERVATION])]
    known = rows[(rows["known_at"] < snapshot) & (rows["time"] < snapshot)].sort_values(
        ["known_at", "time"], kind="stable"
    )
    out = dict.fromkeys(
        [
            "hours_since_last",
            "last_value",
            "change",
            "hours_between",
            "slope_24h",
            "slope_stay",
            "min_stay",
            "max_stay",
            "mean_stay",
            "first_stay",
            "change_from_first",
            "count_24h",
            "count_stay",
            "measured_24h",
            "ever",
        ]
    )
    if known.empty:
        return out
    out["ever"] = 1.0
    out["hours_since_last"] = (snapshot - known["time"].iloc[-1]) / HOUR
    recent, stay = known[known["known_at"] >= snapshot - DAY], known[known["known_at"] >= admitted - DAY]
    out["count_24h"], out["count_stay"] = float(len(recent)) or None, float(len(stay)) or None
    out["measured_24h"] = 1.0 if len(recent) else None
    numbers = known.dropna(subset="value")
    if numbers.empty:
        return out
    out["last_value"] = numbers["value"].iloc[-1]
    if len(numbers) > 1:
        out["change"] = numbers["value"].iloc[-1] - numbers["value"].iloc[-2]
        out["hours_between"] = (numbers["time"].iloc[-1] - numbers["time"].iloc[-2]) / HOUR
    recent, stay = recent.dropna(subset="value"), stay.dropna(subset="value")
    origin = pd.Timestamp("2025-01-01")
    out["slope_24h"] = slope(list(recent["time"] - origin), recent["value"]) if len(recent) else None
    if len(stay):
        out["slope_stay"] = slope(list(stay["time"] - origin), stay["value"])
        out["min_stay"], out["max_stay"] = stay["value"].min(), stay["value"].max()
        out["mean_stay"], out["first_stay"] = stay["value"].mean(), stay["value"].iloc[0]
        out["change_from_first"] = out["last_value"] - out["first_stay"] if len(stay) > 1 else None
    return out


def slow_on(events, stays, snapshot, item):
    """Walk through a patient's orders of a drug: each stop ends the oldest open order, discharge ends all."""
    mine = events[events["item"] == item].sort_values(["time", "kind"], kind="stable")
    starts = mine[mine["kind"] == EventKind.MEDICATION_ORDER]["time"].tolist()
    stops = mine[mine["kind"] == EventKind.MEDICATION_STOP]["time"].tolist()

    def walk(starts, stops):
        waiting = list(starts)
        return [(waiting.pop(0), stop) for stop in stops if waiting and waiting[0] <= stop], waiting

    intervals, waiting = walk(starts, stops)
    if waiting:
        ended = stays["discharged_at"].dropna().tolist()

        def episode(time):
            return sum(end < time for end in ended)

        intervals = []
        for number in range(len(ended) + 1):
            of_this = [[time for time in times if episode(time) == number] for times in (starts, stops)]
            found, waiting = walk(*of_this)
            intervals += found
            for start in waiting:
                begun = stays[stays["admitted_at"] - DAY <= start]
                end = begun["discharged_at"].iloc[-1] if len(begun) else None
                intervals.append((start, end if end is not None and start < end else start + DAY))
    return any(start < snapshot <= end for start, end in intervals)


def slow_drug(events, stays, snapshot, admitted, item):
    mine = events[(events["item"] == item) & (events["time"] < snapshot)]
    of = {
        kind: mine[mine["kind"] == kind]["time"]
        for kind in (EventKind.MEDICATION_ORDER, EventKind.MEDICATION_STOP, EventKind.ADMINISTRATION)
    }
    starts, _, given = of.values()
    stay = {kind: (times >= admitted - DAY).sum() for kind, times in of.items()}
    n_starts, _, n_given = stay.values()
    any_time = pd.concat([starts, given])
    first_given = given[given >= admitted - DAY].min()
    start = starts.max() if len(starts) else first_given
    flags = {
        "on_now": slow_on(events, stays, snapshot, item) or (given >= snapshot - DAY).any(),
        "given_24h": (given >= snapshot - DAY).any(),
        "count_starts": n_starts or n_given,
        "ever": len(any_time) > 0,
    }
    return {
        **{key: float(flag) or None for key, flag in flags.items()},
        "hours_since_start": None if pd.isna(start) else (snapshot - start) / HOUR,
        "hours_since_last": (snapshot - any_time.max()) / HOUR if len(any_time) else None,
    }


def agree(expected, found):
    return (expected is None and found is None) or found == pytest.approx(expected, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("delay", [0, 90])
def test_features_agree_with_reading_the_record_event_by_event(seed, delay):
    events, stays, instances, state = state_of(random_rows(seed), site(result_delay_minutes=delay))
    assert len(instances) > 8
    for row, instance in instances.iterrows():
        mine = events[events["patient_id"] == instance["patient_id"]]
        admitted = stays.loc[instance["stay_id"], "admitted_at"]
        own = stays[stays["patient_id"] == instance["patient_id"]]
        for item in ("K", "Na", "Pulse"):
            for feature_kind, expected in slow_lab(mine, instance["snapshot_at"], admitted, item).items():
                assert agree(expected, value(state, row, item, feature_kind)), (row, item, feature_kind)
        for feature_kind, expected in slow_drug(mine, own, instance["snapshot_at"], admitted, "a").items():
            assert agree(expected, value(state, row, "A", feature_kind)), (row, feature_kind)


@pytest.mark.parametrize("shifted", [True, False])
def test_a_planted_future_event_moves_no_feature(shifted):
    rows = random_rows(7)
    _, _, instances, before = state_of(rows, shifted=shifted)
    moment = instances["snapshot_at"].iloc[2]
    patient = int(instances["patient_id"].iloc[2])
    planted = [
        (patient, moment + shift, code, 1e6)
        for shift in (pd.Timedelta(0), HOUR, DAY)
        for code in ("LAB//K//mmol/L", "LAB//New//mg", "ASK//K", "GIVE//A", "START//A", "STOP//A", "WARD//North")
    ]
    _, _, again, after = state_of([*rows, *planted], shifted=shifted)
    pd.testing.assert_series_equal(instances["snapshot_at"], again["snapshot_at"])
    for row in range(3):
        old, new = before.features[row].tocoo(), after.features[row].tocoo()
        names = [
            dict(zip(state.dictionary["name"].iloc[part.col], part.data, strict=True))
            for state, part in ((before, old), (after, new))
        ]
        assert names[0] == names[1]
        assert before.unit[row] == after.unit[row]
    assert value(before, 3, "New", "ever") is None
    assert value(after, 3, "New", "ever") == 1


def stay_with(*rows):
    return [(1, "2026-01-01 10:00", "IN"), (1, "2026-01-04 12:00", "OUT"), *rows]


def test_an_event_at_the_very_snapshot_is_not_known_yet():
    _, _, _, state = state_of(
        stay_with((1, "2026-01-02 08:00:00", "LAB//K", 4.0), (1, "2026-01-02 07:59:59", "LAB//Na", 140.0))
    )
    assert value(state, 0, "K", "ever") is None
    assert value(state, 0, "Na", "last_value") == 140
    assert value(state, 1, "K", "last_value") == 4


def test_a_measured_zero_is_stored_and_a_missing_value_is_not():
    _, _, _, state = state_of(
        stay_with((1, "2026-01-02 07:00", "LAB//K", 0.0), (1, "2026-01-03 07:00", "LAB//Na", 1.0))
    )
    assert value(state, 0, "K", "last_value") == 0.0
    assert value(state, 0, "Na", "last_value") is None


def test_a_result_that_is_taken_but_not_known_is_pending():
    rows = stay_with((1, "2026-01-02 07:30", "LAB//K", 4.0))
    _, _, _, state = state_of(rows, site(result_delay_minutes=60))
    assert [value(state, row, "K", "pending") for row in range(3)] == [1.0, None, None]
    assert value(state, 0, "K", "last_value") is None


def test_an_order_is_pending_until_its_result_is_known_but_not_for_ever():
    _, _, _, state = state_of(
        stay_with(
            (1, "2026-01-02 06:00", "ASK//K"),
            (1, "2026-01-02 09:00", "LAB//K", 4.0),
            (1, "2026-01-01 11:00", "ASK//Na"),
        )
    )
    assert [value(state, row, "K", "pending") for row in range(3)] == [1.0, None, None]
    assert [value(state, row, "Na", "pending") for row in range(3)] == [1.0, 1.0, None]


def test_the_stay_its_unit_and_earlier_stays_are_features():
    rows = [
        *stay_with(
            (1, "2026-01-01 10:05", "WARD//East"),
            (1, "2026-01-02 20:00", "WARD//West"),
            (1, "2026-01-02", "LAB//K", 1.0),
        ),
        (1, "2026-01-06 10:00", "IN//Fall"),
        (1, "2026-01-07 12:00", "OUT"),
        (1, None, "SEX//F"),
        (1, "1956-01-01", "BIRTH"),
    ]
    _, _, instances, state = state_of(rows)
    assert state.unit.tolist() == ["East", "West", "West", ""]
    by_name = [
        dict(zip(state.dictionary["name"].iloc[part.col], part.data, strict=True))
        for part in (state.features[i].tocoo() for i in range(4))
    ]
    assert by_name[0]["Stay: hours since admission"] == 22
    assert by_name[0]["Patient: female"] == 1
    assert by_name[1]["Care unit: West"] == 1
    assert by_name[1]["Care unit: hours on the unit"] == 12
    assert "Stay: previous stays" not in by_name[0]
    assert by_name[3]["Stay: previous stays"] == 1
    assert by_name[3]["Stay: hours since last discharge"] == 46
    assert by_name[3]["Admission: Fall"] == 1
    assert len(instances) == 4


def test_values_outside_the_central_90_percent_are_flagged():
    rows = []
    for patient in range(1, 61):
        number = {59: 100.0, 60: -100.0}.get(patient, 4.0 + patient / 100)
        rows += [
            (patient, "2026-01-01 10:00", "IN"),
            (patient, "2026-01-02 12:00", "OUT"),
            (patient, "2026-01-02 07:00", "LAB//K", number),
        ]
    _, _, instances, state = state_of(rows)
    place = {patient: i for i, patient in enumerate(instances["patient_id"])}
    assert value(state, place["59"], "K", "is_high") == 1
    assert value(state, place["60"], "K", "is_low") == 1
    assert value(state, place["30"], "K", "is_high") is None


def test_without_stops_a_drug_is_on_for_a_day():
    _, _, _, state = state_of(stay_with((1, "2026-01-01 11:00", "START//A")))
    assert [value(state, row, "A", "on_now") for row in range(3)] == [1.0, None, None]


def test_every_feature_is_described_and_present_somewhere():
    _, _, _, state = state_of(random_rows(1))
    assert state.dictionary["name"].is_unique
    assert (state.dictionary["meaning"].str.len() > 5).all()
    assert state.features.dtype == np.float32
    assert np.isfinite(state.features.data).all()


def test_other_patients_do_not_change_the_features():
    rows = random_rows(2)
    _, _, instances, together = state_of(rows)
    _, _, _, alone = state_of([row for row in rows if row[0] == 2])
    first = int((instances["patient_id"] == instances["patient_id"].iloc[0]).sum())
    mine = together.features[first:]
    own = np.isin(together.dictionary["aspect"], ["is_high", "is_low"], invert=True)
    names = together.dictionary["name"][own & (mine.getnnz(axis=0) > 0)]
    described = pd.Series(np.arange(len(alone.dictionary)), index=alone.dictionary["name"])
    kept = pd.Series(np.arange(len(together.dictionary)), index=together.dictionary["name"])
    assert set(names) == set(described.index[np.isin(alone.dictionary["aspect"], ["is_high", "is_low"], invert=True)])
    assert (mine[:, kept[names].to_numpy()] != alone.features[:, described[names].to_numpy()]).nnz == 0


def test_any_member_speaks_for_its_panel_or_class():
    rows = [
        (1, "2026-01-01 10:00", "IN"),
        (1, "2026-01-01 11:00", "LAB//ALT", 20.0),
        (1, "2026-01-02 07:00", "LAB//AST", 30.0),
        (1, "2026-01-01 12:00", "START//J01XA01"),
        (1, "2026-01-02 07:00", "GIVE//J01CA04"),
        (1, "2026-01-02 07:30", "START//B01AB01"),
        (1, "2026-01-04 12:00", "OUT"),
    ]
    categories = [
        {"name": "Liver panel", "kind": "lab", "items": ["ALT", "AST"]},
        {"name": "Antibiotics", "kind": "drug", "items": ["j01.*"]},
        {"name": "Antithrombotics", "kind": "drug", "items": ["b01.*"]},
        {"name": "No such drug", "kind": "drug", "items": ["ALT"]},
    ]
    _, _, _, state = state_of(rows, site(categories=categories))
    panel = {each: value(state, 0, "Any of Liver panel", each) for each in ("count_24h", "hours_since_last", "ever")}
    assert panel == {"count_24h": 2, "hours_since_last": 1, "ever": 1}
    drugs = {each: value(state, 0, "Any of Antibiotics", each) for each in ("on_now", "hours_since_start", "given_24h")}
    assert drugs == {"on_now": 1, "hours_since_start": 20, "given_24h": 1}
    assert value(state, 0, "Any of Antithrombotics", "on_now") == 1
    assert value(state, 0, "Any of No such drug", "ever") is None


def test_a_category_of_one_says_what_its_member_says():
    rows = random_rows(4)
    categories = [
        {"name": "Just K", "kind": "lab", "items": ["K"]},
        {"name": "Just A", "kind": "drug", "items": ["a"]},
    ]
    _, _, instances, state = state_of(rows, site(categories=categories))
    described = state.dictionary
    for source, own, feature_kinds in (
        ("K", "Just K", ["count_24h", "ever"]),
        ("A", "Just A", ["on_now", "count_starts"]),
    ):
        for feature_kind in feature_kinds:
            for row in range(len(instances)):
                assert value(state, row, source, feature_kind) == value(state, row, f"Any of {own}", feature_kind)
    assert described["name"].is_unique
