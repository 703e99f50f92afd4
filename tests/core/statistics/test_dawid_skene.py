"""Labels weighted by reader reliability."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from core.errors import InvalidInputError
from core.statistics.consensus import dawid_skene, majority_label


def simulated(n=3000, sensitivity=(0.9, 0.7, 0.6), specificity=(0.95, 0.8, 0.9), prevalence=0.3, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < prevalence
    chance = np.where(truth[:, None], sensitivity, 1.0 - np.array(specificity))
    return truth, (rng.random((n, len(sensitivity))) < chance).astype(float)


def plain_step(votes, belief):
    """One step of expectation-maximisation, case by case."""
    n, k = votes.shape
    prevalence = (belief.sum() + 0.5) / (n + 1)
    updated = []
    for i in range(n):
        positive, negative = prevalence, 1 - prevalence
        for r in range(k):
            if np.isnan(votes[i, r]):
                continue
            given = ~np.isnan(votes[:, r])
            sensitivity = (np.sum(belief[given] * votes[given, r]) + 0.5) / (belief[given].sum() + 1)
            specificity = (np.sum((1 - belief[given]) * (1 - votes[given, r])) + 0.5) / ((1 - belief[given]).sum() + 1)
            positive *= sensitivity if votes[i, r] else 1 - sensitivity
            negative *= 1 - specificity if votes[i, r] else specificity
        updated.append(positive / (positive + negative))
    return np.array(updated)


def test_it_finds_the_readers_that_were_simulated():
    truth, votes = simulated()
    found = dawid_skene(votes)
    assert found.converged
    assert_allclose(found.sensitivity, (0.9, 0.7, 0.6), atol=0.06)
    assert_allclose(found.specificity, (0.95, 0.8, 0.9), atol=0.06)
    assert found.prevalence == pytest.approx(truth.mean(), abs=0.04)


def test_its_labels_are_nearer_the_truth_than_the_majority_when_readers_differ():
    truth, votes = simulated(sensitivity=(0.97, 0.6, 0.6), specificity=(0.97, 0.7, 0.7))
    majority = majority_label(np.where(votes == 1, 3, 1)).label
    assert np.mean(dawid_skene(votes).label == truth) > np.mean(majority == truth) + 0.03


def test_the_answer_is_a_fixed_point_of_the_plain_step():
    _, votes = simulated(n=60)
    votes[::7, 1] = np.nan
    found = dawid_skene(votes, max_iterations=5000, tolerance=1e-12)
    assert_allclose(plain_step(votes, found.probability), found.probability, atol=1e-8)


def test_neither_order_of_cases_nor_of_readers_matters_and_swapped_options_turn_it_around():
    _, votes = simulated(n=200)
    order = np.random.default_rng(1).permutation(200)
    first = dawid_skene(votes)
    shuffled = dawid_skene(votes[order][:, [2, 0, 1]])
    swapped = dawid_skene(1.0 - votes)
    assert_allclose(shuffled.probability, first.probability[order], atol=1e-6)
    assert_allclose(swapped.probability, 1.0 - first.probability, atol=1e-6)


def test_a_case_without_a_vote_has_no_probability():
    _, votes = simulated(n=50)
    votes[0] = np.nan
    found = dawid_skene(votes)
    assert np.isnan(found.probability[0])
    assert found.left_out == {"no vote": 1}
    assert (found.n, np.isnan(found.label[0])) == (49, True)


@pytest.mark.parametrize(
    ("votes", "why"),
    [
        (np.full((3, 3), np.nan), "no votes"),
        ([[1, 0], [0, 1]], "fewer than three readers"),
        (np.ones((3, 3)), "all votes are equal"),
    ],
)
def test_what_cannot_be_estimated_says_why(votes, why):
    found = dawid_skene(votes)
    assert why in found.reason
    assert np.isnan(found.probability).all()


def test_answers_must_be_made_votes_first():
    with pytest.raises(InvalidInputError, match="matrix of 1, 0 and NaN"):
        dawid_skene([[3, 1, 2]])
