"""Seals: whatever is sealed and changed past the program is found, table by table and column by column."""

import hashlib
import json
import sqlite3
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import sqlalchemy as sa

from core.errors import StoreError
from core.vocabulary import Answer, CaseId, Decision, PersonId, Role, SignInSource, StudyId, TriageState
from db import audit, schema
from db.audit import LATER_SEALS, SEALS, AuditTrail
from db.database import Database
from db.maintenance import bulk
from db.models import (
    Account,
    Adjudication,
    ApiToken,
    Judgment,
    ReferenceAnswer,
    ReportSignature,
    RunSensitivity,
    TaskResult,
    TriageAct,
    TriageNote,
    UnitScope,
)
from db.queries import seals
from tests.support.corruptions import without_guards as without_guards_of
from tests.support.review_acts import captured
from tests.support.stored_site import EPOCH, StoredSite, add_alerts, add_task_results, new_run

PARTS = [*seals._SINGLE.values(), *(part for group in seals._GROUPS.values() for part in group)]
N_SEALED_COLUMNS = 204
"""A new column of a sealed table goes to `without` of its part, or seals that were made before would not fit."""


def fill(database: Database) -> None:
    """Store at least one row of everything that is sealed."""
    site = StoredSite(database, n_instances=4, n_tasks=2)
    reader, *_ = site.study(2, 3)
    with database.write() as uow:
        run_id = uow.runs.start(*new_run(site.snapshot.id, len(site.instances)))
        task = {"task_id": site.tasks[0].id, "scorer": "softhad", "n_past": 2, "n_past_positive": 1}
        add_task_results(uow, run_id, [TaskResult(**task, score=[0.5, 0.25])])  # type: ignore[arg-type]
        add_alerts(uow, run_id, [site.alert(2, 0, 1, Decision.OMISSION)])
        uow.runs.publish(run_id, published_at=EPOCH, floors={})
        uow.cases.add_references([ReferenceAnswer(case_id=CaseId(1), answer=Answer.USUAL, comment="")])
        assert uow.slots.hold(StudyId(1), CaseId(1), PersonId(reader), now=EPOCH, until=EPOCH)
        assert uow.slots.settle(CaseId(1), PersonId(reader))
        uow.runs.put_sensitivity(run_id, {"a": 1}, "1", EPOCH)
        uow.units.give(PersonId(reader), ["Ward A"])
        whose = {"person_id": PersonId(reader), "created_at": EPOCH}
        uow.accounts.add(Account(**whose, source=SignInSource.LOCAL, login="a", password_hash="b"))  # type: ignore[arg-type]
        uow.api_tokens.add(ApiToken(**whose, token_hash="c" * 64, purpose="p", expires_at=EPOCH))  # type: ignore[arg-type]
        common = {"case_id": 1, "version": 1, "answer": Answer.USUAL, "comment": "", "reason": ""}
        uow.judgments.append(
            Judgment(
                **common,
                reviewer_id=reader,
                certainty=None,
                form_key="a",
                judged_at=EPOCH,
                active_seconds=1.0,
                saw_score_before=False,
                rubric_version=1,
            )  # type: ignore[arg-type]
        )
        uow.adjudications.append(Adjudication(**common, adjudicator_id=reader, form_key="b", adjudicated_at=EPOCH))  # type: ignore[arg-type]
        decision = {"patient_id": "p", "snapshot_at": EPOCH, "task_key": "k", "person_id": reader, "form_key": "c"}
        uow.triage.append(
            [
                TriageAct(
                    **decision,
                    version=1,
                    former_state=TriageState.NEW,
                    state=TriageState.ACTIONED,
                    snoozed_until=None,
                    reason="",
                    acted_at=EPOCH,
                )
            ]  # type: ignore[arg-type]
        )
        uow.triage.add_note(TriageNote(**decision, text="words", written_at=EPOCH))  # type: ignore[arg-type]
        uow.signatures.append(
            ReportSignature(
                study_id=StudyId(1),
                signer_id=PersonId(reader),
                signer_name="A",
                meaning="B",
                signed_at=EPOCH,
                content_hash="a" * 64,
            )
        )
        uow.commit()


def problem(database: Database) -> str:
    with database.read() as uow:
        return uow.audit.verify().problem


def without_guards(file: Path) -> sqlite3.Connection:
    """Open the file as somebody does who has the disk, and no scruples."""
    raw = sqlite3.connect(file)
    for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        raw.execute(f"DROP TRIGGER {name}")
    raw.execute("PRAGMA ignore_check_constraints = ON")
    return raw


