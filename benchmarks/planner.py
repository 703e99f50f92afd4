"""Whether studies reach the half width that the planner foretells, in simulated studies of three designs.

The candidates have known relevance, so that the shares of relevant ones are given to the planner. Studies are chosen as
a site chooses them, and have the AUC's interval of a report.

    python -m benchmarks.planner [--studies 150]
"""

import argparse
import sys
from dataclasses import replace

import numpy as np

from core.statistics.candidate_figures import CandidateFigures
from core.statistics.design_planning import ExpectedReaders, ExpectedStratum, Forecast, forecast
from core.studies.selection import SelectionDesign, choose_cases
from tests.support.simulated_study import simulate_candidates

DESIGNS = (
    (0.16, SelectionDesign(n_cases=222)),
    (0.05, SelectionDesign(n_cases=120)),
    (0.2, SelectionDesign(n_cases=60, quantiles=(0.5, 0.9))),
)
"""Share of relevant candidates, and design."""
N_PATIENTS, N_PER_PATIENT = 400, 60
CERTAIN = ExpectedReaders(undecided_share=0.0)


def foretold_and_reached(relevant: float, design: SelectionDesign, n_studies: int) -> tuple[Forecast, float]:
    """Return the planner's forecast of a design, and the mean half width of simulated studies."""
    everyone = simulate_candidates(N_PATIENTS, N_PER_PATIENT, np.random.default_rng(1), relevant_share=relevant)
    widths = []
    for seed in range(n_studies):
        chosen = choose_cases(everyone.score, everyone.patient, replace(design, seed=seed))
        rows, size = chosen.index, np.array([stratum.n_population for stratum in chosen.strata], dtype=np.float64)
        label, weight = everyone.is_relevant[rows].astype(np.float64), 1.0 / chosen.inclusion_probability
        found = CandidateFigures(label, weight, everyone.patient[rows], chosen.stratum, size, 0.95)
        figure = found.auc(everyone.score[rows])
        if figure.low is not None and figure.high is not None:
            widths.append((figure.high - figure.low) / 2.0)
    bounds = [stratum.low for stratum in chosen.strata][1:]
    where = np.searchsorted(bounds, everyone.score, side="right")
    expected = [
        ExpectedStratum(stratum.n_population, float(everyone.is_relevant[where == h].mean()))
        for h, stratum in enumerate(chosen.strata)
    ]
    counts = [stratum.n_chosen for stratum in chosen.strata]
    return forecast(expected, counts, n_patients=N_PATIENTS, readers=CERTAIN), float(np.mean(widths))


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each design; 1 if a half width is off by more than a tenth."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=150)
    options = parser.parse_args(arguments)
    print(f"{'cases':>5} {'relevant':>8} {'foretold':>8} {'reached':>8} {'off':>6}")
    worst = 0.0
    for relevant, design in DESIGNS:
        foretold, reached = foretold_and_reached(relevant, design, options.studies)
        off = reached / (foretold.half_width or np.inf) - 1.0
        print(f"{design.n_cases:5} {100 * relevant:7.0f}% {foretold.half_width:8.3f} {reached:8.3f} {100 * off:+5.1f}%")
        worst = max(worst, abs(off))
    return 1 if worst > 0.1 else 0


if __name__ == "__main__":
    sys.exit(main())
