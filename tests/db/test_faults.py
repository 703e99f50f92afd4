"""A store that is full, read-only, locked, foreign, damaged or newer: a plain message, and nothing half-written."""

import itertools
import os
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from alertreview.review.review import ReviewService
from core.errors import AlertReviewError, DatabaseUnavailableError, ForeignDatabaseError, RefusedError
from core.vocabulary import Answer, Decision
from db.connection import engine
from db.database import Database
from db.maintenance import bulk
from db.maintenance.copies import contents
from tests.support.faults import JumpingClock, damage, full_disk, locked
from tests.support.stored_site import EPOCH, Patients, StoredSite, child, new_run, swept_after_kill

PLAIN = ("Traceback", "sqlite3", "sqlalchemy", "canary")


@pytest.fixture
def begun(database_file: Path) -> tuple[Path, list[int]]:
    """A file with an open study; its readers."""
    with Database(f"sqlite:///{database_file}") as database:
        readers = StoredSite(database).study(6, 3)
    return database_file, readers


def vote(database: Database, reader: int) -> None:
    site = StoredSite.reopen(database)
    case = site.review.next_case("demo", reader)
    assert case is not None
    site.review.submit_judgment(
        "demo",
        reader,
        case.case_id,
        answer=Answer.RELEVANT,
        version_seen=0,
        form_key=case.form_key,
        comment="x" * 19_000,
    )


def refused(act: Callable[[], object], kind: type[AlertReviewError], words: str) -> None:
    with pytest.raises(kind, match=words) as caught:
        act()
    assert not any(word in str(caught.value) for word in PLAIN)
    assert caught.value.exit_code == 2


@pytest.mark.checklist("C5")
def test_a_full_disk_keeps_nothing_of_a_vote_and_takes_it_once_there_is_room(begun: tuple[Path, list[int]]) -> None:
    file, readers = begun
    url = f"sqlite:///{file}"
    n_kept = 0

    def vote_on(database: Database) -> None:
        nonlocal n_kept
        while True:
            vote(database, readers[0])
            n_kept += 1

    with full_disk(file), Database(url) as database:
        refused(lambda: vote_on(database), DatabaseUnavailableError, "disk of the database is full.*Free some")
    assert contents(url).n_rows["judgment"] == n_kept < 6
    with Database(url) as database:
        vote(database, readers[0])
        with database.read() as uow:
            uow.audit.require_whole()
            assert len(uow.audit.latest(action="judgment saved")) == n_kept + 1


@pytest.mark.checklist("C5")
def test_a_full_disk_in_the_middle_of_a_run_leaves_the_published_one(begun: tuple[Path, list[int]]) -> None:
    file, _readers = begun
    url = f"sqlite:///{file}"
    with Database(url) as database, database.read() as uow:
        before = uow.runs.latest_published()
    with full_disk(file, pages_left=20), Database(url) as database:
        site = StoredSite.reopen(database)

        def write() -> None:
            with database.scoring_job():
                with database.write() as uow:
                    run_id = uow.runs.start(*new_run(site.snapshot.id, len(site.instances)))
                    uow.commit()
                alerts = (site.alert(i % 12, 0, i + 1, Decision.OMISSION) for i in range(20_000))
                bulk.store_results(database, run_id, [], alerts)

        refused(write, DatabaseUnavailableError, "disk of the database is full")
        with database.read() as uow:
            assert uow.runs.latest_published() == before
    with Database(url) as database:
        assert database.sweep() == 1


@pytest.mark.checklist("C5")
def test_a_locked_database_is_said_to_be_locked(begun: tuple[Path, list[int]], monkeypatch: pytest.MonkeyPatch) -> None:
    file, readers = begun
    monkeypatch.setattr(engine, "LOCK_WAIT_SECONDS", 0.2)
    with Database(f"sqlite:///{file}") as database:
        with locked(file):
            refused(lambda: vote(database, readers[0]), DatabaseUnavailableError, "was locked for 0.2 s.*keeps it open")
        vote(database, readers[0])


@pytest.mark.checklist("C5")
def test_writers_of_one_process_take_turns_and_one_that_waits_too_long_hears_it(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "LOCK_WAIT_SECONDS", 0.1)
    with sqlite_database.write():
        refused(lambda: sqlite_database.write().__enter__(), DatabaseUnavailableError, "was locked for 0.1 s")
    with sqlite_database.write() as uow:
        uow.commit()


@pytest.mark.checklist("C5")
def test_a_damaged_file_is_said_to_be_damaged(begun: tuple[Path, list[int]]) -> None:
    file, readers = begun
    damage(file, at=4096, n_bytes=file.stat().st_size - 4096)
    with Database(f"sqlite:///{file}") as database:
        refused(
            lambda: vote(database, readers[0]), DatabaseUnavailableError, "damaged.*restore the last verified backup"
        )


@pytest.mark.checklist("C5")
def test_a_read_only_file_is_said_to_be_read_only(begun: tuple[Path, list[int]]) -> None:
    """By the file's mode as SQLite is told of it: tests may run as root, whom no permission stops."""
    file, readers = begun
    with sqlite3.connect(file) as raw:
        raw.execute("PRAGMA journal_mode = DELETE")
    raw.close()
    with Database(f"sqlite:///file:{file}?mode=ro&uri=true") as database:
        refused(lambda: vote(database, readers[0]), DatabaseUnavailableError, "read-only")


