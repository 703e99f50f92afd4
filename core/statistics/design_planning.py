"""How wide the interval of a planned study will be, by simulating the study that is planned.

The candidates of a run lie in strata of the score. With what is expected of each stratum, studies are drawn and read,
and their AUC is computed as a report does, so that the width is that of the report.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from core.errors import InvalidInputError
from core.statistics.candidate_figures import CandidateFigures
from core.statistics.estimate import Floats, check_level

N_STUDIES, N_DRAWS = 40, 150
"""For a search. With few relevant cases half widths differ by a third from study to study, so that their mean is off by
a twentieth; and quantiles of few draws lie too far inside."""
LAST_CASES, LAST_STUDIES, LAST_DRAWS = 20_000, 160, 300
"""For the figure shown: as many studies as have this many cases together, at least `N_STUDIES`, at most `LAST_STUDIES`.
Intervals of larger studies differ little."""
MOST_CASES = 4_000
"""No study of more cases is planned: a width that needs them is not reached."""
HOW_STEEP = 0.25
"""Inside a stratum relevance rises by this share of the step between its neighbours; most of the rise is at edges."""


@dataclass(frozen=True)
class ExpectedStratum:
    """What is expected of the candidates of one stratum; strata are given from low to high scores."""

    n_candidates: int
    relevant_share: float  # share of truly relevant candidates, in [0, 1]


def expected_strata(sizes: Sequence[int], auc: float, relevant_share: float) -> tuple[ExpectedStratum, ...]:
    """Return what strata hold where nothing but an AUC and a share of relevant candidates is assumed.

    Sizes are from low to high scores; the AUC, of the panel's labels on all candidates, lies in (0.5, 1), the share in
    (0, 1). Raise InvalidInputError if a stratum is empty, or AUC or share lie outside their range.

    References
    ----------
    The binormal model of Dorfman and Alf (1969), Journal of Mathematical Psychology 6, 487-496, with equal variances:
    after some rising transformation scores are N(0, 1), those of relevant candidates N(sqrt(2) z(AUC), 1).
    """
    size = np.asarray(sizes, dtype=np.float64)
    if not size.size or not (size >= 1.0).all():
        raise InvalidInputError(f"A plan needs strata with candidates; given are {list(sizes)}.")
    for name, value, lowest in (("AUC", auc, 0.5), ("share of relevant candidates", relevant_share, 0.0)):
        if not lowest < value < 1.0:
            raise InvalidInputError(f"The {name} {value:g} is not above {lowest:g} and below 1. Give for example 0.8.")
    apart = np.sqrt(2.0) * special.ndtri(auc)
    # The candidates below each border are known, so that the border is where the mixture of both classes has as many.
    wanted = np.cumsum(size)[:-1] / size.sum()
    low, high = np.full(wanted.size, -12.0), np.full(wanted.size, apart + 12.0)
    border = low
    for _ in range(80):
        border = (low + high) / 2.0
        below = relevant_share * special.ndtr(border - apart) + (1.0 - relevant_share) * special.ndtr(border)
        low, high = np.where(below < wanted, border, low), np.where(below < wanted, high, border)
    relevant_below = np.concatenate(([0.0], special.ndtr(border - apart), [1.0]))
    shares = relevant_share * np.diff(relevant_below) / (size / size.sum())
    return tuple(ExpectedStratum(int(n), float(min(share, 1.0))) for n, share in zip(size, shares, strict=True))


@dataclass(frozen=True)
class ExpectedReaders:
    """How readers judge, and how often a case ends without a label."""

    n_readers: int = 3
    sensitivity: float = 1.0
    specificity: float = 1.0
    undecided_share: float = 0.05

    def __post_init__(self) -> None:
        for name in ("sensitivity", "specificity"):
            if not 0.5 < getattr(self, name) <= 1.0:
                raise InvalidInputError(f"'{name}' is {getattr(self, name)}; it must lie above 0.5 and at most at 1.")
        if not 0.0 <= self.undecided_share < 1.0 or self.n_readers < 1:
            raise InvalidInputError(
                f"{self.n_readers} readers and an undecided share of {self.undecided_share} are no panel; give at "
                "least one reader and a share from 0 to below 1."
            )

    def label_share(self, relevant_share: Floats) -> Floats:
        """Return the share of cases that the majority calls relevant."""
        most = self.n_readers // 2
        found, false = (special.bdtrc(most, self.n_readers, p) for p in (self.sensitivity, 1.0 - self.specificity))
        share: Floats = relevant_share * found + (1.0 - relevant_share) * false
        return share


@dataclass(frozen=True)
class Forecast:
    """What a design is expected to show."""

    allocation: str  # name of the way in which cases are divided among the strata
    n_cases: int
    by_stratum: tuple[int, ...]  # cases of each stratum
    half_width: float | None  # mean half width of the AUC's interval; None when too few simulated studies had one
    n_relevant: float  # cases with the label "relevant" to expect
    share_without_interval: float  # simulated studies in which no interval could be computed: all labels were alike


def _same_number(size: Floats, share: Floats) -> Floats:
    return np.ones_like(size) + 0.0 * share


def _neyman(size: Floats, share: Floats) -> Floats:
    return size * np.sqrt(np.maximum(share * (1.0 - share), 1e-4))


def _half_in_largest(size: Floats, share: Floats) -> Floats:
    return np.where(size == size.max(), max(size.size - 1.0, 1.0), 1.0) + 0.0 * share


ALLOCATIONS: dict[str, Callable[[Floats, Floats], Floats]] = {
    "the same number in every stratum": _same_number,
    "Neyman's, by size and spread": _neyman,
    "half of the cases in the largest stratum": _half_in_largest,
}


def forecast(
    strata: Sequence[ExpectedStratum],
    by_stratum: Sequence[int],
    *,
    n_patients: int,
    readers: ExpectedReaders | None = None,
    level: float = 0.95,
    allocation: str = "as given",
    n_studies: int | None = None,
    n_draws: int = LAST_DRAWS,
    seed: int = 0,
) -> Forecast:
    """Return the half width to expect of a study's AUC interval, with so many cases of each stratum.

    Strata are from low to high scores; relevance rises a little inside a stratum (`HOW_STEEP`). Patients are
    those behind the candidates; readers make no errors unless told otherwise. From 40 studies, of large ones, to 160
    are simulated. Raise InvalidInputError if an expectation lies outside its range, or there are more cases than
    candidates.
    """
    check_level(level)
    size, share = _checked(strata)
    counts = np.asarray(by_stratum, dtype=np.int64)
    if counts.shape != size.shape or (counts < 0).any() or (counts > size).any() or not counts.sum():
        raise InvalidInputError(
            f"Cases {list(by_stratum)} do not fit strata of {size.astype(int).tolist()} candidates."
        )
    if n_patients < 2:
        raise InvalidInputError(f"{n_patients} patients give no interval; give the number of patients of the run.")
    panel = ExpectedReaders() if readers is None else readers
    if n_studies is None:
        n_studies = int(min(max(LAST_CASES // counts.sum(), N_STUDIES), LAST_STUDIES))
    rng = np.random.default_rng(seed)
    stratum = np.repeat(np.arange(size.size), counts)
    weight = (size / np.maximum(counts, 1))[stratum]
    widths, n_relevant = [], 0
    for _ in range(n_studies):
        place = rng.random(stratum.size)
        label = (rng.random(stratum.size) < panel.label_share(_relevance(share, stratum, place))).astype(np.float64)
        label[rng.random(stratum.size) < panel.undecided_share] = np.nan
        n_relevant += int(np.nansum(label))
        patient = rng.integers(0, n_patients, stratum.size)
        found = CandidateFigures(label, weight, patient, stratum, size, level, seed, n_draws).auc(stratum + place)
        if found.low is not None and found.high is not None:
            widths.append((found.high - found.low) / 2.0)
    half_width = float(np.mean(widths)) if len(widths) > n_studies / 2 else None
    without = 1.0 - len(widths) / n_studies
    chosen = tuple(counts.tolist())
    return Forecast(allocation, int(counts.sum()), chosen, half_width, n_relevant / n_studies, without)


def plan_designs(
    strata: Sequence[ExpectedStratum],
    half_width: float,
    *,
    n_patients: int,
    readers: ExpectedReaders | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[Forecast, ...]:
    """Return for each allocation the study that reaches a half width in (0, 0.5), the recommended one first.

    A design that does not reach the width with all candidates, or with 4,000 cases, comes last with the half width that
    it reaches. Other parameters as in `forecast`.
    """
    _checked(strata)
    if not 0.0 < half_width < 0.5:
        raise InvalidInputError(f"A half width of {half_width} is not between 0 and 0.5. Give for example 0.1.")
    plans = [
        _search(name, rule, strata, half_width, n_patients=n_patients, readers=readers, level=level, seed=seed)
        for name, rule in ALLOCATIONS.items()
    ]
    return tuple(sorted(plans, key=lambda plan: _rank(plan, half_width)))


def _search(
    name: str,
    rule: Callable[[Floats, Floats], Floats],
    strata: Sequence[ExpectedStratum],
    half_width: float,
    *,
    n_patients: int,
    readers: ExpectedReaders | None,
    level: float,
    seed: int,
) -> Forecast:
    """Return the study of one allocation whose half width is nearest to the wanted one that was found."""
    size, share = _checked(strata)

    def look(n_cases: int, n_studies: int | None, n_draws: int) -> Forecast:
        return forecast(
            strata,
            divide(n_cases, rule(size, share), size).tolist(),
            n_patients=n_patients,
            readers=readers,
            level=level,
            allocation=name,
            n_studies=n_studies,
            n_draws=n_draws,
            seed=seed,
        )

    def better(found: Forecast) -> int:
        ratio = 2.0 if found.half_width is None else found.half_width / half_width
        if abs(ratio - 1.0) < 0.03:
            return found.n_cases
        return int(min(max(round(found.n_cases * ratio**2), 2 * size.size), MOST_CASES, size.sum()))

    found = look(120, N_STUDIES, N_DRAWS)
    for _ in range(6):
        if better(found) != found.n_cases:
            found = look(better(found), N_STUDIES, N_DRAWS)
    if found.n_cases >= LAST_CASES // N_STUDIES:
        return found
    found = look(found.n_cases, None, LAST_DRAWS)
    return found if better(found) == found.n_cases else look(better(found), None, LAST_DRAWS)


def _rank(plan: Forecast, half_width: float) -> tuple[bool, float]:
    reached = plan.half_width is not None and plan.half_width <= 1.1 * half_width
    return (not reached, float(plan.n_cases) if reached else plan.half_width or 1.0)


def divide(n_cases: int, rule: Floats, size: Floats) -> NDArray[np.int64]:
    """Divide cases among strata in proportion to a rule, at least two and at most all candidates of each."""
    least = np.minimum(2, size).astype(np.int64)
    counts = least.copy()
    while (missing := n_cases - int(counts.sum())) > 0 and (counts < size).any():
        room = np.where(counts < size, rule, 0.0)
        wanted = np.minimum(np.maximum(np.floor(missing * room / room.sum()), 0.0), size - counts).astype(np.int64)
        if not wanted.any():
            wanted = (np.arange(size.size) == int(np.argmax(room))).astype(np.int64)
        counts += wanted
    return counts


def _checked(strata: Sequence[ExpectedStratum]) -> tuple[Floats, Floats]:
    size = np.array([stratum.n_candidates for stratum in strata], dtype=np.float64)
    share = np.array([stratum.relevant_share for stratum in strata], dtype=np.float64)
    if not size.size or not (size >= 1.0).all() or not ((share >= 0.0) & (share <= 1.0)).all():
        raise InvalidInputError(
            "A plan needs strata with candidates, and in each a share of relevant ones between 0 and 1; "
            f"given are {list(strata)}."
        )
    return size, share


def _relevance(share: Floats, stratum: NDArray[np.int64], place: Floats) -> Floats:
    """Return the chance of being relevant at a place in [0, 1) of a stratum; its mean is the stratum's share."""
    padded = np.concatenate((share[:1], share, share[-1:]))
    slope = HOW_STEEP * (padded[2:] - padded[:-2]) / 2.0
    # A slope that would leave [0, 1] at either end is flattened, which keeps the mean.
    slope = np.clip(slope, -2.0 * np.minimum(share, 1.0 - share), 2.0 * np.minimum(share, 1.0 - share))
    chance: Floats = share[stratum] + slope[stratum] * (place - 0.5)
    return chance
