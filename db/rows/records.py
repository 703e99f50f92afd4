"""Rows of an import: snapshot, instances, tasks."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from core.vocabulary import Kind


@dataclass(frozen=True, slots=True)
class NewSnapshot:
    """An import to be stored; fields as in `core.cohort.cohort.Cohort`."""

    content_hash: str
    folder: str
    """Name of the folder inside the home."""
    source_format: str
    mapping_name: str
    site_timezone: str
    calendar_is_shifted: bool
    simulated: bool
    import_summary: dict[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SnapshotRow(NewSnapshot):
    """A stored import."""

    id: int


@dataclass(frozen=True, slots=True)
class NewInstance:
    """A patient-state instance to be stored; `row_index` is its row in the arrays of the snapshot."""

    row_index: int
    patient_id: str
    stay_id: int
    snapshot_at: datetime
    """Aware; the site's zone attached by the caller."""
    day_of_stay: int
    unit: str
    age_years: float | None
    sex: str
    window_hours: float


@dataclass(frozen=True, slots=True)
class InstanceRow(NewInstance):
    """A stored instance."""

    id: int
    snapshot_id: int


@dataclass(frozen=True, slots=True)
class NewTask:
    """A task to be stored; `column_index` is its column in the decisions of the snapshot."""

    column_index: int
    task_key: str
    name: str
    kind: Kind
    order_group: str


@dataclass(frozen=True, slots=True)
class TaskRow(NewTask):
    """A stored task."""

    id: int
    snapshot_id: int
