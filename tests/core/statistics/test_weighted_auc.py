"""Weighted AUC and its patient jackknife against the plain loops, and what must not change them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from core.statistics.auc import auc
from core.statistics.estimate import logit_interval, t_quantile
from core.statistics.weighted_auc import patient_jackknife, weighted_auc


def plain_weighted(y, score, weight):
    """Loop over all pairs."""
    won = every = 0.0
    for i in np.flatnonzero(y == 1):
        for j in np.flatnonzero(y == 0):
            every += weight[i] * weight[j]
            won += weight[i] * weight[j] * (1.0 if score[i] > score[j] else 0.5 if score[i] == score[j] else 0.0)
    return won / every


def plain_jackknife(values):
    values = np.array(values)
    return np.sqrt((values.size - 1) / values.size * np.sum((values - values.mean()) ** 2))


def clustered(seed=0, n_patients=12, per_patient=4, levels=4):
    rng = np.random.default_rng(seed)
    patient = np.repeat(np.arange(n_patients), per_patient)
    y = (rng.random(patient.size) < 0.4).astype(float)
    score = np.round((rng.normal(size=patient.size) + y) * levels) / levels
    return y, score, patient, rng.choice([1.0, 3.0, 20.0], patient.size)


FEW = settings(max_examples=30, deadline=None)
rows = st.lists(st.tuples(st.booleans(), st.integers(-4, 4), st.integers(1, 9)), min_size=4, max_size=25).filter(
    lambda r: 1 <= sum(y for y, _, _ in r) <= len(r) - 1
)


class TestValue:
    @FEW
    @given(rows)
    def test_it_equals_the_loop_over_pairs(self, r):
        y, score, weight = (np.array(c, float) for c in zip(*r, strict=True))
        assert_allclose(weighted_auc(y, score, weight).value, plain_weighted(y, score, weight), atol=1e-12)

    @FEW
    @given(rows)
    def test_weights_of_one_give_the_plain_auc(self, r):
        y, score, _ = (np.array(c, float) for c in zip(*r, strict=True))
        assert_allclose(weighted_auc(y, score, np.ones(len(r))).value, auc(y, score).value, atol=1e-12)

    @FEW
    @given(rows, st.floats(0.01, 1000))
    def test_a_common_factor_of_the_weights_changes_nothing(self, r, factor):
        y, score, weight = (np.array(c, float) for c in zip(*r, strict=True))
        assert_allclose(weighted_auc(y, score, weight).value, weighted_auc(y, score, factor * weight).value, atol=1e-9)

    @FEW
    @given(rows)
    def test_a_weight_of_k_is_the_case_k_times(self, r):
        y, score, weight = (np.array(c, float) for c in zip(*r, strict=True))
        times = weight.astype(int)
        copied = auc(np.repeat(y, times), np.repeat(score, times)).value
        assert_allclose(weighted_auc(y, score, weight).value, copied, atol=1e-12)

    def test_cases_without_a_usable_weight_are_left_out_and_counted(self):
        found = weighted_auc([1, 0, 1, 0], [2, 1, 0, 3], [1.0, 2.0, np.inf, 0.0])
        assert found.value == 1.0
        assert found.left_out == {"no inclusion probability": 2}


class TestJackknife:
    def test_it_equals_leaving_out_each_patient_in_a_loop(self):
        y, score, patient, weight = clustered()
        without = [plain_weighted(y[patient != p], score[patient != p], weight[patient != p]) for p in range(12)]
        value = plain_weighted(y, score, weight)
        low, high = logit_interval(value, plain_jackknife(without), t_quantile(0.95, 11))
        found = patient_jackknife(y, score, patient, weight)
        assert_allclose([found.value, found.low, found.high], [value, low, high])

    def test_neither_the_order_of_cases_nor_the_names_of_patients_matter(self):
        y, score, patient, weight = clustered(3)
        order = np.random.default_rng(0).permutation(y.size)
        names = np.array([f"p{97 - 5 * p}" for p in patient])
        first = patient_jackknife(y, score, patient, weight)
        second = patient_jackknife(y[order], score[order], names[order], weight[order])
        assert_allclose([first.value, first.low, first.high], [second.value, second.low, second.high])

    def test_sharing_patients_widens_the_interval_when_their_cases_are_copies(self):
        y, score, _, _ = clustered(4, n_patients=40, per_patient=1)
        twice = np.repeat(np.arange(40), 2)
        shared = patient_jackknife(np.repeat(y, 2), np.repeat(score, 2), twice)
        apart = patient_jackknife(np.repeat(y, 2), np.repeat(score, 2), np.arange(80))
        assert shared.high - shared.low > 1.3 * (apart.high - apart.low)


class TestNotComputable:
    def test_one_patient_has_a_value_without_an_interval(self):
        found = patient_jackknife([1, 0, 0], [1, 2, 0], ["a", "a", "a"])
        assert found.value == 0.5
        assert "all cases come from one patient" in found.reason

    def test_one_class_from_one_patient_has_no_interval(self):
        found = patient_jackknife([1, 1, 0, 0], [3, 1, 2, 0], ["a", "a", "b", "c"])
        assert found.value == 0.75
        assert not found.has_interval
        assert "one class come from one patient" in found.reason

    def test_complete_separation_has_no_interval(self):
        found = patient_jackknife([1, 1, 0, 0], [3, 4, 2, 0], ["a", "b", "c", "d"])
        assert found.value == 1.0
        assert "separate" in found.reason

    def test_one_class_has_no_value(self):
        assert "one class only" in patient_jackknife([1, 1], [1, 2], ["a", "b"]).reason

    def test_exploding_weights_leave_a_finite_figure(self):
        y, score, patient, weight = clustered()
        weight[0] = 1e12
        found = patient_jackknife(y, score, patient, weight)
        assert 0 <= found.value <= 1
        assert found.low is None or 0 <= found.low <= found.value <= found.high <= 1

    @pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
    def test_a_higher_level_gives_a_wider_interval(self, level):
        y, score, patient, weight = clustered()
        narrow, wide = (patient_jackknife(y, score, patient, weight, level=v) for v in (level, level + 0.005))
        assert wide.high - wide.low > narrow.high - narrow.low
