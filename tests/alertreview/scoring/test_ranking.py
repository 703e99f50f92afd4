"""Ranks: two lists, no gaps, highest first, and never by chance."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from alertreview.scoring.ranking import VALUES, Place, TopDecisions, likelier_than_in_general
from core.vocabulary import Decision

N_ROWS, N_TASKS = 6, 3


def plain_ranking(scaled: np.ndarray, taken: np.ndarray, decision: Decision) -> list[tuple[int, int]]:
    """All decisions of one kind, sorted by Python: (task column, position)."""
    places = [
        (-scaled[position, column], column, position)
        for column in range(scaled.shape[1])
        for position in range(scaled.shape[0])
        if taken[position, column] == (decision is Decision.COMMISSION) and np.isfinite(scaled[position, column])
    ]
    return [(column, position) for _, column, position in sorted(places)]


tables = st.lists(
    st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0, float("nan")]), st.booleans()),
    min_size=N_ROWS * N_TASKS,
    max_size=N_ROWS * N_TASKS,
)


@given(tables, st.integers(1, 20))
def test_each_list_holds_the_highest_scores_in_order(drawn: list[tuple[float, bool]], n_kept: int) -> None:
    scaled = np.array([score for score, _ in drawn], dtype=np.float32).reshape(N_ROWS, N_TASKS)
    taken = np.array([done for _, done in drawn]).reshape(N_ROWS, N_TASKS)
    ranked = TopDecisions(n_kept)
    for column in range(N_TASKS):
        ranked.add(column, taken[:, column], dict.fromkeys(VALUES, scaled[:, column]))
    for decision in Decision:
        expected = plain_ranking(scaled, taken, decision)[:n_kept]
        found = [(place.column, place.position) for one, place in ranked.places() if one is decision]
        assert found == expected
        assert [place.rank for one, place in ranked.places() if one is decision] == list(range(1, len(found) + 1))
        if found:
            column, position = found[-1]
            assert ranked.floors[decision] == scaled[position, column]
        else:
            assert decision not in ranked.floors


def test_what_was_said_of_a_decision_goes_with_it() -> None:
    vectors = {name: np.array([place, 10 + place], dtype=np.float32) for place, name in enumerate(VALUES)}
    ranked = TopDecisions(5)
    ranked.add(7, np.array([True, False]), vectors)
    places = dict(ranked.places())
    assert places[Decision.COMMISSION] == Place(1, 7, 0, 0.0, 1.0, 2.0, 3.0)
    assert places[Decision.OMISSION] == Place(1, 7, 1, 10.0, 11.0, 12.0, 13.0)


def test_without_a_scored_task_both_lists_are_empty() -> None:
    ranked = TopDecisions(5)
    assert list(ranked.places()) == []
    assert ranked.floors == {}


def test_decisions_that_the_state_makes_likelier_have_no_place() -> None:
    soft_label = np.array([-0.9, -0.7, -0.9, -0.7], dtype=np.float32)
    taken = np.array([True, True, False, False])
    likelier = likelier_than_in_general(soft_label, taken, 0.1)
    assert likelier.tolist() == [False, True, True, False]
    ranked = TopDecisions(10)
    ranked.add(0, taken, dict.fromkeys(VALUES, np.float32([0.1, 0.9, 0.8, 0.2])), likelier)
    assert [(decision, place.position) for decision, place in ranked.places()] == [
        (Decision.OMISSION, 3),
        (Decision.COMMISSION, 0),
    ]


@given(st.floats(0.01, 0.99), st.floats(0.01, 0.99), st.booleans())
def test_a_decision_is_likelier_where_its_own_chance_is_above_its_share(
    chance: float, past_share: float, done: bool
) -> None:
    found = likelier_than_in_general(np.array([2 * chance - 1]), np.array([done]), past_share)
    own, in_general = (chance, past_share) if done else (1 - chance, 1 - past_share)
    if abs(own - in_general) > 1e-9:
        assert found[0] == (own > in_general)
