"""Rows of accounts and sessions."""

from dataclasses import dataclass
from datetime import datetime

from core.vocabulary import SignInSource


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRow:
    """How a person signs in; see `db.models.Account`."""

    person_id: int
    source: SignInSource
    login: str
    password_hash: str | None
    code_hash: str | None
    code_expires_at: datetime | None
    failures: int
    locked_until: datetime | None
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSession:
    """A session to be begun."""

    token_hash: str
    person_id: int
    source: SignInSource
    created_at: datetime
    last_seen_at: datetime
    expires_at: datetime
    browser: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRow(NewSession):
    """A session as stored."""

    id: int
    confirmed_at: datetime | None
    ended_at: datetime | None
    end_reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowRow:
    """A browser on its way through an identity provider."""

    state_hash: str
    nonce: str
    code_verifier: str
    target: str
    confirms_session_id: int | None
    created_at: datetime
