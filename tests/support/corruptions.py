"""Random damage to everything a site keeps: found and named, or shown to have changed no figure and no vote.

Damaged are files as a failing disk does it, rows as somebody does who passes the program by, and, on PostgreSQL, the
files of the server's data directory.
"""

import contextlib
import json
import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from alertreview.alerts.models import WorklistFilters
from alertreview.application import open_application
from alertreview.exports.recompute import recompute
from alertreview.operations.backup import Backups, verify_backup
from alertreview.operations.doctor import Level, examine_site
from alertreview.operations.heads import anchor
from alertreview.reports.signing import content_hash
from alertreview.settings import Settings
from core.errors import AlertReviewError
from core.vocabulary import Role, SignInSource
from db.connection.engine import parse_url, sqlite_file
from db.database import Database
from db.models import Account, ApiToken, Record
from db.schema import foreign_keys_at_rest
from tests.support.postgresql import copy_kept, files_of, keep

FILES = ("snapshots", "learned", "backup", "export")
STORES = {"sqlite": (*FILES, "database", "rows"), "postgresql": (*FILES, "pages", "rows")}
HARMS = ("flip", "cut", "exchange", "zero", "remove")
ROW_HARMS = ("change", "exchange", "remove", "repeat")
COUNTED = ("judgment", "adjudication", "triage_act", "triage_note", "report_signature", "person", "study", "rubric")
COUNTED += ("study_reader", "study_case", "case_score", "reference_answer", "scoring_run", "task_result", "alert")
COUNTED += ("cohort_snapshot", "instance", "task", "audit_event", "triage", "unit_scope", "run_sensitivity")
COUNTED += ("account", "api_token", "assignment")
FLEETING = {"assignment": ("held_until", "put_off_at", "reviewer_id"), "account": ("failures", "locked_until")}
"""Columns of holds that lapse, and of sign-ins that failed: they change from hour to hour, and no act says so."""
PAGE = 8_192


@dataclass(frozen=True)
class Damage:
    """What was done to which file or table, and what came of it; `said` is empty when nothing noticed."""

    store: str
    file: str
    harm: str
    said: str
    is_harmless: bool

    @property
    def is_missed(self) -> bool:
        """Whether a figure or a vote changed and nothing noticed."""
        return not self.said and not self.is_harmless


