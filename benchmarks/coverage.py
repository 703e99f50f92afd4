"""How often the intervals of a report hold the truth, over simulated studies of the designs that the product ships.

Candidates are those of a run with known relevance; each study chooses cases from them as a preset does, and asks for
the AUC, the share of relevant decisions, the true-alert rate at the top twentieth and the difference of two scorers
among all candidates. Beside the report's interval stand leaving out one patient at a time, a percentile bootstrap over
patients, and DeLong's interval without weights. A study without a relevant case has no AUC, and does not count there.

    python -m benchmarks.coverage [--studies 400] [--cases 30 60 120 222] [--relevant 0.01 0.05 0.2] [--seed 1]
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from alertreview.studies.models import PRESETS
from core.simulation.study import SimulatedCandidates, simulate_candidates
from core.statistics.auc import auc, delong_interval
from core.statistics.bayesian_bootstrap import (
    PSEUDO_CASES,
    PSEUDO_CASES_OF_SHARES,
    CandidateDraws,
    Statistic,
    auc_of,
    share_positive,
)
from core.statistics.estimate import Estimate
from core.statistics.weighted_auc import patient_jackknife, weighted_auc
from core.studies.selection import SelectionDesign, choose_cases

LEVEL = 0.95
N_PATIENTS, N_PER_PATIENT = 600, 100
N_RESAMPLED = 200
BOUNDS = (0.93, 0.985)


@dataclass(frozen=True)
class Setting:
    """Candidates and what is done to the votes."""

    name: str
    clustering: float = 0.2
    n_patients: int = N_PATIENTS
    n_levels: int = 0
    """Levels of a tied score; 0 for none."""
    missing_if_relevant: float = 0.0
    """Share of relevant cases whose votes do not decide; a quarter of it for the others."""


USUAL = Setting("usual")
SETTINGS = (
    USUAL,
    Setting("clustered", clustering=0.5),
    Setting("tied", n_levels=6),
    Setting("missing votes", missing_if_relevant=0.2),
    Setting("5 patients", n_patients=5),
)


def designs() -> dict[str, SelectionDesign]:
    """Return the different designs of the presets of the set-up page, at any number of cases."""
    found = {
        SelectionDesign(edges=plan.edges, balance_decisions=plan.balance_decisions): plan for plan in PRESETS[::-1]
    }
    return {plan.preset: design for design, plan in reversed(found.items())}


def candidates_of(setting: Setting, relevant: float, seed: int) -> SimulatedCandidates:
    """Draw the candidates of a run."""
    rng = np.random.default_rng(seed)
    per_patient = N_PATIENTS * N_PER_PATIENT // setting.n_patients
    drawn = simulate_candidates(
        setting.n_patients, per_patient, rng, clustering=setting.clustering, relevant_share=relevant
    )
    if not setting.n_levels:
        return drawn
    return replace(drawn, score=np.floor(drawn.score * setting.n_levels) / setting.n_levels)


@dataclass(frozen=True)
class Truth:
    """The figures of all candidates."""

    auc: float
    difference: float
    share: float
    rate: float
    threshold: float


def truth_of(everyone: SimulatedCandidates) -> Truth:
    """Compute the figures from all candidates."""
    threshold = float(np.quantile(everyone.score, 0.95))
    first, other = (auc(everyone.is_relevant, score).value or 0.0 for score in (everyone.score, everyone.other_score))
    rate = float(everyone.is_relevant[everyone.score >= threshold].mean())
    return Truth(first, first - other, float(everyone.is_relevant.mean()), rate, threshold)


def study(
    everyone: SimulatedCandidates, truth: Truth, design: SelectionDesign, setting: Setting, rng: np.random.Generator
) -> Iterator[tuple[str, float, float, float]]:
    """Yield each figure's name, its interval, and the truth."""
    taken = rng.random(everyone.score.size) < 0.5 if design.balance_decisions else None
    chosen = choose_cases(everyone.score, everyone.patient, design, is_commission=taken)
    is_relevant = everyone.is_relevant[chosen.index]
    undecided = rng.random(is_relevant.size) < setting.missing_if_relevant * np.where(is_relevant, 1.0, 0.25)
    kept = np.flatnonzero(~undecided)
    rows, stratum = chosen.index[kept], chosen.stratum[kept]
    y, patient, score = everyone.is_relevant[rows], everyone.patient[rows], everyone.score[rows]
    weight = 1.0 / chosen.inclusion_probability[kept]
    if np.unique(patient).size < 2:
        return
    sizes = np.array([one.n_population for one in chosen.strata], dtype=np.float64)
    draws = CandidateDraws(y, patient, stratum, sizes)
    yield "share", *_held(draws, share_positive, float(weight @ y / weight.sum())), truth.share
    inside = score >= truth.threshold
    if inside.sum() >= 10 and np.unique(patient[inside]).size > 1:
        share = float(weight[inside] @ y[inside] / weight[inside].sum())
        yield "rate", *_held(draws, share_positive, share, inside), truth.rate
    if y.all() or not y.any():
        return
    first, other = auc_of(score), auc_of(everyone.other_score[rows])
    yield "AUC", *_held(draws, first, weighted_auc(y, score, weight).value, order_by=[score]), truth.auc
    values = [weighted_auc(y, s, weight).value or 0.0 for s in (score, everyone.other_score[rows])]

    def difference(positive: np.ndarray, negative: np.ndarray) -> np.ndarray:
        return first(positive, negative) - other(positive, negative)

    low, high = draws.interval(difference, LEVEL, order_by=[score, everyone.other_score[rows]], is_share=False)
    apart = values[0] - values[1]
    yield "difference", min(low, apart), max(high, apart), truth.difference
    yield from _peers(y, score, patient, weight, truth, rng)


