"""Acts that are killed at random moments, and what must hold afterwards: a few for the tests, many for the bench.

Each function makes its own site below a folder, kills a process in the middle of the act, and looks; an AssertionError
says what was lost.
"""

import functools
import json
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from core.vocabulary import Decision, RunStatus
from db import schema
from db.session import Database
from tests.faults import kill_at_random
from tests.stored_site import StoredSite, child

Act = Callable[[Path, random.Random], int]
"""Takes an empty folder and a source of chance; gives the number of acknowledged acts that were looked for."""


def made(folder: Path) -> str:
    """URL of a new site with one published run and an open study."""
    file = folder / "site.db"
    file.write_bytes(_new_site())
    return f"sqlite:///{file}"


@functools.cache
def _new_site() -> bytes:
    """The file of such a site, made once: it is as it was before anything happened."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "site.db"
        with Database(f"sqlite:///{file}") as database:
            database.upgrade()
            site = StoredSite(database)
            site.publish([site.alert(row, 0, row + 1, Decision.OMISSION) for row in range(12)])
            site.study(40, 3)
        assert not file.with_name("site.db-wal").exists(), "rows stand outside of the file"
        return file.read_bytes()


def _require_sound(database: Database) -> None:
    """The database opens, has no half row, and its audit trail is whole."""
    with database.engine.connect() as connection, connection.begin():
        assert connection.exec_driver_sql("PRAGMA integrity_check").scalar() == "ok"
        assert connection.exec_driver_sql("PRAGMA foreign_key_check").first() is None
    with database.read() as uow:
        uow.audit.require_whole()


def voting(folder: Path, chance: random.Random) -> int:
    """Every acknowledged vote is there, each with its one audit row, and the study is as open as it was."""
    url = made(folder)
    killed = kill_at_random(child("judge", url), chance, within_seconds=0.4)
    with Database(url) as database:
        _require_sound(database)
        with database.read() as uow:
            study = uow.studies.by_slug("demo")
            stored = {vote.case_id for vote in uow.judgments.votes(study.id)}
            audited = len(uow.audit.latest(1000, action="judgment saved"))
        acknowledged = {int(line) for line in killed.lines}
        assert acknowledged <= stored, "an acknowledged vote is gone"
        assert len(stored) <= len(acknowledged) + 1, "more votes than were given"
        assert audited == len(stored), "votes and audit rows differ"
        assert study.status.value == "open"
    return len(acknowledged)


def scoring(folder: Path, chance: random.Random) -> int:
    """The published run stays what readers see, and the next job sweeps the broken one away."""
    url = made(folder)
    with Database(url) as database, database.read() as uow:
        before = uow.runs.latest_published()
    kill_at_random(child("score-for-ever", url), chance, within_seconds=0.4)
    with Database(url) as database:
        _require_sound(database)
        with database.read() as uow:
            assert uow.runs.latest_published() == before, "the published run changed"
        assert database.sweep() == 1
        with database.scoring_job(), database.read() as uow:
            assert next(run.status for run in uow.runs.all()) is RunStatus.ABANDONED
    return 1


def publishing(folder: Path, chance: random.Random) -> int:
    """Every run whose publication was acknowledged is published, whole; no other one is but perhaps the last."""
    url = made(folder)
    with Database(url) as database, database.read() as uow:
        before = {run.id for run in uow.runs.published()}
    killed = kill_at_random(child("publish-for-ever", url), chance, within_seconds=0.4)
    acknowledged = {int(line) for line in killed.lines}
    with Database(url) as database:
        _require_sound(database)
        with database.read() as uow:
            published = {run.id: run.n_omissions for run in uow.runs.published() if run.id not in before}
            audited = len(uow.audit.latest(1000, action="run published"))
            counts = {run_id: uow.alerts.count(run_id, include_cut_windows=True) for run_id in published}
        assert acknowledged <= set(published), "an acknowledged publication is gone"
        assert len(published) <= len(acknowledged) + 1
        assert set(counts.values()) == {200} == set(published.values()), "a run was published in part"
        assert audited == len(published), "publications and audit rows differ"
    return len(acknowledged)


def migrating(folder: Path, chance: random.Random, n_databases: int = 5) -> int:
    """Each database is at the old schema or at the new one, with all its rows, and the upgrade can be repeated."""
    old, files = folder / "old", folder / "files"
    old.mkdir()
    files.mkdir()
    url = made(old)
    with Database(url) as database:
        database.downgrade("0001")
    for number in range(n_databases):
        shutil.copyfile(old / "site.db", files / f"{number:03d}.db")
    killed = kill_at_random(child("migrate", files), chance, within_seconds=0.7)
    for file in sorted(files.glob("*.db")):
        with Database(f"sqlite:///{file}") as database:
            revision = database.state().revision
            assert revision in {"0001", schema.head()}, f"{file.name} stands between two schemas"
            assert revision == schema.head() or file.name not in killed.lines, "an acknowledged upgrade is gone"
            database.upgrade()
            _require_sound(database)
            with database.read() as uow:
                assert len(uow.cases.blinded(uow.studies.by_slug("demo").id)) == 40
    return len(killed.lines)


def exporting(folder: Path, chance: random.Random) -> int:
    """Each acknowledged file is there, whole and audited; what was half written has no name that passes for a file."""
    url = made(folder)
    out = folder / "out"
    out.mkdir()
    killed = kill_at_random(child("export-for-ever", url, out), chance, within_seconds=0.4)
    acknowledged = dict(line.split() for line in killed.lines)
    written = {path.name: path for path in out.iterdir() if path.suffix == ".jsonl"}
    assert set(acknowledged) <= set(written), "an acknowledged file is gone"
    for name, path in written.items():
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert [row["sequence"] for row in rows] == list(range(1, len(rows) + 1)), f"{name} is half a file"
        assert name not in acknowledged or len(rows) == int(acknowledged[name])
    with Database(url) as database:
        _require_sound(database)
        with database.read() as uow:
            audited = len(uow.audit.latest(1000, action="audit trail exported"))
        assert len(acknowledged) <= audited <= len(written)
    return len(acknowledged)


ACTS: dict[str, Act] = {
    "voting": voting,
    "scoring": scoring,
    "publishing": publishing,
    "migrating": migrating,
    "exporting": exporting,
}
