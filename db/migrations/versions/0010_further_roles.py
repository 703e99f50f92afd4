"""People who hold several roles

Revision: 0010, after 0009
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("person", sa.Column("further_roles", sa.Text(), nullable=False, server_default=""))


def downgrade() -> None:
    # Rights of further roles are lost; the role named first stays.
    op.drop_column("person", "further_roles")