@pytest.mark.checklist("C5")
@pytest.mark.parametrize("content", ["CREATE TABLE patient (id integer)", None])
def test_a_foreign_file_is_left_as_it_is(tmp_path: Path, content: str | None) -> None:
    file = tmp_path / "other.db"
    if content is None:
        file.write_text("Not a database at all. " * 300)
    else:
        with sqlite3.connect(file) as raw:
            raw.execute(content)
        raw.close()
    before = file.read_bytes()
    with Database(f"sqlite:///{file}") as database:
        refused(database.upgrade, ForeignDatabaseError, "belongs to another program|not an SQLite database")
        refused(database.check, ForeignDatabaseError, "belongs to another program|not an SQLite database")
    assert file.read_bytes() == before


@pytest.mark.checklist("C5")
def test_a_server_that_is_not_there_is_said_to_be_away() -> None:
    with Database("postgresql://anna:canary@127.0.0.1:1/site") as database:
        refused(database.check, DatabaseUnavailableError, "cannot be reached")


@pytest.mark.checklist("C8")
def test_a_second_scoring_job_of_another_process_is_refused(database: Database) -> None:
    site = StoredSite(database)
    process = child("score-for-ever", database.url)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().strip().isdigit()
        with pytest.raises(RefusedError, match="Another scoring job is at work"), database.scoring_job():
            pass
        assert database.sweep() == 0
    finally:
        process.kill()
        process.communicate()
    assert swept_after_kill(database) == 1
    with database.scoring_job(), database.read() as uow:
        assert uow.runs.latest_published() is None
    assert site.snapshot.id == 1


@pytest.mark.checklist("C1")
def test_two_processes_vote_over_one_database(database: Database) -> None:
    site = StoredSite(database)
    readers = site.study(30, 2, n_slots=2)
    processes = [child("judge", database.url, at) for at in range(2)]
    printed = [process.communicate() for process in processes]
    assert [errors for _lines, errors in printed] == ["", ""]
    acknowledged = {
        (reader, int(line)) for reader, (lines, _) in zip(readers, printed, strict=True) for line in lines.split()
    }
    assert len(acknowledged) == 60
    with database.read() as uow:
        votes = uow.judgments.votes(uow.studies.by_slug("demo").id)
        chain = uow.audit.require_whole()
        n_saved = len(uow.audit.latest(1000, action="judgment saved"))
    assert {(vote.reviewer_id, vote.case_id) for vote in votes} == acknowledged
    assert n_saved == 60
    assert chain.n_events > 60


@pytest.mark.checklist("C7")
@pytest.mark.parametrize("jumps", [(-3600.0, 7.0), (86_400.0, -172_800.0, 1.0), (0.0,)])
def test_a_clock_that_jumps_changes_no_order(database: Database, jumps: tuple[float, ...]) -> None:
    site = StoredSite(database)
    reader = site.study(4, 3)[0]
    review = ReviewService(database, Patients, JumpingClock(EPOCH, jumps))
    case = review.next_case("demo", reader)
    assert case is not None
    for version, answer in enumerate([Answer.USUAL, Answer.RELEVANT, Answer.UNUSUAL]):
        review.submit_judgment(
            "demo",
            reader,
            case.case_id,
            answer=answer,
            version_seen=version,
            form_key=f"form {version}",
            reason="looked again" if version else "",
        )
    with database.read() as uow:
        history = uow.judgments.history(case.case_id, reader)
        uow.audit.require_whole()
        acts = [row.sequence for row in uow.audit.latest(3, action="judgment saved")]
    assert [version.answer for version in history] == [Answer.UNUSUAL, Answer.RELEVANT, Answer.USUAL]
    assert acts == sorted(acts, reverse=True)


@pytest.mark.checklist("C7")
def test_the_hour_of_an_instance_outlives_daylight_saving_and_the_zone_of_who_looks(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """08:00 in Berlin is 07:00 UTC in winter and 06:00 UTC in summer; the clocks went forward on 2026-03-29."""
    from zoneinfo import ZoneInfo

    from tests.support.stored_site import new_instances, new_snapshot, new_tasks

    berlin = ZoneInfo("Europe/Berlin")
    moments = [datetime(2026, 3, 27, 8, tzinfo=berlin) + timedelta(days=day) for day in range(5)]
    rows = [replace(row, snapshot_at=moment) for row, moment in zip(new_instances(5), moments, strict=True)]
    monkeypatch.setitem(os.environ, "TZ", "America/Lima")
    with database.write() as uow:
        stored = uow.snapshots.add(new_snapshot(), rows, new_tasks(1))
        uow.commit()
    with database.read() as uow:
        back = [row.snapshot_at for row in uow.snapshots.instances(stored.id)]
    assert [moment.astimezone(berlin).hour for moment in back] == [8] * 5
    assert [(later - former).total_seconds() / 3600 for former, later in itertools.pairwise(back)] == [
        24.0,
        23.0,
        24.0,
        24.0,
    ]
