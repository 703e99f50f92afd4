"""Ridge logistic regression against scikit-learn, and left-out groups against fitting again."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from core.scoring.logistic import fit_ridge_logistic


@pytest.fixture
def data():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 8))
    positive = random.random(300) < 1 / (1 + np.exp(-(X[:, 0] + 0.5 * X[:, 1] - 1.5)))
    return X, positive.astype(float), random.integers(0, 60, 300)


@pytest.mark.parametrize("strength", [1.55, 30.0])
def test_coefficients_equal_scikit_learn_s(data, strength):
    X, positive, groups = data
    fit = fit_ridge_logistic(X, positive, strength, groups)
    expected = LogisticRegression(C=strength / 300, tol=1e-12, max_iter=10_000).fit(X, positive)
    np.testing.assert_allclose(fit.coefficients, expected.coef_[0], atol=1e-5)
    assert fit.intercept == pytest.approx(expected.intercept_[0], abs=1e-5)
    np.testing.assert_allclose(fit.log_odds(X), expected.decision_function(X), atol=1e-4)


def test_single_precision_features_are_enough(data):
    X, positive, groups = data
    double, single = (fit_ridge_logistic(x, positive, 1.55, groups) for x in (X, X.astype(np.float32)))
    np.testing.assert_allclose(single.coefficients, double.coefficients, atol=1e-5)
    np.testing.assert_allclose(single.left_out_log_odds, double.left_out_log_odds, atol=1e-4)


def test_left_out_log_odds_equal_fitting_again_without_the_patient(data):
    X, positive, groups = data
    fit = fit_ridge_logistic(X, positive, 1.55, groups)
    with_own = fit.log_odds(X)
    for group in range(0, 60, 7):
        out = groups == group
        # The same weight per instance: C stays, n shrinks.
        again = LogisticRegression(C=1.55 / 300, tol=1e-12, max_iter=10_000).fit(X[~out], positive[~out])
        expected = again.decision_function(X[out])
        assert np.abs(fit.left_out_log_odds[out] - expected).max() < 0.02
        assert np.abs(fit.left_out_log_odds[out] - expected).max() < 0.2 * np.abs(with_own[out] - expected).max()


def test_the_order_of_instances_changes_nothing(data):
    X, positive, groups = data
    order = np.random.default_rng(1).permutation(300)
    one, other = (
        fit_ridge_logistic(X, positive, 1.55, groups),
        fit_ridge_logistic(X[order], positive[order], 1.55, groups[order]),
    )
    np.testing.assert_allclose(one.coefficients, other.coefficients, atol=1e-10)
    np.testing.assert_allclose(one.left_out_log_odds[order], other.left_out_log_odds, atol=1e-9)
