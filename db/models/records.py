"""Tables of an import: the snapshot, its patient-state instances and its tasks."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from core.vocabulary import Kind
from db.models.base import Base, JsonObject
from db.models.types import words


class CohortSnapshot(Base):
    """One import, never changed afterwards; its arrays lie in a folder named after the content hash."""

    __tablename__ = "cohort_snapshot"

    id: Mapped[int] = mapped_column(primary_key=True)
    content_hash: Mapped[str] = mapped_column(unique=True)
    """SHA-256 of everything imported, in hexadecimal digits; the same records give the same."""
    folder: Mapped[str]
    """Name of its folder below `snapshots` in the home."""
    source_format: Mapped[str]
    """What was read: meds, omop or csv."""
    mapping_name: Mapped[str]
    """Site mapping that said what the codes mean."""
    site_timezone: Mapped[str]
    """IANA name of the zone in which instances are placed."""
    calendar_is_shifted: Mapped[bool]
    """Dates mean nothing between patients, as in de-identified records."""
    simulated: Mapped[bool]
    import_summary: Mapped[JsonObject]
    """The import report: counts of what was read and left out, never a patient."""
    created_at: Mapped[datetime]


class Instance(Base):
    """A patient at one 08:00 inside a stay; `row_index` is its row in the arrays of the snapshot."""

    __tablename__ = "instance"
    __table_args__ = (
        sa.UniqueConstraint("snapshot_id", "row_index"),
        sa.Index(None, "snapshot_id", "patient_id"),
        sa.Index(None, "snapshot_id", "snapshot_at"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    snapshot_id: Mapped[int] = mapped_column(sa.ForeignKey("cohort_snapshot.id"))
    row_index: Mapped[int]
    """Its row in the arrays of the snapshot, from 0."""
    patient_id: Mapped[str]
    stay_id: Mapped[int]
    """Number of the stay within the snapshot."""
    snapshot_at: Mapped[datetime]
    day_of_stay: Mapped[int]
    """1 on the day of admission."""
    unit: Mapped[str]
    """Care unit at the instance; empty when the source names none."""
    age_years: Mapped[float | None]
    """Age at the instance, in years."""
    sex: Mapped[str]
    """F, M, or None where the source says neither."""
    window_hours: Mapped[float]
    """Hours of the decision window: 24 unless discharge, death or the end of the data cut it."""


class Task(Base):
    """One lab order or medication; `column_index` is its column in the decisions of the snapshot."""

    __tablename__ = "task"
    __table_args__ = (
        sa.UniqueConstraint("snapshot_id", "column_index"),
        sa.UniqueConstraint("snapshot_id", "task_key"),
    )

    id: Mapped[int] = mapped_column(primary_key=True)
    snapshot_id: Mapped[int] = mapped_column(sa.ForeignKey("cohort_snapshot.id"))
    column_index: Mapped[int]
    """Its column in the decisions of the snapshot, from 0."""
    task_key: Mapped[str]
    name: Mapped[str]
    """Name for people."""
    kind: Mapped[Kind] = mapped_column(words(Kind, "kind"))
    """Kind of act."""
    order_group: Mapped[str]
    """Name of the tasks that are usually ordered together; empty when it stands alone."""
