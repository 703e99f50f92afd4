"""The ceiling that disagreement sets, against readers simulated vote by vote."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from core.simulation.study import SimulatedPanel, simulate_votes
from core.statistics import ceiling
from core.statistics.agreement import fleiss_kappa
from core.statistics.auc import auc
from core.statistics.ceiling import agreement_ceiling
from core.studies.selection import SelectionDesign, choose_cases
from tests.support.simulated_study import simulate_candidates

FEW = settings(max_examples=30, deadline=None)


def simulated(prevalence, error, n=20_000, k=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < prevalence
    wrong = rng.random((n, k)) < error
    return truth, np.where(wrong, ~truth[:, None], truth[:, None]).astype(float), rng


@pytest.mark.parametrize(("prevalence", "error"), [(0.24, 0.21), (0.5, 0.245), (0.16, 0.17)])
def test_it_is_what_a_perfect_detector_reads_against_simulated_readers(prevalence, error):
    truth, votes, rng = simulated(prevalence, error)
    majority = (votes.sum(axis=1) >= 2).astype(float)
    perfect = auc(majority, truth + 0.5 * rng.random(truth.size)).value
    found = agreement_ceiling(votes)
    assert found.naive.value == pytest.approx(perfect, abs=0.01)
    assert found.reader_error == pytest.approx(error, abs=0.01)


def test_at_fleiss_26_a_perfect_detector_reads_about_84_and_one_of_90_about_77():
    truth, votes, rng = simulated(0.24, 0.213)
    majority = (votes.sum(axis=1) >= 2).astype(float)
    good = rng.normal(size=truth.size) + 1.8124 * truth
    assert fleiss_kappa(votes).value == pytest.approx(0.265, abs=0.015)
    assert auc(truth.astype(float), good).value == pytest.approx(0.90, abs=0.005)
    ceiling = agreement_ceiling(votes).naive.value
    assert ceiling == pytest.approx(0.835, abs=0.01)
    assert auc(majority, good).value == pytest.approx(0.77, abs=0.01)
    assert 0.5 + (0.90 - 0.5) * (2 * ceiling - 1) == pytest.approx(0.77, abs=0.01)


@pytest.mark.parametrize(("share", "shown", "told"), [(0.2, 0.91, 0.89), (0.35, 0.88, 0.86), (0.5, 0.87, 0.85)])
def test_where_relevance_is_a_matter_of_degree_a_detector_can_show_more(share, shown, told):
    """Each case has a chance of its own of being called relevant, Beta distributed, with kappa .26 between readers."""
    rng = np.random.default_rng(0)
    chance = rng.beta(share * (1 / 0.26 - 1), (1 - share) * (1 / 0.26 - 1), 30_000)
    votes = (rng.random((chance.size, 3)) < chance[:, None]).astype(float)
    assert fleiss_kappa(votes).value == pytest.approx(0.26, abs=0.01)
    assert auc((votes.sum(axis=1) >= 2).astype(float), chance).value == pytest.approx(shown, abs=0.006)
    assert agreement_ceiling(votes).naive.value == pytest.approx(told, abs=0.006)


def ceiling_at(error, prevalence, n_readers=3):
    return float(ceiling._majority_ceiling(1 - np.array(error), np.array(error), np.array(prevalence), n_readers))


@FEW
@given(st.floats(0.05, 0.95), st.floats(0.01, 0.4), st.sampled_from([2, 3, 4, 5]))
def test_it_lies_between_one_half_and_one_and_falls_with_the_error(prevalence, error, k):
    assert 0.5 <= ceiling_at(error + 0.05, prevalence, k) <= ceiling_at(error, prevalence, k) <= 1.0
    assert_allclose(ceiling_at(error, prevalence, k), ceiling_at(error, 1 - prevalence, k), atol=1e-9)


def test_errorless_readers_set_no_ceiling():
    assert ceiling_at(0.0, 0.3) == 1.0


def plain_readers(votes):
    """Expectation-maximisation over single votes, from another start and until nothing moves."""
    n, k = votes.shape
    is_true = np.where(votes.mean(axis=1) > 0.5, 0.9, 0.1)
    for _ in range(1000):
        n_true, n_positive = is_true.sum(), votes.sum(axis=1)
        share = (n_true + 0.5) / (n + 1)
        found = (is_true @ n_positive + 0.5) / (k * n_true + 1)
        false = ((1 - is_true) @ n_positive + 0.5) / (k * (n - n_true) + 1)
        of_true = share * np.prod(np.where(votes == 1, found, 1 - found), axis=1)
        of_false = (1 - share) * np.prod(np.where(votes == 1, false, 1 - false), axis=1)
        is_true = of_true / (of_true + of_false)
    return found, false


def test_readers_and_ceiling_are_those_of_expectation_maximisation_vote_by_vote():
    _, votes, _ = simulated(0.4, 0.12, n=30, seed=2)
    found, false = plain_readers(votes)
    ours = agreement_ceiling(votes)
    assert_allclose((ours.sensitivity.value, 1 - ours.specificity.value), (found, false), atol=1e-6)
    # The share of positive majorities says how common positive cases are, and with it what a majority label is worth.
    of_true, of_false = stats.binom.sf(1, 3, (found, false))
    share = ((votes.sum(axis=1) >= 2).mean() - of_false) / (of_true - of_false)
    positive_value = share * of_true / (share * of_true + (1 - share) * of_false)
    negative_value = (1 - share) * (1 - of_false) / (share * (1 - of_true) + (1 - share) * (1 - of_false))
    assert_allclose(ours.naive.value, (positive_value + negative_value) / 2, atol=1e-6)
    assert_allclose(ours.reader_error, share * (1 - found) + (1 - share) * false, atol=1e-6)
    for one in (ours.sensitivity, ours.specificity):
        assert 0 < one.low < one.value < one.high < 1


def test_the_first_guess_is_right_where_the_patterns_are_as_expected():
    share, found, false = 0.3, 0.8, 0.1
    positive, n_votes = np.array([(p, n) for n in (2, 3) for p in range(n + 1)], float).T
    of_true = share * stats.binom.pmf(positive, n_votes, found)
    of_false = (1 - share) * stats.binom.pmf(positive, n_votes, false)
    belief = ceiling._first_belief((of_true + of_false)[None, :] * 500, positive, n_votes)
    assert_allclose(belief[0], of_true / (of_true + of_false))


def test_weights_move_the_share_of_positives_but_not_the_readers():
    truth, votes, _ = simulated(0.4, 0.2, n=4000)
    weight = np.where(truth, 1.0, 4.0)
    found = agreement_ceiling(votes, weight=weight)
    plain = agreement_ceiling(votes)
    assert found.reader_error == plain.reader_error
    assert found.naive == plain.naive
    assert found.weighted.value < found.naive.value
    assert agreement_ceiling(votes, weight=np.ones(4000)).weighted.value == pytest.approx(plain.naive.value)


def test_the_interval_holds_the_value_and_respects_patients():
    _, votes, _ = simulated(0.3, 0.2, n=300)
    apart = agreement_ceiling(votes)
    shared = agreement_ceiling(np.repeat(votes, 2, axis=0), patient=np.repeat(np.arange(300), 2))
    assert 0.5 < apart.naive.low < apart.naive.value < apart.naive.high < 1.0
    assert_allclose(shared.naive.high - shared.naive.low, apart.naive.high - apart.naive.low, rtol=0.1)


@pytest.mark.parametrize(
    ("votes", "why"),
    [
        (np.full((4, 3), np.nan), "no case has two votes"),
        (np.zeros((4, 3)), "one category only"),
        ([[1, 0], [0, 1], [1, 0]], "no better than chance"),
        # Nine votes of ten are positive: by chance 82 % of the pairs would be equal, not 80 %.
        (np.repeat([[1, 1], [1, 0], [0, 1]], [80, 10, 10], axis=0), "no better than chance"),
    ],
)
def test_what_cannot_be_computed_says_why(votes, why):
    found = agreement_ceiling(votes)
    assert found.naive.value is None
    assert found.reader_error is None
    assert why in found.naive.reason


def test_full_agreement_has_a_ceiling_of_one_without_interval():
    found = agreement_ceiling([[1, 1, 1], [0, 0, 0], [0, 0, 0]])
    assert found.naive.value == 1.0
    assert "agree fully" in found.naive.reason


def test_sensitivity_and_specificity_come_back_from_readers_with_unequal_errors():
    rng = np.random.default_rng(4)
    truth = rng.random(40_000) < 0.2
    votes = (rng.random((40_000, 3)) < np.where(truth, 0.7, 0.1)[:, None]).astype(float)
    found = agreement_ceiling(votes)
    assert found.sensitivity.value == pytest.approx(0.7, abs=0.02)
    assert found.specificity.value == pytest.approx(0.9, abs=0.02)
    perfect = auc((votes.sum(axis=1) >= 2).astype(float), truth.astype(float)).value
    assert found.naive.value == pytest.approx(perfect, abs=0.01)


def test_two_votes_a_case_cannot_tell_sensitivity_from_specificity():
    found = agreement_ceiling([[1, 1], [0, 0], [0, 0], [1, 0]])
    assert found.weighted.reason == "not computable: no case has three votes, which sensitivity and specificity need"


def test_order_of_cases_changes_nothing():
    _, votes, _ = simulated(0.3, 0.2, n=90)
    patient, weight = np.arange(90) // 2, np.repeat([1.0, 9.0, 40.0], 30)
    order = np.random.default_rng(1).permutation(90)
    one = agreement_ceiling(votes, weight=weight, patient=patient)
    other = agreement_ceiling(votes[order], weight=weight[order], patient=patient[order])
    for a, b in ((one.weighted, other.weighted), (one.sensitivity, other.sensitivity)):
        assert_allclose((a.value, a.low, a.high), (b.value, b.low, b.high), atol=1e-9)


def test_votes_that_contradict_the_model_give_no_ceiling_instead_of_one_half():
    """Weighted to all candidates there are fewer positive votes than the readers' errors alone would give."""
    _, votes, _ = simulated(0.5, 0.2, n=300)
    weight = np.where(votes.sum(axis=1) == 0, 500.0, 1.0)
    found = agreement_ceiling(votes, weight=weight)
    assert found.naive.has_interval
    assert "contradict" in found.weighted.reason


