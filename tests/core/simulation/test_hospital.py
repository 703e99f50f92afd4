"""The simulated hospital: reproducible, plausible, and honest about what was planted."""

import json
from datetime import date
from pathlib import Path

import meds
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import roc_auc_score

from alertreview.records.importing import build_cohort
from core.errors import InvalidInputError, SourceError
from core.simulation.hospital import LAST_DAY, load_truth, simulate, simulate_cohort, write_meds
from core.simulation.labs import LABS, VITALS
from core.simulation.rules import COUPLED_TERMS, HOME_DRUGS, REASONS, Catalogue, extended
from tests.support.frames import assert_same_frame


@pytest.fixture(scope="module")
def sim():
    return simulate_cohort()


@pytest.fixture(scope="module")
def folder(sim, tmp_path_factory) -> Path:
    return write_meds(sim, tmp_path_factory.mktemp("sim") / "hospital", patients_per_shard=90)


@pytest.fixture(scope="module")
def imported(folder):
    return build_cohort(folder)


def test_its_files_are_valid_meds(folder):
    for shard in (folder / meds.data_subdirectory).glob("*.parquet"):
        meds.DataSchema.validate(pq.read_table(shard))
    meds.CodeMetadataSchema.validate(pq.read_table(folder / meds.code_metadata_filepath))
    meds.SubjectSplitSchema.validate(pq.read_table(folder / meds.subject_splits_filepath))
    meds.DatasetMetadataSchema.validate(json.loads((folder / meds.dataset_metadata_filepath).read_text()))


COUPLED = extended(51, 74, seed=0)
"""The core with all couplings, and every drug of the core in another form."""


@pytest.mark.parametrize("catalogue", [Catalogue(), COUPLED])
def test_rules_name_only_what_exists(catalogue):
    plain = {*REASONS, "icu", "surgery", "first_day", "late", "unstable", "fever", "hypoxic", "immobile"}
    labs, drugs = {lab.name for lab in catalogue.labs}, set(catalogue.drug_number)
    things = {"low": labs, "on": drugs, "home": set(HOME_DRUGS)}
    things |= {"drug": things["on"]} | dict.fromkeys(("high", "known", "fresh"), things["low"])
    rules = [*(unit.terms for unit in catalogue.units), *(lab.shifts for lab in (*catalogue.labs, *VITALS))]
    for name in {name for rule in rules for name in rule}:
        kind, _, what = name.partition(":")
        assert what in things[kind] if what else kind in plain, name


@pytest.mark.parametrize("catalogue", [Catalogue(), COUPLED])
def test_every_lab_belongs_to_exactly_one_rule(catalogue):
    members = sorted(member for unit in catalogue.lab_units for member in unit.members)
    assert members == sorted(lab.name for lab in catalogue.labs)


def test_the_same_seed_gives_the_same_hospital_and_another_seed_another():
    one, again, other = (simulate_cohort(n_patients=20, n_days=20, seed=seed) for seed in (1, 1, 2))
    assert_same_frame(one.events, again.events)
    assert_same_frame(one.truth, again.truth)
    assert not one.events.equals(other.events)


def test_the_small_hospital_has_the_promised_size(sim, imported):
    cohort, report = imported
    assert len(cohort.patients) == 200
    assert 1200 <= len(cohort.instances) <= 2000
    assert len(LABS) >= 40
    assert len(Catalogue().drug_units) >= 30
    assert sum(report.n_tasks.values()) >= 60
    assert cohort.simulated
    assert cohort.patients["patient_id"].str.fullmatch(r"SIM-\d{4}").all()


def test_the_calendar_ends_at_0800_of_the_last_day(sim):
    times = sim.events["time"]
    assert times.max() < pd.Timestamp(LAST_DAY) + pd.Timedelta(hours=8)
    earlier = simulate_cohort(n_patients=20, n_days=10, ends_on=date(2025, 6, 1))
    assert earlier.events["time"].max() < pd.Timestamp("2025-06-01 08:00")
    assert earlier.truth["snapshot_at"].min() > pd.Timestamp("2025-05-20")


def test_imported_decisions_are_exactly_the_simulated_ones(sim, imported):
    cohort, _ = imported
    truth = sim.truth[sim.truth["task_key"].isin(cohort.tasks["task_key"])]
    table = truth.pivot(index=["subject_id", "snapshot_at"], columns="task_key", values="decided")
    subject = cohort.instances["patient_id"].str[4:].astype(int)
    rows = pd.MultiIndex.from_arrays([subject, cohort.instances["snapshot_at"]])
    assert set(rows) == set(table.index)
    assert np.array_equal(table.loc[rows, cohort.tasks["task_key"]].to_numpy(), cohort.decisions.toarray())


def test_the_truth_is_the_probability_of_the_other_decision(sim):
    """Calibration: among unplanted decisions with P(order) near p, about a share p was ordered."""
    truth = sim.truth[~sim.truth["planted"]]
    p = np.where(truth["decided"], 1 - truth["true_score"], truth["true_score"])
    for low in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9):
        near = (p >= low) & (p < low + 0.1)
        assert truth["decided"][near].mean() == pytest.approx(p[near].mean(), abs=0.05)


