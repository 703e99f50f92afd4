"""The simulating planner: against studies of candidates with known relevance."""

import numpy as np
import pytest
from scipy import special

from benchmarks.planner import DESIGNS, foretold_and_reached
from core.errors import InvalidInputError
from core.statistics.auc import auc
from core.statistics.candidate_figures import CandidateFigures
from core.statistics.design_planning import (
    ExpectedReaders,
    ExpectedStratum,
    divide,
    expected_strata,
    forecast,
    plan_designs,
)

STRATA = [ExpectedStratum(20_000, 0.03), ExpectedStratum(3_000, 0.1), ExpectedStratum(600, 0.4)]


@pytest.mark.parametrize(("relevant", "design"), DESIGNS)
def test_it_foretells_the_half_width_of_simulated_studies(relevant, design):
    foretold, reached = foretold_and_reached(relevant, design, 50)
    # Both are means of simulated studies; 3 % of the tolerance is their noise.
    assert foretold.half_width == pytest.approx(reached, rel=0.13)


def test_it_foretells_it_where_relevance_does_not_rise_inside_a_stratum():
    """As in the demonstration: physicians question a few usual decisions, whatever their score."""
    rng = np.random.default_rng(3)
    size, share, counts = np.array([12_000.0, 750.0, 340.0]), np.array([0.02, 0.15, 0.5]), np.array([490, 190, 190])
    stratum, widths = np.repeat(np.arange(3), counts), []
    for _ in range(15):
        label, place = (rng.random(stratum.size) < share[stratum]).astype(float), rng.random(stratum.size)
        patient = rng.integers(0, 300, stratum.size)
        found = CandidateFigures(label, (size / counts)[stratum], patient, stratum, size, 0.95).auc(stratum + place)
        widths.append((found.high - found.low) / 2.0)
    strata = [ExpectedStratum(int(n), p) for n, p in zip(size, share, strict=True)]
    foretold = forecast(strata, counts.tolist(), n_patients=300, readers=ExpectedReaders(undecided_share=0.0))
    assert foretold.half_width == pytest.approx(np.mean(widths), rel=0.13)


def test_what_is_told_hardly_depends_on_the_seed():
    """A search of few studies is off by a twentieth; what is told of a small study comes from many."""
    strata = [ExpectedStratum(9_971, 0.0097), ExpectedStratum(10_911, 0.0414), ExpectedStratum(3_118, 0.1584)]
    told = [forecast(strata, [40, 40, 40], n_patients=400, seed=seed).half_width for seed in range(3)]
    assert np.ptp(told) < 0.12 * np.mean(told)


def test_a_planned_study_has_the_wanted_half_width():
    plans = plan_designs(STRATA, 0.15, n_patients=300)
    assert len(plans) == 3
    for plan in plans:
        again = forecast(STRATA, plan.by_stratum, n_patients=300, n_studies=30, seed=7)
        assert again.half_width == pytest.approx(0.15, rel=0.15)
    assert [plan.n_cases for plan in plans] == sorted(plan.n_cases for plan in plans)


def test_a_width_out_of_reach_is_said_with_what_is_reached():
    tiny = [ExpectedStratum(30, 0.05), ExpectedStratum(30, 0.3)]
    plan = plan_designs(tiny, 0.01, n_patients=20)[0]
    assert plan.n_cases == 60
    assert plan.half_width > 0.01


def test_without_relevant_cases_there_is_no_width():
    found = forecast([ExpectedStratum(500, 0.0)], [50], n_patients=40)
    assert (found.half_width, found.share_without_interval) == (None, 1.0)


def test_more_cases_narrow_the_interval_and_undecided_ones_widen_it():
    few, many = (forecast(STRATA, [n, n, n], n_patients=300, n_studies=40).half_width for n in (20, 80))
    half_lost = ExpectedReaders(undecided_share=0.5)
    lost = forecast(STRATA, [80] * 3, n_patients=300, readers=half_lost, n_studies=40).half_width
    assert many < lost < few


