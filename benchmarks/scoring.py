"""Time, CPU, memory and disk of a whole scoring run, from features to the published run, at the paper's size or less.

The simulated features are as sparse as records are: few items are common, most are rare. Decisions follow hidden states
of the patient, which the features show.
"""

import argparse
import multiprocessing
import os
import resource
import sqlite3
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from scipy import sparse
from threadpoolctl import threadpool_limits

from alertreview.records.catalogue import site_day, task_catalogue
from alertreview.scoring.publish import ScoredImport, assemble_tasks, write_run
from alertreview.scoring.resume import StoredEvidence
from core.cohort.feature_roles import FEATURE_GROUP_WEIGHTS, OWN_ITEM, FeatureRoles
from core.kinds import Kind
from core.scoring.all_tasks import score_tasks
from core.scoring.parameters import ScoringParameters
from core.scoring.prepared import prepare_instances
from core.scoring.scorers import NEW_INSTANCE_SCORERS, SHARED
from core.vocabulary import Split
from db.database import Database
from db.models import CohortSnapshot, Instance, ScoringRun, Task

N_STATES = 24
DENSITY = 0.048
PAST_SHARE = 30_828 / 51_492
DAYS_PER_PATIENT = 51_492 / 4_486
MOST_GIB = 1.5
SIZES = {"paper": (51_492, 9_282, 749), "medium": (12_000, 3_000, 120), "small": (2_000, 400, 20)}
"""Instances, features and tasks."""
RANKED, STORED, PUBLISHED = "features standardised and ranked", "scores put together and stored", "alerts published"
SIGN_SHARE, GROUP_SIZE = 0.1, 3


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
    by_state = np.ascontiguousarray(state.T)
    popularity = 1 / (1 + np.arange(n_features)) ** 0.6
    popularity = np.minimum(popularity * DENSITY * n_features / popularity.sum(), 0.9)
    random.shuffle(popularity)
    is_flag = random.random(n_features) < 0.5
    rows, counts, data = [], np.zeros(n_features, dtype=np.int64), []
    for feature in range(n_features):
        shown = np.flatnonzero(random.random(N_STATES) < 0.15)
        loading = random.normal(size=len(shown)).astype(np.float32)
        # Thinned: only instances that may have the feature are looked at, one in eight.
        most = popularity[feature] * np.exp(0.9)
        present = np.flatnonzero(random.random(n_instances, dtype=np.float32) < most)
        signal = loading @ by_state[shown[:, None], present]
        share = popularity[feature] * np.exp(0.3 * np.clip(signal, -3, 3)) / min(most, 1.0)
        stays = random.random(len(present)) < share
        present, signal = present[stays], signal[stays]
        rows.append(present.astype(np.int32))
        counts[feature] = len(present)
        values = np.ones(len(present)) if is_flag[feature] else signal + random.normal(size=len(present))
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


