"""One unit of work: a transaction with the repositories in it; left without commit, nothing happened."""

import sqlite3
from types import TracebackType
from typing import Any, Self

import sqlalchemy.exc as sa_errors
from sqlalchemy.engine import Engine
from sqlalchemy.orm import Session

from core.errors import StoreError
from db.audit import AuditTrail
from db.failures import readable_errors
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
from db.writers import Writers


class UnitOfWork:
    """A transaction; use it in a ``with`` block, and call `commit` once, last.

    Parameters
    ----------
    engine : Engine
        From `db.engine.open_engine`.
    readonly : bool
        See one state of the database and refuse to change it.
    exclusive : bool
        Take turns with other deciding writers.
    lasting : bool
        Wait at the commit until the disk has it.
    writers : Writers, optional
        Those of the database, to be counted among them; a reader is not counted.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        readonly: bool,
        exclusive: bool = True,
        lasting: bool = True,
        writers: Writers | None = None,
    ) -> None:
        self._writers = writers
        options: dict[str, Any] = {"readonly": readonly, "exclusive": exclusive, "lasting": lasting}
        if readonly and engine.dialect.name == "postgresql":
            options |= {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        self._readonly = readonly
        self._session = Session(engine.execution_options(**options), autoflush=False, expire_on_commit=False)
        self.snapshots = Snapshots(self._session)
        self.runs = Runs(self._session)
        self.alerts = Alerts(self._session)
        self.people = People(self._session)
        self.studies = Studies(self._session)
        self.cases = Cases(self._session)
        self.slots = Slots(self._session)
        self.drafts = Drafts(self._session)
        self.judgments = Judgments(self._session)
        self.adjudications = Adjudications(self._session)
        self.signatures = Signatures(self._session)
        self.triage = TriageBook(self._session)
        self.saved_views = SavedViews(self._session)
        self.accounts = Accounts(self._session)
        self.sessions = Sessions(self._session)
        self.units = Units(self._session)
        self.audit = AuditTrail(self._session)

    def __enter__(self) -> Self:
        if self._writers is not None:
            self._writers.begin()
        try:
            with readable_errors():
                self._session.connection()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with readable_errors():
                self._session.close()
                if isinstance(error, (sa_errors.SQLAlchemyError, sqlite3.Error)):
                    raise error
        finally:
            self._end()

    def _end(self) -> None:
        if self._writers is not None:
            self._writers.end()

    def commit(self) -> None:
        """Keep what was done.

        Raises
        ------
        StoreError
            If the unit of work was begun for reading, or the database could not keep it; then nothing was kept.
        """
        if self._readonly:
            raise StoreError("A unit of work begun with read() keeps nothing; begin it with write().")
        with readable_errors():
            self._session.commit()
