"""Time, CPU, memory and disk of a whole scoring run, from features to the published run, at the paper's size or less.

The simulated features are as sparse as records are: few items are common, most are rare. Decisions follow hidden states
of the patient, which the features show.
"""

import argparse
import os
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from scipy import sparse
from threadpoolctl import threadpool_limits

from alertreview.run_assembly import assemble_tasks
from alertreview.run_writing import ScoredImport, write_run
from alertreview.unfinished import StoredEvidence
from core.multitask import SCORERS, ScoringParameters, score_tasks
from core.task_evidence import prepare_instances
from core.vocabulary import Kind, Split
from db.rows import NewInstance, NewRun, NewSnapshot, NewTask
from db.session import Database

N_STATES = 24
DENSITY = 0.048
PAST_SHARE = 30_828 / 51_492
DAYS_PER_PATIENT = 51_492 / 4_486
MOST_GIB = 1.5
QUICK_STEP = 19


def simulate(n_instances, n_features, n_tasks, seed):
    """Features, flags, decisions and patients of a simulated cohort.

    Returns
    -------
    X : csr_matrix of shape (n_instances, n_features), float32
    is_flag : bool array of shape (n_features,)
    Y : csc_matrix of shape (n_instances, n_tasks), bool
    patients : int array of shape (n_instances,)
    """
    random = np.random.default_rng(seed)
    n_patients = max(2, round(n_instances / DAYS_PER_PATIENT))
    patients = np.sort(random.integers(0, n_patients, n_instances))
    state = random.normal(size=(n_patients, N_STATES)).astype(np.float32)[patients]
    state += random.normal(scale=0.6, size=state.shape).astype(np.float32)
    popularity = 1 / (1 + np.arange(n_features)) ** 0.6
    popularity = np.minimum(popularity * DENSITY * n_features / popularity.sum(), 0.9)
    random.shuffle(popularity)
    is_flag = random.random(n_features) < 0.5
    rows, counts, data = [], np.zeros(n_features, dtype=np.int64), []
    for feature in range(n_features):
        loading = random.normal(size=N_STATES) * (random.random(N_STATES) < 0.15)
        signal = state @ loading.astype(np.float32)
        present = np.flatnonzero(
            random.random(n_instances) < popularity[feature] * np.exp(0.3 * np.clip(signal, -3, 3))
        )
        rows.append(present.astype(np.int32))
        counts[feature] = len(present)
        values = np.ones(len(present)) if is_flag[feature] else signal[present] + random.normal(size=len(present))
        data.append(values.astype(np.float32))
    indptr = np.r_[0, np.cumsum(counts)]
    X = sparse.csc_matrix((np.concatenate(data), np.concatenate(rows), indptr), shape=(n_instances, n_features)).tocsr()
    columns = []
    for _ in range(n_tasks):
        loading = random.normal(size=N_STATES) * (random.random(N_STATES) < 0.25)
        log_odds = state @ loading.astype(np.float32) * 0.8 + np.log(random.uniform(0.002, 0.12))
        columns.append(np.flatnonzero(random.random(n_instances) < 1 / (1 + np.exp(-log_odds))))
    indptr = np.r_[0, np.cumsum([len(column) for column in columns])]
    ones = np.ones(indptr[-1], dtype=bool)
    Y = sparse.csc_matrix((ones, np.concatenate(columns), indptr), shape=(n_instances, n_tasks))
    return X, is_flag, Y, patients


def parse(arguments):
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=51_492, help="patient-state instances (default: the paper's)")
    parser.add_argument("--features", type=int, default=9_282, help="features (default: the paper's)")
    parser.add_argument("--tasks", type=int, default=749, help="tasks (default: the paper's)")
    parser.add_argument("--nodes", type=int, default=200, help="nodes of a graph")
    parser.add_argument("--graphs", type=int, default=1, help="graphs averaged")
    parser.add_argument("--kept", type=int, default=200, help="features kept per task")
    parser.add_argument("--scorers", nargs="+", default=["softhad"], choices=SCORERS)
    parser.add_argument("--jobs", type=int, default=2, help="workers")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="run every 19th task and project the rest")
    return parser.parse_args(arguments)


