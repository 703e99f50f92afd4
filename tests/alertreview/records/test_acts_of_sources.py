"""What counts as a decision: acts called off, doses beside a few orders, greedy rules, dates without times."""

import shutil
from dataclasses import replace
from itertools import cycle

import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

from alertreview.files import preset_paths
from alertreview.records.importing import build_cohort, choose_mapping
from alertreview.records.mapping_help import check_mapping, save_suggestion, suggest_mapping
from core.errors import MappingError
from core.events.plausibility import Severity
from tests.support.lying_records import FORMATS, N_INSTANCES, Act, hospital, write


def imported(path, source_format="csv", mapping=None):
    return build_cohort(path, format=source_format, mapping=mapping, min_positive=1)


def check(report, name):
    return next(each for each in report.checks if each.name == name)


def edited_preset(tmp_path, source_format="csv", **changes):
    name = {"csv": "csv", "meds": "mimic-iv-meds-0.2", "omop": "omop"}[source_format]
    content = yaml.safe_load(preset_paths()[name].read_text(encoding="utf-8"))
    path = tmp_path / "mapping.yaml"
    path.write_text(yaml.safe_dump({**content, **changes}), encoding="utf-8")
    return path


def tasks(cohort):
    return dict(zip(cohort.tasks["task_key"], cohort.tasks["n_positive"], strict=True))


def appended(path, rows):
    with path.open("a", encoding="utf-8") as file:
        file.writelines(row + "\n" for row in rows)
    return path


def orders_of_troponin():
    """An order at 23:00 of every day in hospital, never answered."""
    days = pd.date_range("2026-01-03", "2026-01-09").strftime("%Y-%m-%d")
    return [f"P00{patient},{day} 23:00,LAB//ORDER//Troponin,,," for day in days for patient in (1, 2, 3)]


CALLED_OFF = (
    "LAB//CANCELLED//{}",
    "LAB//Canceled//{}",
    "LAB//ORDER//{}//ENTERED_IN_ERROR",
    "LAB//ENTERED-IN-ERROR//{}",
    "LAB//NOT DONE//{}",
    "LAB//ORDER//STORNIERT//{}",
    "LAB//annulé//{}",
)


def test_an_order_that_was_called_off_is_no_order(tmp_path):
    """A lab for each way of calling off."""
    source = write(hospital(), "csv", tmp_path / "source")
    plain, _ = imported(source)
    later = []
    for number, code in enumerate(CALLED_OFF):
        ordered = [row.replace("Troponin", f"Lab {number}") for row in orders_of_troponin()]
        called_off = [row.replace(f"LAB//ORDER//Lab {number}", code.format(f"Lab {number}")) for row in ordered]
        later += [row if "ORDER" in code else row.replace(" 23:00", " 23:03") for row in called_off]
        appended(source, ordered)
    cohort, report = imported(appended(source, later))
    assert tasks(cohort) == tasks(plain)
    assert check(report, "never_done").count >= len(later)


def test_a_word_of_the_mapping_calls_off_too_and_others_do_not(tmp_path):
    source = write(hospital(), "csv", tmp_path / "source")
    plain, _ = imported(source)
    appended(source, [row.replace("ORDER//Troponin", "Troponin//Zurückgestellt") for row in orders_of_troponin()])
    other, _ = imported(source)
    assert tasks(other) != tasks(plain)
    cohort, _ = imported(source, mapping=edited_preset(tmp_path, not_done_words=["zurueckgestellt"]))
    assert tasks(cohort) == tasks(plain)


def test_an_order_stands_when_another_was_called_off(tmp_path):
    source = write(hospital(), "csv", tmp_path / "source")
    day = "P001,2026-01-04 "
    rows = [
        day + "09:00,LAB//ORDER//Troponin,,,",
        day + "10:00,LAB//RESULT//Troponin//ng/L,5,,",
        day + "11:00,LAB//ORDER//Troponin,,,",
        day + "11:05,LAB//CANCELLED//Troponin,,,",
    ]
    cohort, _ = imported(appended(source, rows))
    assert tasks(cohort)["LAB_ORDER/Troponin"] == 1


