"""Wide tables: raw MIMIC-III, MIMIC-IV and eICU folders of a made-up patient, read by the presets as they are."""

import gzip
import zipfile
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

from alertreview.cli.main import main
from alertreview.files import preset_paths
from alertreview.records.importing import build_cohort, import_snapshot
from alertreview.records.mapping_help import check_mapping
from alertreview.records.snapshots import read_snapshot
from alertreview.records.sources.formats import detect_format
from alertreview.records.sources.tables import read
from core.errors import MappingError, SourceError
from core.events.mapping import load_mapping, parse_mapping
from core.events.plausibility import Severity
from tests.support.frames import assert_same_frame
from tests.support.records import counted

MIMIC_IV = {
    "hosp/patients": "subject_id,gender,anchor_age,anchor_year,dod\n7,F,60,2150,2150-03-04\n",
    "hosp/admissions": "subject_id,hadm_id,admittime,dischtime,deathtime,admission_type\n"
    "7,70,2150-03-01 10:00:00,2150-03-04 15:00:00,,EW EMER.\n",
    "hosp/transfers": "subject_id,hadm_id,transfer_id,eventtype,careunit,intime,outtime\n"
    "7,70,1,admit,Medicine,2150-03-01 11:00:00,2150-03-04 15:00:00\n"
    "7,70,2,discharge,,2150-03-04 15:00:00,\n",
    "hosp/labevents": "labevent_id,subject_id,hadm_id,specimen_id,itemid,charttime,storetime,value,valuenum,valueuom,"
    "ref_range_lower,ref_range_upper,flag,comments\n"
    "1,7,70,1,50971,2150-03-01 12:00:00,2150-03-01 13:30:00,5.9,5.9,mEq/L,3.5,5.1,abnormal,\n"
    "2,7,70,1,50971,2150-03-02 09:00:00,2150-03-02 10:00:00,HOLD,,mEq/L,3.5,5.1,,\n",
    "hosp/d_labitems": "itemid,label,fluid,category\n50971,Potassium,Blood,Chemistry\n",
    "hosp/prescriptions": "subject_id,hadm_id,pharmacy_id,starttime,stoptime,drug,dose_val_rx,dose_unit_rx,route\n"
    "7,70,31,2150-03-02 09:00:00,2150-03-03 09:00:00,Heparin,5000,UNIT,SC\n",
    "hosp/emar": "subject_id,hadm_id,charttime,medication,event_txt\n"
    "7,70,2150-03-02 10:00:00,Heparin,Administered\n7,70,2150-03-02 18:00:00,Heparin,Not Given\n",
    "hosp/diagnoses_icd": "subject_id,hadm_id,seq_num,icd_code,icd_version\n7,70,1,I509,10\n",
    "hosp/d_icd_diagnoses": 'icd_code,icd_version,long_title\nI509,10,"Heart failure, unspecified"\n',
    "hosp/procedures_icd": "subject_id,hadm_id,chartdate,icd_code,icd_version\n7,70,2150-03-02,02HV33Z,10\n",
    "hosp/microbiologyevents": "subject_id,charttime,storetime,spec_type_desc,test_name,org_name,ab_name,"
    "interpretation\n7,2150-03-01 12:00:00,2150-03-03 12:00:00,BLOOD CULTURE,Blood Culture,STAPH AUREUS,OXACILLIN,S\n",
    "hosp/poe": "poe_id,subject_id\n1,7\n",
}
MIMIC_III = {
    "PATIENTS": '"ROW_ID","SUBJECT_ID","GENDER","DOB","DOD"\n1,7,"F",2090-01-01 00:00:00,2150-03-04 00:00:00\n',
    "ADMISSIONS": "ROW_ID,SUBJECT_ID,HADM_ID,ADMITTIME,DISCHTIME,DEATHTIME,ADMISSION_TYPE,DIAGNOSIS\n"
    "1,7,70,2150-03-01 10:00:00,2150-03-04 15:00:00,,EMERGENCY,HEART FAILURE\n",
    "TRANSFERS": "SUBJECT_ID,HADM_ID,EVENTTYPE,CURR_CAREUNIT,INTIME\n7,70,admit,Medicine,2150-03-01 11:00:00\n",
    "LABEVENTS": "ROW_ID,SUBJECT_ID,HADM_ID,ITEMID,CHARTTIME,VALUE,VALUENUM,VALUEUOM,FLAG\n"
    "1,7,70,50971,2150-03-01 12:00:00,5.9,5.9,mEq/L,abnormal\n2,7,70,50971,2150-03-02 09:00:00,HOLD,,mEq/L,\n",
    "D_LABITEMS": "ROW_ID,ITEMID,LABEL,FLUID\n1,50971,Potassium,Blood\n",
    "PRESCRIPTIONS": "ROW_ID,SUBJECT_ID,HADM_ID,STARTDATE,ENDDATE,DRUG,DOSE_VAL_RX,DOSE_UNIT_RX,ROUTE\n"
    "1,7,70,2150-03-02 00:00:00,2150-03-03 00:00:00,Heparin,5000,UNIT,SC\n",
    "DIAGNOSES_ICD": "ROW_ID,SUBJECT_ID,HADM_ID,SEQ_NUM,ICD9_CODE\n1,7,70,1,4280\n",
    "D_ICD_DIAGNOSES": "ROW_ID,ICD9_CODE,SHORT_TITLE,LONG_TITLE\n1,4280,CHF,Congestive heart failure\n",
}
EICU = {
    "patient": "patientunitstayid,patienthealthsystemstayid,uniquepid,gender,age,apacheadmissiondx,"
    "hospitaldischargeyear,hospitaladmitoffset,hospitaladmitsource,hospitaldischargeoffset,hospitaldischargestatus,"
    "unittype,unitadmittime24\n11,1,002-7,Female,> 89,Sepsis,2015,-120,Emergency Department,4380,Alive,MICU,12:00:00\n"
    "12,1,002-7,Female,> 89,,2015,-1560,Emergency Department,2940,Alive,CCU,12:00:00\n"
    "13,2,002-7,Female,> 89,Sepsis,2015,0,Floor,3000,Expired,MICU,09:00:00\n",
    "lab": "labid,patientunitstayid,labresultoffset,labname,labresult,labresulttext,labmeasurenamesystem\n"
    "1,11,0,potassium,5.9,5.9,mmol/L\n2,11,1260,potassium,,HOLD,mmol/L\n3,12,60,potassium,4.0,4.0,mmol/L\n",
    "medication": "medicationid,patientunitstayid,drugorderoffset,drugstartoffset,drugordercancelled,drugname,dosage,"
    "routeadmin,drugstopoffset\n1,11,1200,1260,No,HEPARIN,5000 units,SC,2700\n2,11,0,10,Yes,WARFARIN,5 mg,PO,2700\n",
    "diagnosis": "patientunitstayid,diagnosisoffset,diagnosisstring\n11,30,cardiovascular|shock|septic shock\n",
    "allergy": "allergyid,patientunitstayid,allergyoffset,allergyname\n1,11,15,Penicillins\n",
}


