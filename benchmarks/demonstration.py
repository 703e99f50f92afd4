"""How often the intervals hold the truth on the candidates of a demonstration, over new selections and votes.

In each study the simulated readers judge every candidate of the run, which no study could: the figures of their
majority are the truth. The cases of the study are chosen by a seed of its own, and their votes alone give AUC, share,
true-alert rate and ceiling. The ceiling's truth is the AUC of a detector that knows what is truly relevant.

    python -m benchmarks.demonstration HOME [--studies 200] [--cases 120]
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from alertreview.cli.demo import panel
from benchmarks.story import Candidates, candidates
from core.evaluation import rank_auc
from core.simulation.study import simulate_votes
from core.statistics.candidate_figures import CandidateFigures
from core.statistics.ceiling import agreement_ceiling
from core.statistics.consensus import majority_label, positive_votes
from core.statistics.estimate import Estimate
from core.studies.selection import SelectionDesign, choose_cases

WANTED = {"AUC": 0.92, "share": 0.92, "rate": 0.92, "ceiling": 0.90}
TOP = 0.95
"""Scores from this quantile on are inside the budget of the true-alert rate."""


def votes_of_everyone(all_of: Candidates, seed: int) -> NDArray[np.float64]:
    """Return new answers of the demonstration's readers to every candidate, of shape (n, n_readers)."""
    truth = all_of.votes.truth
    # What the readers go by: relevant, unusual only, or usual.
    anomaly = np.select([truth == 3, truth == 2], [1.0, 0.8], 0.0)
    return simulate_votes(truth == 3, anomaly, panel(), seed=seed).answers.astype(np.float64)


def studied(all_of: Candidates, n_cases: int, seed: int) -> Iterator[tuple[str, Estimate, float]]:
    """Yield name, figure and truth of a study with cases and votes of its own."""
    answers = votes_of_everyone(all_of, 1000 + seed)
    label, is_relevant = majority_label(answers).label, all_of.votes.truth == 3
    known, threshold = np.isfinite(label), float(np.quantile(all_of.score, TOP))
    inside = known & (all_of.score >= threshold)
    found_relevant, found_other = label == 1.0, label == 0.0
    design = SelectionDesign(n_cases=n_cases, balance_decisions=True, seed=seed)
    chosen = choose_cases(all_of.score, all_of.patient, design, is_commission=all_of.is_commission)
    rows, weight = chosen.index, 1.0 / chosen.inclusion_probability
    size = np.array([stratum.n_population for stratum in chosen.strata], dtype=np.float64)
    figures = CandidateFigures(label[rows], weight, all_of.patient[rows], chosen.stratum, size, 0.95)
    shown = all_of.score[rows] >= threshold
    yield "AUC", figures.auc(all_of.score[rows]), rank_auc(found_relevant[known], all_of.score[known])
    yield "share", figures.share(), float(found_relevant[known].mean())
    yield "rate", figures.share(shown), float(found_relevant[inside].mean())
    ceiling = agreement_ceiling(
        positive_votes(answers[rows]), weight=weight, patient=all_of.patient[rows], n_readers=answers.shape[1]
    )
    perfect = 0.5 * (is_relevant[found_relevant].mean() + (~is_relevant[found_other]).mean())
    yield "ceiling", ceiling.weighted, float(perfect)


def main(arguments: list[str] | None = None) -> int:
    """Print how often each interval holds the truth; 1 if one does so too seldom."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path, help="home of a demonstration that ./dev demo built")
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--cases", type=int, default=120)
    options = parser.parse_args(arguments)
    all_of = candidates(options.home)
    seen: dict[str, list[tuple[bool, float, float]]] = defaultdict(list)
    without: dict[str, int] = defaultdict(int)
    for seed in range(options.studies):
        for name, figure, truth in studied(all_of, options.cases, seed):
            if figure.low is None or figure.high is None:
                without[name] += 1
            else:
                seen[name].append((figure.low <= truth <= figure.high, figure.high - figure.low, truth))
    print(f"{all_of.score.size} candidates, {options.studies} studies of {options.cases} cases, balanced by decision")
    print(f"{'figure':10} {'holds':>7} {'width':>6} {'truth':>6} {'studies with it':>16} {'without':>8}")
    too_seldom = []
    for name, wanted in WANTED.items():
        held, width, truth = np.mean(seen[name], axis=0) if seen[name] else (0.0, 0.0, 0.0)
        print(f"{name:10} {100 * held:6.1f}% {width:6.2f} {truth:6.3f} {len(seen[name]):16} {without[name]:8}")
        too_seldom += [f"{name}: {100 * held:.1f} % instead of {100 * wanted:.0f} %"] if held < wanted else []
    print(*too_seldom, sep="\n")
    return 1 if too_seldom else 0


if __name__ == "__main__":
    sys.exit(main())
