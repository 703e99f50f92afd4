"""One spelling of everything, whatever the format: patients, names, units, numbers, times and files."""

import bz2
import functools
import gzip
import tempfile
import unicodedata
import zipfile
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alertreview.records.importing import build_cohort
from core.errors import SourceError
from core.events.plausibility import Severity
from tests.support.lying_records import FORMATS, ITEM_NUMBERS, N_INSTANCES, N_PATIENTS, hospital, write
from tests.support.pairs_of_lies import SPELLINGS_OF_NUMBERS

LABS = 2


def imported(path, source_format="csv"):
    return build_cohort(path, format=source_format, min_positive=1)


def check(report, name):
    return next(each for each in report.checks if each.name == name)


def rewritten(path, change):
    path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")
    return path


def assert_right(cohort, report):
    assert len(cohort.instances) == N_INSTANCES
    assert len(cohort.patients) == N_PATIENTS
    assert len(cohort.tasks) == LABS + 1
    results = cohort.events[cohort.events["kind"] == "LAB_RESULT"]
    assert results["value"].notna().all()
    assert not report.read.unit_conflicts


@pytest.fixture
def source(tmp_path):
    return write(hospital(), "csv", tmp_path / "source")


TWINS = ("P001 ", " P002", "\u00a0P003", "Ｐ004", "\ufeffP005", "P0\u200b06")


def test_a_twin_of_an_identifier_is_no_second_patient(source):
    lines, n_changed = source.read_text(encoding="utf-8").splitlines(), 0
    for number, twin in enumerate(TWINS, start=1):
        for i in [i for i, line in enumerate(lines) if line.startswith(f"P00{number}")][::2]:
            lines[i] = lines[i].replace(f"P00{number}", twin, 1)
            n_changed += 1
    source.write_text("\n".join(lines), encoding="utf-8")
    cohort, report = imported(source)
    assert_right(cohort, report)
    assert check(report, "respelled").count == n_changed
    assert check(report, "respelled").severity is Severity.YELLOW


def half(text, old, new):
    """Replace every second occurrence."""
    parts = text.split(old)
    return parts[0] + "".join((old if i % 2 else new) + part for i, part in enumerate(parts[1:]))


@pytest.mark.parametrize(
    ("unit", "twin"), [("µmol/L", "μmol/L"), ("mg/dL", "mg/dl"), ("10^9/L", "10⁹/l"), ("ug/L", "mcg/L")]
)
def test_two_spellings_of_a_unit_are_one(source, unit, twin):
    rewritten(source, lambda text: half(text.replace("mmol/L", unit), unit, twin))
    assert_right(*imported(source))


def test_two_spellings_of_a_name_are_one(source):
    rewritten(
        source,
        lambda text: half(
            text.replace("Creatinine", "Créatinine"), "Créatinine", unicodedata.normalize("NFD", "Créatinine")
        ),
    )
    cohort, report = imported(source)
    assert_right(cohort, report)
    assert "Créatinine" in set(cohort.tasks["name"])


@functools.cache
def plainly(source_format, *, in_numbers=False):
    """Return the cohort of the hospital in plain spelling, by names or by numbers."""
    with tempfile.TemporaryDirectory() as folder:
        acts = numbered() if in_numbers else hospital(n=4)
        return imported(write(acts, source_format, Path(folder) / "plain"), source_format)[0]


@pytest.mark.parametrize("source_format", FORMATS)
def test_blanks_and_quotes_around_a_name_are_no_part_of_it(tmp_path, source_format):
    # Items of MEDS are numbers.
    spellings = ("{}", " {}", "\u200b{}\u00a0", "\u200b{}" if source_format == "meds" else '"{}"')
    plain = plainly(source_format)
    names = {"meds": {"50971", "50912", "Heparin"}}.get(source_format, {"Potassium", "Creatinine", "Heparin"})
    numbers = ITEM_NUMBERS if source_format == "meds" else {}
    acts = [
        replace(act, item=spellings[act.patient].format(numbers.get(act.item, act.item)))
        if act.what in ("order", "result", "start", "stop")
        else act
        for act in hospital(n=4)
    ]
    cohort, report = imported(write(acts, source_format, tmp_path / "spelled"), source_format)
    assert names <= set(cohort.tasks["name"]) == set(plain.tasks["name"])
    assert (cohort.decisions != plain.decisions).nnz == 0
    assert (cohort.features != plain.features).nnz == 0
    # The reader of FHIR trims what it reads itself.
    assert source_format == "fhir" or check(report, "respelled").count > 0


