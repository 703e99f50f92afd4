"""Which cases enter an AUC."""

import numpy as np
import pytest

from core.errors import InvalidInputError
from core.statistics.estimate import usable_cases


def test_every_case_is_left_out_for_one_reason_only():
    cases = usable_cases(
        [1, np.nan, 0, 0], [[1.0, np.nan, np.nan, 2.0]], weight=[1.0, 1.0, 1.0, -1.0], patient=["b", "a", "a", "b"]
    )
    assert cases.n == 1
    assert cases.left_out == {"no label": 1, "no score": 1, "no inclusion probability": 1}


def test_booleans_are_labels_too():
    assert usable_cases([True, False], [[1, 2]]).y.tolist() == [True, False]


def test_patients_become_codes_without_gaps():
    assert usable_cases([1, 0, 1], [[1, 2, 3]], patient=["z", "a", "z"]).patient.tolist() == [1, 0, 1]


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"patient": ["a"]}, "'patient' has shape"), ({"weight": [1.0]}, "'weight' has 1 values")],
)
def test_wrong_lengths_are_named(changes, message):
    with pytest.raises(InvalidInputError, match=message):
        usable_cases([1, 0], [[1, 2]], **changes)
