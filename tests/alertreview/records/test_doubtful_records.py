"""Records that contradict themselves or say what nobody understands are counted, each kind by a check of its own."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from alertreview.records.importing import build_cohort
from alertreview.records.sources.text_tables import batches, look_at, text_files
from core.errors import SourceError
from core.events.code_book import recognise
from core.events.plausibility import Severity
from tests.support.lying_records import N_INSTANCES, N_PATIENTS, Act, at_time, hospital, without, write
from tests.support.records import site


def doubts(report):
    return {check.name: check.count for check in report.checks if check.severity is not Severity.OK}


def imported(path, source_format="csv"):
    return build_cohort(path, format=source_format, min_positive=1)


@pytest.mark.parametrize("source_format", ["csv", "meds"])
def test_contradictions_of_patients_and_stays_are_counted(tmp_path, source_format):
    acts = [
        *at_time(without(hospital(), 1, "admit"), 4, "birth", "1803-04-01"),
        Act(2, "1990-05-05 00:00", "birth"),
        Act(3, "2026-01-04 10:00", "sex", "M"),
        Act(5, "2026-01-08 10:00", "admit"),
        Act(6, "2026-01-07 12:00", "admit"),
        Act(6, "2026-01-12 12:00", "discharge"),
    ]
    cohort, report = imported(write(acts, source_format, tmp_path), source_format)
    found = doubts(report)
    assert {"unpaired_stays": 2, "contradicted_patients": 2, "impossible_ages": 1, "overlapping_stays": 1}.items() <= (
        found.items()
    )
    born = cohort.patients.set_index("patient_id")["birth_time"]
    assert born.isna().sum() == 1


def with_columns(path, **columns):
    """Add columns to a CSV; each a function of row number and code."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    for name, fill in columns.items():
        table[name] = [fill(i, code) for i, code in enumerate(table["code"])]
    table.to_csv(path, index=False)
    return path


def test_what_columns_say_beside_the_code_is_doubted(tmp_path):
    def status(i, code):
        return ("Vidimiert" if i % 2 else "Final") if code.startswith("LAB//RESULT") else ""

    def known_at(i, code):
        return "9999-12-31" if code.startswith("LAB//RESULT") and i % 3 == 0 else ""

    plain, _ = imported(write(hospital(), "csv", tmp_path / "plain"))
    path = with_columns(write(hospital(), "csv", tmp_path / "lying"), status=status, known_at=known_at)
    cohort, report = imported(path)
    found = doubts(report)
    assert found.keys() == {"impossible_known_at", "unknown_words"}
    checks = {check.name: check for check in report.checks}
    assert checks["unknown_words"].examples == ("Vidimiert",)
    assert cohort.features.shape == plain.features.shape
    assert (cohort.features != plain.features).nnz == 0


def test_times_with_and_without_a_zone_in_one_source_are_counted(tmp_path):
    path = write(hospital(), "csv", tmp_path)
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    is_order = table["code"].str.startswith("LAB//ORDER")
    table.loc[is_order, "time"] += ":00-05"
    table.loc[0, "time"] = ""
    table.to_csv(path, index=False)
    found = doubts(imported(path)[1])
    assert found["foreign_zones"] == is_order.sum()
    assert found["mixed_zones"] == (~is_order).sum() - 1
    assert found["timeless_events"] == 1


@pytest.mark.parametrize(
    ("source_format", "name"),
    [("csv", "records.csv"), ("omop", "measurement.csv"), ("fhir", "Observation.000.ndjson")],
)
def test_times_of_another_zone_are_converted_and_counted_in_every_format(tmp_path, source_format, name):
    path = write(hospital(n=4), source_format, tmp_path)
    plain, report = imported(path, source_format)
    assert doubts(report).keys().isdisjoint({"foreign_zones", "mixed_zones"})
    file = tmp_path / name
    there = re.compile(r"(\d{4}-\d\d-\d\d[ T])22:(4\d)(?::00Z)?")
    text, n = there.subn(r"\g<1>17:\2:00-05:00", file.read_text(encoding="utf-8"))
    file.write_text(text, encoding="utf-8")
    cohort, report = imported(path, source_format)
    assert n > 0
    assert doubts(report)["foreign_zones"] == n
    assert ("mixed_zones" in doubts(report)) is (source_format != "fhir")
    assert (cohort.features != plain.features).nnz == 0


