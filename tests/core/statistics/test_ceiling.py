"""The ceiling that disagreement sets, against readers simulated vote by vote."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from core.errors import InvalidInputError
from core.simulation.study import SimulatedPanel, simulate_votes
from core.statistics import ceiling
from core.statistics.agreement import fleiss_kappa
from core.statistics.auc import auc
from core.statistics.ceiling import agreement_ceiling, reader_error
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


@FEW
@given(st.floats(0.05, 0.95), st.floats(0.0, 0.45))
def test_error_and_prevalence_come_back_from_kappa_and_share(prevalence, error):
    share = prevalence * (1 - error) + (1 - prevalence) * error
    kappa = prevalence * (1 - prevalence) * (1 - 2 * error) ** 2 / (share * (1 - share))
    assert_allclose(reader_error(kappa, share), error, atol=1e-6)


def ceiling_at(error, share, n_readers=3):
    return float(ceiling._ceiling(np.array(error), np.array(share), n_readers))


@FEW
@given(st.floats(0.05, 0.95), st.floats(0.01, 0.4), st.sampled_from([2, 3, 4, 5]))
def test_it_lies_between_one_half_and_one_and_falls_with_the_error(prevalence, error, k):
    def at(e):
        return ceiling_at(e, prevalence * (1 - e) + (1 - prevalence) * e, k)

    assert 0.5 <= at(error + 0.05) <= at(error) <= 1.0


def test_errorless_readers_set_no_ceiling():
    assert ceiling_at(0.0, 0.3) == 1.0


@FEW
@given(st.floats(0.1, 0.9), st.floats(0.01, 0.4))
def test_swapped_options_change_nothing(share, kappa):
    first, second = reader_error(kappa, share), reader_error(kappa, 1 - share)
    assert_allclose(first, second, atol=1e-12)
    assert_allclose(ceiling_at(first, share), ceiling_at(second, 1 - share), atol=1e-9)


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


@pytest.mark.parametrize(("kappa", "share"), [(0.0, 0.3), (1.2, 0.3), (0.3, 0.0), (0.3, 1.0)])
def test_impossible_agreement_is_refused(kappa, share):
    with pytest.raises(InvalidInputError, match=f"kappa {kappa}"):
        reader_error(kappa, share)


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
