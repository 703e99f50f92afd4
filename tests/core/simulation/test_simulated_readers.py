"""The simulated panel."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from core.errors import InvalidInputError
from core.simulation.study import SimulatedPanel, simulate_relevance, simulate_votes
from core.statistics.agreement import fleiss_kappa
from core.statistics.consensus import majority_label, positive_votes
from core.vocabulary import Answer


def cases(n=4000, seed=0):
    rng = np.random.default_rng(seed)
    planted = rng.random(n) < 0.2
    return planted, np.where(planted, rng.uniform(0.5, 1.0, n), rng.beta(1, 3, n))


def test_readers_agree_about_as_well_as_experts_do_and_find_mostly_what_was_planted():
    planted, anomaly = cases()
    votes = simulate_votes(planted, anomaly)
    assert 0.25 < fleiss_kappa(positive_votes(votes.answers)).value < 0.36
    relevant = majority_label(votes.answers).label == 1
    assert planted[relevant].mean() > 0.75
    assert relevant[planted].mean() > 0.75


def test_the_stated_error_rate_is_the_one_that_happens():
    planted, anomaly = cases()
    panel = SimulatedPanel(error_rate=0.2, cannot_judge_rate=0.1)
    votes = simulate_votes(planted, anomaly, panel)
    assert np.mean(votes.answers == Answer.CANNOT_JUDGE) == pytest.approx(0.1, abs=0.01)
    judged = votes.answers[votes.truth == Answer.RELEVANT]
    assert np.mean(judged[judged > 0] != Answer.RELEVANT) == pytest.approx(0.2, abs=0.02)


def test_errorless_readers_tell_the_truth():
    planted, anomaly = cases(200)
    votes = simulate_votes(planted, anomaly, SimulatedPanel(error_rate=0.0, cannot_judge_rate=0.0))
    assert_array_equal(votes.answers, np.repeat(votes.truth[:, None], 3, axis=1))


def test_the_seed_decides_everything():
    planted, anomaly = cases(100)
    first, again, other = (simulate_votes(planted, anomaly, seed=s) for s in (1, 1, 2))
    assert_array_equal(first.answers, again.answers)
    assert_array_equal(first.active_seconds, again.active_seconds)
    assert (first.answers != other.answers).any()


def test_all_answers_are_answers_and_all_times_positive():
    planted, anomaly = cases(500)
    votes = simulate_votes(planted, anomaly, SimulatedPanel(n_readers=5))
    assert votes.answers.shape == (500, 5)
    assert set(np.unique(votes.answers)) <= {int(a) for a in Answer}
    assert (votes.active_seconds > 0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SimulatedPanel(error_rate=0.6), "no error rate may exceed one half"),
        (lambda: SimulatedPanel(n_readers=0), "are no readers"),
        (lambda: simulate_votes([True], [0.1, 0.2]), "give one for each case"),
        (lambda: simulate_votes([True], [1.5]), "outside"),
    ],
)
def test_impossible_panels_are_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_relevance_rises_with_unusualness_and_leaves_some_usual_decisions_questioned():
    _, anomaly = cases(100_000)
    never = np.zeros(anomaly.size, dtype=bool)
    relevant = simulate_relevance(anomaly, never, seed=1)
    shares = [relevant[(anomaly >= low) & (anomaly < low + 0.2)].mean() for low in (0.0, 0.2, 0.4, 0.6, 0.8)]
    assert shares == sorted(shares)
    assert shares[0] == pytest.approx(0.02, abs=0.005)
    assert simulate_relevance(anomaly, ~never, seed=1).mean() == pytest.approx(0.9, abs=0.01)
    assert_array_equal(relevant, simulate_relevance(anomaly, never, seed=1))


def test_irrelevant_but_unusual_cases_mislead_by_their_own_share():
    n = 20_000
    panel = SimulatedPanel(error_rate=0.3, usual_error=0.1, unusual_error=0.5, cannot_judge_rate=0.0)
    usual, unusual = (
        simulate_votes(np.zeros(n, dtype=bool), np.full(n, anomaly), panel).answers == Answer.RELEVANT
        for anomaly in (0.1, 0.9)
    )
    assert usual.mean() == pytest.approx(0.03, abs=0.005)
    assert unusual.mean() == pytest.approx(0.15, abs=0.01)
