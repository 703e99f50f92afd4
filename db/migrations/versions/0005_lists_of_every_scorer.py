"""Alerts of every scorer of a run, what a run learned, and runs that score new instances against it

Revision: 0005, after 0004
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

LISTED_BY = (
    ("rank", "decision", "window_cut"),
    ("unit", "rank", "decision", "window_cut"),
    ("kind", "rank", "decision", "window_cut"),
    ("task_id", "rank", "decision", "window_cut"),
)
TO_FIRST_SCORER = "UPDATE alert SET scorer = (SELECT scorer FROM scoring_run WHERE scoring_run.id = alert.run_id)"
DROP_FURTHER = "DELETE FROM alert WHERE scorer <> (SELECT scorer FROM scoring_run WHERE scoring_run.id = alert.run_id)"


def upgrade() -> None:
    # Everything stored so far is of the first scorer of its run.
    op.add_column("alert", sa.Column("scorer", sa.Text(), nullable=True))
    op.execute(TO_FIRST_SCORER)
    drop_indexes(("run_id",))
    with op.batch_alter_table("alert", schema=None) as batch_op:
        batch_op.alter_column("scorer", existing_type=sa.Text(), nullable=False)
        batch_op.drop_constraint("uq_alert_run_id_decision_rank", type_="unique")
        batch_op.create_unique_constraint(
            batch_op.f("uq_alert_run_id_scorer_decision_rank"), ["run_id", "scorer", "decision", "rank"]
        )
    create_indexes(("run_id", "scorer"))
    with op.batch_alter_table("scoring_run", schema=None) as batch_op:
        batch_op.add_column(sa.Column("base_run_id", sa.Integer(), nullable=True))
        batch_op.add_column(sa.Column("model_folder", sa.Text(), nullable=False, server_default=""))
        batch_op.create_foreign_key(
            batch_op.f("fk_scoring_run_base_run_id_scoring_run"), "scoring_run", ["base_run_id"], ["id"]
        )
        batch_op.create_index(batch_op.f("ix_scoring_run_base_run_id"), ["base_run_id"], unique=False)
    with op.batch_alter_table("scoring_run", schema=None) as batch_op:
        batch_op.alter_column("model_folder", existing_type=sa.Text(), existing_nullable=False, server_default=None)


def downgrade() -> None:
    with op.batch_alter_table("scoring_run", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_scoring_run_base_run_id"))
        batch_op.drop_constraint(batch_op.f("fk_scoring_run_base_run_id_scoring_run"), type_="foreignkey")
        batch_op.drop_column("model_folder")
        batch_op.drop_column("base_run_id")
    # The older schema knows one scorer's list for each run.
    op.execute(DROP_FURTHER)
    drop_indexes(("run_id", "scorer"))
    with op.batch_alter_table("alert", schema=None) as batch_op:
        batch_op.drop_constraint("uq_alert_run_id_scorer_decision_rank", type_="unique")
        batch_op.create_unique_constraint(batch_op.f("uq_alert_run_id_decision_rank"), ["run_id", "decision", "rank"])
        batch_op.drop_column("scorer")
    create_indexes(("run_id",))


def drop_indexes(first: tuple[str, ...]) -> None:
    for listed_by in LISTED_BY:
        op.drop_index(op.f("_".join(("ix_alert", *first, *listed_by))), table_name="alert")


def create_indexes(first: tuple[str, ...]) -> None:
    for listed_by in LISTED_BY:
        columns = (*first, *listed_by)
        op.create_index(op.f("_".join(("ix_alert", *columns))), "alert", list(columns), unique=False)