def test_a_status_column_calls_off(tmp_path):
    source = write(hospital(), "csv", tmp_path / "source")
    plain, _ = imported(source)
    lines = source.read_text(encoding="utf-8").splitlines()
    with_status = [lines[0] + ",status", *(line + ",completed" for line in lines[1:])]
    words = cycle(("cancelled", "Entered in error", "not-done"))
    called_off = [f"{row},{word}" for row, word in zip(orders_of_troponin(), words, strict=False)]
    source.write_text("\n".join([*with_status, *called_off]), encoding="utf-8")
    cohort, report = imported(source)
    assert tasks(cohort) == tasks(plain)
    assert check(report, "never_done").count == len(orders_of_troponin())


def test_acts_of_meds_are_called_off_as_those_of_a_csv(tmp_path):
    folder = write(hospital(), "meds", tmp_path / "meds")
    plain, _ = imported(folder, "meds")
    path = folder / "data" / "0.parquet"
    table = pq.read_table(path).to_pandas()
    extra = table[table["code"].str.startswith("LAB//SPECIMEN")].head(20)
    ordered = extra.assign(code="LAB//SPECIMEN_COLLECTED//50813")
    called_off = ordered.assign(code="LAB//SPECIMEN_COLLECTED//50813//CANCELLED")
    pd.concat([table, ordered, called_off]).to_parquet(path, index=False)
    cohort, _ = imported(folder, "meds")
    assert tasks(cohort) == tasks(plain)


def test_a_status_column_of_meds_calls_off(tmp_path):
    folder = write(hospital(), "meds", tmp_path / "meds")
    plain, _ = imported(folder, "meds")
    path = folder / "data" / "0.parquet"
    table = pq.read_table(path).to_pandas().assign(status="completed")
    ordered = table[table["code"].str.startswith("LAB//SPECIMEN")].assign(
        code="LAB//SPECIMEN_COLLECTED//50813", status="Cancelled"
    )
    pd.concat([table, ordered]).to_parquet(path, index=False)
    cohort, report = imported(folder, "meds")
    assert tasks(cohort) == tasks(plain)
    assert check(report, "never_done").count == len(ordered)


@pytest.mark.parametrize("n_orders", [0, 1])
def test_doses_without_orders_are_named_where_orders_alone_decide(tmp_path, n_orders):
    """The preset of MEDS counts orders of drugs: without a word those that were only given were no tasks."""
    acts = [act for act in hospital() if act.what != "stop"]
    starts = [act for act in acts if act.what == "start"]
    given = [replace(act, what="dose") if act in starts[n_orders:] else act for act in acts]
    _, report = imported(write(given, "meds", tmp_path / "given"), "meds")
    assert any("1 drug (Heparin)" in remark and "medication_tasks_from" in remark for remark in report.read.remarks)
    _, report = imported(write(acts, "meds", tmp_path / "ordered"), "meds")
    assert not any("medication_tasks_from" in remark for remark in report.read.remarks)


@pytest.mark.parametrize("source_format", ["csv", "omop"])
@pytest.mark.parametrize("n_orders", [0, 1, 3])
def test_a_few_orders_beside_many_doses_leave_the_task(tmp_path, source_format, n_orders):
    acts = [act for act in hospital() if act.what != "stop"]
    starts = [act for act in acts if act.what == "start"]
    plain, _ = imported(write(acts, source_format, tmp_path / "plain"), source_format)
    if source_format == "csv":
        doses = [replace(act, what="dose") if act in starts[n_orders:] else act for act in acts]
        path = write(doses, "csv", tmp_path / "doses")
    else:
        path = write(acts, "omop", tmp_path / "doses")
        table = pd.read_csv(path / "drug_exposure.csv")
        table["drug_type_concept_id"] = [32838 if i < n_orders else 32818 for i in range(len(table))]
        table.to_csv(path / "drug_exposure.csv", index=False)
    cohort, report = imported(path, source_format)
    assert tasks(cohort) == tasks(plain)
    assert check(report, "stray_orders").count == (n_orders > 0)