def _held(
    draws: CandidateDraws,
    statistic: Statistic,
    value: float | None,
    inside: np.ndarray | None = None,
    order_by: Sequence[np.ndarray] = (),
) -> tuple[float, float]:
    numbers = PSEUDO_CASES_OF_SHARES if statistic is share_positive else PSEUDO_CASES
    low, high = draws.interval(statistic, LEVEL, inside, order_by=order_by, pseudo_cases=numbers)
    return min(low, value or 0.0), max(high, value or 0.0)


def _peers(
    y: np.ndarray, score: np.ndarray, patient: np.ndarray, weight: np.ndarray, truth: Truth, rng: np.random.Generator
) -> Iterator[tuple[str, float, float, float]]:
    found: dict[str, Estimate] = {
        "jackknife": patient_jackknife(y, score, patient, weight),
        "DeLong": delong_interval(y, score),
    }
    for name, figure in found.items():
        # A figure without an interval claims to be exact.
        value = figure.value or 0.0
        low, high = (figure.low, figure.high) if figure.low is not None else (value, value)
        yield name, low, high if high is not None else value, truth.auc
    members = [np.flatnonzero(patient == one) for one in np.unique(patient)]
    values = []
    for _ in range(N_RESAMPLED):
        again = np.concatenate([members[i] for i in rng.integers(0, len(members), len(members))])
        value = weighted_auc(y[again], score[again], weight[again]).value
        values += [] if value is None else [value]
    low, high = np.quantile(values, [0.025, 0.975]) if values else (0.0, 0.0)
    yield "bootstrap", float(low), float(high), truth.auc


FIGURES = ("AUC", "share", "rate", "difference", "jackknife", "bootstrap", "DeLong")


def row(
    everyone: SimulatedCandidates, design: SelectionDesign, setting: Setting, n_studies: int, seed: int
) -> dict[str, tuple[float, float, int]]:
    """Return coverage, mean width and number of studies of each figure."""
    truth, rng = truth_of(everyone), np.random.default_rng(seed)
    seen: dict[str, list[tuple[bool, float]]] = defaultdict(list)
    for number in range(n_studies):
        for name, low, high, true in study(everyone, truth, replace(design, seed=number), setting, rng):
            seen[name].append((low <= true <= high, high - low))
    return {name: (*np.mean(values, axis=0), len(values)) for name, values in seen.items()}


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each design; 1 if an interval of the report covers less than 93 % or more than 98.5 %."""
    parser = argparse.ArgumentParser(description="Coverage of the report's intervals in simulated studies.")
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--cases", type=int, nargs="+", default=[30, 60, 120, 222])
    parser.add_argument("--relevant", type=float, nargs="+", default=[0.01, 0.026, 0.05, 0.1, 0.2])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    print("coverage in % (mean width); AUC, share, rate, difference: as in the report; then the AUC by other intervals")
    print(f"{'preset':45} cases relevant " + " ".join(f"{name:>12}" for name in FIGURES))
    missed: list[str] = []

    def show(title: str, n_cases: int, relevant: float, found: dict[str, tuple[float, float, int]]) -> None:
        cells = [f"{100 * found[n][0]:5.1f} ({found[n][1]:.2f})" if n in found else "-" for n in FIGURES]
        print(f"{title:45} {n_cases:5} {100 * relevant:7.1f}% " + " ".join(f"{c:>12}" for c in cells), flush=True)
        missed.extend(
            f"{title}, {n_cases} cases, {100 * relevant:g} %: {name} {100 * found[name][0]:.1f} %"
            for name in FIGURES[:4]
            if name in found and found[name][2] >= 100 and not BOUNDS[0] <= found[name][0] <= BOUNDS[1]
        )

    for relevant in options.relevant:
        everyone = candidates_of(USUAL, relevant, options.seed)
        for title, design in designs().items():
            for n_cases in options.cases:
                found = row(everyone, replace(design, n_cases=n_cases), USUAL, options.studies, options.seed)
                show(title, n_cases, relevant, found)
    for setting in SETTINGS[1:]:
        everyone = candidates_of(setting, 0.1, options.seed)
        n_cases = 60 if setting.n_patients < N_PATIENTS else 120
        found = row(everyone, SelectionDesign(n_cases=n_cases), setting, options.studies, options.seed)
        show(f"as in the paper, {setting.name}", n_cases, 0.1, found)
    print(f"outside 93 to 98.5 %: {len(missed)}", *missed, sep="\n  ")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
