"""The schema of release 0.1.0, from which sites are upgraded; a new site is made from the models instead

Revision: 0007, the first
"""

revision = "0007"
down_revision = None


def upgrade() -> None:
    """Change nothing: no database is made by steps."""


def downgrade() -> None:
    """Change nothing: there was no release before."""
