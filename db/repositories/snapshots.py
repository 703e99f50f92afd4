"""Imports: snapshots with their instances and tasks."""

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
import numpy.typing as npt
from sqlalchemy import select

from core.vocabulary import InstanceId, SnapshotId
from db.cache import cached
from db.models import Account, CohortSnapshot, Instance, Task
from db.queries.reading import Repository, given, in_parts, select_records, stored_values
from db.queries.seals import mark
from db.repositories.inserting import insert_many

_ROWS_AT_ONCE = 10_000
"""Rows written together: a site of a million instances must not stand in memory as objects."""
_BY_ID = select_records(CohortSnapshot).where(CohortSnapshot.id == given("snapshot_id"))
_ALL = select_records(CohortSnapshot).order_by(CohortSnapshot.id)
_LATEST = select_records(CohortSnapshot).order_by(CohortSnapshot.id.desc()).limit(1)
_LATEST_IS_SIMULATED = _LATEST.with_only_columns(CohortSnapshot.simulated)
_IS_DEMONSTRATION = _LATEST_IS_SIMULATED.where(~select(Account.person_id).exists())


class Snapshots(Repository):
    """Imports with their instances and tasks."""

    def add(self, snapshot: CohortSnapshot, instances: Iterable[Instance], tasks: Iterable[Task]) -> CohortSnapshot:
        """Store an import, all or nothing with the unit of work; instances and tasks become those of the snapshot.

        Raise ConflictError if an import with the same content hash is stored already: ask `by_hash` first.
        """
        snapshot_id = self._insert(snapshot)
        for model, records in ((Instance, instances), (Task, tasks)):
            waiting = iter(records)
            while some := [stored_values(one) | {"snapshot_id": snapshot_id} for one in islice(waiting, _ROWS_AT_ONCE)]:
                insert_many(self._connection, model.__table__, some)
        mark(self._connection, "import", snapshot_id)
        return self.get(snapshot_id)

    def get(self, snapshot_id: SnapshotId) -> CohortSnapshot:
        """Return a snapshot by its number; raise NotFoundError if there is none."""
        missing = f"There is no import {snapshot_id}."
        return cached(
            self._caches,
            "snapshot",
            snapshot_id,
            lambda: self._the(CohortSnapshot, _BY_ID, missing, snapshot_id_=snapshot_id),
        )

    def by_hash(self, content_hash: str) -> CohortSnapshot | None:
        """Return the snapshot with these contents, None when they were never imported."""
        return self._one(
            CohortSnapshot, select_records(CohortSnapshot).where(CohortSnapshot.content_hash == content_hash)
        )

    def latest(self) -> CohortSnapshot | None:
        """Return the import stored last, None when there is none."""
        return self._one(CohortSnapshot, _LATEST)

    def latest_is_simulated(self) -> bool:
        """Return whether the import stored last has no real patients; False when there is none."""
        return bool(self._run(_LATEST_IS_SIMULATED).scalar())

    def are_a_demonstration(self) -> bool:
        """Return whether the latest import is simulated and nobody has an account."""
        return bool(self._run(_IS_DEMONSTRATION).scalar())

    def all(self) -> list[CohortSnapshot]:
        """Return every import, oldest first."""
        return self._all(CohortSnapshot, _ALL)

    def instances(self, snapshot_id: SnapshotId) -> list[Instance]:
        """Return all instances of a snapshot in row order."""
        mine = select_records(Instance).where(Instance.snapshot_id == snapshot_id)
        return self._all(Instance, mine.order_by(Instance.row_index))

    def instance(self, instance_id: InstanceId) -> Instance:
        """Return one instance by its number; raise NotFoundError if there is none."""
        own = select_records(Instance).where(Instance.id == instance_id)
        return self._the(Instance, own, f"There is no instance {instance_id}.")

    def instances_at(self, snapshot_id: SnapshotId, row_indices: Sequence[int]) -> dict[int, Instance]:
        """Return the instances in some rows of a snapshot, by row; rows that do not exist are left out."""
        mine = select_records(Instance).where(Instance.snapshot_id == snapshot_id)
        return {
            instance.row_index: instance
            for rows in in_parts(row_indices)
            for instance in self._all(Instance, mine.where(Instance.row_index.in_(rows)))
        }

    def instance_ids(self, snapshot_id: SnapshotId) -> npt.NDArray[np.int64]:
        """Return the numbers of the instances, of shape (n_instances,), in row order."""
        statement = select(Instance.id).where(Instance.snapshot_id == snapshot_id).order_by(Instance.row_index)
        return np.array(self._run(statement).scalars().all(), dtype=np.int64)

    def tasks(self, snapshot_id: SnapshotId) -> list[Task]:
        """Return all tasks of a snapshot in column order."""
        mine = select_records(Task).where(Task.snapshot_id == snapshot_id)
        return self._all(Task, mine.order_by(Task.column_index))

    def task(self, snapshot_id: SnapshotId, task_key: str) -> Task | None:
        """Return a task by its key, None when the snapshot has none of this key."""
        return self._one(Task, select_records(Task).where(Task.snapshot_id == snapshot_id, Task.task_key == task_key))
