"""Figures with interval and reason."""

import pytest
from numpy.testing import assert_allclose
from scipy import special, stats
from statsmodels.stats.proportion import proportion_confint

from core.errors import InvalidInputError
from core.number_texts import percent_text
from core.statistics.estimate import Estimate, check_level, logit_interval, not_computable, t_quantile, wilson_interval


def test_not_computable_is_a_value_with_a_reason():
    found = not_computable("one reader only", n=7, left_out={"no vote": 2})
    assert found.value is None
    assert not found.computable
    assert found.text() == "not computable: one reader only"
    assert (found.n, found.left_out) == (7, {"no vote": 2})


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        (Estimate(0.781, 0.712, 0.843), "0.78 (0.71–0.84)"),
        (Estimate(0.5), "0.50"),
        (Estimate(-0.017, -0.03, 0.0), "−0.02 (−0.03 to 0.00)"),
    ],
)
def test_a_figure_is_written_with_its_interval(figure, words):
    assert figure.text() == figure.full_text() == words


def test_a_missing_interval_says_why_in_a_table_only():
    figure = Estimate(0.5, reason="interval not computable: one patient")
    assert (figure.text(), figure.full_text()) == ("0.50", "0.50 (no interval: one patient)")
    missing = not_computable("one reader only")
    assert missing.full_text() == missing.reason


@pytest.mark.parametrize("share", [1e-9, 0.0004, 0.0049, 0.0051, 0.5, 0.9949, 0.9951, 0.9996, 1 - 1e-9])
def test_only_none_reads_as_0_and_only_all_as_100_percent(share):
    assert percent_text(0.0) == "0%"
    assert percent_text(1.0) == "100%"
    for places in (0, 1):
        words = percent_text(share, places)
        shown = float(words.strip("<>%"))
        assert 0 < shown < 100
        assert abs(shown - 100 * share) <= 0.5
        assert words.startswith("<") is (share < 0.0005)
        assert words.startswith(">") is (share > 0.9995)
    assert Estimate(share, 0.0, 1.0).text(percent=True).split(" ")[0] == percent_text(share)


def test_wilson_equals_that_of_statsmodels_for_whole_numbers():
    low, high = wilson_interval(7 / 20, 20, stats.norm.ppf(0.975))
    assert_allclose((low, high), proportion_confint(7, 20, method="wilson"))


@pytest.mark.parametrize("value", [0.001, 0.3, 0.999])
def test_the_logit_interval_never_leaves_zero_and_one(value):
    low, high = logit_interval(value, 0.4, 3.0)
    assert 0 <= low < value < high <= 1


@pytest.mark.parametrize("value", [0.02, 0.5, 0.9])
def test_the_logit_interval_is_even_on_the_logit_scale_and_for_small_errors_on_that_of_the_value(value):
    low, high = special.logit(logit_interval(value, 0.01, 2.0))
    assert_allclose((low + high) / 2.0, special.logit(value), atol=1e-12)
    low, high = logit_interval(value, 1e-6, 2.0)
    assert_allclose((value - low, high - value), 2e-6, rtol=1e-3)


def test_the_t_quantile_is_wider_than_the_normal_one_and_closes_on_it():
    assert t_quantile(0.95, 5) > t_quantile(0.95, 50) > 1.96
    assert_allclose(t_quantile(0.95, 1e7), stats.norm.ppf(0.975), rtol=1e-5)


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_a_level_outside_zero_and_one_is_refused(level):
    with pytest.raises(InvalidInputError, match=f"Confidence level {level}"):
        check_level(level)
