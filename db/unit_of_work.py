"""One unit of work: a transaction with the repositories in it; left without commit, nothing happened."""

from functools import cached_property
from types import TracebackType
from typing import Any, Self

from sqlalchemy.engine import Engine

from core.errors import StoreError
from db.audit import AuditTrail
from db.cache import Caches
from db.connection.failures import DRIVER_ERRORS, as_store_error
from db.connection.writers import Writers
from db.queries.reading import SEEN
from db.queries.seals import UNSEALED
from db.repositories.alerts import Alerts
from db.repositories.cases import Cases, Slots
from db.repositories.judgments import Adjudications, Drafts, Judgments, Signatures
from db.repositories.people import Accounts, ApiTokens, People, Sessions, Units
from db.repositories.runs import Runs
from db.repositories.snapshots import Snapshots
from db.repositories.studies import Studies
from db.repositories.triage import SavedViews, TriageBook


class UnitOfWork:
    """A transaction; use it in a ``with`` block, and call `commit` once, last.

    A reader sees one state of the database, may not change it, shares caches and is not counted among the writers;
    `options` say how a writer takes turns and commits, see `db.database.Database.write`.
    """

    # Made when first asked for: a unit of work needs few of them.
    snapshots = cached_property(lambda self: Snapshots(self._connection, self._caches))
    runs = cached_property(lambda self: Runs(self._connection, self._caches))
    alerts = cached_property(lambda self: Alerts(self._connection, self._caches))
    people = cached_property(lambda self: People(self._connection, self._caches))
    studies = cached_property(lambda self: Studies(self._connection, self._caches))
    cases = cached_property(lambda self: Cases(self._connection, self._caches))
    slots = cached_property(lambda self: Slots(self._connection, self._caches))
    drafts = cached_property(lambda self: Drafts(self._connection, self._caches))
    judgments = cached_property(lambda self: Judgments(self._connection, self._caches))
    adjudications = cached_property(lambda self: Adjudications(self._connection, self._caches))
    signatures = cached_property(lambda self: Signatures(self._connection, self._caches))
    triage = cached_property(lambda self: TriageBook(self._connection, self._caches))
    saved_views = cached_property(lambda self: SavedViews(self._connection, self._caches))
    accounts = cached_property(lambda self: Accounts(self._connection, self._caches))
    sessions = cached_property(lambda self: Sessions(self._connection, self._caches))
    api_tokens = cached_property(lambda self: ApiTokens(self._connection, self._caches))
    units = cached_property(lambda self: Units(self._connection, self._caches))
    audit = cached_property(lambda self: AuditTrail(self._connection, self._caches))

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
        self._connection = connection

    def __enter__(self) -> Self:
        if self._writers is not None:
            self._writers.begin()
        try:
            self._begin()
        except DRIVER_ERRORS as error:
            self._end()
            raise as_store_error(error) from None
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._connection.close()
        except DRIVER_ERRORS as failure:
            raise as_store_error(failure) from None
        finally:
            self._end()
        if isinstance(error, DRIVER_ERRORS):
            raise as_store_error(error) from None

    def _end(self) -> None:
        if self._writers is not None:
            self._writers.end()

    def commit(self) -> None:
        """Keep what was done, sealed.

        Raise StoreError if the unit of work was begun for reading, or the database could not keep it; then nothing was
        kept.
        """
        if self._readonly:
            raise StoreError("A unit of work begun with read() keeps nothing; begin it with write().")
        try:
            self.audit.seal_rest()
            self._connection.commit()
        except DRIVER_ERRORS as error:
            raise as_store_error(error) from None