def test_doses_of_ordered_drugs_are_no_decisions_of_their_own(tmp_path):
    acts = hospital()
    given = [replace(act, what="dose", time=act.time.replace("22:00", "23:30")) for act in acts if act.what == "start"]
    given += [replace(act, time=str(pd.Timestamp(act.time) + pd.Timedelta(days=1))[:16]) for act in given]
    plain, _ = imported(write(acts, "csv", tmp_path / "plain"))
    cohort, report = imported(write([*acts, *given], "csv", tmp_path / "doses"))
    assert tasks(cohort) == tasks(plain)
    assert check(report, "stray_orders").count == 0


@pytest.mark.parametrize("unit", ["mmol/L", "/uL", "10^9/L", "%", ""])
@pytest.mark.parametrize("place", ["code", "column"])
def test_the_unit_is_in_the_code_or_in_its_column(tmp_path, unit, place):
    source = write(hospital(), "csv", tmp_path / "source")
    table = pd.read_csv(source, dtype="str", keep_default_na=False)
    is_result = table["code"].str.contains("RESULT")
    bare = table["code"].str.replace("//mmol/L", "")
    table["code"] = bare + (f"//{unit}" if place == "code" and unit else "")
    table["code"] = table["code"].where(is_result, bare)
    if place == "column":
        table.loc[is_result, "unit"] = unit
    table.to_csv(source, index=False)
    cohort, _ = imported(source)
    assert set(cohort.tasks["task_key"]) == {"LAB_ORDER/Creatinine", "LAB_ORDER/Potassium", "MEDICATION/heparin"}
    results = cohort.events[cohort.events["kind"] == "LAB_RESULT"]
    assert set(results["unit"].astype("str")) == {unit}
    assert results["value"].notna().all()


def test_a_rule_that_makes_one_item_of_many_codes_is_refused(tmp_path):
    source = write(hospital(), "csv", tmp_path / "source")
    appended(source, [f"P001,2026-01-04 09:00,CHEM//RESULT//Test {i},5,," for i in range(20)])
    rule = {"code": r"CHEM//(?P<item>[^/]+)//.*", "kind": "LAB_RESULT"}
    rules = yaml.safe_load(preset_paths()["csv"].read_text(encoding="utf-8"))["rules"]
    mapping = edited_preset(tmp_path, rules=[rule, *rules])
    with pytest.raises(MappingError) as caught:
        imported(source, mapping=mapping)
    for part in ("CHEM//", "'RESULT'", "20 of the 20", "CHEM//RESULT//Test 0"):
        assert part in str(caught.value)
    assert any("RESULT" in problem for problem in check_mapping(source, format="csv", mapping=mapping).problems)
    fixed = edited_preset(tmp_path, rules=[{**rule, "item": "Any test"}, *rules])
    assert len(imported(source, mapping=fixed)[0].instances) == N_INSTANCES


@pytest.mark.parametrize("source_format", FORMATS)
def test_a_check_of_the_mapping_counts_what_the_import_counts(tmp_path, source_format):
    path = write(hospital(), source_format, tmp_path / "source")
    report = imported(path, source_format)[1]
    found = check_mapping(path, format=source_format)
    assert (found.n_rows, found.kinds, found.mapping) == (report.read.n_rows, report.read.kinds, report.mapping)
    assert sorted(found.dropped, key=str) == sorted(report.read.dropped, key=str)


@pytest.mark.parametrize("source_format", FORMATS)
def test_a_draft_of_a_mapping_counts_what_it_will_check_and_import(tmp_path, source_format):
    path = write(hospital(n=4), source_format, tmp_path / "source")
    draft = suggest_mapping(path, format=source_format)
    mapping = tmp_path / "own.yaml"
    save_suggestion(draft, mapping)
    report = build_cohort(path, format=source_format, mapping=mapping)[1]
    assert draft.check == check_mapping(path, format=source_format, mapping=mapping)
    assert (draft.check.n_rows, draft.check.kinds) == (report.read.n_rows, (*report.read.kinds, *report.read.facts))
    assert sorted(draft.check.dropped, key=str) == sorted(report.read.dropped, key=str)


