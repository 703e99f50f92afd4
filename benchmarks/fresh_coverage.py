"""How often the public AUC interval holds the truth in a simulator that shares nothing with the program.

Relevance follows a logistic curve of a Gumbel latent score with patient effects, the scores are skewed, strata lie at
quantiles, and cases are drawn by plain NumPy: at random, or systematically with unequal chances inside strata. The
truth is the AUC of all candidates in strata with a judged case.

    python -m benchmarks.fresh_coverage [--studies 200]
"""

import argparse
import sys
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from core.statistics import design_weighted_auc

Floats = NDArray[np.float64]
BOUNDS = (0.93, 0.985)


@dataclass(frozen=True)
class Design:
    """A run and the cases drawn from it."""

    title: str
    n_patients: int
    per_patient: int
    relevant: float
    cuts: tuple[float, ...]
    """Shares of the candidates below the divisions of the strata."""
    takes: tuple[int, ...]
    """Cases of each stratum."""
    effect: float = 0.3
    """Standard deviation of the patients' effects on score and relevance."""
    unequal: float = 0.0
    """How much more often candidates of high score are drawn inside a stratum."""


DESIGNS = (
    Design("1 % relevant, 3 strata", 500, 60, 0.01, (0.6, 0.9), (50, 50, 50)),
    Design("2 of 5 strata without a judged case", 400, 50, 0.05, (0.2, 0.4, 0.6, 0.9), (0, 30, 30, 0, 30)),
    Design("5 patients", 5, 4000, 0.10, (0.5, 0.9), (20, 20, 20)),
    Design("strongly clustered, 40 patients", 40, 500, 0.10, (0.5, 0.9), (40, 40, 40), effect=1.5),
    Design("6 strata, half at low scores", 600, 50, 0.05, (0.3, 0.5, 0.7, 0.85, 0.95), (60, 30, 30, 30, 25, 25)),
    Design("one stratum", 600, 50, 0.15, (), (100,)),
    Design("unequal chances in 3 strata", 600, 50, 0.10, (0.5, 0.9), (50, 50, 50), unequal=3.0),
    Design("unequal chances in one stratum", 600, 50, 0.10, (), (150,), unequal=3.0),
    Design("the same, up to 6 times apart", 600, 50, 0.10, (), (150,), unequal=1.0),
    Design("the same, 5 % relevant", 600, 50, 0.05, (), (150,), unequal=1.0),
)


def run_of(design: Design, rng: np.random.Generator) -> tuple[NDArray[np.int64], Floats, NDArray[np.bool_]]:
    """Return patient, score and relevance of every candidate."""
    patient = np.repeat(np.arange(design.n_patients), design.per_patient)
    effect = rng.normal(0.0, design.effect, design.n_patients)[patient]
    latent = 0.5 * effect + rng.gumbel(0.0, 1.0, patient.size)
    low, high = -30.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2.0
        chance = 1.0 / (1.0 + np.exp(-(middle + 0.9 * latent + effect)))
        low, high = (middle, high) if chance.mean() < design.relevant else (low, middle)
    return patient, 1.0 / (1.0 + np.exp(1.5 - latent)), rng.random(patient.size) < chance


def true_auc(relevant: NDArray[np.bool_], score: Floats) -> float:
    """Return the share of pairs in the right order, ties half."""
    others = np.sort(score[~relevant])
    below, up_to = np.searchsorted(others, score[relevant]), np.searchsorted(others, score[relevant], "right")
    return float(((below + up_to) / 2.0).mean() / others.size)


def drawn(
    design: Design, score: Floats, stratum: NDArray[np.int64], rng: np.random.Generator
) -> tuple[NDArray[np.int64], Floats]:
    """Return rows and inclusion probabilities of the cases of one study."""
    rows: list[int] = []
    chances: list[float] = []
    for h, n in enumerate(design.takes):
        members = rng.permutation(np.flatnonzero(stratum == h))
        if not n:
            continue
        size = 0.2 + (design.unequal * score[members]) ** 2 if design.unequal else np.ones(members.size)
        chance = n * size / size.sum()
        steps = np.cumsum(chance)
        at = np.searchsorted(steps, np.arange(n) + rng.random(), "right").clip(0, members.size - 1)
        rows += members[at].tolist()
        chances += chance[at].tolist()
    return np.array(rows), np.array(chances)


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each design; 1 if one is covered less than 93 % or more than 98.5 % of the time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=200)
    options = parser.parse_args(arguments)
    print(f"{'design':36} {'cases':>5} {'relevant':>8} {'truth':>6} {'mean':>6} {'holds':>7} {'width':>6} {'ms':>5}")
    missed = 0
    for design in DESIGNS:
        rng = np.random.default_rng(77)
        patient, score, relevant = run_of(design, rng)
        stratum = np.digitize(score, np.quantile(score, design.cuts)) if design.cuts else np.zeros(score.size, int)
        sizes = np.bincount(stratum, minlength=len(design.takes))
        inside = np.isin(stratum, np.flatnonzero(design.takes))
        truth, seen, spent = true_auc(relevant[inside], score[inside]), [], 0.0
        for _ in range(options.studies):
            rows, chance = drawn(design, score, stratum, rng)
            start = time.process_time()
            found = design_weighted_auc(
                relevant[rows].astype(float),
                score[rows],
                patients=patient[rows],
                inclusion_probability=chance,
                strata=stratum[rows],
                stratum_sizes=sizes,
            )
            spent += time.process_time() - start
            if found.value is not None and found.low is not None and found.high is not None:
                seen.append((found.low <= truth <= found.high, found.high - found.low, found.value))
        held, width, value = np.mean(seen, axis=0)
        print(
            f"{design.title:36} {sum(design.takes):5} {100 * design.relevant:7g}% {truth:6.3f} {value:6.3f} "
            f"{100 * held:6.1f}% {width:6.2f} {1000 * spent / options.studies:5.1f}",
            flush=True,
        )
        missed += not BOUNDS[0] <= held <= BOUNDS[1]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
