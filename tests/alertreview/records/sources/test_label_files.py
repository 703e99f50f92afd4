"""Label files: what is read, what is counted, what is refused and in which words."""

from datetime import UTC, timedelta
from zoneinfo import ZoneInfo

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alertreview.records.sources.label_files import find_label_files, read_labels, with_label_rules
from core.errors import SourceError
from tests.support.records import site

AT = pd.Timestamp("2026-01-02 08:00").to_pydatetime()
LARGE = 9_007_199_254_740_993
"""A whole number that a float cannot hold."""


def write(path, subjects=(1, 2), times=(AT, AT), values=(True, False), **columns):
    given = {"subject_id": subjects, "prediction_time": times, "boolean_value": values, **columns}
    table = pa.table({name: pa.array(each) for name, each in given.items() if each is not None})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)
    return path


def read(path, mapping=None, subjects=(1, 2, LARGE), known=()):
    (files,) = find_label_files([str(path)])
    return read_labels(files, mapping or site(), subjects, known)


def rows_of(labels):
    return list(zip(labels.rows["subject"], labels.rows["time"], labels.rows["code"], strict=True))


def test_a_file_is_a_question_with_its_name(tmp_path):
    labels = read(write(tmp_path / "sepsis.parquet"))
    at = pd.Timestamp(AT)
    assert rows_of(labels) == [(1, at, "LABEL_TRUE:sepsis"), (2, at, "LABEL_FALSE:sepsis")]
    assert labels.remark == ""


def test_a_folder_is_one_question_and_other_columns_are_no_matter(tmp_path):
    for shard, subject in (("train/0", 1), ("held_out/0", 2)):
        write(
            tmp_path / "cohort" / f"{shard}.parquet",
            [subject],
            [AT],
            [True],
            integer_value=pa.array([None], pa.int64()),
        )
    write(
        tmp_path / "cohort" / "tuning" / "0.parquet",
        pa.array([], pa.int64()),
        pa.array([], pa.timestamp("us")),
        pa.array([], pa.bool_()),
    )
    assert sorted(subject for subject, _, _ in rows_of(read(tmp_path / "cohort"))) == [1, 2]


def test_a_name_may_be_given_and_two_questions_need_two(tmp_path):
    one, two = write(tmp_path / "a" / "q.parquet"), write(tmp_path / "b" / "q.parquet")
    assert [each.name for each in find_label_files([f"first={one}", str(two)])] == ["first", "q"]
    with pytest.raises(SourceError, match=r"two questions are called 'Q'.*--labels NAME="):
        find_label_files([str(one), f"Q={two}"])
    with pytest.raises(SourceError, match="needs a name with a letter"):
        find_label_files([f"17={one}"])


@pytest.mark.parametrize(
    ("zone", "naive", "hour"),
    [(None, "local", 8), (None, "utc", 9), ("UTC", "local", 9), ("America/New_York", "local", 14)],
)
def test_times_become_those_of_the_site(tmp_path, zone, naive, hour):
    at = AT if zone is None else AT.replace(tzinfo=ZoneInfo(zone))
    times = pa.array([at, at], pa.timestamp("us", tz=zone))
    labels = read(write(tmp_path / "q.parquet", times=times), site(timezone="Europe/Zurich", naive_times=naive))
    assert {time for _, time, _ in rows_of(labels)} == {pd.Timestamp(2026, 1, 2, hour)}


def test_identifiers_stay_exact_and_are_found_in_every_spelling(tmp_path):
    path = write(tmp_path / "q.parquet", [LARGE, LARGE - 1])
    assert [subject for subject, _, _ in rows_of(read(path))] == [LARGE]
    assert [subject for subject, _, _ in rows_of(read(write(tmp_path / "f.parquet", ["1.0", "'1"])))] == [1, 1]
    texts = write(tmp_path / "r.parquet", ["1", "007"])
    assert [subject for subject, _, _ in rows_of(read(texts, subjects=("007", "1")))] == ["1", "007"]
    assert [subject for subject, _, _ in rows_of(read(texts))] == [1]


