"""Context facts from every format, stored with the snapshot and read patient by patient."""

import json
from pathlib import Path

import pandas as pd
import pytest
import yaml

from alertreview.files import preset_paths
from alertreview.records.import_site import extend_snapshot
from alertreview.records.importing import build_cohort, import_snapshot
from alertreview.records.snapshots import read_snapshot
from core.errors import SourceError
from core.events.facts import FACT_COLUMNS

HEAD = "patient,time,code,value,text,unit,end,dose,route,range_low,range_high\n"
EVENTS = """\
{p},2026-01-01 06:00,ADMISSION,,,,,,,,
{p},2026-01-01 07:00,MEDICATION//START//Heparin,,,,2026-01-02 07:00,5000 units,SC,,
{p},2026-01-02 07:00,MEDICATION//STOP//Heparin,,,,,,,,
{p},2026-01-01 07:30,LAB//K,5.9,,mmol/L,,,,3.5,5.0
{p},2026-01-03 09:00,DISCHARGE,,,,,,,,
"""
FACTS = "{p},2026-01-01 06:10,DIAGNOSIS//I50,,,,,,,,\n{p},,ALLERGY//Penicillin,,rash,,,,,,\n"
MORE = "{p},2026-01-01 06:20,DIAGNOSIS//J18,,,,,,,,\n"


def csv_of(path: Path, body: str) -> Path:
    path.write_text(HEAD + "".join(body.format(p=p) for p in ("a", "b")), encoding="utf-8")
    return path


def as_csv(folder: Path) -> tuple[Path, str]:
    return csv_of(folder / "records.csv", EVENTS + FACTS), "csv"


def as_meds(folder: Path) -> tuple[Path, str]:
    table = pd.read_csv(csv_of(folder / "records.csv", EVENTS + FACTS))
    table = table.rename(columns={"value": "numeric_value", "text": "text_value"})
    table["subject_id"] = table.pop("patient").map({"a": 1, "b": 2})
    table["time"], table["end"] = (pd.to_datetime(table[name], format="ISO8601") for name in ("time", "end"))
    path = folder / "meds" / "data"
    path.mkdir(parents=True)
    table.to_parquet(path / "0.parquet")
    return path.parent, "meds"


def as_omop(folder: Path) -> tuple[Path, str]:
    cdm = folder / "cdm"
    cdm.mkdir()
    tables = {
        "person": "person_id,gender_concept_id,year_of_birth\n1,8507,1950\n2,8507,1950\n",
        "visit_occurrence": "person_id,visit_concept_id,visit_start_datetime,visit_end_datetime\n"
        "{p},9201,2026-01-01 06:00,2026-01-03 09:00\n",
        "measurement": "person_id,measurement_concept_id,measurement_source_value,measurement_datetime,value_as_number,"
        "unit_source_value,range_low,range_high\n{p},0,K,2026-01-01 07:30,5.9,mmol/L,3.5,5.0\n",
        "drug_exposure": "person_id,drug_concept_id,drug_source_value,drug_type_concept_id,"
        "drug_exposure_start_datetime,drug_exposure_end_datetime,quantity,dose_unit_source_value,route_source_value\n"
        "{p},0,Heparin,32838,2026-01-01 07:00,2026-01-02 07:00,5000,units,SC\n",
        "condition_occurrence": "person_id,condition_concept_id,condition_source_value,condition_start_datetime,"
        "condition_status_concept_id\n{p},0,I50,2026-01-01 06:10,\n",
    }
    for name, text in tables.items():
        head, *rows = text.splitlines()
        body = "".join(f"{row}\n".format(p=p) for p in (1, 2) for row in rows)
        (cdm / f"{name}.csv").write_text(f"{head}\n{body if '{p}' in text else text.partition(chr(10))[2]}")
    return cdm, "omop"


def mapping(folder: Path, preset: str) -> Path:
    content = yaml.safe_load(preset_paths()[preset].read_text())
    details = {name: name for name in ("end", "dose", "route", "range_low", "range_high")}
    path = folder / f"{preset}.yaml"
    path.write_text(yaml.safe_dump({**content, "name": "own", "details": details, "min_positive": 1}))
    return path


