"""Imports from end to end: what the open record sets give, which preset is taken, and what is refused."""

import time

import pandas as pd
import pytest

from alertreview.records.importing import build_cohort, choose_mapping
from core.errors import MappingError, SourceError
from core.simulation.hospital import simulate_cohort, write_meds
from tests.support.records import counted
from tests.support.records import write_meds as write_rows

ROWS = [
    (1, "2026-01-01 10:00", "HOSPITAL_ADMISSION//WARD"),
    (1, "2026-01-02 07:00", "LAB//50971//mEq/L", 4.1),
    (1, "2026-01-02 09:00", "LAB//50971//mEq/L", 4.3),
    (1, "2026-01-02 09:30", "MEDICATION//START//Heparin"),
    (1, "2026-01-03 12:00", "HOSPITAL_DISCHARGE//HOME"),
]


@pytest.fixture(scope="module")
def demo(real_data):
    return build_cohort(real_data / "mimic_iv_demo_meds")


@pytest.fixture(scope="module")
def omop(real_data):
    return build_cohort(real_data / "omop_mimic_iv_demo", format="omop")


@pytest.mark.real_data
def test_the_open_meds_records_give_the_known_counts(demo):
    cohort, report = demo
    assert report.mapping == "mimic-iv-meds"
    assert (len(cohort.stays), len(cohort.instances), report.stays.n_without_instance) == (275, 1939, 5)
    labs, orders = counted(report, "LAB_RESULT"), counted(report, "MEDICATION_ORDER")
    assert (labs.n_rows, labs.n_items, labs.n_codes) == (107_549, 498, 559)
    assert (orders.n_rows, orders.n_spellings, orders.n_items) == (14_180, 579, 550)
    # 82,516 rows repeat another byte by byte, three more but for a doubled blank in the name of one potassium order.
    assert (report.read.n_rows, report.read.n_duplicate_rows) == (916_166, 82_516 + 3)
    assert report.read.n_items_with_several_unit_codes == 61


@pytest.mark.real_data
def test_the_open_meds_records_give_the_known_tasks(demo):
    cohort, report = demo
    assert report.n_tasks == {"LAB_ORDER": 133, "MEDICATION": 101}
    assert report.min_positive == {"LAB_ORDER": 20, "MEDICATION": 20}
    assert cohort.tasks["n_positive"].min() >= 20
    assert "Potassium [Blood]" in set(cohort.tasks["name"])


@pytest.mark.real_data
def test_with_the_drug_without_a_name_there_is_one_task_more(real_data, tmp_path):
    from alertreview.files import preset_paths

    text = preset_paths()["mimic-iv-meds"].read_text().replace("ignored_items: [UNK]", "ignored_items: []")
    (tmp_path / "with_unk.yaml").write_text(text)
    cohort, report = build_cohort(real_data / "mimic_iv_demo_meds", mapping=tmp_path / "with_unk.yaml")
    assert report.n_tasks["MEDICATION"] == 102
    assert "MEDICATION/unk" in set(cohort.tasks["task_key"])


@pytest.mark.real_data
def test_doses_not_given_are_left_out_of_the_open_records(demo):
    _, report = demo
    words = {drop.reason: drop for drop in report.read.dropped}
    assert words["event word that does not count"].n_rows > 3_000
    assert "event word that the mapping does not know" not in words
    assert "code that no rule of the mapping recognises" not in words


@pytest.mark.real_data
def test_a_readmission_in_the_minute_of_a_discharge_is_two_stays(demo):
    stays = demo[0].stays[demo[0].stays["patient_id"] == "10002930"]
    gap = stays["admitted_at"].to_numpy()[1:] - stays["discharged_at"].to_numpy()[:-1]
    assert (gap >= pd.Timedelta(0)).all()
    assert (gap == pd.Timedelta(0)).any()


@pytest.mark.real_data
def test_the_splits_that_came_with_the_records_are_kept(demo):
    assert demo[0].patients["source_split"].value_counts().to_dict() == {"train": 70, "tuning": 15, "held_out": 15}


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("visits", "n"),
    [
        ("excluded_concepts: [38004207]", 1955),
        ("included_concepts: [9201, 262]", 490),
        ("included_concepts: [9201]", 109),
    ],
)
def test_the_open_omop_records_give_the_known_patient_days(real_data, tmp_path, visits, n):
    from alertreview.files import preset_paths

    path = tmp_path / "visits.yaml"
    path.write_text(preset_paths()["omop"].read_text() + f"visits: {{{visits}}}\n")
    cohort, report = build_cohort(real_data / "omop_mimic_iv_demo", format="omop", mapping=path)
    assert len(cohort.instances) + report.stays.n_instances_merged == n