def test_planted_decisions_are_unusual_rare_and_of_both_kinds(sim, folder, imported):
    cohort, _ = imported
    true_score, planted = load_truth(folder, cohort)
    decisions = cohort.decisions.toarray()
    assert np.isfinite(true_score).all()
    assert 0.002 < planted.mean() < 0.02
    assert (planted & decisions).sum() > 50
    assert (planted & ~decisions).sum() > 50
    assert true_score[planted].min() > 0.75
    assert cohort.instances["window_hours"].to_numpy()[planted.any(axis=1)].min() == pytest.approx(24, abs=0.5)
    prevalence = decisions.mean(axis=0)
    rarity = np.where(decisions, 1 - prevalence, prevalence)
    assert roc_auc_score(planted.ravel(), true_score.ravel()) > 0.97
    assert roc_auc_score(planted.ravel(), rarity.ravel()) < 0.9


def test_nothing_is_planted_at_rate_zero():
    assert not simulate_cohort(n_patients=30, n_days=20, planted_rate=0.0).truth["planted"].any()


def share(cohort, item, rows):
    column = cohort.tasks.index[cohort.tasks["task_key"] == item][0]
    return cohort.decisions[:, [column]].toarray().ravel()[rows].mean()


def feature(cohort, name):
    column = np.flatnonzero(cohort.feature_dictionary["name"] == name)[0]
    return cohort.features[:, [column]].toarray().ravel()


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("LAB_ORDER/Troponin I", "Admission: Chest pain"),
        ("LAB_ORDER/Lactate", "Admission: Sepsis"),
        ("LAB_ORDER/INR", "Warfarin, given in 24 h"),
        ("LAB_ORDER/Vancomycin Trough", "Vancomycin, given in 24 h"),
        ("LAB_ORDER/Ammonia", "Admission: Liver cirrhosis"),
        ("MEDICATION/furosemide", "Admission: Heart failure"),
        ("MEDICATION/oxycodone", "Care unit: Surgery"),
        ("MEDICATION/warfarin", "Warfarin, on now"),
    ],
)
def test_orders_follow_the_state_as_a_clinician_would_expect(imported, task, name):
    cohort, _ = imported
    there = feature(cohort, name) > 0
    assert share(cohort, task, there) > 0.4
    assert share(cohort, task, there) > 4 * share(cohort, task, ~there)


def test_potassium_is_given_when_it_is_low_and_insulin_when_glucose_is_high(imported):
    cohort, _ = imported
    potassium, glucose = feature(cohort, "Potassium, last value"), feature(cohort, "Glucose, last value")
    low = (potassium > 0) & (potassium < 3.4)
    assert share(cohort, "MEDICATION/potassium chloride", low) > 5 * share(
        cohort, "MEDICATION/potassium chloride", ~low
    )
    assert share(cohort, "MEDICATION/insulin", glucose > 220) > 3 * share(cohort, "MEDICATION/insulin", glucose < 130)


def test_immobile_patients_get_heparin(imported):
    cohort, _ = imported
    immobile = feature(cohort, "Mobility Score, last value") <= 1
    assert share(cohort, "MEDICATION/heparin", immobile) > 2 * share(cohort, "MEDICATION/heparin", ~immobile)


def test_values_have_units_and_plausible_ranges(imported):
    cohort, report = imported
    labs = cohort.events[cohort.events["kind"] == "LAB_RESULT"]
    ranges = {"Potassium": (2, 8), "Sodium": (115, 165), "Glucose": (25, 1200), "pH": (6.8, 7.8), "Hemoglobin": (3, 20)}
    for item, (low, high) in ranges.items():
        assert labs.loc[labs["item"] == item, "value"].dropna().between(low, high).all()
    assert set(labs.loc[labs["item"] == "Potassium", "unit"]) == {"mmol/L"}
    assert not report.read.implausible


def test_results_come_hours_after_their_orders(imported):
    cohort, report = imported
    assert report.n_results_before_order == 0
    events = cohort.events[cohort.events["item"] == "Creatinine"]
    ordered = events[events["kind"] == "LAB_ORDER"][["patient_id", "time"]].astype({"patient_id": str})
    results = events[events["kind"] == "LAB_RESULT"][["patient_id", "time"]].astype({"patient_id": str})
    pairs = pd.merge_asof(
        results.sort_values("time"),
        ordered.assign(ordered=ordered["time"]).sort_values("time"),
        on="time",
        by="patient_id",
    )
    hours = (pairs["time"] - pairs["ordered"]) / pd.Timedelta(hours=1)
    assert 0.5 < hours.median() < 3


