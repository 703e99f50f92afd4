"""Features without their zeros: the same numbers as the dense ones, whatever the road."""

import numpy as np
import pytest
from scipy import sparse

from core.graph import feature_rows
from core.graph.feature_rows import FeatureRows, as_rows


@pytest.fixture(scope="module")
def dense():
    random = np.random.default_rng(0)
    return (random.normal(size=(60, 9)) * (random.random((60, 9)) < 0.3)).astype(np.float32)


@pytest.mark.parametrize("at_once", [7, 2048])
def test_columns_of_a_sparse_matrix_become_rows_times_their_factors(monkeypatch, dense, at_once):
    monkeypatch.setattr(feature_rows, "_ROWS_AT_ONCE", at_once)
    kept, factors = np.array([5, 0, 8]), np.array([2.0, 0.5, 1.0], dtype=np.float32)
    rows = FeatureRows.of_columns(sparse.csc_array(dense), kept, factors)
    np.testing.assert_array_equal(rows.dense(), dense[:, kept] * factors)
    assert len(rows) == 60
    assert all(np.all(np.diff(rows.places[a:b]) > 0) for a, b in zip(rows.starts, rows.starts[1:], strict=False))


def test_dense_features_and_back(dense):
    rows = as_rows(dense)
    np.testing.assert_array_equal(rows.dense(), dense)
    np.testing.assert_array_equal(rows.dense(np.array([3, 3, 50])), dense[[3, 3, 50]])
    assert as_rows(rows) is rows


def test_no_features_are_rows_of_nothing():
    rows = FeatureRows.of_columns(
        sparse.csc_array((4, 3), dtype=np.float32), np.zeros(0, dtype=np.int64), np.zeros(0, np.float32)
    )
    assert rows.dense().shape == (4, 0)
