"""How many of the first decisions two runs share that differ in their seed alone, on records as they are."""

import itertools

import joblib
import numpy as np

from core.scoring.scorers import leaves_out_likelier

N_FIRST = 50
LISTS = ("omissions", "commissions", "all")
VALUES = ("scaled_score", "soft_label")


def first_decisions(records, options, score_fold, folds, seed):
    """Return the first decisions of every scorer and list as sets of (row, task), by one seed on the first fold."""
    past, recent = np.flatnonzero(folds != 0), np.flatnonzero(folds == 0)
    scored = score_fold(records, records.decisions, past, recent, options, seed)
    tasks = np.array(list(scored))
    taken = records.decisions[np.ix_(recent, tasks)]
    in_general = 2 * records.decisions[np.ix_(past, tasks)].mean(axis=0) - 1
    found = {}
    for scorer in scored.scorers:
        scores = [scored.scores(task, scorer) for task in tasks]
        scaled, expected = (np.column_stack([getattr(one, name) for one in scores]) for name in VALUES)
        listed = np.ones(taken.shape, dtype=bool)
        if leaves_out_likelier(scorer):
            listed = np.where(taken, expected <= in_general, expected >= in_general)
        for name, part in zip(LISTS, (~taken, taken, np.ones_like(taken)), strict=True):
            rows, columns = np.nonzero(part & listed)
            order = np.argsort(-scaled[rows, columns], kind="stable")[:N_FIRST]
            found[scorer, name] = {(int(rows[i]), int(columns[i])) for i in order}
    return found


def show_stability(records, options, score_fold, folds):
    """Score the first fold by as many seeds as asked for, and print what each pair of them shares."""
    work = (
        joblib.delayed(first_decisions)(records, options, score_fold, folds, seed) for seed in range(options.stability)
    )
    runs = joblib.Parallel(n_jobs=options.jobs)(work)
    pairs = list(itertools.combinations(runs, 2))
    print(f"of the first {N_FIRST}, shared by two seeds: mean and least over {len(pairs)} pairs of {len(runs)} seeds")
    for scorer in dict.fromkeys(scorer for scorer, _ in runs[0]):
        cells = []
        for name in LISTS:
            shared = [len(one[scorer, name] & other[scorer, name]) for one, other in pairs]
            cells.append(f"{name} {np.mean(shared):.1f} ({min(shared)})")
        print(f"{scorer:22} {', '.join(cells)}")
