"""Kinds of decision are registered by the program, no longer by the database

Revision: 0008, after 0007
"""

from alembic import op

revision = "0008"
down_revision = "0007"

TABLES = ("task", "alert")


def upgrade() -> None:
    for table in TABLES:
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.drop_constraint(batch_op.f(f"ck_{table}_kind"), type_="check")


def downgrade() -> None:
    # Fails, and changes nothing, where there are tasks of another kind.
    for table in TABLES:
        with op.batch_alter_table(table, schema=None) as batch_op:
            batch_op.create_check_constraint(batch_op.f(f"ck_{table}_kind"), "kind IN ('LAB_ORDER', 'MEDICATION')")
