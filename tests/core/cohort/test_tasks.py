"""Decisions against looking into every window, and which of them become tasks."""

import numpy as np
import pandas as pd
import pytest

from core.cohort.feature_layout import note_first_texts
from core.cohort.tasks import TaskCollector
from core.events.stays import pair_stays
from tests.support.records import instances_of, site, stream


def tasks_of(rows, min_positive=1, mapping=None):
    events, _ = stream(rows, mapping)
    stays = pair_stays(events).table
    instances, _ = instances_of(events, stays, shifted=True)
    items = list(events["item"].cat.categories)
    names = [""] * len(items)
    note_first_texts(events, "name", names)
    collector = TaskCollector(items, names)
    collector.add(events, instances)
    return events, instances, collector.tasks(lambda kind: min_positive)


def random_rows(seed):
    rng = np.random.default_rng(seed)
    rows = []
    for patient in (1, 2, 3):
        start = pd.Timestamp("2026-01-01 10:00") + pd.Timedelta(hours=int(rng.integers(0, 60)))
        rows += [(patient, start, "IN"), (patient, start + pd.Timedelta(days=3), "OUT")]
        rows += [(patient, start + pd.Timedelta(days=4), "IN"), (patient, start + pd.Timedelta(days=6), "OUT")]
        for _ in range(60):
            time = start + pd.Timedelta(hours=int(rng.integers(-48, 200)))
            rows.append(
                (
                    patient,
                    time,
                    rng.choice(["LAB//K", "LAB//Na", "ASK//Mg", "LAB//Mg", "START//A", "GIVE//B", "STOP//A"]),
                )
            )
    return rows


@pytest.mark.parametrize("seed", range(3))
def test_decisions_agree_with_looking_into_every_window(seed):
    events, instances, tasks = tasks_of(random_rows(seed))
    decisions = tasks.decisions.toarray()
    assert set(tasks.table["task_key"]) == {
        "LAB_ORDER/K",
        "LAB_ORDER/Na",
        "LAB_ORDER/Mg",
        "MEDICATION/a",
        "MEDICATION/b",
    }
    wanted = {
        "LAB_ORDER/Mg": "LAB_ORDER",
        "LAB_ORDER/K": "LAB_RESULT",
        "LAB_ORDER/Na": "LAB_RESULT",
        "MEDICATION/a": "MEDICATION_ORDER",
        "MEDICATION/b": "ADMINISTRATION",
    }
    for t, key in enumerate(tasks.table["task_key"]):
        mine = events[(events["item"] == key.split("/")[1]) & (events["kind"] == wanted[key])]
        for row, instance in instances.iterrows():
            times = mine.loc[mine["patient_id"] == instance["patient_id"], "time"]
            snapshot = instance["snapshot_at"]
            expected = ((times >= snapshot) & (times < snapshot + pd.Timedelta(days=1))).any()
            assert decisions[row, t] == expected
    assert tasks.table["n_positive"].tolist() == decisions.sum(axis=0).tolist()


def test_the_window_begins_at_the_snapshot_and_ends_before_the_next():
    rows = [(1, "2026-01-01 10:00", "IN"), (1, "2026-01-04 12:00", "OUT")]
    marks = [
        ("A", "2026-01-02 07:59:59"),
        ("B", "2026-01-02 08:00:00"),
        ("C", "2026-01-03 07:59:59"),
        ("D", "2026-01-03 08:00:00"),
    ]
    _, _, tasks = tasks_of([*rows, *((1, time, f"LAB//{name}") for name, time in marks)])
    by_name = dict(zip(tasks.table["name"], tasks.decisions.toarray().T.tolist(), strict=True))
    assert by_name == {"B": [True, False, False], "C": [True, False, False], "D": [False, True, False]}


def test_tasks_need_enough_positive_instances_and_repeats_in_a_window_count_once():
    rows = [
        (1, "2026-01-01 10:00", "IN"),
        (1, "2026-01-04 12:00", "OUT"),
        (1, "2026-01-02 09:00", "LAB//K"),
        (1, "2026-01-03 09:00", "LAB//K"),
        (1, "2026-01-02 09:00", "LAB//Na"),
        (1, "2026-01-02 10:00", "LAB//Na"),
    ]
    _, _, tasks = tasks_of(rows, min_positive=2)
    assert tasks.table["name"].tolist() == ["K"]


def test_a_drug_and_a_lab_of_one_name_are_two_tasks():
    rows = [
        (1, "2026-01-01 10:00", "IN"),
        (1, "2026-01-04 12:00", "OUT"),
        (1, "2026-01-02 09:00", "LAB//iron"),
        (1, "2026-01-02 09:00", "START//Iron"),
    ]
    _, _, tasks = tasks_of(rows)
    assert tasks.table["task_key"].tolist() == ["LAB_ORDER/iron", "MEDICATION/iron"]


def test_held_doses_are_no_decisions():
    words = {"counts": ["Given"], "does_not_count": ["Not Given"]}
    rows = [
        (1, "2026-01-01 10:00", "IN"),
        (1, "2026-01-04 12:00", "OUT"),
        (1, "2026-01-02 09:00", "GIVE//A//Not Given"),
        (1, "2026-01-03 09:00", "GIVE//A//Given"),
    ]
    _, _, tasks = tasks_of(rows, mapping=site(event_words=words))
    assert tasks.decisions.toarray().ravel().tolist() == [False, True, False]


def test_no_decision_at_all_gives_an_empty_table():
    _, instances, tasks = tasks_of(
        [(1, "2026-01-01 10:00", "IN"), (1, "2026-01-04 12:00", "OUT"), (1, "2025-01-02 09:00", "LAB//K")]
    )
    assert tasks.decisions.shape == (len(instances), 0)
    assert list(tasks.table.columns) == ["task_key", "name", "kind", "n_positive"]