def test_rows_that_come_twice_are_doubted_and_blank_ones_at_the_end_are_not_there(tmp_path):
    path = write(hospital(), "csv", tmp_path)
    rows = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([*rows, *rows[1:], ",,,,,", ",,,,,"]), encoding="utf-8")
    cohort, report = imported(path)
    assert len(cohort.instances) == N_INSTANCES
    assert len(cohort.patients) == N_PATIENTS
    assert doubts(report) == {"repeated_rows": len(rows) - 1}


def test_tasks_that_look_alike_are_named(tmp_path):
    acts = hospital()
    twins = [replace(act, item="\u0420otassium") for act in acts[::2] if act.item == "Potassium"]
    _, report = imported(write([*acts, *twins], "csv", tmp_path))
    check = next(each for each in report.checks if each.name == "alike_tasks")
    assert check.severity is Severity.YELLOW
    assert check.count == 2


HEADER = "patient,time,code,value,text,unit"
ROW = "P00{},2026-01-01 10:00,LAB//ORDER//Potassium,,{},"


def read(tmp_path, rows):
    path = tmp_path / "a.csv"
    path.write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    (file,) = text_files(path)
    layout = look_at(file)
    return sum(batch.num_rows for _, batch in batches(file, layout, ["patient", "code"]))


@pytest.mark.parametrize("n_between", [0, 1, 5])
def test_a_quote_that_is_not_closed_swallows_no_row(tmp_path, n_between):
    between = [ROW.format(i, "") for i in range(n_between)]
    with pytest.raises(SourceError, match=r"a\.csv: a cell of row 3 holds the beginning of another row"):
        read(tmp_path, [ROW.format(1, ""), ROW.format(1, '"5 inch'), *between, ROW.format(1, '5 inch"')])


def test_a_text_of_several_lines_is_one_cell(tmp_path):
    rows = [ROW.format(1, '"first, of two,\nlines, with, commas, in them"'), ROW.format(2, '"a ""quote"" inside"')]
    assert read(tmp_path, rows) == 2


@pytest.mark.parametrize(
    "text",
    [
        *["Storniert", "nicht durchgeführt", "DRAFT", "entered_in_error", "Not-Done", "annulé", "Abgelehnt"],
        *["CANCELLED: hemolyzed", "Cancelled by lab", "Not given - patient asleep", "canceled/duplicate"],
        *["ORDER_CANCELLED", "Cancelled order", "specimen-rejected", "LAB CANCELED", "dose missed"],
        *["Storno", "Abbruch", "annulliert", "Auftrag wurde storniert", "storniert am 3.1.", "GELOESCHT", "UNGUELTIG"],
        *["annulée", "ANNULE", "Prescription annulée", "Annulé par le médecin", "non effectuées", "Non-prélevé"],
        *["annullata", "Ordine annullato", "non somministrata", "Cancelado", "pedido cancelado", "CANCELACION"],
        *["no realizada", "anuladas por el médico", "geannuleerd door arts", "niet_toegediend", "niet afgenomen"],
    ],
)
def test_statuses_of_what_was_never_done_are_known(text):
    assert site().says_not_done(text)
    assert site().is_known_status(text)


@pytest.mark.parametrize(
    "text",
    [
        *["completed", "on-hold", "Stopped", "abgesetzt", "in_progress", "", "NULL", "final", "durchgefuehrt"],
        *["administrée", "ARRETE", "terminada", "somministrata"],
    ],
)
def test_statuses_of_what_was_ordered_are_known(text):
    assert not site().says_not_done(text)
    assert site().is_known_status(text)