class DamagedSite:
    """A site with a backup and an export, to be damaged and mended again and again.

    Parameters
    ----------
    settings : Settings
        Of a site that may be changed, with the study "demo".
    place : Path
        For its backup, its export and a sound copy of everything.
    """

    def __init__(self, settings: Settings, place: Path) -> None:
        place.mkdir(parents=True, exist_ok=True)
        home, url = settings.home, settings.database_url
        self._settings = replace(settings, anchor=place / "anchor")
        self._export = place / "export"
        with Database(url) as database:
            _fill_rest(database)
        self._backup = Backups(self._settings, _now).create(place / "backups").folder
        with open_application(home, url) as application:
            application.exports.study("demo", ["csv", "jsonl"], self._export)
            with application.database.read() as uow:
                anchor(self._settings, _now(), uow.audit.count(), uow.audit.head())
        self._places = {
            "snapshots": home / "snapshots",
            "learned": home / "learned",
            "backup": self._backup,
            "export": self._export,
        }
        file = sqlite_file(parse_url(url))
        if file is None:
            keep(url)
        else:
            with closing(sqlite3.connect(file)) as raw:
                raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._places["database"] = file
        self._sound = place / "sound"
        for name, path in self._places.items():
            _copy(path, self._sound / name)
        self._known = set(self._problems())
        self._report = self._recomputed()
        self._figures = self._read_figures()
        self._rows = _rows(url)
        self._filled = _filled(url)

    def damage(self, chance: random.Random, store: str) -> Damage:
        """Damage one thing of a store at random, look whether it is found, and mend it."""
        try:
            thing, harm, is_changed = self._harm(chance, store)
            said = self._noticed(store) if is_changed else ""
            is_harmless = bool(said) or not is_changed or self._is_harmless(store)
        finally:
            self._mend(store)
        return Damage(store, thing, harm, said, is_harmless)

    def _harm(self, chance: random.Random, store: str) -> tuple[str, str, bool]:
        """Do it; gives what was damaged, how, and whether anything is different now."""
        url = self._settings.database_url
        if store == "rows":
            table, harm, column = _harm_row(url, self._filled, chance)
            return f"{table} {column}", harm, _rows(url) != self._rows
        harm = chance.choice(HARMS)
        if store == "pages":
            self._mend(store)  # anew, so that the server has read none of it
        files = files_of(url, chance) if store == "pages" else self._files(store)
        path = chance.choice(files)
        before = path.read_bytes()
        _harm(path, harm, files, chance, PAGE if store == "pages" and chance.random() < 0.5 else 64)
        return path.name, harm, not path.exists() or path.read_bytes() != before

    def _files(self, store: str) -> list[Path]:
        path = self._places[store]
        found = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
        # The mark of a verified backup and texts for people are no part of what is kept.
        return [one for one in found if one.name not in {"verified.json", "README.md", "README.txt"}]

    def _noticed(self, store: str) -> str:
        try:
            if store == "backup":
                verify_backup(self._backup, self._settings.database_url)
                return ""
            if store == "export":
                return "" if self._recomputed() == self._report else "the report differs"
            return next((text for text in self._problems() if text not in self._known), "")
        except AlertReviewError as error:
            return str(error)

    def _problems(self) -> Iterator[str]:
        """What doctor finds; the disk of this machine and the haste of a server for tests are no damage."""
        found = examine_site(self._settings, _now())
        yield from (one.text for one in found if one.level is Level.PROBLEM and one.subject != "disk")

    def _is_harmless(self, store: str) -> bool:
        """Compare by a plain way of its own the rows as the driver reads them; figures as the program shows them."""
        if store in {"database", "pages", "rows"}:
            if _rows(self._settings.database_url) != self._rows:
                return False
            try:
                return self._read_figures() == self._figures
            except AlertReviewError:
                return True  # named when it was read
        if store == "export":
            return self._recomputed() == self._report
        return False

    def _read_figures(self) -> list[str]:
        with open_application(self._settings.home, self._settings.database_url) as application:
            page = application.worklist.page(WorklistFilters(), limit=50)
            return [content_hash(application.reports.report("demo")), repr(page.rows)]

    def _recomputed(self) -> str:
        return content_hash(recompute(self._export))

    def _mend(self, store: str) -> None:
        url = parse_url(self._settings.database_url)
        if sqlite_file(url) is None and store in {"rows", "pages"}:
            copy_kept(self._settings.database_url)
            return
        store = "database" if store == "rows" else store
        path = self._places[store]
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        for log in self._settings.home.glob("alertreview.db-*"):
            if store == "database":
                log.unlink(missing_ok=True)
        _copy(self._sound / store, path)


def _now() -> datetime:
    return datetime.now(UTC)


def _fill_rest(database: Database) -> None:
    """Store what a demonstration lacks: somebody with units, an account and a token, and sensitivity curves."""
    now = _now()
    with database.write() as uow:
        person_id = uow.people.add("Fran", Role.VIEWER, created_at=now).id
        uow.units.give(person_id, ["Ward A", "Ward B"])
        account = Account(
            person_id=person_id, source=SignInSource.LOCAL, login="fran", password_hash="$argon2id$", created_at=now
        )
        uow.accounts.add(account)
        token = ApiToken(token_hash="c" * 64, person_id=person_id, purpose="fran's", created_at=now, expires_at=now)
        uow.api_tokens.add(token)
        run = uow.runs.latest_published()
        if run is None:
            raise LookupError("the demonstration has no run")
        uow.runs.put_sensitivity(run.id, {"curves": [0.5, 0.25]}, "1", now)
        uow.commit()


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)


def _harm(path: Path, harm: str, files: list[Path], chance: random.Random, size: int) -> None:
    """Harm a file; `size` bytes at once, from a multiple of it on where it is a page."""
    content = bytearray(path.read_bytes())
    at = chance.randrange(max(1, len(content)))
    begin = at - at % PAGE if size == PAGE else at
    if harm == "flip" and content:
        content[at] ^= 1 << chance.randrange(8)
    elif harm == "cut":
        del content[at:]
    elif harm == "zero":
        content[begin : begin + size] = bytes(len(content[begin : begin + size]))
    elif harm == "exchange":
        other = chance.choice(files).read_bytes()
        content[begin : begin + size] = other[begin : begin + size] if size == PAGE else other[:size]
    elif harm == "remove":
        path.unlink()
        return
    path.write_bytes(content)


def _rows(url: str) -> list[str] | str:
    """Read all counted rows as the driver gives them, without an index."""
    engine = sa.create_engine(parse_url(url), poolclass=sa.NullPool)
    try:
        with engine.connect() as connection:
            return [repr(row) for table in COUNTED for row in _sorted(connection, table)]
    except (sa.exc.SQLAlchemyError, UnicodeDecodeError) as error:
        return str(error)


