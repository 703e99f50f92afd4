"""Numbers that stand for texts lead back to the same text in every chunk."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from core.events.code_book import Subjects, Words, ranked


@given(st.lists(st.lists(st.sampled_from(["a", "b", "", "ä"]), max_size=5), max_size=4))
def test_numbers_stand_for_the_same_text_in_every_chunk(chunks):
    words = Words()
    for chunk in chunks:
        column = pd.Series(chunk, dtype="str")
        assert [words.texts[i] for i in words.numbers(column)] == chunk


def test_a_missing_text_is_the_empty_one():
    assert Words().numbers(pd.Series(["x", None], dtype="category")).tolist() == [1, 0]


def test_subjects_are_counted_over_chunks_and_stay_exact():
    subjects = Subjects()
    big = 2**60 + 1
    first = subjects.numbers(np.array([big, big + 1, big]))
    second = subjects.numbers(np.array([-5, big + 1]))
    assert (first.tolist(), second.tolist()) == ([0, 1, 0], [2, 1])
    assert subjects.names == [big, big + 1, -5]
    assert subjects.n_rows.tolist() == [2, 2, 1]


@given(st.lists(st.text(max_size=3)))
def test_ranks_lead_back_to_the_texts(texts):
    ordered, rank = ranked(texts)
    assert [ordered[i] for i in rank] == texts
    assert ordered == sorted(set(texts))
