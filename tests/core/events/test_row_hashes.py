"""Rows that differ are counted by their hashes, in memory and in the spill alike."""

import numpy as np
import pandas as pd
import pytest

from core.events import cleaning
from core.events.cleaning import RowHashes, row_hashes
from core.events.parts import MemorySpill
from core.events.series import first_of_each


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


def test_one_bit_in_any_column_changes_half_of_the_hash():
    names, n = ["subject", "value", "known_at", "stay", "order"], 64
    rows = pd.DataFrame({name: np.zeros(n, dtype=np.int64) for name in [*names, "code"]}).assign(value=1.0)
    code = pd.Series(pd.Categorical(["a"] * n))
    plain = row_hashes(rows, code)
    assert len(set(plain.tolist())) == 1
    for name in names:
        bits = rows[name].to_numpy().view(np.uint64) ^ (np.uint64(1) << np.arange(n, dtype=np.uint64))
        changed = row_hashes(rows.assign(**{name: bits.view(rows[name].dtype)}), code)
        assert len({*changed.tolist(), plain[0]}) == n + 1
        n_flipped = np.bitwise_count(changed ^ plain)
        assert 28 < n_flipped.mean() < 36, name
    assert row_hashes(rows, pd.Series(pd.Categorical(["b"] * n)))[0] != plain[0]
