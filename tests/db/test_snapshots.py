"""Imports in the database: kept whole or not at all, found by their contents, in the order of their arrays."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core.errors import ConflictError, InvalidInputError, NotFoundError
from db.database import Database
from db.models import UNSAVED
from tests.support.stored_site import StoredSite, new_instances, new_snapshot, new_tasks


def test_an_import_comes_back_as_it_was_stored(site: StoredSite) -> None:
    with site.database.read() as uow:
        snapshot = uow.snapshots.by_hash("a" * 64)
        assert snapshot is not None
        assert snapshot == uow.snapshots.latest() == uow.snapshots.get(snapshot.id) == site.snapshot
        assert snapshot.import_summary == {"events": 7}
        stored = uow.snapshots.instances(snapshot.id)
        assert [replace(row, id=UNSAVED, snapshot_id=UNSAVED) for row in stored] == new_instances(12)
        assert uow.snapshots.instance_ids(snapshot.id).tolist() == [row.id for row in stored]
        assert [task.name for task in uow.snapshots.tasks(snapshot.id)] == [task.name for task in new_tasks(4)]
        assert uow.snapshots.task(snapshot.id, "MEDICATION/1") == uow.snapshots.tasks(snapshot.id)[1]
        assert uow.snapshots.task(snapshot.id, "MEDICATION/99") is None
        assert set(uow.snapshots.instances_at(snapshot.id, [3, 5, 99])) == {3, 5}


def test_rows_come_back_in_array_order_whatever_order_they_were_stored_in(database: Database) -> None:
    with database.write() as uow:
        snapshot = uow.snapshots.add(new_snapshot(), reversed(new_instances(9)), reversed(new_tasks(3)))
        assert [row.row_index for row in uow.snapshots.instances(snapshot.id)] == list(range(9))
        assert [row.column_index for row in uow.snapshots.tasks(snapshot.id)] == [0, 1, 2]


def test_the_same_contents_are_stored_once(site: StoredSite) -> None:
    with pytest.raises(ConflictError, match="contradicts one it has"), site.database.write() as uow:
        uow.snapshots.add(new_snapshot(), [], [])


def test_an_import_that_breaks_in_the_middle_leaves_nothing(database: Database) -> None:
    broken = [*new_instances(3), new_instances(1)[0]]
    with pytest.raises(ConflictError), database.write() as uow:
        uow.snapshots.add(new_snapshot(), broken, new_tasks(2))
    with database.read() as uow:
        assert uow.snapshots.latest() is None


def test_a_time_without_zone_is_refused(database: Database) -> None:
    naive = [replace(new_instances(1)[0], snapshot_at=datetime.fromisoformat("2026-01-01T08:00"))]
    with pytest.raises(InvalidInputError, match="without time zone"), database.write() as uow:
        uow.snapshots.add(new_snapshot(), naive, [])


def test_a_snapshot_time_is_the_same_moment_in_any_zone(database: Database) -> None:
    zone = datetime(2026, 3, 29, 8, tzinfo=UTC).astimezone(tz=None).tzinfo
    moment = datetime(2026, 3, 29, 8, tzinfo=zone)
    row = replace(new_instances(1)[0], snapshot_at=moment)
    with database.write() as uow:
        snapshot = uow.snapshots.add(new_snapshot(), [row], [])
        stored = uow.snapshots.instances(snapshot.id)[0].snapshot_at
    assert stored == moment
    assert stored.utcoffset() == timedelta(0)


def test_what_is_not_there_is_said_to_be_missing(database: Database) -> None:
    with database.read() as uow:
        with pytest.raises(NotFoundError, match="no import 7"):
            uow.snapshots.get(7)
        with pytest.raises(NotFoundError, match="no instance 7"):
            uow.snapshots.instance(7)
