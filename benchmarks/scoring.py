"""Time, CPU and peak memory of scoring many tasks, on a simulated cohort of the paper's size or smaller.

The simulated features are as sparse as records are: few items are common, most are rare. Decisions follow hidden states
of the patient, which the features show.
"""

import argparse
import os
import resource
import sys
import time

import numpy as np
from scipy import sparse

from core.multitask import SCORERS, ScoringParameters, score_tasks

N_STATES = 24
DENSITY = 0.048
PAST_SHARE = 30_828 / 51_492
DAYS_PER_PATIENT = 51_492 / 4_486


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
    return parser.parse_args(arguments)


def main(arguments=None):
    """Simulate, score, print figures."""
    options = parse(arguments)
    started = time.perf_counter()
    X, is_flag, Y, patients = simulate(options.instances, options.features, options.tasks, options.seed)
    share = X.nnz / np.prod(X.shape)
    seconds = time.perf_counter() - started
    print(f"simulated {X.shape[0]} x {X.shape[1]} ({share:.1%} stored) x {Y.shape[1]} tasks in {seconds:.0f} s")
    boundary = np.quantile(patients, PAST_SHARE)
    past, recent = np.flatnonzero(patients <= boundary), np.flatnonzero(patients > boundary)
    before = resource.getrusage(resource.RUSAGE_SELF)
    wall = time.perf_counter()
    shown = sys.stderr.isatty()

    def progress(done, n_all):
        if shown:
            elapsed = time.perf_counter() - wall
            left = elapsed / max(done, 1) * (n_all - done)
            print(f"\r{done}/{n_all} tasks, {elapsed:.0f} s, {left:.0f} s left ", end="", file=sys.stderr)

    scored = score_tasks(
        X,
        Y,
        is_flag=is_flag,
        patients=patients,
        past=past,
        recent=recent,
        scorers=options.scorers,
        parameters=ScoringParameters(n_nodes=options.nodes, n_graphs=options.graphs, n_features_kept=options.kept),
        seed=options.seed,
        n_jobs=options.jobs,
        on_progress=progress,
    )
    evidence_wall = time.perf_counter() - wall
    n_scores = sum(len(scored.scores(task, scorer).score) for task in scored for scorer in options.scorers)
    wall = time.perf_counter() - wall
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{len(scored)} tasks scored, {len(scored.not_scored)} left out, {n_scores} scores, {os.cpu_count()} cores")
    print(f"wall {wall:.1f} s (of which {wall - evidence_wall:.1f} s putting scores together), CPU {cpu:.1f} s")
    print(f"peak memory {after.ru_maxrss / 1024**2:.2f} GiB, {cpu / max(len(scored), 1):.3f} CPU-s per task")


if __name__ == "__main__":
    main()
