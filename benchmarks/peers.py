"""CPU time and flips found of SoftHAD and its peers, on the same instances of one task in the same run.

Features are simulated, as sparse as records are; 3 % of the decisions are switched, in past and recent instances alike.
Every method sees the same features of the task. "flips found" is the AUC of finding switched decisions; "td" the same
inside each decision, weighted by flips. Peers need packages that only this measurement uses.
"""

import argparse
import sys
import time
import warnings

import numpy as np
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.scoring import simulate
from core.evaluation import rank_auc
from core.graph.backbone import sample_balanced_nodes
from core.scoring.all_tasks import score_tasks
from core.scoring.parameters import ScoringParameters
from core.scoring.prepared import prepare_instances, weighted_task_rows

FLIPPED_SHARE = 0.03
PAST_SHARE = 0.6
MISSING = "peers: {name} is not installed. It is used by this measurement alone: python -m pip install cleanlab pyod"


def make_task(n_instances, n_features, seed):
    """One task whose decision is taken by a tenth to a half of the instances, with flips, and its prepared features."""
    X, is_flag, Y, patients = simulate(n_instances, n_features, 12, seed)
    shares = np.asarray(Y.mean(axis=0)).ravel()
    task = int(np.argmin(np.abs(shares - 0.2)))
    random = np.random.default_rng([seed, 1])
    flipped = random.random(n_instances) < FLIPPED_SHARE
    seen = Y[:, [task]].toarray().ravel().astype(bool) ^ flipped
    split = patients[min(round(PAST_SHARE * n_instances), n_instances - 1)]
    past, recent = np.flatnonzero(patients < split), np.flatnonzero(patients >= split)
    return X, is_flag, seen, flipped, patients, past, recent


def softhad(data, n_graphs):
    """Score by the default scorer, choice of features left out as for everybody else."""
    X, is_flag, seen, _, patients, past, recent = data
    scored = score_tasks(
        X,
        sparse.csc_matrix(seen[:, None]),
        is_flag=is_flag,
        patients=patients,
        past=past,
        recent=recent,
        parameters=ScoringParameters(n_graphs=n_graphs),
        n_jobs=1,
    )
    return scored.scores(0, "softhad").scaled_score


def support_vectors(n_nodes):
    """Return a machine fitted on a balanced draw from the past."""

    def score(past, y_past, recent, y_recent):
        rows = sample_balanced_nodes(y_past, n_nodes, np.random.default_rng(0)).rows
        machine = SVC(kernel="rbf", gamma="scale").fit(past[rows], y_past[rows])
        return -y_recent * machine.decision_function(recent)

    return score


def label_spreading(past, y_past, recent, y_recent):
    """Spread past labels over the graph of past and recent instances."""
    joined = np.vstack((past, recent))
    labels = np.r_[(y_past > 0).astype(int), np.full(len(recent), -1)]
    model = LabelSpreading(kernel="knn", n_neighbors=75, alpha=0.2, max_iter=100).fit(joined, labels)
    taken = model.label_distributions_[len(past) :, 1]
    return np.where(y_recent > 0, 1 - taken, taken)


def cleanlab_with(make_model):
    """Return one less the label quality that cleanlab finds with cross-validated probabilities of a model."""

    def score(past, y_past, recent, y_recent):
        from cleanlab.filter import find_label_issues
        from cleanlab.rank import get_label_quality_scores

        labels = (y_past > 0).astype(int)
        chance = cross_val_predict(make_model(), past, labels, cv=5, method="predict_proba")
        clean = ~find_label_issues(labels, chance, n_jobs=1)
        model = make_model().fit(past[clean], labels[clean])
        return 1 - get_label_quality_scores((y_recent > 0).astype(int), model.predict_proba(recent))

    return score


def pyod_neighbours(past, y_past, recent, y_recent):
    """Distance to the neighbours of the own decision, as PyOD's KNN finds it for each decision apart."""
    from pyod.models.knn import KNN

    scores = np.empty(len(recent))
    for label in (-1.0, 1.0):
        own = y_recent == label
        scores[own] = KNN(n_neighbors=20, method="mean").fit(past[y_past == label]).decision_function(recent[own])
    return scores


PEERS = {
    "SVC fitted on 200": support_vectors(200),
    "SVC fitted on 2,000": support_vectors(2000),
    "LabelSpreading (k-NN)": label_spreading,
    "cleanlab + logistic regression": cleanlab_with(lambda: LogisticRegression(C=0.001, max_iter=2000)),
    "cleanlab + gradient boosting": cleanlab_with(lambda: HistGradientBoostingClassifier(random_state=0)),
    "PyOD KNN, per decision": pyod_neighbours,
}


def td(flipped, decisions, scores):
    """AUC of finding flips inside each decision, weighted by flips."""
    total = weight = 0.0
    for taken in (True, False):
        part = decisions == taken
        n_flips = int(flipped[part].sum())
        if 0 < n_flips < part.sum():
            total += n_flips * rank_auc(flipped[part], scores[part])
            weight += n_flips
    return total / weight if weight else float("nan")


def timed(function, *arguments):
    """Call a function; give its answer and its CPU seconds."""
    started = time.process_time()
    answer = function(*arguments)
    return answer, time.process_time() - started


def measure(data, names):
    """Give (name, CPU seconds, AUC, td) of SoftHAD and the named peers."""
    X, is_flag, seen, flipped, patients, past, recent = data
    softhad(data, 1)  # Compiles what is compiled, outside the clock.
    prepared, preparation = timed(
        prepare_instances,
        X,
        sparse.csc_matrix(seen[:, None]),
        is_flag,
        np.unique(patients, return_inverse=True)[1],
        past,
        recent,
        ScoringParameters(),
    )
    features = weighted_task_rows(prepared, 0).dense().astype(np.float64)
    y = np.where(seen[np.r_[past, recent]], 1.0, -1.0)
    n_past = len(past)
    scores = {f"SoftHAD, 200 nodes, {n} graph{'s' * (n > 1)}": timed(softhad, data, n) for n in (1, 3)}
    scores = {name: (found, seconds - preparation) for name, (found, seconds) in scores.items()}
    for name in names:
        scores[name] = timed(PEERS[name], features[:n_past], y[:n_past], features[n_past:], y[n_past:])
    return [
        (name, seconds, rank_auc(flipped[recent], found), td(flipped[recent], seen[recent], found))
        for name, (found, seconds) in scores.items()
    ]


def parse(arguments=None):
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--instances", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=PEERS, default=list(PEERS), help="these peers only")
    return parser.parse_args(arguments)


def main(arguments=None):
    """Time SoftHAD and its peers, and print ratios."""
    options = parse(arguments)
    try:
        if any(name.startswith("cleanlab") for name in options.only):
            import cleanlab  # noqa: F401
        if any(name.startswith("PyOD") for name in options.only):
            import pyod  # noqa: F401
    except ImportError as missing:
        print(MISSING.format(name=missing.name), file=sys.stderr)
        return 2
    data = make_task(options.instances, options.features, options.seed)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = measure(data, options.only)
    seconds = rows[0][1]
    print(f"Simulated: {len(data[5])} past and {len(data[6])} recent instances, one task, one numerical thread")
    print(f"{'':34}{'CPU-s':>9}{'times SoftHAD':>15}{'flips found %':>15}{'td %':>8}")
    for name, cpu, auc, inside in rows:
        print(f"{name:34}{cpu:9.2f}{cpu / seconds:15.1f}{100 * auc:15.1f}{100 * inside:8.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
