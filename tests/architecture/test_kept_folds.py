"""The quality measurement keeps each method's figures apart: what another method costs is not paid again."""

from types import SimpleNamespace

import numpy as np
from scipy import sparse

from benchmarks import quality


def test_a_kept_fold_is_measured_only_for_the_methods_that_are_missing(tmp_path, monkeypatch):
    asked = []

    def measure(records, kind, options, methods, seed, fold):
        asked.append(methods)
        return {method: {method: {"td": len(asked)}} for method in methods}, 1.0

    monkeypatch.setattr(quality, "measure_fold", measure)
    records = SimpleNamespace(features=sparse.csr_array(np.eye(2)), decisions=np.eye(2, dtype=bool))
    options = SimpleNamespace(keep=tmp_path, folds=5, graphs=3, nodes=200, scorers=("shared",), boosting=False)
    quality.kept_fold(records, "matched", options, 0, 0)
    options.scorers, options.boosting = ("softhad", "shared"), True
    found, _ = quality.kept_fold(records, "matched", options, 0, 0)
    assert asked == [["base", "shared"], ["softhad", quality.BOOSTING]]
    assert {method: rows[method]["td"] for method, rows in found.items()} == {
        "base": 1,
        "softhad": 2,
        "shared": 1,
        quality.BOOSTING: 2,
    }
    assert quality.kept_fold(records, "matched", options, 0, 0)[1] == 0
    quality.kept_fold(records, "matched", options, 0, 1)
    assert asked[2:] == [["base", "softhad", "shared", quality.BOOSTING]]
