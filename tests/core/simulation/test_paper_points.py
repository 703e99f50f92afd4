"""D1, D2 and D3: densities against scipy, switched labels, and a true score that is a probability."""

import numpy as np
import pytest
from scipy import stats

from core.errors import InvalidInputError
from core.evaluation import ordering_agreement
from core.simulation.paper_points import draw_points, mixtures

NAMES = ["D1", "D2", "D3"]


@pytest.mark.parametrize("name", NAMES)
def test_densities_equal_scipy_s(name):
    X = np.random.default_rng(0).normal(scale=4, size=(50, 2))
    for mixture in mixtures(name):
        parts = [
            stats.multivariate_normal(mean, covariance).pdf(X)
            for mean, covariance in zip(mixture.means, mixture.covariances, strict=True)
        ]
        np.testing.assert_allclose(np.exp(mixture.log_density(X)), np.mean(parts, axis=0), rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_draws_have_the_mean_and_spread_of_their_mixture(name):
    for mixture in mixtures(name):
        X = mixture.draw(40_000, np.random.default_rng(1))
        mean = mixture.means.mean(axis=0)
        spread = mixture.covariances.mean(axis=0) + np.cov(mixture.means.T, bias=True).reshape(2, 2)
        np.testing.assert_allclose(X.mean(axis=0), mean, atol=0.12)
        np.testing.assert_allclose(np.cov(X.T), spread, atol=0.05 * np.abs(spread).max())


@pytest.mark.parametrize("name", NAMES)
def test_three_per_cent_of_the_labels_are_switched_and_stand_out(name):
    points = draw_points(name, np.random.default_rng(2))
    assert points.X.shape == (1000, 2)
    assert points.flipped.sum() == 30
    assert ((points.true_score >= 0) & (points.true_score <= 1)).all()
    assert ordering_agreement(points.flipped, points.true_score) > 0.8
    positive, negative = mixtures(name)
    p, q = np.exp(positive.log_density(points.X)), np.exp(negative.log_density(points.X))
    np.testing.assert_allclose(points.true_score, np.where(points.y > 0, q, p) / (p + q), atol=1e-12)


def test_the_rings_of_d3_do_not_overlap():
    points = draw_points("D3", np.random.default_rng(3))
    assert np.median(points.true_score[~points.flipped]) < 0.01


def test_the_same_seed_draws_the_same_points():
    one, again = (draw_points("D2", np.random.default_rng(4)) for _ in range(2))
    np.testing.assert_array_equal(one.X, again.X)
    np.testing.assert_array_equal(one.y, again.y)


def test_another_name_is_refused():
    with pytest.raises(InvalidInputError, match="choose D1, D2 or D3"):
        mixtures("D4")
