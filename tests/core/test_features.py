"""Wilcoxon scores against comparing every pair, and standardisation that looks at the past alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from core.errors import InvalidInputError
from core.features import SparseStandardizer, positive_decisions, wilcoxon_auc, wilcoxon_table


def plain_auc(x, y):
    positive, negative = x[y], x[~y]
    if len(positive) == 0 or len(negative) == 0:
        return np.nan
    won = (positive[:, None] > negative).sum() + 0.5 * (positive[:, None] == negative).sum()
    return won / (len(positive) * len(negative))


@given(st.integers(2, 30), st.integers(0, 100_000))
@settings(max_examples=80, deadline=None)
def test_auc_equals_comparing_every_pair_with_many_ties_and_zeros(n, seed):
    random = np.random.default_rng(seed)
    X = random.integers(-2, 3, size=(n, 4)) * (random.random((n, 4)) < 0.6)
    Y = random.random((n, 3)) < 0.4
    expected = np.array([[plain_auc(X[:, j], Y[:, t]) for t in range(3)] for j in range(4)])
    np.testing.assert_allclose(wilcoxon_auc(X, Y), expected, atol=1e-14)
    np.testing.assert_allclose(wilcoxon_auc(sparse.csr_matrix(X), sparse.csc_matrix(Y)), expected, atol=1e-14)


def test_a_stored_zero_counts_like_one_that_is_not_stored():
    stored = sparse.csc_matrix((np.array([0.0, 1.0, 0.0]), ([0, 1, 3], [0, 0, 0])), shape=(4, 1))
    Y = np.array([[1], [1], [0], [0]])
    np.testing.assert_array_equal(wilcoxon_auc(stored, Y), wilcoxon_auc(stored.toarray(), Y))


def test_flipping_all_decisions_mirrors_the_auc():
    random = np.random.default_rng(3)
    X, Y = random.normal(size=(50, 5)), random.random((50, 4)) < 0.3
    np.testing.assert_allclose(wilcoxon_auc(X, ~Y), 1 - wilcoxon_auc(X, Y), atol=1e-14)


def test_many_features_are_cut_in_parts_for_threads_without_a_trace(monkeypatch):
    random = np.random.default_rng(4)
    X, Y = random.normal(size=(40, 11)).round(1), sparse.csr_array(random.random((40, 20)) < 0.5)
    whole = wilcoxon_table(X, Y)
    monkeypatch.setattr("core.features._FEATURES_AT_ONCE", 3)
    cut = wilcoxon_table(X, Y, n_jobs=2)
    np.testing.assert_array_equal(cut.auc, whole.auc)
    np.testing.assert_array_equal(cut.z, whole.z)


def test_z_equals_the_tie_corrected_mann_whitney_test():
    random = np.random.default_rng(5)
    X = random.integers(0, 4, size=(60, 3)).astype(float)
    y = random.random(60) < 0.4
    z = wilcoxon_table(X, positive_decisions(y)).z[:, 0]
    for j in range(3):
        test = stats.mannwhitneyu(X[y, j], X[~y, j], use_continuity=False, method="asymptotic")
        assert 2 * stats.norm.sf(abs(z[j])) == pytest.approx(test.pvalue)


def test_a_constant_feature_and_a_task_with_one_decision_say_nothing():
    table = wilcoxon_table(np.ones((6, 1)), positive_decisions(np.array([[1, 1]] * 3 + [[0, 1]] * 3)))
    np.testing.assert_array_equal(table.auc, [[0.5, 0.5]])
    np.testing.assert_array_equal(table.z, [[0.0, 0.0]])
    assert np.isnan(wilcoxon_auc(np.ones((6, 1)), np.ones((6, 1))))


@pytest.mark.parametrize(
    ("X", "Y", "words"),
    [
        ([[1.0], [2.0]], [[1], [0], [1]], "X has 2 rows and Y 3"),
        ([[1.0], [2.0], [3.0]], [[1], [0]], "X has 3 rows and Y 2"),
        ([[np.nan], [2.0]], [[1], [0]], "Feature 0"),
    ],
)
def test_bad_input_is_refused_by_name(X, Y, words):
    with pytest.raises(InvalidInputError, match=words):
        wilcoxon_auc(X, Y)


@pytest.fixture
def mixed():
    """Two values (one constant), a flag and a count; rows without an entry are not measured, or 0."""
    rows, cols = [0, 1, 2, 0, 1, 3, 0, 2, 3], [0, 0, 0, 1, 1, 2, 3, 3, 3]
    data = np.array([10.0, 12.0, 14.0, 5.0, 5.0, 1.0, 2.0, 4.0, 6.0])
    return sparse.csr_matrix((data, (rows, cols)), shape=(4, 4)), np.array([False, False, True, True])


def test_values_are_standardised_by_what_was_measured_and_the_unmeasured_stays_at_the_mean(mixed):
    X, is_flag = mixed
    dense = SparseStandardizer().fit(X, is_flag).transform(X).toarray()
    logs = np.log1p([10.0, 12.0, 14.0])
    np.testing.assert_allclose(dense[:, 0], [*((logs - logs.mean()) / logs.std()), 0], rtol=1e-5)


def test_flags_and_counts_are_scaled_by_their_spread_with_zeros_and_not_centred(mixed):
    X, is_flag = mixed
    dense = SparseStandardizer(clip=9.0).fit(X, is_flag).transform(X).toarray()
    for column, raw in ((2, [0, 0, 0, 1]), (3, [2, 0, 4, 6])):
        logs = np.log1p(raw)
        np.testing.assert_allclose(dense[:, column], logs / logs.std(), rtol=1e-5)


def test_elapsed_hours_become_recency_and_never_is_recency_zero():
    hours = sparse.csr_matrix(np.array([[0.5], [24.0], [240.0], [0.0]]))
    dense = SparseStandardizer(clip=99.0).fit(hours, [False], [True]).transform(hours).toarray()[:, 0]
    recency = np.array([1 / (1 + 0.5 / 24), 0.5, 1 / 11, 0.0])
    np.testing.assert_allclose(dense, recency / recency.std(), rtol=1e-5)


def test_compression_keeps_signs_and_order():
    values = sparse.csr_matrix(np.array([[-1000.0], [-1.0], [2.0], [5000.0]]))
    dense = SparseStandardizer().fit(values, [False]).transform(values).toarray()[:, 0]
    assert (np.diff(dense) > 0).all()


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1.0, 1e6, 1e30])
def test_a_constant_value_vanishes_and_one_that_differs_little_does_not_whatever_its_size(size):
    values = size * np.array([1.0, 1.001] * 500, dtype=np.float32)
    X = sparse.csr_matrix(np.column_stack((np.full(1000, values[0]), values)))
    constant, other = SparseStandardizer().fit(X, [False, False]).transform(X).toarray().T
    assert not constant.any()
    np.testing.assert_allclose(other, [-1.0, 1.0] * 500, rtol=0.05)


def test_extremes_are_clipped(mixed):
    X, is_flag = mixed
    standardizer = SparseStandardizer(clip=2.5).fit(X, is_flag)
    extreme = sparse.csr_matrix(np.array([[999_999.0, 5.0, 1.0, 1000.0]]))
    assert np.abs(standardizer.transform(extreme).toarray()).max() == 2.5


def test_recent_instances_do_not_move_what_was_learned(mixed):
    X, is_flag = mixed
    alone = SparseStandardizer().fit(X, is_flag)
    before = alone.transform(X).toarray()
    alone.transform(X * 1000)
    np.testing.assert_array_equal(alone.transform(X).toarray(), before)


def test_standardising_needs_finite_values_and_a_flag_for_each_feature(mixed):
    X, is_flag = mixed
    with pytest.raises(InvalidInputError, match="each of 4 features"):
        SparseStandardizer().fit(X, is_flag[:2])
    X = X.copy()
    X.data[0] = np.inf
    with pytest.raises(InvalidInputError, match="NaN or infinity"):
        SparseStandardizer().fit(X, is_flag)
    with pytest.raises(InvalidInputError, match="NaN or infinity"):
        SparseStandardizer().fit(mixed[0], is_flag).transform(X)
