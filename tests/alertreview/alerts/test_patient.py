"""What a page shows of a patient: known at the snapshot, and nothing later but the decision in question."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from alertreview.alerts.patient import SnapshotViews
from alertreview.records.snapshots import read_snapshot
from core.kinds import Kind


@pytest.fixture(scope="module")
def views(demo_home: Path) -> SnapshotViews:
    return SnapshotViews(read_snapshot(next((demo_home / "snapshots").iterdir())))


def some_rows(views: SnapshotViews) -> list[int]:
    return list(range(0, len(views.snapshot.instances), 37))


def test_nothing_on_the_time_line_was_known_only_later(views: SnapshotViews) -> None:
    keys = views.snapshot.tasks["task_key"]
    for row, key in zip(some_rows(views), np.resize(keys, len(some_rows(views))), strict=True):
        timeline = views.timeline(row, key)
        snapshot = views.snapshot.instances.iloc[row]
        known = views.snapshot.events_of(snapshot["patient_id"])
        known = known[(known["known_at"] < snapshot["snapshot_at"]).to_numpy()]
        values = {(str(name), float(value)) for name, value in zip(known["name"], known["value"], strict=True)}
        for lab in timeline.labs:
            assert {(lab.name, value) for value in lab.values} <= values
            assert max(lab.times) < timeline.snapshot_at
        for drug in timeline.drugs:
            assert all(start <= end <= timeline.snapshot_at for start, end in drug.periods)
        assert all(time < timeline.snapshot_at for time in timeline.past_orders)


def test_orders_in_the_window_are_the_decision_of_the_cohort(views: SnapshotViews) -> None:
    keys = list(views.snapshot.tasks["task_key"])
    for place, row in enumerate(some_rows(views)):
        for column in range(place % 7, len(keys), 7):
            key = keys[column]
            timeline = views.timeline(row, key)
            assert bool(timeline.orders_in_window) == bool(views.snapshot.decisions[row, column])
            hours = views.hours_to_decision(row, key)
            assert (hours is None) == (not timeline.orders_in_window)
            assert hours is None or 0 <= hours < 24


def test_the_task_itself_and_related_labs_come_first(views: SnapshotViews) -> None:
    for row in some_rows(views):
        shown = [lab.name for lab in views.timeline(row, "LAB_ORDER/Potassium").labs]
        if "Potassium" in shown:
            assert shown[0] == "Potassium"
            related = [lab.name for lab in views.timeline(row, "LAB_ORDER/Potassium", ["Sodium"]).labs]
            assert "Sodium" not in shown or related[1] == "Sodium"
            return
    pytest.fail("no patient of the demonstration has a potassium value")


def test_last_values_are_the_latest_known_ones_with_flags_by_past_values(views: SnapshotViews) -> None:
    n_seen = 0
    for row in some_rows(views):
        snapshot = views.snapshot.instances.iloc[row]
        events = views.snapshot.events_of(snapshot["patient_id"])
        for last in views.last_values(row):
            known = events[
                (events["known_at"] < snapshot["snapshot_at"]).to_numpy()
                & (events["name"] == last.name).to_numpy()
                & (events["kind"] == "LAB_RESULT").to_numpy()
                & events["value"].notna().to_numpy()
            ]
            assert last.value == known["value"].iloc[-1]
            assert last.hours_old == (snapshot["snapshot_at"] - known["time"].iloc[-1]) / pd.Timedelta(hours=1)
            assert last.hours_old >= 0
            n_seen += 1
    assert n_seen > 30


def test_a_flag_means_outside_the_central_ninety_percent(views: SnapshotViews) -> None:
    dictionary = views.snapshot.feature_dictionary
    column = int(np.flatnonzero((dictionary["source"] == "Potassium") & (dictionary["aspect"] == "last_value"))[0])
    stored = views.snapshot.features[:, [column]].data.astype(float)
    low, high = np.quantile(stored, [0.05, 0.95])
    flags = {value.flag for row in some_rows(views) for value in views.last_values(row)}
    assert flags == {"", "high", "low"}
    for row in some_rows(views):
        for value in views.last_values(row):
            if value.name == "Potassium":
                assert value.flag == ("high" if value.value > high else "low" if value.value < low else "")


def test_the_record_afterwards_agrees_with_the_decision(views: SnapshotViews) -> None:
    tasks = list(views.snapshot.tasks.itertuples())
    for place, row in enumerate(some_rows(views)):
        for column in range(place % 5, len(tasks), 5):
            task = tasks[column]
            sentences = views.record_after(row, task.task_key)
            done = "ordered" if task.kind == Kind.LAB_ORDER else "started or given"
            assert sentences[0].startswith(f"{task.name} was ")
            assert done in sentences[0]
            decided = bool(views.snapshot.decisions[row, column])
            within = " was not " not in sentences[0] and "Nothing within the 24 h in question." not in sentences
            assert decided == within


def test_times_carry_the_sites_zone(views: SnapshotViews) -> None:
    timeline = views.timeline(0, views.snapshot.tasks["task_key"].iloc[0])
    assert timeline.snapshot_at.hour == 8
    assert timeline.snapshot_at.utcoffset() is not None
