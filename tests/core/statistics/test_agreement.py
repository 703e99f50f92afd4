"""Agreement coefficients: reference values, other packages, plain loops, and what must not change them."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose
from sklearn.metrics import confusion_matrix
from statsmodels.stats.inter_rater import aggregate_raters, cohens_kappa
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss

from core.errors import InvalidInputError
from core.statistics.agreement import (
    cohen_kappa,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    raw_agreement,
    weighted_agreement,
)

RESULTS = Path(__file__).resolve().parents[2] / "results"
ALL = (raw_agreement, fleiss_kappa, krippendorff_alpha, gwet_ac1)
FEW = settings(max_examples=30, deadline=None)
shapes = st.tuples(st.integers(4, 12), st.integers(2, 4))
some_votes = hnp.arrays(float, shapes, elements=st.sampled_from([1.0, 2.0, 3.0]))
votes_with_gaps = hnp.arrays(float, shapes, elements=st.sampled_from([1.0, 2.0, 3.0, np.nan]))


@pytest.fixture(scope="module")
def panel() -> np.ndarray:
    table = pd.read_csv(RESULTS / "reference_panel.csv")
    return table[["reader_a", "reader_b", "reader_c"]].to_numpy(float)


@pytest.fixture(scope="module")
def expected() -> dict:
    return json.loads((RESULTS / "reference_panel.json").read_text())


def plain_alpha(votes):
    """Krippendorff's alpha from the coincidence matrix, pair by pair."""
    categories = [c for c in np.unique(votes) if not np.isnan(c)]
    coincidences = np.zeros((len(categories), len(categories)))
    for row in votes:
        given_votes = [v for v in row if not np.isnan(v)]
        for a in range(len(given_votes)):
            for b in range(len(given_votes)):
                if a != b:
                    i, j = categories.index(given_votes[a]), categories.index(given_votes[b])
                    coincidences[i, j] += 1.0 / (len(given_votes) - 1)
    totals = coincidences.sum(axis=0)
    n = totals.sum()
    observed = n - np.trace(coincidences)
    expected_disagreement = (n**2 - np.sum(totals**2)) / (n - 1)
    return 1.0 - observed / expected_disagreement


class TestReferenceValues:
    def test_fleiss_kappa_with_its_interval(self, panel, expected):
        found = fleiss_kappa(panel)
        assert round(found.value, 5) == expected["fleiss_kappa"]
        assert [round(found.low, 5), round(found.high, 5)] == expected["fleiss_kappa_ci95"]

    def test_ac1_with_its_interval(self, panel, expected):
        found = gwet_ac1(panel)
        assert round(found.value, 5) == expected["gwet_ac1"]
        assert [round(found.low, 5), round(found.high, 5)] == expected["gwet_ac1_ci95"]

    def test_alpha(self, panel, expected):
        assert round(krippendorff_alpha(panel).value, 5) == expected["krippendorff_alpha_nominal"]

    def test_alpha_and_ac1_with_missing_votes(self, panel, expected):
        gappy = panel.copy()
        gappy[:30, 2] = np.nan
        want = expected["reader_c_missing_in_first_30_cases"]
        assert round(krippendorff_alpha(gappy).value, 5) == want["krippendorff_alpha_nominal"]
        assert round(gwet_ac1(gappy).value, 5) == want["gwet_ac1"]

    def test_nearly_unanimous_votes_have_high_raw_agreement_and_a_kappa_below_zero(self):
        votes = np.ones((100, 3))
        votes[:5, 0] = 3
        assert round(raw_agreement(votes).value, 3) == 0.967
        assert round(fleiss_kappa(votes).value, 3) == -0.017
        assert gwet_ac1(votes).value > 0.95


