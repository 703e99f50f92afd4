"""The audit trail: one row for each act, and every kind of tampering shows."""

import itertools
import sqlite3
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from core.errors import RefusedError, StoreError
from db.audit import CHECKSUM, GENESIS, _seal
from db.database import Database
from db.models import AuditEvent
from tests.support.stored_site import EPOCH

MOMENT = EPOCH.isoformat(timespec="microseconds")


def append(database: Database, n: int) -> None:
    with database.write() as uow:
        for number in range(n):
            uow.audit.append(EPOCH + timedelta(seconds=number), "person 1", "acted", f"thing {number}", {"n": number})
        uow.commit()


def tamper(file: Path, *statements: str) -> None:
    """Change the file behind the program's back, without its triggers."""
    with sqlite3.connect(file) as raw:
        for act in ("update", "delete"):
            raw.execute(f"DROP TRIGGER audit_event_refuses_{act}")
        for statement in statements:
            raw.execute(statement)
    raw.close()


@pytest.mark.checklist("A1")
def test_rows_follow_each_other_without_gap(database: Database) -> None:
    append(database, 3)
    append(database, 2)
    with database.read() as uow:
        rows = list(reversed(uow.audit.latest()))
        report = uow.audit.require_whole()
        assert uow.audit.head() == rows[-1].hash == report.head
        assert [row.sequence for row in uow.audit.latest(limit=2, before=4)] == [3, 2]
    assert [row.sequence for row in rows] == [1, 2, 3, 4, 5]
    assert [row.previous_hash for row in rows] == [GENESIS, *(row.hash for row in rows[:-1])]
    assert rows[1].details == '{"n":1}'
    assert (rows[1].moment, rows[1].actor, rows[1].action, rows[1].object) == (
        EPOCH + timedelta(seconds=1),
        "person 1",
        "acted",
        "thing 1",
    )
    assert (report.n_events, report.problem) == (5, "")


def test_rows_are_found_by_act_thing_and_actor_together(database: Database) -> None:
    rows = list(itertools.product(("person 1", "person 2"), ("read", "wrote"), ("case 1", "case 2")))
    with database.write() as uow:
        for actor, action, thing in rows:
            uow.audit.append(EPOCH, actor, action, thing, {})
        uow.commit()
    with database.read() as uow:
        assert uow.audit.count() == len(rows)
        for wanted in itertools.product(("", "person 1"), ("", "wrote"), ("", "case 2")):
            fits = [all(want in ("", has) for want, has in zip(wanted, row, strict=True)) for row in rows]
            found = uow.audit.latest(actor=wanted[0], action=wanted[1], thing=wanted[2])
            assert [row.sequence for row in found] == [n for n in range(len(rows), 0, -1) if fits[n - 1]]


def test_the_checksum_of_files_is_that_of_the_newest_act_that_has_one(database: Database) -> None:
    with database.write() as uow:
        for details in ({CHECKSUM: "first"}, {CHECKSUM: "second"}, {"reason": "no files"}):
            uow.audit.append(EPOCH, "person 1", "acted", "import a", details)
        uow.commit()
        assert (uow.audit.checksum("import a"), uow.audit.checksum("import b")) == ("second", None)


def test_an_empty_trail_is_whole(database: Database) -> None:
    with database.read() as uow:
        assert (uow.audit.head(), uow.audit.count(), uow.audit.latest()) == (GENESIS, 0, [])
        assert uow.audit.require_whole(GENESIS).n_events == 0


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (["UPDATE audit_event SET actor = 'person 2' WHERE sequence = 3"], "Row 3 .* was changed"),
        (["UPDATE audit_event SET details = '{}' WHERE sequence = 1"], "Row 1 .* was changed"),
        (["UPDATE audit_event SET at = '2030-01-01 00:00:00.000000' WHERE sequence = 2"], "Row 2 .* was changed"),
        (["DELETE FROM audit_event WHERE sequence = 2"], "Row 2 .* is missing"),
        (
            [
                "UPDATE audit_event SET sequence = 99 WHERE sequence = 2",
                "UPDATE audit_event SET sequence = 2 WHERE sequence = 3",
                "UPDATE audit_event SET sequence = 3 WHERE sequence = 99",
            ],
            "Row 2 .* was changed",
        ),
        (
            ["INSERT INTO audit_event SELECT 6, at, actor, action, object, '', hash, 'f' FROM audit_event LIMIT 1"],
            "Row 6 .* put in",
        ),
    ],
)
@pytest.mark.checklist("A3")
def test_tampering_is_found_and_named(
    sqlite_database: Database, database_file: Path, statements: list[str], words: str
) -> None:
    append(sqlite_database, 5)
    tamper(database_file, *statements)
    with sqlite_database.read() as uow, pytest.raises(StoreError, match=words):
        uow.audit.require_whole()


