"""Events from MEDS shards: layouts of the same data read alike, a wrong one is refused by file and column."""

import json

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alertreview.records.sources import meds
from core.errors import SourceError
from tests.support.frames import assert_same_frame
from tests.support.records import site, write_meds

ROWS = [
    (1, "2026-01-01 10:00", "IN"),
    (1, "2026-01-02 07:00", "LAB//K//mmol/L", 4.1),
    (1, "2026-01-03 12:00", "OUT"),
    (2, None, "SEX//F"),
]


def rows_of(folder, mapping=None):
    return pd.concat(meds.read(folder, mapping or site()).chunks, ignore_index=True)


def test_shards_in_folders_are_read_together(tmp_path):
    write_meds(tmp_path, ROWS[:2], "train/0.parquet")
    write_meds(tmp_path, ROWS[2:], "held_out/0.parquet")
    source = meds.read(tmp_path, site())
    assert source.n_rows == 4
    assert len(pd.concat(source.chunks)) == 4


def test_column_order_extra_columns_and_narrow_types_make_no_difference(tmp_path):
    table = pq.read_table(write_meds(tmp_path / "a", ROWS) / "data" / "0.parquet")
    shuffled = pa.table(
        {
            "numeric_value": table["numeric_value"].cast(pa.float64()),
            "hadm_id": pa.array([7] * 4),
            "code": table["code"].dictionary_encode(),
            "time": table["time"].cast(pa.timestamp("ns")),
            "subject_id": table["subject_id"].cast(pa.int32()),
        }
    )
    (tmp_path / "b" / "data").mkdir(parents=True)
    pq.write_table(shuffled, tmp_path / "b" / "data" / "x.parquet")
    same = ["subject", "time"]
    assert_same_frame(rows_of(tmp_path / "a")[same], rows_of(tmp_path / "b")[same])
    assert rows_of(tmp_path / "b")["code"].tolist() == [row[2] for row in ROWS]


def test_a_shard_without_numbers_is_read_with_a_remark(tmp_path):
    write_meds(tmp_path, ROWS)
    path = tmp_path / "data" / "0.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["numeric_value"]), path)
    source = meds.read(tmp_path, site())
    assert pd.concat(source.chunks)["value"].isna().all()
    assert "numeric_value" in source.remarks[0]


@pytest.mark.checklist("C7")
def test_times_with_a_zone_become_site_time_across_the_clock_change(tmp_path):
    times = pd.to_datetime(["2026-03-28 07:00Z", "2026-03-29 06:00Z", "2026-03-29 00:59Z", "2026-03-29 01:00Z"])
    write_meds(tmp_path, ROWS, time=pa.array(times.tz_localize(None), pa.timestamp("us", tz="UTC")))
    found = rows_of(tmp_path, site(timezone="Europe/Zurich"))["time"]
    assert found.dt.strftime("%d %H:%M").tolist() == ["28 08:00", "29 08:00", "29 01:59", "29 03:00"]


def test_times_without_a_zone_are_site_time_or_utc_as_the_mapping_says(tmp_path):
    write_meds(tmp_path, ROWS)
    local = rows_of(tmp_path, site(timezone="Asia/Tokyo"))["time"]
    utc = rows_of(tmp_path, site(timezone="Asia/Tokyo", naive_times="utc"))["time"]
    assert (utc - local).dropna().eq(pd.Timedelta(hours=9)).all()


def test_extra_columns_named_by_the_mapping_are_read(tmp_path):
    known = pd.to_datetime(["2026-01-01 10:00", "2026-01-02 09:15", "2026-01-03 12:00", None])
    write_meds(
        tmp_path, ROWS, storetime=pa.array(known, pa.timestamp("us")), hadm=pa.array([5, None, 5, None], pa.int64())
    )
    found = rows_of(tmp_path, site(columns={"known_at": "storetime", "stay": "hadm"}))
    assert found["known_at"][1] == pd.Timestamp("2026-01-02 09:15")
    assert found["stay"].tolist() == [5, -1, 5, -1]


