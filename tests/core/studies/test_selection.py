"""Cases are chosen over the score range, with the chance that is stated, spread over patients."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from core.errors import InvalidInputError
from core.studies.selection import AS_IN_THE_PAPER, SelectionDesign, choose_cases
from core.vocabulary import Decision

FEW = settings(max_examples=30, deadline=None)


def population(seed=0, n_patients=80, per_patient=50):
    rng = np.random.default_rng(seed)
    return rng.beta(1.5, 3, n_patients * per_patient), np.repeat(np.arange(n_patients), per_patient), rng


def test_as_in_the_paper_is_222_cases_three_readers_low_middle_and_high():
    score, patient, _ = population()
    found = choose_cases(score, patient, AS_IN_THE_PAPER)
    assert AS_IN_THE_PAPER.n_readers == 3
    assert [s.n_chosen for s in found.strata] == [74, 74, 74]
    assert [s.name.split(",")[0] for s in found.strata] == ["low", "middle", "high"]
    assert found.index.size == np.unique(found.index).size == 222


def test_every_case_lies_in_its_stratum_and_carries_its_chance():
    score, patient, _ = population()
    found = choose_cases(score, patient)
    for case, stratum, chance in zip(found.index, found.stratum, found.inclusion_probability, strict=True):
        own = found.strata[stratum]
        assert own.low <= score[case] < own.high
        assert chance == own.n_chosen / own.n_population == own.inclusion_probability
    assert sum(s.n_population for s in found.strata) == found.n_candidates == score.size


def test_the_same_seed_gives_the_same_cases_and_another_seed_others():
    score, patient, _ = population()
    first, again = (choose_cases(score, patient, SelectionDesign(seed=5)) for _ in range(2))
    other = choose_cases(score, patient, SelectionDesign(seed=6))
    assert_array_equal(first.index, again.index)
    assert set(first.index) != set(other.index)


def test_over_many_seeds_each_candidate_is_chosen_as_often_as_stated():
    score, patient, _ = population(n_patients=12, per_patient=7)
    design = SelectionDesign(n_cases=30)
    times = np.zeros(score.size)
    for seed in range(1500):
        times[choose_cases(score, patient, dataclasses.replace(design, seed=seed)).index] += 1
    found = choose_cases(score, patient, design)
    chance = np.array([s.inclusion_probability for s in found.strata])
    edges = [s.high for s in found.strata[:-1]]
    assert_allclose(times / 1500, chance[np.searchsorted(edges, score, side="right")], atol=0.07)


def test_no_patient_gets_more_than_a_fair_share_of_a_stratum():
    score, patient, _ = population()
    found = choose_cases(score, patient, SelectionDesign(n_cases=120, edges=()))
    members = np.bincount(patient)
    assert (np.bincount(patient[found.index], minlength=80) <= np.ceil(members * 120 / score.size)).all()


def test_weights_add_up_to_the_population():
    score, patient, _ = population()
    found = choose_cases(score, patient)
    assert np.sum(1.0 / found.inclusion_probability) == pytest.approx(score.size)


@FEW
@given(st.integers(1, 400), st.integers(0, 5), st.booleans())
def test_all_wanted_cases_are_chosen_while_there_are_candidates(n_cases, seed, balance):
    score, patient, rng = population(seed, n_patients=15, per_patient=10)
    design = SelectionDesign(n_cases=n_cases, balance_decisions=balance, seed=seed)
    found = choose_cases(score, patient, design, is_commission=rng.random(150) < 0.2)
    assert found.index.size == np.unique(found.index).size == min(n_cases, 150)
    assert all(0 <= s.n_chosen <= s.n_population for s in found.strata)


def test_a_stratum_with_too_few_candidates_gives_all_and_the_others_make_up_for_it():
    score = np.concatenate([np.full(3, 0.9), np.full(500, 0.5), np.full(500, 0.1)])
    found = choose_cases(score, np.arange(1003), SelectionDesign(n_cases=60))
    assert [s.n_chosen for s in found.strata] == [28, 29, 3]
    assert found.strata[2].inclusion_probability == 1.0
    assert "'high, 0.67 and over' has 3 candidates, fewer than the 20 wanted" in found.notes[0]


def test_a_stratum_of_which_nothing_is_chosen_is_named():
    score, patient, _ = population()
    found = choose_cases(score, patient, SelectionDesign(n_cases=2))
    assert any("No case was chosen from stratum 'low" in note for note in found.notes)


def test_when_every_candidate_is_taken_that_is_said():
    found = choose_cases([0.1, 0.5, 0.9], [0, 1, 2], SelectionDesign(n_cases=9))
    assert found.index.size == 3
    assert "6 cases fewer than wanted" in found.notes[-1]


@FEW
@given(st.integers(2, 400), st.integers(0, 5), st.booleans())
def test_half_of_the_cases_come_from_the_largest_stratum_on_request(n_cases, seed, balance):
    rng = np.random.default_rng(seed)
    score = np.concatenate([rng.uniform(0.0, 0.3, 900), rng.uniform(0.4, 0.6, 300), rng.uniform(0.7, 1.0, 300)])
    design = SelectionDesign(n_cases=n_cases, balance_decisions=balance, seed=seed, half_in_largest=True)
    found = choose_cases(score, rng.integers(0, 40, 1500), design, is_commission=rng.random(1500) < 0.2)
    largest = max(found.strata, key=lambda stratum: stratum.n_population)
    others = [stratum.n_wanted for stratum in found.strata if stratum is not largest]
    assert largest.n_wanted == n_cases - n_cases // 2
    assert sum(others) == n_cases // 2
    assert max(others) - min(others) <= 1
    assert found.index.size == n_cases


def test_half_in_the_largest_of_one_stratum_is_all() -> None:
    found = choose_cases(*population()[:2], SelectionDesign(n_cases=9, edges=(), half_in_largest=True))
    assert [stratum.n_chosen for stratum in found.strata] == [9]


def test_omissions_and_commissions_are_balanced_on_request():
    score, patient, rng = population()
    commission = rng.random(score.size) < 0.1
    design = SelectionDesign(n_cases=120, edges=(0.3,), balance_decisions=True)
    found = choose_cases(score, patient, design, is_commission=commission)
    assert [s.decision for s in found.strata] == [Decision.OMISSION, Decision.COMMISSION] * 2
    assert commission[found.index].sum() == 60
    with pytest.raises(InvalidInputError, match="without 'is_commission'"):
        choose_cases(score, patient, design)


@pytest.mark.parametrize("code", [0, 7])
def test_an_order_group_is_one_candidate_shown_by_its_most_unusual_member(code):
    score = [0.1, 0.9, 0.9, 0.4, 0.2]
    found = choose_cases(score, [0, 0, 0, 1, 1], SelectionDesign(n_cases=9), group=[code, code, code, -1, -1])
    assert sorted(found.index) == [1, 3, 4]
    assert found.n_candidates == 3
    assert found.left_out == {"shown with another member of its order group": 2}


def test_rows_without_score_or_not_eligible_are_left_out_and_counted():
    found = choose_cases([0.1, np.nan, 0.5, 0.9], [0, 1, 2, 3], eligible=[True, True, False, True])
    assert sorted(found.index) == [0, 3]
    assert found.left_out == {"no score": 1, "not eligible": 1}


def test_strata_may_be_quantiles_of_the_candidates():
    score, patient, _ = population()
    found = choose_cases(score, patient, SelectionDesign(quantiles=(0.5, 0.9)))
    assert [s.n_population for s in found.strata] == [2000, 1600, 400]


def test_lists_and_names_of_patients_choose_the_same_cases():
    score, patient, _ = population()
    expected = choose_cases(score, patient, SelectionDesign(edges=(0.2, 0.5), n_cases=30))
    names = [f"p{one:05}" for one in patient]
    found = choose_cases(score.tolist(), names, SelectionDesign(edges=[0.2, 0.5], n_cases=np.int64(30)))
    assert found.index.tolist() == expected.index.tolist()
    assert found.strata == expected.strata


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SelectionDesign(n_cases=0), "'n_cases' is 0; give a whole number from 1 on"),
        (lambda: SelectionDesign(n_cases=60.0), "'n_cases' is 60.0"),
        (lambda: SelectionDesign(n_readers="3"), "'n_readers' is '3'"),
        (lambda: SelectionDesign(seed=None), "'seed' is None; give a whole number from 0 on"),
        (lambda: SelectionDesign(edges=(0.5, 0.5)), "must rise"),
        (lambda: SelectionDesign(edges=(0.5, np.nan)), "must rise and be finite"),
        (lambda: SelectionDesign(edges=("low",)), "'edges' holds something that is not a number"),
        (lambda: SelectionDesign(quantiles=0.5), "'quantiles' has 0 dimensions"),
        (lambda: SelectionDesign(quantiles=(0.0, 0.5)), "between 0 and 1"),
        (lambda: choose_cases([np.nan], [0]), "No candidate is left"),
        (lambda: choose_cases([0.1, 0.2], [0]), "'patient' has shape"),
        (lambda: choose_cases([0.1, 0.2], [0, None]), "Entry 1 of 'patient' is missing"),
        (lambda: choose_cases(["low"], [0]), "'scaled_score' holds something that is not a number"),
        (lambda: choose_cases([[0.1]], [0]), "'scaled_score' has 2 dimensions"),
        (lambda: choose_cases([0.1], [0], group=[1, 2]), "'group' has shape"),
    ],
)
def test_impossible_designs_are_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()
