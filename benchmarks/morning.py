"""Seconds to score one day's new instances over all tasks against a stored past, read from disk.

What is stored depends on nodes and features kept, not on how large the past was: a small simulated past serves.
"""

import argparse
import os
import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from alertreview.scoring.resume import StoredEvidence
from benchmarks.scoring import simulate, simulated_roles
from core.scoring.all_tasks import score_tasks
from core.scoring.new_instances import STORED_ARRAYS, StoredPast, prepare_new_instances
from core.scoring.parameters import ScoringParameters
from core.scoring.scorers import NEW_INSTANCE_SCORERS, needs_shared_graph, new_evidence
from core.scoring.scores import score_by_scale
from core.scoring.shared import SharedModel

SHARED_FILE = "shared.npz"


def parse(arguments):
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--new", type=int, default=500, help="new instances")
    parser.add_argument("--past", type=int, default=3_000, help="instances learned from")
    parser.add_argument("--features", type=int, default=9_282, help="features (default: the paper's)")
    parser.add_argument("--tasks", type=int, default=749, help="tasks (default: the paper's)")
    parser.add_argument("--nodes", type=int, default=200, help="nodes of a graph")
    parser.add_argument("--graphs", type=int, default=3, help="graphs averaged")
    parser.add_argument("--scorer", default="softhad", choices=NEW_INSTANCE_SCORERS)
    parser.add_argument("--jobs", type=int, default=2, help="workers")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def learn(X, is_flag, Y, patients, options, folder):
    """Score with the past alone, and keep on disk what later instances need.

    Returns
    -------
    learned : StoredPast
    scales : dict of int to dict
        By task.
    """
    past = np.arange(options.past)
    parameters = ScoringParameters(n_nodes=options.nodes, n_graphs=options.graphs, min_past_positives=2)
    scored = score_tasks(
        X,
        Y,
        is_flag=is_flag,
        patients=patients,
        past=past,
        recent=[options.past],
        scorers=[options.scorer],
        parameters=parameters,
        seed=options.seed,
        n_jobs=options.jobs,
        exclude_same_patient=False,
        keep_graphs=True,
        **(simulated_roles(is_flag, Y.shape[1], options.seed) if needs_shared_graph([options.scorer]) else {}),
    )
    kept = StoredEvidence(folder)
    for task in scored:
        evidence = scored.evidence[task]
        kept[task] = {name: array for name, array in evidence.items() if name.startswith(STORED_ARRAYS)}
    prepared = scored.prepared
    if scored.shared is not None:
        np.savez_compressed(folder / SHARED_FILE, **scored.shared.stored())
    learned = StoredPast(prepared.standardizer, prepared.kept_features, prepared.kept_weights, parameters)
    return learned, {task: scored.scores(task, options.scorer).scale for task in scored}


def score_new(learned, scales, X, Y, patients, options, folder):
    """Read what was learned of each task and score the new instances; gives the scaled scores by task."""
    if (folder / SHARED_FILE).exists():
        with np.load(folder / SHARED_FILE, allow_pickle=False) as arrays:
            learned = replace(learned, shared=SharedModel.of_stored(dict(arrays)))
    new = prepare_new_instances(learned, X, sparse.csc_matrix(Y), patients.astype(str))

    def of_task(task):
        with np.load(folder / f"{task}.npz", allow_pickle=False) as arrays:
            kept = {name: arrays[name] for name in arrays.files}
        evidence = new_evidence(new, task, kept, (options.scorer,))
        y = np.where(new.prepared.recent_positive(task), 1.0, -1.0)
        return score_by_scale(evidence, y, options.scorer, scales[task]).scaled_score

    with threadpool_limits(1):
        parallel = joblib.Parallel(n_jobs=options.jobs, prefer="threads")
        return parallel(joblib.delayed(of_task)(task) for task in scales)


def main(arguments=None):
    """Simulate, learn, score the new day twice (the first time compiles), print figures."""
    options = parse(arguments)
    n = options.past + options.new
    X, is_flag, Y, patients = simulate(n, options.features, options.tasks, options.seed)
    rows = np.arange(options.past, n)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        learned, scales = learn(X, is_flag, Y, patients, options, folder)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1024**2
        for word in ("first", "second"):
            wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
            scores = score_new(learned, scales, X[rows], Y[:, :][rows], patients[rows], options, folder)
            seconds, after = time.perf_counter() - wall, resource.getrusage(resource.RUSAGE_SELF)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            n_scores = sum(map(len, scores))
            print(f"{word} time: {n_scores} scores of {len(scores)} tasks: {seconds:.1f} s wall, {cpu:.1f} s CPU")
    print(f"kept on disk: {size:.0f} MiB; {os.cpu_count()} cores, peak memory {after.ru_maxrss / 1024**2:.2f} GiB")


if __name__ == "__main__":
    main()
