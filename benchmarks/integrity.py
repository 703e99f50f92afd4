"""Seconds that audit verify, doctor and backup take on a site with a million alerts and 100,000 judgments.

It builds a small simulated site, publishes runs on it until they hold so many alerts, and stores so many versions of
judgments, each with its sealed audit row. It ends with 0 when `audit verify` takes less than a minute, with 1 when not.
"""

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from alertreview.cli.demo import DemoSize, build_demo
from alertreview.operations.backup import Backups
from alertreview.operations.doctor import examine_site
from alertreview.settings import Settings, load_settings
from benchmarks._machine import Watch, described
from core.vocabulary import Answer, Decision, RunStatus
from db.database import Database
from db.maintenance.bulk import store_results
from db.models import UNSAVED, Alert, Judgment

MOST_SECONDS = 60.0
AT_ONCE = 1_000


def now() -> datetime:
    """Return the current time, aware."""
    return datetime.now(UTC)


def publish_copies(database: Database, n_alerts: int) -> None:
    """Publish copies of the demonstration's run with other alerts."""
    with database.read() as uow:
        run = uow.runs.latest_published()
        if run is None:
            raise LookupError("the demonstration has no run")
        rows, tasks = uow.snapshots.instances(run.snapshot_id), uow.snapshots.tasks(run.snapshot_id)
        folds = uow.runs.fold_of_row(run.id)
    new = replace(
        run, id=UNSAVED, status=RunStatus.RUNNING, created_at=now(), published_at=None, scorers={}, model_folder=""
    )
    pairs = list(itertools.product(rows, tasks))

    def alerts(n: int) -> Iterator[Alert]:
        for rank, (row, task) in enumerate(pairs[:n], start=1):
            yield Alert(
                task_id=task.id,
                instance_id=row.id,
                scorer=run.scorer,
                rank=rank,
                decision=Decision.OMISSION,
                kind=task.kind,
                unit=row.unit,
                window_cut=row.window_hours < 24,
                score=1 / rank,
                scaled_score=1 / rank,
                soft_label=0.5,
                support=0.9,
            )

    while n_alerts > 0:
        with database.write() as uow:
            run_id = uow.runs.start(new, folds)
            uow.commit()
        seal = store_results(database, run_id, [], alerts(n_alerts))
        with database.write() as uow:
            uow.runs.publish(run_id, published_at=now(), floors={Decision.OMISSION: 0.0}, results_seal=seal)
            uow.commit()
        n_alerts -= len(pairs)


def judge(database: Database, n_judgments: int) -> None:
    """Judge the cases of the demonstration again and again."""
    with database.read() as uow:
        votes = uow.judgments.votes(uow.studies.by_slug("demo").id)
    latest = {(vote.case_id, vote.reviewer_id): vote.version for vote in votes}
    readers = itertools.cycle(sorted(latest))
    for begin in range(0, n_judgments, AT_ONCE):
        with database.write(lasting=False) as uow:
            for number in range(begin, min(begin + AT_ONCE, n_judgments)):
                case_id, reviewer_id = place = next(readers)
                latest[place] += 1
                uow.judgments.append(
                    Judgment(
                        case_id=case_id,
                        reviewer_id=reviewer_id,
                        version=latest[place],
                        answer=Answer.USUAL,
                        certainty=None,
                        comment="",
                        reason="measured",
                        form_key=f"measured {number}",
                        judged_at=now(),
                        active_seconds=1.0,
                        saw_score_before=False,
                        rubric_version=1,
                    )
                )
                uow.audit.append(now(), f"person {reviewer_id}", "judgment saved", f"case {case_id}", {})
            uow.commit()


def timed(name: str, act: Callable[[], object]) -> float:
    """Do an act and print the seconds it took, and those of the processor."""
    began, cpu = time.perf_counter(), time.process_time()
    act()
    seconds = time.perf_counter() - began
    print(f"{name:14} {seconds:6.1f} s, {time.process_time() - cpu:6.1f} s of the processor", flush=True)
    return seconds


def measure(settings: Settings) -> float:
    """Time the three commands; returns the seconds of `audit verify`."""
    with Database(settings.database_url) as database, database.read() as uow:
        seconds = timed("audit verify", uow.audit.require_whole)
    timed("doctor", lambda: list(examine_site(settings, now())))
    timed("backup create", lambda: Backups(settings, now).create())
    return seconds


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="./dev bench integrity", description=__doc__)
    parser.add_argument("--alerts", type=int, default=1_000_000)
    parser.add_argument("--judgments", type=int, default=100_000)
    options = parser.parse_args()
    print(described())
    with tempfile.TemporaryDirectory() as folder:
        settings = load_settings(Path(folder) / "home", create=True)
        list(build_demo(settings, DemoSize(n_patients=60, n_cases=36, n_waiting=6)))
        with Database(settings.database_url) as database:
            timed("alerts", lambda: publish_copies(database, options.alerts))
            timed("judgments", lambda: judge(database, options.judgments))
        watch = Watch(settings.database_url)
        seconds = measure(settings)
        print(f"The machine: {watch.stop()}")
    return int(seconds >= MOST_SECONDS)


if __name__ == "__main__":
    sys.exit(main())
