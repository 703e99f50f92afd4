"""Imports: snapshots with their instances and tasks."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import cast

import numpy as np
import numpy.typing as npt
from sqlalchemy import Table, insert, select
from sqlalchemy.engine import Connection

from db.cache import Caches, cached
from db.models import CohortSnapshot, Instance, Task
from db.queries.reading import columns, read_all, read_one, read_the, run, values
from db.queries.runs import latest_is_simulated, latest_snapshot, snapshot_by_number
from db.repositories.inserting import insert_many
from db.rows import InstanceRow, NewInstance, NewSnapshot, NewTask, SnapshotRow, TaskRow

_ROWS_IN_A_QUERY = 500
_ROWS_AT_ONCE = 10_000
"""Rows written together: a site of a million instances must not stand in memory as objects."""


class Snapshots:
    """Snapshots of the unit of work's connection."""

    def __init__(self, connection: Connection, caches: Caches | None = None) -> None:
        self._connection = connection
        self._caches = caches

    def add(self, snapshot: NewSnapshot, instances: Iterable[NewInstance], tasks: Iterable[NewTask]) -> SnapshotRow:
        """Store an import, all or nothing with the unit of work.

        Raises
        ------
        ConflictError
            If an import with the same content hash is stored already: ask `by_hash` first.
        """
        snapshot_id = self._connection.execute(
            insert(CohortSnapshot).values(values(snapshot)).returning(CohortSnapshot.id)
        ).scalar_one()
        self._insert(Instance, snapshot_id, instances)
        self._insert(Task, snapshot_id, tasks)
        return self.get(snapshot_id)

    def get(self, snapshot_id: int) -> SnapshotRow:
        """Return a snapshot by its number.

        Raises
        ------
        NotFoundError
            If there is none.
        """
        missing = f"There is no import {snapshot_id}."
        return cached(
            self._caches,
            "snapshot",
            snapshot_id,
            lambda: read_the(self._connection, SnapshotRow, snapshot_by_number(), missing, snapshot_id=snapshot_id),
        )

    def by_hash(self, content_hash: str) -> SnapshotRow | None:
        """Return the snapshot with these contents, None when they were never imported."""
        statement = select(*columns(CohortSnapshot, SnapshotRow)).where(CohortSnapshot.content_hash == content_hash)
        return read_one(self._connection, SnapshotRow, statement)

    def latest(self) -> SnapshotRow | None:
        """Return the import stored last, None when there is none."""
        return read_one(self._connection, SnapshotRow, latest_snapshot())

    def latest_is_simulated(self) -> bool:
        """Return whether the import stored last has no real patients; False when there is none."""
        return bool(run(self._connection, latest_is_simulated()).scalar())

    def all(self) -> list[SnapshotRow]:
        """Return every import, oldest first."""
        statement = select(*columns(CohortSnapshot, SnapshotRow)).order_by(CohortSnapshot.id)
        return read_all(self._connection, SnapshotRow, statement)

    def instances(self, snapshot_id: int) -> list[InstanceRow]:
        """Return all instances of a snapshot in row order."""
        statement = (
            select(*columns(Instance, InstanceRow))
            .where(Instance.snapshot_id == snapshot_id)
            .order_by(Instance.row_index)
        )
        return read_all(self._connection, InstanceRow, statement)

    def instance(self, instance_id: int) -> InstanceRow:
        """Return one instance by its number.

        Raises
        ------
        NotFoundError
            If there is none.
        """
        statement = select(*columns(Instance, InstanceRow)).where(Instance.id == instance_id)
        missing = f"There is no instance {instance_id}."
        return read_the(self._connection, InstanceRow, statement, missing)

    def instances_at(self, snapshot_id: int, row_indices: Sequence[int]) -> dict[int, InstanceRow]:
        """Return the instances in some rows of a snapshot, by row; rows that do not exist are left out."""
        found: dict[int, InstanceRow] = {}
        for start in range(0, len(row_indices), _ROWS_IN_A_QUERY):
            statement = select(*columns(Instance, InstanceRow)).where(
                Instance.snapshot_id == snapshot_id,
                Instance.row_index.in_(row_indices[start : start + _ROWS_IN_A_QUERY]),
            )
            found |= {row.row_index: row for row in read_all(self._connection, InstanceRow, statement)}
        return found

    def instance_ids(self, snapshot_id: int) -> npt.NDArray[np.int64]:
        """Return the numbers of the instances, of shape (n_instances,), in row order."""
        statement = select(Instance.id).where(Instance.snapshot_id == snapshot_id).order_by(Instance.row_index)
        return np.array(self._connection.execute(statement).scalars().all(), dtype=np.int64)

    def tasks(self, snapshot_id: int) -> list[TaskRow]:
        """Return all tasks of a snapshot in column order."""
        statement = select(*columns(Task, TaskRow)).where(Task.snapshot_id == snapshot_id).order_by(Task.column_index)
        return read_all(self._connection, TaskRow, statement)

    def task(self, snapshot_id: int, task_key: str) -> TaskRow | None:
        """Return a task by its key, None when the snapshot has none of this key."""
        statement = select(*columns(Task, TaskRow)).where(Task.snapshot_id == snapshot_id, Task.task_key == task_key)
        return read_one(self._connection, TaskRow, statement)

    def _insert(
        self, model: type[Instance | Task], snapshot_id: int, rows: Iterable[NewInstance] | Iterable[NewTask]
    ) -> None:
        waiting = iter(rows)
        while prepared := [{"snapshot_id": snapshot_id, **values(row)} for row in islice(waiting, _ROWS_AT_ONCE)]:
            insert_many(self._connection, cast(Table, model.__table__), prepared)
