"""Acts that are killed at random moments, and what must hold afterwards: a few for the tests, many for the bench.

Each function makes its own site at a place, kills a process in the middle of the act, and looks; an AssertionError says
what was lost.
"""

import contextlib
import json
import random
from collections.abc import Callable, Iterator

from core.vocabulary import RunStatus
from db import schema
from db.database import Database
from tests.support.faults import kill_at_random
from tests.support.kill_sites import Place
from tests.support.stored_site import child

Act = Callable[[Place, random.Random], int]
"""Takes a place and a source of chance; gives the number of acknowledged acts that were looked for."""


@contextlib.contextmanager
def reopened(place: Place, url: str) -> Iterator[Database]:
    """Open a database after a kill, as the next start does: it has no half row, and its audit trail is whole."""
    place.settle(url)
    with Database(url) as database:
        database.check()
        place.require_sound(database)
        with database.read() as uow:
            uow.audit.require_whole()
        yield database


def voting(place: Place, chance: random.Random) -> int:
    """Every acknowledged vote is there, each with its one audit row, and the study is as open as it was."""
    url = place.site()
    killed = kill_at_random(child("judge", url), chance, within_seconds=0.4)
    with reopened(place, url) as database:
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


def scoring(place: Place, chance: random.Random) -> int:
    """The published run stays what readers see, and the next job sweeps the broken one away."""
    url = place.site()
    with Database(url) as database, database.read() as uow:
        before = uow.runs.latest_published()
    kill_at_random(child("score-for-ever", url), chance, within_seconds=0.4)
    with reopened(place, url) as database:
        with database.read() as uow:
            assert uow.runs.latest_published() == before, "the published run changed"
        assert database.sweep() == 1
        with database.scoring_job(), database.read() as uow:
            assert next(run.status for run in uow.runs.all()) is RunStatus.ABANDONED
    return 1


def publishing(place: Place, chance: random.Random) -> int:
    """Every run whose publication was acknowledged is published, whole; no other one is but perhaps the last."""
    url = place.site()
    with Database(url) as database, database.read() as uow:
        before = {run.id for run in uow.runs.published()}
    killed = kill_at_random(child("publish-for-ever", url), chance, within_seconds=0.4)
    acknowledged = {int(line) for line in killed.lines}
    with reopened(place, url) as database:
        with database.read() as uow:
            published = {run.id: run.n_omissions for run in uow.runs.published() if run.id not in before}
            audited = len(uow.audit.latest(1000, action="run published"))
            counts = {run_id: uow.alerts.count(run_id, include_cut_windows=True) for run_id in published}
        assert acknowledged <= set(published), "an acknowledged publication is gone"
        assert len(published) <= len(acknowledged) + 1
        assert set(counts.values()) == {200} == set(published.values()), "a run was published in part"
        assert audited == len(published), "publications and audit rows differ"
    return len(acknowledged)


def migrating(place: Place, chance: random.Random, n_databases: int = 3) -> int:
    """Each database is at the old schema or at the new one, with all its rows, and the upgrade can be repeated."""
    urls = [place.site("0001") for _ in range(n_databases)]
    killed = kill_at_random(child("migrate", *urls), chance, within_seconds=0.7)
    for number, url in enumerate(urls):
        place.settle(url)
        with Database(url) as database:
            revision = database.state().revision
            assert revision in {"0001", schema.head()}, f"database {number} stands between two schemas"
            assert revision == schema.head() or str(number) not in killed.lines, "an acknowledged upgrade is gone"
            database.upgrade()
        with reopened(place, url) as database, database.read() as uow:
            assert len(uow.cases.blinded(uow.studies.by_slug("demo").id)) == 40
    return len(killed.lines)


def exporting(place: Place, chance: random.Random) -> int:
    """Each acknowledged file is there, whole and audited; what was half written has no name that passes for a file."""
    url = place.site()
    out = place.folder / "out"
    out.mkdir()
    killed = kill_at_random(child("export-for-ever", url, out), chance, within_seconds=0.4)
    acknowledged = dict(line.split() for line in killed.lines)
    written = {path.name: path for path in out.iterdir() if path.suffix == ".jsonl"}
    assert set(acknowledged) <= set(written), "an acknowledged file is gone"
    for name, path in written.items():
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        assert [row["sequence"] for row in rows] == list(range(1, len(rows) + 1)), f"{name} is half a file"
        assert name not in acknowledged or len(rows) == int(acknowledged[name])
    with reopened(place, url) as database:
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