class TestTwoRoads:
    @FEW
    @given(some_votes)
    def test_fleiss_kappa_equals_that_of_statsmodels(self, votes):
        found = fleiss_kappa(votes)
        if np.unique(votes).size > 1:
            table, _ = aggregate_raters(votes.astype(int))
            assert_allclose(found.value, statsmodels_fleiss(table), atol=1e-12)

    @FEW
    @given(votes_with_gaps)
    def test_alpha_equals_the_coincidence_matrix(self, votes):
        found = krippendorff_alpha(votes)
        if found.computable:
            kept = votes[(~np.isnan(votes)).sum(axis=1) >= 2]
            assert_allclose(found.value, plain_alpha(kept), atol=1e-12)

    @FEW
    @given(votes_with_gaps)
    def test_raw_agreement_equals_the_mean_over_pairs(self, votes):
        shares = []
        for row in votes:
            pairs = [a == b for a, b in combinations(row[~np.isnan(row)], 2)]
            shares += [np.mean(pairs)] if pairs else []
        found = raw_agreement(votes)
        assert found.value == pytest.approx(np.mean(shares)) if shares and found.computable else not found.computable

    @FEW
    @given(some_votes)
    def test_cohen_kappa_equals_that_of_statsmodels_with_its_interval(self, votes):
        found = cohen_kappa(votes[:, 0], votes[:, 1])
        if found.computable:
            with np.errstate(all="ignore"):
                expected = cohens_kappa(confusion_matrix(votes[:, 0], votes[:, 1]))
            assert_allclose(found.value, expected.kappa, atol=1e-12)
            if found.low is None:
                assert not expected.std_kappa > 1e-7
            else:
                ends = np.clip(expected.kappa + np.array([-1.0, 1.0]) * 1.959963984540054 * expected.std_kappa, -1, 1)
                assert_allclose([found.low, found.high], ends, atol=1e-12)

    def test_the_alpha_interval_equals_leaving_out_each_case(self, panel):
        votes = panel[:40]
        without = np.array([plain_alpha(np.delete(votes, i, axis=0)) for i in range(40)])
        error = np.sqrt(39 / 40 * np.sum((without - without.mean()) ** 2))
        found = krippendorff_alpha(votes)
        assert_allclose(found.high - found.low, 2 * 2.0226909200367595 * error)

    def test_the_fleiss_interval_is_near_the_spread_over_resampled_cases(self, panel):
        rng = np.random.default_rng(0)
        values = [fleiss_kappa(panel[rng.integers(0, 222, 222)]).value for _ in range(200)]
        found = fleiss_kappa(panel)
        assert (found.high - found.low) / 3.94 == pytest.approx(np.std(values), rel=0.2)

    @pytest.mark.parametrize("n_categories", [None, 3, 5])
    def test_ac1_counts_the_answers_there_are_to_choose_from(self, panel, n_categories):
        shares = np.array([(panel == code).mean() for code in np.unique(panel)])
        chance = np.sum(shares * (1 - shares)) / ((n_categories or shares.size) - 1)
        agreement = raw_agreement(panel).value
        assert_allclose(gwet_ac1(panel, n_categories=n_categories).value, (agreement - chance) / (1 - chance))


class TestWeighted:
    """Cases of weight w stand for w cases alike."""

    @staticmethod
    def unweighted(votes, times):
        votes = np.repeat(votes, times, axis=0)
        return [one.value for one in (raw_agreement(votes), fleiss_kappa(votes), gwet_ac1(votes, n_categories=4))]

    @staticmethod
    def cases():
        rng = np.random.default_rng(3)
        votes = rng.choice([1.0, 1.0, 2.0, 3.0], (40, 1)) + rng.choice([0.0, 0.0, 0.0, 1.0], (40, 4))
        votes[:9, 0] = votes[:4, 1] = np.nan
        return votes, rng.integers(1, 5, 40), np.repeat(np.arange(20), 2)

    def test_a_case_counts_as_often_as_its_weight_says(self):
        votes, weight, _ = self.cases()
        found = weighted_agreement(votes, weight, n_categories=4)
        assert_allclose([one.value for one in found], self.unweighted(votes, weight))
        assert [(one.n, one.left_out) for one in found] == [(40, {})] * 3

    def test_the_interval_equals_leaving_out_each_patient(self):
        votes, weight, patient = self.cases()
        without = np.array([self.unweighted(votes[patient != p], weight[patient != p]) for p in range(20)])
        error = np.sqrt(19 / 20 * np.sum((without - without.mean(axis=0)) ** 2, axis=0))
        found = weighted_agreement(votes, weight, n_categories=4, patient=patient)
        assert_allclose([one.high - one.value for one in found], 2.093024054408263 * error)
        assert_allclose([one.value - one.low for one in found], 2.093024054408263 * error)

    def test_cases_with_one_vote_or_without_a_weight_are_left_out(self):
        votes, weight, _ = self.cases()
        more = np.vstack((votes, [[1, np.nan, np.nan, np.nan]], votes[:3]))
        found = weighted_agreement(more, [*weight, 1.0, 0.0, np.nan, np.inf], n_categories=4)
        assert_allclose([one.value for one in found], self.unweighted(votes, weight))
        assert [(one.n, one.left_out) for one in found] == [(40, {"fewer than two votes, or no weight": 4})] * 3


