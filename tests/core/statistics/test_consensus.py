"""Labels and states from votes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_array_equal

from core.errors import InvalidInputError
from core.statistics.consensus import (
    UNUSUAL_OR_RELEVANT,
    adjudicated_label,
    case_state,
    majority_label,
    positive_votes,
    votes_of,
    without_open,
)
from core.vocabulary import Answer, CaseState

FEW = settings(max_examples=40, deadline=None)
answers = hnp.arrays(
    float, st.tuples(st.integers(1, 8), st.integers(1, 5)), elements=st.sampled_from([0.0, 1.0, 2.0, 3.0, np.nan])
)
NAN = np.nan


@pytest.mark.parametrize(
    ("votes", "relevant", "unusual"),
    [
        ([3, 3, 1], 1, 1),
        ([3, 3, 3], 1, 1),
        ([1, 1, 3], 0, 0),
        ([1, 2, 3], 0, 1),
        ([2, 2, 1], 0, 1),
        ([3, 1, 0], NAN, NAN),
        ([3, 2, 0], NAN, 1),
        ([3, 0, 0], NAN, NAN),
        ([0, 0, 0], NAN, NAN),
        ([3, 3, 1, 1], NAN, NAN),
        ([3, NAN, NAN], NAN, NAN),
        ([3, 3, NAN], 1, 1),
    ],
)
def test_a_side_wins_with_two_votes_and_more_than_the_other(votes, relevant, unusual):
    assert_array_equal(majority_label([votes]).label, [relevant])
    assert_array_equal(majority_label([votes], UNUSUAL_OR_RELEVANT).label, [unusual])


def test_one_against_one_with_cannot_judge_is_undetermined_on_every_run():
    assert {majority_label([[1, 3, 0]]).why_not for _ in range(20)} == {("votes do not decide (1 against 1)",)}


@FEW
@given(answers, st.randoms(use_true_random=False))
def test_the_order_of_readers_does_not_matter(matrix, random):
    columns = list(range(matrix.shape[1]))
    random.shuffle(columns)
    first, second = majority_label(matrix), majority_label(matrix[:, columns])
    assert_array_equal(first.label, second.label)
    assert first.why_not == second.why_not


@FEW
@given(answers)
def test_every_case_has_a_label_or_a_reason_and_never_both(matrix):
    found = majority_label(matrix)
    assert found.n + sum(found.left_out.values()) == len(matrix)
    assert all(np.isnan(label) == bool(why) for label, why in zip(found.label, found.why_not, strict=True))


@FEW
@given(answers)
def test_a_case_relevant_by_majority_is_unusual_by_majority(matrix):
    narrow, wide = majority_label(matrix).label, majority_label(matrix, UNUSUAL_OR_RELEVANT).label
    assert (wide[narrow == 1] == 1).all()


def test_cannot_judge_is_no_vote():
    assert_array_equal(votes_of([[0, 1]]), [[NAN, 1]])
    assert_array_equal(positive_votes([[0, 1, 3]]), [[NAN, 0, 1]])


@pytest.mark.parametrize(
    ("row", "adjudicated", "state"),
    [
        ([3, 3, None], False, CaseState.OPEN),
        ([None, None, None], False, CaseState.OPEN),
        ([3, 3, 1], False, CaseState.MAJORITY),
        ([1, 2, 3], False, CaseState.MAJORITY),
        ([3, 1, 0], False, CaseState.UNDETERMINED),
        ([0, 0, 0], False, CaseState.UNDETERMINED),
        ([3, 0, 0], False, CaseState.UNDETERMINED),
        ([3, 1, None], True, CaseState.ADJUDICATED),
    ],
)
def test_states_of_a_case_with_three_slots(row, adjudicated, state):
    assert case_state(row, 3, adjudicated=adjudicated) is state


def test_two_against_two_is_disputed():
    assert case_state([3, 3, 1, 2], 4) is CaseState.DISPUTED


def test_open_cases_lose_their_label_until_the_last_judgment():
    found = without_open(majority_label([[3, 3, NAN], [3, 3, 3]]), [True, False])
    assert_array_equal(found.label, [NAN, 1])
    assert found.left_out == {"judgments outstanding": 1}


def test_the_adjudicator_replaces_the_majority_and_may_be_unable_to_judge():
    majority = majority_label([[3, 3, 1], [3, 1, 0], [1, 1, 1]])
    found = adjudicated_label(majority, [Answer.USUAL, Answer.RELEVANT, Answer.CANNOT_JUDGE])
    assert_array_equal(found.label, [0, 1, NAN])
    assert found.left_out == {"the adjudicator could not judge": 1}
    assert_array_equal(adjudicated_label(majority, [NAN, NAN, NAN]).label, majority.label)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: majority_label([[len(Answer)]]), "Answer . does not exist"),
        (lambda: majority_label([1, 2]), "Answers have 1 dimensions"),
        (lambda: majority_label([[1]], ()), r"Positive answers \[\]"),
        (lambda: majority_label([[1]], (0, 3)), "leave no question"),
        (lambda: majority_label([[1]], (1, 2, 3)), "leave no question"),
        (lambda: adjudicated_label(majority_label([[1, 1]]), [1, 2]), "2 adjudications for 1 cases"),
    ],
)
def test_malformed_answers_are_refused(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()