@pytest.mark.real_data
def test_person_ids_of_the_open_omop_records_are_exact(omop, real_data):
    persons = pd.read_csv(real_data / "omop_mimic_iv_demo" / "person.csv", dtype=str)["person_id"]
    assert set(omop[0].patients["patient_id"]) == set(persons)


@pytest.mark.real_data
def test_drugs_of_the_open_omop_records_have_names_where_the_concepts_tell(omop):
    cohort, report = omop
    drugs = cohort.tasks[cohort.tasks["kind"] == "MEDICATION"]
    assert counted(report, "LAB_RESULT").n_rows == 107_549
    assert drugs["name"].str.contains("[a-z]").sum() > 20
    concepts = drugs["task_key"].str.removeprefix("MEDICATION/")
    assert (drugs["name"] != concepts).all()


@pytest.mark.real_data
def test_records_with_dates_only_are_imported_with_a_warning(real_data):
    cohort, report = build_cohort(real_data / "omop_synthea27nj" / "Synthea27Nj_5.4.zip", format="omop")
    assert len(cohort.patients) == 28
    assert report.share_midnight == 1
    assert next(each.severity for each in report.checks if each.name == "midnight_times") == "red"


def test_the_preset_that_recognises_most_is_chosen(tmp_path):
    assert choose_mapping(write_rows(tmp_path / "m", ROWS), "meds", None).name == "mimic-iv-meds"
    sim = write_meds(simulate_cohort(n_patients=10, n_days=10), tmp_path / "s")
    assert choose_mapping(sim, "meds", None).name == "simulated"


def test_no_fitting_preset_is_refused_with_the_most_frequent_codes(tmp_path):
    with pytest.raises(MappingError, match=r"HELLO.*data/README\.md"):
        build_cohort(write_rows(tmp_path, [(1, "2026-01-01", "HELLO")]))


def test_an_unknown_mapping_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(MappingError, match=r"neither a file nor one of.*mimic-iv-meds"):
        build_cohort(write_rows(tmp_path, ROWS), mapping="no-such-preset")


def test_a_mapping_for_another_format_is_refused(tmp_path):
    with pytest.raises(MappingError, match="is for omop, not for meds"):
        build_cohort(write_rows(tmp_path, ROWS), mapping="omop")


def test_an_unknown_format_is_refused(tmp_path):
    with pytest.raises(SourceError, match="meds, fhir, omop, tables, csv"):
        build_cohort(tmp_path, format="hl7v2")


def test_the_number_of_positives_can_be_lowered(tmp_path):
    folder = write_rows(tmp_path, ROWS)
    assert len(build_cohort(folder)[0].tasks) == 0
    assert len(build_cohort(folder, min_positive=1)[0].tasks) == 2
    with pytest.raises(MappingError, match="min_positive"):
        build_cohort(folder, min_positive=0)


def test_progress_goes_forward_to_the_end(tmp_path):
    told = []
    build_cohort(write_rows(tmp_path, ROWS), progress=lambda what, share: told.append((what, share)))
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert {"reading", "stays and instances", "features and tasks"} <= {what for what, _ in told}


def test_two_imports_of_the_same_folder_are_equal(tmp_path):
    folder = write_rows(tmp_path, ROWS)
    assert build_cohort(folder)[0].content_hash == build_cohort(folder)[0].content_hash


def test_shards_may_be_cut_anywhere(tmp_path):
    whole, _ = build_cohort(write_rows(tmp_path / "a", ROWS))
    write_rows(tmp_path / "b", ROWS[:2], "0.parquet")
    parts, _ = build_cohort(write_rows(tmp_path / "b", ROWS[2:], "1.parquet"))
    assert whole.content_hash == parts.content_hash


def test_thirty_thousand_codes_are_read_and_remarked(tmp_path):
    codes = [f"LAB//{50000 + i % 1000}//unit {i}" for i in range(20_000)] + [f"BILLING//{i}" for i in range(10_000)]
    rows = [*ROWS, *((1, "2026-01-02 10:00", code, 1.0) for code in codes)]
    start = time.process_time()
    cohort, report = build_cohort(write_rows(tmp_path, rows), mapping="mimic-iv-meds", min_positive=1)
    assert time.process_time() - start < 20
    unknown = next(drop for drop in report.read.dropped if "no rule" in drop.reason)
    assert (unknown.n_rows, unknown.n_codes, len(unknown.examples)) == (10_000, 10_000, 20)
    assert report.n_tasks["LAB_ORDER"] == 1_000
    assert report.read.n_items_with_several_unit_codes == 1_000
    assert len(report.read.unit_conflicts) == 1_000
    assert len("\n".join(report.lines())) < 10_000
    assert len(cohort.tasks) == sum(report.n_tasks.values()) + report.n_panels