def _filled(url: str) -> list[str]:
    """Return the counted tables that have a row."""
    engine = sa.create_engine(parse_url(url), poolclass=sa.NullPool)
    with engine.connect() as connection:
        return [name for name in COUNTED if connection.exec_driver_sql(f"SELECT 1 FROM {name} LIMIT 1").first()]


def _sorted(connection: sa.Connection, table: str) -> list[dict[str, Any]]:
    rows = connection.exec_driver_sql(f"SELECT * FROM {table}").mappings().fetchall()
    return sorted((_lasting(table, dict(row)) for row in rows), key=repr)


def _lasting(table: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without what changes from hour to hour and leaves no act."""
    is_fleeting = table == "account" or row.get("held_until") is not None
    return {name: value for name, value in row.items() if not (is_fleeting and name in FLEETING.get(table, ()))}


def _harm_row(url: str, tables: list[str], chance: random.Random) -> tuple[str, str, str]:
    """Harm a row as somebody does whom no trigger and no foreign key stops; gives table, harm and column, if it is one.

    What the database still refuses, as a second row of one key, is tried with another row.
    """
    engine = sa.create_engine(parse_url(url), poolclass=sa.NullPool)
    while True:
        table, harm = chance.choice(tables), chance.choice(ROW_HARMS)
        with contextlib.suppress(sa.exc.DBAPIError), without_guards(engine) as connection:
            return table, harm, _harm_one(connection, Record.metadata.tables[table], harm, chance)


@contextlib.contextmanager
def without_guards(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Begin a transaction whose acts no trigger and no foreign key stops."""
    with engine.connect() as connection, foreign_keys_at_rest(connection), connection.begin():
        if engine.dialect.name == "postgresql":
            connection.exec_driver_sql("SET LOCAL session_replication_role = replica")
            yield connection
            return
        asked = "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        guards = connection.exec_driver_sql(asked).fetchall()
        for name, _sql in guards:
            connection.exec_driver_sql(f"DROP TRIGGER {name}")
        yield connection
        for _name, sql in guards:
            connection.exec_driver_sql(sql)


def _harm_one(connection: sa.Connection, table: sa.Table, harm: str, chance: random.Random) -> str:
    rows = connection.exec_driver_sql(f"SELECT * FROM {table.name}").mappings().all()
    if not rows:
        return ""
    row, other = chance.choice(rows), chance.choice(rows)
    name = chance.choice(list(table.columns.keys()))
    if harm == "remove":
        connection.exec_driver_sql(f"DELETE FROM {table.name} WHERE {_is(row, table)}")
    elif harm == "repeat":
        keys = {one.name for one in table.columns if one.primary_key or one.unique} | {"version", "form_key"}
        new = {key: _other(value, chance) if key in keys else value for key, value in row.items()}
        names, values = ", ".join(new), ", ".join(f":{key}" for key in new)
        connection.execute(sa.text(f"INSERT INTO {table.name} ({names}) VALUES ({values})"), _given(new))
    elif harm == "exchange":
        for one, value in ((row, other[name]), (other, row[name])):
            _set(connection, table, one, name, value)
    else:
        _set(connection, table, row, name, _other(other[name] if row[name] is None else row[name], chance))
    return "" if harm in {"remove", "repeat"} else name


def _set(connection: sa.Connection, table: sa.Table, row: Any, name: str, value: Any) -> None:
    statement = sa.text(f"UPDATE {table.name} SET {name} = :value WHERE {_is(row, table)}")
    connection.execute(statement, _given({"value": value}))


def _is(row: Any, table: sa.Table) -> str:
    values = {one.name: row[one.name] for one in table.primary_key.columns}
    texts = {name: str(value) if isinstance(value, datetime) else value for name, value in values.items()}
    return " AND ".join(f"{name} = {value!r}" for name, value in texts.items())


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: json.dumps(value) if isinstance(value, (dict, list)) else value for name, value in values.items()}


def _other(value: Any, chance: random.Random) -> Any:
    """Return a value of the same kind that is another one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + chance.choice([-1, 1, 1_000])
    if isinstance(value, float):
        return value + chance.choice([-1e-9, 1.0])
    if isinstance(value, datetime):
        return value + timedelta(seconds=1)
    if isinstance(value, bytes):
        at = chance.randrange(len(value) or 1)
        return value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :] if value else b"x"
    if isinstance(value, str):
        at = chance.randrange(len(value) + 1)
        return value[:at] + chance.choice("x0") + value[at:]
    if isinstance(value, list):
        return [*value, 1]
    return {**(value or {}), "x": 1} if isinstance(value, dict) else value
