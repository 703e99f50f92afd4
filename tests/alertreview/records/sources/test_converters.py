"""What converters from OMOP to MEDS really write is imported by presets, and is the same cohort as the OMOP tables."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from alertreview.files import preset_paths
from alertreview.records.importing import build_cohort, choose_mapping, import_snapshot
from alertreview.records.mapping_help import check_mapping, suggest_mapping
from alertreview.records.snapshots import read_snapshot
from core.events.code_book import UNKNOWN, recognise
from core.events.mapping import parse_mapping
from tests.support.records import counted

RECORDED = Path(__file__).parent / "converted"
PRESETS = {
    "omop_meds_0.2.0": "omop-meds-0.2",
    "omop_meds_0.3.0": "omop-meds-0.2",
    "meds_etl_0.3.11": "meds-etl-omop-0.3",
}
TYPES = {"text_value": "str", "text": "str", "visit_id": "str"}


def as_meds(name: str, folder: Path) -> Path:
    """The rows that a converter wrote, with their types."""
    table = pd.read_csv(RECORDED / f"{name}.csv", dtype=TYPES)
    for column in ("time", "end"):
        if column in table:
            table[column] = pd.to_datetime(table[column], format="ISO8601").astype("datetime64[us]")
    for column in ("unit", "visit_occurrence_id"):
        if column in table and table[column].dtype.kind == "f":
            table[column] = table[column].astype("Int64")
    (folder / "data").mkdir(parents=True)
    table.to_parquet(folder / "data" / "0.parquet", index=False)
    described = RECORDED / f"{name}.codes.csv"
    if described.exists():
        (folder / "metadata").mkdir()
        pd.read_csv(described, dtype="str").to_parquet(folder / "metadata" / "codes.parquet", index=False)
    return folder


@pytest.fixture(scope="module")
def omop(tmp_path_factory):
    """The cohort of the OMOP tables, of which only inpatient visits are stays, as the converters' presets say."""
    content = yaml.safe_load(preset_paths()["omop"].read_text()) | {"visits": {"included_concepts": [9201, 262]}}
    own = tmp_path_factory.mktemp("own") / "own.yaml"
    own.write_text(yaml.safe_dump(content))
    return build_cohort(RECORDED / "cdm", format="omop", mapping=own, min_positive=1)


@pytest.mark.parametrize("name", PRESETS)
def test_the_preset_is_found_and_gives_the_cohort_of_the_omop_tables(tmp_path, name, omop):
    expected, omop_report = omop
    cohort, report = build_cohort(as_meds(name, tmp_path), min_positive=1)
    assert report.mapping == PRESETS[name]
    assert UNKNOWN not in {drop.reason for drop in report.read.dropped}
    pd.testing.assert_frame_equal(cohort.stays, expected.stays)
    columns = ["patient_id", "stay_id", "snapshot_at", "window_hours"]
    pd.testing.assert_frame_equal(cohort.instances[columns], expected.instances[columns])
    for kind in ("ADMISSION", "DISCHARGE", "LAB_RESULT", "MEDICATION_ORDER", "MEDICATION_STOP", "BIRTH", "DEATH"):
        assert counted(report, kind).n_rows == counted(omop_report, kind).n_rows, kind
    facts = [{count.kind: count.n_rows for count in each.read.facts} for each in (report, omop_report)]
    assert facts[0] == facts[1] == {"DIAGNOSIS": 9, "PROCEDURE": 9}
    positives = [np.sort(each.decisions.sum(axis=0).A1) for each in (cohort, expected)]
    assert positives[0].tolist() == positives[1].tolist()
    values = [np.sort(each.events["value"].dropna().round(3)) for each in (cohort, expected)]
    assert values[0].tolist() == values[1].tolist()


@pytest.mark.parametrize("name", PRESETS)
def test_drugs_have_the_names_and_results_the_units_that_the_converter_gives(tmp_path, name):
    cohort, _ = build_cohort(as_meds(name, tmp_path), min_positive=1)
    drugs = set(cohort.tasks["name"][cohort.tasks["kind"] == "MEDICATION"])
    assert drugs == ({"heparin", "acetaminophen"} if name.startswith("omop_meds") else {"161", "5224"})
    labs = cohort.events[cohort.events["kind"] == "LAB_RESULT"]
    potassium = labs[labs["item"] == "2823-3"]
    assert set(potassium["unit"]) == {"mmol/L"}


@pytest.mark.parametrize("name", PRESETS)
def test_check_and_import_count_the_same(tmp_path, name):
    source = as_meds(name, tmp_path / "meds")
    report = import_snapshot(source, tmp_path / "home").report
    check = check_mapping(source)
    assert check.mapping == report.mapping
    assert check.n_rows == report.read.n_rows
    assert check.kinds == (*report.read.kinds, *report.read.facts)
    assert {drop.reason: drop.n_rows for drop in check.dropped} == {
        drop.reason: drop.n_rows for drop in report.read.dropped
    }
    facts = read_snapshot(next((tmp_path / "home" / "snapshots").iterdir())).facts
    assert len(facts[facts["kind"] == "DIAGNOSIS"]) == 9


@pytest.mark.parametrize("name", PRESETS)
def test_a_suggestion_starts_from_the_preset_and_no_code_both_begins_and_ends(tmp_path, name):
    source = as_meds(name, tmp_path)
    suggested = suggest_mapping(source)
    assert suggested.notes[0] == f"Started from the preset {PRESETS[name]}."
    mapping = parse_mapping(yaml.safe_load(suggested.text), "draft")
    assert choose_mapping(source, "meds", None).name == PRESETS[name]
    kinds = {code: recognise(code, mapping).kind for code in ("visit_occurrence//Visit//IP//start", "visit//Visit/IP")}
    assert {kind.value for kind in kinds.values() if kind} == {"ADMISSION"}


def test_without_the_column_of_the_table_a_suggestion_still_tells_beginnings_from_ends(tmp_path):
    source = as_meds("omop_meds_0.3.0", tmp_path / "meds")
    shard = source / "data" / "0.parquet"
    rows = pd.read_parquet(shard).drop(columns=["table_name", "source_block"])
    rows.to_parquet(shard, index=False)
    mapping = parse_mapping(yaml.safe_load(suggest_mapping(source).text), "draft")
    kinds = {code: recognise(code, mapping).kind for code in rows["code"].unique()}
    begins = {kind.value for code, kind in kinds.items() if code.endswith("//start") and kind}
    ends = {kind.value for code, kind in kinds.items() if code.endswith("//end") and kind}
    assert begins == {"ADMISSION", "MEDICATION_ORDER"}
    assert ends == {"DISCHARGE", "MEDICATION_STOP"}
    own = tmp_path / "own.yaml"
    own.write_text(suggest_mapping(source).text)
    cohort, report = build_cohort(source, mapping=own, min_positive=1)
    assert (report.stays.n_stays, report.stays.n_open, len(cohort.instances)) == (9, 0, 15)
