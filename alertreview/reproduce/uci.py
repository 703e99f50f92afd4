"""The paper's table on UCI data: agreement with the true score after 3 % of the labels were switched."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from alertreview.reproduce.paper import Options, Results, Row, collect_runs
from alertreview.reproduce.tables import by_method, duels, measure, summarise
from alertreview.reproduce.uci_files import Responses, read_uci
from alertreview.settings import Progress
from core.scoring.variants import DETECTORS
from core.simulation.paper_points import FLIPPED_SHARE
from core.validation import FloatArray, IntArray

PAST_SHARE: Final = 2 / 3
PAPER: Final = {
    "QDA": ("75.1 (1.3)", "56.7 (1.5)", "65.9 (2.9)"),
    "SVM": ("75.0 (9.3)", "58.5 (4.4)", "37.1 (8.6)"),
    "1-class SVM": ("44.2 (1.9)", "27.2 (0.5)", "50.1 (3.5)"),
    "weighted k-NN": ("67.6 (1.4)", "44.4 (2.0)", "61.4 (2.3)"),
    "SoftHAD": ("74.5 (1.5)", "71.3 (3.2)", "72.6 (1.7)"),
}
"""The paper's table "UCI ML data sets": mean and what it calls variance."""
EXPLANATION: Final = (
    "The response is scaled to [-1, 1] over the whole data set; the label is +1 where it is 0 or more. Three per cent "
    "of all labels are switched; the true score is the distance between the scaled response and the label as it then "
    "stands. Two thirds of the instances, drawn anew in each run, are the past; the others are scored. Features are "
    "standardised by the past."
)


@dataclass(frozen=True)
class Split:
    """Past and recent instances of one run."""

    past: tuple[FloatArray, FloatArray]
    recent: tuple[FloatArray, FloatArray]
    true_score: FloatArray
    flipped: np.ndarray[tuple[int], np.dtype[np.bool_]]


def split_responses(data: Responses, random: np.random.Generator) -> Split:
    """Return the switch labels and part the instances as the paper does, section "UCI ML Datasets"."""
    low, high = data.response.min(), data.response.max()
    scaled = 2 * (data.response - low) / (high - low) - 1
    n = len(scaled)
    flipped = np.zeros(n, dtype=bool)
    flipped[random.choice(n, round(FLIPPED_SHARE * n), replace=False)] = True
    y = np.where((scaled >= 0) ^ flipped, 1.0, -1.0)
    order: IntArray = random.permutation(n)
    n_past = round(PAST_SHARE * n)
    past, recent = order[:n_past], order[n_past:]
    spread = data.X[past].std(axis=0)
    X = (data.X - data.X[past].mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return Split((X[past], y[past]), (X[recent], y[recent]), np.abs(scaled - y)[recent], flipped[recent])


def one_run(data_sets: tuple[Responses, ...], seed: int, run: int) -> list[Row]:
    """Return the rows of one run: every method on every data set."""
    rows = []
    for place, data in enumerate(data_sets):
        split = split_responses(data, np.random.default_rng([seed, run, place]))
        rows += measure(data.name, split.past, split.recent, split.true_score, split.flipped)
    return rows


def reproduce_uci(options: Options, data: Path | None, progress: Progress) -> Results:
    """Repeat the paper's UCI table with every method, from a folder with the files; without it they are downloaded.

    Raise SourceError when a file is missing, cannot be fetched, or is another one.
    """
    data_sets = read_uci(data, options.out / "uci")
    names = [found.name for found in data_sets]
    work = partial(one_run, data_sets, options.seed)
    rows = collect_runs(work, options, "uci", {"methods": list(DETECTORS)}, progress)
    against, leads = duels(rows, names)
    left_out = "; ".join(f"{found.n_left_out} of {found.name}" for found in data_sets if found.n_left_out)
    return Results(
        name="uci",
        title="UCI data sets with switched labels",
        explanation=EXPLANATION + (f" Rows with a missing value are left out: {left_out}." if left_out else ""),
        simulated=False,
        rows=rows,
        grids=(by_method(rows, names, PAPER), against),
        summary={"methods": summarise(rows, names), "ahead_of_the_papers_baselines": leads},
    )
