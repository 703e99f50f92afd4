"""How many planted flips every scorer and peer finds on an open record set, beside what the base rate alone finds.

Decisions are flipped in past and recent instances alike: uniformly (3 % of all), or so that rarity gives nothing away
(5 % of each task's positives dropped, as many added). Pooled = AUC of finding flips over all decisions. td = AUC inside
(task, decision), weighted by flips: the only one without the base rate in it. P@k = flips among the k highest, for
omissions and commissions apart. Planted flips are not clinical errors.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

from alertreview.importing import build_cohort
from core.baselines import NeighbourDistanceDifference, SelfConfidence, SupportVectors, WeightedNeighbours
from core.calibration import calibrate
from core.evaluation import rank_auc
from core.logistic import fit_ridge_logistic
from core.multitask import SCORERS, ScoringParameters, score_tasks
from core.order_groups import order_groups
from core.scoring_parameters import RETROSPECTIVE_SCORERS
from core.task_evidence import weighted_task_features

FLIPPED_SHARE = 0.03
MATCHED_SHARE = 0.05
PEERS = {
    "weighted k-NN": WeightedNeighbours,
    "k-NN distance difference": NeighbourDistanceDifference,
    "SVM": SupportVectors,
    "self-confidence": SelfConfidence,
}


def plant_flips(Y, kind, random, groups):
    """Mark the decisions that are turned round.

    "uniform" and "matched" as above; "groups" turns whole order groups at the uniform rate, "days" every decision of
    3 % of the instances that was taken.
    """
    if kind == "uniform":
        return random.random(Y.shape) < FLIPPED_SHARE
    flipped = np.zeros(Y.shape, dtype=bool)
    if kind == "groups":
        for group in np.unique(groups):
            flipped[:, groups == group] = (random.random(len(Y)) < FLIPPED_SHARE)[:, None]
        return flipped
    if kind == "days":
        return Y & (random.random(len(Y)) < FLIPPED_SHARE)[:, None]
    for task in range(Y.shape[1]):
        positive, negative = np.flatnonzero(Y[:, task]), np.flatnonzero(~Y[:, task])
        n = min(max(1, round(MATCHED_SHARE * len(positive))), len(negative))
        flipped[random.choice(positive, n, replace=False), task] = True
        flipped[random.choice(negative, n, replace=False), task] = True
    return flipped


def figures(scores, flipped, decisions):
    """Pooled AUC, td and P@k of one list of scores; arrays of shape (n_recent, n_tasks)."""
    found = {"pooled": rank_auc(flipped.ravel(), scores.ravel())}
    total = weight = 0.0
    for task in range(scores.shape[1]):
        for taken in (True, False):
            part = decisions[:, task] == taken
            n_flips = int(flipped[part, task].sum())
            if 0 < n_flips < part.sum():
                total += n_flips * rank_auc(flipped[part, task], scores[part, task])
                weight += n_flips
    found["td"] = total / weight if weight else float("nan")
    for name, part in (("omissions", ~decisions), ("commissions", decisions)):
        order = np.argsort(-scores[part], kind="stable")
        for k in (50, 200):
            found[f"P@{k} {name}"] = flipped[part][order[:k]].mean()
    return found


def fold_of_patients(patients, n_folds, seed):
    """Fold of every instance; a patient's instances share one."""
    codes = np.unique(patients, return_inverse=True)[1]
    folds = np.random.default_rng(seed).permutation(codes.max() + 1) % n_folds
    return folds[codes]


def activity_only(scored, decisions_of):
    """P(other decision) from the two counts of other decisions alone."""
    prepared, evidence = scored.prepared, []
    n_past = prepared.n_past
    for task in scored:
        counts = prepared.day.features(prepared.decisions, task, n_past)
        positive = prepared.past_positive(task).astype(float)
        fit = fit_ridge_logistic(
            counts[:n_past], positive, scored.parameters.logistic_strength, prepared.groups[:n_past]
        )
        evidence.append(np.r_[fit.left_out_log_odds, fit.log_odds(counts[n_past:])])
    positives = [prepared.past_positive(task).astype(float) for task in scored]
    lines = calibrate([values[:n_past] for values in evidence], positives)
    columns = []
    for place, task in enumerate(scored):
        y = np.where(decisions_of(task), 1.0, -1.0)
        columns.append(1 / (1 + np.exp(y * lines.log_odds(place, evidence[place][n_past:]))))
    return np.column_stack(columns)


def peer_scores(scored, make):
    """Scores of a peer, fitted task by task on the same weighted features of the same instances."""
    prepared, columns = scored.prepared, []
    for task in scored:
        features, _ = weighted_task_features(prepared, task)
        y = np.where(np.r_[prepared.past_positive(task), prepared.recent_positive(task)], 1.0, -1.0)
        n_past = prepared.n_past
        columns.append(make().fit(features[:n_past], y[:n_past]).score_samples(features[n_past:], y[n_past:]))
    return np.column_stack(columns)


