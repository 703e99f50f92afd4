"""Rows that differ are counted by their hashes, in memory and in the spill alike."""

import numpy as np
import pandas as pd
import pytest

from core.events import cleaning
from core.events.cleaning import RowHashes, first_of_each
from core.events.parts import MemorySpill


def chunk(codes):
    return pd.DataFrame({"subject": np.arange(len(codes)) // 4, "code": pd.Categorical(codes), "value": 1.0})


@pytest.mark.parametrize("kept", [3, 10**6])
def test_different_rows_are_counted_the_same_in_memory_and_in_the_spill(monkeypatch, kept):
    monkeypatch.setattr(cleaning, "_KEPT", kept)
    hashes = RowHashes(MemorySpill())
    seen = set()
    for codes in (list("abcabcab"), list("aaaa"), list("xyzxyzzz")):
        rows = chunk(codes)
        hashes.add(rows, rows["code"])
        seen |= set(zip(rows["subject"], codes, strict=True))
    assert hashes.n_different() == len(seen)


def test_nothing_hashed_is_nothing_different():
    assert RowHashes(MemorySpill()).n_different() == 0


def test_the_first_of_equal_hashes_is_marked():
    assert first_of_each(np.array([5, 3, 5, 3, 9], dtype=np.uint64)).tolist() == [True, True, False, False, True]
    assert first_of_each(np.zeros(0, dtype=np.uint64)).tolist() == []