def test_everything_that_was_saved_has_its_seal_on_every_database(database: Database) -> None:
    fill(database)
    assert problem(database) == ""
    with database.read() as uow:
        stored = dict(seals.all_seals(uow.audit._connection))
        rows = [json.loads(event["details"]) for event in uow.audit.all()]
    assert {seals.kind_of(name) for name in stored} == {*seals._SINGLE, *seals._GROUPS}
    former = {seals.kind_of(name) for row in rows for name in row.get(SEALS, {})}
    assert not former & seals.LATER, "a former version would miss them"
    assert {seals.kind_of(name) for row in rows for name in row.get(LATER_SEALS, {})} == seals.LATER


def test_a_seal_made_while_alerts_are_written_is_that_of_the_whole(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = StoredSite(database, n_instances=12, n_tasks=2)
    monkeypatch.setattr(bulk, "ALERTS_AT_ONCE", 4)
    for _ in range(2):
        with database.write() as uow:
            run_id = uow.runs.start(*new_run(site.snapshot.id, len(site.instances)))
            uow.commit()
        scorers = (
            {"scorer": "softhad", "n_past": 2, "n_past_positive": 1},
            {"scorer": "pair", "n_past": 2, "n_past_positive": 0},
        )
        results = [TaskResult(task_id=task.id, score=[0.5], **scorer) for task in site.tasks for scorer in scorers]  # type: ignore[arg-type]
        alerts = [site.alert(row, 0, row + 1, Decision.OMISSION) for row in range(10)]
        seal = bulk.store_results(database, run_id, results, alerts)
        with database.write() as uow:
            assert seals.seal_of(uow._connection, seals.RESULTS, (run_id,)) == seal
            uow.runs.publish(run_id, published_at=EPOCH, floors={}, results_seal=seal)
            uow.commit()
    assert problem(database) == ""


def test_rows_of_a_large_thing_are_read_in_their_order_and_not_sorted(sqlite_database: Database) -> None:
    with sqlite_database.read() as uow:
        for part in (part for parts in seals._GROUPS.values() for part in parts if part.in_a_row):
            asked = str(seals._statement(part, of_one=True).compile(dialect=sqlite_database.engine.dialect))
            plan = uow._connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {asked}", (1, None, 1)).fetchall()
            assert not any("B-TREE" in row[-1] for row in plan), part


@pytest.mark.checklist("A3")
def test_a_change_of_any_sealed_column_is_found_and_named(sqlite_database: Database, database_file: Path) -> None:
    fill(sqlite_database)
    sqlite_database.dispose()
    raw = without_guards(database_file)
    raw.commit()
    assert problem(sqlite_database) == ""
    n_tried = 0
    for part in PARTS:
        table = part.table.name
        for column in (column.name for column in part.columns):
            [(number, before)] = raw.execute(f"SELECT rowid, {column} FROM {table} LIMIT 1").fetchall()
            other = 77 if before is None or isinstance(before, (int, float)) else (before + before[-1:]) or "x"
            raw.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (other, number))
            raw.commit()
            found = problem(sqlite_database)
            assert found, f"{table}.{column} was changed and nobody noticed"
            raw.execute(f"UPDATE {table} SET {column} = ? WHERE {column} = ? ", (before, other))
            raw.commit()
            n_tried += 1
    assert problem(sqlite_database) == ""
    assert n_tried == N_SEALED_COLUMNS
    raw.close()


@pytest.mark.checklist("A3")
def test_a_row_put_in_or_taken_out_past_the_program_is_found(sqlite_database: Database, database_file: Path) -> None:
    fill(sqlite_database)
    sqlite_database.dispose()
    raw = without_guards(database_file)
    for part in PARTS:
        table, names = part.table.name, [column.name for column in part.table.columns]
        insert = f"INSERT INTO {table} ({','.join(names)}) VALUES ({','.join('?' * len(names))})"
        row = raw.execute(f"SELECT {','.join(names)} FROM {table} ORDER BY rowid DESC LIMIT 1").fetchone()
        same = " AND ".join(f"{name} IS ?" for name in names)
        raw.execute(f"DELETE FROM {table} WHERE {same}", row)
        raw.commit()
        assert problem(sqlite_database), f"a row of {table} is gone and nobody noticed"
        raw.execute(insert, row)
        raw.commit()
        assert problem(sqlite_database) == ""
        if part.owner == ("id",):
            keys = {column.name for column in part.table.columns if column.unique or column.primary_key} | {
                "version",
                "form_key",
            }
        else:
            keys = {
                name
                for name in names
                if name in {"number", "repeat_number", "scorer", "version", "row_index", "column_index"}
            }
            keys |= {"id", "form_key", "person_id", "task_key", "login"} | (
                {"run_id"} if part.model is RunSensitivity else set()
            )
        if part.model is UnitScope:
            keys = {"unit"}
        other = tuple(
            value if name not in keys else value + 90 if isinstance(value, int) else f"{value}9"
            for name, value in zip(names, row, strict=True)
        )
        if other == row:
            continue
        raw.execute(insert, other)
        raw.commit()
        assert problem(sqlite_database), f"a row was put into {table} and nobody noticed"
        raw.execute(f"DELETE FROM {table} WHERE {same}", other)
        raw.commit()
        assert problem(sqlite_database) == ""
    raw.close()


