"""A site with many alerts for the dashboard's measurements: a simulated demonstration, and a large run put on top.

The import behind the large run has as many patient-days as a year of a hospital; only those of the demonstration have
records. They hold the first ranks, so that the alerts that are opened have a time line and neighbours.
"""

import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from alertreview.cli.demo import DemoSize, build_demo
from alertreview.settings import load_settings
from core.vocabulary import Decision
from db.database import Database
from db.maintenance.bulk import store_results
from db.models import UNSAVED, Alert, Instance, ScoringRun, Task

FIRST_DAY = datetime(2025, 11, 1, 7, 0, tzinfo=UTC)
DAYS = 365
FIRST_REAL = 2_000
"""Ranks of each list that belong to patient-days with records."""


def build_site(home: Path, n_alerts: int, n_instances: int) -> None:
    """Build the site; what is there already is kept, if it is of this size."""
    settings = load_settings(home, create=True)
    ready, wanted = home / "bench-ready", f"{n_alerts} alerts, {n_instances} instances"
    if ready.exists() and ready.read_text() != wanted:
        raise SystemExit(f"{home} holds a site of {ready.read_text()}; name another folder, or that size")
    if not ready.exists():
        for line in build_demo(settings, DemoSize(n_patients=60, n_cases=36, n_waiting=6)):
            print(f"  {line}", flush=True)
        with Database(settings.database_url) as database:
            _put_large_run(database, n_alerts, n_instances)
        ready.write_text(wanted)


def _put_large_run(database: Database, n_alerts: int, n_instances: int) -> None:
    with database.read() as uow:
        demo = uow.runs.latest_published()
        if demo is None:
            raise LookupError("the demonstration has no run")
        small = uow.snapshots.get(demo.snapshot_id)
        real = uow.snapshots.instances(small.id)
        tasks = uow.snapshots.tasks(small.id)
        folds = uow.runs.fold_of_row(demo.id)
        results = [uow.runs.task_result(demo.id, task.id) for task in tasks]
    n_instances = max(n_instances, 2 * len(real))
    new = replace(small, id=UNSAVED, content_hash="b" * 64)
    with database.write() as uow:
        new_tasks = [replace(task, id=UNSAVED) for task in tasks]
        snapshot = uow.snapshots.add(new, _instances(real, n_instances), new_tasks)
        all_folds = np.full(n_instances, -2, dtype=np.int16)
        all_folds[: len(folds)] = folds
        run = ScoringRun(
            snapshot_id=snapshot.id,
            scorer=demo.scorer,
            parameters=demo.parameters,
            seed=1,
            code_version=demo.code_version,
            split=demo.split,
            n_past=demo.n_past,
            n_recent=n_instances - demo.n_past,
            n_patient_days=n_instances - demo.n_past,
            created_at=datetime.now(UTC),
        )
        run_id = uow.runs.start(run, all_folds)
        uow.commit()
    with database.read() as uow:
        stored, stored_tasks = uow.snapshots.instances(snapshot.id), uow.snapshots.tasks(snapshot.id)
    by_key = {task.task_key: task.id for task in stored_tasks}
    keys = {task.id: task.task_key for task in tasks}
    recent = [stored[row] for row in np.flatnonzero(folds >= 0)]
    seal = store_results(
        database,
        run_id,
        [replace(result, task_id=by_key[keys[result.task_id]]) for result in results],
        _alerts(stored, recent, stored_tasks, demo.scorer, n_alerts),
    )
    with database.write() as uow:
        floors = dict.fromkeys(Decision, 0.3)
        uow.runs.publish(run_id, published_at=datetime.now(UTC), floors=floors, results_seal=seal)
        uow.commit()


def _instances(real: list[Instance], n_instances: int) -> Iterator[Instance]:
    units = sorted({one.unit for one in real})
    for row in range(n_instances):
        if row < len(real):
            yield replace(real[row], id=UNSAVED)
            continue
        stay = row // 5
        yield Instance(
            row_index=row,
            patient_id=f"BENCH-{stay // 2:06d}",
            stay_id=stay,
            snapshot_at=FIRST_DAY + timedelta(days=(stay * 7 + row % 5) % DAYS),
            day_of_stay=row % 5 + 1,
            unit=units[stay % len(units)],
            age_years=40.0 + stay % 50,
            sex="FM"[stay % 2],
            window_hours=24.0 if row % 5 < 4 else 9.5,
        )


def _alerts(
    stored: list[Instance], recent: list[Instance], tasks: list[Task], scorer: str, n_alerts: int
) -> Iterator[Alert]:
    """Draw each list's alerts: first those with records, then any, each decision at most once."""
    chance = random.Random(1)
    each = n_alerts // 2
    half = len(tasks) // 2
    for decision in Decision:
        side = 0 if decision is Decision.OMISSION else 1
        first = [
            (recent[instance].row_index, task)
            for instance, task in (
                divmod(code, half) for code in chance.sample(range(len(recent) * half), min(FIRST_REAL, each))
            )
        ]
        held = set(first)
        drawn = (divmod(code, half) for code in chance.sample(range(len(stored) * half), each + len(first)))
        others = [pair for pair in drawn if pair not in held]
        for rank, (instance, task) in enumerate([*first, *others][:each], start=1):
            where, what = stored[instance], tasks[2 * task + side]
            scaled = 1 - 0.7 * (rank / each) ** 0.5
            yield Alert(
                task_id=what.id,
                instance_id=where.id,
                scorer=scorer,
                rank=rank,
                decision=decision,
                kind=what.kind,
                unit=where.unit,
                window_cut=where.window_hours < 24,
                score=scaled * 0.9,
                scaled_score=scaled,
                soft_label=0.5,
                support=0.9,
            )