def test_patients_of_an_earlier_import_are_known(tmp_path):
    path = write(tmp_path / "q.parquet", [1, 3])
    assert [subject for subject, _, _ in rows_of(read(path, known={"3"}))] == [1, 3]


def test_what_is_left_out_is_counted(tmp_path):
    path = write(
        tmp_path / "q.parquet",
        [1, 1, 2, 2, 5, 5, 6],
        [AT] * 4 + [AT, AT + timedelta(days=1), AT],
        [True, True, None, False, True, True, False],
    )
    labels = read(path)
    assert len(labels.rows) == 2
    assert labels.remark == (
        "Labels of 'q': of 7 rows, left out: 1 without a boolean_value, 1 that repeat another, "
        "3 of 2 patients without records."
    )


def far(n):
    return pa.array([2**60] * n, pa.timestamp("ms"))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"boolean_value": None}, "lacks the column 'boolean_value' .found: subject_id, prediction_time"),
        ({"boolean_value": [1, 0]}, "column 'boolean_value' holds int64; it must hold true and false"),
        ({"boolean_value": ["yes", "no"]}, "holds string"),
        ({"prediction_time": ["2026-01-02", "x"]}, "column 'prediction_time' holds string; it must hold timestamps"),
        ({"subject_id": [1.0, 2.0]}, "column 'subject_id' holds double"),
        ({"subject_id": [1, None]}, "row 2 has no subject_id"),
        ({"prediction_time": [None, AT]}, "row 1 has no prediction_time"),
        ({"prediction_time": far(2)}, "outside the calendar"),
        ({"boolean_value": pa.array([None, None], pa.bool_())}, "no row of 'q' has a boolean_value"),
        ({"subject_id": [1, 1]}, "q.parquet, row 1 and .*q.parquet, row 2: one is true and one is false"),
        ({"subject_id": [8, 9]}, "none of the 2 patients"),
    ],
)
def test_a_file_that_cannot_be_right_is_refused(tmp_path, columns, words):
    given = {"subject_id": [1, 2], "prediction_time": [AT, AT], "boolean_value": [True, False], **columns}
    path = tmp_path / "q.parquet"
    pq.write_table(pa.table({name: each for name, each in given.items() if each is not None}), path)
    with pytest.raises(SourceError, match=words) as refused:
        read(path)
    assert str(path) in str(refused.value)


def test_one_time_in_two_zones_is_one_time(tmp_path):
    aware = write(tmp_path / "q" / "0.parquet", [1], [AT.replace(tzinfo=UTC)], [True])
    write(tmp_path / "q" / "1.parquet", [1], [AT], [False])
    with pytest.raises(SourceError, match="one is true and one is false"):
        read(aware.parent)


def test_no_file_a_damaged_one_and_an_empty_folder_are_named(tmp_path):
    (tmp_path / "empty").mkdir()
    damaged = tmp_path / "damaged.parquet"
    damaged.write_bytes(b"PAR1 and no more")
    for path, words in (
        (tmp_path / "none.parquet", "no such file"),
        (tmp_path / "empty", "no parquet"),
        (damaged, "not a complete"),
    ):
        with pytest.raises(SourceError, match=words) as refused:
            read(path)
        assert str(path) in str(refused.value)


def test_labels_are_recognised_before_every_rule_of_the_site():
    greedy = with_label_rules(
        site(rules=[{"code": ".*", "kind": "IGNORE", "reason": "all"}, {"code": "IN", "kind": "ADMISSION"}])
    )
    assert [rule.kind for _, rule in greedy.compiled_rules[:2]] == ["LABEL_TRUE", "LABEL_FALSE"]
    plain = site()
    assert plain.compiled_rules
    assert with_label_rules(plain).compiled_rules[0][1].kind == "LABEL_TRUE"