def test_descriptions_splits_and_the_simulated_mark_come_from_the_metadata(tmp_path):
    write_meds(tmp_path, ROWS)
    (tmp_path / "metadata").mkdir()
    codes = pa.table({"code": ["LAB//K//mmol/L", "OUT"], "description": ["Potassium", None]})
    pq.write_table(codes, tmp_path / "metadata" / "codes.parquet")
    pq.write_table(pa.table({"split": ["train"], "subject_id": [1]}), tmp_path / "metadata" / "subject_splits.parquet")
    (tmp_path / "metadata" / "dataset.json").write_text(json.dumps({"simulated": True}))
    source = meds.read(tmp_path, site())
    assert source.descriptions == {"LAB//K//mmol/L": "Potassium"}
    assert source.splits == {"1": "train"}
    assert source.simulated


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        ({"subject_id": pa.array(list("abcd"))}, ["'subject_id'", "string", "int64"]),
        ({"time": pa.array(list("abcd"))}, ["'time'", "string", "timestamps"]),
        ({"code": pa.array([1, 2, 3, 4])}, ["'code'", "int64", "texts"]),
        ({"numeric_value": pa.array(list("abcd"))}, ["'numeric_value'", "string", "numbers"]),
    ],
)
@pytest.mark.checklist("D1")
def test_a_column_of_the_wrong_type_is_refused_by_file_column_and_rule(tmp_path, change, parts):
    write_meds(tmp_path, ROWS, **change)
    with pytest.raises(SourceError) as caught:
        meds.read(tmp_path, site())
    for part in ["0.parquet", *parts]:
        assert part in str(caught.value)


@pytest.mark.parametrize("name", ["subject_id", "time", "code"])
@pytest.mark.checklist("D1")
def test_a_missing_column_is_refused_with_what_was_found(tmp_path, name):
    path = write_meds(tmp_path, ROWS) / "data" / "0.parquet"
    pq.write_table(pq.read_table(path).drop_columns([name]), path)
    with pytest.raises(SourceError, match=rf"0\.parquet.*'{name}'.*numeric_value"):
        meds.read(tmp_path, site())


@pytest.mark.checklist("D1")
def test_an_event_without_a_patient_is_refused_by_row(tmp_path):
    write_meds(tmp_path, ROWS, subject_id=pa.array([1, 1, None, 2], pa.int64()))
    with pytest.raises(SourceError, match="row 3 has no subject_id"):
        rows_of(tmp_path)


def test_a_patient_beyond_the_numbers_of_meds_is_refused(tmp_path):
    write_meds(tmp_path, ROWS, subject_id=pa.array([1, 1, 2**63, 2], pa.uint64()))
    with pytest.raises(SourceError, match="a subject_id is larger than MEDS allows"):
        rows_of(tmp_path)


def test_descriptions_are_found_for_codes_with_zeros_before_them(tmp_path):
    rules = [*site().model_dump()["rules"], {"code": "ITEM//(?P<item>[1-9][0-9]+)", "kind": "LAB_RESULT"}]
    write_meds(tmp_path, ROWS)
    (tmp_path / "metadata").mkdir()
    codes = pa.table({"code": ["ITEM//0012"], "description": ["Potassium"]})
    pq.write_table(codes, tmp_path / "metadata" / "codes.parquet")
    assert meds.read(tmp_path, site(rules=rules)).descriptions == {"ITEM//12": "Potassium"}


def test_what_is_no_meds_data_set_is_refused(tmp_path):
    with pytest.raises(SourceError, match="is not a folder"):
        meds.read(tmp_path / "gone", site())
    with pytest.raises(SourceError, match="no parquet file"):
        meds.read(tmp_path, site())
    write_meds(tmp_path, [])
    with pytest.raises(SourceError, match="not one row"):
        meds.read(tmp_path, site())


def test_an_empty_shard_beside_a_full_one_is_no_harm(tmp_path):
    write_meds(tmp_path, [], "a.parquet")
    write_meds(tmp_path, ROWS, "b.parquet")
    assert len(rows_of(tmp_path)) == 4