def write(folder: Path, tables, **changes) -> Path:
    for name, text in {**tables, **changes}.items():
        path = folder / f"{name}.csv.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()))
    return folder


def imported(folder: Path):
    assert detect_format(folder) == "tables"
    outcome = import_snapshot(folder, folder / "_home", format="tables")
    snapshot = read_snapshot(outcome.folder)
    return snapshot, outcome.report


def facts_of(snapshot):
    facts = snapshot.facts
    return {(row.kind, row.name): row for row in facts.itertuples()}


@pytest.mark.parametrize(("tables", "preset"), [(MIMIC_IV, "mimic-iv"), (MIMIC_III, "mimic-iii")])
def test_a_raw_mimic_folder_is_recognised_and_read_as_it_is(tmp_path, tables, preset):
    snapshot, report = imported(write(tmp_path, tables))
    assert report.mapping == preset
    assert list(snapshot.patients["patient_id"]) == ["7"]
    assert (snapshot.patients["sex"][0], snapshot.patients["birth_time"][0].year) == ("F", 2090)
    assert list(snapshot.stays["admitted_at"]) == [pd.Timestamp("2150-03-01 10:00")]
    days = [pd.Timestamp(f"2150-03-0{day} 08:00") for day in (2, 3, 4)]
    assert list(snapshot.instances["snapshot_at"]) == days
    assert set(snapshot.instances["unit"]) == {"Medicine"}
    events = snapshot.events_of("7")
    labs = events[events["kind"] == "LAB_RESULT"]
    assert (labs["name"].iloc[0], labs["value"].iloc[0], labs["text"].iloc[1]) == ("Potassium", 5.9, "HOLD")
    facts = facts_of(snapshot)
    order = facts["MEDICATION_ORDER", "Heparin"]
    assert (order.dose, order.route) == ("5000 UNIT", "SC")
    diagnosis = next(row for (kind, _), row in facts.items() if kind == "DIAGNOSIS")
    assert diagnosis.known_at == pd.Timestamp("2150-03-04 15:00")
    assert "failure" in diagnosis.name
    check = check_mapping(tmp_path, format="tables")
    assert (check.n_rows, check.kinds) == (report.read.n_rows, (*report.read.kinds, *report.read.facts))