def test_it_covers_the_truth_in_simulated_studies():
    """120 cases of six strata; readers err more often on unusual cases, which the model does not know."""
    rng = np.random.default_rng(1)
    candidates = simulate_candidates(300, 60, rng, relevant_share=0.1)
    n = candidates.score.size
    anomaly = np.where(candidates.is_relevant, rng.uniform(0.6, 1.0, n), rng.beta(1.0, 3.0, n))
    panel = SimulatedPanel(cannot_judge_rate=0.0)
    everyone = simulate_votes(candidates.is_relevant, anomaly, panel, seed=5)
    label, is_true = (everyone.answers == 3).sum(axis=1) >= 2, everyone.truth == 3
    truth = 0.5 * (is_true[label].mean() + (~is_true[~label]).mean())
    held = []
    for seed in range(60):
        chosen = choose_cases(candidates.score, candidates.patient, SelectionDesign(n_cases=120, seed=seed))
        rows = chosen.index
        judged = simulate_votes(candidates.is_relevant[rows], anomaly[rows], panel, seed=1000 + seed)
        found = agreement_ceiling(
            (judged.answers == 3).astype(float),
            weight=1.0 / chosen.inclusion_probability,
            patient=candidates.patient[rows],
        ).weighted
        if found.value is not None:
            held.append(found.low <= truth <= found.high)
            assert found.value > 0.5
    assert len(held) > 50
    assert np.mean(held) >= 0.88
