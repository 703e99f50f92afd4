"""Tables of an import: the snapshot, its patient-state instances and its tasks."""

from datetime import datetime

import sqlalchemy as sa
from sqlalchemy.orm import Mapped, mapped_column

from core.vocabulary import Kind
from db.models.base import Base, JsonObject
from db.types import words


class CohortSnapshot(Base):
    """One import, never changed afterwards; its arrays lie in a folder named after the content hash."""

    __tablename__ = "cohort_snapshot"

    id: Mapped[int] = mapped_column(primary_key=True)
    content_hash: Mapped[str] = mapped_column(unique=True)
    folder: Mapped[str]
    source_format: Mapped[str]
    mapping_name: Mapped[str]
    site_timezone: Mapped[str]
    calendar_is_shifted: Mapped[bool]
    simulated: Mapped[bool]
    import_summary: Mapped[JsonObject]
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
    patient_id: Mapped[str]
    stay_id: Mapped[int]
    snapshot_at: Mapped[datetime]
    day_of_stay: Mapped[int]
    unit: Mapped[str]
    age_years: Mapped[float | None]
    sex: Mapped[str]
    window_hours: Mapped[float]


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
    task_key: Mapped[str]
    name: Mapped[str]
    kind: Mapped[Kind] = mapped_column(words(Kind, "kind"))
    order_group: Mapped[str]