class TestInvariance:
    @FEW
    @given(votes_with_gaps, st.randoms(use_true_random=False))
    def test_neither_the_order_of_readers_nor_of_cases_matters(self, votes, random):
        rows, columns = list(range(votes.shape[0])), list(range(votes.shape[1]))
        random.shuffle(rows)
        random.shuffle(columns)
        for coefficient in ALL:
            first, second = coefficient(votes), coefficient(votes[np.ix_(rows, columns)])
            assert first.reason == second.reason
            if first.computable:
                assert_allclose(first.value, second.value, atol=1e-12)
            if first.has_interval:
                assert_allclose([first.low, first.high], [second.low, second.high], atol=1e-9)

    @FEW
    @given(votes_with_gaps)
    def test_swapped_answer_options_change_nothing(self, votes):
        swapped = 4.0 - votes
        for coefficient in ALL:
            first, second = coefficient(votes), coefficient(swapped)
            assert first.computable == second.computable
            if first.computable:
                assert_allclose(first.value, second.value, atol=1e-12)

    def test_cases_of_one_patient_count_as_one_unit_in_the_interval(self, panel):
        twice = np.repeat(panel, 2, axis=0)
        patient = np.repeat(np.arange(222), 2)
        for coefficient in ALL:
            apart, together, once = coefficient(twice), coefficient(twice, patient=patient), coefficient(panel)
            assert together.high - together.low > 1.3 * (apart.high - apart.low)
            assert_allclose(together.high - together.low, once.high - once.low, rtol=0.02)


class TestNotComputable:
    def test_full_agreement_on_one_answer_is_raw_one_and_otherwise_not_computable(self):
        votes = np.full((20, 3), 2.0)
        raw = raw_agreement(votes)
        assert raw.value == 1.0
        assert raw.low < 1.0
        for coefficient in (fleiss_kappa, krippendorff_alpha, gwet_ac1):
            assert coefficient(votes).reason == "not computable: one category only"
        assert cohen_kappa(votes[:, 0], votes[:, 1]).reason == "not computable: one category only"

    @pytest.mark.parametrize("coefficient", ALL)
    @pytest.mark.parametrize(
        ("votes", "why"),
        [
            (np.full((3, 3), np.nan), "no votes"),
            (np.empty((0, 3)), "no votes"),
            ([[1, np.nan], [2, np.nan]], "one reader only"),
            ([[1, np.nan], [np.nan, 2]], "no case has two votes"),
        ],
    )
    def test_too_few_votes_say_which(self, coefficient, votes, why):
        found = coefficient(votes)
        assert found.value is None
        assert found.reason == f"not computable: {why}"

    def test_cases_with_fewer_than_two_votes_are_counted(self):
        found = fleiss_kappa([[1, 1], [1, 2], [2, 2], [1, np.nan], [np.nan, np.nan]])
        assert found.n == 3
        assert found.left_out == {"no vote": 1, "one vote only": 1}

    def test_one_patient_has_values_without_intervals(self):
        votes = [[1, 1], [1, 2], [2, 2]]
        for coefficient in ALL:
            found = coefficient(votes, patient=["a", "a", "a"])
            assert found.computable
            assert not found.has_interval

    def test_two_readers_without_a_common_case(self):
        assert "no case has votes of both" in cohen_kappa([1, np.nan], [np.nan, 2]).reason

    @pytest.mark.parametrize("coefficient", ALL)
    def test_malformed_votes_are_refused(self, coefficient):
        with pytest.raises(InvalidInputError, match="give a row per case"):
            coefficient([1, 2, 3])
        with pytest.raises(InvalidInputError, match="'patient' has shape"):
            coefficient([[1, 2]], patient=["a", "b"])

    def test_two_readers_need_votes_of_one_length(self):
        with pytest.raises(InvalidInputError, match="give one per case"):
            cohen_kappa([1, 2], [1])
