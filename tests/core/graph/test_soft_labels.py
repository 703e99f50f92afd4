"""Soft labels of a whole graph against dense textbook formulas, and what is no graph or label."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from core.errors import InvalidGraphError, InvalidInputError
from core.softhad import solve_soft_labels
from tests.support.textbook import random_graph, textbook

graphs = st.tuples(st.integers(2, 30), st.integers(0, 100_000), st.floats(0.05, 1.0))
weights = st.floats(0.05, 20)


@given(graphs, weights, weights)
@settings(max_examples=60, deadline=None)
def test_soft_labels_equal_the_dense_textbook_solution(graph, c, g):
    W, y = random_graph(*graph)
    soft_labels = solve_soft_labels(sparse.csr_matrix(W), y, label_weight=c, regularization=g)
    np.testing.assert_allclose(soft_labels, textbook(W, y, c, g), atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_multiplicities_equal_copied_nodes_with_gamma_over_c(seed):
    # At c = 1 the paper's printed c gamma and gamma / c coincide; c = .7 tells them apart.
    c, g = 0.7, 0.3
    W, y = random_graph(12, seed)
    v = np.random.default_rng(seed).integers(1, 5, 12)
    copies = np.repeat(np.arange(12), v)
    copied = W[np.ix_(copies, copies)]  # no edges among copies of one node: W has a zero diagonal
    soft_labels = solve_soft_labels(W, y, label_weight=c, regularization=g, multiplicities=v)
    np.testing.assert_allclose(soft_labels[copies], textbook(copied, y[copies], c, g), atol=1e-10)
    L = np.diag(v * (W @ v)) - v[:, None] * W * v
    as_printed = np.linalg.solve(np.diag(1 / (c * v)) @ L + (1 + c * g) * np.eye(12), y)
    assert np.abs(as_printed - soft_labels).max() > 1e-3


def test_a_node_of_mixed_labels_has_the_mean_soft_label_of_its_members():
    W, _ = random_graph(10, 4)
    v = np.full(10, 3)
    member_labels = np.random.default_rng(4).choice([-1.0, 1.0], size=30)
    copies = np.repeat(np.arange(10), 3)
    members = textbook(W[np.ix_(copies, copies)], member_labels, 0.7, 0.3)
    means = member_labels.reshape(10, 3).mean(axis=1)
    nodes = solve_soft_labels(W, means, label_weight=0.7, regularization=0.3, multiplicities=v)
    np.testing.assert_allclose(nodes, members.reshape(10, 3).mean(axis=1), atol=1e-10)


@given(graphs, weights, st.floats(0, 20))
@settings(max_examples=40, deadline=None)
def test_regularisation_is_redundant_when_all_labels_are_trusted_alike(graph, c, g):
    W, y = random_graph(*graph)
    both = solve_soft_labels(W, y, label_weight=c, regularization=g)
    one = solve_soft_labels(W, y, label_weight=c + g, regularization=0.0)
    np.testing.assert_allclose(both, c / (c + g) * one, atol=1e-9)


def test_regularisation_matters_when_some_labels_are_trusted_more():
    W, y = random_graph(20, 5)
    trust = np.where(np.arange(20) < 5, 10.0, 1.0)
    D = np.diag(W.sum(axis=1))
    for g in (0.1, 2.0):
        expected = np.linalg.solve(D - W + np.diag(trust + g), trust * y)
        soft_labels = solve_soft_labels(W, y, label_weight=trust, regularization=g)
        np.testing.assert_allclose(soft_labels, expected, atol=1e-10)


def test_an_unlabelled_part_of_the_graph_has_soft_label_zero():
    W = np.zeros((4, 4))
    W[0, 1] = W[1, 0] = W[2, 3] = W[3, 2] = 1.0
    soft_labels = solve_soft_labels(W, [1, 1, 1, 1], label_weight=[1.0, 1.0, 0.0, 0.0], regularization=0.0)
    np.testing.assert_allclose(soft_labels, [1, 1, 0, 0], atol=1e-12)


def test_a_large_label_weight_gives_back_the_labels_and_a_first_order_hard_harmonic_step():
    W, y = random_graph(15, 6)
    c = 1e6
    soft_labels = solve_soft_labels(W, y, label_weight=c, regularization=0.0)
    # To first order in 1 / c: l = y - L y / c. Node by node that is weighted k-NN against the own label.
    neighbours = W @ y - W.sum(axis=1) * y
    np.testing.assert_allclose((soft_labels - y) * c, neighbours, atol=1e-3)


def test_isolated_instances_score_the_floor_whatever_their_label():
    W = np.zeros((4, 4))
    W[0, 1] = W[1, 0] = 1.0
    for y in ([1, 1, 1, -1], [1, 1, -1, 1]):
        scores = np.abs(solve_soft_labels(W, y, label_weight=2.0, regularization=0.5) - y)
        np.testing.assert_allclose(scores, 0.5 / 2.5, atol=1e-12)


@pytest.mark.parametrize(
    ("W", "words"),
    [
        (np.ones((2, 3)), "must be square"),
        ([[0.0, 1.0], [0.9, 0.0]], "not symmetric"),
        ([[0.0, -1.0], [-1.0, 0.0]], "negative weight"),
        ([[0.0, np.nan], [np.nan, 0.0]], "NaN or infinity"),
    ],
)
def test_what_is_no_similarity_graph_is_refused_by_name(W, words):
    with pytest.raises(InvalidGraphError, match=words):
        solve_soft_labels(W, [1, -1])


def test_one_ulp_of_asymmetry_is_no_reason_to_refuse():
    W, y = random_graph(10, 7)
    W[0, 1] = np.nextafter(W[1, 0], 2)
    solve_soft_labels(W, y)


@pytest.mark.parametrize(
    ("y", "options", "words"),
    [
        ([1, 2], {}, "must lie in"),
        ([1], {}, "one decision for each instance"),
        ([1, -1], {"label_weight": -1.0}, "label_weight must be"),
        ([1, -1], {"regularization": np.inf}, "regularization must be"),
        ([1, -1], {"multiplicities": [1, 0]}, "multiplicities must be finite and positive"),
        ([1, -1], {"label_weight": [1, 1, 1]}, "label_weight has shape"),
    ],
)
def test_bad_labels_and_weights_are_refused_by_name(y, options, words):
    with pytest.raises(InvalidInputError, match=words):
        solve_soft_labels([[0.0, 1.0], [1.0, 0.0]], y, **options)
