"""Sensitivity curves beside a run

Revision: 0006, after 0005
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "run_sensitivity",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("computed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("code_version", sa.Text(), nullable=False),
        sa.Column("curves", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["scoring_run.id"], name=op.f("fk_run_sensitivity_run_id_scoring_run")),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_run_sensitivity")),
    )


def downgrade() -> None:
    op.drop_table("run_sensitivity")
