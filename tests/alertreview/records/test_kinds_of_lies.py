"""Kinds of doubtful records beyond single examples: what each has to come to, and what the report has to say."""

import json
from dataclasses import replace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from alertreview.files import preset_paths
from alertreview.records.importing import build_cohort
from core.errors import MappingError
from core.events.mapping import load_mapping
from core.events.plausibility import Severity
from tests.support.lying_records import FORMATS, N_DAYS, N_INSTANCES, N_PATIENTS, Act, at_time, hospital, without, write


def imported(path, source_format="csv"):
    return build_cohort(path, format=source_format, min_positive=1)


def written(acts, tmp_path, source_format="csv"):
    return imported(write(acts, source_format, tmp_path), source_format)


def checks(report, severity=Severity.RED):
    return {check.name: check.count for check in report.checks if check.severity is severity}


def days_of(cohort, patient):
    return cohort.instances.loc[cohort.instances["patient_id"].str.lstrip("P").astype("int") == patient, "snapshot_at"]


def test_a_discharge_that_nobody_can_know_yet_is_none(tmp_path):
    today = pd.Timestamp.now().normalize()
    acts = hospital(lambda i: str((today - pd.Timedelta(days=20 - i)).date()))
    planned = at_time(acts, 3, "discharge", f"{(today + pd.Timedelta(days=9)).date()} 10:00")
    cohort, report = written(planned, tmp_path)
    assert len(cohort.instances) == N_INSTANCES - 1
    assert checks(report).keys() == {"future_events", "open_stays"}


@pytest.mark.parametrize("source_format", ["csv", "omop", "meds"])
@pytest.mark.parametrize("time", ["2026-09-01 10:00", "2026-05-01"])
def test_a_discharge_months_after_everything_else_is_far(source_format, time, tmp_path):
    cohort, report = written(at_time(hospital(), 3, "discharge", time), tmp_path, source_format)
    assert len(cohort.instances) == N_INSTANCES - 1
    assert checks(report) == {"far_dates": 1, "open_stays": 1}


@pytest.mark.parametrize("source_format", ["csv", "omop"])
@pytest.mark.parametrize("what", ["admit", "discharge", "birth"])
def test_no_calendar_has_years_such_as(source_format, what, tmp_path):
    if source_format == "omop" and what == "birth":
        what = "start"
    times = {3: "0226-01-04 10:00", 4: "1111-11-11", 5: "8888-08-08"}
    acts = hospital()
    for patient, time in times.items():
        acts = at_time(acts, patient, what, time)
    cohort, report = written(acts, tmp_path, source_format)
    for patient in times:
        assert len(days_of(cohort, patient)) in ({0} if what == "admit" else {N_DAYS - 1, N_DAYS})
    n_of_others = len(cohort.instances) - sum(len(days_of(cohort, patient)) for patient in times)
    assert n_of_others == N_INSTANCES - len(times) * N_DAYS
    assert checks(report)["sentinel_dates"] >= len(times)
    assert cohort.instances["age_years"].dropna().between(50, 80).all()


@pytest.mark.parametrize("time", ["infinity", "9999-12-31 24:00"])
def test_without_end_is_a_date_that_stands_for_none(time, tmp_path):
    cohort, report = written(at_time(hospital(), 3, "discharge", time), tmp_path)
    assert len(cohort.instances) == N_INSTANCES - 1
    assert checks(report) == {"sentinel_dates": 1, "open_stays": 1}


def test_a_stay_without_a_discharge_before_another_ends_with_its_own_last_event(tmp_path):
    again = [Act(3, "2026-02-10 10:00", "admit"), Act(3, "2026-02-12 10:00", "discharge")]
    plain, _ = written([*hospital(), *again], tmp_path / "plain")
    cohort, report = written([*without(hospital(), 3, "discharge"), *again], tmp_path / "lying")
    assert len(plain.instances) == N_INSTANCES + 2
    assert len(cohort.instances) == N_INSTANCES + 1
    assert checks(report) == {"open_stays": 1}