def test_the_data_set_says_that_it_is_simulated(folder):
    assert '"simulated": true' in (folder / "metadata" / "dataset.json").read_text()
    assert len(list((folder / "data").glob("*.parquet"))) == 3
    schema = pq.read_schema(folder / "data" / "0.parquet")
    assert [str(schema.field(name).type) for name in ("subject_id", "time", "numeric_value")] == [
        "int64",
        "timestamp[us]",
        "float",
    ]


def test_switches_change_what_they_name():
    noisy = simulate_cohort(n_patients=40, n_days=20, unit_noise=0.5, missing_rate=0.3)
    glucose = noisy.events["code"].value_counts()
    assert glucose["LAB//RESULT//Glucose//mmol/L"] > 20
    results = noisy.events[noisy.events["code"].str.startswith("LAB//RESULT//Sodium")]
    assert results["numeric_value"].isna().mean() == pytest.approx(0.3, abs=0.1)


def test_noisy_units_are_brought_together_by_the_preset(tmp_path):
    sim = simulate_cohort(n_patients=40, n_days=20, unit_noise=0.5)
    cohort, report = build_cohort(write_meds(sim, tmp_path / "noisy"), min_positive=5)
    glucose = cohort.events[(cohort.events["item"] == "Glucose") & (cohort.events["kind"] == "LAB_RESULT")]
    assert set(glucose["unit"]) == {"mg/dL"}
    assert glucose["value"].min() > 25
    assert report.read.n_converted > 50


def test_drift_moves_habits_over_the_calendar():
    truth = simulate_cohort(n_patients=120, n_days=40, drift=4.0).truth
    truth = truth.assign(late=truth["snapshot_at"] > truth["snapshot_at"].median())
    share = truth.groupby(["task_key", "late"], observed=True)["decided"].mean().unstack()
    steady = simulate_cohort(n_patients=120, n_days=40).truth
    steady = steady.assign(late=steady["snapshot_at"] > steady["snapshot_at"].median())
    calm = steady.groupby(["task_key", "late"], observed=True)["decided"].mean().unstack()
    assert (share[True] - share[False]).abs().mean() > 2 * (calm[True] - calm[False]).abs().mean()


def test_larger_catalogues_have_unique_names_and_rules():
    catalogue = extended(430, 319, seed=0)
    items = [item for _, item in catalogue.members]
    assert len(items) == len(set(items)) == 749
    assert extended(0, 0, seed=0).members == Catalogue().members


def test_couplings_need_room_for_all_of_them_and_leave_the_core_alone():
    core = Catalogue()
    assert extended(50, 100, seed=0).lab_units[: len(core.lab_units)] == core.lab_units
    assert {unit.name for unit in COUPLED.lab_units} > set(COUPLED_TERMS)


def test_a_form_of_a_drug_asks_for_the_labs_of_the_drug():
    rules = {unit.name: unit.terms for unit in COUPLED.lab_units}
    assert rules["INR"]["on:Warfarin (Oral)"] == rules["INR"]["on:Warfarin"]
    assert rules["aPTT"]["on:Heparin (Oral)"] == 3.4


def test_labs_follow_their_drugs_in_hospitals_larger_than_the_core():
    truth = simulate_cohort(n_patients=300, n_days=30, n_labs=51, n_drugs=40, planted_rate=0.0).truth
    days = truth.pivot_table(index=["subject_id", "snapshot_at"], columns="task_name", values="decided", observed=True)
    given = days.groupby(level="subject_id").shift(1) == 1
    pairs = [
        *(("Tacrolimus", "Tacrolimus Level"), ("Gentamicin", "Gentamicin Level"), ("Phenytoin", "Phenytoin Level")),
        *(("Divalproex", "Valproic Acid"), ("Mannitol", "Osmolality, Measured"), ("Cosyntropin", "Cortisol")),
        *(("Heparin", "aPTT"), ("Insulin", "Glucose"), ("Magnesium Sulfate", "Magnesium"), ("Warfarin", "INR")),
    ]
    for drug, lab in pairs:
        with_drug, without = days[lab][given[drug]], days[lab][~given[drug]]
        assert len(with_drug) >= 10, drug
        assert with_drug.mean() > without.mean() + 0.05, drug


@pytest.mark.parametrize(
    ("name", "number"), [("n_patients", 0), ("planted_rate", 0.9), ("n_days", 1), ("missing_rate", -0.1)]
)
def test_senseless_numbers_are_refused_by_name(name, number):
    with pytest.raises(InvalidInputError, match=name):
        simulate_cohort(**{name: number})


def test_an_unknown_size_is_refused_with_the_known_ones():
    with pytest.raises(InvalidInputError, match="small, medium, paper"):
        simulate("huge")


def test_truth_of_another_folder_is_refused(tmp_path, imported):
    with pytest.raises(SourceError, match=r"truth\.parquet"):
        load_truth(tmp_path, imported[0])
    other = simulate_cohort(n_patients=5, n_days=10, ends_on=date(2020, 1, 1))
    with pytest.raises(SourceError, match="does not belong"):
        load_truth(write_meds(other, tmp_path), imported[0])