@pytest.mark.parametrize(
    ("tables", "name", "spelled"),
    [
        (MIMIC_IV, "hosp/labevents", ("50971,", "50971.0,")),
        (MIMIC_IV, "hosp/d_labitems", ("50971,", "50971.0,")),
        (MIMIC_IV, "hosp/diagnoses_icd", ("7,70,", "7.0,70.0,")),
        (MIMIC_III, "ADMISSIONS", (",70,", ",70.0,")),
        (EICU, "lab", (",11,", ",11.0,")),
        (EICU, "patient", ("\n11,", "\n11.0,")),
    ],
)
def test_tables_find_each_other_whatever_a_number_went_through(tmp_path, tables, name, spelled):
    """A table that pandas wrote again has its numbers as floats where some are missing."""
    plain, _ = imported(write(tmp_path / "plain", tables))
    snapshot, _ = imported(write(tmp_path / "float", tables, **{name: tables[name].replace(*spelled)}))
    for each in ("instances", "facts", "tasks"):
        assert_same_frame(getattr(snapshot, each), getattr(plain, each))
    assert snapshot.events_of(snapshot.patients["patient_id"][0])["name"].tolist() == (
        plain.events_of(plain.patients["patient_id"][0])["name"].tolist()
    )


def test_mimic_iv_has_result_times_reference_ranges_administrations_and_cultures(tmp_path):
    snapshot, report = imported(write(tmp_path, MIMIC_IV))
    labs = snapshot.events_of("7").query("kind == 'LAB_RESULT'")
    assert list(labs["known_at"]) == [pd.Timestamp("2150-03-01 13:30"), pd.Timestamp("2150-03-02 10:00")]
    facts = facts_of(snapshot)
    assert (facts["LAB_RESULT", "Potassium"].range_low, facts["LAB_RESULT", "Potassium"].range_high) == (3.5, 5.1)
    assert facts["MICROBIOLOGY", "BLOOD CULTURE: Blood Culture"].text == "STAPH AUREUS OXACILLIN S"
    assert counted(report, "ADMINISTRATION").n_rows == 1
    unread = next(check for check in report.checks if check.name == "unread_files")
    assert "poe" in " ".join(unread.examples)


