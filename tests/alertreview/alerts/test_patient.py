"""What a page shows of a patient: known at the snapshot, and nothing later but the decision in question."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from alertreview.alerts.patient import SnapshotViews
from alertreview.files import preset_paths
from alertreview.records.importing import import_snapshot
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


def test_last_values_are_the_latest_known_ones_of_every_lab_of_the_stay(views: SnapshotViews) -> None:
    n_seen = n_in_words = 0
    for row in some_rows(views):
        snapshot = views.snapshot.instances.iloc[row]
        events = views.snapshot.events_of(snapshot["patient_id"])
        stays = views.snapshot.stays.set_index("stay_id")
        since = stays.loc[snapshot["stay_id"], "admitted_at"] - pd.Timedelta(hours=24)
        known = events[
            (events["known_at"] < snapshot["snapshot_at"]).to_numpy()
            & (events["time"] >= since).to_numpy()
            & events["kind"].isin(["LAB_RESULT", "OBSERVATION"]).to_numpy()
        ]
        last_values = views.case(row, "LAB_ORDER/Potassium").last_values
        assert {value.name for value in last_values} >= set(known["name"][known["value"].notna()])
        for last in last_values:
            own = known[(known["name"] == last.name).to_numpy()]
            if not len(own):
                continue
            assert last.value == own["value"].iloc[-1] or (last.value is None and np.isnan(own["value"].iloc[-1]))
            if last.value is None and own["value"].notna().any():
                n_in_words += 1
                assert last.text == own["text"].iloc[-1]
                assert last.trend[-1] == own["value"].dropna().iloc[-1]
            assert last.hours_old == pytest.approx(
                (snapshot["snapshot_at"] - own["time"].iloc[-1]) / pd.Timedelta(hours=1)
            )
            assert last.hours_old >= 0
            n_seen += 1
    assert n_seen > 30
    assert n_in_words > 0, "a later result in words must not hide behind an older number"


def test_the_lab_in_question_comes_first_also_where_it_was_never_measured(views: SnapshotViews) -> None:
    ages = []
    for row in some_rows(views):
        first = views.case(row, "LAB_ORDER/Troponin I").last_values[0]
        assert first.name == "Troponin I"
        ages.append(first.hours_old)
    assert None in ages
    assert any(age is not None for age in ages)


def test_every_order_that_runs_at_the_snapshot_reaches_its_line(views: SnapshotViews) -> None:
    n_running = 0
    for row in some_rows(views):
        snapshot = views.snapshot.instances.iloc[row]
        events = views.snapshot.events_of(snapshot["patient_id"])
        stays = views.snapshot.stays.set_index("stay_id")
        known = events[
            (events["time"] < snapshot["snapshot_at"]).to_numpy()
            & (events["time"] >= stays.loc[snapshot["stay_id"], "admitted_at"] - pd.Timedelta(hours=24)).to_numpy()
        ]
        running = set()
        for event in known.itertuples():
            if event.kind == "MEDICATION_ORDER":
                running.add(event.name)
            elif event.kind == "MEDICATION_STOP":
                running.discard(event.name)
        patient = views.case(row, "LAB_ORDER/Potassium")
        assert {drug.name for drug in patient.drugs_now} == running
        for drug in patient.drugs_now:
            assert drug.periods[-1][1] == patient.timeline.snapshot_at
        n_running += len(running)
    assert n_running > 30


END = "{p},2026-01-09 06:00,DISCHARGE,,,,,,,,\n"


def made_views(tmp_path: Path, rows: str, end: str = END, names: dict[str, str] | None = None) -> SnapshotViews:
    """Two patients with one stay each and the same further rows."""
    stay = "{p},2026-01-01 06:00,ADMISSION//Chest pain,,,,,,,,\n" + end
    head = "patient,time,code,value,text,unit,end,dose,route,range_low,range_high\n"
    source = tmp_path / "records.csv"
    tmp_path.mkdir(exist_ok=True)
    source.write_text(head + "".join((stay + rows).format(p=p) for p in ("a", "b")))
    content = yaml.safe_load(preset_paths()["csv"].read_text())
    own = tmp_path / "own.yaml"
    own.write_text(yaml.safe_dump({**content, "name": "own", "min_positive": 1, "names": names or {}}))
    return SnapshotViews(read_snapshot(import_snapshot(source, tmp_path / "home", format="csv", mapping=own).folder))


ROWS = """{p},2026-01-01 07:00,MEDICATION//START//Heparin,,,,,18 units/kg/h,IV,,
{p},2026-01-01 07:10,MEDICATION//START//Aspirin,,,,,81 mg,PO,,
{p},2026-01-01 07:40,MEDICATION//STOP//Aspirin,,,,,,,,
{p},2026-01-01 06:30,LAB//K,5.9,,mmol/L,,,,3.5,5.0
{p},2026-01-01 06:30,LAB//Na,120,,mmol/L,,,,,
{p},2026-01-01 06:30,LAB//Glucose,95,,mg/dL,,,,,
{p},2026-01-01 06:40,DIAGNOSIS//Heart failure,,,,,,,,
{p},2026-01-02 09:00,DIAGNOSIS//Pneumonia,,,,,,,,
{p},,ALLERGY//Penicillin,,rash,,,,,,
{p},2026-01-02 06:26,MEDICATION//START//Warfarin,,,,,5 mg,PO,,
"""


def test_dose_route_and_reference_range_come_from_the_source_and_only_a_range_sets_a_flag(tmp_path: Path) -> None:
    views = made_views(tmp_path, ROWS)
    key = str(views.snapshot.tasks["task_key"].iloc[0])
    patient = views.case(0, key)
    values = {value.name: value for value in patient.last_values}
    assert (values["K"].flag, values["K"].low, values["K"].high) == ("high", 3.5, 5.0)
    assert {values[name].flag for name in ("Na", "Glucose")} == {""}, "no flag without a reference range"
    assert [(drug.name, drug.dose, drug.route) for drug in patient.drugs_now] == [("Heparin", "18 units/kg/h", "IV")]
    drugs = {drug.name: drug for drug in patient.timeline.drugs}
    assert not drugs["Aspirin"].is_running
    assert "Warfarin" not in drugs, "it was ordered after the snapshot"


def test_what_was_known_only_later_is_not_in_the_background(tmp_path: Path) -> None:
    views = made_views(tmp_path, ROWS)
    key = str(views.snapshot.tasks["task_key"].iloc[0])
    first, second, third = (dict(views.case(row, key).background) for row in (0, 1, 2))
    assert first["Admission"] == "Chest pain", "the source does not say whether this is the reason or only the type"
    assert first["Problems and diagnoses"] == second["Problems and diagnoses"] == "Heart failure"
    assert third["Problems and diagnoses"] == "Heart failure, Pneumonia"
    assert views.case(0, key).absent == ("Procedures",)
    assert first["Allergies"] == "Penicillin (undated)", "an allergy without a date is said to be one"


def test_a_date_without_a_time_and_a_code_without_a_name_tell_a_reader_nothing(tmp_path: Path) -> None:
    rows = """{p},2026-01-02 00:00,PROCEDURE//Bypass,,,,,,,,
{p},2026-01-01 06:40,PROCEDURE//225792,,,,,,,,
{p},2026-01-01 06:41,PROCEDURE//ICD//10//02HV33Z,,,,,,,,
{p},2026-01-01 06:42,REASON//Angina,,,,,,,,
"""
    views = made_views(tmp_path, ROWS + rows)
    key = str(views.snapshot.tasks["task_key"].iloc[0])
    told = [dict(views.case(row, key).background) for row in (0, 1, 2)]
    nameless = "2 without a name in the source"
    assert [each["Procedures"] for each in told] == [nameless, nameless, f"Bypass, {nameless}"]
    assert told[0]["Admitted for"] == "Angina"


def test_what_a_patient_does_not_have_is_told_from_what_the_source_does_not(tmp_path: Path) -> None:
    rows = ROWS.replace("{p},,ALLERGY//Penicillin", "b,,ALLERGY//Penicillin")
    rows += "a,,DIAGNOSIS//Gout,,,,,,,,\nb,2026-01-01 06:50,PROCEDURE//Dialysis,,,,,,,,\n"
    views = made_views(tmp_path, rows.replace("{p},2026-01-01 06:40,DIAGNOSIS//Heart failure,,,,,,,,\n", ""))
    key = str(views.snapshot.tasks["task_key"].iloc[0])
    of = {str(patient): row for row, patient in reversed(list(enumerate(views.snapshot.instances["patient_id"])))}
    a, b = views.case(of["a"], key), views.case(of["b"], key)
    assert "Gout" not in str(a.background), "an undated diagnosis may have been made later"
    assert (a.unknown, a.absent) == (("Allergies", "Procedures"), ())
    assert (b.unknown, b.absent) == (("Problems and diagnoses",), ())


def test_a_decision_after_midnight_keeps_its_own_date_and_time(tmp_path: Path) -> None:
    views = made_views(tmp_path, ROWS)
    timeline = views.timeline(0, next(key for key in views.snapshot.tasks["task_key"] if "arfarin" in key))
    assert [f"{time:%d %H:%M}" for time in timeline.orders_in_window] == ["02 06:26"]


def test_a_range_in_another_unit_than_the_value_is_not_applied(tmp_path: Path) -> None:
    rows = """{p},2026-01-01 06:10,LAB//RESULT//Kalium//mg/dL,4,,,,,,3,4
{p},2026-01-01 06:30,LAB//RESULT//Kalium//mmol/L,5.9,,,,,,,
"""
    views = made_views(tmp_path, ROWS + rows)
    key = str(views.snapshot.tasks["task_key"].iloc[0])
    values = [value for value in views.case(0, key).last_values if value.name == "Kalium"]
    assert all(value.flag == "" for value in values if value.unit == "mmol/L")


def test_results_in_conflicting_units_are_never_drawn_on_one_scale(tmp_path: Path) -> None:
    rows = "".join(f"{{p}},2026-01-0{day} 06:10,LAB//Kalium,{day + 3},,mmol/L,,,,,\n" for day in (1, 2, 3))
    rows += "{p},2026-01-03 07:00,LAB//Kalium,15.6,,mg/dL,,,,3,4\n"
    views = made_views(tmp_path, ROWS + rows)
    key = str(views.snapshot.tasks["task_key"].iloc[0])
    patient = views.case(2, key)
    (drawn,) = [lab for lab in patient.timeline.labs if lab.name == "Kalium"]
    assert (drawn.unit, drawn.values) == ("mmol/L", (4, 5, 6))
    (last,) = [value for value in patient.last_values if value.name == "Kalium"]
    assert (last.value, last.flag, last.text) == (None, "", "no value"), "a later result that no scale holds is said"
    # Of a patient who has no other result it is said too, and not that it was never measured.
    rows = "".join(f"a,2026-01-0{day} 06:10,LAB//Kalium,{day + 3},,mmol/L,,,,,\n" for day in (1, 2, 3))
    views = made_views(tmp_path / "lone", ROWS + rows + "b,2026-01-01 07:00,LAB//Kalium,15.6,,mg/dL,,,,,\n")
    (key,) = views.snapshot.tasks.loc[views.snapshot.tasks["name"] == "Kalium", "task_key"]
    row = views.snapshot.instances["patient_id"].tolist().index("b")
    assert [(value.text, value.hours_old) for value in views.case(row, key).last_values[:1]] == [("no value", 1.0)]


@pytest.mark.parametrize(
    ("units", "names"),
    [
        (("#/uL", "K/uL"), ["Lymphocytes (#/uL)", "Lymphocytes (K/uL)"]),
        (("g/dL", "g/dL"), ["Lymphocytes (g/dL) [50811]", "Lymphocytes (g/dL) [51222]"]),
        (("", ""), ["Lymphocytes [50811]", "Lymphocytes [51222]"]),
    ],
)
def test_two_labs_of_one_name_have_a_lane_and_a_range_each(
    tmp_path: Path, units: tuple[str, str], names: list[str]
) -> None:
    rows = "".join(
        f"{{p}},2026-01-0{day} 06:30,LAB//{item},{value},,{unit},,,,{value - 1},{value + 1}\n"
        for day in (1, 2)
        for item, unit, value in zip(("50811", "51222"), units, (1200, 1.2), strict=True)
    )
    views = made_views(tmp_path, ROWS + rows, names={"50811": "Lymphocytes", "51222": "Lymphocytes"})
    tasks = views.snapshot.tasks.set_index("name")["task_key"]
    for own, other in (names, names[::-1]):
        case = views.case(1, tasks[own], [other])
        first, second = case.timeline.labs[:2]
        assert (first.name, second.name) == (own, other)
        assert len(set(first.values)) == len(set(second.values)) == 1
        assert case.last_values[0].name == own, "the lab in question was measured"
        assert first.low == first.values[0] - 1


def test_the_labs_of_a_panel_come_first_in_the_order_of_their_lanes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = "".join(f"{{p}},2026-01-02 06:30,LAB//{lab},,,,,\n" for lab in ("Na,120,,mmol/L", "Glucose,95,,mg/dL"))
    views = made_views(tmp_path, ROWS + again)
    keys = views.snapshot.tasks.set_index("name")["task_key"]
    monkeypatch.setattr(views, "_done_by", lambda _: (keys["Na"], keys["Glucose"]))
    case = views.case(0, keys["Na"])
    assert [value.name for value in case.last_values][:2] == ["Na", "Glucose"]
    assert [lab.name for lab in case.timeline.labs][:2] == ["Na", "Glucose"]


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ("DISCHARGE 03 07:45, DEATH 03 07:45", ["Died 48 h after 08:00."]),
        ("DISCHARGE 03 09:00, DEATH 03 07:45", ["Died 48 h after 08:00."]),
        ("DISCHARGE 02 07:45, DEATH 03 07:45", ["Discharged 24 h after 08:00.", "Died 48 h after 08:00."]),
        ("DISCHARGE 02 07:45", ["Discharged 24 h after 08:00."]),
    ],
)
def test_who_dies_in_hospital_is_not_said_to_be_discharged(tmp_path: Path, ends: str, said: list[str]) -> None:
    rows = "".join(
        f"{{p}},2026-01-{day} {time},{word},,,,,,,,\n" for word, day, time in map(str.split, ends.split(", "))
    )
    views = made_views(tmp_path, ROWS + rows, end="")
    assert list(views.record_after(0, str(views.snapshot.tasks["task_key"].iloc[0])))[1:] == said


@pytest.mark.parametrize("rows", ["", "{p},2026-01-01 06:30,LAB//K,5.9,,mmol/L,,,,,\n"])
def test_a_case_with_next_to_nothing_is_still_a_case(tmp_path: Path, rows: str) -> None:
    order = "{p},2026-01-02 06:26,MEDICATION//START//Warfarin,,,,,,,,\n"
    views = made_views(tmp_path, rows + order)
    key = str(views.snapshot.tasks["task_key"].iloc[-1])
    patient = views.case(0, key)
    assert patient.drugs_now == ()
    assert len(patient.last_values) == bool(rows)


def test_the_record_afterwards_agrees_with_the_decision(views: SnapshotViews) -> None:
    tasks = list(views.snapshot.tasks.itertuples())
    for place, row in enumerate(some_rows(views)):
        for column in range(place % 5, len(tasks), 5):
            task = tasks[column]
            sentences = views.record_after(row, task.task_key)
            done = "ordered" if task.kind == Kind.LAB_ORDER else "given"
            assert sentences[0].startswith(f"{task.name} ")
            verb = re.search(r"\b(was|were|is|are|has|have)\b", " ".join(sentences).replace(task.name, ""))
            assert verb is None, "whether a name is one thing or many, nothing tells"
            assert done in sentences[0]
            decided = bool(views.snapshot.decisions[row, column])
            within = (
                " not " not in sentences[0].removeprefix(task.name)
                and "Nothing within the 24 h in question." not in sentences
            )
            assert decided == within


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (END, "Warfarin not ordered in the 72 h after 08:00."),
        ("{p},2026-01-03 06:00,DISCHARGE,,,,,,,,\n", "Warfarin not ordered in the 22 h after 08:00."),
        ("{p},2026-01-02 20:00,DEATH,,,,,,,,\n", "Warfarin not ordered in the 12 h after 08:00."),
        ("", "Warfarin not ordered in the 23 h after 08:00, where the patient's records end."),
    ],
)
def test_nothing_is_said_of_hours_after_the_end_of_the_stay_or_of_the_records(
    tmp_path: Path, end: str, said: str
) -> None:
    views = made_views(tmp_path, ROWS + "{p},2026-01-03 07:00,LAB//K,4.1,,mmol/L,,,,,\n", end=end)
    key = next(key for key in views.snapshot.tasks["task_key"] if "arfarin" in key)
    assert views.record_after(1, key)[0] == said


def test_the_window_is_as_long_as_the_cohort_says(tmp_path: Path, views: SnapshotViews) -> None:
    key = views.snapshot.tasks["task_key"].iloc[0]
    hours = views.snapshot.instances["window_hours"]
    rows = [int(hours.argmin()), int(hours.argmax())]
    assert hours.iloc[rows[0]] < 24 == hours.iloc[rows[1]]
    assert [views.timeline(row, key).window_hours for row in rows] == hours.iloc[rows].tolist()
    # Ordered again two days later, after a window that the discharge had cut.
    end = "{p},2026-01-01 12:00,HOSPITAL_DISCHARGE//HOME,,,,,,,,\n"
    again = "{p},2026-01-02 20:00,HOSPITAL_ADMISSION//EW,,,,,,,,\n"
    cut = made_views(tmp_path, ROWS.replace("{p},2026-01-02 06:26", "{p},2026-01-03 08:26") + again, end=end)
    key = next(key for key in cut.snapshot.tasks["task_key"] if "arfarin" in key)
    assert cut.record_after(0, key)[1] == "Nothing within the 4 h in question."


def test_a_panel_is_not_said_to_have_the_value_of_one_of_its_labs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    views = made_views(tmp_path, ROWS)
    key = next(key for key in views.snapshot.tasks["task_key"] if "arfarin" in key)
    events = views._events(0)
    monkeypatch.setattr(views, "_events", lambda _: replace(events, value=np.full_like(events.value, 13.0)))
    assert "(13" in views.record_after(0, key)[0]
    monkeypatch.setattr(views, "_done_by", lambda _: (key, "LAB_ORDER/another"))
    assert "(13" not in views.record_after(0, key)[0]


@pytest.mark.parametrize(
    ("time", "said"),
    [("08:00", "ordered on 1 Jan at 08:00"), ("08:20", "20 min after 08:00, on"), ("11:00", "3 h after 08:00, on")],
)
def test_a_decision_at_the_snapshot_is_not_called_no_hours_later(tmp_path: Path, time: str, said: str) -> None:
    views = made_views(tmp_path, ROWS.replace("2026-01-02 06:26", f"2026-01-01 {time}"))
    key = next(key for key in views.snapshot.tasks["task_key"] if "arfarin" in key)
    (sentence, *_) = views.record_after(0, key)
    assert sentence.startswith("Warfarin ")
    assert said in sentence
    assert "0 h after" not in sentence


def test_times_carry_the_sites_zone(views: SnapshotViews) -> None:
    timeline = views.timeline(0, views.snapshot.tasks["task_key"].iloc[0])
    assert timeline.snapshot_at.hour == 8
    assert timeline.snapshot_at.utcoffset() is not None
