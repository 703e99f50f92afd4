"""Seals of units, sensitivity, accounts and tokens: `Database.upgrade` makes them, no table changes

Revision: 0012, after 0011
"""

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Change nothing: the number is what tells that a version without these seals was at work."""


def downgrade() -> None:
    """Change nothing: versions before do not look for these seals."""