N_NUMBERED = 3 + len(SPELLINGS_OF_NUMBERS)
NUMBERS = {"Potassium": "50971", "Creatinine": "50912", "Heparin": "93310905"}


def numbered(*spellings):
    """Return acts whose items are numbers, those of the last patients spelled otherwise, each in a way of its own."""
    spell = (str,) * (N_NUMBERED - len(spellings)) + spellings
    return [
        replace(act, item=spell[act.patient](NUMBERS[act.item])) if act.item in NUMBERS else act
        for act in hospital(n=N_NUMBERED)
    ]


@pytest.mark.parametrize("source_format", FORMATS)
def test_a_code_that_is_a_number_is_one_however_a_table_spelled_it(tmp_path, source_format):
    plain = plainly(source_format, in_numbers=True)
    acts = numbered(*SPELLINGS_OF_NUMBERS.values())
    cohort, report = imported(write(acts, source_format, tmp_path / "spelled"), source_format)
    assert cohort.tasks["task_key"].tolist() == plain.tasks["task_key"].tolist()
    assert (cohort.decisions != plain.decisions).nnz == 0
    assert (cohort.features != plain.features).nnz == 0
    assert check(report, "respelled").count >= len(SPELLINGS_OF_NUMBERS)


@pytest.mark.parametrize("source_format", FORMATS)
def test_zeros_that_a_table_lost_make_no_second_drug(tmp_path, source_format):
    """The mapping of MEDS knows labs by five digits: with zeros before them they were no labs at all."""
    acts = [
        replace(act, item={0: "00093310905", 1: "93310905", 2: "0093-3109-05", 3: "00093-3109-05"}[act.patient % 4])
        if act.item == "Heparin"
        else act
        for act in hospital(n=4)
    ]
    plain = plainly(source_format)
    cohort, _ = imported(write(acts, source_format, tmp_path / "lost"), source_format)
    assert len(cohort.tasks) == len(plain.tasks) == 3
    assert cohort.decisions.sum() == plain.decisions.sum()


@pytest.mark.parametrize("source_format", FORMATS)
def test_a_code_that_a_spreadsheet_rounded_stops_the_scoring(tmp_path, source_format):
    acts = [replace(act, item="9.3311E+10") if act.item == "Heparin" else act for act in hospital()]
    _, report = imported(write(acts, source_format, tmp_path), source_format)
    found = check(report, "rounded_codes")
    assert found.severity is Severity.RED
    assert "9.3311E+10" in found.examples[0]


@pytest.mark.parametrize("source_format", ["csv", "meds"])
@pytest.mark.parametrize("case", [str.lower, str.upper])
def test_a_source_may_write_its_codes_in_one_case(tmp_path, source_format, case):
    plain, _ = imported(write(hospital(n=4), source_format, tmp_path / "plain"), source_format)
    path = write(hospital(n=4), source_format, tmp_path / "cased")
    if source_format == "csv":
        table = pd.read_csv(path, dtype="str", keep_default_na=False)
        table.assign(code=table["code"].map(case)).to_csv(path, index=False)
    else:
        table = pq.read_table(path / "data" / "0.parquet")
        codes = pa.array([case(code) for code in table["code"].to_pylist()])
        pq.write_table(table.set_column(2, "code", codes), path / "data" / "0.parquet")
    cohort, _ = imported(path, source_format)
    assert len(cohort.instances) == len(plain.instances)
    assert (cohort.decisions != plain.decisions).nnz == 0


@pytest.mark.parametrize("spell", ["{} mmol/L", "{}×10⁰"])
@pytest.mark.parametrize("source_format", ["csv", "omop"])
def test_numbers_that_people_read_have_values(tmp_path, source_format, spell):
    acts = [replace(act, value=spell.format(act.value)) if act.what == "result" else act for act in hospital()]
    cohort, report = imported(write(acts, source_format, tmp_path), source_format)
    results = cohort.events[cohort.events["kind"] == "LAB_RESULT"]
    plain = sorted(float(act.value) for act in hospital() if act.what == "result")
    assert sorted(results["value"].round(6)) == plain
    assert check(report, "unread_numbers").count == 0


def test_a_unit_beside_the_number_goes_before_that_of_the_code(source):
    """One creatinine in another unit than its code says has no value, and is counted."""
    rewritten(source, lambda text: text.replace("mmol/L,4.1", "mmol/L,73 umol/L", 1))
    cohort, report = imported(source)
    assert 73 not in set(cohort.events["value"])
    assert check(report, "lost_values").count == 1


