"""The schema: one step from nothing to now, recognised, and never forced upon a database of another program."""

import sqlite3
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import PrimaryKeyConstraint, UniqueConstraint, inspect

from core.errors import DatabaseUnavailableError, ForeignDatabaseError, SettingsError, StoreError
from db import schema
from db.database import Database
from db.models import Record
from tests.support.stored_site import child, killed_after

APPEND_ONLY = {"rubric", "judgment", "adjudication", "audit_event", "triage_act", "triage_note"}


def opened(file: Path) -> Database:
    return Database(f"sqlite:///{file}")


def test_models_and_steps_say_the_same(database: Database) -> None:
    with database.engine.connect() as connection, connection.begin():
        command.check(schema.alembic_config(connection))
        state = schema.look(connection)
        tables = set(inspect(connection).get_table_names())
    assert state == schema.SchemaState(is_empty=False, is_ours=True, revision=schema.head())
    assert tables == {*Record.metadata.tables, "alembic_version"}


def test_an_upgrade_of_a_current_database_changes_nothing(database_file: Path) -> None:
    before = database_file.read_bytes()
    with opened(database_file) as database:
        database.upgrade()
        database.upgrade()
        database.check()
    assert database_file.read_bytes() == before


def test_the_steps_lead_down_to_nothing_and_up_again(database: Database) -> None:
    with database.engine.connect() as connection, connection.begin():
        command.downgrade(schema.alembic_config(connection), "base")
        assert set(inspect(connection).get_table_names()) == {"alembic_version"}
    database.upgrade()
    database.check()


def test_every_step_is_named_by_its_revision_and_lies_inside_the_package() -> None:
    folder = Path(schema.__file__).parent / "migrations" / "versions"
    names = [file.name[:4] for file in sorted(folder.glob("*.py"))]
    assert names == list(schema.revisions())
    assert names[-1] == schema.head()


@pytest.mark.parametrize("table", sorted(APPEND_ONLY | {"person"}))
@pytest.mark.checklist("A2")
def test_the_database_guards_rows_that_must_stay(database_file: Path, table: str) -> None:
    with sqlite3.connect(database_file) as raw:
        triggers = {row[0] for row in raw.execute("SELECT name FROM sqlite_master WHERE tbl_name = ?", (table,))}
    expected = {f"{table}_refuses_delete"} | ({f"{table}_refuses_update"} if table in APPEND_ONLY else set())
    assert expected <= triggers


@pytest.mark.checklist("A2")
def test_a_row_that_must_stay_is_not_replaced_by_any_of_its_keys(database_file: Path) -> None:
    with sqlite3.connect(database_file) as raw:
        raw.execute("PRAGMA ignore_check_constraints = ON")  # made-up rows need not make sense
        found = raw.execute("SELECT tbl_name FROM sqlite_master WHERE type = 'trigger' AND name LIKE '%refuses_delete'")
        guarded = sorted(row[0] for row in found)
        assert {*APPEND_ONLY, "person", "triage", "report_signature"} == set(guarded)
        for name in guarded:
            table = Record.metadata.tables[name]
            filled = {column.name: f"{place}" for place, column in enumerate(table.columns)}
            insert = f"INTO {name} ({', '.join(filled)}) VALUES ({', '.join('?' * len(filled))})"
            raw.execute(f"INSERT {insert}", list(filled.values()))
            keys = [
                [column.name for column in constraint.columns]
                for constraint in table.constraints
                if isinstance(constraint, (PrimaryKeyConstraint, UniqueConstraint))
            ]
            for key in [*keys, *([column.name for column in index.columns] for index in table.indexes if index.unique)]:
                other = {column: value if column in key else f"9{value}" for column, value in filled.items()}
                with pytest.raises(sqlite3.IntegrityError, match="has this row"):
                    raw.execute(f"INSERT OR REPLACE {insert}", list(other.values()))
            assert raw.execute(f"SELECT count(*) FROM {name}").fetchone() == (1,)
    raw.close()


