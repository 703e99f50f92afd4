"""Rows that must stay cannot be replaced either

Revision: 0009, after 0008
"""

from alembic import op

from db.migrations.append_only import refuse_replacing

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

TABLES = (
    "adjudication",
    "audit_event",
    "judgment",
    "person",
    "report_signature",
    "rubric",
    "triage",
    "triage_act",
    "triage_note",
)


def upgrade() -> None:
    for table in TABLES:
        refuse_replacing(table)


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        for table in TABLES:
            op.execute(f"DROP TRIGGER {table}_refuses_replace")