@dataclass
class Stage:
    """Wall and CPU seconds of one stage of a run."""

    name: str
    wall: float
    cpu: float


class Stopwatch:
    """Takes the time of one stage after another."""

    def __init__(self):
        self.stages = []
        self._wall, self._cpu = time.perf_counter(), cpu_seconds()

    def lap(self, name):
        """End the current stage."""
        wall, cpu = time.perf_counter(), cpu_seconds()
        self.stages.append(Stage(name, wall - self._wall, cpu - self._cpu))
        self._wall, self._cpu = wall, cpu

    def total(self):
        """Sum of all stages."""
        return Stage("total", sum(stage.wall for stage in self.stages), sum(stage.cpu for stage in self.stages))


def cpu_seconds():
    """CPU seconds of this process and of its finished children."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def prepare_site(folder, Y, patients):
    """Make an SQLite database that knows the instances and tasks; this is the import's work and is not timed.

    Returns
    -------
    database : Database
    site : ScoredImport
    """
    database = Database(f"sqlite:///{folder / 'site.sqlite'}")
    database.upgrade()
    now = datetime.now(UTC)
    stored = NewSnapshot("0" * 64, "none", "csv", "none", "UTC", False, True, {}, now)
    instances = (
        NewInstance(row, f"p{patient}", int(patient), now, 1, "ward", 60.0, "F", 24.0)
        for row, patient in enumerate(patients)
    )
    tasks = [NewTask(t, f"LAB_ORDER/{t}", f"Lab {t}", Kind.LAB_ORDER, "") for t in range(Y.shape[1])]
    with database.write() as uow:
        row = uow.snapshots.add(stored, instances, tasks)
        uow.commit()
    with database.read() as uow:
        rows, numbers = uow.snapshots.tasks(row.id), uow.snapshots.instance_ids(row.id)
    table = pd.DataFrame({"unit": "ward", "window_hours": np.full(len(patients), 24.0)})
    snapshot = SimpleNamespace(decisions=sparse.csc_matrix(Y), instances=table)
    return database, ScoredImport(row, snapshot, rows, numbers)


def run(data, folds, site, database, folder, options):
    """Score, calibrate, put together, store and publish.

    Returns
    -------
    scored : ScoredTasks
    watch : Stopwatch
    """
    X, is_flag, Y, patients = data
    parameters = ScoringParameters(n_nodes=options.nodes, n_graphs=options.graphs, n_features_kept=options.kept)
    watch = Stopwatch()
    shown = sys.stderr.isatty()
    started, ranked, calibrating = time.perf_counter(), False, False

    def progress(done, n_all):
        nonlocal ranked, calibrating
        if not ranked:
            watch.lap("features standardised and ranked")
            ranked = True
        if done == n_all and not calibrating:
            watch.lap("tasks scored")
            calibrating = True
        if shown:
            elapsed = time.perf_counter() - started
            left = elapsed / max(done, 1) * (n_all - done)
            print(f"\r{done}/{n_all} tasks, {elapsed:.0f} s, {left:.0f} s left ", end="", file=sys.stderr)

    scored = score_tasks(
        X,
        Y,
        is_flag=is_flag,
        patients=patients,
        past=np.flatnonzero(folds < 0),
        recent=np.flatnonzero(folds >= 0),
        scorers=options.scorers,
        parameters=parameters,
        seed=options.seed,
        n_jobs=options.jobs,
        on_progress=progress,
        store=StoredEvidence(folder / "evidence"),
    ).without_features()
    watch.lap("tasks calibrated together")
    n_recent = int((folds >= 0).sum())
    new_run = NewRun(
        snapshot_id=site.stored.id,
        scorer=options.scorers[0],
        scorers={name: {} for name in options.scorers[1:]},
        parameters={},
        seed=options.seed,
        code_version="benchmark",
        split=Split.TIME,
        fold_of_row=folds,
        n_past=len(folds) - n_recent,
        n_recent=n_recent,
        n_patient_days=n_recent,
        created_at=datetime.now(UTC),
    )
    results = assemble_tasks([scored], folds, site.tasks, options.scorers, options.jobs)
    with database.scoring_job():
        write_run(database, site, new_run, results)
    watch.lap("scores put together, stored and published")
    return scored, watch


def bound_seconds(options):
    """Wall seconds that a run of the paper's size may take, or None where no bound was set."""
    if options.nodes <= 200:
        return 120 if options.graphs == 1 else 300 if options.graphs <= 3 else None
    return 420 if options.nodes <= 1000 and options.graphs == 1 else None


