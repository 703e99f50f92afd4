"""How often the intervals of a report hold the truth, over simulated studies of the designs that the product ships.

Candidates are those of a run with known relevance; each study chooses cases from them as a preset does, and asks for
the AUC, the share of relevant decisions, the true-alert rate at the top twentieth, the difference of two scorers and
the AUC in one half of the patients, among all candidates. Beside the report's interval of the AUC stand others: half a
pseudo-case of each class spread over each stratum, leaving out one patient at a time, a percentile bootstrap over
patients, and DeLong's interval for clustered data without weights. A study without a relevant case has no AUC, and one
with fewer than ten judged cases inside the budget no rate: more studies are drawn, up to ten times as many, until as
many as are asked for have each figure. A figure that hardly any study has after a quarter of them is given up.

    python -m benchmarks.coverage [--studies 400] [--cases 30 60 120 222] [--relevant 0.01 0.05 0.2] [--seed 1]

With --rows FILE, what was measured is stored there and not measured again; --figures measures only some of the figures,
and those of earlier runs are printed with them; --markdown prints the tables of docs/results.md, so that nobody puts
them together by hand.
"""

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from alertreview.studies.models import PRESETS
from core.statistics.auc import auc
from core.statistics.bayesian_bootstrap import N_DRAWS, auc_of, limits
from core.statistics.candidate_figures import CandidateFigures
from core.statistics.estimate import Estimate, logit_interval, normal_quantile, t_quantile, usable_cases
from core.statistics.weighted_auc import WeightedPairs
from core.studies.selection import SelectionDesign, choose_cases
from tests.support.simulated_study import SimulatedCandidates, simulate_candidates

LEVEL = 0.95
N_PATIENTS, N_PER_PATIENT = 600, 100
N_RESAMPLED = 200
MOST_STUDIES = 10
"""Times as many studies as are asked for are drawn at most, until so many have each figure."""
BOUNDS = (0.93, 0.985)
FEW = 100
"""Studies with a figure below which nothing is said of it."""
OURS = ("AUC", "share", "rate", "difference", "subgroup")
OTHERS = ("start", "jackknife", "bootstrap", "DeLong")
Floats = NDArray[np.float64]


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
    subgroup: float
    threshold: float


def truth_of(everyone: SimulatedCandidates) -> Truth:
    """Compute the figures from all candidates."""
    threshold = float(np.quantile(everyone.score, 0.95))
    first, other = (auc(everyone.is_relevant, score).value or 0.0 for score in (everyone.score, everyone.other_score))
    rate = float(everyone.is_relevant[everyone.score >= threshold].mean())
    half = everyone.patient % 2 == 0
    subgroup = auc(everyone.is_relevant[half], everyone.score[half]).value or 0.0
    return Truth(first, first - other, float(everyone.is_relevant.mean()), rate, subgroup, threshold)


@dataclass(frozen=True)
class Judged:
    """The judged cases of one study."""

    y: NDArray[np.bool_]
    score: Floats
    other_score: Floats
    patient: NDArray[np.int64]
    stratum: NDArray[np.int64]
    weight: Floats
    size: Floats
    """Candidates of each stratum."""


def draw_study(
    everyone: SimulatedCandidates, design: SelectionDesign, setting: Setting, rng: np.random.Generator
) -> Judged:
    """Choose cases, and leave out those whose votes do not decide."""
    taken = rng.random(everyone.score.size) < 0.5 if design.balance_decisions else None
    chosen = choose_cases(everyone.score, everyone.patient, design, is_commission=taken)
    is_relevant = everyone.is_relevant[chosen.index]
    undecided = rng.random(is_relevant.size) < setting.missing_if_relevant * np.where(is_relevant, 1.0, 0.25)
    kept = np.flatnonzero(~undecided)
    rows = chosen.index[kept]
    return Judged(
        y=everyone.is_relevant[rows],
        score=everyone.score[rows],
        other_score=everyone.other_score[rows],
        patient=everyone.patient[rows],
        stratum=chosen.stratum[kept],
        weight=1.0 / chosen.inclusion_probability[kept],
        size=np.array([one.n_population for one in chosen.strata], dtype=np.float64),
    )


