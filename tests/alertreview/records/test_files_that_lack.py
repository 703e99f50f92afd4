"""Files that are empty, stand beside the others, or are in the encoding of Windows, in several formats."""

import shutil

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alertreview.records.importing import build_cohort
from core.errors import AlertReviewError
from core.events.plausibility import OF_RULES
from tests.support.lying_records import N_PATIENTS, Act, hospital, write


def imported(path, source_format):
    return build_cohort(path, format=source_format, min_positive=1)


def unread(report):
    return next(check.examples for check in report.checks if check.name == "unread_files")


@pytest.mark.parametrize("end", ["\n", ""])
@pytest.mark.parametrize("mapping", [None, "csv"])
def test_a_header_alone_is_no_source(end, mapping, tmp_path):
    path = tmp_path / "records.csv"
    path.write_text(f"patient,time,code{end}", encoding="utf-8")
    with pytest.raises(AlertReviewError, match="The source has no row, at most a header"):
        build_cohort(path, format="csv", mapping=mapping)


def test_an_empty_file_of_an_export_is_doubted(tmp_path):
    folder = write(hospital(n=2), "fhir", tmp_path)
    (folder / "Observation.000.ndjson").write_bytes(b"")
    assert unread(imported(folder, "fhir")[1]) == ("Observation.000.ndjson",)


def test_events_beside_the_data_of_meds_are_doubted(tmp_path):
    folder = write(hospital(n=2), "meds", tmp_path)
    shutil.copytree(folder / "data", folder / "old" / "data")
    shutil.copy(folder / "data" / "0.parquet", folder / "1.parquet")
    assert unread(imported(folder, "meds")[1]) == ("1.parquet", "old/data/0.parquet")


@pytest.mark.parametrize(("source_format", "name"), [("csv", "records.csv"), ("omop", "measurement.csv")])
def test_signs_of_windows_are_kept_and_a_file_in_a_folder_is_named_with_it(source_format, name, tmp_path):
    write(hospital(n=2), source_format, tmp_path / "source")
    folder = tmp_path / "source"
    text = (folder / name).read_text(encoding="utf-8").replace("Creatinine", "\u0152stradiol \u20ac")
    (folder / "sub").mkdir()
    (folder / name).unlink()
    (folder / "sub" / name).write_bytes(text.encode("cp1252"))
    cohort, report = imported(folder, source_format)
    assert "\u0152stradiol \u20ac" in set(cohort.tasks["name"])
    assert f"sub/{name} is not UTF-8; it was read as Windows-1252. Check its accents." in report.read.remarks


@pytest.mark.parametrize(("source_format", "name"), [("csv", "records.csv"), ("omop", "person.csv")])
def test_unknown_sexes_are_named(source_format, name, tmp_path):
    path = write(hospital(n=2), source_format, tmp_path)
    table = pd.read_csv(tmp_path / name, dtype="str", keep_default_na=False)
    if source_format == "csv":
        table["code"] = table["code"].str.replace("SEX//F", "SEX//Dame")
    else:
        table = table.assign(gender_concept_id="0", gender_source_value="Dame")
    table.to_csv(tmp_path / name, index=False)
    _, report = imported(path, source_format)
    check = next(each for each in report.checks if each.name == "unknown_words")
    assert (check.count, check.examples) == (2, ("Dame",))


@pytest.mark.parametrize("table", ["measurement", "drug_exposure", "death"])
def test_a_table_without_the_column_of_the_patient_is_refused(table, tmp_path):
    folder = write([*hospital(n=2), Act(0, "2026-01-06 10:00", "death")], "omop", tmp_path)
    without_columns(folder / f"{table}.csv", "person_id")
    with pytest.raises(AlertReviewError, match=rf"{table}.*person_id"):
        imported(folder, "omop")


@pytest.mark.parametrize(
    ("table", "columns", "what"),
    [
        ("person", ["gender_concept_id"], "sexes"),
        ("measurement", ["value_as_number"], "values"),
        ("drug_exposure", ["drug_exposure_end_datetime"], "ends of drugs"),
    ],
)
def test_what_the_columns_of_a_table_do_not_tell_is_remarked_on(table, columns, what, tmp_path):
    folder = write(hospital(n=2), "omop", tmp_path)
    without_columns(folder / f"{table}.csv", *columns)
    _, report = imported(folder, "omop")
    assert any(each.startswith(f"The table {table} has none") and what in each for each in report.read.remarks)


def without_columns(path, *columns):
    pd.read_csv(path, dtype="str", keep_default_na=False).drop(columns=[*columns]).to_csv(path, index=False)


