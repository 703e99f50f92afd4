"""Seals: hashes of what must not change unnoticed, kept in the audit trail with the act that wrote it.

A repository marks what it has written; the next audit row of the transaction seals it. The last seal of a thing counts.
Rows are hashed as SQLite's driver returns them, on every database, so seals hold for a copy in another one.
"""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from core.vocabulary import RunId, RunStatus
from db.connection.engine import canonical_json
from db.models import (
    Account,
    Adjudication,
    Alert,
    ApiToken,
    CaseScore,
    CohortSnapshot,
    Instance,
    Judgment,
    Person,
    Record,
    ReferenceAnswer,
    ReportSignature,
    Rubric,
    RunSensitivity,
    ScoringRun,
    Study,
    StudyCase,
    StudyReader,
    Task,
    TaskResult,
    TriageAct,
    TriageNote,
    UnitScope,
)

UNSEALED = "unsealed"
"""Option of a writer's connection: the marks that no audit row has sealed yet."""
RESULTS = "results of run"
UNITS = "units of person"
Seals = dict[str, str]
"""Of things by name: "judgment 17", "results of run 3"."""

Key = tuple[int, ...]
_BY_CASE = ("case_id",)
"""Rows that name the case of a study, and not the study."""
_VERSION = "1"
"""Names the columns below. A seal begins with it, so that another list of columns can stand beside this one."""
_AT_ONCE = 2_000
_CASES_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class _Part:
    """Rows of a table that belong to a thing: those whose columns `owner` hold its key."""

    model: type[Record]
    owner: tuple[str, ...] = ("id",)
    without: frozenset[str] = frozenset()
    in_a_row: bool = False
    """The rows of a thing were written one after another, so their numbers are close."""

    @property
    def table(self) -> sa.Table:
        return self.model.__table__

    @property
    def columns(self) -> list[sa.ColumnClause[Any]]:
        # Columns without a type: values come as the driver returns them, which takes a third of the time.
        return [sa.column(name) for name in self.table.columns.keys() if name not in self.without]  # noqa: SIM118

    def rows(
        self, connection: Connection, key: Key | None = None, first: int | None = None
    ) -> sa.CursorResult[*tuple[Any, ...]]:
        """Return the rows of a thing, or of all things with their keys in front, by primary key.

        Of a thing written in a row, `first` leaves out the rows below that number.
        """
        given = dict(zip(_KEY_NAMES, key or (), strict=False)) | ({_FIRST: first} if self.in_a_row else {})
        return connection.execute(_statement(self, of_one=key is not None), given)


_KEY_NAMES = ("key_0", "key_1")
_FIRST = "first"


@cache
def _statement(part: _Part, *, of_one: bool) -> sa.Select[*tuple[Any, ...]]:
    owners: list[sa.ColumnClause[Any]] = [sa.column(name) for name in part.owner]
    order: list[sa.ColumnClause[Any]] = [sa.column(key.name) for key in part.table.primary_key.columns]
    statement = sa.select(*part.columns) if of_one else sa.select(*owners, *part.columns)
    values = [sa.bindparam(name, type_=sa.Integer()) for name in _KEY_NAMES]
    if of_one and part.owner == _BY_CASE:
        statement = statement.where(owners[0].in_(sa.select(StudyCase.id).where(StudyCase.study_id == values[0])))
    elif of_one and part.in_a_row:
        # By number, as they are to come: by the index of its owner, SQLite would sort a million rows each time.
        lowest = sa.select(sa.func.min(order[0])).where(owners[0] == values[0]).select_from(sa.table(part.table.name))
        first = sa.func.coalesce(sa.bindparam(_FIRST, type_=sa.BigInteger()), lowest.scalar_subquery())
        statement = statement.where(sa.literal_column(f"+{part.owner[0]}") == values[0], order[0] >= first)
    elif of_one:
        statement = statement.where(*(owner == value for owner, value in zip(owners, values, strict=False)))
    statement = statement.select_from(sa.table(part.table.name)).order_by(*order)
    return statement if of_one and not part.in_a_row else statement.execution_options(yield_per=_AT_ONCE)


