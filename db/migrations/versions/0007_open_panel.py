"""Studies whose readers may see the scores

Revision: 0007, after 0006
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Every study so far was read blindly.
    op.add_column("study", sa.Column("is_open_panel", sa.Boolean(), nullable=False, server_default=sa.false()))


def downgrade() -> None:
    op.drop_column("study", "is_open_panel")
