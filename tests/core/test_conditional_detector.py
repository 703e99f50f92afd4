"""Detectors in other tools: clone, pickle, pipelines, grid search, and all of scikit-learn's own checks."""

import importlib
import pickle
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from core import baselines
from core.conditional_detector import ConditionalDetector, flip_agreement, score_decisions
from core.errors import InvalidInputError
from core.scoring import readout, variants
from core.scoring.scorers import SCORERS
from core.scoring.variants import CalibratedSoftHAD, PairedSoftHAD
from core.softhad import SoftHAD

ROOT = Path(__file__).resolve().parents[2]
DETECTORS = [
    thing
    for module in (baselines, readout, variants)
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


def documented() -> dict[str, str]:
    """Return the estimator of each scorer that the researcher's guide names, as module and name."""
    section = (ROOT / "docs" / "researchers.md").read_text(encoding="utf-8").partition("| scorer | estimator |")[2]
    rows = re.findall(r"^\| `([\w-]+)` \| (.*) \|$", section.partition("\n\n")[0], re.MULTILINE)
    named = {scorer: re.match(r"`(core\.[\w.]+)`", text) for scorer, text in rows}
    return {scorer: found[1] for scorer, found in named.items() if found}


def documented_detector(scorer):
    module, _, name = documented()[scorer].rpartition(".")
    kind = getattr(importlib.import_module(module), name)
    if scorer == "softhad-paper":
        return kind.paper(n_neighbors=5)
    return kind(n_neighbors=5) if scorer == "softhad" else kind()


def test_the_guide_names_an_estimator_for_every_scorer():
    without_own = {"shared-looking-back"}  # "the same" as the row above it
    assert documented().keys() | without_own == SCORERS.keys()


@pytest.mark.parametrize(
    "detector",
    [None, SoftHAD(n_neighbors=5, n_nodes=20, random_state=0), *sorted(documented())],
    ids=str,
)
def test_scikit_learn_s_checks_of_outlier_detectors_all_pass(detector):
    if isinstance(detector, str):
        detector = documented_detector(detector)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(ConditionalDetector(detector), on_skip=None, on_fail=None)
    assert len(results) > 40
    failed = {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert failed == {}
    assert {r["check_name"] for r in results if r["status"] == "skipped"} <= {"check_array_api_input"}


TAKE_PATIENTS = [SoftHAD(n_neighbors=10), CalibratedSoftHAD(10), PairedSoftHAD()]


@pytest.mark.parametrize("detector", TAKE_PATIENTS, ids=lambda one: type(one).__name__)
def test_patients_reach_a_detector_on_every_road(detector):
    X, y = data(90)
    patients = np.arange(90) // 3
    X = X[patients * 3]  # a patient's rows are alike: without patients each is its own nearest neighbour
    expected = clone(detector).fit(X, y, groups=patients).score_samples(X, y)
    assert not np.allclose(expected, clone(detector).fit(X, y).score_samples(X, y))
    matrix = np.column_stack((X, y))
    given = ConditionalDetector(detector).fit(matrix, groups=patients)
    np.testing.assert_allclose(given.decision_scores_, expected)
    with sklearn.config_context(enable_metadata_routing=True):
        asking = clone(detector).set_fit_request(groups=True)
        piped = make_pipeline(FunctionTransformer(), asking).fit(X, y, groups=patients)
        np.testing.assert_allclose(score_decisions(piped, X, y), expected, rtol=1e-6)
        within = ConditionalDetector(make_pipeline(FunctionTransformer(), asking))
        np.testing.assert_allclose(within.fit(matrix, groups=patients).decision_scores_, expected, rtol=1e-6)
        folds = GroupKFold(2)
        search = GridSearchCV(asking, {}, scoring=flip_agreement, cv=folds).fit(X, y, groups=patients)
        np.testing.assert_allclose(search.best_estimator_.score_samples(X, y), expected)
    by_hand = [
        flip_agreement(clone(detector).fit(X[past], y[past], groups=patients[past]), X[rest], y[rest])
        for past, rest in folds.split(X, y, patients)
    ]
    assert search.best_score_ == pytest.approx(np.mean(by_hand))


def test_a_detector_without_patients_refuses_them_by_name():
    X, y = data()
    with pytest.raises(InvalidInputError, match="Logistic takes no groups"):
        ConditionalDetector(baselines.Logistic()).fit(np.column_stack((X, y)), groups=np.arange(len(y)))


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
