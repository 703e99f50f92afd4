"""A small stored site for tests: an import, published runs, people and studies; and child processes that use it."""

import itertools
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from alertreview.alerts.models import CaseView, LastValue, Timeline
from alertreview.review.review import ReviewService
from alertreview.studies.models import ChosenCase, ScorerSays
from alertreview.studies.studies import StudyService
from core.kinds import Kind
from core.vocabulary import Decision, Role, Split
from db.database import Database
from db.models import Alert, CohortSnapshot, Instance, ScoringRun, Task, TaskResult
from db.repositories.runs import prepare_alerts, prepare_task_results
from db.unit_of_work import UnitOfWork

EPOCH = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


@dataclass
class Clock:
    """A clock that stands still until a test moves it; each look is a microsecond later, so that orders are certain."""

    now: datetime = EPOCH
    looks: "itertools.count[int]" = field(default_factory=itertools.count)

    def __call__(self) -> datetime:
        return self.now + timedelta(microseconds=next(self.looks))

    def pass_hours(self, hours: float) -> None:
        self.now += timedelta(hours=hours)


def add_alerts(uow: UnitOfWork, run_id: int, alerts: Iterable[Alert]) -> None:
    """Add alerts to a running run."""
    uow.runs.add_alerts(run_id, prepare_alerts(uow._connection.dialect, run_id, alerts))


def add_task_results(uow: UnitOfWork, run_id: int, results: Iterable[TaskResult]) -> None:
    """Add what tasks scored to a running run."""
    uow.runs.add_task_results(run_id, prepare_task_results(run_id, results))


class Patients:
    """Patient views that know nothing but the row they were asked for."""

    def __init__(self, content_hash: str) -> None:
        self.content_hash = content_hash

    def case(self, row_index: int, task_key: str) -> CaseView:
        timeline = Timeline(
            snapshot_at=EPOCH + timedelta(days=row_index),
            window_hours=24.0,
            decision_name=f"{task_key} of row {row_index} in {self.content_hash}",
            past_orders=(),
            orders_in_window=(),
            labs=(),
            drugs=(),
        )
        return CaseView(timeline, (LastValue("Potassium", 4.0, "mmol/L", "", float(row_index)),))


def new_snapshot(content_hash: str = "a" * 64, site_timezone: str = "Europe/Berlin") -> CohortSnapshot:
    return CohortSnapshot(
        content_hash=content_hash,
        folder=content_hash[:12],
        source_format="meds",
        mapping_name="test",
        site_timezone=site_timezone,
        calendar_is_shifted=False,
        simulated=True,
        import_summary={"events": 7},
        created_at=EPOCH,
    )


def new_instances(n: int) -> list[Instance]:
    return [
        Instance(
            row_index=row,
            patient_id=f"canary-{row // 3}",
            stay_id=row // 3,
            snapshot_at=EPOCH + timedelta(days=row),
            day_of_stay=row % 3 + 1,
            unit=("Ward A", "Ward B", "")[row % 3],
            age_years=None if row % 5 == 0 else 40.0 + row,
            sex="F" if row % 2 else "M",
            window_hours=24.0 if row % 4 else 11.5,
        )
        for row in range(n)
    ]


def new_tasks(n: int) -> list[Task]:
    kinds = (Kind.LAB_ORDER, Kind.MEDICATION)
    names = ("Troponin I", "Heparin", "Natrium (Na⁺)", "Vancomycin", "Ammoniak")
    return [
        Task(
            column_index=t,
            task_key=f"{kinds[t % 2]}/{t}",
            name=names[t % len(names)] + (f" {t}" if t >= len(names) else ""),
            kind=kinds[t % 2],
            order_group="",
        )
        for t in range(n)
    ]


