"""Triage acts and where decisions stand, notes, saved views, instances by day

Revision: 0003, after 0002
"""

import sqlalchemy as sa
from alembic import op

from db.migrations.append_only import refuse

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

STATES = ("new", "in_review", "actioned", "dismissed", "snoozed")
DAY_INDEX = "ix_instance_snapshot_id_snapshot_at"


def upgrade() -> None:
    create_triage_act()
    create_triage()
    create_triage_note()
    create_saved_view()
    op.create_index(op.f(DAY_INDEX), "instance", ["snapshot_id", "snapshot_at"], unique=False)
    refuse("triage_act", "UPDATE", "DELETE")
    refuse("triage", "DELETE")
    refuse("triage_note", "UPDATE", "DELETE")


def downgrade() -> None:
    op.drop_index(op.f(DAY_INDEX), table_name="instance")
    for table in ("saved_view", "triage_note", "triage", "triage_act"):
        op.drop_table(table)


def big_id() -> sa.Column[int]:
    return sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False)


def decision() -> tuple[sa.Column[str], sa.Column[object], sa.Column[str]]:
    return (
        sa.Column("patient_id", sa.Text(), nullable=False),
        sa.Column("snapshot_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("task_key", sa.Text(), nullable=False),
    )


def state(column: str, constraint: str) -> sa.Column[str]:
    kind = sa.Enum(*STATES, name=op.f(constraint), native_enum=False, create_constraint=True, length=20)
    return sa.Column(column, kind, nullable=False)


def create_triage_act() -> None:
    op.create_table(
        "triage_act",
        big_id(),
        *decision(),
        sa.Column("version", sa.Integer(), nullable=False),
        state("former_state", "ck_triage_act_former_state"),
        state("state", "ck_triage_act_state"),
        sa.Column("snoozed_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("acted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("form_key", sa.Text(), nullable=False),
        sa.CheckConstraint("version >= 1", name=op.f("ck_triage_act_version_from_one")),
        sa.CheckConstraint("state <> 'dismissed' OR reason <> ''", name=op.f("ck_triage_act_reason_given")),
        sa.CheckConstraint("(state = 'snoozed') = (snoozed_until IS NOT NULL)", name=op.f("ck_triage_act_snooze_ends")),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_triage_act_person_id_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_triage_act")),
        sa.UniqueConstraint(
            "form_key",
            "patient_id",
            "snapshot_at",
            "task_key",
            name=op.f("uq_triage_act_form_key_patient_id_snapshot_at_task_key"),
        ),
        sa.UniqueConstraint(
            "patient_id",
            "snapshot_at",
            "task_key",
            "version",
            name=op.f("uq_triage_act_patient_id_snapshot_at_task_key_version"),
        ),
    )
    with op.batch_alter_table("triage_act", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_triage_act_person_id"), ["person_id"], unique=False)


def create_triage() -> None:
    op.create_table(
        "triage",
        *decision(),
        sa.Column("version", sa.Integer(), nullable=False),
        state("state", "ck_triage_state"),
        sa.Column("snoozed_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("act_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.ForeignKeyConstraint(["act_id"], ["triage_act.id"], name=op.f("fk_triage_act_id_triage_act")),
        sa.PrimaryKeyConstraint("patient_id", "snapshot_at", "task_key", name=op.f("pk_triage")),
    )
    with op.batch_alter_table("triage", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_triage_act_id"), ["act_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_triage_state"), ["state"], unique=False)


def create_triage_note() -> None:
    op.create_table(
        "triage_note",
        big_id(),
        *decision(),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        sa.Column("written_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("form_key", sa.Text(), nullable=False),
        sa.CheckConstraint("text <> ''", name=op.f("ck_triage_note_some_text")),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_triage_note_person_id_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_triage_note")),
        sa.UniqueConstraint("form_key", name=op.f("uq_triage_note_form_key")),
    )
    with op.batch_alter_table("triage_note", schema=None) as batch_op:
        batch_op.create_index(
            batch_op.f("ix_triage_note_patient_id_snapshot_at_task_key"),
            ["patient_id", "snapshot_at", "task_key"],
            unique=False,
        )
        batch_op.create_index(batch_op.f("ix_triage_note_person_id"), ["person_id"], unique=False)


def create_saved_view() -> None:
    op.create_table(
        "saved_view",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("owner_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("is_shared", sa.Boolean(), nullable=False),
        sa.Column("address", sa.JSON(), nullable=False),
        sa.Column("saved_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("name <> ''", name=op.f("ck_saved_view_some_name")),
        sa.ForeignKeyConstraint(["owner_id"], ["person.id"], name=op.f("fk_saved_view_owner_id_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_saved_view")),
        sa.UniqueConstraint("owner_id", "name", name=op.f("uq_saved_view_owner_id_name")),
    )
    with op.batch_alter_table("saved_view", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_saved_view_is_shared"), ["is_shared"], unique=False)