def test_a_raw_eicu_folder_has_its_minutes_put_on_a_calendar(tmp_path):
    snapshot, report = imported(write(tmp_path, EICU))
    assert report.mapping == "eicu"
    stays = snapshot.stays
    assert list(stays["patient_id"]) == ["002-7", "002-7"]
    # Two unit stays of one hospital stay agree on its beginning; the second hospital stay comes a month later.
    first, second = pd.Timestamp("2015-01-01 10:00"), pd.Timestamp("2015-02-01 09:00")
    assert list(stays["admitted_at"]) == [first, second]
    assert list(stays["discharged_at"]) == [pd.Timestamp("2015-01-04 13:00"), second + pd.Timedelta(minutes=3000)]
    labs = snapshot.events_of("002-7").query("kind == 'LAB_RESULT'")
    assert list(labs["time"]) == [pd.Timestamp(f"2015-01-0{day}") for day in ("1 12:00", "2 09:00", "2 13:00")]
    assert list(snapshot.instances["snapshot_at"].dt.hour.unique()) == [8]
    assert snapshot.patients["birth_time"][0].year == 2015 - 89
    assert snapshot.patients["death_time"][0] == second + pd.Timedelta(minutes=3000)
    order = next(row for (kind, _), row in facts_of(snapshot).items() if kind == "MEDICATION_ORDER")
    assert (order.dose, order.route) == ("5000 units", "SC")
    assert {kind for kind, _ in facts_of(snapshot)} == {"REASON", "DIAGNOSIS", "ALLERGY", "MEDICATION_ORDER"}
    assert any("a month after another" in remark for remark in report.read.remarks)
    assert "order that was cancelled" in {drop.reason for drop in report.read.dropped}
    assert set(snapshot.events_of("002-7").query("kind == 'MEDICATION_ORDER'")["item"]) == {"heparin"}


@pytest.mark.parametrize(("age", "n"), [("88", 0), ("> 89", 0), ("30", 1)])
def test_ages_of_two_stays_contradict_each_other_by_more_than_the_calendar(tmp_path, age, n):
    patient = EICU["patient"].replace("> 89,Sepsis,2015,0", f"{age},Sepsis,2015,0")
    assert patient.count(f",{age},Sepsis,2015,0,") == 1
    _, report = imported(write(tmp_path, EICU, patient=patient))
    assert report.stays.n_contradicted == n


@pytest.mark.parametrize(
    ("tables", "more"),
    [
        (
            MIMIC_IV,
            {
                "icu/chartevents": "subject_id,charttime,storetime,itemid,value,valuenum,valueuom\n"
                "7,2150-03-01 12:00:00,2150-03-01 12:05:00,220045,88,88,bpm\n"
                "7,2150-03-01 12:00:00,2150-03-01 12:05:00,223900,Oriented,,\n"
            },
        ),
        (
            MIMIC_III,
            {
                "CHARTEVENTS": "ROW_ID,SUBJECT_ID,ITEMID,CHARTTIME,STORETIME,VALUE,VALUENUM,VALUEUOM,ERROR\n"
                "1,7,211,2150-03-01 12:00:00,2150-03-01 12:05:00,88,88,BPM,\n"
                "2,7,220045,2150-03-01 13:00:00,2150-03-01 13:05:00,8,8,bpm,TRUE\n"
                "3,7,742,2150-03-01 12:00:00,2150-03-01 12:05:00,Yes,,,0\n"
            },
        ),
        (
            EICU,
            {
                "vitalPeriodic": "vitalperiodicid,patientunitstayid,observationoffset,temperature,sao2,heartrate,"
                "respiration,systemicsystolic\n1,11,5,,97,88,,\n",
                "vitalAperiodic": "vitalaperiodicid,patientunitstayid,observationoffset,noninvasivesystolic,"
                "noninvasivediastolic\n1,11,5,120,\n",
            },
        ),
    ],
)
def test_vital_signs_of_the_bedside_charts_are_facts_and_no_tasks(tmp_path, tables, more):
    snapshot, _ = imported(write(tmp_path / "more", {**tables, **more}))
    plain, _ = imported(write(tmp_path / "plain", tables))
    rates = [row for (kind, name), row in facts_of(snapshot).items() if (kind, name) == ("VITAL_SIGN", "Heart rate")]
    assert [row.value for row in rates] == [88]
    n_facts = len(snapshot.facts) - len(plain.facts)
    assert n_facts == (3 if tables is EICU else 1), "an empty cell is no measurement"
    assert list(snapshot.feature_dictionary["name"]) == list(plain.feature_dictionary["name"])


