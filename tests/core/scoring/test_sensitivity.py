"""Shares of lists in common, and curves that survive being stored."""

import json

import numpy as np
import pytest

from core.errors import InvalidInputError
from core.scoring.sensitivity import Sensitivity, SensitivityPoint, Varied, share_in_common
from core.statistics.estimate import Estimate, not_computable
from core.studies.report import from_plain, to_plain


def test_the_share_is_that_of_a_count_by_hand_whatever_the_order() -> None:
    rng = np.random.default_rng(4)
    for _ in range(20):
        first = [tuple(pair) for pair in rng.integers(0, 6, (12, 2)).tolist()]
        second = [tuple(pair) for pair in rng.integers(0, 6, (9, 2)).tolist()]
        by_hand = sum(1 for one in first if any(one == other for other in second)) / 12
        assert share_in_common(first, second) == pytest.approx(by_hand)
        assert share_in_common(first[::-1], second[::-1]) == pytest.approx(by_hand)
        assert share_in_common(first, first) == 1.0
    assert share_in_common([1, 2], []) == 0.0


def test_nothing_can_be_compared_with_an_empty_list() -> None:
    with pytest.raises(InvalidInputError, match="empty"):
        share_in_common([], [1])


def test_curves_are_the_same_after_storing() -> None:
    points = (
        SensitivityPoint(Varied.GRAPH_SIZE, 50.0, "softhad", 0.5, Estimate(0.7, 0.6, 0.8, n=40)),
        SensitivityPoint(Varied.REGULARIZATION, 0.0, "softhad", 1.0, not_computable("no study")),
    )
    curves = Sensitivity(points, 50, 8, "Panel", 200.0, 0.0)
    assert from_plain(Sensitivity, json.loads(json.dumps(to_plain(curves)))) == curves
