"""Sessions: begun, seen, ended; and sign-ins that are on their way through an identity provider."""

from datetime import datetime

from sqlalchemy import delete, update

from core.vocabulary import PersonId, SessionId
from db.models import Account, Person, SignedInSession, SignInFlow, SignInSession
from db.queries.reading import Repository, given, select_records

_OF_TOKEN = (
    select_records(SignInSession)
    .add_columns(Person.name, Person.role, Person.further_roles, Person.active, Person.all_units, Account.login)
    .join(Person, Person.id == SignInSession.person_id)
    .outerjoin(Account, Account.person_id == Person.id)
    .where(SignInSession.token_hash == given("token_hash"))
)
_STILL_OPEN = SignInSession.ended_at.is_(None)


class Sessions(Repository):
    """Sessions and sign-ins on their way."""

    def begin(self, session: SignInSession) -> SessionId:
        """Store a session and return its number."""
        return SessionId(self._insert(session))

    def by_hash(self, token_hash: str) -> SignedInSession | None:
        """Return the session of a token with its person, ended or not; None when there is none."""
        return self._one(SignedInSession, _OF_TOKEN, token_hash_=token_hash)

    def get(self, session_id: SessionId) -> SignInSession | None:
        """Return a session by number."""
        return self._one(SignInSession, select_records(SignInSession).where(SignInSession.id == session_id))

    def open(self, *, seen_since: datetime, now: datetime) -> list[SignInSession]:
        """Return the sessions that still hold, the one seen last first."""
        statement = select_records(SignInSession).where(
            _STILL_OPEN, SignInSession.last_seen_at > seen_since, SignInSession.expires_at > now
        )
        return self._all(SignInSession, statement.order_by(SignInSession.last_seen_at.desc()))

    def seen(self, session_id: SessionId, at: datetime) -> None:
        """Note that its person did something; time never runs back, and an ended session stays ended."""
        own = update(SignInSession).where(SignInSession.id == session_id, _STILL_OPEN, SignInSession.last_seen_at < at)
        self._run(own.values(last_seen_at=at))

    def end(self, session_id: SessionId, at: datetime, reason: str) -> bool:
        """End a session; False when it had ended before."""
        own = update(SignInSession).where(SignInSession.id == session_id, _STILL_OPEN)
        return self._change(own.values(ended_at=at, end_reason=reason)) == 1

    def end_all(self, person_id: PersonId, at: datetime, reason: str, *, but: SessionId | None = None) -> int:
        """End every session of a person and return how many there were."""
        statement = update(SignInSession).where(SignInSession.person_id == person_id, _STILL_OPEN)
        if but is not None:
            statement = statement.where(SignInSession.id != but)
        return self._change(statement.values(ended_at=at, end_reason=reason))

    def end_everybodys(self, at: datetime, reason: str) -> int:
        """End every session, after a restore, and return how many there were."""
        return self._change(update(SignInSession).where(_STILL_OPEN).values(ended_at=at, end_reason=reason))

    def confirm(self, session_id: SessionId, at: datetime) -> None:
        """Note that fresh credentials were given."""
        self._run(update(SignInSession).where(SignInSession.id == session_id).values(confirmed_at=at))

    def use_confirmation(self, session_id: SessionId, *, since: datetime) -> bool:
        """Spend fresh credentials; False when there were none, or too long ago."""
        own = update(SignInSession).where(
            SignInSession.id == session_id, _STILL_OPEN, SignInSession.confirmed_at >= since
        )
        return self._change(own.values(confirmed_at=None)) == 1

    def keep_flow(self, flow: SignInFlow, *, drop_before: datetime) -> None:
        """Keep what a sign-in needs when the browser comes back, and drop what never did."""
        self._run(delete(SignInFlow).where(SignInFlow.created_at < drop_before))
        self._insert(flow)

    def take_flow(self, state_hash: str, *, since: datetime) -> SignInFlow | None:
        """Return a sign-in that came back, once; None when it is unknown, used or too old."""
        own = SignInFlow.state_hash == state_hash
        found = self._one(SignInFlow, select_records(SignInFlow).where(own, SignInFlow.created_at >= since))
        return found if self._change(delete(SignInFlow).where(own)) else None