@pytest.mark.parametrize(("what", "kind"), [("admit", "ADMISSION"), ("discharge", "DISCHARGE"), ("start", "ORDER")])
def test_stays_and_drugs_dated_by_the_day_are_named(what, kind, tmp_path):
    dated = [replace(act, time=act.time[:10]) if act.what == what else act for act in hospital()]
    _, report = written(dated, tmp_path)
    check = next(each for each in report.checks if each.name == "midnight_times")
    assert check.severity is Severity.YELLOW
    assert any(kind in example for example in check.examples)


def spelled(column, change):
    """Return a change of a table in which every second row spells one column otherwise."""

    def respell(table):
        other = table[column].map(change)
        return table.assign(**{column: table[column].where(table.index % 2 == 0, other)})

    return respell


@pytest.mark.parametrize(
    "change",
    [
        spelled("code", lambda code: code.replace("Potassium", "POTASSIUM")),
        spelled("code", lambda code: code.replace("Heparin", "Heparin.")),
        spelled("code", lambda code: code.replace("Creatinine", "\u201ccreatinine\u201d")),
        spelled("patient", lambda name: f"{{{name.upper()}}}"),
    ],
)
def test_a_twin_in_another_case_or_with_signs_around_is_the_same(change, tmp_path):
    path = write(hospital(), "csv", tmp_path)
    table = pd.read_csv(path, dtype="str", keep_default_na=False)
    table["patient"] = [f"0f8fad5b-d9cb-469f-a165-708677289{int(each[1:]):03x}" for each in table["patient"]]
    change(table).to_csv(path, index=False)
    cohort, report = imported(path)
    assert (len(cohort.patients), len(cohort.instances), len(cohort.tasks)) == (N_PATIENTS, N_INSTANCES, 3)
    assert checks(report) == {}
    assert checks(report, Severity.YELLOW)["respelled"] > 0


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("patient", lambda name: f"{name}\u00a0"),
        ("code", lambda code: f" {code}"),
        ("unit", lambda unit: f"{unit} "),
        ("time", lambda time: time.replace(" ", "T")),
    ],
)
def test_rows_that_differ_by_spelling_alone_are_the_same_row(column, change, tmp_path):
    path = write(hospital(), "csv", tmp_path)
    table = pd.read_csv(path, dtype="str", keep_default_na=False)
    pd.concat([table, table.assign(**{column: table[column].map(change)})]).to_csv(path, index=False)
    cohort, report = imported(path)
    assert (len(cohort.patients), len(cohort.instances)) == (N_PATIENTS, N_INSTANCES)
    assert (cohort.events["kind"] == "LAB_RESULT").sum() == sum(act.what == "result" for act in hospital())
    assert checks(report, Severity.YELLOW)["repeated_rows"] == len(table)


WITH_STATUS = "patient,time,code,value,text,unit,status"


STATUSES = {
    "MEDICATION//START//Aspirin": ("CANCELLED BY PROVIDER", False),
    "MEDICATION//START//Bisoprolol": ("patient refused", False),
    "MEDICATION//START//Captopril": ("Duplicate", False),
    "MEDICATION//START//Digoxin": ("on-hold", True),
    "MEDICATION//START//Enalapril": ("D/C'd", True),
    "MEDICATION//Furosemide//Administered": ("held", False),
    "MEDICATION//Furosemide": ("On Hold - surgery", False),
    "MEDICATION//Furosemide//Given": ("pausiert", False),
    "MEDICATION//Glipizide//Administered": ("given", True),
}


def test_a_status_says_whether_an_act_counts(tmp_path):
    path = write(hospital(), "csv", tmp_path)
    _, *rows = path.read_text(encoding="utf-8").splitlines()
    for code, (status, _) in STATUSES.items():
        rows += [f"P{i:03d},2026-01-{i + 3:02d} 12:00,{code},,,,{status}" for i in range(N_PATIENTS)]
    path.write_text(
        "\n".join([WITH_STATUS, *(row if row.count(",") == 6 else f"{row}," for row in rows)]), encoding="utf-8"
    )
    cohort, report = imported(path)
    assert set(cohort.tasks["name"]) == {"Potassium", "Creatinine", "Heparin", "Digoxin", "Enalapril", "Glipizide"}
    assert "unknown_words" not in checks(report, Severity.YELLOW)
    assert checks(report, Severity.YELLOW)["held_orders"] == N_PATIENTS
    assert checks(report, Severity.YELLOW)["ended_orders"] == N_PATIENTS


