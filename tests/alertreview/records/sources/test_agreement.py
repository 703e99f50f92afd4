"""The same records, written in every format, are the same cohort."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from alertreview.files import preset_paths
from alertreview.records.importing import build_cohort
from core.simulation.hospital import simulate_cohort, write_meds
from tests.support.fhir_records import Cohort
from tests.support.frames import assert_same_frame

NO_ORDERS = r"LAB//ORDERED//|HOSPITAL_ADMISSION|VITAL//|.*//Not Given"
"""What OMOP has no place for, or says in other words."""


@pytest.fixture(scope="module")
def events():
    found = simulate_cohort(n_patients=50, n_days=25).events
    code = found["code"].astype("str")
    plain = code.str.replace(r"^HOSPITAL_ADMISSION//.*", "ADMISSION", regex=True)
    return found.assign(code=plain)[~plain.str.match(NO_ORDERS)].reset_index(drop=True)


def mapping(folder: Path, preset: str, **changes) -> Path:
    content = yaml.safe_load(preset_paths()[preset].read_text())
    common = {
        "timezone": "UTC",
        "calendar_is_shifted": False,
        "simulated": True,
        "min_positive": 10,
        "patient_prefix": "SIM-",
    }
    common |= {
        "patient_digits": 4,
        "lab_tasks_from": "result",
        "medication_tasks_from": "administration",
        "name": "same",
        "ask_about": "orders",
    }
    path = folder / f"{preset}.yaml"
    path.write_text(yaml.safe_dump({**content, **common, **changes}))
    return path


def without_reasons(rules):
    return [{**rule, "code": "ADMISSION"} if rule["kind"] == "ADMISSION" else rule for rule in rules]


def as_meds(events, folder):
    sim = simulate_cohort(n_patients=5, n_days=10)
    categories = events.astype({"code": "category"})
    path = write_meds(type(sim)(categories, sim.codes, sim.splits, sim.truth, 0, 0.0), folder / "meds")
    (path / "metadata" / "codes.parquet").unlink()
    (path / "metadata" / "subject_splits.parquet").unlink()
    rules = without_reasons(yaml.safe_load(preset_paths()["simulated"].read_text())["rules"])
    return build_cohort(path, mapping=mapping(folder, "simulated", rules=rules))


def as_csv(events, folder):
    path = folder / "records.csv"
    table = events.assign(time=events["time"].dt.strftime("%Y-%m-%d %H:%M:%S"))
    table["numeric_value"] = table["numeric_value"].astype("float32").astype("float64")
    table["subject_id"] = ["SIM-" + str(each).zfill(4) for each in table["subject_id"]]
    table.rename(columns={"numeric_value": "value", "text_value": "text"}).to_csv(path, index=False)
    rules = without_reasons(yaml.safe_load(preset_paths()["simulated"].read_text())["rules"])
    more = {"format": "csv", "csv": {"patient": "subject_id"}, "rules": rules, "patient_prefix": ""}
    return build_cohort(path, format="csv", mapping=mapping(folder, "simulated", **more))


def parts(events, pattern):
    found = events["code"].str.extract(pattern)
    keep = found.notna().any(axis=1)
    return events[keep].reset_index(drop=True), found[keep].reset_index(drop=True)


def person_table(events):
    births, _ = parts(events, r"^(MEDS_BIRTH)$")
    sexes, found = parts(events, r"^GENDER//(.)$")
    gender = pd.Series(found[0].map({"M": 8507, "F": 8532}).to_numpy(), index=sexes["subject_id"])
    return pd.DataFrame(
        {
            "person_id": births["subject_id"],
            "gender_concept_id": births["subject_id"].map(gender),
            "birth_datetime": births["time"],
        }
    )


def visit_table(events):
    starts, _ = parts(events, r"^(ADMISSION)$")
    ends, _ = parts(events, r"^(HOSPITAL_DISCHARGE)")
    i, j = (table.groupby("subject_id").cumcount() for table in (starts, ends))
    both = starts.assign(i=i).merge(ends.assign(i=j), on=["subject_id", "i"], how="left", suffixes=("", "_end"))
    columns = {
        "visit_occurrence_id": -np.arange(1, len(both) + 1),
        "person_id": both["subject_id"],
        "visit_concept_id": 9201,
    }
    return pd.DataFrame({**columns, "visit_start_datetime": both["time"], "visit_end_datetime": both["time_end"]})


def drug_table(events):
    starts, start_of = parts(events, r"^MEDICATION//START//(.+)$")
    stops, stop_of = parts(events, r"^MEDICATION//STOP//(.+)$")
    given, given_of = parts(events, r"^MEDICATION//(.+)//Administered$")
    orders = starts.assign(drug=start_of[0], kind=32838)
    ends = stops.assign(drug=stop_of[0])
    keys = ["subject_id", "drug"]
    orders["i"], ends["i"] = orders.groupby(keys).cumcount(), ends.groupby(keys).cumcount()
    both = orders.merge(ends, on=[*keys, "i"], how="left", suffixes=("", "_end"))
    rows = pd.concat([both, given.assign(drug=given_of[0], kind=32818)], ignore_index=True)
    return pd.DataFrame(
        {
            "person_id": rows["subject_id"],
            "drug_concept_id": 0,
            "drug_source_value": rows["drug"],
            "drug_type_concept_id": rows["kind"],
            "drug_exposure_start_datetime": rows["time"],
            "drug_exposure_end_datetime": rows["time_end"],
        }
    )


def as_omop(events, folder):
    cdm = folder / "cdm"
    cdm.mkdir()
    labs, found = parts(events, r"^LAB//RESULT//(.+)//(.*)$")
    measurement = {
        "measurement_concept_id": 0,
        "measurement_source_value": found[0],
        "measurement_datetime": labs["time"],
    }
    measurement |= {
        "value_as_number": labs["numeric_value"].astype("float32").astype("float64"),
        "unit_source_value": found[1],
    }
    moves, ward = parts(events, r"^TRANSFER_TO//(.+)$")
    wards = sorted(ward[0].unique())
    deaths, _ = parts(events, r"^(MEDS_DEATH)$")
    site_id = ward[0].map({name: i + 1 for i, name in enumerate(wards)})
    tables = {
        "person": person_table(events),
        "visit_occurrence": visit_table(events),
        "visit_detail": pd.DataFrame(
            {"person_id": moves["subject_id"], "visit_detail_start_datetime": moves["time"], "care_site_id": site_id}
        ),
        "care_site": pd.DataFrame({"care_site_id": range(1, len(wards) + 1), "care_site_name": wards}),
        "measurement": pd.DataFrame(
            {"person_id": labs["subject_id"], **measurement, "value_source_value": labs["text_value"]}
        ),
        "drug_exposure": drug_table(events),
        "death": pd.DataFrame({"person_id": deaths["subject_id"], "death_datetime": deaths["time"]}),
    }
    for name, table in tables.items():
        table.to_csv(cdm / f"{name}.csv", index=False)
    rules = [
        {**rule, "code": rule["code"].replace("(?P<item>-?[0-9]+)//ADMISSION", "-?[0-9]+//ADMISSION")}
        for rule in yaml.safe_load(preset_paths()["omop"].read_text())["rules"]
    ]
    content = yaml.safe_load(preset_paths()["simulated"].read_text())
    return build_cohort(
        cdm, format="omop", mapping=mapping(folder, "omop", rules=rules, plausible=content["plausible"])
    )


def cohort_tables(events):
    """The records as people, stays, moves, labs and drugs."""
    name = "SIM-" + events["subject_id"].astype("str").str.zfill(4)
    named = events.assign(subject_id=name)
    people = person_table(named).rename(columns={"person_id": "subject", "birth_datetime": "born"})
    people["sex"] = people["gender_concept_id"].map({8507: "M", 8532: "F"})
    deaths, _ = parts(named, r"^(MEDS_DEATH)$")
    people["died"] = people["subject"].map(deaths.set_index("subject_id")["time"])
    stays = visit_table(named)[["person_id", "visit_start_datetime", "visit_end_datetime"]]
    moves, ward = parts(named, r"^TRANSFER_TO//(.+)$")
    labs, found = parts(named, r"^LAB//RESULT//(.+)//(.*)$")
    drugs = drug_table(named)
    return {
        "people": people,
        "stays": stays.set_axis(["subject", "start", "end"], axis=1),
        "moves": pd.DataFrame({"subject": moves["subject_id"], "time": moves["time"], "unit": ward[0]}),
        "labs": pd.DataFrame(
            {
                "subject": labs["subject_id"],
                "time": labs["time"],
                "item": found[0],
                "unit": found[1],
                "value": labs["numeric_value"].astype("float32").astype("float64"),
                "text": labs["text_value"],
            }
        ),
        "drugs": pd.DataFrame(
            {
                "subject": drugs["person_id"],
                "drug": drugs["drug_source_value"],
                "given": drugs["drug_type_concept_id"] == 32818,
                "start": drugs["drug_exposure_start_datetime"],
                "end": drugs["drug_exposure_end_datetime"],
            }
        ),
    }


def as_fhir(events, folder, preset, **changes):
    is_mimic = preset == "mimic-iv-fhir"
    path = Cohort(cohort_tables(events), is_mimic=is_mimic).write(folder / preset, **changes)
    content = yaml.safe_load(preset_paths()[preset].read_text())
    # The other formats of this test carry no kind of admission.
    rules = [
        {**rule, "code": rule["code"].replace("(?P<item>", "(")} if rule["kind"] == "ADMISSION" else rule
        for rule in content["rules"]
    ]
    plausible = yaml.safe_load(preset_paths()["simulated"].read_text())["plausible"]
    own = mapping(folder, preset, rules=rules, plausible=plausible, unit_conversions=[], patient_prefix="")
    return build_cohort(path, format="fhir", mapping=own)


OTHERS = {
    "csv": as_csv,
    "omop": as_omop,
    "fhir, shape of Synthea": lambda events, folder: as_fhir(events, folder, "fhir"),
    "fhir, shape of MIMIC-IV": lambda events, folder: as_fhir(events, folder, "mimic-iv-fhir"),
    "fhir, Bundles beside ndjson": lambda events, folder: as_fhir(events, folder, "mimic-iv-fhir", in_bundles=True),
}


@pytest.fixture(scope="module")
def meds(events, tmp_path_factory):
    return as_meds(events, tmp_path_factory.mktemp("meds"))[0]


@pytest.mark.parametrize("other", OTHERS)
def test_every_format_gives_the_same_instances_features_and_tasks(events, meds, tmp_path, other):
    assert len(meds.instances) > 300
    assert len(meds.tasks) > 40
    found, _ = OTHERS[other](events, tmp_path)
    for name in ("patients", "stays", "instances", "tasks", "feature_dictionary"):
        assert_same_frame(getattr(meds, name), getattr(found, name))
    assert (meds.features != found.features).nnz == 0
    assert meds.features.nnz == found.features.nnz
    assert (meds.decisions != found.decisions).nnz == 0