_SINGLE = {
    "judgment": _Part(Judgment),
    "adjudication of case": _Part(Adjudication, ("case_id", "version")),
    "triage act": _Part(TriageAct),
    "triage note": _Part(TriageNote),
    "signature": _Part(ReportSignature, without=frozenset({"superseded_at"})),
    "person": _Part(Person),
    "sensitivity of run": _Part(RunSensitivity, ("run_id",)),
    "account of person": _Part(Account, ("person_id",), without=frozenset({"failures", "locked_until"})),
    "token": _Part(ApiToken),
}
"""Things that are one row."""
_GROUPS = {
    "study": (
        _Part(Study),
        *(_Part(model, ("study_id",)) for model in (Rubric, StudyReader, StudyCase)),
        *(_Part(model, _BY_CASE) for model in (CaseScore, ReferenceAnswer)),
    ),
    "run": (_Part(ScoringRun),),
    RESULTS: (_Part(TaskResult, ("run_id",)), _Part(Alert, ("run_id",), in_a_row=True)),
    "import": (
        _Part(CohortSnapshot),
        *(_Part(model, ("snapshot_id",), in_a_row=True) for model in (Instance, Task)),
    ),
    UNITS: (_Part(UnitScope, ("person_id",)),),
}
"""Things that are many rows, or none."""
LATER = frozenset({"sensitivity of run", "account of person", "token", UNITS})
"""Kinds of things that versions before schema 0012 did not seal, and do not look for."""
_ALL_OF = {
    "study": sa.select(Study.id),
    "run": sa.select(ScoringRun.id).where(ScoringRun.status == RunStatus.PUBLISHED),
    RESULTS: sa.select(ScoringRun.id).where(ScoringRun.status == RunStatus.PUBLISHED),
    "import": sa.select(CohortSnapshot.id),
    UNITS: sa.select(Person.id),
}
_OF_TABLE = {part.table.name: (kind, part) for kind, part in _SINGLE.items()} | {
    part.table.name: (kind, part) for kind in ("study", UNITS) for part in _GROUPS[kind]
}
"""What a written row belongs to."""


def mark(connection: Connection, kind: str, *key: int, seal: str | None = None) -> None:
    """Note that a thing was written and is to be sealed by the next audit row of the transaction.

    A large thing that nobody can change any more comes with its seal, computed before the transaction.
    """
    connection.get_execution_options()[UNSEALED][kind, tuple(map(int, key))] = seal


def mark_rows(
    connection: Connection, model: type[Record], rows: Sequence[Mapping[str, Any]], new_id: int | None = None
) -> None:
    """Mark what written rows of a table belong to, if that is sealed; one row may have got a new number."""
    if model.__table__.name not in _OF_TABLE:
        return
    kind, part = _OF_TABLE[model.__table__.name]
    if part.owner == _BY_CASE:
        keys = _studies_of(connection, {values["case_id"] for values in rows})
    elif part.owner == ("id",) and new_id is not None:
        keys = {(new_id,)}
    else:
        keys = {tuple(values[name] for name in part.owner) for values in rows}
    for key in keys:
        mark(connection, kind, *key)


def _studies_of(connection: Connection, case_ids: Collection[int]) -> set[Key]:
    """Return the numbers of the studies of some cases, asking for many cases at once."""
    studies, ids = sa.select(StudyCase.study_id).distinct(), sorted(case_ids)
    parts = [ids[start : start + _CASES_AT_ONCE] for start in range(0, len(ids), _CASES_AT_ONCE)]
    return {(one,) for some in parts for one in connection.execute(studies.where(StudyCase.id.in_(some))).scalars()}


def has_marks(connection: Connection) -> bool:
    """Return whether something was written that no audit row has sealed yet."""
    return bool(connection.get_execution_options().get(UNSEALED))


def take_seals(connection: Connection) -> Seals:
    """Return the seals of everything that is marked, and drop the marks."""
    marks: dict[tuple[str, Key], str | None] = connection.get_execution_options().get(UNSEALED) or {}
    seals: Seals = {}
    for thing, seal in marks.items():
        seals[_name(*thing)] = seal or seal_of(connection, *thing)
    marks.clear()
    return seals


