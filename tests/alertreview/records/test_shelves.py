"""Pieces of an import that are laid aside on disk come back as they were."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alertreview.records.snapshot_writer import DiskShelf
from core.errors import SourceError
from core.events.parts import MemoryShelf


def rows(numbers):
    return pd.DataFrame(
        {
            "id": np.array(numbers, dtype=np.int64) - 2**62,
            "time": np.array(numbers, dtype="datetime64[us]"),
            "value": np.array(numbers, dtype=np.float64) / 3,
            "mark": np.array(numbers, dtype=np.int64) % 2 == 0,
        }
    )


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(-9, 9), min_size=1, max_size=5)), max_size=8))
def test_a_shelf_on_disk_gives_back_what_one_in_memory_does(tmp_path_factory, puts):
    shelves = [MemoryShelf(), DiskShelf(tmp_path_factory.mktemp("shelf"), "rows")]
    for shelf in shelves:
        for part, numbers in puts:
            shelf.put(part, rows(numbers))
    for part in range(4):
        kept, stored = (shelf.read(part) for shelf in shelves)
        pd.testing.assert_frame_equal(kept, stored)
        if len(kept):
            pd.testing.assert_frame_equal(kept[["value"]], shelves[1].read(part, ["value"]))


def test_what_was_dropped_is_gone_and_can_be_put_anew(tmp_path):
    shelf = DiskShelf(tmp_path, "rows")
    shelf.put(0, rows([1]))
    shelf.drop(0)
    assert len(shelf.read(0)) == 0
    assert list(tmp_path.iterdir()) == []
    shelf.put(0, rows([2]))
    assert shelf.read(0)["value"].tolist() == [2 / 3]


def test_a_folder_that_is_gone_is_refused(tmp_path):
    with pytest.raises(SourceError, match="nothing was kept"):
        DiskShelf(tmp_path / "gone", "rows").put(0, rows([1]))
