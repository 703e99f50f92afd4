"""How often the intervals hold the truth on the candidates of a demonstration, over new selections and votes.

In each study the simulated readers judge every candidate of the run, which no study could: the figures of their
majority are the truth. The cases of the study are chosen as the demonstration's are, by a seed of its own, and their
votes alone give AUC, share, true-alert rate at the headline budget and ceiling. The ceiling's truth is the AUC of a
detector that knows what is truly relevant. Counted beside it: the ceiling is not below the AUC, Fleiss' kappa lies
between .3 and .5.

    python -m benchmarks.demonstration HOME [--studies 200] [--cases 900]
"""

import argparse
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from alertreview.cli.demo import PANEL, DemoSize, study_plan
from benchmarks.story import Judged, judged
from core.evaluation import rank_auc
from core.simulation.study import simulate_votes
from core.statistics.agreement import fleiss_kappa
from core.statistics.alert_rate import HEADLINE_BUDGET
from core.statistics.candidate_figures import CandidateFigures
from core.statistics.ceiling import agreement_ceiling
from core.statistics.consensus import majority_label, positive_votes
from core.statistics.estimate import Estimate

WANTED = {"AUC": 0.92, "share": 0.92, "rate": 0.92, "ceiling": 0.90}


def studied(all_of: Judged, threshold: float, n_cases: int, seed: int) -> Iterator[tuple[str, Estimate, float]]:
    """Yield name, figure and truth of a study with cases and votes of its own."""
    answers = simulate_votes(all_of.relevant, all_of.anomaly, PANEL, seed=1000 + seed).answers.astype(np.float64)
    label = majority_label(answers).label
    chosen = all_of.candidates.choose(study_plan(n_cases, seed).design)
    cases, weight = chosen.index, 1.0 / chosen.inclusion_probability
    score, patient = all_of.candidates.scaled.astype(np.float64), all_of.candidates.patient
    size = np.array([stratum.n_population for stratum in chosen.strata], dtype=np.float64)
    figures = CandidateFigures(label[cases], weight, patient[cases], chosen.stratum, size, 0.95)
    everyone = all_of.rows[np.isfinite(label[all_of.rows])]
    positive, shown = label[everyone] == 1.0, score[everyone] >= threshold
    yield "AUC", figures.auc(score[cases]), rank_auc(positive, score[everyone])
    yield "share", figures.share(), float(positive.mean())
    yield "rate", figures.share(score[cases] >= threshold), float(positive[shown].mean())
    votes = positive_votes(answers[cases])
    yield "kappa", fleiss_kappa(votes), math.nan
    ceiling = agreement_ceiling(votes, weight=weight, patient=patient[cases], n_readers=answers.shape[1])
    relevant = all_of.relevant[everyone]
    perfect = 0.5 * (relevant[positive].mean() + (~relevant[~positive]).mean())
    yield "ceiling", ceiling.weighted, float(perfect)


def main(arguments: list[str] | None = None) -> int:
    """Print how often each interval holds the truth; 1 if one does so too seldom."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("home", type=Path, help="home of a demonstration that ./dev demo built")
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--cases", type=int, default=DemoSize.n_cases)
    options = parser.parse_args(arguments)
    all_of = judged(options.home)
    budgets = all_of.candidates.budgets(all_of.n_instances)["both"]
    headline = min(budgets, key=lambda budget: abs(budget.alerts_per_patient_day - HEADLINE_BUDGET))
    seen: dict[str, list[tuple[bool, float, float]]] = defaultdict(list)
    without: dict[str, Counter[str]] = defaultdict(Counter)
    values: dict[str, list[float]] = defaultdict(list)
    for seed in range(options.studies):
        for name, figure, truth in studied(all_of, headline.threshold or 0.0, options.cases, seed):
            values[name].append(math.nan if figure.value is None else figure.value)
            if figure.low is None or figure.high is None:
                without[name][figure.reason] += 1
            else:
                seen[name].append((figure.low <= truth <= figure.high, figure.high - figure.low, truth))
    print(f"{all_of.rows.size} candidates, {options.studies} studies of {options.cases} cases")
    print(f"{'figure':10} {'holds':>7} {'width':>6} {'truth':>6} {'studies with it':>16}  without")
    too_seldom = []
    for name, wanted in WANTED.items():
        held, width, truth = np.mean(seen[name], axis=0) if seen[name] else (0.0, 0.0, 0.0)
        reasons = "; ".join(f"{n} {why}" for why, n in without[name].most_common()) or "0"
        print(f"{name:10} {100 * held:6.1f}% {width:6.2f} {truth:6.3f} {len(seen[name]):16}  {reasons}")
        too_seldom += [f"{name}: {100 * held:.1f} % instead of {100 * wanted:.0f} %"] if held < wanted else []
    auc, ceiling, kappa = (np.array(values[name]) for name in ("AUC", "ceiling", "kappa"))
    usual = np.sum((kappa >= 0.3) & (kappa <= 0.5))
    print(f"ceiling not below the AUC in {np.sum(ceiling >= auc)} studies, kappa from .3 to .5 in {usual}")
    print(*too_seldom, sep="\n")
    return 1 if too_seldom else 0


if __name__ == "__main__":
    sys.exit(main())