def test_drugs_with_dates_alone_are_named_and_may_count_for_their_day(tmp_path):
    acts = [replace(act, time=act.time[:10]) if act.what in ("start", "stop") else act for act in hospital()]
    source = write(acts, "csv", tmp_path / "source")
    cohort, report = imported(source)
    found = check(report, "midnight_times")
    assert any(example.startswith("MEDICATION_ORDER") for example in found.examples)
    assert not any(example.startswith("LAB") for example in found.examples)
    assert found.severity is Severity.YELLOW
    plain, _ = imported(write(hospital(), "csv", tmp_path / "plain"))
    by_day, _ = imported(source, mapping=edited_preset(tmp_path, day_level=["MEDICATION_ORDER", "MEDICATION_STOP"]))
    # An order of 22:00 is decided in the window that begins at 08:00 of its day; the first day has no such window.
    assert tasks(by_day) == tasks(plain)
    assert tasks(cohort) != tasks(plain)


def test_a_file_with_dates_alone_beside_one_with_times_is_named(tmp_path):
    """Of one kind, half the events are dates: the share of all of them says nothing."""
    lines = write(hospital(), "csv", tmp_path / "plain").read_text(encoding="utf-8").splitlines()
    folder = tmp_path / "two"
    folder.mkdir()
    dated = [line.replace(line.split(",")[1], line.split(",")[1][:10]) for line in lines if "LAB//RESULT" in line]
    (folder / "times.csv").write_text("\n".join(lines), encoding="utf-8")
    (folder / "dates.csv").write_text("\n".join([lines[0], *dated]), encoding="utf-8")
    _, report = imported(folder)
    found = check(report, "midnight_times")
    assert found.examples == ("LAB_RESULT in dates.csv (100% at midnight)",)
    assert (found.count, found.severity) == (len(dated), Severity.YELLOW)
    assert check(imported(write(hospital(), "csv", tmp_path / "one"))[1], "midnight_times").count == 0


def test_an_item_of_two_kinds_has_a_name_in_each(tmp_path):
    folder = write(hospital(), "meds", tmp_path / "meds")
    path = folder / "data" / "0.parquet"
    table = pq.read_table(path).to_pandas()
    table["code"] = table["code"].str.replace("Heparin", "50912")
    table.to_parquet(path, index=False)
    codes = {"LAB//RESULT//50912//mmol/L": "Creatinine", "MEDICATION//START//50912": "Heparin sodium"}
    (folder / "metadata").mkdir()
    pd.DataFrame(codes.items(), columns=["code", "description"]).to_parquet(folder / "metadata" / "codes.parquet")
    cohort, report = imported(folder, "meds")
    names = dict(zip(cohort.tasks["kind"] + cohort.tasks["task_key"].str[:16], cohort.tasks["name"], strict=True))
    assert names["LAB_ORDERLAB_ORDER/50912"] == "Creatinine"
    assert names["MEDICATIONMEDICATION/50912"] == "Heparin sodium"
    features = cohort.feature_dictionary["name"]
    assert features.str.startswith("Creatinine").any()
    assert features.str.contains("Heparin sodium").any()
    assert check(report, "unnamed_tasks").examples == ("LAB_ORDER/50971",)


def test_two_tasks_of_one_name_show_what_tells_them_apart(tmp_path):
    folder = write(hospital(), "meds", tmp_path / "meds")
    codes = {f"LAB//RESULT//{item}//mmol/L": "Glucose" for item in ("50971", "50912")}
    (folder / "metadata").mkdir()
    pd.DataFrame(codes.items(), columns=["code", "description"]).to_parquet(folder / "metadata" / "codes.parquet")
    cohort, _ = imported(folder, "meds")
    labs = cohort.tasks.loc[cohort.tasks["kind"] == "LAB_ORDER", "name"].tolist()
    assert sorted(labs) == ["Glucose (mmol/L) [50912]", "Glucose (mmol/L) [50971]"]


def test_the_mapping_that_the_program_chooses_reads_every_format(tmp_path):
    for source_format in FORMATS:
        path = write([*hospital(), Act(0, "2026-01-20", "death")], source_format, tmp_path / source_format)
        assert choose_mapping(path, source_format, None).name in preset_paths()
        shutil.rmtree(tmp_path / source_format)
