"""Labs that are ordered together form groups by the correlation of their decisions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from core.cohort.tasks import edited_groups, order_groups, phi_coefficients


def groups(columns, names):
    return order_groups(sparse.csc_matrix(np.array(columns, dtype=bool).T), names).tolist()


@settings(deadline=None)
@given(arrays(bool, st.tuples(st.integers(2, 12), st.integers(1, 4))))
def test_phi_is_the_correlation_of_the_decisions(decisions):
    counts = sparse.csc_array(decisions, dtype=np.int32)
    phi = phi_coefficients(counts, 0, decisions.shape[1])
    for a in range(decisions.shape[1]):
        for b in range(decisions.shape[1]):
            x, y = decisions[:, a].astype(float), decisions[:, b].astype(float)
            expected = np.corrcoef(x, y)[0, 1] if x.std() and y.std() else 0.0
            assert phi[a, b] == pytest.approx(expected, abs=1e-9)


def test_labs_drawn_together_form_a_group_named_after_the_commonest():
    sodium, potassium, iron = [1, 1, 1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0, 0], [0, 1, 0, 1, 0, 1, 0, 1]
    assert groups([potassium, sodium, iron], ["Potassium", "Sodium", "Iron"]) == ["Sodium", "Sodium", ""]


def test_a_chain_of_pairs_is_one_group():
    a, b, c = [1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 0, 0], [0, 1, 1, 1, 0, 0]
    assert len(set(groups([a, b, c], ["A", "B", "C"]))) == 1


def test_two_groups_never_share_a_name():
    a, b = [1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 1, 0, 1, 0, 1, 0]
    assert groups([a, a, b, b], ["X", "Y", "X", "Y"]) == ["X", "X", "X (2)", "X (2)"]


def test_no_task_no_group():
    assert order_groups(sparse.csc_matrix((5, 0), dtype=bool), []).tolist() == []


def test_the_mapping_edits_groups():
    found = np.array(["G", "G", ""], dtype=object)
    out = edited_groups(found, ["a", "b", "c"], {"Mine": ["b", "c", "gone"], "": ["a"]})
    assert out.tolist() == ["", "Mine", "Mine"]
    assert found.tolist() == ["G", "G", ""]
