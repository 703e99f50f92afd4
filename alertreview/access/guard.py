"""Who calls a service from a browser: the person behind a session's token, looked up again at every call."""

from alertreview.access.sessions import SessionService
from alertreview.rights import Actor
from core.vocabulary import AlertId, CaseId
from db.database import Database


class SessionCaller:
    """Whoever a token stands for.

    Parameters
    ----------
    sessions : SessionService
        Knows who is signed in.
    database : Database
        Knows the units of alerts, cases and studies.
    token : str or None
        From the cookie of the browser.
    """

    def __init__(self, sessions: SessionService, database: Database, token: str | None) -> None:
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