@pytest.mark.parametrize("word", ["YES", "true", " y ", "1.0", "No", "false", ""])
def test_eicu_says_in_several_words_that_an_order_was_cancelled(tmp_path, word):
    medication = EICU["medication"].replace("1260,No,", f"1260,{word},")
    snapshot, report = imported(write(tmp_path, EICU, medication=medication))
    n_orders = (snapshot.events_of("002-7")["kind"] == "MEDICATION_ORDER").sum()
    assert n_orders == (word in ("No", "false", ""))
    assert "order that was cancelled" in {drop.reason for drop in report.read.dropped}


@pytest.mark.parametrize(("status", "died"), [("EXPIRED", True), ("expired", True), ("ALIVE", False)])
def test_eicu_says_in_any_case_how_a_stay_ended(tmp_path, status, died):
    snapshot, _ = imported(write(tmp_path, EICU, patient=EICU["patient"].replace("Expired", status)))
    assert snapshot.patients["death_time"].notna().all() == died


@pytest.mark.parametrize(
    ("unit", "hospital", "died"), [("Expired", "", True), ("Alive", "", False), ("Expired", "Alive", False)]
)
def test_a_death_in_a_unit_of_eicu_counts_where_the_hospital_says_nothing(tmp_path, unit, hospital, died):
    said, *rows = EICU["patient"].replace("3000,Expired", f",{hospital}").splitlines()
    ends = ["unitdischargestatus,unitdischargeoffset", "Alive,1000", "Alive,2900", f"{unit},2950"]
    patient = "".join(f"{row},{end}\n" for row, end in zip([said, *rows], ends, strict=True))
    snapshot, _ = imported(write(tmp_path, EICU, patient=patient))
    assert snapshot.patients["death_time"].notna().all() == died


@pytest.mark.parametrize(
    ("value", "remark", "n"),
    [
        (",", "CANCELLED", 1),
        ("___,", "Test not performed: clotted", 1),
        (",", "HEMOLYZED", 2),
        ("4.1,4.1", "CANCELLED", 2),
    ],
)
def test_a_remark_calls_off_a_row_of_mimic_iv_that_has_no_result(tmp_path, value, remark, n):
    labs = MIMIC_IV["hosp/labevents"].replace("HOLD,,mEq/L,3.5,5.1,,\n", f"{value},mEq/L,3.5,5.1,,{remark}\n")
    snapshot, report = imported(write(tmp_path, MIMIC_IV, **{"hosp/labevents": labs}))
    assert (snapshot.events_of("7")["kind"] == "LAB_RESULT").sum() == n
    assert next(check for check in report.checks if check.name == "never_done").count == 2 - n


@pytest.mark.parametrize(
    ("tables", "name", "age", "spelled"),
    [
        (MIMIC_IV, "hosp/patients", ",60,2150,", ",60.0,2150.0,"),
        (EICU, "patient", ",> 89,", ",89.0,"),
        (EICU, "patient", ",2015,", ",2015.0,"),
        (EICU, "patient", ",> 89,", ", > 89 ,"),
    ],
)
def test_years_and_ages_that_went_through_a_float_are_whole(tmp_path, tables, name, age, spelled):
    plain, _ = imported(write(tmp_path / "plain", tables))
    snapshot, _ = imported(write(tmp_path / "floats", tables, **{name: tables[name].replace(age, spelled)}))
    assert snapshot.patients["birth_time"].notna().all()
    assert_same_frame(snapshot.patients, plain.patients)
    assert_same_frame(snapshot.stays, plain.stays)


def shared_stays(report):
    return next((each.severity, each.count) for each in report.checks if each.name == "shared_stays")


def test_two_patients_of_eicu_with_one_number_of_a_stay_each_have_their_own_hours(tmp_path):
    patient = EICU["patient"] + "14,1,003-8,Male,50,,2015,0,Floor,3000,Alive,MICU,20:00:00\n"
    snapshot, report = imported(write(tmp_path, EICU, patient=patient))
    events = snapshot.events_of("003-8")
    assert events.loc[events["kind"] == "ADMISSION", "time"].dt.hour.tolist() == [20]
    assert shared_stays(report) == (Severity.YELLOW, 1)


