"""Sessions: who is behind a token, for how long, and how a session ends. Only the token's hash is stored."""

import hashlib
import logging
import secrets
from datetime import datetime, timedelta
from typing import Any, Protocol

from alertreview.rights import Actor
from alertreview.settings import Clock
from core.errors import DatabaseUnavailableError, RefusedError, SignedOutError
from core.vocabulary import AlertId, CaseId, PersonId, Role, SessionId, SignInSource
from db.database import Database
from db.models import Account, HeldApiToken, Person, SignedInSession, SignInSession
from db.unit_of_work import UnitOfWork

IDLE = timedelta(minutes=15)
"""Idle time after which a session ends."""
LONGEST = timedelta(hours=12)
"""Time after which any session ends."""
FRESH = timedelta(minutes=5)
"""Time for which confirmed credentials allow a signature."""
NOTED_EVERY = timedelta(seconds=30)
"""Interval at which acts are recorded; a session ends up to this much early, never late."""
CLOCK_SLACK = timedelta(minutes=5)
"""A session last seen further in the future than this was seen by a wrong clock: it ends."""
BROWSER_LENGTH = 120
OWNER_LOGIN = "owner"
DEMONSTRATION = Actor(person_id=PersonId(0), name="Demonstration", role=Role.VIEWER, is_demo=True)

logger = logging.getLogger("alertreview.access.sign_in")


class SessionService:
    """Sessions of a site."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self.cookie_name = f"alertreview_{secret_hash(database.name)[:8]}"
        """Differs between sites: cookies of one machine are shared by all its ports."""

    def who(self, token: str | None, *, is_act: bool = True) -> Actor:
        """Return who is behind a token, with current role and units.

        Where nobody is, a demonstration has a visitor. An act extends the session. Raise SignedOutError if nobody is
        signed in.
        """
        now = self._clock()
        with self._database.read() as uow:
            row = uow.sessions.by_hash(secret_hash(token)) if token else None
            actor = None
            if row is not None and row.active and holds(row, now):
                actor = actor_of(uow, row, session_id=row.id, confirmed_at=row.confirmed_at)
            demo = actor is None and uow.snapshots.are_a_demonstration()
        if actor is not None and row is not None:
            if is_act and now - row.last_seen_at >= NOTED_EVERY:
                self._note(row.id, now)
            return actor
        if demo:
            return DEMONSTRATION
        raise SignedOutError("You are signed out. Sign in again; unsaved changes are lost.")

    def has_accounts(self) -> bool:
        """Return whether anybody could use a form for login and password: a new owner has a link instead."""
        with self._database.read() as uow:
            return not all(map(is_owner_without_password, uow.accounts.all()))

    def log_out(self, token: str | None) -> None:
        """End the session of a token, if there is one."""
        now = self._clock()
        with self._database.write() as uow:
            row = uow.sessions.by_hash(secret_hash(token)) if token else None
            if row is not None and uow.sessions.end(row.id, now, "signed out"):
                uow.audit.append(now, f"person {row.person_id}", "signed out", f"session {row.id}", {})
                uow.commit()

    def log_out_everywhere(self, token: str | None) -> int:
        """End every session of the person behind a token and return their number."""
        now = self._clock()
        with self._database.write() as uow:
            row = uow.sessions.by_hash(secret_hash(token)) if token else None
            if row is None or not holds(row, now):
                return 0
            n_ended = uow.sessions.end_all(row.person_id, now, "signed out everywhere")
            actor = f"person {row.person_id}"
            uow.audit.append(now, actor, "signed out everywhere", actor, {"sessions": n_ended})
            uow.commit()
        return n_ended

    def use_confirmation(self, actor: Actor) -> None:
        """Use up the confirmed credentials of a session for one signature.

        Raise RefusedError if none were confirmed in the last five minutes.
        """
        if actor.is_demo:
            return
        with self._database.write() as uow:
            if not uow.sessions.use_confirmation(actor.session_id, since=self._clock() - FRESH):
                raise RefusedError(
                    "Signing requires fresh credentials. Confirm who you are (link 'Confirm your identity'), "
                    f"then sign within {FRESH.seconds // 60} minutes."
                )
            uow.commit()

    def _note(self, session_id: SessionId, now: datetime) -> None:
        """Record an act; while the database cannot be written, pages still open until the session ends."""
        try:
            with self._database.write() as uow:
                uow.sessions.seen(session_id, now)
                uow.commit()
        except DatabaseUnavailableError:
            logger.warning("the last act of session %d could not be noted", session_id)


class Tokens(Protocol):
    """What knows the person behind a token: the sessions of browsers, or the tokens of programs."""

    def who(self, token: str | None) -> Actor:
        """Return who is behind a token, or raise SignedOutError."""

    def use_confirmation(self, actor: Actor) -> None:
        """Use up fresh credentials, or raise RefusedError."""


class SessionCaller:
    """Whoever a token stands for, looked up again at every call; a `Caller` of `alertreview.rights`.

    The token comes from the cookie of a browser, or is shown by a program. The database knows the units of alerts,
    cases and studies.
    """

    def __init__(self, sessions: Tokens, database: Database, token: str | None) -> None:
        self._sessions = sessions
        self._database = database
        self._token = token

    def who(self) -> Actor:
        """Return who acts, as the session says at this moment."""
        return self._sessions.who(self._token)

    def spend_confirmation(self, actor: Actor) -> None:
        """Spend the fresh credentials of an actor for one act, or refuse."""
        self._sessions.use_confirmation(actor)

    def unit_of_alert(self, alert_id: AlertId) -> str:
        """Return the unit of an alert."""
        with self._database.read() as uow:
            return uow.units.of_alert(alert_id)

    def unit_of_case(self, case_id: CaseId) -> str | None:
        """Return the unit of a case; None if there is no such case."""
        with self._database.read() as uow:
            return uow.units.of_case(case_id)

    def units_of_study(self, slug: str) -> frozenset[str]:
        """Return the units of a study's cases; empty if there is no such study."""
        with self._database.read() as uow:
            return uow.units.of_study(slug)


