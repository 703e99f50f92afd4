"""Whether a scorer expects a drug's lab more where the drug is on, on records as they are.

For each pair of a drug and a lab: the share of days on which the lab was ordered among days with the drug (exposed) and
the rest, and the mean chance that the scorer gives it there. Share of the gap seen = difference of the chances /
difference of the shares; over pairs with at least 15 exposed days and a gap of .05. Also: which chances came true
(reliability), and what stands among the first hundred commissions.
"""

import csv
import re
from dataclasses import replace

import joblib
import numpy as np

from core.scoring.scorers import SCORERS, leaves_out_likelier

FEWEST_EXPOSED, SMALLEST_GAP = 15, 0.05
RARE = 0.03
N_FIRST = 100
N_REPEATS = 200


def exposed_days(cohort, drug):
    """Return on which days a drug of this pattern is on or was given; None if the records have none."""
    dictionary = cohort.feature_dictionary
    aspects, sources = (dictionary[name].astype(str).to_numpy() for name in ("aspect", "source"))
    columns = [
        column
        for column in np.flatnonzero(np.isin(aspects, ("on_now", "given_24h")))
        if re.search(drug, sources[column], re.IGNORECASE)
    ]
    return np.asarray((cohort.features[:, columns] != 0).sum(axis=1)).ravel() > 0 if columns else None


def few_on(cohort, drug, n):
    """Leave out the patients on a drug but the n with most days on which a lab of its name was ordered."""
    exposed = exposed_days(cohort, drug)
    if exposed is None:
        raise SystemExit(f"bench: no drug of these records matches '{drug}'")
    named = (cohort.tasks["kind"] == "LAB_ORDER") & cohort.tasks["name"].str.contains(drug, case=False, regex=True)
    ordered = np.asarray(cohort.decisions.tocsc()[:, np.flatnonzero(named)].sum(axis=1)).ravel()
    patients = cohort.instances["patient_id"].astype(str).to_numpy()
    on = sorted(set(patients[exposed]), key=lambda patient: (-ordered[patients == patient].sum(), patient))
    keep = np.flatnonzero(~np.isin(patients, on[n:]))
    return replace(
        cohort,
        features=cohort.features[keep],
        decisions=cohort.decisions[keep],
        instances=cohort.instances.iloc[keep].reset_index(drop=True),
    )


def pairs_of(cohort, path):
    """Return (drug, lab name, task, exposed days) of the pairs that the records have."""
    tasks = cohort.tasks
    found = []
    with path.open() as file:
        for row in csv.DictReader(file):
            exposed = exposed_days(cohort, row["drug"])
            is_lab = (tasks["kind"] == "LAB_ORDER") & tasks["name"].str.contains(row["lab"], case=False, regex=True)
            if exposed is not None and is_lab.any():
                task = int(tasks.index[is_lab][np.argmax(tasks["n_positive"][is_lab])])
                found.append((row["drug"], str(tasks["name"].iloc[task]), task, exposed))
    return found


def expected_fold(records, options, score_fold, folds, fold):
    """Return recent rows of a fold, tasks, their past shares, chances of "taken" and scaled scores by scorer."""
    past, recent = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
    scored = score_fold(records, records.decisions, past, recent, options, 0)
    tasks = list(scored)
    chances, scaled = {}, {}
    for scorer in scored.scorers:
        found = [scored.scores(task, scorer) for task in tasks]
        scaled[scorer] = np.column_stack([one.scaled_score for one in found])
        if SCORERS[scorer].times_support or not SCORERS[scorer].parts:
            chances[scorer] = np.column_stack([(1 + one.soft_label) / 2 for one in found])
        else:
            taken = records.decisions[np.ix_(recent, tasks)]
            scores = np.column_stack([one.score for one in found])
            chances[scorer] = np.where(taken, 1 - scores, scores)
    return recent, tasks, records.decisions[np.ix_(past, tasks)].mean(axis=0), chances, scaled


def seen_shares(pairs, taken, chance, keep):
    """Return the share of the gap seen of each pair that has one, over the rows `keep` (repeats count)."""
    shares = {}
    for drug, lab, task, exposed in pairs:
        rows = keep[np.isfinite(chance[keep, task])]
        on, off = rows[exposed[rows]], rows[~exposed[rows]]
        if len(on) < FEWEST_EXPOSED or len(off) < FEWEST_EXPOSED:
            continue
        gap = taken[on, task].mean() - taken[off, task].mean()
        if gap >= SMALLEST_GAP:
            means = taken[on, task].mean(), taken[off, task].mean(), chance[on, task].mean(), chance[off, task].mean()
            shares[drug, lab] = ((means[2] - means[3]) / gap, *means, len(on))
    return shares