def put_seals(connection: Connection, seals: Iterable[tuple[str, str]]) -> None:
    """Put seals that are computed already into the next audit row."""
    for name, seal in seals:
        kind, _, key = name.rpartition(" ")
        mark(connection, kind, *map(int, key.split(".")), seal=seal)


def seal_of(connection: Connection, kind: str, key: Key) -> str:
    """Return the seal of a thing as it is stored."""
    digest = hashlib.sha256()
    for part in (_SINGLE[kind],) if kind in _SINGLE else _GROUPS[kind]:
        _hash(digest, part.rows(connection, key))
        digest.update(b";")
    return f"{_VERSION}:{digest.hexdigest()}"


class ResultsSeal:
    """The seal of a run's results, made while its alerts are written and all task results are stored."""

    def __init__(self, run_id: RunId) -> None:
        self._key = (run_id,)
        self._digest = hashlib.sha256()
        self._next: int | None = None  # number above all alerts that were hashed

    def extend(self, connection: Connection) -> None:
        """Hash the task results, if not done before, and the alerts stored since."""
        results, alerts = _GROUPS[RESULTS]
        if self._next is None:
            self._next = 0
            _hash(self._digest, results.rows(connection, self._key))
            self._digest.update(b";")
        last = _hash(self._digest, alerts.rows(connection, self._key, self._next or None))
        self._next = self._next if last is None else last + 1

    def __str__(self) -> str:
        digest = self._digest.copy()
        digest.update(b";")
        return f"{_VERSION}:{digest.hexdigest()}"


def kind_of(name: str) -> str:
    """Return the kind of a thing by its name."""
    return name.rpartition(" ")[0]


def all_seals(connection: Connection) -> Iterator[tuple[str, str]]:
    """Yield the name and the seal of everything that is stored and should be sealed."""
    for kind, part in _SINGLE.items():
        n_keys = len(part.owner)
        with part.rows(connection) as rows:
            for row in rows:
                digest = hashlib.sha256(_bytes(row[n_keys:]))
                digest.update(b";")
                yield _name(kind, row[:n_keys]), f"{_VERSION}:{digest.hexdigest()}"
    for kind, numbers in _ALL_OF.items():
        for number in connection.execute(numbers.order_by("id")).scalars().all():
            yield _name(kind, (number,)), seal_of(connection, kind, (number,))


def compare(connection: Connection, sealed: Seals) -> str:
    """Compare everything stored with its last seal; return a sentence that names the first difference, or "".

    `sealed` has the last seal of each thing in the audit trail; it is emptied on the way.
    """
    for name, seal in all_seals(connection):
        known = sealed.pop(name, None)
        if known is None:
            return f"The {name} is in no row of the audit trail: it was put in past the program."
        if known != seal:
            return f"The {name} is not as it was saved: it was changed past the program, or the disk is failing."
    return f"The {min(sealed)} is gone; the audit trail says that it was saved." if sealed else ""


def _name(kind: str, key: Sequence[int]) -> str:
    return f"{kind} {'.'.join(map(str, key))}"


def _hash(digest: Any, rows: sa.CursorResult[*tuple[Any, ...]]) -> Any:
    """Hash rows; return the number of the last one, or None without any."""
    number = None
    with rows:
        for row in rows:
            digest.update(_bytes(row))
            number = row[0]
    return number


_PLAIN = frozenset({int, float, str, type(None)})


def _bytes(row: Sequence[Any]) -> bytes:
    values = tuple(row)
    return repr(values if _PLAIN.issuperset(map(type, values)) else tuple(map(_plain, values))).encode()


def _plain(value: Any) -> Any:
    """Return a value as SQLite's driver returns it, whatever the database."""
    kind = type(value)
    if kind is bytes:
        return hashlib.sha256(value).hexdigest()
    if kind is bool:
        return int(value)
    if kind is datetime:
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    if kind is dict or kind is list:
        return canonical_json(value)
    return value
