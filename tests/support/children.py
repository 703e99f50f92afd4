"""Child processes that tests kill, crowd or race: ``python -m tests.support.children ACT ...``."""

import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from alertreview.settings import Settings
from core.vocabulary import Answer, Decision
from db.database import Database
from db.maintenance import bulk
from tests.support.stored_site import Clock, Patients, StoredSite, new_run


def upgrade_one_after_another(folder: str) -> None:
    """Make the tables of many new databases; prints a line before each."""
    for number in range(10_000):
        print(number, flush=True)
        with Database(f"sqlite:///{Path(folder) / f'{number}.db'}") as database:
            database.upgrade()


def upgrade(file: str) -> None:
    """Make the tables of one database."""
    with Database(f"sqlite:///{file}") as database:
        database.upgrade()


def judge_everything(url: str, at: str = "0", pause: str = "0") -> None:
    """Judge case after case of the study "demo" as one of its readers; prints each case once it was acknowledged."""
    from alertreview.review.review import ReviewService

    with Database(url) as database:
        review = ReviewService(database, Patients, Clock())
        with database.read() as uow:
            reader = uow.studies.readers(uow.studies.by_slug("demo").id)[int(at)].person_id
        while (case := review.next_case("demo", reader)) is not None:
            saved = review.submit_judgment(
                "demo", reader, case.case_id, answer=Answer.RELEVANT, version_seen=0, form_key=case.form_key
            )
            print(saved.case_id, flush=True)
            time.sleep(float(pause))


def score_for_ever(url: str) -> None:
    """Hold the right to score and write alert after alert into a run that is never published; prints the run first."""
    with Database(url) as database, database.scoring_job():
        site = StoredSite.reopen(database)
        with database.write() as uow:
            run_id = uow.runs.start(*new_run(site.snapshot.id, len(site.instances)))
            uow.commit()
        print(run_id, flush=True)
        alerts = (site.alert(i % len(site.instances), 0, i + 1, Decision.OMISSION) for i in range(10_000_000))
        bulk.store_results(database, run_id, [], alerts)


def score(url: str, n_alerts: str) -> None:
    """Write a published run with many alerts; prints its number and the seconds it took."""
    with Database(url) as database, database.scoring_job():
        site = StoredSite.reopen(database)
        with database.write() as uow:
            run_id = uow.runs.start(*new_run(site.snapshot.id, len(site.instances)))
            uow.commit()
        began = time.perf_counter()
        alerts = (site.alert(i % len(site.instances), 0, i + 1, Decision.OMISSION) for i in range(int(n_alerts)))
        seal = bulk.store_results(database, run_id, [], alerts)
        with database.write() as uow:
            floors = {Decision.OMISSION: 0.3}
            uow.runs.publish(run_id, published_at=site.clock(), floors=floors, results_seal=seal)
            uow.commit()
        print(run_id, time.perf_counter() - began, flush=True)


def publish_for_ever(url: str) -> None:
    """Write and publish small runs, one after another; prints the number of each once it is published."""
    with Database(url) as database, database.scoring_job():
        site = StoredSite.reopen(database)
        while True:
            with database.write() as uow:
                run_id = uow.runs.start(*new_run(site.snapshot.id, len(site.instances)))
                uow.commit()
            alerts = (site.alert(i % len(site.instances), 0, i + 1, Decision.OMISSION) for i in range(200))
            bulk.store_results(database, run_id, [], alerts)
            with database.write() as uow:
                uow.runs.publish(run_id, published_at=site.clock(), floors={Decision.OMISSION: 0.3})
                uow.audit.append(site.clock(), "command line", "run published", f"run {run_id}", {})
                uow.commit()
            print(run_id, flush=True)


def migrate(*urls: str) -> None:
    """Upgrade databases one after another; prints the place of each in the list once it is done."""
    for number, url in enumerate(urls):
        with Database(url) as database:
            database.upgrade()
        print(number, flush=True)


def export_for_ever(url: str, folder: str) -> None:
    """Write the audit trail to file after file; prints name and rows of each once it was acknowledged."""
    from alertreview.access.audit_trail import AuditTrailService

    with Database(url) as database:
        trail = AuditTrailService(database, Clock())
        for number in range(100_000):
            report = trail.export(Path(folder) / f"{number}.jsonl")
            print(f"{number}.jsonl", report.n_events, flush=True)


def import_each(home: str, url: str, *sources: str) -> None:
    """Import sources one after another; prints the folder of each import once it was acknowledged."""
    from alertreview.records.import_site import import_records

    with Database(url) as database:
        for source in sources:
            outcome = import_records(Settings(Path(home), url), database, Path(source), "csv")
            print(outcome.folder.name, flush=True)


def back_up_for_ever(home: str, url: str, keep: str) -> None:
    """Back a site up again and again; prints a line at the start, then the folder of each backup once it counts."""
    from alertreview.operations.backup import Backups

    backups = Backups(Settings(Path(home), url), lambda: datetime.now(UTC))
    print("begun", flush=True)
    while True:
        print(backups.create(keep=int(keep)).folder.name, flush=True)


def upgrade_site(home: str, url: str) -> None:
    """Upgrade a site after a copy; prints a line at the start and one when it is done."""
    from alertreview.operations import upgrade as upgrades

    with Database(url) as database:
        print("begun", flush=True)
        upgrades.upgrade_site(Settings(Path(home), url), database, datetime.now(UTC))
    print("done", flush=True)


ACTS = {
    "import": import_each,
    "back-up": back_up_for_ever,
    "upgrade-site": upgrade_site,
    "publish-for-ever": publish_for_ever,
    "migrate": migrate,
    "export-for-ever": export_for_ever,
    "upgrade-many": upgrade_one_after_another,
    "upgrade": upgrade,
    "judge": judge_everything,
    "score-for-ever": score_for_ever,
    "score": score,
}

if __name__ == "__main__":
    ACTS[sys.argv[1]](*sys.argv[2:])
