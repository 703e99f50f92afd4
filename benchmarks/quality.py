"""How many planted flips every scorer and peer finds on an open record set, beside what the base rate alone finds.

Decisions are flipped in past and recent instances alike: uniformly (3 % of all), or so that rarity gives nothing away
(5 % of each task's positives dropped, as many added). Pooled = AUC of finding flips over all decisions. td = AUC inside
(task, decision), weighted by flips: the only one without the base rate in it. P@k = flips among the k highest, for
omissions and commissions apart. Planted flips are not clinical errors. With ``--keep FOLDER`` every fold is written
down when it is done, each method in a folder of its own: the same command goes on where it was interrupted, and after
deleting the folder of a method that changed, measures that one alone again. ``--couplings FILE`` flips nothing and
measures whether labs are expected where their drugs are on; see `benchmarks._couplings`; ``--few DRUG N`` makes a
drug rare first, as it may be in a small record set. ``--stability N`` flips
nothing and compares the first decisions of N seeds.
"""

import argparse
import hashlib
import json
import os
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from alertreview.records.importing import build_cohort
from alertreview.records.sources.formats import FORMATS
from benchmarks._couplings import few_on, show_couplings
from benchmarks._stability import show_stability
from core.baselines import SelfConfidence
from core.cohort.feature_roles import FeatureRoles
from core.cohort.tasks import order_groups
from core.evaluation import rank_auc
from core.scoring.all_tasks import score_tasks
from core.scoring.calibration import calibrate
from core.scoring.logistic import fit_ridge_logistic
from core.scoring.parameters import ScoringParameters
from core.scoring.prepared import weighted_task_rows
from core.scoring.scorers import COMPARISONS, SCORERS, SHARED, SOFTHAD_PAPER

FLIPPED_SHARE = 0.03
MATCHED_SHARE = 0.05
BASE, BOOSTING = "base", "boosting, cleaned"
"""Methods that are measured beside the scorers."""


@dataclass(frozen=True)
class Records:
    """What a fold needs of a cohort; it goes to other processes."""

    features: sparse.csr_matrix
    decisions: np.ndarray
    is_flag: np.ndarray
    is_elapsed: np.ndarray
    patients: np.ndarray
    names: list
    kinds: list
    groups: np.ndarray
    roles: FeatureRoles

    @classmethod
    def of(cls, cohort):
        """Take it from a cohort."""
        dictionary, tasks = cohort.feature_dictionary, cohort.tasks
        groups = tasks["order_group"].where(tasks["order_group"] != "", tasks["task_key"])
        return cls(
            features=cohort.features,
            decisions=cohort.decisions.toarray().astype(bool),
            is_flag=dictionary["is_flag"].to_numpy(dtype=bool),
            is_elapsed=dictionary["aspect"].astype(str).str.startswith("hours_").to_numpy(),
            patients=cohort.instances["patient_id"].astype(str).to_numpy(dtype=object),
            names=tasks["name"].astype(str).tolist(),
            kinds=tasks["kind"].astype(str).tolist(),
            groups=np.unique(groups.astype(str), return_inverse=True)[1],
            roles=FeatureRoles.of(dictionary, tasks["name"].astype(str).tolist(), tasks["kind"].astype(str).tolist()),
        )


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
    lines = calibrate(lambda place: evidence[place][:n_past], positives.__getitem__, len(evidence))
    columns = []
    for place, task in enumerate(scored):
        y = np.where(decisions_of(task), 1.0, -1.0)
        columns.append(1 / (1 + np.exp(y * lines.log_odds(place, evidence[place][n_past:]))))
    return np.column_stack(columns)


class BoostedSelfConfidence(SelfConfidence):
    """cleanlab's rule with gradient boosting inside."""

    def _classifier(self):
        return HistGradientBoostingClassifier(max_iter=30, max_leaf_nodes=15, early_stopping=False, random_state=0)