@settings(max_examples=25, deadline=None)
@given(data=st.data())
@pytest.mark.checklist("D1")
def test_a_damaged_shard_is_refused_or_read_but_never_crashes(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("damaged")
    path = write_meds(folder, ROWS) / "data" / "0.parquet"
    content = bytearray(path.read_bytes())
    cut = data.draw(st.integers(0, len(content)))
    content = content[:cut] if data.draw(st.booleans()) else content
    for _ in range(data.draw(st.integers(0, 3))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content))
    refusal = ""
    try:
        rows_of(folder)
    except SourceError as error:
        refusal = str(error)
    assert refusal == "" or "0.parquet" in refusal or "no parquet" in refusal or "not one row" in refusal


@pytest.mark.checklist("D6")
def test_errors_never_show_a_patient(tmp_path):
    write_meds(tmp_path, [(987654321, "2026-01-01", "IN")], time=pa.array([2**60], pa.timestamp("ms")))
    with pytest.raises(SourceError) as caught:
        rows_of(tmp_path)
    assert "987654321" not in str(caught.value)


def test_a_second_text_of_a_code_is_remarked_on_and_a_second_split_refused(tmp_path):
    write_meds(tmp_path, ROWS)
    (tmp_path / "metadata").mkdir()
    texts = {"code": ["A", "A", "B", "B"], "description": ["Heparin", "Warfarin", "Iron", "Iron"]}
    pq.write_table(pa.table(texts), tmp_path / "metadata" / "codes.parquet")
    source = meds.read(tmp_path, site())
    assert source.descriptions == {"A": "Warfarin", "B": "Iron"}
    assert "codes.parquet describes 1 code once more, with another text: the last one counts." in source.remarks
    splits = {"subject_id": [1, 2, 2, 1], "split": ["train", "train", "train", "held_out"]}
    pq.write_table(pa.table(splits), tmp_path / "metadata" / "subject_splits.parquet")
    with pytest.raises(SourceError, match=r"subject_splits.parquet: row 4 puts a patient into a second split"):
        meds.read(tmp_path, site())


@pytest.mark.parametrize(
    ("name", "table"), [("codes.parquet", {"description": ["a"]}), ("subject_splits.parquet", {"x": [1]})]
)
def test_a_metadata_table_without_its_columns_is_refused(tmp_path, name, table):
    write_meds(tmp_path, ROWS)
    (tmp_path / "metadata").mkdir()
    pq.write_table(pa.table(table), tmp_path / "metadata" / name)
    with pytest.raises(SourceError, match=name):
        meds.read(tmp_path, site())


def test_a_code_table_without_descriptions_is_remarked_and_items_keep_their_codes(tmp_path):
    write_meds(tmp_path, ROWS)
    (tmp_path / "metadata").mkdir()
    pq.write_table(pa.table({"code": ["LAB//K"]}), tmp_path / "metadata" / "codes.parquet")
    source = meds.read(tmp_path, site())
    assert source.descriptions == {}
    assert any("no column description" in remark for remark in source.remarks)


def test_a_broken_dataset_json_is_refused(tmp_path):
    write_meds(tmp_path, ROWS)
    (tmp_path / "metadata").mkdir()
    (tmp_path / "metadata" / "dataset.json").write_text("{")
    with pytest.raises(SourceError, match=r"dataset\.json"):
        meds.read(tmp_path, site())


def test_codes_are_counted_for_choosing_a_mapping(tmp_path):
    write_meds(tmp_path, [*ROWS, ROWS[1]])
    assert meds.code_counts(tmp_path, site()) == {"IN": 1, "LAB//K//mmol/L": 2, "OUT": 1, "SEX//F": 1}


def test_an_end_is_an_event_of_its_own(tmp_path):
    ends = pd.to_datetime(["2026-01-03 12:00", None, None, None])
    write_meds(tmp_path, ROWS, end=pa.array(ends, pa.timestamp("us")))
    found = rows_of(tmp_path, site(columns={"end": "end"}))
    assert len(found) == 5
    assert found["code"].iloc[-1] == "IN//END"
    assert found["time"].iloc[-1] == pd.Timestamp("2026-01-03 12:00")
