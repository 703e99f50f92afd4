"""One unit of work: a transaction with the repositories in it; left without commit, nothing happened."""

from types import TracebackType
from typing import Any, Self

from sqlalchemy.engine import Engine

from core.errors import StoreError
from db.audit import AuditTrail
from db.cache import Caches
from db.connection.failures import DRIVER_ERRORS, readable_errors
from db.connection.writers import Writers
from db.queries.reading import SEEN
from db.queries.seals import UNSEALED
from db.repositories.accounts import Accounts
from db.repositories.adjudications import Adjudications
from db.repositories.alerts import Alerts
from db.repositories.cases import Cases
from db.repositories.drafts import Drafts
from db.repositories.judgments import Judgments
from db.repositories.people import People
from db.repositories.runs import Runs
from db.repositories.saved_views import SavedViews
from db.repositories.sessions import Sessions
from db.repositories.signatures import Signatures
from db.repositories.slots import Slots
from db.repositories.snapshots import Snapshots
from db.repositories.studies import Studies
from db.repositories.triage import TriageBook
from db.repositories.units import Units


class UnitOfWork:
    """A transaction; use it in a ``with`` block, and call `commit` once, last.

    Parameters
    ----------
    engine : Engine
        From `db.connection.engine.open_engine`.
    readonly : bool
        See one state of the database and refuse to change it.
    options : dict, optional
        How a writer takes turns and commits; see `db.database.Database.write`.
    writers : Writers, optional
        Those of the database, to be counted among them; a reader is not counted.
    caches : mapping of str to Cache, optional
        Caches that readers share; a writer has none.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        readonly: bool,
        options: dict[str, Any] | None = None,
        writers: Writers | None = None,
        caches: Caches | None = None,
    ) -> None:
        self._engine = engine
        self._readonly = readonly
        self._options: dict[str, Any] = {"readonly": readonly, **(options or {})}
        self._caches = caches
        self._writers = writers

    def _begin(self) -> None:
        connection = self._engine.connect()
        # A reader sees one state of the database as long as it reads, so it need not look twice.
        own: dict[str, Any] = {SEEN: {}} if self._readonly else {UNSEALED: {}}
        try:
            connection.execution_options(**self._options, **own).begin()
        except BaseException:
            connection.close()
            raise
        self._connection, caches = connection, self._caches
        self.snapshots = Snapshots(connection, caches)
        self.runs = Runs(connection, caches)
        self.alerts = Alerts(connection, caches)
        self.people = People(connection, caches)
        self.studies = Studies(connection, caches)
        self.cases = Cases(connection, caches)
        self.slots = Slots(connection, caches)
        self.drafts = Drafts(connection, caches)
        self.judgments = Judgments(connection, caches)
        self.adjudications = Adjudications(connection, caches)
        self.signatures = Signatures(connection, caches)
        self.triage = TriageBook(connection, caches)
        self.saved_views = SavedViews(connection, caches)
        self.accounts = Accounts(connection, caches)
        self.sessions = Sessions(connection, caches)
        self.units = Units(connection, caches)
        self.audit = AuditTrail(connection, caches)

    def __enter__(self) -> Self:
        if self._writers is not None:
            self._writers.begin()
        try:
            with readable_errors():
                self._begin()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with readable_errors():
                self._connection.close()
                if isinstance(error, DRIVER_ERRORS):
                    raise error
        finally:
            self._end()

    def _end(self) -> None:
        if self._writers is not None:
            self._writers.end()

    def commit(self) -> None:
        """Keep what was done, sealed.

        Raises
        ------
        StoreError
            If the unit of work was begun for reading, or the database could not keep it; then nothing was kept.
        """
        if self._readonly:
            raise StoreError("A unit of work begun with read() keeps nothing; begin it with write().")
        with readable_errors():
            self.audit.seal_rest()
            self._connection.commit()