def new_run(snapshot_id: int, n_instances: int) -> tuple[ScoringRun, np.ndarray]:
    folds = np.r_[np.full(n_instances // 2, -1), np.zeros(n_instances - n_instances // 2)].astype(np.int16)
    run = ScoringRun(
        snapshot_id=snapshot_id,
        scorer="softhad",
        parameters={"n_neighbors": 75},
        seed=1,
        code_version="0.1.0",
        split=Split.TIME,
        n_past=n_instances // 2,
        n_recent=n_instances - n_instances // 2,
        n_patient_days=n_instances - n_instances // 2,
        created_at=EPOCH,
    )
    return run, folds


class StoredSite:
    """One import with its tasks; more is stored on demand.

    Parameters
    ----------
    database : Database
        With its tables made.
    n_instances, n_tasks : int
        Size of the import.
    """

    def __init__(self, database: Database, n_instances: int = 12, n_tasks: int = 4) -> None:
        with database.write() as uow:
            uow.snapshots.add(new_snapshot(), new_instances(n_instances), new_tasks(n_tasks))
            uow.commit()
        self._open(database)

    @classmethod
    def reopen(cls, database: Database) -> "StoredSite":
        """Open what an earlier one stored."""
        site = cls.__new__(cls)
        site._open(database)
        return site

    def _open(self, database: Database) -> None:
        self.database = database
        self.clock = Clock()
        with database.read() as uow:
            found = uow.snapshots.latest()
            if found is None:
                raise LookupError("nothing is stored")
            self.snapshot: CohortSnapshot = found
            self.instances = uow.snapshots.instances(self.snapshot.id)
            self.tasks = uow.snapshots.tasks(self.snapshot.id)
        self.review = ReviewService(database, Patients, self.clock)
        self.studies = StudyService(database, self.clock)

    def alert(
        self,
        row: int,
        task: int,
        rank: int,
        decision: Decision,
        scaled_score: float = 0.5,
        scorer: str = "softhad",
    ) -> Alert:
        instance = self.instances[row]
        return Alert(
            task_id=self.tasks[task].id,
            instance_id=instance.id,
            rank=rank,
            decision=decision,
            kind=self.tasks[task].kind,
            unit=instance.unit,
            window_cut=instance.window_hours < 24,
            score=1.5,
            scaled_score=scaled_score,
            soft_label=-0.25,
            support=0.75,
            scorer=scorer,
        )

    def publish(self, alerts: list[Alert]) -> int:
        """Store a run with these alerts and publish it; gives its number."""
        with self.database.write() as uow:
            run_id = uow.runs.start(*new_run(self.snapshot.id, len(self.instances)))
            add_alerts(uow, run_id, alerts)
            uow.runs.publish(run_id, published_at=self.clock(), floors=dict.fromkeys(Decision, 0.3))
            uow.commit()
        return run_id

    def person(self, name: str, role: Role = Role.REVIEWER) -> int:
        with self.database.write() as uow:
            person = uow.people.add(name, role, created_at=self.clock(), simulated=True)
            uow.commit()
        return person.id

    def case(self, row: int, task: int = 0, **changes: object) -> ChosenCase:
        fields: dict[str, object] = {
            "row_index": row,
            "task_key": self.tasks[task].task_key,
            "decision": Decision.OMISSION,
            "stratum": "high",
            "stratum_size": 10,
            "inclusion_probability": 0.5,
            "scores": {"softhad": ScorerSays(1.25, 0.875, -0.3, 0.6), "logistic": ScorerSays(0.5, 0.25)},
        }
        return ChosenCase(**(fields | changes))  # type: ignore[arg-type]

    def study(
        self, n_cases: int, n_readers: int, *, n_slots: int = 3, slug: str = "demo", **options: object
    ) -> list[int]:
        """Make and open a study over the first cases; gives the readers' numbers."""
        run_id = self.publish([])
        chosen = [self.case(i % len(self.instances), i // len(self.instances)) for i in range(n_cases)]
        self.studies.create_study(slug, "A study", run_id, chosen, n_slots=n_slots, **options)  # type: ignore[arg-type]
        readers = [self.person(f"{slug} reader {i}") for i in range(n_readers)]
        self.studies.add_readers(slug, readers)
        self.studies.open_study(slug)
        return readers


ROOT = Path(__file__).resolve().parents[2]


def child(*arguments: object) -> "subprocess.Popen[str]":
    """Start a process of `tests.support.children`; its standard output is read line by line."""
    command = [sys.executable, "-m", "tests.support.children", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def rest_of(process: "subprocess.Popen[str]") -> tuple[str, str]:
    """What a child prints until its end, on both outputs.

    `communicate` would pass over lines that came together with one that was read before: Python keeps them.
    """
    with process:
        if process.stdout is None or process.stderr is None:
            raise ValueError("the child's output is not read")
        return process.stdout.read(), process.stderr.read()


def killed_after(process: "subprocess.Popen[str]", n_lines: int) -> list[str]:
    """Read some lines of a child, kill it outright, and give all that it printed."""
    if process.stdout is None:
        raise ValueError("the child's output is not read")
    lines = [process.stdout.readline().strip() for _ in range(n_lines)]
    process.kill()
    rest, errors = rest_of(process)
    if not all(lines):
        raise AssertionError(errors)
    return [*lines, *rest.split("\n")[:-1]]


def swept_after_kill(database: Database) -> int:
    """Sweep what a killed scoring job left; a server notices that its client is gone a moment later."""
    deadline = time.monotonic() + 60
    while not (n_swept := database.sweep()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return n_swept