def test_readers_errors_add_false_relevant_cases():
    share = np.array([0.0, 0.2, 1.0])
    np.testing.assert_allclose(ExpectedReaders(3, 1.0, 1.0).label_share(share), share)
    found = ExpectedReaders(3, 0.8, 0.9).label_share(share)
    np.testing.assert_allclose(found[0], 3 * 0.1**2 * 0.9 + 0.1**3)
    np.testing.assert_allclose(found[2], 3 * 0.8**2 * 0.2 + 0.8**3)


@pytest.mark.parametrize(("accuracy", "relevant"), [(0.6, 0.3), (0.8, 0.05), (0.95, 0.01)])
def test_strata_before_a_pilot_are_those_of_drawn_scores(accuracy, relevant):
    rng = np.random.default_rng(2)
    y = rng.random(400_000) < relevant
    score = rng.normal(size=y.size) + np.sqrt(2.0) * special.ndtri(accuracy) * y
    assert auc(y, score).value == pytest.approx(accuracy, abs=0.006)
    sizes = [200_000, 150_000, 50_000]
    ordered = np.split(y[np.argsort(score)], np.cumsum(sizes)[:-1])
    expected = expected_strata(sizes, accuracy, relevant)
    for stratum, members in zip(expected, ordered, strict=True):
        spread = np.sqrt(stratum.relevant_share / members.size)
        assert stratum.relevant_share == pytest.approx(members.mean(), abs=5.0 * spread + 1e-4)
    total = sum(stratum.n_candidates * stratum.relevant_share for stratum in expected)
    assert total / sum(sizes) == pytest.approx(relevant, rel=1e-9)


def test_one_stratum_has_the_whole_share_and_empty_ones_are_refused():
    assert expected_strata([70], 0.8, 0.05)[0].relevant_share == pytest.approx(0.05)
    for change in (([], 0.8, 0.05), ([5, 0], 0.8, 0.05), ([5, 5], 0.5, 0.05), ([5, 5], 0.8, 1.0), ([5], np.nan, 0.1)):
        with pytest.raises(InvalidInputError):
            expected_strata(*change)


@pytest.mark.parametrize("n_cases", [2, 7, 60, 5_000])
def test_cases_are_divided_without_rest_and_never_above_the_candidates(n_cases):
    size = np.array([4_000.0, 1.0, 30.0])
    counts = divide(n_cases, np.array([5.0, 1.0, 1.0]), size)
    assert (counts <= size).all()
    assert counts.sum() == min(max(n_cases, 5), size.sum())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"strata": []}, "needs strata with candidates"),
        ({"strata": [ExpectedStratum(10, 1.2)]}, "share of relevant ones between 0 and 1"),
        ({"by_stratum": [1, 1]}, "do not fit strata"),
        ({"by_stratum": [20_001, 1, 1]}, "do not fit strata"),
        ({"n_patients": 1}, "1 patients give no interval"),
        ({"level": 2.0}, "Confidence level"),
    ],
)
def test_impossible_expectations_are_refused(change, words):
    given = {"strata": STRATA, "by_stratum": [10, 10, 10], "n_patients": 30, **change}
    with pytest.raises(InvalidInputError, match=words):
        forecast(given.pop("strata"), given.pop("by_stratum"), **given)


@pytest.mark.parametrize(
    "given", [{"sensitivity": 0.5}, {"specificity": 1.1}, {"undecided_share": 1.0}, {"n_readers": 0}]
)
def test_impossible_readers_are_refused(given):
    with pytest.raises(InvalidInputError):
        ExpectedReaders(**given)


@pytest.mark.parametrize("half_width", [0.0, 0.5, -1.0])
def test_an_impossible_width_is_refused(half_width):
    with pytest.raises(InvalidInputError, match="half width"):
        plan_designs(STRATA, half_width, n_patients=30)