@pytest.mark.parametrize("text", ["Vidimiert", "cancelling nothing", "Z", "order"])
def test_other_statuses_are_unknown_and_count_as_done(text):
    assert not site().says_not_done(text)
    assert not site().is_known_status(text)


@pytest.mark.parametrize("word", ["NULL", "nan", "\\N", "(null)"])
def test_a_word_for_nothing_is_no_item(word):
    mapping = site(rules=[{"code": "LAB//(?P<item>.+)", "kind": "LAB_RESULT"}])
    assert recognise(f"LAB//{word}", mapping).kind is None
    assert recognise("LAB//Na", mapping).item == "Na"


@pytest.mark.parametrize(("word", "sex"), [("weiblich", "F"), ("Männlich", "M"), ("FEMME", "F"), ("divers", "")])
def test_sexes_are_known_in_several_languages(word, sex):
    assert recognise(f"SEX//{word}", site(rules=[{"code": "SEX//(?P<item>.+)", "kind": "SEX"}])).item == sex


def omop(tmp_path, table, change):
    """Import the hospital as OMOP with one table changed."""
    folder = write(hospital(), "omop", tmp_path)
    read = pd.read_csv(folder / f"{table}.csv", dtype=str, keep_default_na=False)
    change(read)
    read.to_csv(folder / f"{table}.csv", index=False)
    return imported(folder, "omop")


def test_orders_that_stop_before_they_start_are_counted(tmp_path):
    def change(drugs):
        drugs.loc[::3, "drug_exposure_end_datetime"] = "2025-12-30 10:00"

    cohort, report = omop(tmp_path, "drug_exposure", change)
    assert doubts(report) == {"turned_orders": 12}
    assert (cohort.events["kind"] == "MEDICATION_ORDER").sum() == 35


def test_an_exposure_that_was_entered_in_error_is_no_order(tmp_path):
    def change(drugs):
        drugs["stop_reason"] = ["Entered in error"] * 5 + ["Therapy complete"] * (len(drugs) - 5)

    cohort, report = omop(tmp_path, "drug_exposure", change)
    assert (cohort.events["kind"] == "MEDICATION_ORDER").sum() == 30
    assert "unknown_words" not in doubts(report)
    assert next(check for check in report.checks if check.name == "never_done").count == 10


@pytest.mark.parametrize("reason", ["Abbruch", "Patient refused", "aborted: rash", "Refusé", "Withdrawn by consultant"])
def test_an_exposure_that_was_broken_off_ran_until_then(reason, tmp_path):
    """Only one that did not run is called off by the same words."""

    def change(drugs):
        drugs["stop_reason"] = reason
        drugs.loc[:4, "drug_exposure_end_datetime"] = drugs.loc[:4, "drug_exposure_start_datetime"]
        drugs.loc[5:6, "drug_exposure_end_datetime"] = ""

    cohort, _ = omop(tmp_path, "drug_exposure", change)
    kinds = cohort.events["kind"].value_counts()
    assert (kinds["MEDICATION_ORDER"], kinds["MEDICATION_STOP"]) == (28, 28)


def test_an_exposure_without_an_end_lasts_as_long_as_its_supply(tmp_path):
    def change(drugs):
        drugs["drug_exposure_end_datetime"] = ""
        drugs["days_supply"] = ["2", "0", "", "-1", "99999"] * 7

    cohort, _ = omop(tmp_path, "drug_exposure", change)
    stops = cohort.events[cohort.events["kind"] == "MEDICATION_STOP"]
    starts = cohort.events[cohort.events["kind"] == "MEDICATION_ORDER"].set_index("patient_id")["time"]
    assert len(stops) == 7
    two_days = pd.Timedelta(days=2)
    assert all(
        (starts[[patient]] == time - two_days).any()
        for patient, time in zip(stops["patient_id"], stops["time"], strict=True)
    )