def boosting_only(scored, seen, past, recent):
    """P(other decision) by boosting on the past that its own cross-validated probabilities do not call mislabelled."""
    columns = []
    for task in scored:
        X = weighted_task_rows(scored.prepared, task).dense()
        y = np.where(seen[:, task], 1.0, -1.0)
        peer = BoostedSelfConfidence(n_folds=3).fit(X[: len(past)], y[past])
        columns.append(peer.score_samples(X[len(past) :], y[recent]))
    return np.column_stack(columns)


def score_fold(records, seen, past, recent, options, seed, scorers=None):
    """Score the recent instances of a fold by the scorers that are asked for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return score_tasks(
            records.features,
            sparse.csc_matrix(seen),
            is_flag=records.is_flag,
            patients=records.patients,
            past=past,
            recent=recent,
            scorers=scorers or options.scorers,
            parameters=ScoringParameters(n_nodes=options.nodes, n_graphs=options.graphs),
            seed=seed,
            n_jobs=1,
            task_names=records.names,
            kinds=records.kinds,
            order_groups=order_groups(sparse.csc_matrix(seen[past]), records.names).tolist(),
            is_elapsed=records.is_elapsed,
            roles=records.roles,
        )


def measure_fold(records, kind, options, methods, seed, fold):
    """Figures of every row of the table that `methods` ask for, by method, and the CPU seconds they took."""
    started = time.process_time()
    Y = records.decisions
    flipped = plant_flips(Y, kind, np.random.default_rng([seed, 1]), records.groups)
    folds = fold_of_patients(records.patients, options.folds, seed)
    past, recent = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
    seen = Y ^ flipped
    scorers = [method for method in methods if method in SCORERS]
    # The others need the features of the tasks alone.
    scored = score_fold(records, seen, past, recent, options, seed, scorers or ["logistic"])
    tasks = list(scored)
    decisions, flips = seen[np.ix_(recent, tasks)], flipped[np.ix_(recent, tasks)]
    rows = {}
    for method in methods:
        if method == BASE:
            share = seen[np.ix_(past, tasks)].mean(axis=0)
            with threadpool_limits(1):
                activity = activity_only(scored, lambda task: seen[recent, task])
            rows[method] = {
                "base rate of the task alone": np.where(decisions, 1 - share, share),
                "activity of the day alone": activity,
            }
        elif method == BOOSTING:
            with threadpool_limits(1):
                rows[method] = {method: boosting_only(scored, seen, past, recent)}
        else:
            found = [scored.scores(task, method) for task in tasks]
            rows[method] = {method: np.column_stack([one.scaled_score for one in found])}
            if method == SOFTHAD_PAPER.key:
                rows[method][f"{method}, unscaled"] = np.column_stack([one.score for one in found])
    measured = {
        method: {name: figures(scores, flips, decisions) for name, scores in of_method.items()}
        for method, of_method in rows.items()
    }
    return measured, time.process_time() - started


def kept_fold(records, kind, options, seed, fold):
    """Take the figures of a fold from the folder of kept ones, each method's from its own, and measure the others."""
    methods = [BASE, *options.scorers, *([BOOSTING] if options.boosting else [])]
    if options.keep is None:
        return measure_fold(records, kind, options, methods, seed, fold)
    asked = {
        "data": hashlib.sha256(records.features.data.tobytes() + records.decisions.tobytes()).hexdigest()[:16],
        "folds": options.folds,
        "graphs": options.graphs,
        "nodes": options.nodes,
    }
    folder = options.keep / hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:8]
    paths = {method: folder / method / f"{kind}-{seed}-{fold}.json" for method in methods}
    missing, seconds = [method for method in methods if not paths[method].is_file()], 0.0
    if missing:
        measured, seconds = measure_fold(records, kind, options, missing, seed, fold)
        for method, found in measured.items():
            paths[method].parent.mkdir(parents=True, exist_ok=True)
            unfinished = paths[method].with_suffix(".part")
            unfinished.write_text(json.dumps(found))
            unfinished.rename(paths[method])
    return {method: json.loads(path.read_text()) for method, path in paths.items()}, seconds


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


