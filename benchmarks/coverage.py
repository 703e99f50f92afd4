"""How often the intervals of a report hold the truth: 600 simulated studies of the paper's design.

Each study draws 60 patients, chooses 222 of their decisions over the score range, and asks for the AUC among the
decisions of all such patients. Reported for rising similarity of the decisions of one patient (clustering): coverage of
the naive DeLong interval and of the weighted patient jackknife, their bias and width, and what the share of relevant
decisions reads with and without weights.

    python -m benchmarks.coverage [--studies 600] [--seed 1]
"""

import argparse
from dataclasses import dataclass, replace

import numpy as np

from core.simulation.study import simulate_candidates
from core.statistics.alert_rate import weighted_share
from core.statistics.auc import auc, delong_interval
from core.statistics.estimate import Estimate
from core.statistics.weighted_auc import patient_jackknife
from core.studies.selection import SelectionDesign, choose_cases

CLUSTERING = (0.02, 0.2, 0.5)
DESIGN = SelectionDesign(quantiles=(0.5, 0.85))
"""222 cases, a third each from the lower half, the next third, and the highest seventh of the scores."""
N_PATIENTS, N_PER_PATIENT = 60, 100


@dataclass(frozen=True)
class Coverage:
    """What the simulated studies of one clustering showed."""

    clustering: float
    true_auc: float
    true_share: float
    naive: float
    """Share of studies whose DeLong interval holds the truth."""
    weighted: float
    naive_bias: float
    weighted_bias: float
    weighted_width: float
    share_naive: float
    """Mean share of relevant cases among the chosen."""
    share_weighted: float
    share_covered: float
    """Share of studies whose weighted interval of that share holds the truth."""


def simulate(clustering: float, n_studies: int, seed: int) -> Coverage:
    """Draw studies and count."""
    rng = np.random.default_rng(seed)
    everyone = simulate_candidates(20_000, N_PER_PATIENT, rng, clustering=clustering)
    truth, share = auc(everyone.is_relevant, everyone.score).value or 0.0, float(everyone.is_relevant.mean())
    found = np.array([_study(clustering, truth, share, rng, seed * n_studies + i) for i in range(n_studies)])
    naive, weighted, naive_auc, weighted_auc, width, share_naive, share_weighted, share_held = found.mean(axis=0)
    return Coverage(
        clustering,
        truth,
        share,
        naive,
        weighted,
        naive_auc - truth,
        weighted_auc - truth,
        width,
        share_naive,
        share_weighted,
        share_held,
    )


def _study(clustering: float, truth: float, share: float, rng: np.random.Generator, seed: int) -> list[float]:
    candidates = simulate_candidates(N_PATIENTS, N_PER_PATIENT, rng, clustering=clustering)
    chosen = choose_cases(candidates.score, candidates.patient, replace(DESIGN, seed=seed))
    y, score = candidates.is_relevant[chosen.index], candidates.score[chosen.index]
    patient, weight = candidates.patient[chosen.index], 1.0 / chosen.inclusion_probability
    naive, weighted = delong_interval(y, score), patient_jackknife(y, score, patient, weight)
    among = weighted_share(y, patient, weight)
    width = (weighted.high or 0.0) - (weighted.low or 0.0)
    values = (naive.value or 0.0, weighted.value or 0.0, width, float(y.mean()), among.value or 0.0)
    return [_holds(naive, truth), _holds(weighted, truth), *values, _holds(among, share)]


def _holds(figure: Estimate, truth: float) -> float:
    return float(figure.low is not None and figure.high is not None and figure.low <= truth <= figure.high)


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 when the weighted interval covers less than 92 % or more than 97 %."""
    parser = argparse.ArgumentParser(description="Coverage of the report's intervals in simulated studies.")
    parser.add_argument("--studies", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    results = [simulate(c, options.studies, options.seed) for c in CLUSTERING]
    print("clustering  true AUC  naive covers  weighted covers  naive bias  weighted bias  width", end="  ")
    print("share: true  naive  weighted  covered")
    for r in results:
        print(
            f"{r.clustering:10.2f}  {r.true_auc:8.3f}  {100 * r.naive:11.1f}%  {100 * r.weighted:14.1f}%  "
            f"{r.naive_bias:+10.3f}  {r.weighted_bias:+13.3f}  {r.weighted_width:5.3f}  "
            f"{r.true_share:11.3f}  {r.share_naive:5.3f}  {r.share_weighted:8.3f}  {100 * r.share_covered:6.1f}%"
        )
    held = all(0.92 <= r.weighted <= 0.97 for r in results)
    print("The weighted interval covers 92-97 %: " + ("yes" if held else "NO"))
    return 0 if held else 1


if __name__ == "__main__":
    raise SystemExit(main())
