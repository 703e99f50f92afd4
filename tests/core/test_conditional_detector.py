"""Detectors in other tools: clone, pickle, pipelines, grid search, and all of scikit-learn's own checks."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from core import baselines
from core.conditional_detector import ConditionalDetector, flip_agreement, score_decisions
from core.errors import InvalidInputError
from core.scoring import variants
from core.scoring.variants import CalibratedSoftHAD
from core.softhad import SoftHAD

DETECTORS = [
    thing
    for module in (baselines, variants)
    for name, thing in vars(module).items()
    if isinstance(thing, type)
    and issubclass(thing, baselines.Baseline)
    and thing.__module__ == module.__name__
    and not getattr(thing, "__abstractmethods__", None)
]


def data(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y


def test_the_list_of_detectors_is_not_empty():
    assert len(DETECTORS) >= 8
    assert {baselines.Logistic, CalibratedSoftHAD} <= set(DETECTORS)


@pytest.mark.parametrize("detector", [*DETECTORS, SoftHAD], ids=lambda one: one.__name__)
def test_every_detector_is_cloned_pickled_and_used_in_a_pipeline(detector):
    X, y = data()
    one = detector()
    assert clone(one).get_params() == one.get_params()
    expected = clone(one).set_params(**one.get_params()).fit(X, y).score_samples(X, y)
    again = pickle.loads(pickle.dumps(clone(one).fit(X, y)))
    np.testing.assert_allclose(again.score_samples(X, y), expected, rtol=1e-9)
    scaled = score_decisions(make_pipeline(StandardScaler(), clone(one)).fit(X, y), X, y)
    direct = clone(one).fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_allclose(scaled, direct.score_samples(StandardScaler().fit_transform(X), y), rtol=1e-9)


@pytest.mark.parametrize(
    "detector",
    [None, SoftHAD(n_neighbors=5, n_nodes=20, random_state=0), CalibratedSoftHAD(5), baselines.Logistic()],
    ids=["default", "SoftHAD", "CalibratedSoftHAD", "Logistic"],
)
def test_scikit_learn_s_checks_of_outlier_detectors_all_pass(detector):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(ConditionalDetector(detector), on_skip=None, on_fail=None)
    assert len(results) > 40
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}


def test_grid_search_finds_the_setting_that_finds_planted_flips():
    X, y = data(240)
    X = np.column_stack((X, np.random.default_rng(1).normal(size=(240, 12)) * 5))
    search = GridSearchCV(
        make_pipeline(StandardScaler(), SoftHAD(n_neighbors=10)),
        {"softhad__feature_weights": [None, "wilcoxon"]},
        scoring=flip_agreement,
        cv=3,
    ).fit(X, y)
    assert search.best_params_ == {"softhad__feature_weights": "wilcoxon"}
    assert search.best_score_ > 0.8


def test_an_unusual_decision_is_an_outlier_and_an_unusual_state_is_none():
    X, y = data(200)
    y[7] = -y[7] if abs(X[7, 0]) > 0.8 else y[7]
    X[11, 1] = 30.0
    matrix = np.column_stack((X, y > 0))
    matrix[np.abs(X[:, 0]) < 0.5] = np.array([1.0, 0, 0, 1])
    odd = int(np.argmax(X[:, 0]))
    matrix[odd, -1] = 0
    found = ConditionalDetector(baselines.Logistic(), contamination=0.02).fit(matrix)
    assert found.labels_[odd] == 1
    assert found.predict(matrix)[odd] == -1
    assert found.labels_[11] == 0
    assert found.labels_.sum() == (found.predict(matrix) == -1).sum() <= 4
    assert found.decision_scores_.argmax() == odd
    np.testing.assert_allclose(found.score_samples(matrix), -found.decision_scores_)


def test_the_decision_may_stand_in_any_column():
    X, y = data()
    last = ConditionalDetector(baselines.Logistic()).fit(np.column_stack((X, y)))
    first = ConditionalDetector(baselines.Logistic(), decision_column=0).fit(np.column_stack((y > 0, X)))
    np.testing.assert_allclose(last.decision_scores_, first.decision_scores_)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"contamination": 0.0}, "above 0 and at most 0.5"),
        ({"contamination": 0.6}, "above 0 and at most 0.5"),
        ({"decision_column": 4}, "none with number 4"),
        ({"decision_column": -5}, "none with number -5"),
    ],
)
def test_settings_that_break_a_rule_are_refused(change, words):
    X, y = data()
    with pytest.raises(InvalidInputError, match=words):
        ConditionalDetector(**change).fit(np.column_stack((X, y)))


def test_one_decision_alone_says_nothing():
    with pytest.raises(InvalidInputError, match="one class only"):
        ConditionalDetector().fit(np.column_stack((data()[0], np.ones(120))))


def test_a_coin_scores_one_half():
    class Coin:
        def score_samples(self, X, y):
            return np.zeros(len(X))

    assert flip_agreement(Coin(), *data()) == 0.5