@pytest.mark.parametrize(
    ("tables", "admissions", "diagnoses"),
    [(MIMIC_IV, "hosp/admissions", "hosp/diagnoses_icd"), (MIMIC_III, "ADMISSIONS", "DIAGNOSES_ICD")],
)
def test_two_patients_of_mimic_with_one_hadm_id_each_have_their_own_stay(tmp_path, tables, admissions, diagnoses):
    def with_another(table: str, hadm_id: str, *years: str) -> str:
        row = tables[table].splitlines()[-1].replace("7,70,", f"8,{hadm_id},").replace(*years)
        return f"{tables[table]}{row}\n"

    for hadm_id, n in (("80", 0), ("70", 1)):
        changes = {
            admissions: with_another(admissions, hadm_id, "2150", "2160"),
            diagnoses: with_another(diagnoses, hadm_id, "2150", "2160"),
        }
        snapshot, report = imported(write(tmp_path / hadm_id, tables, **changes))
        assert snapshot.stays["discharged_at"].dt.year.tolist() == [2150, 2160]
        facts = snapshot.facts.query("kind == 'DIAGNOSIS'")
        assert facts.set_index("patient_id")["start"].dt.year.to_dict() == {"7": 2150, "8": 2160}
        assert shared_stays(report) == (Severity.YELLOW if n else Severity.OK, n)


def test_a_unit_stay_of_eicu_with_two_clock_times_is_remarked_on(tmp_path):
    """The import would be another one with the rows turned around."""
    again = EICU["patient"].splitlines()[-1].replace("09:00:00", "21:00:00")
    plain, _ = imported(write(tmp_path / "plain", EICU))
    snapshot, report = imported(write(tmp_path / "twice", EICU, patient=f"{EICU['patient']}{again}\n"))
    assert_same_frame(snapshot.stays, plain.stays)
    assert "patient.csv.gz has 1 patientunitstayid with several times: the first counts." in report.read.remarks


@pytest.mark.parametrize("stop", ["0", "0.0", ""])
def test_an_order_of_eicu_that_stops_at_zero_has_no_stop(tmp_path, stop):
    medication = EICU["medication"].replace("SC,2700", f"SC,{stop}")
    snapshot, report = imported(write(tmp_path, EICU, medication=medication))
    assert "MEDICATION_STOP" not in set(snapshot.events_of("002-7")["kind"])
    assert snapshot.facts.query("kind == 'MEDICATION_ORDER'")["end"].isna().all()
    assert any("No drug order has a stop: a drug counts as on for a day" in remark for remark in report.read.remarks)
    assert next(each.count for each in report.checks if each.name == "turned_orders") == 0


@pytest.mark.parametrize("change", [("2015,0,Floor", ",0,Floor"), ("MICU,09:00:00", "MICU,")])
def test_a_stay_of_eicu_without_year_or_clock_has_no_times(tmp_path, change):
    """Of which hour of the day its minutes are nobody can say."""
    _, report = imported(write(tmp_path, EICU, patient=EICU["patient"].replace(*change)))
    assert report.stays.n_stays == 1
    assert next(each.count for each in report.checks if each.name == "timeless_events") == 5


@pytest.mark.parametrize(("tables", "name"), [(MIMIC_IV, "hosp/labevents"), (MIMIC_III, "LABEVENTS")])
def test_an_item_of_a_lab_is_one_with_zeros_before_it_and_none_is_no_bedside_value(tmp_path, tables, name):
    plain, _ = imported(write(tmp_path / "plain", tables))
    rows = tables[name].replace("50971,", "050971,", 1)
    snapshot, report = imported(
        write(tmp_path / "other", tables, **{name: rows + rows.splitlines()[1].replace("050971", "")})
    )
    assert_same_frame(snapshot.tasks, plain.tasks)
    assert [each.reason for each in report.read.dropped if each.examples[0][0] == "LAB//"] == ["result without an item"]


