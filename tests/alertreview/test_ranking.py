"""Ranks: two lists, no gaps, highest first, and never by chance."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from alertreview.ranking import rank_alerts
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
    # Two instances are only learned from: the scores run over the others.
    decisions = np.zeros((N_ROWS + 2, N_TASKS), dtype=bool)
    recent = np.array([1, 2, 3, 5, 6, 7])
    decisions[recent] = taken
    ranked = rank_alerts(
        {column: scaled[:, column] for column in range(N_TASKS)},
        sparse.csc_matrix(decisions),
        recent,
        n_kept=n_kept,
    )
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


def test_without_a_scored_task_both_lists_are_empty() -> None:
    ranked = rank_alerts({}, sparse.csc_matrix(np.zeros((3, 2), dtype=bool)), np.arange(3), n_kept=5)
    assert list(ranked.places()) == []
    assert ranked.floors == {}
