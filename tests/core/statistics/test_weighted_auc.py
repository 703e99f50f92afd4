"""Weighted AUC, with all patients and without each, against plain loops, and what must not change it."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from core.statistics.auc import auc
from core.statistics.estimate import usable_cases
from core.statistics.weighted_auc import WeightedPairs, weighted_auc


def plain_weighted(y, score, weight):
    """Loop over all pairs."""
    won = every = 0.0
    for i in np.flatnonzero(y == 1):
        for j in np.flatnonzero(y == 0):
            every += weight[i] * weight[j]
            won += weight[i] * weight[j] * (1.0 if score[i] > score[j] else 0.5 if score[i] == score[j] else 0.0)
    return won / every


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


class TestWithoutAPatient:
    def without(self, y, score, patient, weight):
        return WeightedPairs.of(usable_cases(y, [score], patient=patient, weight=weight), 0).value_without

    def test_it_equals_leaving_out_each_patient_in_a_loop(self):
        y, score, patient, weight = clustered()
        plain = [plain_weighted(y[patient != p], score[patient != p], weight[patient != p]) for p in range(12)]
        assert_allclose(self.without(y, score, patient, weight), plain)

    def test_the_order_of_cases_changes_nothing(self):
        y, score, patient, weight = clustered(3)
        order = np.random.default_rng(0).permutation(y.size)
        shuffled = self.without(y[order], score[order], patient[order], weight[order])
        assert_allclose(self.without(y, score, patient, weight), shuffled)

    def test_it_is_missing_where_a_patient_has_all_cases_of_a_class(self):
        without = self.without([1, 1, 0, 0], [3, 1, 2, 0], ["a", "a", "b", "c"], [1.0] * 4)
        assert np.isnan(without).tolist() == [True, False, False]
