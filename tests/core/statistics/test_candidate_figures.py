"""Figures on all candidates: against counts of cases that stand for several, and the field's large-sample intervals."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import confusion_matrix

from core.statistics.candidate_figures import CandidateFigures
from core.statistics.estimate import Estimate

CHANCE = 0.2
"""Chance of relevance from which an alert is worth reading; an irrelevant one then weighs 1/4."""


def figures(y, weight, size=None, level=0.95):
    n = len(y)
    sizes = np.array([float(np.sum(weight)) if size is None else size])
    return CandidateFigures(
        np.asarray(y, float), np.asarray(weight, float), np.arange(n), np.zeros(n, int), sizes, level
    )


def all_figures(given, score, threshold):
    return {
        **given.operating_point(score, threshold),
        "share": given.share(),
        "shown_share": given.share(score >= threshold),
        "net_benefit": given.net_benefit(score, threshold, CHANCE),
    }


def counted(y, score, threshold):
    (no_no, no_yes), (yes_no, yes_yes) = confusion_matrix(y, score >= threshold)
    n = no_no + no_yes + yes_no + yes_yes
    return {
        "sensitivity": yes_yes / (yes_yes + yes_no),
        "specificity": no_no / (no_no + no_yes),
        "negative_value": no_no / (no_no + yes_no),
        "share": (yes_yes + yes_no) / n,
        "shown_share": yes_yes / (yes_yes + no_yes),
        "net_benefit": (yes_yes - no_yes / 4) / n,
    }


def cases(n=400):
    rng = np.random.default_rng(1)
    score = rng.integers(0, 10, n) / 10
    return (rng.random(n) < 0.1 + 0.6 * score).astype(float), score, rng


def test_a_case_counts_as_often_as_its_weight_says():
    y, score, rng = cases(60)
    weight = rng.integers(1, 4, 60)
    found = all_figures(figures(y, weight), score, 0.5)
    expected = counted(np.repeat(y, weight), np.repeat(score, weight), 0.5)
    assert_allclose([found[name].value for name in expected], list(expected.values()))
    assert all(one.low < one.value < one.high for one in found.values())


@pytest.mark.parametrize(("level", "quantile"), [(0.95, 1.96), (0.8, 1.28)])
def test_an_interval_of_many_cases_is_about_that_of_a_mean(level, quantile):
    y, score, _ = cases()
    shown, every = score >= 0.5, np.full(400, True)
    found = all_figures(figures(y, np.ones(400), size=1e9, level=level), score, 0.5)
    means = {
        "sensitivity": shown[y == 1],
        "specificity": ~shown[y == 0],
        "negative_value": 1 - y[~shown],
        "share": y[every],
        "shown_share": y[shown],
        "net_benefit": shown * np.where(y == 1, 1, -1 / 4),
    }
    for name, of in means.items():
        reach = quantile * np.std(of) / np.sqrt(of.size)
        assert (found[name].high - found[name].low) / 2 == pytest.approx(reach, rel=0.15), name
        assert (found[name].high + found[name].low) / 2 == pytest.approx(found[name].value, abs=0.2 * reach), name


def test_cases_without_a_label_a_score_or_a_weight_are_not_there():
    y, score, _ = cases(60)
    weight = np.full(60, 10.0)
    plain = all_figures(figures(y, weight, 600.0), score, 0.5)
    more = figures([1.0, np.nan, *y], [np.nan, 10.0, *weight], 600.0)
    for name, one in all_figures(more, np.array([0.9, 0.9, *score]), 0.5).items():
        # Fewer of the candidates are judged, so intervals may differ a little.
        assert one.value == pytest.approx(plain[name].value), name
        assert one.left_out == {"no label": 1, "no inclusion probability": 1}, name
    unscored = figures([1.0, *y], np.full(61, 10.0), 610.0).operating_point(np.array([np.nan, *score]), 0.5)
    assert {name: one.value for name, one in unscored.items()} == {name: plain[name].value for name in unscored}


@pytest.mark.parametrize(
    ("y", "threshold", "why"),
    [
        ([np.nan] * 4, 0.5, dict.fromkeys(("sensitivity", "specificity", "negative_value"), "no labelled case")),
        ([0, 0, 0, 0], 0.5, {"sensitivity": "no case is relevant"}),
        ([1, 1, 1, 1], 0.5, {"specificity": "every case is relevant"}),
        ([0, 1, 0, 1], 0.0, {"negative_value": "every decided case is shown"}),
        ([0, 1, 0, 1], 0.9, dict.fromkeys(("sensitivity", "specificity"), "no decided case is shown")),
    ],
)
def test_what_cannot_be_computed_says_why(y, threshold, why):
    found = figures(y, np.full(4, 9.0), 40.0).operating_point(np.array([0.2, 0.4, 0.6, 0.8]), threshold)
    assert {
        name: one.reason.removeprefix("not computable: ") for name, one in found.items() if not one.computable
    } == why


@pytest.mark.parametrize(
    ("y", "threshold", "why"), [([np.nan] * 2, 0.5, "no labelled case"), ([0, 1], 0.9, "no decided case is shown")]
)
def test_no_net_benefit_says_why(y, threshold, why):
    found = figures(y, [9.0, 9.0], 20.0).net_benefit(np.array([0.4, 0.6]), threshold, CHANCE)
    assert found.reason == f"not computable: {why}"


def test_showing_every_case_finds_all_without_an_interval():
    found = figures([0, 1, 0, 1], np.full(4, 9.0), 40.0).operating_point(np.array([0.2, 0.4, 0.6, 0.8]), 0.2)
    assert (found["sensitivity"].value, found["specificity"].value) == (1.0, 0.0)
    for name in ("sensitivity", "specificity"):
        assert not found[name].has_interval
        assert found[name].reason == "interval not computable: every decided case is shown"


@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("far", [0.11, 0.6])
def test_a_difference_is_as_probable_as_the_level_says_where_its_interval_ends_at_zero(side, far):
    """Draws are skewed: the other end of the interval says nothing."""
    given = figures([0, 1], [1.0, 1.0], level=0.9)
    ends = sorted((0.0, side * far))
    found = Estimate(side * 0.1, *ends, level=0.9)
    assert given._tested(found, 7).p_value == pytest.approx(0.1)
    inside, outside = (replace(found, low=ends[0] - by, high=ends[1] - by) for by in (side * 0.01, -side * 0.01))
    assert given._tested(outside, 7).p_value < 0.1 < given._tested(inside, 7).p_value
