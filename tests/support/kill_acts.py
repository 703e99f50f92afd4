"""Acts that are killed at random moments, and what must hold afterwards: a few for the tests, many for the bench.

Each function makes its own site at a place, kills a process in the middle of the act, and looks; an AssertionError says
what was lost.
"""

import asyncio
import contextlib
import functools
import json
import random
import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import sqlalchemy as sa
from websockets.exceptions import ConnectionClosed

from alertreview.application import open_application
from alertreview.cli.demo import READERS as SIMULATED_READERS
from alertreview.cli.demo import VISITOR
from alertreview.operations.backup import Backups, list_backups, verify_backup
from alertreview.operations.backup_manifest import MANIFEST, read_manifest
from alertreview.operations.backup_manifest import check_files as check_backup
from alertreview.operations.upgrade import BEFORE_UPGRADE, upgrade_site
from alertreview.records.snapshots import open_import
from alertreview.settings import Settings
from core.vocabulary import RunStatus
from db import schema
from db.connection.engine import parse_url
from db.database import BEFORE_LATER_SEALS, Database
from tests.support.faults import kill_at_random
from tests.support.isolated import run_apart
from tests.support.kill_sites import Place
from tests.support.outside import noting_environment
from tests.support.page_session import open_page
from tests.support.panel_site import write_ward
from tests.support.postgresql import connected
from tests.support.served import dashboard
from tests.support.stored_site import child, rest_of

READERS = (VISITOR, *SIMULATED_READERS)
BETWEEN_TRANSACTIONS = {"0007", BEFORE_LATER_SEALS, schema.head()}
"""Where a killed upgrade may stand: seals are made in a transaction of their own, before the schema that says so."""
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


@contextlib.contextmanager
def votes_beside(place: Place, url: str) -> Iterator[list[int]]:
    """Let readers vote from processes of their own meanwhile, and kill them too; gives the votes acknowledged.

    When the block has ended, every one of them is stored.
    """
    voters = [child("judge", url, reader, 0.02) for reader in range(place.n_voters)]
    firsts: list[str] = []
    acknowledged: list[int] = []
    try:
        firsts += [voter.stdout.readline() for voter in voters if voter.stdout is not None]
        yield acknowledged
    finally:
        for voter in voters:
            voter.kill()
        rests = [rest_of(voter) for voter in voters]
    assert all(firsts), rests
    printed = [first + rest for first, (rest, _errors) in zip(firsts, rests, strict=True)]
    acknowledged += [int(line) for lines in printed for line in lines.split("\n")[:-1]]
    place.settle(url)
    with Database(url) as database, database.read() as uow:
        readers = [reader.person_id for reader in uow.studies.readers(uow.studies.by_slug("demo").id)]
        stored = {(vote.reviewer_id, vote.case_id) for vote in uow.judgments.votes(uow.studies.by_slug("demo").id)}
    told = {(readers[reader], int(line)) for reader, lines in enumerate(printed) for line in lines.split("\n")[:-1]}
    assert told <= stored, "an acknowledged vote of a reader who voted meanwhile is gone"


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
    with votes_beside(place, url) as votes:
        kill_at_random(child("score-for-ever", url), chance, within_seconds=0.4)
    with reopened(place, url) as database:
        with database.read() as uow:
            assert uow.runs.latest_published() == before, "the published run changed"
        assert database.sweep() == 1
        with database.scoring_job(), database.read() as uow:
            assert next(run.status for run in uow.runs.all()) is RunStatus.ABANDONED
    return 1 + len(votes)


def publishing(place: Place, chance: random.Random) -> int:
    """Every run whose publication was acknowledged is published, whole; no other one is but perhaps the last."""
    url = place.site()
    with Database(url) as database, database.read() as uow:
        before = {run.id for run in uow.runs.published()}
    with votes_beside(place, url) as votes:
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
    return len(acknowledged) + len(votes)


