"""Pieces of an import that are laid aside on disk come back as they were."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alertreview.records.snapshot_writer import DiskSpill, TableFile
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


@settings(max_examples=20)
@given(
    parts=st.lists(st.lists(st.tuples(st.sampled_from(["", "a", "b", None]), st.floats(0, 9) | st.none()), max_size=7)),
    n=st.integers(1, 5),
)
def test_a_table_of_parts_is_read_back_in_groups_of_one_size(tmp_path_factory, parts, n):
    path = tmp_path_factory.mktemp("table") / "table.parquet"
    schema = pa.schema([("patient_id", pa.string()), ("text", pa.string()), ("value", pa.float64())])
    file = TableFile(path, schema, n)
    for i, part in enumerate(parts):
        texts = pd.Series([text for text, _ in part], dtype="str")
        values = pd.Series([value for _, value in part], dtype="float64")
        text = texts.astype("category") if i % 2 else texts
        file.add(
            pd.DataFrame({"patient_id": pd.Series([f"P{i}"] * len(part), dtype="str"), "text": text, "value": values})
        )
    file.close()
    with pq.ParquetFile(path) as written:
        assert written.read().to_pylist() == [
            {"patient_id": f"P{i}", "text": text, "value": value}
            for i, part in enumerate(parts)
            for text, value in part
        ]
        sizes = [written.metadata.row_group(i).num_rows for i in range(written.metadata.num_row_groups)]
    assert all(size == n for size in sizes[:-1])