@pytest.mark.parametrize("source_format", ["csv", "meds"])
@pytest.mark.parametrize(("word", "raised"), [("Administered", set()), ("Paused by nurse", {"unknown_words"})])
def test_unknown_words_of_doses_are_doubted_and_a_course_may_begin_with_a_dose(word, raised, source_format, tmp_path):
    acts = [act for act in hospital() if act.what != "start"]
    doses = [Act(i, f"2026-01-{i + 1:02d} 12:00", "dose", "Heparin") for i in range(N_PATIENTS)]
    odd = [Act(i, f"2026-01-{i + 1:02d} 13:00", "word", f"Heparin//{word}") for i in range(N_PATIENTS)]
    path = write([*acts, *doses, *odd], source_format, tmp_path)
    _, report = imported(path, source_format)
    names = {"unknown_words", *OF_RULES}
    assert {check.name for check in report.checks if check.name in names and check.count} == raised


def in_two_parts(path, columns, to_file=pd.DataFrame.to_csv, number="{}"):
    """Divide a table into two files, the second without some columns."""
    table = pd.read_csv(path, dtype="str", keep_default_na=False)
    path.unlink()
    for i, part in enumerate((table.iloc[::2], table.iloc[1::2].drop(columns=[*columns]))):
        target = path.parent / number.format(i)
        target.parent.mkdir(exist_ok=True)
        to_file(part, target, index=False)


@pytest.mark.parametrize("columns", [["unit_source_value"], ["unit_source_value", "measurement_datetime"]])
def test_a_column_that_a_part_of_parquet_lacks_is_kept_in_the_others(columns, tmp_path):
    folder = write(hospital(n=2), "omop", tmp_path)
    in_two_parts(folder / "measurement.csv", columns, pd.DataFrame.to_parquet, "measurement/part-{}.parquet")
    for path in folder.glob("*.csv"):
        pd.read_csv(path, dtype="str", keep_default_na=False).to_parquet(path.with_suffix(".parquet"), index=False)
        path.unlink()
    cohort, report = imported(folder, "omop")
    results = cohort.events[cohort.events["kind"] == "LAB_RESULT"]
    n = sum(act.what == "result" for act in hospital(n=2))
    assert len(results) == (n if len(columns) == 1 else n - n // 2)
    assert (results["unit"] == "mmol/L").all()
    said = f"part-1.parquet: without the column {', '.join(sorted(columns))} of the other files"
    assert any(each.startswith(said) for each in report.read.remarks)


def test_a_column_that_a_file_or_shard_lacks_is_named(tmp_path):
    folder = write(hospital(n=2), "csv", tmp_path / "csv").parent
    in_two_parts(folder / "records.csv", ["unit", "text"], number="{}.csv")
    assert any(each.startswith("1.csv: without the column text, unit of") for each in remarks(folder, "csv"))
    folder = write(hospital(n=2), "meds", tmp_path / "meds")
    table = pq.read_table(folder / "data" / "0.parquet")
    pq.write_table(table.append_column("hadm_id", pa.array([1] * len(table))), folder / "data" / "1.parquet")
    assert any(each.startswith("data/0.parquet: without the column hadm_id of") for each in remarks(folder, "meds"))


def remarks(path, source_format):
    return imported(path, source_format)[1].read.remarks


@pytest.mark.parametrize(("n_known", "n"), [(2, 0), (1, 1), (0, 2)])
def test_patients_without_a_split_are_counted(n_known, n, tmp_path):
    folder = write(hospital(n=2), "meds", tmp_path)
    (folder / "metadata").mkdir()
    splits = {"subject_id": [*[0, 1][:n_known], 7], "split": ["train"] * (n_known + 1)}
    pq.write_table(pa.table(splits), folder / "metadata" / "subject_splits.parquet")
    said = [each for each in remarks(folder, "meds") if "have no split in subject_splits.parquet" in each]
    assert [each.split()[:4] for each in said] == ([[str(n), "of", "2", "patients"]] if n else [])


def test_units_of_omop_without_a_name_are_told_apart_by_their_number(tmp_path):
    folder = write(hospital(n=2), "omop", tmp_path)
    table = pd.read_csv(folder / "measurement.csv", dtype="str", keep_default_na=False)
    number = ["8753" if i % 3 else "8840" for i in range(len(table))]
    table.assign(unit_source_value="", unit_concept_id=number).to_csv(folder / "measurement.csv", index=False)
    cohort, report = imported(folder, "omop")
    assert set(cohort.events.loc[cohort.events["value"].notna(), "unit"]) == {"concept 8753"}
    assert next(check.count for check in report.checks if check.name == "lost_values") == number.count("8840")
    said = "2 units without a name in the table concept (8753, 8840): shown by number."
    assert list(report.read.remarks).count(said) == 1


def test_a_text_that_says_missing_does_not_hide_what_stands_beside_it(tmp_path):
    path = write(hospital(n=2), "csv", tmp_path)
    table = pd.read_csv(path, dtype="str", keep_default_na=False)
    is_result = table["code"].str.contains("RESULT")
    table.assign(value=table["value"].where(~is_result, "HOLD"), text="NaN").to_csv(path, index=False)
    cohort, _ = imported(path, "csv")
    assert set(cohort.events.loc[cohort.events["kind"] == "LAB_RESULT", "text"]) == {"HOLD"}