def intervals(
    cases: Judged, truth: Truth, rng: np.random.Generator, wanted: Sequence[str] = (*OURS, *OTHERS)
) -> Iterator[tuple[str, float, float, float]]:
    """Yield the name of each wanted figure that the study has, its interval, and the truth."""
    figures = CandidateFigures(
        cases.y.astype(np.float64), cases.weight, cases.patient, cases.stratum, cases.size, LEVEL
    )
    inside = cases.score >= truth.threshold
    made: dict[str, tuple[Callable[[], Estimate], float]] = {
        "AUC": (lambda: figures.auc(cases.score), truth.auc),
        "share": (figures.share, truth.share),
        "difference": (lambda: figures.difference(cases.score, cases.other_score).difference, truth.difference),
        "subgroup": (lambda: figures.auc(cases.score, cases.patient % 2 == 0), truth.subgroup),
    }
    if inside.sum() >= 10:
        made["rate"] = lambda: figures.share(inside), truth.rate
    for name, (make, true) in made.items():
        figure = make() if name in wanted else None
        if figure is not None and figure.low is not None and figure.high is not None:
            yield name, figure.low, figure.high, true
    if cases.y.any() and not cases.y.all() and set(OTHERS) & set(wanted):
        for name, (low, high) in _others(cases, rng).items():
            yield name, low, high, truth.auc


def _others(cases: Judged, rng: np.random.Generator) -> dict[str, tuple[float, float]]:
    return {
        "start": _start(cases, rng),
        "jackknife": _jackknife(cases),
        "bootstrap": _resampled(cases, rng),
        "DeLong": _clustered_delong(cases),
    }


def _jackknife(cases: Judged) -> tuple[float, float]:
    """Return the interval by leaving out one patient at a time, on the logit scale with Student's t."""
    pairs = WeightedPairs.of(usable_cases(cases.y, [cases.score], patient=cases.patient, weight=cases.weight), 0)
    without, n = pairs.value_without, pairs.value_without.size
    if n < 2 or np.isnan(without).any() or not 0.0 < pairs.value < 1.0:
        # A figure without an interval claims to be exact.
        return pairs.value, pairs.value
    error = float(np.sqrt((n - 1) / n * np.sum((without - without.mean()) ** 2)))
    return logit_interval(pairs.value, error, t_quantile(LEVEL, n - 1))


