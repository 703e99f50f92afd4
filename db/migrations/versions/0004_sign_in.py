"""Accounts, sessions and unit scopes

Revision: 0004, after 0003
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

SOURCES = ("local", "oidc", "proxy")
TABLES = ("account", "sign_in_session", "sign_in_flow", "unit_scope")


def upgrade() -> None:
    # Not in a batch: that would rebuild the table and lose the trigger that keeps people from being deleted.
    op.add_column("person", sa.Column("all_units", sa.Boolean(), nullable=False, server_default=sa.true()))
    create_account()
    create_sign_in_session()
    create_sign_in_flow()
    op.create_table(
        "unit_scope",
        sa.Column("person_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("unit", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_unit_scope_person_id_person")),
        sa.PrimaryKeyConstraint("person_id", "unit", name=op.f("pk_unit_scope")),
    )


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
    op.drop_column("person", "all_units")


def source() -> sa.Column[str]:
    kinds = sa.Enum(*SOURCES, name="source", native_enum=False, create_constraint=True, length=20)
    return sa.Column("source", kinds, nullable=False)


def create_account() -> None:
    op.create_table(
        "account",
        sa.Column("person_id", sa.Integer(), autoincrement=False, nullable=False),
        source(),
        sa.Column("login", sa.Text(), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=True),
        sa.Column("code_hash", sa.Text(), nullable=True),
        sa.Column("code_expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("locked_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("login <> ''", name=op.f("ck_account_login_given")),
        sa.CheckConstraint("failures >= 0", name=op.f("ck_account_failures_counted")),
        sa.CheckConstraint("(code_hash IS NULL) = (code_expires_at IS NULL)", name=op.f("ck_account_code_expires")),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_account_person_id_person")),
        sa.PrimaryKeyConstraint("person_id", name=op.f("pk_account")),
        sa.UniqueConstraint("source", "login", name=op.f("uq_account_source_login")),
    )


def create_sign_in_session() -> None:
    op.create_table(
        "sign_in_session",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("token_hash", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Integer(), nullable=False),
        source(),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("last_seen_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("confirmed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("end_reason", sa.Text(), nullable=False),
        sa.Column("browser", sa.Text(), nullable=False),
        sa.CheckConstraint("length(token_hash) = 64", name=op.f("ck_sign_in_session_hash_length")),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"], name=op.f("fk_sign_in_session_person_id_person")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_sign_in_session")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_sign_in_session_token_hash")),
    )
    op.create_index(op.f("ix_sign_in_session_person_id"), "sign_in_session", ["person_id"], unique=False)


def create_sign_in_flow() -> None:
    op.create_table(
        "sign_in_flow",
        sa.Column("state_hash", sa.Text(), nullable=False),
        sa.Column("nonce", sa.Text(), nullable=False),
        sa.Column("code_verifier", sa.Text(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("confirms_session_id", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["confirms_session_id"],
            ["sign_in_session.id"],
            name=op.f("fk_sign_in_flow_confirms_session_id_sign_in_session"),
        ),
        sa.PrimaryKeyConstraint("state_hash", name=op.f("pk_sign_in_flow")),
    )
    op.create_index(op.f("ix_sign_in_flow_created_at"), "sign_in_flow", ["created_at"], unique=False)
    op.create_index(op.f("ix_sign_in_flow_confirms_session_id"), "sign_in_flow", ["confirms_session_id"], unique=False)