@pytest.mark.parametrize(("text", "n"), [("4", 0), ("4.{}", 0), ("4.{} H", 0), (">4", 0), ("<3", 5), ("5.{}", 5)])
@pytest.mark.parametrize("source_format", ["csv", "meds"])
def test_a_text_that_is_another_number_than_the_value_is_doubted(source_format, text, n, tmp_path):
    path = write(hospital(n=2), source_format, tmp_path)
    is_csv = source_format == "csv"
    table = pd.read_csv(path, dtype="str", keep_default_na=False) if is_csv else pd.read_parquet(path)
    value = "value" if is_csv else "numeric_value"
    rows = table.index[table[value].astype("str").str.startswith("4.")][:5]
    said = pd.Series([text.format(f"{float(each):.1f}"[2]) for each in table.loc[rows, value]], rows)
    table = table.assign(**{"text" if is_csv else "text_value": said.reindex(table.index, fill_value="")})
    table.to_csv(path, index=False) if is_csv else table.to_parquet(path / "data" / "0.parquet")
    cohort, report = imported(path, source_format) if is_csv else build_cohort(path, format="meds", min_positive=1)
    assert checks(report, Severity.YELLOW).get("contradicted_values", 0) == n
    assert cohort.events["value"].max() < 5


@pytest.mark.parametrize(("n_given", "severity"), [(1, Severity.YELLOW), (13, Severity.OK)])
def test_orders_that_nobody_gave_are_counted(n_given, severity, tmp_path):
    doses = [Act(i, f"2026-01-{i + 3:02d} 12:00", "dose", "Heparin") for i in range(n_given)]
    _, report = written([*hospital(), *doses], tmp_path)
    check = next(each for each in report.checks if each.name == "ungiven_orders")
    assert (check.count, check.n_of, check.severity) == (N_PATIENTS - n_given, N_PATIENTS, severity)


def test_lost_values_are_named_by_item(tmp_path):
    other = [replace(act, unit="mg/dL") if act.patient == 2 and act.item == "Potassium" else act for act in hospital()]
    _, report = written(other, tmp_path)
    check = next(each for each in report.checks if each.name == "lost_values")
    n = sum(act.what == "result" and act.unit == "mg/dL" for act in other)
    assert (check.count, check.examples) == (n, (f"Potassium ({n} values)",))


@pytest.mark.parametrize("source_format", FORMATS)
def test_a_number_that_stands_for_none_is_no_value_in_any_format(source_format, tmp_path):
    lying = [replace(act, value="999999") if act.patient == 2 and act.what == "result" else act for act in hospital()]
    cohort, report = written(lying, tmp_path, source_format)
    check = next(each for each in report.checks if each.name == "lost_values")
    assert check.count == sum(act.value == "999999" for act in lying)
    assert cohort.events["value"].max() < 10


@pytest.mark.parametrize(
    ("zone", "raised"), [(None, {}), ("UTC", {}), ("America/New_York", {}), ("Asia/Tokyo", {"foreign_zones": 364})]
)
def test_a_zone_of_typed_times_that_is_not_the_sites_is_counted(zone, raised, tmp_path):
    folder = write(hospital(), "meds", tmp_path)
    path = folder / "data" / "0.parquet"
    table = pq.read_table(path, partitioning=None)
    column = table["time"].cast(pa.timestamp("us", zone))
    pq.write_table(table.set_column(table.column_names.index("time"), "time", column), path)
    found = checks(imported(folder, "meds")[1], Severity.YELLOW)
    assert {name: n for name, n in found.items() if name.endswith("zones")} == raised


def changed_results(change, item="Creatinine"):
    """Return the hospital with every third result of a lab changed."""
    results = [act for act in hospital() if (act.what, act.item) == ("result", item)][::3]
    return [change(act) if act in results else act for act in hospital()], len(results)


