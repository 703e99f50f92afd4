"""Pieces of an import that are laid aside on disk come back as they were."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alertreview.records.snapshot_writer import DiskSpill
from core.errors import SourceError
from core.events.parts import MemorySpill


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
def test_a_spill_on_disk_gives_back_what_one_in_memory_does(tmp_path_factory, puts):
    spills = [MemorySpill(), DiskSpill(tmp_path_factory.mktemp("spill"), "rows")]
    for spill in spills:
        for part, numbers in puts:
            spill.put(part, rows(numbers))
    for part in range(4):
        kept, stored = (spill.read(part) for spill in spills)
        pd.testing.assert_frame_equal(kept, stored)
        if len(kept):
            pd.testing.assert_frame_equal(kept[["value"]], spills[1].read(part, ["value"]))


def test_what_was_dropped_is_gone_and_can_be_put_anew(tmp_path):
    spill = DiskSpill(tmp_path, "rows")
    spill.put(0, rows([1]))
    spill.drop(0)
    assert len(spill.read(0)) == 0
    assert list(tmp_path.iterdir()) == []
    spill.put(0, rows([2]))
    assert spill.read(0)["value"].tolist() == [2 / 3]


def test_a_folder_that_is_gone_is_refused(tmp_path):
    with pytest.raises(SourceError, match="nothing was kept"):
        DiskSpill(tmp_path / "gone", "rows").put(0, rows([1]))
