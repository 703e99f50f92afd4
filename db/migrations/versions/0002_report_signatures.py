"""Signatures under reports

Revision: 0002, after 0001
"""

import sqlalchemy as sa
from alembic import op

from db.migrations.append_only import allow_once, refuse

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

TABLE = "report_signature"


def upgrade() -> None:
    op.create_table(
        TABLE,
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("study_id", sa.Integer(), nullable=False),
        sa.Column("signer_id", sa.Integer(), nullable=False),
        sa.Column("signer_name", sa.Text(), nullable=False),
        sa.Column("meaning", sa.Text(), nullable=False),
        sa.Column("signed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("superseded_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint("signer_name <> '' AND meaning <> ''", name=op.f("ck_report_signature_name_and_meaning")),
        sa.CheckConstraint("length(content_hash) = 64", name=op.f("ck_report_signature_hash_length")),
        sa.ForeignKeyConstraint(["signer_id"], ["person.id"], name=op.f("fk_report_signature_signer_id_person")),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_report_signature_study_id_study")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_report_signature")),
    )
    with op.batch_alter_table(TABLE, schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_report_signature_signer_id"), ["signer_id"], unique=False)
        batch_op.create_index(batch_op.f("ix_report_signature_study_id"), ["study_id"], unique=False)
    refuse(TABLE, "DELETE")
    fixed = ("id", "study_id", "signer_id", "signer_name", "meaning", "signed_at", "content_hash")
    allow_once(TABLE, "superseded_at", fixed)


def downgrade() -> None:
    op.drop_table(TABLE)
