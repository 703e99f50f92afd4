"""Tables of the people who use the dashboard, never deleted, and of how they sign in."""

from datetime import datetime

import sqlalchemy as sa

from core.vocabulary import PersonId, Role, SessionId, SignInSource
from db.models.base import UNSAVED, Column, Record, column


class Person(Record):
    """Somebody with one role or several; leaves by being deactivated, because judgments keep their reader."""

    __tablename__ = "person"

    id: Column[PersonId] = column(primary_key=True, default=UNSAVED)
    name: Column[str] = column(unique=True)
    """Name for people; nobody has another's."""
    role: Column[Role]
    """What the person may do; with several roles, the one named first."""
    further_roles: Column[str] = column(sa.Text, server_default="", default="")
    """Roles held besides, as words with a space between."""
    simulated: Column[bool] = column(default=False)
    active: Column[bool] = column(default=True)
    """False: may no longer sign in or judge."""
    created_at: Column[datetime]
    all_units: Column[bool] = column(server_default=sa.true(), default=True)
    """False: only patients of the units in `UnitScope`; without a row there, of none."""

    @property
    def roles(self) -> frozenset[Role]:
        """Every role of the person, whose rights add up."""
        return frozenset((self.role, *map(Role, self.further_roles.split())))


class Account(Record):
    """How a person signs in: by a password of this site, or by a name that somebody else vouches for.

    `failures` counts attempts since the last success; an attempt is counted before its password is looked at, so that
    many at once are no way around the lock.
    """

    __tablename__ = "account"
    __table_args__ = (
        sa.UniqueConstraint("source", "login"),
        sa.CheckConstraint("login <> ''", name="login_given"),
        sa.CheckConstraint("failures >= 0", name="failures_counted"),
        sa.CheckConstraint("(code_hash IS NULL) = (code_expires_at IS NULL)", name="code_expires"),
    )

    person_id: Column[PersonId] = column(sa.ForeignKey("person.id"), primary_key=True, autoincrement=False)
    source: Column[SignInSource]
    """Who vouches for the person."""
    login: Column[str]
    """Without difference between capital and small letters: stored case-folded."""
    password_hash: Column[str | None] = column(default=None)
    """Argon2id with its parameters and salt; None until the one-time code was used, and for outside sources."""
    code_hash: Column[str | None] = column(default=None)
    """Hash of the one-time code; empty when there is none."""
    code_expires_at: Column[datetime | None] = column(default=None)
    """Until when the one-time code is good."""
    failures: Column[int] = column(default=0)
    """Failed attempts since the last success."""
    locked_until: Column[datetime | None] = column(default=None)
    """Until when too many failures close the account."""
    created_at: Column[datetime]


class SignInSession(Record):
    """One browser that signed in; the token itself is only in its cookie."""

    __tablename__ = "sign_in_session"
    __table_args__ = (sa.CheckConstraint("length(token_hash) = 64", name="hash_length"),)

    id: Column[SessionId] = column(primary_key=True, default=UNSAVED)
    token_hash: Column[str] = column(unique=True)
    """SHA-256 of the token, in hexadecimal digits."""
    person_id: Column[PersonId] = column(sa.ForeignKey("person.id"), index=True)
    source: Column[SignInSource]
    """Who vouched for the person."""
    created_at: Column[datetime]
    last_seen_at: Column[datetime]
    """Last act; the idle limit counts from here."""
    expires_at: Column[datetime]
    """However busy, a session ends then."""
    confirmed_at: Column[datetime | None] = column(default=None)
    """When fresh credentials were given for a signature; empty again once it is used."""
    ended_at: Column[datetime | None] = column(default=None)
    """When it ended; empty while it lasts."""
    end_reason: Column[str] = column(default="")
    """Why it ended."""
    browser: Column[str]
    """What the browser says it is, shortened, so that a person recognises her sessions."""


class Holder(Record):
    """The person behind a session or a token."""

    name: str
    role: Role
    further_roles: str
    active: bool
    all_units: bool
    login: str | None
    """Name by which the source knows the person; None without an account."""


class SignedInSession(SignInSession, Holder):
    """A session and the person behind it."""


class SignInFlow(Record):
    """A browser that was sent to the identity provider and is expected back; used once."""

    __tablename__ = "sign_in_flow"

    state_hash: Column[str] = column(primary_key=True)
    """Hash of what the browser has to bring back."""
    nonce: Column[str]
    """Number that the provider's answer has to repeat."""
    code_verifier: Column[str]
    """Secret half of the proof that the same browser comes back (PKCE)."""
    target: Column[str]
    """Page to open afterwards."""
    confirms_session_id: Column[SessionId | None] = column(sa.ForeignKey("sign_in_session.id"), index=True)
    """The session whose person gives fresh credentials, instead of beginning a new one."""
    created_at: Column[datetime] = column(index=True)


class ApiToken(Record):
    """A secret with which a person's program reads what she may see; nothing can be written with it."""

    __tablename__ = "api_token"
    __table_args__ = (sa.CheckConstraint("length(token_hash) = 64", name="hash_length"),)

    id: Column[int] = column(primary_key=True, default=UNSAVED)
    token_hash: Column[str] = column(unique=True)
    """SHA-256 of the token, in hexadecimal digits."""
    person_id: Column[PersonId] = column(sa.ForeignKey("person.id"), index=True)
    purpose: Column[str]
    """What it is for, in the words of whoever gave it."""
    created_at: Column[datetime]
    expires_at: Column[datetime]
    """From when it is refused."""
    revoked_at: Column[datetime | None] = column(default=None)
    """When it was revoked; empty while it stands."""


class HeldApiToken(ApiToken, Holder):
    """A token and the person behind it."""

    source: SignInSource | None


class UnitScope(Record):
    """One unit whose patients a limited person may see."""

    __tablename__ = "unit_scope"

    person_id: Column[PersonId] = column(sa.ForeignKey("person.id"), primary_key=True, autoincrement=False)
    unit: Column[str] = column(primary_key=True)
    """Name of the unit, as imported."""