def new_token() -> str:
    """Return a secret of 256 random bits."""
    return secrets.token_urlsafe(32)


def secret_hash(secret: str) -> str:
    """Return the hash of a random secret, which needs no salt."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def begin(uow: UnitOfWork, person: Person, source: SignInSource, browser: str, now: datetime) -> str:
    """Begin a session with its audit row inside a unit of work and return the token for the cookie."""
    token = new_token()
    number = uow.sessions.begin(
        SignInSession(
            token_hash=secret_hash(token),
            person_id=person.id,
            source=source,
            created_at=now,
            last_seen_at=now,
            expires_at=now + LONGEST,
            browser=readable(browser),
        )
    )
    uow.audit.append(now, f"person {person.id}", "signed in", f"session {number}", {"source": source.value})
    return token


def holds(row: SignInSession, now: datetime) -> bool:
    """Return whether a session is still open."""
    if row.ended_at is not None or row.last_seen_at > now + CLOCK_SLACK:
        return False
    return now < row.expires_at and now - row.last_seen_at < IDLE


def is_owner_without_password(account: Account) -> bool:
    """Return whether an account is the owner's who only ever signed in by the link of the terminal."""
    return (account.source, account.login, account.password_hash) == (SignInSource.LOCAL, OWNER_LOGIN, None)


def readable(browser: str) -> str:
    """Return a user agent as short printable text."""
    return "".join(character for character in browser if character.isprintable())[:BROWSER_LENGTH]


def actor_of(uow: UnitOfWork, row: SignedInSession | HeldApiToken, **session: Any) -> Actor:
    """Return the person of a session or token, with current roles and units."""
    return Actor(
        person_id=row.person_id,
        name=row.name,
        role=row.role,
        further_roles=frozenset(map(Role, row.further_roles.split())) - {row.role},
        units=None if row.all_units else uow.units.of_person(row.person_id),
        source=row.source,
        login=row.login or "",
        **session,
    )