def migrating(place: Place, chance: random.Random, n_databases: int = 3) -> int:
    """Each database is at a whole schema, at the new one if that was acknowledged, and can be upgraded again."""
    urls = [place.site("0007") for _ in range(n_databases)]
    killed = kill_at_random(child("migrate", *urls), chance, within_seconds=0.7)
    for number, url in enumerate(urls):
        place.settle(url)
        with Database(url) as database:
            revision = database.state().revision
            assert revision in BETWEEN_TRANSACTIONS, f"database {number} stands between two schemas"
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
    with votes_beside(place, url) as votes:
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
        assert len(written) <= audited <= len(acknowledged) + 1, "a file is there without its audit row"
    return len(acknowledged) + len(votes)


def importing(place: Place, chance: random.Random) -> int:
    """Every acknowledged import has its rows and all its files; a half one has no name that passes for an import."""
    url = place.site()
    settings = Settings(place.folder / "home", url)
    sources = [write_ward(place.folder / f"source-{n}", n_patients=8 + n, n_days=3) for n in range(6)]
    with votes_beside(place, url) as votes:
        killed = kill_at_random(child("import", settings.home, url, *sources), chance, within_seconds=2)
    with reopened(place, url) as database:
        with database.read() as uow:
            known = {snapshot.folder for snapshot in uow.snapshots.all() if snapshot.source_format != "meds"}
            audited = len(uow.audit.latest(1000, action="records imported"))
            for folder in known:
                open_import(settings, uow, folder, whole=True)
        assert set(killed.lines) <= known, "an acknowledged import is gone"
        assert len(known) == audited <= len(killed.lines) + 1
        for folder in settings.snapshots.glob("[!.]*"):
            assert (folder / "manifest.json").is_file(), f"{folder.name} is half an import"
    with child("import", settings.home, url, *sources) as again:
        printed, errors = again.communicate()
    assert len(printed.split()) == len(sources), errors
    return len(killed.lines) + len(votes)


def backing_up(place: Place, chance: random.Random, keep: int = 2) -> int:
    """The backups that were acknowledged last are there and verify, every listed one is whole, and the next works."""
    settings = place.demonstration()
    with votes_beside(place, settings.database_url) as votes:
        killed = kill_at_random(child("back-up", settings.home, settings.database_url, keep), chance, within_seconds=4)
    made, listed = killed.lines[1:], list_backups(settings.backups)
    assert set(made[-keep:][-1:]) <= {folder.name for folder in listed}, "an acknowledged backup is gone"
    for folder in listed:
        check_backup(folder, read_manifest(folder))
    with reopened(place, settings.database_url):
        pass
    if listed:
        verify_backup(listed[-1], settings.database_url)
    latest = Backups(settings, lambda: datetime.now(UTC)).create(keep=keep)
    assert list_backups(settings.backups)[-1] == latest.folder
    unmarked = [path.name for path in settings.backups.glob("[!.]*") if path not in list_backups(settings.backups)]
    assert not unmarked, f"{unmarked} is half removed and passes for a backup"
    assert not _scratch_databases(settings.database_url), "a database in which a backup was tried is still there"
    return len(made) + len(votes)


def upgrading(place: Place, chance: random.Random) -> int:
    """The site is at the old schema, or at a later one beside a whole copy of the old; the next start goes on."""
    url = place.site("0007")
    settings = Settings(place.folder / "home", url)
    killed = kill_at_random(child("upgrade-site", settings.home, url), chance, within_seconds=1)
    place.settle(url)
    copies = [path.parent for path in settings.backups.glob(f"[!.]*-{BEFORE_UPGRADE}-0007/{MANIFEST}")]
    for folder in copies:
        check_backup(folder, read_manifest(folder))
    with Database(url) as database:
        revision = database.state().revision
        assert revision in BETWEEN_TRANSACTIONS, "the database stands between two schemas"
        assert copies or revision == "0007", "upgraded without a copy"
        assert revision == schema.head() or "done" not in killed.lines, "an acknowledged upgrade is gone"
        upgrade_site(settings, database, datetime.now(UTC))
    with reopened(place, url) as database, database.read() as uow:
        assert len(uow.cases.blinded(uow.studies.by_slug("demo").id)) == 40
    return len(killed.lines) - 1