def test_patients_without_a_person_are_remarked_on(tmp_path):
    def change(people):
        people.loc[[2, 5], "person_id"] = ["98", "99"]

    cohort, report = omop(tmp_path, "person", change)
    assert len(cohort.instances) == N_INSTANCES
    assert report.read.remarks == (
        "visit_occurrence names 2 patients without a row in person: sex and age are missing.",
    )


def test_two_slashes_in_a_unit_are_no_part_of_the_lab(tmp_path):
    def change(labs):
        labs["unit_source_value"] = "mmol//L"

    cohort, _ = omop(tmp_path, "measurement", change)
    labs = cohort.events[cohort.events["kind"] == "LAB_RESULT"]
    assert (set(labs["item"]), set(labs["unit"])) == ({"Potassium", "Creatinine"}, {"mmol/L"})


def test_a_person_without_a_concept_has_the_sex_of_the_source(tmp_path):
    def change(people):
        people["gender_concept_id"] = "0"
        people["gender_source_value"] = ["F", "male", "", "U"] + ["f"] * 10

    cohort, report = omop(tmp_path, "person", change)
    assert cohort.patients["sex"].value_counts().to_dict() == {"F": 11, "M": 1}
    assert "unknown_words" not in doubts(report)


def with_concepts(tmp_path, change):
    """Import the hospital as OMOP with its labs changed, beside concepts of two local vocabularies."""
    folder = write(hospital(), "omop", tmp_path)
    concepts = "concept_id,concept_name\n0,No matching concept\n8840,milligram per deciliter\n45884084,Positive\n"
    (folder / "concept.csv").write_text(f"{concepts}2000000001,Local potassium\n2000000002,Local creatinine\n")
    labs = pd.read_csv(folder / "measurement.csv", dtype=str, keep_default_na=False)
    change(labs, (labs["measurement_source_value"] == "Potassium").to_numpy())
    labs.to_csv(folder / "measurement.csv", index=False)
    return imported(folder, "omop")


@pytest.mark.parametrize("value", ["1234", ""])
def test_one_code_of_two_vocabularies_is_two_labs(tmp_path, value):
    def change(labs, is_potassium):
        labs["measurement_source_value"] = value
        labs["measurement_source_concept_id"] = np.where(is_potassium, "2000000001", "2000000002")

    cohort, _ = with_concepts(tmp_path, change)
    names = set(cohort.tasks.loc[cohort.tasks["kind"] == "LAB_ORDER", "name"])
    assert names == {"Local potassium", "Local creatinine"}


def test_a_code_of_the_source_is_not_named_after_a_concept_of_its_number(tmp_path):
    def change(labs, is_potassium):
        labs["measurement_source_value"] = np.where(is_potassium, "8840", "50912")

    cohort, report = with_concepts(tmp_path, change)
    assert set(cohort.tasks["name"]) == {"8840", "50912", "Heparin"}
    assert "unnamed_tasks" in doubts(report)


def test_a_result_without_number_or_text_says_what_its_concept_is_called(tmp_path):
    def change(labs, is_potassium):
        labs["value_as_number"] = np.where(is_potassium, "", labs["value_as_number"])
        labs["value_as_concept_id"] = np.where(is_potassium, "45884084", "0")

    cohort, _ = with_concepts(tmp_path, change)
    texts = cohort.events.loc[cohort.events["kind"] == "LAB_RESULT"].groupby("name", observed=True)["text"]
    assert texts.agg(lambda found: set(found.astype("str"))).to_dict() == {
        "Creatinine": {""},
        "Potassium": {"Positive"},
    }


@pytest.mark.parametrize("nobody", ["", "NULL", "\\N"])
def test_an_event_of_no_person_is_refused(tmp_path, nobody):
    def change(labs):
        labs.loc[5, "person_id"] = nobody

    with pytest.raises(SourceError, match=r"measurement\.csv: row 7 has no person_id"):
        omop(tmp_path, "measurement", change)
