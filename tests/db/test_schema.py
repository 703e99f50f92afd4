"""The schema: made from the models, upgraded from the first release, recognised, never forced upon others."""

import re
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command
from sqlalchemy import PrimaryKeyConstraint, UniqueConstraint, inspect
from sqlalchemy.engine.interfaces import ReflectedIndex

from core.errors import DatabaseUnavailableError, ForeignDatabaseError, SettingsError, StoreError
from db import schema
from db.database import Database
from db.models import Record
from tests.support.stored_site import child, killed_after

APPEND_ONLY = {"rubric", "judgment", "adjudication", "audit_event", "triage_act", "triage_note"}


def opened(file: Path) -> Database:
    return Database(f"sqlite:///{file}")


BOTH = pytest.mark.parametrize("database_of_release_0_1_0", ["sqlite", "postgresql"], indirect=True)


def described(database: Database) -> dict[str, object]:
    """Everything of a schema but the order of its columns and their defaults, which steps need for rows that stand."""
    found: dict[str, object] = {}
    with database.engine.connect() as connection:
        inspector = inspect(connection)
        for table in inspector.get_table_names():
            found[table] = {
                "columns": {(c["name"], str(c["type"]), c["nullable"]) for c in inspector.get_columns(table)},
                "primary key": inspector.get_pk_constraint(table)["constrained_columns"],
                "foreign keys": sorted(str(sorted(key.items())) for key in inspector.get_foreign_keys(table)),
                "unique": sorted(str(sorted(key.items())) for key in inspector.get_unique_constraints(table)),
                "checks": sorted((c["name"], uncast(c["sqltext"])) for c in inspector.get_check_constraints(table)),
                "indexes": sorted(described_index(index) for index in inspector.get_indexes(table)),
            }
        if database.has_one_writer:
            triggers = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' ORDER BY name"
        else:
            triggers = (
                "SELECT tgrelid::regclass, pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal ORDER BY 2"
            )
        found["triggers"] = [(name, words(text)) for name, text in connection.exec_driver_sql(triggers)]
    return found


def uncast(condition: str) -> str:
    """Leave out the casts that PostgreSQL adds, more of them to what it has printed before."""
    return re.sub(r"::[a-z ]+(\[\])?|[()]", "", condition).replace("NOT IN 0", "<> 0")


def described_index(index: ReflectedIndex) -> str:
    options = {name: str(option) for name, option in index.get("dialect_options", {}).items()}
    return f"{index['name']} {index['column_names']} {bool(index['unique'])} {options}"


def words(statement: str) -> list[str]:
    """Words of a statement, sorted: conditions of a trigger are in the order of the columns."""
    return sorted(re.findall(r"[^\s()]+", statement))


@BOTH
def test_an_upgraded_site_of_the_first_release_and_a_new_one_have_the_same_schema(
    database_of_release_0_1_0: Database, request: pytest.FixtureRequest
) -> None:
    old = database_of_release_0_1_0
    kind = "sqlite" if old.has_one_writer else "postgresql"
    new: Database = request.getfixturevalue(f"{kind}_database")
    released = described(old)
    with pytest.raises(StoreError, match=rf"has schema 0007.*needs {schema.head()}.*init.*same --home"):
        old.check()
    old.upgrade()
    old.check()
    assert described(old) == described(new) != released
    with old.engine.connect() as connection, connection.begin():
        command.check(schema.alembic_config(connection))
        assert set(inspect(connection).get_table_names()) == {*Record.metadata.tables, "alembic_version"}
    assert new.downgrade("0007") == []
    assert described(new) == released


def test_a_new_site_is_marked_and_at_the_last_step(database: Database) -> None:
    assert database.state() == schema.SchemaState(is_empty=False, is_ours=True, revision=schema.head())


def test_a_database_from_before_the_first_release_is_told_the_way(database: Database) -> None:
    with database.engine.connect() as connection, connection.begin():
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0006'")
    for act in (database.upgrade, database.check):
        with pytest.raises(ForeignDatabaseError, match=r"schema 0006, which is older than release 0\.1\.0.*init"):
            act()


def test_an_upgrade_of_a_current_database_changes_nothing(database_file: Path) -> None:
    before = database_file.read_bytes()
    with opened(database_file) as database:
        database.upgrade()
        database.upgrade()
        database.check()
    assert database_file.read_bytes() == before


def test_every_step_is_named_by_its_revision_and_lies_inside_the_package() -> None:
    folder = Path(schema.__file__).parent / "migrations" / "versions"
    names = [file.name[:4] for file in sorted(folder.glob("*.py"))]
    assert names == list(schema.revisions())
    assert names[-1] == schema.head()


@pytest.mark.parametrize("table", sorted(APPEND_ONLY | {"person"}))
@pytest.mark.checklist("A2")
def test_the_database_guards_rows_that_must_stay(database_file: Path, table: str) -> None:
    with closing(sqlite3.connect(database_file)) as raw:
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
    with (
        opened(tmp_path / "none.db") as database,
        pytest.raises(StoreError, match=r"no database at .*none\.db.*init.*same --home"),
    ):
        database.check()
    assert list(tmp_path.iterdir()) == []


def test_an_empty_database_says_how_to_fill_it(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    with opened(tmp_path / "empty.db") as database, pytest.raises(StoreError, match=r"is empty.*init.*same --home"):
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


def test_opening_waits_while_another_process_makes_the_tables(database_file: Path) -> None:
    other = sqlite3.connect(database_file, isolation_level=None, check_same_thread=False)
    other.execute("PRAGMA journal_mode = DELETE")
    other.execute("BEGIN EXCLUSIVE")
    threading.Timer(0.2, other.commit).start()
    with opened(database_file) as database:
        assert database.state().revision == schema.head()
    other.close()