def serving(place: Place, chance: random.Random, n_servers: int = 1) -> int:
    """Every vote that a page showed as saved is stored with its audit row, and the next server goes on.

    Until it was killed no server called an address outside this machine. With two servers on one home the readers
    are divided between them, only the first is killed, and the readers of the second finish their cases.
    """
    settings = place.demonstration()
    told: list[tuple[str, int]] = []
    ended: dict[str, str] = {}
    site = {"ALERTREVIEW_DATABASE": settings.database_url, **noting_environment(place.folder)}
    with open_application(settings.home, settings.database_url) as application:
        before, audited_before = _votes(application.database)
    with contextlib.ExitStack() as stack:
        servers = [
            stack.enter_context(dashboard(settings.home, place.folder / f"server-{number}.log", **site))
            for number in range(n_servers)
        ]

        async def read(name: str, port: int) -> None:
            """Vote on page after page until the server is gone or no case is left."""
            try:
                async with open_page(port, "review", "study=demo") as page:
                    await page.choose("w_person", name)
                    while answers := [key for key in page.buttons if key.startswith("rv_answer_2_")]:
                        case = int(answers[0].rpartition("_")[2])
                        await page.press(answers[0])
                        await page.press(f"rv_save_{case}")
                        assert not page.failures, page.failures
                        if any("Saved" in text for text in page.texts):
                            told.append((name, case))
                    ended[name] = "finished"
            except (ConnectionClosed, OSError) as error:
                ended[name] = repr(error)

        async def read_and_kill() -> None:
            ports = [servers[number % n_servers][0] for number in range(len(READERS))]
            readers = [asyncio.create_task(read(*one)) for one in zip(READERS, ports, strict=True)]
            deadline = time.monotonic() + 120
            while not told and time.monotonic() < deadline and not all(reader.done() for reader in readers):
                await asyncio.sleep(0.01)
            await asyncio.sleep(chance.uniform(0, 1.5))
            servers[0][1].send_signal(signal.SIGKILL)
            await asyncio.gather(*readers)

        run_apart(read_and_kill())
        still_there = [server.poll() is None for _port, server in servers[1:]]
    assert all(still_there), "the other server ended too"
    assert told, "nobody could vote"
    assert (place.folder / "outside.txt").read_text(encoding="utf-8") == "", "a server called an outside address"
    with reopened(place, settings.database_url) as database:
        stored, audited = _votes(database)
    assert set(told) <= stored - before, "a vote that a page showed as saved is gone"
    assert len(stored - before) <= len(told) + len(READERS), "more votes than were given"
    assert audited - audited_before == len(stored - before), "votes and audit rows differ"
    assert n_servers == 1 or {ended[name] for name in READERS[1::2]} == {"finished"}, f"a reader was cut off: {ended}"
    return len(told)


def _votes(database: Database) -> tuple[set[tuple[str, int]], int]:
    """Return the votes of the study, and how many audit rows tell of votes."""
    with database.read() as uow:
        names = {person.id: person.name for person in uow.people.all()}
        votes = uow.judgments.votes(uow.studies.by_slug("demo").id)
        n_audited = len(uow.audit.latest(1000, action="judgment saved"))
    return {(names[vote.reviewer_id], vote.case_id) for vote in votes}, n_audited


def _scratch_databases(url: str) -> list[str]:
    """Databases on the site's server in which backups are tried."""
    if parse_url(url).get_backend_name() == "sqlite":
        return []
    with connected() as connection:
        return list(connection.scalars(sa.text("SELECT datname FROM pg_database WHERE datname LIKE '%verify%'")))


ACTS: dict[str, Act] = {
    "voting": voting,
    "scoring": scoring,
    "publishing": publishing,
    "migrating": migrating,
    "exporting": exporting,
    "importing": importing,
    "backing up": backing_up,
    "upgrading": upgrading,
    "serving": serving,
    "serving twice": functools.partial(serving, n_servers=2),
}
