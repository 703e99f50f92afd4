"""True-alert rate by alert budget."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from core.errors import InvalidInputError
from core.statistics.alert_rate import Budget, true_alert_rate, weighted_share
from core.statistics.estimate import logit_interval, t_quantile

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


@pytest.mark.parametrize("budget", [0.01, 0.1, 0.5, 3.0])
def test_it_equals_walking_down_the_ranks(budget):
    y, score, patient, weight = cases()
    found = true_alert_rate(y, score, patient, weight, 200, [budget])[0]
    assert_allclose(found.rate.value, plain_rate(y, score, weight, 200, budget))


def test_the_interval_equals_leaving_out_each_patient():
    y, score, patient, weight = cases()
    inside = score >= 0.5
    found = true_alert_rate(y, score, patient, weight, 200, [Budget(0.1, 0.5, 77)])[0]
    y, patient, weight = y[inside], patient[inside], weight[inside]
    units = np.unique(patient)
    without = np.array([np.average(y[patient != p], weights=weight[patient != p]) for p in units])
    error = np.sqrt((units.size - 1) / units.size * np.sum((without - without.mean()) ** 2))
    low, high = logit_interval(np.average(y, weights=weight), error, t_quantile(0.95, units.size - 1))
    assert_allclose((found.rate.low, found.rate.high), (low, high))
    assert (found.threshold, found.n_alerts, found.n_cases) == (0.5, 77, int(inside.sum()))


def test_budgets_come_back_rising_and_thresholds_fall():
    y, score, patient, weight = cases()
    points = true_alert_rate(y, score, patient, weight, 200, [0.5, 0.02, 0.1])
    assert [p.alerts_per_patient_day for p in points] == [0.02, 0.1, 0.5]
    assert points[0].threshold >= points[1].threshold >= points[2].threshold
    assert points[0].n_alerts <= points[1].n_alerts <= 0.1 * 200


def test_undetermined_cases_stand_for_alerts_but_not_for_the_rate():
    y = np.array([1.0, np.nan, 0.0])
    found = true_alert_rate(y, [0.9, 0.8, 0.1], ["a", "b", "c"], [1.0, 1.0, 1.0], 10, [0.2])[0]
    assert found.n_alerts == 2
    assert found.n_cases == 1
    assert found.rate.value == 1.0


def test_all_relevant_has_an_interval_below_one():
    found = weighted_share([1, 1, 1, 1], ["a", "b", "c", "d"])
    assert found.value == found.high == 1.0
    assert 0.2 < found.low < 0.9


def test_no_judged_case_inside_the_budget_says_so():
    found = true_alert_rate([1.0, 0.0], [0.2, 0.1], ["a", "b"], None, 10, [Budget(0.1, 0.9, 1)])[0]
    assert found.rate.value is None
    assert "no decided case is inside this budget" in found.rate.reason


def test_no_label_at_all_says_so():
    found = true_alert_rate([np.nan], [0.2], ["a"], [1.0], 10, [0.1])[0]
    assert "no decided case" in found.rate.reason
    assert "no labelled case" in weighted_share([np.nan], ["a"]).reason


def test_reading_time_is_alerts_times_minutes():
    y, score, patient, weight = cases()
    found = true_alert_rate(y, score, patient, weight, 200, [0.5], minutes_per_case=1.5)[0]
    assert found.minutes_per_patient_day == 0.75


@FEW
@given(st.integers(0, 20), st.randoms(use_true_random=False))
def test_the_order_of_cases_changes_nothing(seed, random):
    y, score, patient, weight = cases(seed)
    order = list(range(y.size))
    random.shuffle(order)
    first = true_alert_rate(y, score, patient, weight, 200, [0.1, 0.5])
    second = true_alert_rate(y[order], score[order], patient[order], weight[order], 200, [0.1, 0.5])
    for a, b in zip(first, second, strict=True):
        assert_allclose([a.threshold, a.n_alerts, a.rate.value], [b.threshold, b.n_alerts, b.rate.value])


@pytest.mark.parametrize(
    ("days", "budgets", "message"), [(0, [0.1], "0 patient-days"), (10, [0.0], "Alert budget 0.0 is not positive")]
)
def test_impossible_budgets_are_refused(days, budgets, message):
    with pytest.raises(InvalidInputError, match=message):
        true_alert_rate([1.0], [0.5], ["a"], None, days, budgets)