def _start(cases: Judged, rng: np.random.Generator) -> tuple[float, float]:
    """Return the interval with half a pseudo-case of each class spread over the judged cases of each stratum."""
    codes = np.unique(cases.patient, return_inverse=True)[1]
    strata = cases.stratum[:, None] == np.arange(cases.size.size)
    own = rng.standard_gamma(1.0, (N_DRAWS // 2, codes.max() + 1))[:, codes]
    each = 0.5 / strata.sum(axis=0)[cases.stratum]
    positive, negative = (own * of + rng.standard_gamma(each, own.shape) for of in (cases.y, ~cases.y))
    total = (positive + negative) @ strata.astype(np.float64)
    scale = np.divide(cases.size, total, out=np.zeros_like(total), where=total > 0.0)[:, cases.stratum]
    values = auc_of(cases.score)(positive * scale, negative * scale)
    return limits(values, int(codes.max()) + 1, LEVEL, is_share=True)


def _resampled(cases: Judged, rng: np.random.Generator) -> tuple[float, float]:
    codes = np.unique(cases.patient, return_inverse=True)[1]
    n = int(codes.max()) + 1
    weights = rng.multinomial(n, np.full(n, 1.0 / n), N_RESAMPLED)[:, codes] * cases.weight
    with np.errstate(invalid="ignore"):
        values = auc_of(cases.score)(weights * cases.y, weights * ~cases.y)
    values = values[np.isfinite(values)]
    low, high = np.quantile(values, [0.025, 0.975]) if values.size else (0.0, 0.0)
    return float(low), float(high)


def _clustered_delong(cases: Judged) -> tuple[float, float]:
    """Return Obuchowski's interval for clustered data (Biometrics 1997), without weights."""
    y, codes = cases.y, np.unique(cases.patient, return_inverse=True)[1]
    pairs = np.sign(cases.score[y][:, None] - cases.score[~y]) / 2.0 + 0.5
    value, m, n = float(pairs.mean()), int(y.sum()), int((~y).sum())
    first = np.bincount(codes[y], pairs.mean(axis=1) - value, codes.max() + 1)
    other = np.bincount(codes[~y], pairs.mean(axis=0) - value, codes.max() + 1)
    n_positive, n_negative, both = (np.unique(codes[of]).size for of in (y, ~y, np.ones_like(y)))
    if min(n_positive, n_negative) < 2:
        return value, value
    variance = n_positive / (n_positive - 1) * float(first @ first) / m**2
    variance += n_negative / (n_negative - 1) * float(other @ other) / n**2
    variance += 2.0 * both / (both - 1) * float(first @ other) / (m * n)
    reach = normal_quantile(LEVEL) * max(variance, 0.0) ** 0.5
    return max(0.0, value - reach), min(1.0, value + reach)


@dataclass(frozen=True)
class Row:
    """Coverage and mean width of each figure of one design, and the studies that had it.

    `figures` are those measured, also where no study had one.
    """

    title: str
    n_cases: int
    relevant: float
    n_studies: int
    seed: int
    found: dict[str, tuple[float, float, int]]
    figures: Sequence[str]

    def line(self) -> str:
        """Return the row of the printed table."""
        cells = [
            f"{100 * self.found[n][0]:5.1f} ({self.found[n][1]:.2f})" if n in self.found else "-"
            for n in (*OURS, *OTHERS)
        ]
        start = f"{self.title:45} {self.n_cases:5} {100 * self.relevant:7.1f}% "
        return start + " ".join(f"{cell:>12}" for cell in cells)

    @property
    def design(self) -> str:
        """The title in fewer words."""
        title = self.title.replace("as in the paper", "paper").replace("as many omissions as commissions", "balanced")
        return title.replace(", finer at the top", "")

    def cell(self) -> str:
        """Return the coverage of the report's figures, a star if fewer studies had one, and the width of the AUC's."""
        held = [self.found.get(name, (0.0, 0.0, 0)) for name in OURS]
        texts = [f"{100 * share:.0f}{'*' * (n < self.n_studies)}" if n >= FEW else "–" for share, _, n in held]
        return f"{' '.join(texts)} ({held[0][1]:.2f})"

    def misses(self) -> list[str]:
        """Return the figures of the report that cover too seldom or too often, with the studies that had them."""
        return [
            f"{self.title}, {self.n_cases} cases, {100 * self.relevant:g} %: {name} {100 * held:.2f} % of {n}"
            f"{surely_outside(held, n)}"
            for name, (held, _, n) in self.found.items()
            if name in OURS and n >= FEW and not BOUNDS[0] <= held <= BOUNDS[1]
        ]


def overview(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a Markdown table: a row for each design and number of cases, a column for each share of relevant ones."""
    shares = sorted({row.relevant for row in rows})
    yield f"| {' | '.join(['design', 'cases', *(f'{100 * share:g} %' for share in shares)])} |"
    cells: dict[tuple[str, int], dict[float, str]] = defaultdict(dict)
    for row in rows:
        cells[row.design, row.n_cases][row.relevant] = row.cell()
    for (design, n_cases), found in cells.items():
        yield f"| {' | '.join([design, str(n_cases), *(found.get(share, '') for share in shares)])} |"


def ranges(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a Markdown table: from the lowest to the highest coverage of the AUC by each interval, by relevance."""
    names = [name for name in (OURS[0], *OTHERS) if any(name in row.found for row in rows)]
    yield f"| {' | '.join(['relevant', 'rows', *names])} |"
    for relevant in sorted({row.relevant for row in rows}):
        alike = [row for row in rows if row.relevant == relevant]
        held = {name: [100 * row.found[name][0] for row in alike if name in row.found] for name in names}
        cells = [f"{min(found):.0f} to {max(found):.0f}" if found else "–" for found in held.values()]
        yield f"| {' | '.join([f'{100 * relevant:g} %', str(len(alike)), *cells])} |"


def surely_outside(held: float, n: int) -> str:
    """Say whether the share held of n studies lies outside the bounds by more than two standard errors at the bound."""
    bound = BOUNDS[0] if held < BOUNDS[0] else BOUNDS[1]
    return ", more than two standard errors" if abs(held - bound) > 2.0 * (bound * (1.0 - bound) / n) ** 0.5 else ""


def measure(
    everyone: SimulatedCandidates,
    design: SelectionDesign,
    setting: Setting,
    n_studies: int,
    seed: int,
    wanted: Sequence[str] = (*OURS, *OTHERS),
) -> dict[str, tuple[float, float, int]]:
    """Return coverage, mean width and number of studies of each figure."""
    truth, rng = truth_of(everyone), np.random.default_rng(seed)
    seen: dict[str, list[tuple[bool, float]]] = defaultdict(list)
    for number in range(MOST_STUDIES * n_studies):
        wanted = [name for name in wanted if len(seen[name]) < n_studies]
        if number == MOST_STUDIES * n_studies // 4:
            wanted = [name for name in wanted if len(seen[name]) >= FEW // 8]
        if not wanted:
            break
        cases = draw_study(everyone, replace(design, seed=number), setting, rng)
        for name, low, high, true in intervals(cases, truth, rng, wanted):
            seen[name].append((low <= true <= high, high - low))
    means = {name: np.mean(values, axis=0).tolist() for name, values in seen.items() if values}
    return {name: (held, width, len(seen[name])) for name, (held, width) in means.items()}


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each design; 1 if an interval of the report covers less than 93 % or more than 98.5 %."""
    parser = argparse.ArgumentParser(description="Coverage of the report's intervals in simulated studies.")
    parser.add_argument("--studies", type=int, default=400)
    parser.add_argument("--cases", type=int, nargs="+", default=[30, 60, 120, 222])
    parser.add_argument("--relevant", type=float, nargs="+", default=[0.01, 0.026, 0.05, 0.1, 0.2])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--figures", nargs="+", choices=(*OURS, *OTHERS), default=[*OURS, *OTHERS])
    parser.add_argument("--markdown", action="store_true", help="also print Markdown tables")
    parser.add_argument("--rows", type=Path, help="file of finished rows; they are not measured again")
    options = parser.parse_args(arguments)
    print(
        "coverage in % (mean width); AUC, share, rate, difference, subgroup: as in the report; then the AUC by others"
    )
    names = " ".join(f"{name:>12}" for name in (*OURS, *OTHERS))
    print(f"{'preset':45} cases relevant {names}")
    missed: list[str] = []
    rows: list[Row] = []
    for title, design, setting, relevant in _designs(options.relevant, options.cases):
        about = title, design.n_cases, relevant, options.studies, options.seed
        row = _stored(options.rows).get(about, Row(*about, found={}, figures=()))
        if missing := [name for name in options.figures if name not in row.figures]:
            everyone = candidates_of(setting, relevant, options.seed)
            found = measure(everyone, design, setting, options.studies, options.seed, missing)
            if options.rows is not None:
                with options.rows.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(Row(*about, found, missing))) + "\n")
            row = Row(*about, row.found | found, [*row.figures, *missing])
        print(row.line(), flush=True)
        missed += row.misses()
        rows.append(row)
    if options.markdown:
        print(*overview(rows), *ranges(rows), sep="\n")
    print(f"outside 93 to 98.5 %: {len(missed)}", *missed, sep="\n  ")
    return 1 if missed else 0


def _designs(relevant: Sequence[float], cases: Sequence[int]) -> Iterator[tuple[str, SelectionDesign, Setting, float]]:
    """Yield title, design, setting and share of relevant candidates of every row."""
    for share in relevant:
        for title, design in designs().items():
            for n_cases in cases:
                yield title, replace(design, n_cases=n_cases), USUAL, share
    for setting in SETTINGS[1:]:
        n_cases = 60 if setting.n_patients < N_PATIENTS else 120
        yield f"as in the paper, {setting.name}", SelectionDesign(n_cases=n_cases), setting, 0.1


def _stored(path: Path | None) -> dict[tuple[str, int, float, int, int], Row]:
    """Return the stored rows; lines with other figures of the same row are put together."""
    rows: dict[tuple[str, int, float, int, int], Row] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else ():
        row = Row(**json.loads(line))
        about = row.title, row.n_cases, row.relevant, row.n_studies, row.seed
        former = rows.get(about, Row(*about, found={}, figures=()))
        rows[about] = Row(*about, former.found | row.found, [*former.figures, *row.figures])
    return rows


if __name__ == "__main__":
    sys.exit(main())
