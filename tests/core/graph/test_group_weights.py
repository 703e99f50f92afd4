"""Learned weights of groups of features: what is maximised against a plain loop, and what the search keeps."""

import numpy as np
import pytest
from scipy import sparse

from core.graph import group_weights
from core.graph.group_weights import explained_share, learn_group_weights

N, N_PATIENTS, RIDGE = 90, 18, 0.05
START = {"a": 0.9, "b": 0.1, "no features": 0.5}


@pytest.fixture(scope="module")
def records():
    """Decisions follow two features of group b, and none of the eight of group a."""
    random = np.random.default_rng(0)
    X = random.normal(size=(N, 10)).astype(np.float32)
    positive = X[:, 8:] + 0.3 * random.normal(size=(N, 2)) > 0
    return sparse.csr_array(X), np.array(["a"] * 8 + ["b"] * 2), positive, np.sort(random.integers(0, N_PATIENTS, N))


def learn(records, start=START, order=None, seed=0):
    X, groups, positive, patients = records
    order = np.arange(N) if order is None else order
    random = np.random.default_rng(seed)
    return learn_group_weights(X[order], groups, positive[order], patients[order], start, ridge=RIDGE, random=random)


def test_the_share_explained_is_that_of_fits_without_each_patient():
    random = np.random.default_rng(1)
    points = {group: random.normal(size=(30, 4)) for group in "ab"}
    products = {group: one @ one.T for group, one in points.items()}
    targets, patients = random.choice([-1.0, 1.0], (30, 3)), np.arange(30) % 7
    weights = {"a": 0.7, "b": 0.2}
    together = np.hstack([np.sqrt(weights[group]) * one for group, one in points.items()])
    together /= np.linalg.norm(together, axis=1, keepdims=True)
    X = np.column_stack((together, np.full(30, 100.0)))
    left = np.empty_like(targets)
    for patient in range(7):
        own = patients == patient
        system = X[~own].T @ X[~own] + RIDGE * 30 * np.eye(X.shape[1])
        left[own] = targets[own] - X[own] @ np.linalg.solve(system, X[~own].T @ targets[~own])
    expected = np.mean(1 - (left**2).mean(axis=0) / targets.var(axis=0))
    assert explained_share(weights, products, targets, patients, RIDGE) == pytest.approx(expected, abs=1e-6)


def test_a_group_that_decisions_follow_gains_weight_and_the_sum_stays(records):
    found = learn(records)
    assert found["b"] > 3 * found["a"]
    assert sum(found.values()) == pytest.approx(sum(START.values()))
    assert found["no features"] / found["a"] > START["no features"] / START["a"], "only a was made smaller"


def test_the_order_of_rows_does_not_matter(records):
    again = learn(records, order=np.random.default_rng(2).permutation(N))
    assert again == pytest.approx(learn(records))


def test_what_is_learned_is_kept_when_it_is_learned_again(records):
    found = learn(records)
    assert learn(records, start=found)["b"] >= found["b"]


@pytest.mark.parametrize("changed", ["one group", "one patient", "no decisions"])
def test_where_nothing_can_be_learned_the_weights_stay(records, changed):
    X, groups, positive, patients = records
    if changed == "one group":
        groups = np.full(10, "a")
    elif changed == "one patient":
        patients = np.zeros(N, dtype=int)
    else:
        positive = np.zeros_like(positive)
    assert learn((X, groups, positive, patients)) == START


def test_whole_patients_are_drawn(records, monkeypatch):
    patients = records[3]
    monkeypatch.setattr(group_weights, "N_ROWS", 30)
    rows = group_weights._rows_of_patients(patients, np.random.default_rng(0))
    assert len(rows) <= 30
    assert np.isin(patients, patients[rows]).sum() == len(rows)
