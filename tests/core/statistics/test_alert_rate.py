"""True-alert rate by alert budget."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from core.errors import InvalidInputError
from core.statistics.alert_rate import Budget, share_of_cases, true_alert_rate
from core.statistics.estimate import Estimate, logit_interval, t_quantile

FEW = settings(max_examples=30, deadline=None)


def cases(seed=0, n=120):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4).astype(float)
    return y, rng.permutation(n) / n + 0.2 * y, np.repeat(np.arange(n // 3), 3), rng.choice([1.0, 2.0, 5.0], n)


def plain_rate(y, score, weight, days, budget):
    """Walk down the ranks until the budget is spent."""
    order = np.argsort(-score)
    spent = hits = shown = 0.0
    for case in order:
        if shown and spent + weight[case] > budget * days:
            break
        spent += weight[case]
        shown += weight[case]
        hits += weight[case] * y[case]
    return hits / shown


def weighted_rate(y, weight):
    """Return what the caller gives: the weighted share of a mask."""

    def rate(inside):
        known = inside & ~np.isnan(y)
        return Estimate(float(np.average(y[known], weights=weight[known])), n=int(known.sum()))

    return rate


def points_of(y, score, weight, days, budgets, **more):
    return true_alert_rate(y, score, weight, days, budgets, weighted_rate(np.asarray(y), np.asarray(weight)), **more)


@pytest.mark.parametrize("budget", [0.01, 0.1, 0.5, 3.0])
def test_it_equals_walking_down_the_ranks(budget):
    y, score, _, weight = cases()
    found = points_of(y, score, weight, 200, [budget])[0]
    assert_allclose(found.rate.value, plain_rate(y, score, weight, 200, budget))


def test_a_threshold_counted_over_the_run_is_used_as_given():
    y, score, _, weight = cases()
    found = points_of(y, score, weight, 200, [Budget(0.1, 0.5, 77)])[0]
    assert (found.threshold, found.n_alerts, found.n_cases) == (0.5, 77, int((score >= 0.5).sum()))


def test_budgets_come_back_rising_and_thresholds_fall():
    y, score, _, weight = cases()
    points = points_of(y, score, weight, 200, [0.5, 0.02, 0.1])
    assert [p.alerts_per_patient_day for p in points] == [0.02, 0.1, 0.5]
    assert points[0].threshold >= points[1].threshold >= points[2].threshold
    assert points[0].n_alerts <= points[1].n_alerts <= 0.1 * 200


def test_undetermined_cases_stand_for_alerts_but_not_for_the_rate():
    found = points_of([1.0, np.nan, 0.0], [0.9, 0.8, 0.1], [1.0, 1.0, 1.0], 10, [0.2])[0]
    assert found.n_alerts == 2
    assert found.n_cases == found.rate.n == 1
    assert found.rate.value == 1.0


def test_cases_without_a_score_are_not_of_the_curve():
    y, score, _, weight = cases()
    without = np.where(np.arange(y.size) % 2, score, np.nan)
    own = np.isfinite(without)
    for all_cases, some in zip(
        points_of(y, without, weight, 200, [0.1, 0.5]),
        points_of(y[own], score[own], weight[own], 200, [0.1, 0.5]),
        strict=True,
    ):
        assert all_cases == some


@pytest.mark.parametrize(("y", "budget"), [([1.0, 0.0], Budget(0.1, 0.9, 1)), ([np.nan, np.nan], 0.1)])
@pytest.mark.parametrize("score", [[0.2, 0.1], [np.nan, np.nan]])
def test_no_decided_case_inside_the_budget_says_so(y, budget, score):
    found = points_of(y, score, [1.0, 1.0], 10, [budget])[0]
    assert found.rate.reason == "not computable: no decided case is inside this budget"
    assert found.n_cases == 0


def test_reading_time_is_alerts_times_minutes():
    y, score, _, weight = cases()
    assert points_of(y, score, weight, 200, [0.5], minutes_per_case=1.5)[0].minutes_per_patient_day == 0.75


@FEW
@given(st.integers(0, 20), st.randoms(use_true_random=False))
def test_the_order_of_cases_changes_nothing(seed, random):
    y, score, _, weight = cases(seed)
    order = list(range(y.size))
    random.shuffle(order)
    first = points_of(y, score, weight, 200, [0.1, 0.5])
    second = points_of(y[order], score[order], weight[order], 200, [0.1, 0.5])
    for a, b in zip(first, second, strict=True):
        assert_allclose([a.threshold, a.n_alerts, a.rate.value], [b.threshold, b.n_alerts, b.rate.value])


@pytest.mark.parametrize(
    ("days", "budgets", "message"), [(0, [0.1], "0 patient-days"), (10, [0.0], "Alert budget 0.0 is not positive")]
)
def test_impossible_budgets_are_refused(days, budgets, message):
    with pytest.raises(InvalidInputError, match=message):
        points_of([1.0], [0.5], [1.0], days, budgets)


def test_the_interval_of_a_share_equals_leaving_out_each_patient():
    y, _, patient, _ = cases()
    units = np.unique(patient)
    without = np.array([y[patient != p].mean() for p in units])
    error = np.sqrt((units.size - 1) / units.size * np.sum((without - without.mean()) ** 2))
    found = share_of_cases(y, patient)
    assert_allclose((found.low, found.high), logit_interval(y.mean(), error, t_quantile(0.95, units.size - 1)))


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_a_share_of_all_has_wilsons_interval_of_its_patients(level):
    found = share_of_cases([1, 1, 1, 1, 1], ["a", "b", "c", "d", "d"], level=level)
    assert found.value == found.high == 1.0
    # Wilson's limit of a share of 1 is n / (n + q^2); q is Student's t with 4 - 1 degrees of freedom.
    assert_allclose(found.low, 4 / (4 + stats.t.ppf(0.5 + level / 2, 3) ** 2))
    assert "Wilson" in found.method


def test_a_share_of_no_labelled_case_says_so():
    assert "no labelled case" in share_of_cases([np.nan], ["a"]).reason
