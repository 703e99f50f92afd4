"""Whether a site is alive and ready to work, in one word, for whatever watches over it; never what it holds."""

from alertreview.rights import Action, Service, requires
from core.errors import AlertReviewError
from db.database import Database


class Health(Service):
    """Answers the questions of a watchdog.

    Parameters
    ----------
    database : Database
        Of the site.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @requires(Action.OPERATE)
    def ready(self) -> bool:
        """Return whether the database answers and has this version's schema; the reason is for `alertreview doctor`."""
        try:
            self._database.check()
        except AlertReviewError:
            return False
        return True
