"""Methods side by side on labelled data with a true score: rows of one run, and tables over all runs."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from alertreview.reproduce.paper import Grid, Row, difference_and_error, mean_and_spread
from core.baselines import OTHER_BASELINES, PAPER_BASELINES, Detector, Factory, Logistic
from core.evaluation import ordering_agreement, rank_auc
from core.scoring.variants import COMBINED, DETECTORS, SOFTHAD_VARIANTS, CalibratedSoftHAD, PairedSoftHAD
from core.validation import FloatArray

AGREEMENT: Final = "agreement"
FLIP_AUC: Final = "flip_auc"
TRUTH: Final = "true score"
PAPER_NAMES: Final = {
    "QDA": "QDA",
    "SVM": "SVM",
    "1-class SVM": "1-class SVM",
    "weighted k-NN": "weighted k-NN",
    "SoftHAD (paper, literal)": "SoftHAD",
}
"""Which of our rows stands for which row of the paper's tables."""


def measure(
    data: str,
    past: tuple[FloatArray, FloatArray],
    recent: tuple[FloatArray, FloatArray],
    true_score: FloatArray,
    flipped: np.ndarray[tuple[int], np.dtype[np.bool_]],
    detectors: Mapping[str, Factory] = DETECTORS,
) -> list[Row]:
    """Fit every method on the past and compare its scores of recent instances, higher = more unusual, with the true.

    Return rows of "data", "method", "agreement" and "flip_auc" (both in [0, 1]); the true score itself comes first.
    `past` and `recent` are features and decisions; `flipped`, of shape (n_recent,), says whose label was switched.
    """
    scores = {TRUTH: true_score}
    fitted: dict[type, Detector] = {}
    for name, make in detectors.items():
        softhad, logistic = fitted.get(CalibratedSoftHAD), fitted.get(Logistic)
        if make is PairedSoftHAD and isinstance(softhad, CalibratedSoftHAD) and isinstance(logistic, Logistic):
            detector: Detector = PairedSoftHAD.of(softhad, logistic)
        else:
            detector = make().fit(*past)
        fitted[type(detector)] = detector
        scores[name] = detector.score_samples(*recent)
    return [
        {
            "data": data,
            "method": name,
            AGREEMENT: ordering_agreement(true_score, found),
            FLIP_AUC: rank_auc(flipped, found),
        }
        for name, found in scores.items()
    ]


def values(rows: Sequence[Row], data: str, method: str, figure: str) -> list[float]:
    """Return one figure of a method on a data set, run by run."""
    return [row[figure] for row in rows if row["data"] == data and row["method"] == method]


def by_method(rows: Sequence[Row], data_sets: Sequence[str], paper: Mapping[str, Sequence[str]]) -> Grid:
    """Return the agreement and flip-detection AUC of every method beside the paper's agreement.

    The rows are those of `measure`, with "run"; `paper` holds by method the paper's mean and its second figure for each
    data set.
    """
    header = ["method"]
    for name in data_sets:
        header += [f"{name}: agreement", "paper", "flips found"]
    made = []
    for method in dict.fromkeys(row["method"] for row in rows):
        cells = [method]
        for place, name in enumerate(data_sets):
            of_paper = paper.get(PAPER_NAMES.get(method, ""))
            cells += [
                mean_and_spread(values(rows, name, method, AGREEMENT)),
                of_paper[place] if of_paper else "",
                mean_and_spread(values(rows, name, method, FLIP_AUC)),
            ]
        made.append(tuple(cells))
    caption = "Agreement with the true score and AUC of finding switched labels, %: mean (standard deviation) over runs"
    return Grid("methods", caption, tuple(header), made)


def best_of(rows: Sequence[Row], data: str, methods: Sequence[str]) -> str:
    """Return the name of the method with the largest mean agreement."""
    return max(methods, key=lambda method: float(np.mean(values(rows, data, method, AGREEMENT))))


def duels(rows: Sequence[Row], data_sets: Sequence[str]) -> tuple[Grid, dict[str, bool]]:
    """Return the best SoftHAD variant compared with every other method in the same runs.

    The best variant of a data set is picked by its mean over the same runs, and so is the strongest peer: both are
    flattered by that a little.
    """
    measured = list(dict.fromkeys(row["method"] for row in rows))
    ours = [method for method in SOFTHAD_VARIANTS if method in measured]
    peers = [method for method in (*PAPER_BASELINES, *OTHER_BASELINES) if method in measured]
    best = {name: best_of(rows, name, ours) for name in data_sets}
    strongest = {name: best_of(rows, name, peers) for name in data_sets}
    made: list[tuple[str, ...]] = [
        ("best SoftHAD variant", *(best[name] for name in data_sets)),
        ("strongest peer", *(strongest[name] for name in data_sets)),
    ]
    for peer in [*peers, *(method for method in COMBINED if method in measured)]:
        cells = [f"ahead of {peer} by"]
        for name in data_sets:
            pair = values(rows, name, best[name], AGREEMENT), values(rows, name, peer, AGREEMENT)
            won = float(np.mean(np.asarray(pair[0]) > np.asarray(pair[1])))
            cells.append(f"{difference_and_error(*pair)}, ahead in {won:.0%} of runs")
        made.append(tuple(cells))
    leads = {
        name: all(
            np.mean(values(rows, name, best[name], AGREEMENT)) > np.mean(values(rows, name, peer, AGREEMENT))
            for peer in peers
            if peer in PAPER_BASELINES
        )
        for name in data_sets
    }
    made.append(("ahead of all the paper's baselines", *("yes" if leads[name] else "no" for name in data_sets)))
    caption = "Best SoftHAD variant less each peer: agreement in points, mean ± standard error of the paired difference"
    return Grid("duels", caption, ("", *data_sets), made), leads


def summarise(rows: Sequence[Row], data_sets: Sequence[str]) -> dict[str, dict[str, dict[str, float]]]:
    """Return the means and standard deviations for programs: by data set, method and figure."""
    made: dict[str, dict[str, dict[str, float]]] = {}
    for name in data_sets:
        for method in dict.fromkeys(row["method"] for row in rows):
            figures: dict[str, float] = {}
            for figure in (AGREEMENT, FLIP_AUC):
                found = np.asarray(values(rows, name, method, figure))
                figures[f"{figure}_mean"] = float(found.mean())
                figures[f"{figure}_sd"] = float(found.std(ddof=1)) if len(found) > 1 else 0.0
            made.setdefault(name, {})[method] = figures
    return made