def test_an_empty_table_is_remarked_on_and_a_missing_one_of_stays_refused(tmp_path, capsys):
    drugs = MIMIC_IV["hosp/prescriptions"].splitlines()[0] + "\n"
    _, report = imported(write(tmp_path / "empty", MIMIC_IV, **{"hosp/prescriptions": drugs}))
    said = [each for each in report.read.remarks if "has no row" in each]
    assert said == ["hosp/prescriptions.csv.gz has no row: its events are missing."]
    folder = write(tmp_path / "none", {name: text for name, text in MIMIC_IV.items() if "admissions" not in name})
    assert main(["import", str(folder), "--home", str(tmp_path / "home")]) == 2
    assert "'mimic-iv' knows the decisions: is a file of stays missing?" in capsys.readouterr().err


def test_a_zip_archive_is_the_same_as_the_folder(tmp_path):
    folder = write(tmp_path / "raw", MIMIC_IV)
    with zipfile.ZipFile(tmp_path / "raw.zip", "w") as archive:
        for path in folder.rglob("*.gz"):
            archive.write(path, path.relative_to(tmp_path))
    assert detect_format(tmp_path / "raw.zip") == "tables"
    one, other = (build_cohort(tmp_path / name, format="tables")[0].content_hash for name in ("raw", "raw.zip"))
    assert one == other


@pytest.mark.parametrize(("tables", "table"), [(MIMIC_IV, "hosp/admissions"), (MIMIC_III, "ADMISSIONS")])
def test_a_death_in_hospital_has_its_time_and_not_its_day_alone(tmp_path, tables, table):
    died = tables[table].replace("2150-03-04 15:00:00,,", "2150-03-04 15:00:00,2150-03-04 11:00:00,")
    snapshot, _ = imported(write(tmp_path, tables, **{table: died}))
    assert snapshot.patients["death_time"][0] == pd.Timestamp("2150-03-04 11:00")
    assert snapshot.instances["window_hours"].iloc[-1] == 3.0


@pytest.mark.parametrize(
    ("tables", "table", "column", "lost"),
    [
        (MIMIC_IV, "hosp/labevents", "storetime", "known_at"),
        (MIMIC_IV, "hosp/labevents", "valueuom", "unit"),
        (MIMIC_IV, "hosp/patients", "dod", "death"),
        (MIMIC_III, "PRESCRIPTIONS", "ROW_ID", "order"),
        (MIMIC_III, "PRESCRIPTIONS", "DOSE_VAL_RX", "dose"),
        (MIMIC_III, "ADMISSIONS", "DIAGNOSIS", "reason"),
        (EICU, "medication", "dosage", "dose"),
        (EICU, "patient", "apacheadmissiondx", "reason"),
    ],
)
def test_a_table_without_a_column_of_details_is_read_and_the_column_named(tmp_path, tables, table, column, lost):
    """An extract has the columns that somebody asked for; only what makes an event must be there."""
    rows = pd.read_csv(StringIO(tables[table]), dtype=str).drop(columns=column)
    snapshot, report = imported(write(tmp_path, tables, **{table: rows.to_csv(index=False)}))
    assert len(snapshot.instances) >= 3, lost
    assert any(f"has no column {column.lower()}" in remark for remark in report.read.remarks)


def test_codes_of_two_versions_have_their_own_names(tmp_path):
    """V3000 is a newborn in ICD-9 and an accident in ICD-10; an item with two names has the first, and a remark."""
    tables = {
        "hosp/diagnoses_icd": "subject_id,hadm_id,seq_num,icd_code,icd_version\n7,70,1,V3000,9\n7,70,2,V3000,10\n",
        "hosp/d_icd_diagnoses": "icd_code,icd_version,long_title\nV3000,9,Newborn\nV3000,10,Accident\n",
        "hosp/d_labitems": "itemid,label,fluid\n50971,Potassium,Blood\n50971,Sodium,Blood\n",
    }
    snapshot, report = imported(write(tmp_path, MIMIC_IV, **tables))
    facts = snapshot.facts
    assert set(facts.loc[facts["kind"] == "DIAGNOSIS", "name"]) == {"Newborn", "Accident"}
    assert set(snapshot.events_of("7").query("kind == 'LAB_RESULT'")["name"]) == {"Potassium"}
    assert "hosp/d_labitems.csv.gz has 1 itemid with several label: the first counts." in report.read.remarks


