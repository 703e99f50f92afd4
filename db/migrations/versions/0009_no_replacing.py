"""Rows that must stay cannot be replaced either

Revision: 0009, after 0008
"""

from alembic import op

from db.migrations.append_only import GUARDED, refuse_replacing

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    for table in GUARDED:
        refuse_replacing(op.get_bind(), table)


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for table in GUARDED:
            op.execute(f"DROP TRIGGER {table}_refuses_replace")