@pytest.mark.parametrize("source_format", ["csv", "omop", "fhir"])
def test_dates_among_times_of_fixed_rounds_are_doubted(source_format, tmp_path):
    """All others are measured at two minutes of the day, so that midnights do not stand out."""
    acts, n = changed_results(lambda act: replace(act, time=act.time[:10]))
    _, report = written(acts, tmp_path, source_format)
    assert checks(report, Severity.YELLOW).get("some_dates") == n


@pytest.mark.parametrize("source_format", FORMATS)
@pytest.mark.parametrize("unit", ["mmol/L", "umol/L"])
def test_numbers_in_another_unit_are_doubted_or_lost_by_name(source_format, unit, tmp_path):
    """They are lost where the unit is said, and in MEDS, whose preset knows what is plausible."""
    acts, n = changed_results(lambda act: replace(act, value=str(18 * float(act.value)), unit=unit))
    negative = [act for act in acts if act.what == "result" and act.item == "Potassium"][:2]
    acts = [replace(act, value="-1") if act in negative else act for act in acts]
    _, report = written(acts, tmp_path, source_format)
    found = checks(report, Severity.YELLOW) | checks(report)
    is_known = source_format == "meds"
    assert found.get("lost_values", 0) == (n if unit == "umol/L" or is_known else 0) + 2 * is_known
    assert found.get("two_scales", 0) == (n if unit == "mmol/L" and not is_known else 0)
    assert found.get("stray_negatives", 0) == 2 * (not is_known)


@pytest.mark.parametrize(
    ("source_format", "pattern"), [("csv", "LAB//RESULT//.+//(?P<item>.+)"), ("omop", "MEASUREMENT//.+?//(?P<item>.+)")]
)
def test_a_rule_that_takes_units_for_labs_is_refused(source_format, pattern, tmp_path):
    content = load_mapping(preset_paths()[source_format]).model_dump(mode="json", exclude_defaults=True)
    rules = [{"code": pattern, "kind": "LAB_RESULT"}, *content["rules"]]
    own = tmp_path / "own.yaml"
    own.write_text(yaml.safe_dump({**content, "rules": rules}), encoding="utf-8")
    with pytest.raises(MappingError, match="takes units for items, such as 'mmol/L' in "):
        build_cohort(write(hospital(), source_format, tmp_path / "source"), format=source_format, mapping=own)


def _renumbered_meds(folder, change):
    path = folder / "data" / "0.parquet"
    table = pq.read_table(path)
    stays = [change(each) for each in table["subject_id"].to_pylist()]
    pq.write_table(table.append_column("hadm_id", pa.array(stays, pa.int64())), path)


def _renumbered_omop(folder, change):
    path = folder / "visit_occurrence.csv"
    table = pd.read_csv(path, dtype="str", keep_default_na=False)
    table.assign(visit_occurrence_id=table["person_id"].map(lambda each: change(int(each)))).to_csv(path, index=False)


def _renumbered_fhir(folder, change):
    path = folder / "Encounter.000.ndjson"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    named = [{**each, "id": f"E{change(int(each['subject']['reference'][-3:]))}"} for each in lines]
    path.write_text("".join(json.dumps(each) + "\n" for each in named), encoding="utf-8")


@pytest.mark.parametrize(
    ("source_format", "renumber"),
    [("meds", _renumbered_meds), ("omop", _renumbered_omop), ("fhir", _renumbered_fhir)],
)
@pytest.mark.parametrize(("change", "n"), [(lambda i: i + 1, 0), (lambda i: max(i, 1), 1), (lambda i: 1, 1)])
def test_patients_with_one_number_of_a_stay_each_have_their_own_and_it_is_told(
    source_format, renumber, change, n, tmp_path
):
    folder = write(hospital(), source_format, tmp_path)
    renumber(folder, change)
    cohort, report = imported(folder, source_format)
    assert (len(cohort.stays), len(cohort.instances)) == (N_PATIENTS, N_INSTANCES)
    assert checks(report, Severity.YELLOW).get("shared_stays", 0) == n
    assert not checks(report)
