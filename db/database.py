"""The database of a site: one object, made by the composition root, from which every unit of work begins."""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from sqlalchemy.engine import Engine

from core.errors import RefusedError, StoreError
from core.vocabulary import CaseId
from db import schema
from db.cache import shared_caches
from db.connection.engine import job_lock, open_engine, parse_url, shorten_log, sqlite_file
from db.connection.failures import readable_errors
from db.connection.writers import Writers
from db.schema import downgrade
from db.unit_of_work import UnitOfWork

_BUSY_SCORING = (
    "Another scoring job is at work on this database. Wait until it has ended, or stop it; "
    "what it leaves unfinished is swept away by the next one."
)


BEFORE_LATER_SEALS, LATER_SEALED = "0011", "0012"
"""The last schema without seals of units, sensitivity, accounts and tokens, and the first with them."""


class Database:
    """A site's database: ``sqlite:///FILE`` or ``postgresql+psycopg://NAME@HOST/DATABASE``.

    Nothing is opened before the first use, and no transaction outlives its ``with`` block. Raise SettingsError if the
    URL cannot be read or names a database that cannot hold a site.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as home, Database(f"sqlite:///{Path(home) / 'site.db'}") as database:
    ...     database.upgrade()
    ...     with database.read() as uow:
    ...         print(uow.runs.latest_published())
    None
    """

    def __init__(self, url: str) -> None:
        self._url = parse_url(url)
        self._engine = open_engine(self._url)
        # Python 3.13 warns of a file that nobody closed; who forgets a database has no more use for its connections.
        weakref.finalize(self, self._engine.dispose).atexit = False
        self._writers = Writers()
        self._caches = shared_caches()
        self.name = str(sqlite_file(self._url) or f"{self._url.database} on {self._url.host or 'this machine'}")
        """What messages call it; holds no password."""

    @property
    def engine(self) -> Engine:
        """The engine, for tests and operations; use cases go through `read` and `write`."""
        return self._engine

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.dispose()

    def read(self) -> UnitOfWork:
        """Begin a unit of work that sees one state of the database and can change nothing."""
        return UnitOfWork(self._engine, readonly=True, caches=self._caches)

    def write(self, *, exclusive: bool = True, lasting: bool = True, case_id: CaseId | None = None) -> UnitOfWork:
        """Begin a unit of work that is kept by `UnitOfWork.commit` and otherwise leaves no trace.

        `exclusive` takes turns with other deciding writers; bulk rows of a run that nobody can see yet need not.
        (SQLite has a single writer anyway.) `lasting` lets the commit wait until the disk has it; what nobody was
        promised need not: no killed process can undo it, a power failure can, alone or with what was committed in the
        same way before it. With a case the writer decides about it alone and takes turns with others of the case, and
        with whoever decides about more than one: on a server readers of different cases then need not wait for each
        other.
        """
        options: dict[str, Any] = {"exclusive": exclusive, "lasting": lasting, "case_id": case_id}
        return UnitOfWork(self._engine, readonly=False, options=options, writers=self._writers)

    def finish_writing(self, within_seconds: float) -> bool:
        """Let no unit of work begin to write any more, and wait for those that have; True when all have ended."""
        return self._writers.finish(within_seconds)

    @property
    def has_one_writer(self) -> bool:
        """Whether a transaction that writes keeps all others from writing, as SQLite's do."""
        return sqlite_file(self._url) is not None

    def shorten_log(self) -> None:
        """Move SQLite's log into the file as far as nobody still reads it; nobody waits for it, no lock is held."""
        if not self.has_one_writer:
            return
        with readable_errors():
            shorten_log(self._engine)

    @property
    def url(self) -> str:
        """Where the database is, with its password: for programs that copy it, never for messages."""
        return self._url.render_as_string(hide_password=False)

    def upgrade(self) -> None:
        """Make the tables, or upgrade those of an older version; does nothing when all is well.

        Raise ForeignDatabaseError if the database is another program's or a newer version's (it is left as it is),
        DatabaseUnavailableError if it cannot be opened or written.
        """
        before = self.state().revision
        if before is not None and before < LATER_SEALED:
            # Sealed before the schema says so: an upgrade killed in between is not yet one that the program takes.
            self._upgrade_tables(BEFORE_LATER_SEALS)
            self._seal_former(again=True)
        self._upgrade_tables()
        self._seal_former(again=False)

    def _upgrade_tables(self, revision: str = "head") -> None:
        with readable_errors():
            schema.upgrade(self._engine, self._url, self.name, revision)

    def _seal_former(self, *, again: bool) -> None:
        with self.write() as uow:
            if uow.audit.seal_former(again=again):
                uow.commit()

    def downgrade(self, revision: str, *, discard: bool = False) -> list[str]:
        """Take the schema back to an older one; see `db.schema.downgrade`."""
        with readable_errors():
            return downgrade(self._engine, self.name, revision, discard=discard)

    def state(self) -> schema.SchemaState:
        """Look whose database it is and at which step, without changing or making it."""
        file = sqlite_file(self._url)
        if file is not None and not file.exists():
            return schema.SchemaState(is_empty=True, is_ours=False, revision=None)
        with readable_errors(), self._engine.connect().execution_options(readonly=True) as connection:
            return schema.look(connection)

    def check(self) -> None:
        """Make sure that this version can work on the database.

        Raise ForeignDatabaseError if it is another program's or a newer version's, StoreError if it is missing, empty
        or older.
        """
        file = sqlite_file(self._url)
        if file is not None and not file.exists():
            raise StoreError(
                f"There is no database at {self.name}. Run 'alertreview init' with the same --home or --database."
            )
        with readable_errors(), self._engine.connect().execution_options(readonly=True) as connection:
            schema.check(connection, self.name)

    @contextmanager
    def scoring_job(self) -> Iterator[None]:
        """Hold the right to score: one job at a time, given back by the operating system even after a crash.

        What an earlier job left unfinished is abandoned on entry. Raise RefusedError if another job holds it.
        """
        with readable_errors(), job_lock(self._engine, "scoring") as held:
            if not held:
                raise RefusedError(_BUSY_SCORING)
            self._abandon()
            yield

    @contextmanager
    def digest_job(self) -> Iterator[None]:
        """Hold the right to send digests, so that nobody gets two; raise RefusedError if another job holds it."""
        with readable_errors(), job_lock(self._engine, "digest") as held:
            if not held:
                raise RefusedError("Digests are being sent by another process. Wait until it has ended.")
            yield

    def sweep(self) -> int:
        """Abandon runs whose job died, and return how many; does nothing while a job is alive."""
        with readable_errors(), job_lock(self._engine, "scoring") as held:
            return self._abandon() if held else 0

    def dispose(self) -> None:
        """Close every connection."""
        for cache in self._caches.values():
            cache.clear()
        self._engine.dispose()

    def _abandon(self) -> int:
        with self.write() as uow:
            n_abandoned = uow.runs.abandon_unfinished()
            uow.commit()
        return n_abandoned