def test_a_row_has_the_bytes_that_sqlite_gives_whatever_the_driver_returns():
    """A copy on another database keeps its seals: there the same row has truth values, times and decoded JSON."""
    moment = datetime(2026, 3, 1, 9, 30, 0, 5, tzinfo=timezone(timedelta(hours=2)))
    files = [b"a", b""]
    hashes = [hashlib.sha256(one).hexdigest() for one in files]
    other = (1, 2.5, "a", None, True, False, moment, {"b": [1], "a": None}, [2, "ä"], *files)
    sqlite = (1, 2.5, "a", None, 1, 0, "2026-03-01 07:30:00.000005", '{"a":null,"b":[1]}', '[2,"ä"]', *hashes)
    assert seals._bytes(other) == repr(sqlite).encode() == seals._bytes(sqlite)


def test_what_former_versions_saved_is_sealed_once_by_the_upgrade(database: Database) -> None:
    fill(database)
    with database.engine.connect() as connection, connection.begin():
        connection.execute(sa.text("DROP TRIGGER audit_event_refuses_delete" + _on(database)))
        connection.execute(sa.text("DELETE FROM audit_event"))
    assert "in no row of the audit trail" in problem(database)
    database.upgrade()
    assert problem(database) == ""
    with database.read() as uow:
        n_rows = uow.audit.count()
    database.upgrade()
    with database.read() as uow:
        assert uow.audit.count() == n_rows


@pytest.mark.checklist("A3")
@pytest.mark.parametrize("change", ["UPDATE study SET title = 'other'", "UPDATE unit_scope SET unit = 'Ward Z'"])
def test_an_upgrade_with_nothing_to_upgrade_seals_no_change(
    sqlite_database: Database, database_file: Path, change: str
) -> None:
    fill(sqlite_database)
    with without_guards(database_file) as raw:
        raw.execute(change)
    raw.close()
    found = problem(sqlite_database)
    assert "is not as it was saved" in found
    sqlite_database.upgrade()
    assert problem(sqlite_database) == found