def measure_fold(cohort, Y, flipped, past, recent, options, seed):
    """Figures of every row of the table for one fold and seed."""
    seen = Y ^ flipped
    names = cohort.tasks["name"].tolist()
    groups = order_groups(sparse.csc_matrix(seen[past]), names)
    scored = score_tasks(
        cohort.features,
        sparse.csc_matrix(seen),
        is_flag=cohort.feature_dictionary["is_flag"].to_numpy(dtype=bool),
        patients=cohort.instances["patient_id"].to_numpy(),
        past=past,
        recent=recent,
        scorers=SCORERS + RETROSPECTIVE_SCORERS,
        parameters=ScoringParameters(n_nodes=options.nodes, n_graphs=options.graphs),
        seed=seed,
        n_jobs=options.jobs,
        task_names=names,
        kinds=cohort.tasks["kind"].astype(str).tolist(),
        order_groups=groups.tolist(),
        is_elapsed=cohort.feature_dictionary["aspect"].astype(str).str.startswith("hours_").to_numpy(),
    )
    tasks = list(scored)
    decisions, flips = seen[np.ix_(recent, tasks)], flipped[np.ix_(recent, tasks)]
    share = seen[np.ix_(past, tasks)].mean(axis=0)
    rows = {
        "base rate of the task alone": np.where(decisions, 1 - share, share),
        "activity of the day alone": activity_only(scored, lambda task: seen[recent, task]),
    }
    for scorer in scored.scorers:
        rows[scorer] = np.column_stack([scored.scores(task, scorer).scaled_score for task in tasks])
    rows["softhad-paper, unscaled"] = np.column_stack([scored.scores(task, "softhad-paper").score for task in tasks])
    for name in options.peers:
        rows[name] = peer_scores(scored, PEERS[name])
    return {name: figures(scores, flips, decisions) for name, scores in rows.items()}


def show(table):
    """Print mean and standard error over folds and seeds, in per cent."""
    columns = list(next(iter(table.values()))[0])
    print(f"{'%':28}" + "".join(f"{column:>18}" for column in columns))
    for name, results in table.items():
        cells = []
        for column in columns:
            values = 100 * np.array([result[column] for result in results])
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
            cells.append(f"{values.mean():11.1f} ± {error:4.1f}")
        print(f"{name:28}" + "".join(cells))


def parse(arguments=None):
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    home = Path(os.environ.get("ALERTREVIEW_REAL_DATA", "../shared/data"))
    parser.add_argument("--data", type=Path, default=home / "mimic_iv_demo_meds", help="folder of a MEDS record set")
    parser.add_argument(
        "--flips", nargs="+", default=["uniform", "matched"], choices=["uniform", "matched", "groups", "days"]
    )
    parser.add_argument("--seeds", type=int, default=5, help="flip seeds")
    parser.add_argument("--folds", type=int, default=5, help="folds by patient")
    parser.add_argument("--only-folds", type=int, default=None, help="measure the first folds only")
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--graphs", type=int, default=3)
    parser.add_argument("--peers", nargs="*", default=[], choices=PEERS, help="peers to measure beside (slow)")
    parser.add_argument("--jobs", type=int, default=2)
    return parser.parse_args(arguments)


def main(arguments=None):
    """Plant, score, count."""
    options = parse(arguments)
    cohort, _ = build_cohort(options.data)
    Y = cohort.decisions.toarray().astype(bool)
    print(f"{Y.shape[0]} instances, {cohort.features.shape[1]} features, {Y.shape[1]} tasks")
    groups = np.unique(
        cohort.tasks["order_group"].where(cohort.tasks["order_group"] != "", cohort.tasks["task_key"]),
        return_inverse=True,
    )[1]
    patients = cohort.instances["patient_id"].to_numpy()
    for kind in options.flips:
        table, started = {}, time.perf_counter()
        for seed in range(options.seeds):
            flipped = plant_flips(Y, kind, np.random.default_rng([seed, 1]), groups)
            folds = fold_of_patients(patients, options.folds, seed)
            for fold in range(options.folds if options.only_folds is None else options.only_folds):
                past, recent = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = measure_fold(cohort, Y, flipped, past, recent, options, seed)
                for name, result in found.items():
                    table.setdefault(name, []).append(result)
        n_runs = len(next(iter(table.values())))
        print(f"\n{kind} flips, {n_runs} runs (folds x seeds), {time.perf_counter() - started:.0f} s")
        show(table)


if __name__ == "__main__":
    main()
