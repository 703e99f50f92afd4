"""Counts of other decisions against counting by hand."""

import numpy as np
import pytest
from scipy import sparse

from core.errors import InvalidInputError
from core.scoring.prepared import DayContext

KINDS = ["LAB_ORDER", "LAB_ORDER", "LAB_ORDER", "MEDICATION", "MEDICATION"]
GROUPS = ["panel", "panel", "", "", ""]


def test_own_order_group_is_not_counted():
    decisions = np.random.default_rng(0).random((20, 5)) < 0.5
    day = DayContext.of(KINDS, GROUPS)
    columns = sparse.csc_array(decisions)
    np.testing.assert_array_equal(
        day.other_counts(columns, 0), np.column_stack((decisions[:, 2], decisions[:, 3:].sum(axis=1)))
    )
    np.testing.assert_array_equal(
        day.other_counts(columns, 3), np.column_stack((decisions[:, :3].sum(axis=1), decisions[:, 4]))
    )


def test_counts_are_standardised_by_the_past_alone():
    decisions = np.random.default_rng(1).random((30, 5)) < 0.5
    day = DayContext.of(KINDS, GROUPS)
    features = day.features(sparse.csc_array(decisions), 2, 20)
    logs = np.log1p(np.column_stack((decisions[:, :2].sum(axis=1), decisions[:, 3:].sum(axis=1))))
    np.testing.assert_allclose(features, 5 * (logs - logs[:20].mean(axis=0)) / logs[:20].std(axis=0), rtol=1e-5)


def test_a_count_that_never_varies_says_nothing():
    day = DayContext.of(["LAB_ORDER"], [""])
    assert not day.features(sparse.csc_array(np.ones((4, 1), dtype=bool)), 0, 3).any()


@pytest.mark.parametrize(
    ("kinds", "groups", "words"),
    [(["LAB_ORDER"], [], "1 kinds and 0"), (["LAB"], [""], "Unknown kinds of tasks \\['LAB'\\]")],
)
def test_bad_input_is_refused_by_name(kinds, groups, words):
    with pytest.raises(InvalidInputError, match=words):
        DayContext.of(kinds, groups)
