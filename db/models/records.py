"""Tables of an import: the snapshot, its patient-state instances and its tasks."""

from datetime import datetime

import sqlalchemy as sa

from core.kinds import Kind
from core.vocabulary import InstanceId, SnapshotId, TaskId
from db.models.base import UNSAVED, Column, JsonObject, Record, column
from db.models.types import words


class CohortSnapshot(Record):
    """One import, never changed afterwards; its arrays lie in a folder named after the content hash."""

    __tablename__ = "cohort_snapshot"

    id: Column[SnapshotId] = column(primary_key=True, default=UNSAVED)
    content_hash: Column[str] = column(unique=True)
    """SHA-256 of everything imported, in hexadecimal digits; the same records give the same."""
    folder: Column[str]
    """Name of its folder below `snapshots` in the home."""
    source_format: Column[str]
    """Format of the records that were read, such as meds."""
    mapping_name: Column[str]
    """Site mapping that said what the codes mean."""
    site_timezone: Column[str]
    """IANA name of the zone in which instances are placed."""
    calendar_is_shifted: Column[bool]
    """Dates mean nothing between patients, as in de-identified records."""
    simulated: Column[bool]
    import_summary: Column[JsonObject]
    """The import report: counts of what was read and left out, never a patient."""
    created_at: Column[datetime]


class Instance(Record):
    """A patient at one snapshot hour inside a stay; `row_index` is its row in the arrays of the snapshot."""

    __tablename__ = "instance"
    __table_args__ = (
        sa.UniqueConstraint("snapshot_id", "row_index"),
        sa.Index(None, "snapshot_id", "patient_id"),
        sa.Index(None, "snapshot_id", "snapshot_at"),
    )

    id: Column[InstanceId] = column(primary_key=True, default=UNSAVED)
    snapshot_id: Column[SnapshotId] = column(sa.ForeignKey("cohort_snapshot.id"), default=UNSAVED)
    row_index: Column[int]
    """Its row in the arrays of the snapshot, from 0."""
    patient_id: Column[str]
    stay_id: Column[int]
    """Number of the stay within the snapshot."""
    snapshot_at: Column[datetime]
    day_of_stay: Column[int]
    """1 on the day of admission."""
    unit: Column[str]
    """Care unit at the instance; empty when the source names none."""
    age_years: Column[float | None]
    """Age at the instance, in years."""
    sex: Column[str]
    """F, M, or None where the source says neither."""
    window_hours: Column[float]
    """Hours of the decision window: 24 unless discharge, death or the end of the data cut it."""


class Task(Record):
    """What could be ordered or given; `column_index` is its column in the decisions of the snapshot."""

    __tablename__ = "task"
    __table_args__ = (
        sa.UniqueConstraint("snapshot_id", "column_index"),
        sa.UniqueConstraint("snapshot_id", "task_key"),
    )

    id: Column[TaskId] = column(primary_key=True, default=UNSAVED)
    snapshot_id: Column[SnapshotId] = column(sa.ForeignKey("cohort_snapshot.id"), default=UNSAVED)
    column_index: Column[int]
    """Its column in the decisions of the snapshot, from 0."""
    task_key: Column[str]
    name: Column[str]
    """Name for people."""
    kind: Column[Kind] = column(words(Kind, "kind", checked=False))
    """Kind of act."""
    order_group: Column[str]
    """Name of the tasks that are usually ordered together; empty when it stands alone."""
