"""How time and memory of scoring grow with instances, features, tasks and nodes, and how far two seeds agree."""

import argparse
import multiprocessing
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from alertreview.records.import_site import write_simulated_source
from alertreview.records.importing import import_snapshot
from alertreview.records.snapshots import read_snapshot
from alertreview.scoring.score_site import score_fold
from alertreview.scoring.splits import choose_split, fold_of_row, rows_of_fold
from benchmarks.scoring import PAST_SHARE, simulate, simulated_roles
from core.scoring.all_tasks import score_tasks
from core.scoring.parameters import ScoringParameters
from core.scoring.scorers import SHARED, SOFTHAD

MODEST = {"instances": 6_000, "features": 1_500, "tasks": 16, "nodes": 200}
"""Nodes of a graph of "softhad", or landmarks of "shared"."""
FACTORS = (1, 2, 4)
TOPS = (50, 200)
WANTED_OVERLAP = 40


def parse(arguments):
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="?", choices=["all", "growth", "stability"], default="all")
    parser.add_argument(
        "--size", default="medium", choices=["small", "medium"], help="simulated hospital for stability"
    )
    parser.add_argument("--setting", nargs="+", default=["1x200", "3x200"], help="graphs x nodes, as 3x200")
    parser.add_argument("--seeds", type=int, default=3, help="seeds, compared in pairs")
    parser.add_argument(
        "--scorer", default=SOFTHAD.key, choices=[SOFTHAD.key, SHARED.key], help="whose growth is measured"
    )
    parser.add_argument("--jobs", type=int, default=2, help="workers")
    return parser.parse_args(arguments)


def measure(sizes, scorer):
    """Score once in a process of its own; gives CPU seconds and the memory it grew by in MiB."""
    tiny = simulate(300, 60, 2, 0)
    score(tiny, 50, scorer)
    data = simulate(sizes["instances"], sizes["features"], sizes["tasks"], 0)
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    score(data, sizes["nodes"], scorer)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return time.process_time() - started, grown / 1024


def score(data, n_nodes, scorer):
    """Score one simulated cohort with one graph and one worker."""
    sizes = {"n_landmarks": n_nodes} if scorer == SHARED.key else {"n_nodes": n_nodes, "n_graphs": 1}
    X, is_flag, Y, patients = data
    boundary = np.quantile(patients, PAST_SHARE)
    score_tasks(
        X,
        Y,
        is_flag=is_flag,
        patients=patients,
        past=np.flatnonzero(patients <= boundary),
        recent=np.flatnonzero(patients > boundary),
        scorers=(scorer,),
        parameters=ScoringParameters(min_past_positives=2, **sizes),
        **(simulated_roles(is_flag, Y.shape[1], 0) if scorer == SHARED.key else {}),
    )


def print_growth(scorer):
    """Let one size grow at a time, and print the slope of log cost over log size: 1 = in proportion."""
    print(f"{scorer} from {', '.join(f'{size} {name}' for name, size in MODEST.items())}; one graph, one worker")
    print(f"{'grows':12} {'size':>8} {'CPU s':>8} {'MiB more':>9}")
    context = multiprocessing.get_context("spawn")
    for name, smallest in MODEST.items():
        costs = []
        for factor in FACTORS:
            sizes = MODEST | {name: smallest * factor}
            # A fresh process for each: the peak of a process never goes down.
            with ProcessPoolExecutor(1, mp_context=context) as pool:
                costs.append(pool.submit(measure, sizes, scorer).result())
            print(f"{name:12} {sizes[name]:8d} {costs[-1][0]:8.2f} {costs[-1][1]:9.0f}", flush=True)
        slopes = [
            np.polyfit(np.log(FACTORS), np.log(np.maximum(cost, 1e-3)), 1)[0] for cost in zip(*costs, strict=True)
        ]
        print(f"{name:12} {'slope':>8} {slopes[0]:8.2f} {slopes[1]:9.2f}")


def top_places(scored, tasks, taken, n):
    """Return the places of the n highest scores of all, of omissions alone and of commissions alone."""
    scores = np.stack([scored.scores(task, "softhad").scaled_score for task in tasks], axis=1)
    lists = {}
    for name, mask in (("omissions", ~taken), ("commissions", taken)):
        order = np.argsort(-np.where(mask, scores, -1.0), axis=None, kind="stable")
        lists[name] = order[:n]
    pooled = np.argsort(-scores, axis=None, kind="stable")[:n]
    return {"pooled": pooled, **lists}


def print_stability(options):
    """Score a simulated hospital with several seeds, and print how many of the top alerts two seeds share."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_simulated_source(options.size, 0, folder / "records")
        imported = import_snapshot(folder / "records", folder, format="meds", mapping=None)
        snapshot = read_snapshot(imported.folder)
        split = choose_split("auto", calendar_is_shifted=snapshot.calendar_is_shifted)
        folds = fold_of_row(split, snapshot.instances, snapshot.patients, since=None, seed=0)
        past, recent = rows_of_fold(folds, 0)
        decisions = np.asarray(snapshot.decisions.todense(), dtype=bool)[recent]
        print(f"{options.size}: {len(past)} past and {len(recent)} recent instances, {decisions.shape[1]} tasks")
        for setting in options.setting:
            n_graphs, n_nodes = map(int, setting.split("x"))
            started = time.process_time()
            tops = []
            for seed in range(options.seeds):
                scored = score_fold(
                    snapshot,
                    folds,
                    0,
                    split,
                    parameters=ScoringParameters(n_nodes=n_nodes, n_graphs=n_graphs),
                    seed=seed,
                    n_jobs=options.jobs,
                )
                taken = decisions[:, list(scored.tasks)]
                tops.append({n: top_places(scored, scored.tasks, taken, n) for n in TOPS})
            seconds = (time.process_time() - started) / options.seeds
            print_overlap(setting, tops, seconds)


def print_overlap(setting, tops, seconds):
    """Print the mean overlap of two seeds by list and length."""
    pairs = [(a, b) for a in range(len(tops)) for b in range(a)]
    print(f"{setting} graphs x nodes, {seconds:.0f} CPU s per seed, mean of {len(pairs)} pairs of seeds")
    for name in ("pooled", "omissions", "commissions"):
        shared = {n: np.mean([len(np.intersect1d(tops[a][n][name], tops[b][n][name])) for a, b in pairs]) for n in TOPS}
        print(f"  {name:12} {', '.join(f'{value:.1f} of the top {n}' for n, value in shared.items())}")
        if name == "pooled":
            print(f"  {'met' if shared[50] >= WANTED_OVERLAP else 'MISSED'}: {WANTED_OVERLAP} of the top 50 wanted")


def main(arguments=None):
    """Print what was asked for."""
    options = parse(arguments)
    if options.part in ("all", "growth"):
        print_growth(options.scorer)
    if options.part in ("all", "stability"):
        print_stability(options)


if __name__ == "__main__":
    main()
