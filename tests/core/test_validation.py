"""What arrays from outside must be."""

import numpy as np
import pytest
from scipy import sparse

from core.errors import InvalidGraphError, InvalidInputError
from core.validation import as_decisions, as_finite_matrix, as_similarity, as_weights


def test_sparse_stays_sparse_with_duplicates_summed_and_dense_stays_dense():
    twice = sparse.coo_matrix(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 3))
    assert as_finite_matrix(twice).toarray().tolist() == [[0, 3, 0], [0, 0, 0]]
    assert as_finite_matrix([[1, 2]]).dtype == np.float64


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.zeros((0, 3)), "X is empty"),
        ([[1j]], "complex"),
        ([[np.nan, np.inf]], "2 value"),
        ([["potassium"]], "not a number"),
    ],
)
def test_matrices_that_break_a_rule_are_refused_by_name(X, words):
    with pytest.raises(InvalidInputError, match=words):
        as_finite_matrix(X)


@pytest.mark.parametrize(
    ("y", "expected"), [([True, False], [1.0, -1.0]), ([1, -1], [1.0, -1.0]), ([0.5, 0], [0.5, 0.0])]
)
def test_decisions_are_booleans_signs_or_mean_labels_of_nodes(y, expected):
    assert as_decisions(y).tolist() == expected


def test_one_weight_stands_for_all():
    assert as_weights(2, 3, name="w").tolist() == [2.0, 2.0, 2.0]


def test_a_weight_of_zero_is_refused_only_where_it_is_said_to_be_positive():
    assert as_weights([0, 1], 2, name="w").tolist() == [0.0, 1.0]
    for values, allow_zero, rule in (([0, 1], False, "positive"), ([-1, 1], True, "not negative")):
        with pytest.raises(InvalidInputError, match=f"w must be finite and {rule}; the smallest is"):
            as_weights(values, 2, name="w", allow_zero=allow_zero)


def test_self_edges_are_dropped_from_a_similarity():
    graph = as_similarity([[1.0, 0.5], [0.5, 1.0]])
    assert graph.toarray().tolist() == [[0.0, 0.5], [0.5, 0.0]]


def test_the_largest_asymmetry_is_named():
    with pytest.raises(InvalidGraphError, match=r"largest difference 0\.25"):
        as_similarity([[0.0, 0.5], [0.25, 0.0]])
