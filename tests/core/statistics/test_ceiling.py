"""The ceiling that disagreement sets, against readers simulated vote by vote."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from core.errors import InvalidInputError
from core.statistics.agreement import fleiss_kappa
from core.statistics.auc import auc
from core.statistics.ceiling import agreement_ceiling, apparent_auc, ceiling_at, reader_error

FEW = settings(max_examples=30, deadline=None)


def simulated(prevalence, error, n=60_000, k=3, seed=0):
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
    assert ceiling == pytest.approx(0.84, abs=0.01)
    assert auc(majority, good).value == pytest.approx(0.77, abs=0.01)
    assert apparent_auc(0.90, ceiling) == pytest.approx(0.77, abs=0.01)


@FEW
@given(st.floats(0.05, 0.95), st.floats(0.0, 0.45))
def test_error_and_prevalence_come_back_from_kappa_and_share(prevalence, error):
    share = prevalence * (1 - error) + (1 - prevalence) * error
    kappa = prevalence * (1 - prevalence) * (1 - 2 * error) ** 2 / (share * (1 - share))
    assert_allclose(reader_error(kappa, share), error, atol=1e-6)


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
    assert_allclose(shared.naive.high - shared.naive.low, apart.naive.high - apart.naive.low, rtol=0.02)


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
