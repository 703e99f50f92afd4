"""AUC, DeLong's interval and paired test: reference values, the plain O(mn) road, and what must not change them."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import roc_auc_score

from core.errors import InvalidInputError
from core.statistics.auc import auc, delong_interval, delong_paired, task_macro_auc

FEW = settings(max_examples=30, deadline=None)
RESULTS = Path(__file__).resolve().parents[2] / "results"


@pytest.fixture(scope="module")
def panel() -> pd.DataFrame:
    return pd.read_csv(RESULTS / "reference_panel.csv")


@pytest.fixture(scope="module")
def expected() -> dict:
    return json.loads((RESULTS / "reference_panel.json").read_text())


def kernel(y, score):
    """Plain O(mn): 1 where the positive is above the negative, half for ties."""
    difference = score[y == 1][:, None] - score[y == 0][None, :]
    return (difference > 0) + 0.5 * (difference == 0)


def plain_delong(y, *scores):
    """AUCs and their covariance, straight from the definition."""
    kernels = [kernel(y, s) for s in scores]
    v10, v01 = np.vstack([k.mean(axis=1) for k in kernels]), np.vstack([k.mean(axis=0) for k in kernels])
    covariance = np.cov(v10) / v10.shape[1] + np.cov(v01) / v01.shape[1]
    return np.array([k.mean() for k in kernels]), np.atleast_2d(covariance)


def cases(seed=0, n=60, levels=None):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4).astype(float)
    y[:2] = (0.0, 1.0)
    score = rng.normal(size=n) + y
    return y, np.round(score * levels) / levels if levels else score


labelled_scores = st.lists(
    st.tuples(st.booleans(), st.integers(-5, 5), st.integers(-5, 5)), min_size=4, max_size=40
).filter(lambda rows: 2 <= sum(y for y, _, _ in rows) <= len(rows) - 2)


class TestReferenceValues:
    def test_delong_interval_reproduces_three_packages_to_the_digits_given(self, panel, expected):
        found = delong_interval(panel["reference"], panel["score_1"])
        want = expected["delong_score_1_vs_reference"]
        assert round(found.value, 6) == want["auc"]
        assert [round(found.low, 6), round(found.high, 6)] == want["ci95"]

    def test_paired_test_reproduces_the_published_z_and_p(self, panel, expected):
        found = delong_paired(panel["reference"], panel["score_1"], panel["score_2"])
        want = expected["delong_paired_score_1_vs_score_2"]
        assert round(found.z, 5) == want["z"]
        assert round(found.p_value, 6) == want["p"]


class TestTwoRoads:
    @pytest.mark.parametrize("levels", [None, 2])
    def test_delong_equals_the_plain_quadratic_version(self, levels):
        y, score = cases(3, levels=levels)
        values, covariance = plain_delong(y, score)
        found = delong_interval(y, score)
        reach = 1.959963984540054 * np.sqrt(covariance[0, 0])
        assert_allclose([found.value, found.low, found.high], [values[0], values[0] - reach, values[0] + reach])

    def test_paired_delong_equals_the_plain_quadratic_version(self):
        y, first = cases(4)
        _, second = cases(5)
        values, covariance = plain_delong(y, first, second)
        found = delong_paired(y, first, second)
        error = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
        assert_allclose(found.difference.value, values[0] - values[1])
        assert_allclose(found.z, (values[0] - values[1]) / error)

    @FEW
    @given(labelled_scores)
    def test_auc_equals_that_of_scikit_learn_with_any_ties(self, rows):
        y, score = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows], float)
        assert_allclose(auc(y, score).value, roc_auc_score(y, score), atol=1e-12)

    @FEW
    @given(labelled_scores)
    def test_paired_difference_is_the_difference_of_the_two_aucs(self, rows):
        y, a, b = (np.array(column, float) for column in zip(*rows, strict=True))
        assert_allclose(delong_paired(y, a, b).difference.value, auc(y, a).value - auc(y, b).value, atol=1e-12)


class TestInvariance:
    @FEW
    @given(labelled_scores, st.randoms(use_true_random=False))
    def test_the_order_of_cases_changes_nothing(self, rows, random):
        shuffled = list(rows)
        random.shuffle(shuffled)
        first, second = (delong_paired(*(np.array(c, float) for c in zip(*r, strict=True))) for r in (rows, shuffled))
        assert_allclose(first.difference.value, second.difference.value, atol=1e-12)
        assert (first.z is None) == (second.z is None)
        if first.z is not None:
            assert_allclose(first.z, second.z, rtol=1e-6)

    def test_equal_aucs_differ_by_nothing_whatever_the_order_of_cases(self):
        y = np.array([0, 1, 1, 0, 1, 1, 0, 0, 0, 1, 1], float)
        a = np.array([-2, -1, -2, 0, -1, -2, 0, 0, 0, 1, 1], float)
        b = np.array([5, 0, 3, 0, 4, 0, -1, 2, 4, 0, 1], float)
        assert auc(y, a).value == auc(y, b).value
        for seed in range(200):
            order = np.random.default_rng(seed).permutation(len(y))
            found = delong_paired(y[order], a[order], b[order])
            assert (found.difference.value, found.z, found.p_value) == (0.0, 0.0, 1.0)

    @FEW
    @given(labelled_scores)
    def test_swapped_options_turn_the_auc_around(self, rows):
        y, score = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows], float)
        first, second = delong_interval(y, score), delong_interval(1 - y, score)
        assert_allclose(first.value, 1 - second.value, atol=1e-12)
        assert (first.low is None) == (second.low is None)
        if first.low is not None:
            assert_allclose(first.low, 1 - second.high, atol=1e-9)

    @FEW
    @given(labelled_scores)
    def test_a_rising_transformation_of_the_scores_changes_nothing(self, rows):
        y, score = np.array([r[0] for r in rows], float), np.array([r[1] for r in rows], float)
        assert auc(y, score).value == auc(y, np.exp(score)).value

    def test_swapping_the_scorers_changes_the_sign_only(self):
        y, first = cases(1)
        _, second = cases(2)
        there, back = delong_paired(y, first, second), delong_paired(y, second, first)
        assert_allclose(there.z, -back.z)
        assert there.p_value == back.p_value

    def test_the_interval_stays_inside_zero_and_one(self):
        y = np.array([0, 0, 0, 0, 1, 1, 1])
        found = delong_interval(y, np.array([0.1, 0.2, 0.3, 0.75, 0.7, 0.8, 0.9]))
        assert 0 <= found.low <= found.value <= found.high == 1


class TestNotComputable:
    @pytest.mark.parametrize(
        ("y", "score", "why"),
        [
            ([], [], "no case has both a label and a score"),
            ([np.nan, np.nan], [1, 2], "no case has both"),
            ([1, 0], [np.nan, np.nan], "no case has both"),
            ([0, 0, 0], [1, 2, 3], "one class only (0 positive, 3 negative)"),
            ([1, 1], [1, 2], "one class only (2 positive, 0 negative)"),
        ],
    )
    def test_the_reason_is_the_value(self, y, score, why):
        for found in (auc(y, score), delong_interval(y, score), delong_paired(y, score, score).difference):
            assert found.value is None
            assert found.reason.startswith("not computable: ")
            assert why in found.reason

    @pytest.mark.parametrize(("y", "one"), [([0, 1, 0], "positive"), ([1, 0, 1], "negative")])
    def test_one_case_of_a_class_gives_a_value_without_an_interval(self, y, one):
        found = delong_interval(y, [1.0, 2.0, 3.0])
        assert found.value == 0.5
        assert found.low is None
        assert f"one {one} case only" in found.reason

    def test_complete_separation_gives_a_value_without_an_interval(self):
        found = delong_interval([0, 0, 1, 1], [1.0, 2.0, 3.0, 4.0])
        assert found.value == 1.0
        assert not found.has_interval
        assert "separate the two classes completely" in found.reason

    def test_a_constant_score_separates_nothing(self):
        found = delong_interval([0, 0, 1, 1], [2.0] * 4)
        assert found.value is None
        assert found.reason == "not computable: all scores equal"

    @pytest.mark.parametrize("constant", [0, 1])
    def test_a_constant_score_has_no_difference_to_another(self, constant):
        y, score = cases()
        pair = [score, score]
        pair[constant] = np.full(len(y), 0.5)
        assert delong_paired(y, *pair).difference.reason == "not computable: all scores equal"

    def test_scorers_that_rank_alike_have_no_test(self):
        y, score = cases()
        found = delong_paired(y, score, 2 * score)
        assert found.difference.value == 0
        assert found.z is None
        assert "rank these cases alike" in found.difference.reason

    def test_what_was_left_out_is_counted_by_reason(self):
        found = auc([1, 0, np.nan, 1], [3, 1, 2, np.nan])
        assert found.n == 2
        assert found.left_out == {"no label": 1, "no score": 1}

    @pytest.mark.parametrize(
        ("y", "score", "message"),
        [
            ([1, 0, 2], [1, 2, 3], "Label 2 is neither 1"),
            ([1, 0], [1, 2, 3], "'score 1' has 3 values and 'y' has 2"),
            ([1, 0], ["a", "b"], "'score 1' holds something that is not a number"),
            ([[1, 0]], [1, 2], "'y' has 2 dimensions"),
        ],
    )
    def test_malformed_input_is_refused_by_name(self, y, score, message):
        with pytest.raises(InvalidInputError, match=message.replace("(", r"\(")):
            auc(y, score)

    @pytest.mark.parametrize("level", [0, 1, 95, -0.5])
    def test_an_impossible_level_is_refused(self, level):
        with pytest.raises(InvalidInputError, match="is not between 0 and 1"):
            delong_interval([0, 1], [0, 1], level=level)


class TestTaskMean:
    def test_the_mean_is_over_tasks_with_both_classes_and_says_how_many(self):
        y = [1, 0, 1, 0, 0, 0, 1]
        task = ["a", "a", "b", "b", "b", "c", "d"]
        found = task_macro_auc(y, [0.9, 0.1, 0.5, 0.4, 0.6, 0.3, 0.2], task)
        assert found.value == pytest.approx((1.0 + 0.5) / 2)
        assert found.n == 2
        assert found.left_out == {"0 positive": 1, "0 negative": 1}

    def test_without_a_task_with_both_classes_there_is_no_mean(self):
        found = task_macro_auc([0, 0, 1], [1, 2, 3], ["a", "a", "b"])
        assert found.reason == "not computable: no task has cases of both classes and different scores"

    def test_a_task_whose_scores_are_equal_has_no_auc(self):
        found = task_macro_auc([1, 0, 1, 0], [2, 2, 3, 1], ["a", "a", "b", "b"])
        assert (found.value, found.n, found.left_out) == (1.0, 1, {"all scores equal": 1})
        assert task_macro_auc([1, 0], [2, 2], ["a", "a"]).value is None

    def test_a_task_whose_cases_are_all_unlabelled_is_counted(self):
        found = task_macro_auc([1, 0, np.nan], [3, 1, 2], ["a", "a", "b"])
        assert found.left_out == {"no usable case": 1}
