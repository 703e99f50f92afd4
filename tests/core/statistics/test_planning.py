"""How many cases a study needs."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.errors import InvalidInputError
from core.statistics.auc import delong_interval
from core.statistics.planning import auc_variance, required_cases, required_cases_to_compare

FEW = settings(max_examples=30, deadline=None)


@FEW
@given(st.floats(0.55, 0.95), st.floats(0.05, 0.5), st.floats(0.03, 0.2), st.floats(1.0, 3.0))
def test_the_number_found_is_the_smallest_that_is_enough(auc, share, half_width, effect):
    plan = required_cases(auc, share, half_width, design_effect=effect, undecided_share=0.0)
    positive = plan.n_decided * share
    one_less = plan.n_decided - 1

    def reach(n):
        return 1.959963984540054 * np.sqrt(effect * auc_variance(auc, n * share, n * (1 - share)))

    assert plan.half_width == pytest.approx(reach(plan.n_decided))
    assert reach(plan.n_decided) <= half_width
    assert reach(one_less) > half_width or one_less * min(share, 1 - share) < 2
    assert plan.n_positive == round(positive)


@pytest.mark.parametrize("share", [0.02, 0.98])
def test_at_least_two_cases_of_each_class_are_expected(share):
    assert required_cases(0.95, share, 0.49, undecided_share=0.0).n_cases == 100


def test_a_simulated_study_of_that_size_has_that_half_width_or_a_little_less():
    plan = required_cases(0.8, 0.3, 0.06, undecided_share=0.0)
    rng = np.random.default_rng(0)
    widths = []
    for _ in range(60):
        y = rng.random(plan.n_decided) < 0.3
        found = delong_interval(y, rng.normal(size=y.size) + 1.19 * y)
        widths.append((found.high - found.low) / 2)
    assert 0.85 * 0.06 < np.mean(widths) < 1.02 * 0.06


def test_undecided_cases_and_readers_and_minutes_are_counted_in():
    plan = required_cases(0.75, 0.25, 0.08, undecided_share=0.1, n_readers=3, minutes_per_judgment=2.0)
    assert plan.n_cases == pytest.approx(plan.n_decided / 0.9, abs=1)
    assert plan.n_judgments == 3 * plan.n_cases
    assert plan.minutes == 6.0 * plan.n_cases


def test_more_precision_more_power_and_rarer_positives_need_more_cases():
    assert required_cases(half_width=0.05).n_cases > required_cases(half_width=0.1).n_cases
    assert required_cases(positive_share=0.05).n_cases > required_cases(positive_share=0.3).n_cases
    assert required_cases_to_compare(0.8, 0.7, power=0.9) > required_cases_to_compare(0.8, 0.7, power=0.8)
    assert required_cases_to_compare(0.8, 0.75) > required_cases_to_compare(0.8, 0.65)
    assert required_cases_to_compare(0.8, 0.7, correlation=0.0) > required_cases_to_compare(0.8, 0.7, correlation=0.8)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: required_cases(0.5), "'auc' is 0.5"),
        (lambda: required_cases(positive_share=0.0), "'positive_share' is 0.0"),
        (lambda: required_cases(half_width=0.0), "'half_width' is 0.0"),
        (lambda: required_cases(design_effect=0.5), "Design effect 0.5"),
        (lambda: required_cases(undecided_share=1.0), "undecided share 1.0"),
        (lambda: required_cases_to_compare(0.8, 0.8), "difference that is not there"),
        (lambda: required_cases_to_compare(0.8, 0.7, power=1.0), "'power' is 1.0"),
    ],
)
def test_impossible_expectations_are_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()
