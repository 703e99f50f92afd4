"""The one machine-readable dictionary."""

import pytest

from alertreview.exports.formats import ExportFormat, write_table
from alertreview.exports.recompute import read_rows
from alertreview.exports.schema import dictionary_rows, table_schema, table_schemas
from core.errors import InvalidInputError
from core.kinds import Kind
from core.vocabulary import Answer, CaseState, Decision


@pytest.mark.parametrize("name", table_schemas())
def test_every_table_is_named_after_its_file_and_keyed_by_its_own_columns(name):
    schema = table_schema(name)
    assert schema.name == name
    assert set(schema.key) <= set(schema.names)
    assert len(set(schema.names)) == len(schema.names)
    assert all(column.meaning.endswith(".") for column in schema.columns)
    assert all(not c.missing for c in schema.columns if c.name in schema.key)


@pytest.mark.parametrize(("column", "words"), [("kind", Kind), ("decision", Decision), ("answer", sorted(Answer))])
def test_allowed_values_are_the_words_of_the_house(column, words):
    found = next(c for c in table_schema("judgments").columns if c.name == column)
    assert [value for value, _ in found.values] == [str(w.value) for w in words]


def test_states_are_the_words_of_the_house():
    found = next(c for c in table_schema("cases").columns if c.name == "state")
    assert [value for value, _ in found.values] == [s.value for s in CaseState]


def test_a_judgment_row_names_reader_case_alert_task_run_and_rubric():
    names = set(table_schema("judgments").names)
    assert {
        "reader",
        "case_id",
        "alert_id",
        "task_key",
        "run_id",
        "rubric_version",
        "patient_id",
        "snapshot_at",
    } <= names
    assert table_schema("judgments").key == ("study", "case_id", "reader", "version")


def test_columns_for_readers_are_written_out():
    names = table_schema("cases").for_readers(["r1", "r2"]).names
    assert names[-2:] == ("answer_r1", "answer_r2")
    assert "answer_{reader}" not in names


def test_the_dictionary_exports_itself(tmp_path):
    schemas = list(table_schemas().values())
    file = write_table(tmp_path, dictionary_rows(schemas), table_schema("dictionary"), [ExportFormat.CSV])[0]
    rows = list(read_rows(file.path, table_schema("dictionary"), ExportFormat.CSV))
    assert len(rows) == sum(len(s.columns) for s in schemas)
    assert {(r["table"], r["column"]) for r in rows} == {(s.name, n) for s in schemas for n in s.names}


def test_an_unknown_table_lists_those_there_are():
    with pytest.raises(InvalidInputError, match=r"no exported table 'votes'\. Tables are agreement, alerts"):
        table_schema("votes")