@pytest.mark.checklist("A3")
def test_what_was_saved_before_0012_is_sealed_by_the_upgrade_and_after_every_downgrade(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as former:

        def former_seals(connection: sa.Connection) -> seals.Seals:
            return {name: seal for name, seal in take(connection).items() if seals.kind_of(name) not in seals.LATER}

        take = seals.take_seals
        former.setattr(audit, "take_seals", former_seals)
        fill(database)
        database.downgrade("0011")
    assert "in no row of the audit trail" in problem(database)
    database.upgrade()
    assert problem(database) == ""
    with monkeypatch.context() as former:
        database.downgrade("0011")
        former.setattr(audit, "take_seals", former_seals)
        with database.write() as uow:
            uow.units.give(PersonId(1), ["Ward B"])
            uow.commit()
    assert "The units of person 1 is not as it was saved" in problem(database)
    database.upgrade()
    assert problem(database) == ""
    with database.read() as uow:
        n_rows = uow.audit.count()
    database.upgrade()
    with database.read() as uow:
        assert uow.audit.count() == n_rows


def test_an_upgrade_killed_before_its_last_step_is_no_upgrade_and_the_next_one_seals(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(database)
    database.downgrade("0011")
    with database.engine.connect() as connection, connection.begin():
        connection.execute(sa.text("DROP TRIGGER audit_event_refuses_delete" + _on(database)))
        connection.execute(sa.text("DELETE FROM audit_event"))
    steps = schema.upgrade

    def killed(engine: sa.Engine, url: sa.URL, name: str, revision: str = "head") -> None:
        if revision == "head":
            raise KeyboardInterrupt
        steps(engine, url, name, revision)

    with monkeypatch.context() as at_the_end:
        at_the_end.setattr(schema, "upgrade", killed)
        with pytest.raises(KeyboardInterrupt):
            database.upgrade()
    with pytest.raises(StoreError, match="upgrade"):
        database.check()
    database.upgrade()
    database.check()
    assert problem(database) == ""


DERIVED_CHANGES = (
    "UPDATE triage SET state = 'dismissed'",
    "UPDATE triage SET version = 2",
    "UPDATE triage SET snoozed_until = '2030-01-01 00:00:00.000000'",
    "UPDATE triage SET task_key = 'other' WHERE task_key = 'k'",
    "UPDATE triage SET act_id = 2 WHERE task_key = 'k'",
    "DELETE FROM triage WHERE task_key = 'k'",
    "INSERT INTO triage SELECT 'q', snapshot_at, task_key, 1, state, snoozed_until, 1 FROM triage WHERE act_id = 1",
    "UPDATE assignment SET held_until = '2020-01-01 00:00:00.000000' WHERE held_until IS NULL AND {judged}",
    "UPDATE assignment SET put_off_at = '2020-01-01 00:00:00.000000' WHERE {judged}",
    "UPDATE assignment SET reviewer_id = 2 WHERE {judged}",
    "UPDATE assignment SET reviewer_id = NULL WHERE {judged}",
    "DELETE FROM assignment WHERE {judged}",
    "DELETE FROM assignment WHERE case_id = 2 AND slot = 2",
    "UPDATE assignment SET slot = 9 WHERE case_id = 2 AND slot = 2",
    "INSERT INTO assignment (case_id, slot) VALUES (2, 9)",
    "UPDATE assignment SET reviewer_id = 2 WHERE case_id = 2 AND slot = 1",
    "UPDATE assignment SET held_until = '2020-01-01 00:00:00.000000' WHERE case_id = 2 AND slot = 1",
    "UPDATE assignment SET put_off_at = '2020-01-01 00:00:00.000000' WHERE case_id = 2 AND slot = 1",
    "UPDATE assignment SET reviewer_id = {stranger}, held_until = '2020-01-01' WHERE case_id = 2 AND slot = 1",
    "UPDATE assignment SET reviewer_id = 2, held_until = '2999-01-01 00:00:00.000000' WHERE case_id = 2 AND slot = 1",
)


@pytest.mark.checklist("A3")
def test_what_follows_from_sealed_records_and_no_longer_does_is_found(database: Database) -> None:
    fill(database)
    with database.write() as uow:
        stranger = uow.people.add("Stranger", Role.REVIEWER, created_at=EPOCH).id
        snoozed = {"version": 1, "former_state": TriageState.NEW, "state": TriageState.SNOOZED, "snoozed_until": EPOCH}
        decision = {"patient_id": "p", "snapshot_at": EPOCH, "task_key": "l", "person_id": 1, "form_key": "d"}
        uow.triage.append([TriageAct(**decision, **snoozed, reason="", acted_at=EPOCH)])  # type: ignore[arg-type]
        uow.commit()
    assert problem(database) == ""
    with without_guards_of(database.engine) as connection:
        trail = AuditTrail(connection)
        for change in DERIVED_CHANGES:
            undone = connection.begin_nested()
            of = change.format(judged="case_id = 1 AND slot = 1", stranger=stranger)
            assert connection.execute(sa.text(of)).rowcount, change
            assert trail.verify().problem, f"{change}, and nobody noticed"
            undone.rollback()
        assert trail.verify().problem == ""
        for hold in ("reviewer_id = 2, held_until = '2020-01-01 00:00:00.000000'", "reviewer_id = 3"):
            connection.execute(sa.text(f"UPDATE assignment SET {hold} WHERE case_id = 2 AND slot = 1"))
            assert trail.verify().problem == "", "a hold of a reader is no damage"


def _on(database: Database) -> str:
    return " ON audit_event" if database.engine.dialect.name == "postgresql" else ""


def test_a_study_of_more_cases_takes_no_more_statements(database: Database) -> None:
    site, n_statements = StoredSite(database), {}
    for slug, n_cases in (("few", 2), ("many", 12)):
        with captured(database) as statements:
            site.study(n_cases, 3, slug=slug)
        n_statements[slug] = len(statements)
    assert n_statements["few"] == n_statements["many"]
    with database.read() as uow:
        uow.audit.require_whole()
        for slug in n_statements:
            cases = uow.cases.in_study(uow.studies.by_slug(slug).id)
            assert [case.number for case in cases] == sorted(case.number for case in cases)
            assert [case.row_index for case in cases] == list(range(len(cases)))