def time_ranking(X, Y, is_flag, patients, folds, options):
    """Time the first stage for all tasks, which does not grow in proportion to their number."""
    watch, past, recent = Stopwatch(), np.flatnonzero(folds < 0), np.flatnonzero(folds >= 0)
    with threadpool_limits(1):
        prepare_instances(X, Y, is_flag, patients, past, recent, ScoringParameters(), n_jobs=options.jobs)
    watch.lap("features standardised and ranked")
    return watch.stages[0]


def project(watch, ranking, n_run, n_all):
    """Scale the stages after the first with the number of tasks: a projection, not a measurement."""
    factor = n_all / n_run
    others = watch.stages[1:]
    watch.stages = [ranking, *(Stage(stage.name, stage.wall * factor, stage.cpu * factor) for stage in others)]


def report(options, scored, watch, before, database_bytes, n_run):
    """Print what it took beside what it may take."""
    total, peak = watch.total(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    word = "PROJECTED" if options.quick else "measured"
    scorers = ", ".join(options.scorers)
    print(f"{options.graphs} graph(s) of {options.nodes} nodes, scorers {scorers}, {os.cpu_count()} cores")
    print(f"{len(scored)} of {n_run} tasks scored, {len(scored.not_scored)} left out")
    if options.quick:
        print(f"PROJECTION: every stage after the first took {n_run} tasks and is scaled to {options.tasks}.")
    for stage in (*watch.stages, total):
        print(f"{stage.name:45} wall {stage.wall:7.1f} s   CPU {stage.cpu:7.1f} s")
    print(f"CPU per task, all in: {total.cpu / options.tasks:.3f} s ({word})")
    print(f"database {database_bytes / 1024**2:.0f} MiB for {n_run} tasks; memory before scoring {before:.2f} GiB")
    limit = bound_seconds(options)
    if limit is not None:
        print(f"{'met' if total.wall <= limit else 'MISSED'}: wall {total.wall:.0f} s of {limit} s allowed ({word})")
    print(f"{'met' if peak <= MOST_GIB else 'MISSED'}: peak memory {peak:.2f} GiB of {MOST_GIB} GiB allowed")


def main(arguments=None):
    """Simulate, score, store, print figures."""
    options = parse(arguments)
    started = time.perf_counter()
    X, is_flag, Y, patients = simulate(options.instances, options.features, options.tasks, options.seed)
    share = X.nnz / np.prod(X.shape)
    seconds = time.perf_counter() - started
    print(f"simulated {X.shape[0]} x {X.shape[1]} ({share:.1%} stored) x {Y.shape[1]} tasks in {seconds:.0f} s")
    folds = np.where(patients <= np.quantile(patients, PAST_SHARE), -1, 0).astype(np.int16)
    if options.quick:
        ranking = time_ranking(X, Y, is_flag, patients, folds, options)
        Y = sparse.csc_matrix(Y[:, ::QUICK_STEP])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        database, site = prepare_site(folder, Y, patients)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
        scored, watch = run((X, is_flag, Y, patients), folds, site, database, folder, options)
        database_bytes = sum(file.stat().st_size for file in folder.glob("site.sqlite*"))
    if options.quick:
        project(watch, ranking, Y.shape[1], options.tasks)
    report(options, scored, watch, before, database_bytes, Y.shape[1])


if __name__ == "__main__":
    main()