def test_every_constraint_has_a_name() -> None:
    nameless = [
        (table.name, constraint)
        for table in Record.metadata.tables.values()
        for constraint in table.constraints
        if not constraint.name
    ]
    assert nameless == []


def test_a_database_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "other.db"
    with sqlite3.connect(file) as raw:
        raw.execute("CREATE TABLE patient (id INTEGER)")
    raw.close()
    before = file.read_bytes()
    with opened(file) as database:
        for act in (database.upgrade, database.check):
            with pytest.raises(ForeignDatabaseError, match=r"other\.db belongs to another program.*left as it is"):
                act()
    assert file.read_bytes() == before


@pytest.mark.checklist("C5")
def test_a_database_of_a_newer_version_is_refused_and_left_as_it_is(database_file: Path) -> None:
    with sqlite3.connect(database_file) as raw:
        raw.execute("UPDATE alembic_version SET version_num = '9999'")
    raw.close()
    before = database_file.read_bytes()
    with opened(database_file) as database:
        for act in (database.upgrade, database.check):
            with pytest.raises(ForeignDatabaseError, match=r"schema 9999.*newer version"):
                act()
    assert database_file.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("Not a database at all. " * 100)
    before = file.read_bytes()
    with opened(file) as database:
        for act in (database.upgrade, database.check):
            with pytest.raises(ForeignDatabaseError, match="not an SQLite database"):
                act()
    assert file.read_bytes() == before


def test_a_missing_database_is_not_made_by_looking_for_it(tmp_path: Path) -> None:
    with opened(tmp_path / "none.db") as database, pytest.raises(StoreError, match=r"no database at .*none\.db.*init"):
        database.check()
    assert list(tmp_path.iterdir()) == []


def test_an_empty_database_says_how_to_fill_it(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    with opened(tmp_path / "empty.db") as database, pytest.raises(StoreError, match=r"is empty.*alertreview init"):
        database.check()


def test_an_older_database_says_how_to_upgrade_it(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    now = schema.head()
    monkeypatch.setattr(schema, "head", lambda: "9999")
    with pytest.raises(StoreError, match=rf"has schema {now}.*needs 9999.*alertreview init"):
        database.check()


def test_a_folder_that_is_not_there_is_named_in_words(tmp_path: Path) -> None:
    with (
        opened(tmp_path / "no" / "site.db") as database,
        pytest.raises(DatabaseUnavailableError, match="cannot be opened"),
    ):
        database.upgrade()


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("sqlite://", "names no file"),
        ("sqlite:///:memory:", "names no file"),
        ("mysql://localhost/x", "'mysql' are not supported"),
        ("what is this", "cannot be read"),
    ],
)
def test_a_url_that_cannot_hold_a_site_is_refused(url: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        Database(url)


def test_a_password_is_not_part_of_the_name() -> None:
    with Database("postgresql://anna:secret@dbhost/site") as database:
        assert database.name == "site on dbhost"


@pytest.mark.parametrize("n_begun", [1, 4])
@pytest.mark.checklist("C4")
def test_a_killed_upgrade_leaves_all_or_nothing(tmp_path: Path, n_begun: int) -> None:
    killed_after(child("upgrade-many", tmp_path), n_begun)
    for file in sorted(tmp_path.glob("*.db")):
        with opened(file) as database:
            with database.engine.connect() as connection, connection.begin():
                state = schema.look(connection)
            assert state.is_empty or state.revision == schema.head()
            database.upgrade()
            database.check()


def test_two_processes_may_upgrade_at_the_same_time(tmp_path: Path) -> None:
    children = [child("upgrade", tmp_path / "site.db") for _ in range(2)]
    assert [process.communicate()[1] for process in children] == ["", ""]
    assert [process.returncode for process in children] == [0, 0]
    with opened(tmp_path / "site.db") as database:
        database.check()