def simulated_roles(is_flag, n_tasks, seed):
    """Give features and tasks the roles that "shared" asks for, at random, so that every step of it has its work.

    Returns
    -------
    options : dict
        Roles, kinds and order groups, as `score_tasks` takes them.
    """
    random = np.random.default_rng([seed, 1])
    n_features = len(is_flag)
    flags = np.flatnonzero(is_flag)
    signs = np.sort(random.choice(flags, max(1, int(SIGN_SHARE * n_features)), replace=False)).astype(np.int32)
    parts = random.integers(0, 3, n_features)
    roles = FeatureRoles(
        groups=random.choice(list(FEATURE_GROUP_WEIGHTS), n_features),
        own_item=random.integers(0, n_features, (n_tasks, len(OWN_ITEM))).astype(np.int32),
        signs=signs,
        named=np.column_stack((np.arange(0, n_tasks, 10), random.choice(len(signs), -(-n_tasks // 10)))).astype(
            np.int32
        ),
        measured=is_flag & (parts == 0),
        on=is_flag & (parts == 1),
        given=is_flag & (parts == 2),
        day_of_stay=int(np.flatnonzero(~is_flag)[0]),
    )
    tasks = np.arange(n_tasks)
    kinds = [str(Kind.MEDICATION if task % 2 else Kind.LAB_ORDER) for task in tasks]
    return {"roles": roles, "kinds": kinds, "order_groups": [str(task // GROUP_SIZE) for task in tasks]}


def parse(arguments):
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", choices=SIZES, default="paper", help="instances, features and tasks simulated")
    parser.add_argument("--tasks", type=int, help="score a slice of this many tasks only, and project the rest")
    parser.add_argument("--nodes", type=int, default=200, help="nodes of a graph")
    parser.add_argument("--graphs", type=int, default=1, help="graphs averaged")
    parser.add_argument("--kept", type=int, default=200, help="features kept per task")
    parser.add_argument("--scorers", nargs="+", default=["softhad"], choices=NEW_INSTANCE_SCORERS)
    parser.add_argument("--jobs", type=int, default=2, help="workers")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    options.instances, options.features, options.all_tasks = SIZES[options.size]
    options.tasks = min(options.tasks or options.all_tasks, options.all_tasks)
    if options.tasks < 1:
        parser.error("--tasks must be 1 or more")
    return options


def simulate_apart(options, folder):
    """Simulate in a process of its own, whose memory is not counted, and read the result as a run reads its import."""
    file = folder / "simulated.npz"
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        pool.submit(_simulate_into, file, options.instances, options.features, options.all_tasks, options.seed).result()
    with np.load(file) as arrays:
        shape = options.instances, options.features
        X = sparse.csr_matrix((arrays["values"], arrays["columns"], arrays["starts"]), shape=shape)
        ones = np.ones(len(arrays["taken"]), dtype=bool)
        Y = sparse.csc_matrix(
            (ones, arrays["taken"], arrays["task_starts"]), shape=(options.instances, options.all_tasks)
        )
        return X, arrays["is_flag"], Y, arrays["patients"]


def _simulate_into(file, n_instances, n_features, n_tasks, seed):
    X, is_flag, Y, patients = simulate(n_instances, n_features, n_tasks, seed)
    np.savez(
        file,
        values=X.data,
        columns=X.indices,
        starts=X.indptr,
        taken=Y.indices,
        task_starts=Y.indptr,
        is_flag=is_flag,
        patients=patients,
    )


def compile_kernels(options):
    """Score a few instances, so that the machine code of the loops is there; gives the seconds that took.

    The code is kept on disk: only the first run after an installation waits for it.
    """
    started = time.perf_counter()
    X, is_flag, Y, patients = simulate(600, 60, 2, 0)
    rows = np.arange(600)
    score_tasks(
        X,
        Y,
        is_flag=is_flag,
        patients=patients,
        past=rows[:400],
        recent=rows[400:],
        scorers=options.scorers,
        parameters=ScoringParameters(n_nodes=50, n_graphs=1, min_past_positives=2),
    )
    return time.perf_counter() - started


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
    stored = CohortSnapshot(
        content_hash="0" * 64,
        folder="none",
        source_format="csv",
        mapping_name="none",
        site_timezone="UTC",
        calendar_is_shifted=False,
        simulated=True,
        import_summary={},
        created_at=now,
    )
    instances = (
        Instance(
            row_index=row,
            patient_id=f"p{patient}",
            stay_id=int(patient),
            snapshot_at=now,
            day_of_stay=1,
            unit="ward",
            age_years=60.0,
            sex="F",
            window_hours=24.0,
        )
        for row, patient in enumerate(patients)
    )
    tasks = [
        Task(column_index=t, task_key=f"LAB_ORDER/{t}", name=f"Lab {t}", kind=Kind.LAB_ORDER, order_group="")
        for t in range(Y.shape[1])
    ]
    with database.write() as uow:
        row = uow.snapshots.add(stored, instances, tasks)
        uow.commit()
    with database.read() as uow:
        rows, numbers = uow.snapshots.tasks(row.id), uow.snapshots.instance_ids(row.id)
    table = pd.DataFrame({"unit": "ward", "window_hours": np.full(len(patients), 24.0)})
    listed = pd.DataFrame(
        {
            "task_key": [task.task_key for task in tasks],
            "name": [task.name for task in tasks],
            "kind": Kind.LAB_ORDER,
            "order_group": "",
            "n_positive": np.asarray((Y > 0).sum(axis=0)).ravel(),
        }
    )
    snapshot = SimpleNamespace(decisions=sparse.csc_matrix(Y), instances=table, tasks=listed)
    return database, ScoredImport(row, snapshot, rows, numbers, task_catalogue(snapshot, {}), site_day("UTC"))


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
            watch.lap(RANKED)
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
        **(simulated_roles(is_flag, Y.shape[1], options.seed) if SHARED.key in options.scorers else {}),
    ).without_features()
    watch.lap("steps of all tasks together")
    n_recent = int((folds >= 0).sum())
    new_run = ScoringRun(
        snapshot_id=site.stored.id,
        scorer=options.scorers[0],
        scorers={name: {} for name in options.scorers[1:]},
        parameters={},
        seed=options.seed,
        code_version="benchmark",
        split=Split.TIME,
        n_past=len(folds) - n_recent,
        n_recent=n_recent,
        n_patient_days=n_recent,
        created_at=datetime.now(UTC),
    )
    with database.scoring_job():
        write_run(database, site, new_run, folds, timed_results(scored, folds, site, options, watch))
    watch.lap(PUBLISHED)
    return scored, watch


def timed_results(scored, folds, site, options, watch):
    """Hand task results on; once the last one is stored, alerts are what remains."""
    yield from assemble_tasks([scored], folds, site.tasks, options.scorers, options.jobs)
    watch.lap(STORED)


def bound_seconds(options):
    """Wall seconds that a run of the paper's size may take, or None where no bound was set."""
    if options.size != "paper":
        return None
    if SHARED.key in options.scorers:
        return 130
    if options.nodes <= 200:
        return 120 if options.graphs == 1 else 300 if options.graphs <= 3 else None
    return 420 if options.nodes <= 1000 and options.graphs == 1 else None


def time_ranking(X, Y, is_flag, patients, folds, options):
    """Time the first stage for all tasks, which does not grow in proportion to their number."""
    watch, past, recent = Stopwatch(), np.flatnonzero(folds < 0), np.flatnonzero(folds >= 0)
    with threadpool_limits(1):
        prepare_instances(X, Y, is_flag, patients, past, recent, ScoringParameters(), n_jobs=options.jobs)
    watch.lap(RANKED)
    return watch.stages[0]


def project(watch, ranking, factor):
    """Scale the stages that grow with the number of tasks: a projection, not a measurement."""
    watch.stages = [
        stage
        if stage.name == PUBLISHED
        else ranking
        if stage.name == RANKED
        else Stage(stage.name, stage.wall * factor, stage.cpu * factor)
        for stage in watch.stages
    ]


def rows_written(database_file):
    """Count the rows of the run, task results and alerts."""
    with closing(sqlite3.connect(database_file)) as connection:
        return [connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in ("task_result", "alert")]


def peak_gib(who=resource.RUSAGE_SELF):
    """Return the most memory held so far, in GiB."""
    return resource.getrusage(who).ru_maxrss / 1024**2


def report(options, scored, watch, before, disk):
    """Print what it took beside what it may take."""
    total, peak, cores = watch.total(), peak_gib(), os.cpu_count() or 1
    word = "PROJECTED" if options.tasks < options.all_tasks else "measured"
    print(f"{options.graphs} graph(s) of {options.nodes} nodes, scorers {', '.join(options.scorers)}")
    print(f"{len(scored)} of {options.tasks} tasks scored, {len(scored.not_scored)} left out")
    if options.tasks < options.all_tasks:
        print(f"PROJECTION to {options.all_tasks} tasks; ranking was timed for all, alerts do not grow with tasks.")
    for stage in (*watch.stages, total):
        print(f"{stage.name:45} wall {stage.wall:7.1f} s   CPU {stage.cpu:7.1f} s")
    print(f"CPU per task, all in: {total.cpu / options.all_tasks:.3f} s; CPU / {cores} cores {total.cpu / cores:.0f} s")
    n_results, n_alerts, database_bytes = disk
    print(f"written: {n_results} task results, {n_alerts} alerts, database {database_bytes / 1024**2:.0f} MiB")
    print(f"memory: {before:.2f} GiB with the features read, peak {peak:.2f} GiB; workers are threads of this process")
    print(f"machine: {cores} cores, load average {', '.join(f'{load:.1f}' for load in os.getloadavg())}")
    limit = bound_seconds(options)
    if limit is not None:
        print(f"{'met' if total.wall <= limit else 'MISSED'}: wall {total.wall:.0f} s of {limit} s allowed ({word})")
    print(f"{'met' if peak <= MOST_GIB else 'MISSED'}: peak memory {peak:.2f} GiB of {MOST_GIB} GiB allowed")


def main(arguments=None):
    """Simulate, score, store, print figures."""
    options = parse(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        started = time.perf_counter()
        X, is_flag, Y, patients = simulate_apart(options, folder)
        share = X.nnz / np.prod(X.shape)
        seconds = time.perf_counter() - started
        print(f"simulated {X.shape[0]} x {X.shape[1]} ({share:.1%} stored) x {Y.shape[1]} tasks in {seconds:.0f} s")
        print(f"machine code compiled or read in {compile_kernels(options):.0f} s", flush=True)
        folds = np.where(patients <= np.quantile(patients, PAST_SHARE), -1, 0).astype(np.int16)
        ranking = None
        if options.tasks < options.all_tasks:
            ranking = time_ranking(X, Y, is_flag, patients, folds, options)
            chosen = np.linspace(0, options.all_tasks - 1, options.tasks).astype(int)
            Y = sparse.csc_matrix(Y[:, chosen])
        database, site = prepare_site(folder, Y, patients)
        before = peak_gib()
        scored, watch = run((X, is_flag, Y, patients), folds, site, database, folder, options)
        database_bytes = sum(file.stat().st_size for file in folder.glob("site.sqlite*"))
        disk = (*rows_written(folder / "site.sqlite"), database_bytes)
    if ranking is not None:
        project(watch, ranking, options.all_tasks / options.tasks)
    report(options, scored, watch, before, disk)


if __name__ == "__main__":
    main()
