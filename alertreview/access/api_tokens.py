"""Tokens for the read-only interface: each of one person, with the rights of the moment, until it is revoked."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from alertreview.access.sessions import actor_of, new_token, secret_hash
from alertreview.rights import COMMAND_LINE, Actor
from alertreview.settings import Clock
from core.errors import InvalidInputError, NotFoundError, RefusedError, SignedOutError
from core.vocabulary import PersonId
from db.database import Database
from db.models import ApiToken, HeldApiToken

LONGEST_PURPOSE = 80
LONGEST_DAYS = 366
"""Nobody remembers a token for longer."""
VALID = "valid"


@dataclass(frozen=True)
class TokenView:
    """A token without its secret."""

    token_id: int
    person_id: PersonId
    name: str
    purpose: str
    created_at: datetime
    expires_at: datetime
    state: str  # "valid", "revoked", "expired", or "person deactivated"


class ApiTokens:
    """Tokens of a site."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def create(self, whom_id: PersonId, purpose: str, days: int, *, actor: str = COMMAND_LINE) -> str:
        """Create a token for a person and return it.

        Only its hash is stored. It is valid for so many days, at most a year. Raise InvalidInputError if purpose or
        days cannot be used, RefusedError if the person has no active account.
        """
        purpose = " ".join(purpose.split())
        if not purpose or len(purpose) > LONGEST_PURPOSE or not purpose.isprintable():
            raise InvalidInputError(f"A purpose has 1 to {LONGEST_PURPOSE} printable characters. Give another.")
        if not 1 <= days <= LONGEST_DAYS:
            raise InvalidInputError(f"A token is good for 1 to {LONGEST_DAYS} days, not {days}.")
        token, now = new_token(), self._clock()
        with self._database.write() as uow:
            person = uow.people.get(whom_id)
            if not person.active or uow.accounts.get(whom_id) is None:
                raise RefusedError(f"Person {whom_id} has no account, or was deactivated. A token acts for an account.")
            number = uow.api_tokens.add(
                ApiToken(
                    token_hash=secret_hash(token),
                    person_id=whom_id,
                    purpose=purpose,
                    created_at=now,
                    expires_at=now + timedelta(days=days),
                )
            )
            details = {"token": number, "purpose": purpose, "days": days}
            uow.audit.append(now, actor, "API token given", f"person {whom_id}", details)
            uow.commit()
        return token

    def all(self) -> tuple[TokenView, ...]:
        """Return every token ever given, the newest first."""
        now = self._clock()
        with self._database.read() as uow:
            return tuple(_view(row, now) for row in uow.api_tokens.all())

    def revoke(self, token_id: int, *, actor: str = COMMAND_LINE) -> None:
        """Revoke a token from the next request on; raise NotFoundError if there is none, or it was revoked before."""
        now = self._clock()
        with self._database.write() as uow:
            if not uow.api_tokens.revoke(token_id, now):
                raise NotFoundError(
                    f"There is no token {token_id} that could be revoked. See 'alertreview account token list'."
                )
            uow.audit.append(now, actor, "API token revoked", f"token {token_id}", {})
            uow.commit()

    def who(self, token: str | None) -> Actor:
        """Return the person behind a token, with current roles and units.

        Raise SignedOutError if the token is unknown, revoked or expired, or the person was deactivated; it does not say
        which.
        """
        with self._database.read() as uow:
            row = uow.api_tokens.by_hash(secret_hash(token)) if token else None
            if row is None or _view(row, self._clock()).state != VALID:
                raise SignedOutError("The token is not valid. Ask an administrator for a new one.")
            return actor_of(uow, row)

    def use_confirmation(self, actor: Actor) -> None:
        """Refuse: a program cannot confirm who sits in front of it."""
        raise RefusedError(f"Person {actor.person_id} acts through a program, which signs nothing.")

    def note(self, actor: Actor, what: str, n_rows: int) -> None:
        """Note in the audit trail that a person's program read something."""
        with self._database.write() as uow:
            uow.audit.append(self._clock(), f"person {actor.person_id}", "API read", what, {"rows": n_rows})
            uow.commit()


def _view(row: HeldApiToken, now: datetime) -> TokenView:
    if row.revoked_at is not None:
        state = "revoked"
    elif now >= row.expires_at:
        state = "expired"
    else:
        state = VALID if row.active and row.login is not None else "person deactivated"
    return TokenView(row.id, row.person_id, row.name, row.purpose, row.created_at, row.expires_at, state)
