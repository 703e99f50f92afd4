"""Shares of concordant pairs against counting every pair."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InvalidInputError
from core.evaluation import ordering_agreement, rank_auc

few_values = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=40)


def plain_agreement(truth, score):
    won = pairs = 0.0
    for i in range(len(truth)):
        for j in range(len(truth)):
            if truth[i] > truth[j]:
                pairs += 1
                won += 1.0 if score[i] > score[j] else 0.5 if score[i] == score[j] else 0.0
    return won / pairs if pairs else float("nan")


@given(few_values)
@settings(deadline=None)
def test_agreement_equals_counting_every_pair(values):
    truth, score = zip(*values, strict=True)
    assert ordering_agreement(truth, score) == pytest.approx(plain_agreement(truth, score), nan_ok=True)


@given(few_values)
@settings(deadline=None)
def test_agreement_with_a_truth_of_two_values_is_the_auc(values):
    truth, score = np.array(values).T
    positive = truth > 1
    assert ordering_agreement(positive, score) == pytest.approx(rank_auc(positive, score), nan_ok=True)


@given(few_values, st.integers(0, 1000))
@settings(deadline=None)
def test_agreement_does_not_depend_on_the_order_of_instances(values, seed):
    truth, score = np.array(values).T
    order = np.random.default_rng(seed).permutation(len(truth))
    agreement = ordering_agreement(truth[order], score[order])
    assert agreement == pytest.approx(ordering_agreement(truth, score), nan_ok=True)


@given(few_values)
@settings(deadline=None)
def test_reversing_the_score_mirrors_the_agreement(values):
    truth, score = np.array(values).T
    mirrored = 1 - ordering_agreement(truth, -score)
    assert ordering_agreement(truth, score) == pytest.approx(mirrored, nan_ok=True)


def test_a_constant_score_agrees_by_half_and_a_perfect_one_wholly():
    truth = np.arange(1000)
    assert ordering_agreement(truth, np.zeros(1000)) == 0.5
    assert ordering_agreement(truth, truth**3) == 1.0


def test_a_hundred_thousand_instances_take_no_square_memory():
    random = np.random.default_rng(0)
    truth = random.normal(size=100_000)
    agreement = ordering_agreement(truth, truth + random.normal(size=100_000))
    # Two normal variables with correlation r agree on 1/2 + arcsin(r)/pi of the pairs.
    assert agreement == pytest.approx(0.5 + np.arcsin(np.sqrt(0.5)) / np.pi, abs=0.003)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=30))
@settings(deadline=None)
def test_a_weight_counts_like_copies(values):
    y, score, weights = (np.array(column) for column in zip(*values, strict=True))
    copied = rank_auc(np.repeat(y, weights), np.repeat(score, weights)) if weights.sum() else float("nan")
    assert rank_auc(y, score, weights) == pytest.approx(copied, nan_ok=True)


def test_one_class_has_no_auc():
    assert np.isnan(rank_auc([1, 1], [0.1, 0.2]))


@pytest.mark.parametrize(
    ("truth", "score", "words"),
    [([1, 2], [1], "2 values and score 1"), ([1, np.nan], [1, 2], "finite"), ([[1, 2]], [[1, 2]], "vector")],
)
def test_bad_input_is_refused_by_name(truth, score, words):
    with pytest.raises(InvalidInputError, match=words):
        ordering_agreement(truth, score)