def show_couplings(cohort, records, options, n_folds, score_fold, folds):
    """Score every fold, and print pairs, shares with intervals over patients, reliability and the first hundred."""
    work = (joblib.delayed(expected_fold)(records, options, score_fold, folds, fold) for fold in range(n_folds))
    parts = joblib.Parallel(n_jobs=options.jobs)(work)
    pairs, taken = pairs_of(cohort, options.couplings), records.decisions
    codes = np.unique(records.patients.astype(str), return_inverse=True)[1]
    random = np.random.default_rng(0)
    rows = np.concatenate([part[0] for part in parts])
    print(f"{len(rows)} instances in {n_folds} folds of {options.folds}, {len(pairs)} pairs have a drug and a lab")
    base = np.full(taken.shape, np.nan)
    for recent, tasks, share, *_ in parts:
        base[np.ix_(recent, tasks)] = share
    for scorer in parts[0][3]:
        chance = np.full(taken.shape, np.nan)
        for recent, tasks, _, chances, _ in parts:
            chance[np.ix_(recent, tasks)] = chances[scorer]
        found = seen_shares(pairs, taken, chance, rows)
        if scorer == "shared":
            for (drug, lab), (share, *means, n) in found.items():
                print(f"  {drug[:26]:26} {lab[:26]:26} {n:6d} days, ordered " + "/".join(f"{m:.2f}" for m in means[:2])
                      + ", expected " + "/".join(f"{m:.2f}" for m in means[2:]) + f", share {share:.2f}")  # fmt: skip
        mean = np.mean([each[0] for each in found.values()]) if found else np.nan
        repeats = []
        patients = np.unique(codes[rows])
        days = {patient: rows[codes[rows] == patient] for patient in patients}
        for _ in range(N_REPEATS):
            drawn = np.concatenate([days[patient] for patient in random.choice(patients, len(patients))])
            again = [each[0] for key, each in seen_shares(pairs, taken, chance, drawn).items() if key in found]
            if again:
                repeats.append(np.mean(again))
        low, high = np.quantile(repeats, [0.025, 0.975]) if repeats else (np.nan, np.nan)
        print(
            f"{scorer:22} mean share of {len(found)} gaps seen {mean:.2f} (95 % over patients {low:.2f} to {high:.2f})"
        )
    for scorer in parts[0][3]:
        if SCORERS[scorer].parts:
            chance, scaled = np.full(taken.shape, np.nan), np.full(taken.shape, np.nan)
            for recent, tasks, _, chances, scores in parts:
                chance[np.ix_(recent, tasks)] = chances[scorer]
                scaled[np.ix_(recent, tasks)] = scores[scorer]
            show_reliability(scorer, chance, taken)
            show_first(scorer, chance, scaled, taken, base)


def show_reliability(scorer, chance, taken):
    """Print how often the expected decision came true by its chance."""
    known = np.isfinite(chance)
    edges = np.array([0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.99, 1.0])
    place = np.clip(np.searchsorted(edges, chance[known], side="right") - 1, 0, len(edges) - 2)
    cells = [
        f"{chance[known][place == i].mean():.3f}:{taken[known][place == i].mean():.3f} ({(place == i).sum()})"
        for i in range(len(edges) - 1)
        if (place == i).any()
    ]
    print(f"{scorer}: mean chance:share taken (decisions)  " + "  ".join(cells))


def show_first(scorer, chance, scaled, taken, base):
    """Print how many of the first decisions the state makes likelier than in general, and how many are rare."""
    for name, part in (("omissions", ~taken), ("commissions", taken)):
        done = np.where(part, np.where(taken, chance, 1 - chance), np.nan)
        in_general = np.where(taken, base, 1 - base)
        listed = part & np.isfinite(chance)
        if leaves_out_likelier(scorer):
            listed &= done <= in_general
        rows, tasks = np.nonzero(listed)
        order = np.argsort(-scaled[rows, tasks], kind="stable")[:N_FIRST]
        first = rows[order], tasks[order]
        likelier = int((done[first] > in_general[first]).sum())
        rare = int((in_general[first] < RARE).sum())
        print(
            f"{scorer}: of the first {N_FIRST} {name} {likelier} likelier by the state, {rare} of decisions under "
            f"{RARE:.0%}, {len(set(tasks[order]))} tasks, {len(set(rows[order]))} days"
        )