@pytest.mark.parametrize("source_format", ["csv", "omop"])
def test_numbers_that_were_not_understood_stop_the_scoring(tmp_path, source_format):
    acts = [replace(act, value=f"{act.value}-") if act.what == "result" else act for act in hospital()]
    _, report = imported(write(acts, source_format, tmp_path), source_format)
    assert check(report, "unread_numbers").severity is Severity.RED


@pytest.mark.parametrize("twin", ["p001", "P1", "P-001", "\u0420001"])
def test_a_patient_that_may_be_another_is_doubted(source, twin):
    lines = source.read_text(encoding="utf-8").splitlines()
    source.write_text("\n".join([*lines, f"{twin},2026-01-04 10:00,LAB//ORDER//Potassium,,,"]), encoding="utf-8")
    _, report = imported(source)
    found = check(report, "alike_patients")
    assert (found.severity, found.count, found.examples) == (Severity.RED, 2, ())


@pytest.mark.parametrize("quoted", [True, False])
def test_decimal_commas_are_read_and_counted(source, quoted):
    table = pd.read_csv(source, dtype="str", keep_default_na=False)
    table["value"] = table["value"].str.replace(".", ",")
    table.to_csv(source, index=False, sep="," if quoted else ";")
    cohort, report = imported(source)
    assert_right(cohort, report)
    assert any("decimal comma" in example for example in check(report, "respelled").examples)
    assert cohort.events["value"].max() < 10


@pytest.mark.parametrize(
    "format_of", ["%Y-%m-%d %H:%M:%S-05", "%Y-%m-%dT%H:%M:%S+0000", "%Y-%m-%d %H:%MZ", "%Y/%m/%d %H:%M", "%Y%m%d%H%M%S"]
)
def test_times_with_any_zone_are_read(source, format_of):
    table = pd.read_csv(source, dtype="str", keep_default_na=False)
    table["time"] = pd.to_datetime(table["time"], format="mixed").dt.strftime(format_of)
    table.to_csv(source, index=False)
    cohort, _ = imported(source)
    assert len(cohort.patients) == N_PATIENTS
    assert len(cohort.instances) == N_INSTANCES


@pytest.mark.parametrize("said", ["now", "today", "01/02/2026 10:00", "46023", "2026-02-30 10:00"])
@pytest.mark.parametrize("source_format", ["csv", "omop"])
def test_a_time_that_leaves_doubt_is_refused_with_file_row_and_column(tmp_path, said, source_format):
    path = write(hospital(), source_format, tmp_path / "source")
    file = path if source_format == "csv" else path / "drug_exposure.csv"
    lines = file.read_text(encoding="utf-8").splitlines()
    cells = lines[7].split(",")
    cells[1 if source_format == "csv" else 3] = said
    lines[7] = ",".join(cells)
    file.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(SourceError) as caught:
        imported(path, source_format)
    for part in (file.name, "row 8", "not a time"):
        assert part in str(caught.value)


def test_columns_without_a_name_are_ignored_and_doubled_ones_refused(source):
    text = source.read_text(encoding="utf-8")
    source.write_text("\n".join(line + ",," for line in text.splitlines()), encoding="utf-8")
    assert_right(*imported(source))
    source.write_text(text.replace("text,unit", "value,unit", 1), encoding="utf-8")
    with pytest.raises(SourceError, match=r"records.csv.*'value'.*twice"):
        imported(source)


@pytest.mark.parametrize("doubled", ["numeric_value", "time", "text_value"])
def test_a_doubled_column_of_meds_is_refused_with_file_and_column(tmp_path, doubled):
    folder = write(hospital(), "meds", tmp_path / "meds")
    path = folder / "data" / "0.parquet"
    table = pq.read_table(path, partitioning=None)
    table = table.append_column("text_value", pa.nulls(len(table), pa.string()))
    pq.write_table(table.append_column(doubled, table.column(doubled)), path)
    with pytest.raises(SourceError, match=rf"0.parquet.*{doubled}.*twice"):
        imported(folder, "meds")


@pytest.mark.parametrize("name", ["b.csv.bz2", "b.csv.gz", "b.csv.xz", "b.csv.zst", "sub/b.tsv.lz4"])
def test_packed_files_beside_a_csv_are_read(source, name):
    import lzma

    lines = source.read_text(encoding="utf-8").splitlines(keepends=True)

    def arrow(data):
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, {"zst": "zstd"}.get(name[-3:], name[-3:])) as packed:
            packed.write(data)
        return sink.getvalue().to_pybytes()

    packs = {".bz2": bz2.compress, ".gz": gzip.compress, ".xz": lzma.compress}
    pack = packs.get(name[name.rindex(".") :], arrow)
    source.write_text("".join(lines[:100]), encoding="utf-8")
    other = source.parent / name
    other.parent.mkdir(exist_ok=True)
    other.write_bytes(pack("".join([lines[0], *lines[100:]]).encode()))
    assert_right(*imported(source.parent))