def test_two_files_of_one_table_are_refused(tmp_path):
    """Such as the export of last year in a folder beside the new one: reading either would lose half."""
    source = write(tmp_path, MIMIC_IV, **{"old/admissions": MIMIC_IV["hosp/admissions"]})
    assert detect_format(source) == "tables"
    with pytest.raises(SourceError, match=r"are both the table admissions\. Remove one of them"):
        import_snapshot(source, tmp_path / "_home", format="tables")


def test_drugs_of_mimic_iii_count_for_their_day(tmp_path):
    """Its prescriptions have dates alone; one that begins and ends on a day was given on it."""
    one_day = MIMIC_III["PRESCRIPTIONS"].replace("2150-03-03 00:00:00", "2150-03-02 00:00:00")
    for text in (MIMIC_III["PRESCRIPTIONS"], one_day):
        snapshot, report = imported(write(tmp_path, MIMIC_III, PRESCRIPTIONS=text))
        order = snapshot.events_of("7").query("kind == 'MEDICATION_ORDER'")
        assert list(order["time"]) == [pd.Timestamp("2150-03-02 08:00")]
        assert list(order["known_at"]) == [pd.Timestamp("2150-03-03")]
        assert next(each for each in report.checks if each.name == "midnight_times").severity == "ok"


@pytest.mark.parametrize(
    ("tables", "change", "rule"),
    [
        (MIMIC_IV, {"hosp/labevents": "subject_id,itemid\n7,1\n"}, "labevents.csv.gz: lacks the column"),
        (
            MIMIC_IV,
            {"hosp/emar": "subject_id,charttime,medication,event_txt\n7,yesterday,Heparin,Given\n"},
            "row 2, column 'charttime'",
        ),
        (
            MIMIC_IV,
            {"hosp/emar": "subject_id,charttime,medication,event_txt\n,2150-03-02,Heparin,Given\n"},
            "row 2 has no pat",
        ),
        (
            EICU,
            {"allergy": "patientunitstayid,allergyoffset,allergyname\n99,15,Penicillins\n"},
            "is in no row of the table",
        ),
    ],
)
def test_bad_tables_are_refused_naming_file_and_place(tmp_path, tables, change, rule):
    source = write(tmp_path / "raw", {**tables, **change})
    preset = "eicu" if tables is EICU else "mimic-iv"
    with pytest.raises(SourceError) as caught:
        import_snapshot(source, tmp_path / "home", format="tables", mapping=preset)
    assert rule in str(caught.value)
    assert not list((tmp_path / "home" / "snapshots").iterdir())


def test_other_wide_tables_are_answered_with_what_to_do(tmp_path, capsys):
    source = write(tmp_path / "raw", {"visits": "pid,begin\n1,2026-01-01\n"})
    assert detect_format(source) == "csv"
    assert main(["import", str(source), "--home", str(tmp_path / "home")]) != 0
    assert "describe the tables in a mapping of the format tables" in capsys.readouterr().err


def test_a_mapping_of_tables_without_tables_is_refused(tmp_path):
    content = load_mapping(preset_paths()["mimic-iv"]).model_dump(mode="json") | {"tables": []}
    with pytest.raises(MappingError, match="describes no table"):
        read(write(tmp_path, MIMIC_IV), parse_mapping(content, "own"))


@pytest.mark.parametrize(
    ("tables", "preset", "n"), [(MIMIC_IV, "mimic-iv", 1), (MIMIC_III, "mimic-iii", 1), (EICU, "eicu", 2)]
)
def test_the_beginning_and_the_end_of_a_drug_order_share_its_identity(tmp_path, tables, preset, n):
    source = read(write(tmp_path, tables), load_mapping(preset_paths()[preset]))
    rows = pd.concat([chunk for chunk in source.chunks if "order" in chunk])
    pairs = rows.groupby(rows["order"].astype("str"))["code"].agg(list)
    assert len(pairs) == n
    assert all("//START//" in begin and "//STOP//" in end for begin, end in pairs)
