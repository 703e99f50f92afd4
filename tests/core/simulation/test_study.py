"""The simulated study with known truth."""

import numpy as np
import pytest

from tests.support.simulated_study import simulate_candidates, simulate_study


def test_relevant_decisions_are_as_common_as_asked_and_score_higher():
    found = simulate_candidates(2000, 20, np.random.default_rng(0), relevant_share=0.16)
    assert found.is_relevant.mean() == pytest.approx(0.16, abs=0.01)
    assert found.score[found.is_relevant].mean() > found.score[~found.is_relevant].mean() + 0.1
    assert ((found.score > 0) & (found.score < 1)).all()


def test_clustering_makes_cases_of_a_patient_alike():
    def spread_between(clustering):
        found = simulate_candidates(300, 20, np.random.default_rng(0), clustering=clustering)
        return found.score.reshape(300, 20).mean(axis=1).std()

    assert spread_between(0.5) > 2 * spread_between(0.0)


def test_a_study_is_marked_as_simulated_and_decided_by_its_seed():
    first, again, other = (simulate_study(seed=s) for s in (1, 1, 2))
    assert first.simulated
    assert first.cases.equals(again.cases)
    assert first.votes.equals(again.votes)
    assert not first.votes.equals(other.votes)
    assert (len(first.cases), len(first.votes)) == (222, 666)