@pytest.mark.parametrize("source_format", ["csv", "meds", "omop"])
def test_files_that_are_not_read_are_named(tmp_path, source_format):
    path = write(hospital(), source_format, tmp_path / "source")
    folder = path / "data" if source_format == "meds" else tmp_path / "source"
    names = ("b.xlsx", "more.zip", "rest.json")
    for name in names:
        with zipfile.ZipFile(folder / name, "w") as archive:
            archive.writestr("b.csv", "x")
    for hidden in (".ipynb_checkpoints/c.csv", "_old/d.csv", "._0.parquet"):
        (folder / hidden).parent.mkdir(exist_ok=True)
        (folder / hidden).write_bytes(b"not a table")
    cohort, report = imported(path if source_format != "csv" else path.parent, source_format)
    assert len(cohort.instances) == N_INSTANCES
    found = check(report, "unread_files")
    assert (found.count, found.severity) == (len(names), Severity.YELLOW)
    assert all(any(example.endswith(name) for example in found.examples) for name in names)


@pytest.mark.parametrize("source_format", ["csv", "meds", "omop"])
def test_documents_beside_the_records_are_named_and_not_doubted(tmp_path, source_format):
    path = write(hospital(), source_format, tmp_path / "source")
    names = ("LICENSE", "LICENSE.txt", "SHA256SUMS.txt", "README.md", "notes/index.html")
    for name in names:
        document = (path / "data" if source_format == "meds" else tmp_path / "source") / name
        document.parent.mkdir(exist_ok=True)
        document.write_text("Open Database License, version 1.0, of these records\n", encoding="utf-8")
    cohort, report = imported(path if source_format != "csv" else path.parent, source_format)
    assert len(cohort.instances) == N_INSTANCES
    assert check(report, "unread_files").count == 0
    assert all(any(name in remark for remark in report.read.remarks) for name in names), "every file is read or named"


def test_the_files_of_a_folder_that_is_named_like_a_table_are_read_once(tmp_path):
    folder = write(hospital(), "meds", tmp_path / "meds")
    spark = folder / "data" / "x.parquet"
    spark.mkdir()
    (folder / "data" / "0.parquet").rename(spark / "part-0.snappy.parquet")
    (spark / "_SUCCESS").touch()
    cohort, report = imported(folder, "meds")
    assert len(cohort.instances) == N_INSTANCES
    assert report.read.n_duplicate_rows == 0


def test_splits_survive_an_identifier_that_went_through_a_float(tmp_path):
    folder = write(hospital(), "meds", tmp_path / "meds")
    (folder / "metadata").mkdir()
    splits = pd.DataFrame({"subject_id": [float(i) for i in range(N_PATIENTS)], "split": "train"})
    splits.to_parquet(folder / "metadata" / "subject_splits.parquet")
    cohort, _ = imported(folder, "meds")
    assert cohort.patients["source_split"].eq("train").all()


@pytest.mark.parametrize("word", ["NaN", "NA", "null", "<NA>", "#N/A", "(null)", "."])
@pytest.mark.parametrize("source_format", ["csv", "omop"])
def test_what_programs_write_into_empty_cells_leaves_them_empty(tmp_path, source_format, word):
    def written(place, nothing):
        path = write(
            [replace(act, value="") if act.value == "4.1" else act for act in hospital()], source_format, place
        )
        for file in place.glob("*.csv"):
            table = pd.read_csv(file, dtype="str", keep_default_na=False)
            table.replace("", nothing).to_csv(file, index=False)
        return imported(path, source_format)

    (plain, expected), (cohort, report) = written(tmp_path / "plain", ""), written(tmp_path / "said", word)
    pd.testing.assert_frame_equal(cohort.events, plain.events)
    assert check(report, "empty_results").count == check(expected, "empty_results").count > 0
    path = tmp_path / "said" / ("records.csv" if source_format == "csv" else "measurement.csv")
    table = pd.read_csv(path, dtype="str", keep_default_na=False)
    table.assign(**{table.columns[0]: [word, *table.iloc[1:, 0]]}).to_csv(path, index=False)
    with pytest.raises(SourceError, match=r"has no (patient|person_id)"):
        imported(path if source_format == "csv" else path.parent, source_format)