def show_differences(table, first):
    """Print how far one row is ahead of every other in the same runs: mean difference and its standard error."""
    columns = [column for column in next(iter(table.values()))[0] if column != "pooled"]
    print(f"\n{f'{first} less':28}" + "".join(f"{column:>18}" for column in columns))
    for name, results in table.items():
        cells = []
        for column in columns:
            values = 100 * np.array(
                [one[column] - other[column] for one, other in zip(table[first], results, strict=True)]
            )
            error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else float("nan")
            cells.append(f"{values.mean():+11.1f} ± {error:4.1f}")
        print(f"{name:28}" + "".join(cells))


def parse(arguments=None):
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    home = Path(os.environ.get("ALERTREVIEW_REAL_DATA", "../shared/data"))
    parser.add_argument("--data", type=Path, default=home / "mimic_iv_demo_meds", help="record set")
    parser.add_argument("--format", default="meds", choices=tuple(FORMATS), help="of the record set")
    parser.add_argument(
        "--flips", nargs="+", default=["uniform", "matched"], choices=["uniform", "matched", "groups", "days"]
    )
    parser.add_argument("--seeds", type=int, default=5, help="flip seeds")
    parser.add_argument("--folds", type=int, default=5, help="folds by patient")
    parser.add_argument("--only-folds", type=int, default=None, help="measure the first folds only")
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--graphs", type=int, default=3)
    parser.add_argument(
        "--peers", nargs="*", default=None, choices=COMPARISONS, help="peers to measure beside; without names: all"
    )
    parser.add_argument(
        "--scorers", nargs="+", default=None, choices=tuple(SCORERS), help="only these; without: all but the peers"
    )
    parser.add_argument("--boosting", action="store_true", help="measure boosting as a peer: minutes for every fold")
    parser.add_argument("--couplings", type=Path, default=None, help="file of drugs and the labs that belong to them")
    parser.add_argument(
        "--few", nargs=2, metavar=("DRUG", "N"), default=None, help="leave out all but N of the patients on a drug"
    )
    parser.add_argument("--stability", type=int, default=None, help="compare the first decisions of so many seeds")
    parser.add_argument("--keep", type=Path, default=None, help="folder for the figures of each fold, to go on from")
    parser.add_argument("--jobs", type=int, default=2, help="folds side by side, each in a process with one thread")
    options = parser.parse_args(arguments)
    peers = () if options.peers is None else tuple(options.peers) or COMPARISONS
    options.scorers = (*(options.scorers or (key for key in SCORERS if key not in COMPARISONS)), *peers)
    return options


def main(arguments=None):
    """Plant, score, count."""
    options = parse(arguments)
    cohort, _ = build_cohort(options.data, format=options.format)
    if options.few is not None:
        cohort = few_on(cohort, options.few[0], int(options.few[1]))
    records = Records.of(cohort)
    n_instances, n_tasks = records.decisions.shape
    print(f"{n_instances} instances, {records.features.shape[1]} features, {n_tasks} tasks")
    n_folds = options.folds if options.only_folds is None else options.only_folds
    if options.stability is not None:
        show_stability(records, options, score_fold, fold_of_patients(records.patients, options.folds, 0))
        return
    if options.couplings is not None:
        show_couplings(
            cohort, records, options, n_folds, score_fold, fold_of_patients(records.patients, options.folds, 0)
        )
        return
    for kind in options.flips:
        work = [(seed, fold) for seed in range(options.seeds) for fold in range(n_folds)]
        parallel = joblib.Parallel(n_jobs=options.jobs, return_as="generator", batch_size=1)
        found = parallel(joblib.delayed(kept_fold)(records, kind, options, *place) for place in work)
        table, seconds = {}, []
        for measured, cpu in tqdm(found, desc=kind, total=len(work), disable=None, leave=False):
            seconds.append(cpu)
            for name, result in (row for of_method in measured.values() for row in of_method.items()):
                table.setdefault(name, []).append(result)
        print(f"\n{kind} flips, {len(work)} runs (folds x seeds), {np.mean(seconds):.0f} CPU-s each, kept ones 0")
        show(table)
        if SHARED.key in table:
            show_differences(table, SHARED.key)


if __name__ == "__main__":
    main()
