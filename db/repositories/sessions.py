"""Sessions: begun, seen, ended; and sign-ins that are on their way through an identity provider."""

from datetime import datetime

from sqlalchemy import delete, insert, select, update
from sqlalchemy.engine import Connection

from db.models import SignInFlow, SignInSession
from db.queries.reading import change, columns, read_all, read_one, values
from db.queries.runs import session_of_token
from db.rows import FlowRow, NewSession, SessionRow


class Sessions:
    """Sessions of the unit of work's connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def begin(self, new: NewSession) -> int:
        """Store a session and give its number."""
        given = {**values(new), "confirmed_at": None, "ended_at": None, "end_reason": ""}
        return self._connection.execute(insert(SignInSession).values(given).returning(SignInSession.id)).scalar_one()

    def by_hash(self, token_hash: str) -> SessionRow | None:
        """Return the session of a token, ended or not; None when there is none."""
        return read_one(self._connection, SessionRow, session_of_token(), token_hash_=token_hash)

    def get(self, session_id: int) -> SessionRow | None:
        """Return a session by number."""
        statement = select(*columns(SignInSession, SessionRow)).where(SignInSession.id == session_id)
        return read_one(self._connection, SessionRow, statement)

    def open(self, *, seen_since: datetime, now: datetime, person_id: int | None = None) -> list[SessionRow]:
        """Return the sessions that still hold, the one seen last first."""
        statement = select(*columns(SignInSession, SessionRow)).where(
            SignInSession.ended_at.is_(None), SignInSession.last_seen_at > seen_since, SignInSession.expires_at > now
        )
        if person_id is not None:
            statement = statement.where(SignInSession.person_id == person_id)
        return read_all(self._connection, SessionRow, statement.order_by(SignInSession.last_seen_at.desc()))

    def seen(self, session_id: int, at: datetime) -> None:
        """Note that its person did something; time never runs back, and an ended session stays ended."""
        statement = update(SignInSession).where(
            SignInSession.id == session_id, SignInSession.ended_at.is_(None), SignInSession.last_seen_at < at
        )
        self._connection.execute(statement.values(last_seen_at=at))

    def end(self, session_id: int, at: datetime, reason: str) -> bool:
        """End a session; False when it had ended before."""
        statement = update(SignInSession).where(SignInSession.id == session_id, SignInSession.ended_at.is_(None))
        return change(self._connection, statement.values(ended_at=at, end_reason=reason)) == 1

    def end_all(self, person_id: int, at: datetime, reason: str, *, but: int | None = None) -> int:
        """End every session of a person, and give how many there were."""
        statement = update(SignInSession).where(SignInSession.person_id == person_id, SignInSession.ended_at.is_(None))
        if but is not None:
            statement = statement.where(SignInSession.id != but)
        return change(self._connection, statement.values(ended_at=at, end_reason=reason))

    def end_everybodys(self, at: datetime, reason: str) -> int:
        """End every open connection, after a restore; gives their number."""
        statement = update(SignInSession).where(SignInSession.ended_at.is_(None)).values(ended_at=at, end_reason=reason)
        return change(self._connection, statement)

    def confirm(self, session_id: int, at: datetime) -> None:
        """Note that fresh credentials were given."""
        self._connection.execute(update(SignInSession).where(SignInSession.id == session_id).values(confirmed_at=at))

    def use_confirmation(self, session_id: int, *, since: datetime) -> bool:
        """Spend fresh credentials; False when there were none, or too long ago."""
        statement = update(SignInSession).where(
            SignInSession.id == session_id, SignInSession.ended_at.is_(None), SignInSession.confirmed_at >= since
        )
        return change(self._connection, statement.values(confirmed_at=None)) == 1

    def keep_flow(self, flow: FlowRow, *, drop_before: datetime) -> None:
        """Keep what a sign-in needs when the browser comes back, and drop what never did."""
        self._connection.execute(delete(SignInFlow).where(SignInFlow.created_at < drop_before))
        self._connection.execute(insert(SignInFlow).values(values(flow)))

    def take_flow(self, state_hash: str, *, since: datetime) -> FlowRow | None:
        """Return a sign-in that came back, once; None when it is unknown, used or too old."""
        statement = select(*columns(SignInFlow, FlowRow)).where(
            SignInFlow.state_hash == state_hash, SignInFlow.created_at >= since
        )
        found = read_one(self._connection, FlowRow, statement)
        taken = change(self._connection, delete(SignInFlow).where(SignInFlow.state_hash == state_hash))
        return found if taken else None