@pytest.mark.checklist("A3")
def test_a_cut_tail_is_found_with_a_head_printed_before(sqlite_database: Database, database_file: Path) -> None:
    append(sqlite_database, 5)
    with sqlite_database.read() as uow:
        printed = uow.audit.head()
    append(sqlite_database, 1)
    with sqlite_database.read() as uow:
        assert uow.audit.verify(printed).problem == ""
    tamper(database_file, "DELETE FROM audit_event WHERE sequence > 4")
    with sqlite_database.read() as uow:
        assert uow.audit.verify().problem == ""
        assert "was cut" in uow.audit.verify(printed).problem


@pytest.mark.parametrize(
    "act",
    [
        lambda: sa.delete(AuditEvent),
        lambda: sa.update(AuditEvent).values(actor="somebody else"),
    ],
)
@pytest.mark.checklist("A2")
def test_the_database_refuses_to_change_the_trail(database: Database, act: Callable[[], sa.Executable]) -> None:
    append(database, 1)
    with pytest.raises(RefusedError, match="never changed"), database.write() as uow:
        uow._connection.execute(act())
    with database.read() as uow:
        assert uow.audit.require_whole().n_events == 1


@pytest.mark.checklist("A1")
def test_a_lost_act_leaves_no_row(database: Database) -> None:
    with database.write() as uow:
        uow.audit.append(EPOCH, "person 1", "acted", "thing", {})
    append(database, 1)
    with database.read() as uow:
        assert uow.audit.require_whole().n_events == 1


def event(actor: str, action: str, thing: str, details: str, previous_hash: str, sequence: int = 1) -> AuditEvent:
    return AuditEvent(
        sequence=sequence,
        at=MOMENT,
        actor=actor,
        action=action,
        object=thing,
        details=details,
        previous_hash=previous_hash,
        hash="",
    )


FIELDS = st.tuples(*[st.text(max_size=6)] * 5)


@given(FIELDS, FIELDS)
def test_no_two_rows_share_a_seal(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    seals = [_seal(event(*fields)) for fields in (one, other)]
    assert (seals[0] == seals[1]) == (one == other)


@pytest.mark.checklist("A3")
def test_text_cannot_be_shifted_between_fields() -> None:
    fields = ["ab", "c", "", "", ""]
    shifted = [["a", "bc", "", "", ""], ["abc", "", "", "", ""], ["", "abc", "", "", ""]]
    assert len({_seal(event(*values)) for values in [fields, *shifted]}) == 4


@pytest.mark.checklist("A3")
def test_a_long_trail_is_verified_quickly(sqlite_database: Database) -> None:
    """Twenty thousand rows here; the bound of 2 s for 200,000 is scaled, with room for a busy machine."""
    rows, previous = [], GENESIS
    for sequence in range(1, 20_001):
        sealed = _seal(event("person 1", "acted", "thing", "{}", previous, sequence))
        rows.append((sequence, MOMENT, "person 1", "acted", "thing", "{}", previous, sealed))
        previous = sealed
    with sqlite_database.engine.connect() as connection, connection.begin():
        for chunk in itertools.batched(rows, 5_000) if hasattr(itertools, "batched") else [rows]:
            driver = connection.connection.driver_connection
            assert driver is not None
            driver.executemany("INSERT INTO audit_event VALUES (?, ?, ?, ?, ?, ?, ?, ?)", chunk)
    with sqlite_database.read() as uow:
        began = time.process_time()
        assert uow.audit.require_whole(previous).n_events == 20_000
        assert time.process_time() - began < 1.5