def own_meds(folder: Path) -> Path:
    content = yaml.safe_load(preset_paths()["csv"].read_text())
    content |= {"name": "own", "format": "meds", "min_positive": 1, "columns": {"unit": "unit"}}
    content.pop("csv")
    path = folder / "meds.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.mark.parametrize("write", [as_csv, as_meds, as_omop])
def test_every_format_gives_the_same_facts(tmp_path, write):
    source, format_ = write(tmp_path)
    own = own_meds(tmp_path) if format_ == "meds" else mapping(tmp_path, format_)
    snapshot = read_snapshot(import_snapshot(source, tmp_path / "home", format=format_, mapping=own).folder)
    first = snapshot.patients["patient_id"].iloc[0]
    facts = snapshot.facts_of(first).set_index("kind")
    assert (facts["patient_id"] == first).all()
    assert set(facts.index) == {"MEDICATION_ORDER", "LAB_RESULT", "DIAGNOSIS"} | (
        set() if format_ == "omop" else {"ALLERGY"}
    )
    order, result, diagnosis = facts.loc["MEDICATION_ORDER"], facts.loc["LAB_RESULT"], facts.loc["DIAGNOSIS"]
    assert (order["item"], order["dose"], order["route"]) == ("heparin", "5000 units", "SC")
    assert (order["start"], order["end"]) == (pd.Timestamp("2026-01-01 07:00"), pd.Timestamp("2026-01-02 07:00"))
    assert (result["value"], result["unit"]) == (5.9, "mmol/L")
    assert (result["range_low"], result["range_high"]) == (3.5, 5.0)
    assert (diagnosis["item"], diagnosis["known_at"]) == ("I50", pd.Timestamp("2026-01-01 06:10"))
    assert len(snapshot.facts) == 2 * len(facts)
    assert list(snapshot.facts_of("nobody").columns) == list(FACT_COLUMNS)
    assert snapshot.facts_of("nobody").empty


def test_facts_change_the_hash_and_nothing_else(tmp_path):
    own = mapping(tmp_path, "csv")
    with_facts, _ = build_cohort(csv_of(tmp_path / "a.csv", EVENTS + FACTS), format="csv", mapping=own)
    without, _ = build_cohort(csv_of(tmp_path / "b.csv", EVENTS), format="csv", mapping=own)
    assert with_facts.content_hash != without.content_hash
    pd.testing.assert_frame_equal(with_facts.events, without.events)
    pd.testing.assert_frame_equal(with_facts.feature_dictionary, without.feature_dictionary)
    assert (with_facts.features != without.features).nnz == 0
    stored = import_snapshot(tmp_path / "a.csv", tmp_path / "home", format="csv", mapping=own)
    assert read_snapshot(stored.folder).content_hash == with_facts.content_hash


def test_added_records_bring_their_facts_and_known_ones_change_nothing(tmp_path):
    own = mapping(tmp_path, "csv")
    first = import_snapshot(csv_of(tmp_path / "a.csv", EVENTS + FACTS), tmp_path, format="csv", mapping=own)
    snapshot = read_snapshot(first.folder)
    again = extend_snapshot(snapshot, tmp_path / "a.csv", tmp_path, format="csv", mapping=own)
    assert again.folder == snapshot.folder
    later = extend_snapshot(snapshot, csv_of(tmp_path / "b.csv", EVENTS + MORE), tmp_path, format="csv", mapping=own)
    stored = read_snapshot(later.folder)
    assert stored.content_hash != snapshot.content_hash
    assert sorted(stored.facts_of("a")["item"]) == sorted([*snapshot.facts_of("a")["item"], "J18"])


def test_a_snapshot_of_before_has_no_facts_and_lost_ones_are_missed(tmp_path):
    own = mapping(tmp_path, "csv")
    first = import_snapshot(csv_of(tmp_path / "a.csv", EVENTS + FACTS), tmp_path, format="csv", mapping=own)
    (first.folder / "facts.parquet").unlink()
    with pytest.raises(SourceError, match=r"facts\.parquet is missing"):
        read_snapshot(first.folder).facts_of("a")
    manifest = json.loads((first.folder / "manifest.json").read_text())
    del manifest["n_facts"]
    (first.folder / "manifest.json").write_text(json.dumps(manifest))
    assert read_snapshot(first.folder).facts_of("a").empty
