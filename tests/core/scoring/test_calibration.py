"""Logistic lines over many tasks: optimum, pooling and the guard against slopes that turn a list upside down."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from statsmodels.stats.meta_analysis import combine_effects

from core.errors import InvalidInputError
from core.scoring.calibration import calibrate, fit_line, pool_slopes, soft_label_evidence


def draw(n, intercept, slope, seed):
    random = np.random.default_rng(seed)
    evidence = random.normal(size=n)
    chance = 1 / (1 + np.exp(-(intercept + slope * evidence)))
    return evidence, (random.random(n) < chance).astype(float)


@pytest.mark.parametrize(("mean", "spread"), [(1.0, 10.0), (0.5, 0.2), (2.0, 1.0)])
def test_a_line_is_the_optimum_of_its_penalised_likelihood(mean, spread):
    evidence, positive = draw(150, -1.0, 0.8, 0)

    def loss(parameters):
        z = parameters[0] + parameters[1] * evidence
        return np.logaddexp(0, z).sum() - positive @ z + 0.5 * ((parameters[1] - mean) / spread) ** 2

    expected = optimize.minimize(loss, [0.0, 0.0], method="BFGS", options={"gtol": 1e-8}).x
    line = fit_line(evidence, positive, slope_mean=mean, slope_spread=spread)
    np.testing.assert_allclose([line.intercept, line.slope], expected, atol=1e-5)


def test_the_slope_error_is_the_spread_of_slopes_over_repetitions():
    lines = [fit_line(*draw(400, -0.5, 1.0, seed)) for seed in range(200)]
    slopes = np.array([line.slope for line in lines])
    assert slopes.mean() == pytest.approx(1.0, abs=0.05)
    assert np.mean([line.slope_error for line in lines]) == pytest.approx(slopes.std(), rel=0.15)


def test_a_separable_task_has_a_finite_line():
    evidence = np.linspace(-1, 1, 40)
    line = fit_line(evidence, (evidence > 0).astype(float))
    assert np.isfinite([line.intercept, line.slope, line.slope_error]).all()
    assert line.slope > 1


def test_pooling_finds_mean_and_spread_of_slopes():
    random = np.random.default_rng(1)
    errors = random.uniform(0.1, 0.5, 4000)
    slopes = 1.5 + 0.4 * random.normal(size=4000) + errors * random.normal(size=4000)
    mean, spread = pool_slopes(slopes, errors)
    assert mean == pytest.approx(1.5, abs=0.03)
    assert spread == pytest.approx(0.4, abs=0.03)


@pytest.mark.parametrize(("n", "shift"), [(3, 1.0), (12, 1.0), (12, -3.0)])
def test_pooled_mean_and_spread_are_those_of_statsmodels(n, shift):
    random = np.random.default_rng(1)
    errors = random.uniform(0.1, 0.5, n)
    slopes = shift + np.linspace(-1.0, 1.0, n)
    expected = combine_effects(slopes, errors**2, method_re="dl")
    assert expected.tau2 > 0
    mean, spread = pool_slopes(slopes, errors)
    np.testing.assert_allclose((mean, spread**2), (max(0.0, expected.mean_effect_re), expected.tau2))


def test_slopes_that_differ_by_chance_alone_have_no_spread():
    random = np.random.default_rng(2)
    errors = np.full(500, 0.3)
    mean, spread = pool_slopes(1.0 + errors * random.normal(size=500), errors)
    assert mean == pytest.approx(1.0, abs=0.05)
    assert spread < 0.1


def test_two_tasks_are_too_few_to_learn_a_spread():
    assert pool_slopes(np.array([5.0, -3.0]), np.array([0.1, 0.1])) == (1.0, 1.0)


def calibrated(tasks):
    return calibrate(lambda task: tasks[task][0], lambda task: tasks[task][1], len(tasks))


def test_a_rare_task_leans_on_the_others_and_no_slope_is_negative():
    tasks = [draw(500, -1, 1.2, seed) for seed in range(12)]
    rare_evidence, rare = draw(500, -4, 0.0, 99)
    rare = np.where(np.argsort(np.argsort(rare_evidence)) < 4, 1.0, 0.0)  # four positives, all at the wrong end
    tasks.append((rare_evidence, rare))
    alone = fit_line(rare_evidence, rare)
    together = calibrated(tasks)
    assert alone.slope < -1
    assert (together.slopes >= 0).all()
    share = rare.mean()
    # The line is flat, or still gives back the task's own base rate on average.
    chance = 1 / (1 + np.exp(-together.log_odds(12, rare_evidence)))
    assert chance.mean() == pytest.approx(share, abs=0.002)


@given(st.floats(-0.9, 0.9))
@settings(deadline=None)
def test_a_shift_of_the_evidence_changes_no_log_odds(shift):
    tasks = [draw(200, -1, 1.0, seed) for seed in range(4)]
    plain = calibrated(tasks)
    shifted = calibrated([(e + shift, p) for e, p in tasks])
    for task, (evidence, _) in enumerate(tasks):
        np.testing.assert_allclose(shifted.log_odds(task, evidence + shift), plain.log_odds(task, evidence), atol=1e-6)


def test_evidence_is_the_log_odds_of_the_soft_label_and_clipped():
    evidence = soft_label_evidence([0.0, 0.5, -0.5, 1.0, -1.0])
    np.testing.assert_allclose(evidence, [0, np.log(3), -np.log(3), np.log(1999), -np.log(1999)], rtol=1e-12)


def test_a_line_needs_both_decisions():
    with pytest.raises(InvalidInputError, match="both kinds"):
        fit_line(np.zeros(3), np.ones(3))
