"""Drugs are on when the source's own intervals say so, in every format; a plain pandas road counts the same."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import yaml

from alertreview.files import preset_paths
from alertreview.records.importing import build_cohort
from tests.support.fhir_records import order
from tests.support.lying_records import FORMATS, Act, hospital, write


def on_now(cohort):
    """Pairs of instance and item that are on, from the features."""
    dictionary = cohort.feature_dictionary
    is_state = (dictionary["aspect"] == "on_now") & ~dictionary["name"].str.startswith("Any of ")
    items = dict(zip(cohort.events["name"].astype("str"), cohort.events["item"].astype("str"), strict=True))
    found = cohort.features.tocsc()[:, np.flatnonzero(is_state)].tocoo()
    sources = dictionary.loc[is_state, "source"].tolist()
    return {(int(row), items.get(sources[column], sources[column])) for row, column in zip(*found.coords, strict=True)}


def test_two_orders_stopped_in_one_minute_are_both_off(tmp_path):
    for source_format in ("csv", "omop"):
        acts = [act for act in hospital() if act.what not in ("start", "stop")]
        for patient in range(14):
            day = pd.Timestamp("2026-01-01") + pd.Timedelta(days=patient)
            for hours, what in ((12, "start"), (16, "start"), (40, "stop"), (40, "stop")):
                acts.append(Act(patient, str(day + pd.Timedelta(hours=hours))[:16], what, "Heparin"))
        path = write(acts, source_format, tmp_path / source_format)
        cohort, _ = build_cohort(path, format=source_format, min_positive=1)
        days = cohort.instances["day_of_stay"].to_numpy()
        assert {(days[row], item) for row, item in on_now(cohort)} == {(2, "heparin")}
        starts = cohort.events[cohort.events["kind"] == "MEDICATION_ORDER"]
        assert len(starts) == 28


@pytest.mark.parametrize("source_format", FORMATS)
def test_states_are_the_same_in_every_format_and_sent_twice(source_format, tmp_path):
    plain, _ = build_cohort(write(hospital(), "csv", tmp_path / "plain"), format="csv", min_positive=1)
    acts = hospital()
    cohort, _ = build_cohort(write(acts, source_format, tmp_path / "once"), format=source_format, min_positive=1)
    assert on_now(cohort) == on_now(plain)
    if source_format != "omop":
        twice, report = build_cohort(
            write([*acts, *acts], source_format, tmp_path / "twice"), format=source_format, min_positive=1
        )
        assert on_now(twice) == on_now(plain)
        # A patient is one resource of FHIR, and the care unit part of the encounter.
        n_once = sum(act.what in ("birth", "sex") for act in acts) if source_format == "fhir" else 0
        assert report.read.n_duplicates_dropped == len(acts) - n_once


@pytest.mark.parametrize("source_format", FORMATS)
def test_a_drug_stopped_in_the_minute_of_its_start_is_no_decision(source_format, tmp_path):
    acts = hospital()
    void = [Act(3, "2026-01-05 12:00", "start", "Warfarin"), Act(3, "2026-01-05 12:00", "stop", "Warfarin")]
    cohort, report = build_cohort(write([*acts, *void], source_format, tmp_path), format=source_format, min_positive=1)
    assert not cohort.tasks["task_key"].str.contains("warfarin", case=False).any()
    check = next(each for each in report.checks if each.name == "never_done")
    assert check.count == 2


@pytest.mark.parametrize("source_format", FORMATS)
def test_a_drug_most_of_whose_orders_end_at_once_is_ordered_once(source_format, tmp_path):
    """One order among many that ends at once was called off."""
    once = [
        Act(patient, f"2026-01-{patient + 3:02d} 12:07", what, "Vaccine")
        for patient in range(6)
        for what in ("start", "stop")
    ]
    void = [Act(3, "2026-01-05 12:00", "start", "Heparin"), Act(3, "2026-01-05 12:00", "stop", "Heparin")]
    path = write([*hospital(), *once, *void], source_format, tmp_path)
    cohort, report = build_cohort(path, format=source_format, min_positive=1)
    decided = dict(zip(cohort.tasks["name"], np.asarray(cohort.decisions.sum(axis=0)).ravel(), strict=True))
    assert decided["Vaccine"] == 6
    assert not any("vaccine" in item.lower() for _, item in on_now(cohort))
    assert next(each.count for each in report.checks if each.name == "never_done") == 2
    assert any(remark.startswith("Vaccine: most orders end") for remark in report.read.remarks)


@pytest.mark.parametrize("source_format", ["omop", "fhir"])
def test_an_end_that_is_the_date_of_the_start_is_the_end_of_that_day(source_format, tmp_path):
    """The start has a time of day; the rows of both name their order."""
    acts = [replace(act, time=act.time[:10]) if act.what == "stop" else act for act in hospital()]
    acts = [replace(act, time=f"{act.time[:10]} 06:30") if act.what == "start" else act for act in acts]
    starts = {(act.patient, act.time[:10]) for act in acts if act.what == "start"}
    acts = [act for act in acts if act.what != "stop"] + [Act(p, day, "stop", "Heparin") for p, day in sorted(starts)]
    cohort, report = build_cohort(write(acts, source_format, tmp_path), format=source_format, min_positive=1)
    assert next(each.count for each in report.checks if each.name == "turned_orders") == 0
    on = {row for row, item in on_now(cohort) if "heparin" in item.lower()}
    patients = cohort.instances["patient_id"].str.lstrip("P").astype("int").tolist()
    days = cohort.instances["snapshot_at"].astype("str").str[:10].tolist()
    assert on == {row for row, each in enumerate(zip(patients, days, strict=True)) if each in starts}


@pytest.mark.parametrize("source_format", FORMATS)
def test_a_stop_on_a_sentinel_date_leaves_the_order_open_until_discharge(source_format, tmp_path):
    acts = [act for act in hospital() if not (act.patient == 3 and act.what in ("start", "stop"))]
    forever = [Act(3, "2026-01-05 12:00", "start", "Heparin"), Act(3, "9999-12-31 00:00", "stop", "Heparin")]
    cohort, _ = build_cohort(write([*acts, *forever], source_format, tmp_path), format=source_format, min_positive=1)
    mine = cohort.instances["patient_id"].str.lstrip("P").astype("int").to_numpy() == 3
    times = cohort.instances["snapshot_at"].to_numpy()
    assert {str(times[row])[:10] for row, _ in on_now(cohort) if mine[row]} == {
        "2026-01-06",
        "2026-01-07",
        "2026-01-08",
        "2026-01-09",
    }


def test_orders_with_an_identity_keep_apart_what_rows_without_one_mix(tmp_path):
    acts = [act for act in hospital() if act.what not in ("start", "stop")]
    path = write(acts, "csv", tmp_path)
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = [
        "P000,2026-01-01 12:00,MEDICATION//START//Heparin,,,,A1",
        "P000,2026-01-01 12:00,MEDICATION//START//Heparin,,,,A2",
        "P000,2026-01-02 12:00,MEDICATION//STOP//Heparin,,,,A1",
        "P000,2026-01-04 12:00,MEDICATION//STOP//Heparin,,,,A2",
    ]
    text = [lines[0] + ",order_id", *(line + "," for line in lines[1:]), *rows]
    path.write_text("\n".join(text), encoding="utf-8")
    cohort, _ = build_cohort(path, format="csv", min_positive=1)
    days = cohort.instances["day_of_stay"].to_numpy()
    assert {days[row] for row, _ in on_now(cohort)} == {2, 3, 4}


REUSED = [
    # Changed twice under one name, begun again under it, and begun once more before the discharge.
    *(("A1", "start", 12), ("A1", "start", 16), ("A1", "stop", 40), ("A1", "start", 60), ("A1", "stop", 84)),
    # Two orders of one name that end in one minute.
    *(("B1", "start", 12), ("B1", "start", 60), ("B1", "stop", 84), ("B1", "stop", 84)),
]


@pytest.mark.parametrize("source_format", ["csv", "meds"])
@pytest.mark.parametrize(("name", "days"), [("A1", {2, 4}), ("B1", {2, 3, 4})])
def test_a_stop_ends_all_that_was_begun_under_the_name_of_its_order(tmp_path, source_format, name, days):
    acts = [act for act in hospital() if act.what not in ("start", "stop")]
    named = [
        (what, str(pd.Timestamp("2026-01-01") + pd.Timedelta(hours=hours))) for of, what, hours in REUSED if of == name
    ]
    acts += [Act(0, time[:16], what, "Heparin") for what, time in named]
    path = write(acts, source_format, tmp_path)
    if source_format == "csv":
        table = pd.read_csv(path, dtype="str", keep_default_na=False)
        table.assign(order_id=np.where(table["code"].str.contains("HEPARIN", case=False), name, "")).to_csv(
            path, index=False
        )
    else:
        table = pd.read_parquet(path / "data" / "0.parquet")
        table.assign(order_id=name).to_parquet(path / "data" / "0.parquet", index=False)
    content = yaml.safe_load(preset_paths()["csv" if source_format == "csv" else "mimic-iv-meds"].read_text())
    content |= {"calendar_is_shifted": False} | ({} if source_format == "csv" else {"columns": {"order": "order_id"}})
    (tmp_path / "own.yaml").write_text(yaml.safe_dump(content))
    cohort, _ = build_cohort(path, format=source_format, mapping=tmp_path / "own.yaml", min_positive=1)
    assert {cohort.instances["day_of_stay"].iloc[row] for row, _ in on_now(cohort)} == days


def rows_of_orders(folder, name, *orders):
    """A hospital in one format whose only orders are starts and stops of heparin, with offsets, routes and doses."""
    acts = [act for act in hospital() if act.what not in ("start", "stop")]
    path = write(acts, name, folder)
    if name == "csv":
        lines = [f"P000,{time},MEDICATION//{what}//Heparin,,,,{dose},{route}" for time, what, dose, route in orders]
        old = path.read_text(encoding="utf-8").splitlines()
        text = [f"{old[0]},dose,route", *(f"{each},," for each in old[1:]), *lines]
        path.write_text("\n".join(text), encoding="utf-8")
    else:
        table = pd.read_parquet(path / "data" / "0.parquet")
        new = pd.DataFrame(orders, columns=["time", "code", "dose", "route"])
        new = new.assign(subject_id=0, code="MEDICATION//" + new["code"] + "//Heparin")
        zone = "Europe/Zurich"
        table["time"] = table["time"].dt.tz_localize(zone)
        new["time"] = pd.to_datetime(new["time"], utc=True).dt.tz_convert(zone)
        both = pd.concat([table, new], ignore_index=True)
        both.to_parquet(path / "data" / "0.parquet", index=False)
    content = yaml.safe_load(preset_paths()["csv" if name == "csv" else "mimic-iv-meds"].read_text())
    content |= {"calendar_is_shifted": False, "timezone": "Europe/Zurich"}
    content |= {"details": {"dose": "dose", "route": "route"}}
    (folder / "own.yaml").write_text(yaml.safe_dump(content))
    return build_cohort(path, format=name, mapping=folder / "own.yaml", min_positive=1)


@pytest.mark.parametrize("source_format", ["csv", "meds"])
@pytest.mark.parametrize("other", [("5000", "SC"), ("800", "IV")])
def test_orders_that_differ_by_dose_or_route_alone_are_two(tmp_path, source_format, other):
    """One of them has no stop."""
    starts = [("2026-01-01 12:00:00+01:00", "START", *each) for each in (("5000", "IV"), other)]
    stop = ("2026-01-02 12:00:00+01:00", "STOP", "", "")
    cohort, _ = rows_of_orders(tmp_path, source_format, *starts, stop)
    assert len({cohort.instances["day_of_stay"].iloc[row] for row, _ in on_now(cohort)}) == 5


@pytest.mark.parametrize("source_format", ["csv", "meds"])
@pytest.mark.parametrize(("clock", "is_order"), [("02:30", True), ("03:30", False)])
def test_an_order_of_the_hour_that_clocks_repeat_is_not_called_off(tmp_path, source_format, clock, is_order):
    first, second = ("+02:00", "+01:00") if is_order else ("+01:00", "+01:00")
    stay = [(f"2025-10-25 12:00:00{first}", "START", "", ""), (f"2025-10-25 13:00:00{first}", "STOP", "", "")]
    night = [(f"2025-10-26 {clock}:00{first}", "START", "", ""), (f"2025-10-26 {clock}:00{second}", "STOP", "", "")]
    _, report = rows_of_orders(tmp_path, source_format, *stay, *night)
    assert next(each.count for each in report.checks if each.name == "never_done") == (0 if is_order else 2)


@pytest.mark.parametrize("source_format", ["fhir", "meds"])
def test_rows_with_an_end_are_orders_of_their_own_whatever_they_are_called(tmp_path, source_format):
    """One name for a long order and for a short one within it, and for one that ends with the long one."""
    acts = [act for act in hospital() if act.what not in ("start", "stop")]
    day = pd.Timestamp("2026-01-01")
    times = [(day + pd.Timedelta(hours=a), day + pd.Timedelta(hours=b)) for a, b in ((12, 84), (16, 40), (60, 84))]
    path = write(acts, source_format, tmp_path / "source")
    mapping = source_format
    if source_format == "fhir":
        with (path / "MedicationRequest.000.ndjson").open("w") as file:
            for start, end in times:
                period = {"start": f"{start.isoformat()}Z", "end": f"{end.isoformat()}Z"}
                bounds = [{"timing": {"repeat": {"boundsPeriod": period}}}]
                file.write(json.dumps(order(period["start"], "P000", id="1", dosageInstruction=bounds)) + "\n")
    else:
        table = pd.read_parquet(path / "data" / "0.parquet")
        rows = pd.DataFrame({"subject_id": 0, "time": [each for each, _ in times], "code": "DRUG//Aspirin"})
        rows = pd.concat([table, rows.assign(order_id="1", end=[each for _, each in times])], ignore_index=True)
        rows.to_parquet(path / "data" / "0.parquet", index=False)
        content = yaml.safe_load(preset_paths()["mimic-iv-meds"].read_text())
        rules = [
            {"code": r"DRUG//(?P<item>.+)//END", "kind": "MEDICATION_STOP"},
            {"code": r"DRUG//(?P<item>.+)", "kind": "MEDICATION_ORDER"},
        ]
        content |= {
            "calendar_is_shifted": False,
            "columns": {"order": "order_id", "end": "end"},
            "rules": rules + content["rules"],
        }
        mapping = tmp_path / "own.yaml"
        mapping.write_text(yaml.safe_dump(content))
    cohort, _ = build_cohort(path, format=source_format, mapping=mapping, min_positive=1)
    assert {cohort.instances["day_of_stay"].iloc[row] for row, _ in on_now(cohort)} == {2, 3, 4}


@pytest.mark.real_data
def test_the_open_omop_records_have_the_states_of_their_own_intervals(real_data):
    folder = real_data / "omop_mimic_iv_demo"
    cohort, _ = build_cohort(folder, format="omop")
    table = pd.read_csv(
        next(folder.glob("*drug_exposure*")),
        dtype={"person_id": "str", "drug_source_value": "str"},
        keep_default_na=False,
    )
    table = table[~table["drug_type_concept_id"].isin([32818, 38000180, 38000179])]
    spelled = table["drug_source_value"].str.split().str.join(" ").str.casefold()
    table["item"] = table["drug_concept_id"].astype("str").where(table["drug_concept_id"] != 0, spelled)
    table["start"] = pd.to_datetime(table["drug_exposure_start_datetime"])
    table["end"] = pd.to_datetime(table["drug_exposure_end_datetime"])
    instances = cohort.instances[["patient_id", "snapshot_at"]].reset_index(names="row")
    both = table.merge(instances, left_on="person_id", right_on="patient_id")
    on = both[(both["start"] < both["snapshot_at"]) & (both["snapshot_at"] <= both["end"])]
    expected = set(zip(on["row"], on["item"], strict=True))
    found = on_now(cohort)
    assert len(expected) > 40_000
    assert len(expected ^ found) <= 0.001 * len(expected | found)


def test_the_order_of_rows_says_nothing(tmp_path):
    acts = hospital()
    plain, _ = build_cohort(write(acts, "csv", tmp_path / "plain"), format="csv", min_positive=1)
    turned, _ = build_cohort(write(acts[::-1], "csv", tmp_path / "turned"), format="csv", min_positive=1)
    assert turned.content_hash == plain.content_hash
    shifted = [replace(act) for act in acts]
    again, _ = build_cohort(write(shifted, "csv", tmp_path / "again"), format="csv", min_positive=1)
    assert again.content_hash == plain.content_hash
