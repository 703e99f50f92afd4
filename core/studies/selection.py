"""Choose the cases of a study over the range of the scores, with a known chance for every candidate.

A candidate is an instance x task decision; an order group on one instance is one candidate, represented by its most
unusual member. Candidates are divided into strata by scaled score (and, if wished, by omission / commission). Inside a
stratum, cases are taken at equal steps along a list in which the candidates of a patient stand together and everything
else is shuffled: every candidate has exactly the chance n_chosen / n_population, and no patient more than a fair share.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import InvalidInputError
from core.statistics.estimate import as_vector
from core.validation import as_codes, whole_number
from core.vocabulary import Decision

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class SelectionDesign:
    """How cases are to be chosen; frozen with the study.

    Parameters
    ----------
    n_cases : int
        Cases wanted in all.
    n_readers : int
        Readers for each case.
    edges : tuple of float
        Scaled scores that divide the strata, rising.
    quantiles : tuple of float
        Instead of `edges`: shares of the candidates below each division, rising, in (0, 1).
    balance_decisions : bool
        Whether omissions and commissions get half of each score stratum each.
    seed : int
    half_in_largest : bool
        Whether half of the cases come from the stratum with most candidates, instead of the same number from each: the
        stratum that decides most about the AUC.
    """

    n_cases: int = 222
    n_readers: int = 3
    edges: tuple[float, ...] = (1.0 / 3.0, 2.0 / 3.0)
    quantiles: tuple[float, ...] = ()
    balance_decisions: bool = False
    seed: int = 0
    half_in_largest: bool = False

    def __post_init__(self) -> None:
        for name, least in (("n_cases", 1), ("n_readers", 1), ("seed", 0)):
            object.__setattr__(self, name, whole_number(getattr(self, name), name=name, least=least))
        for name in ("edges", "quantiles"):
            object.__setattr__(self, name, tuple(as_vector(name, getattr(self, name)).tolist()))
        if not all(b > a for a, b in zip((-np.inf, *self.edges), (*self.edges, np.inf), strict=True)):
            raise InvalidInputError(f"Stratum edges {self.edges} must rise and be finite.")
        inside = all(0.0 < q < 1.0 for q in self.quantiles)
        if not inside or any(b <= a for a, b in zip(self.quantiles, self.quantiles[1:], strict=False)):
            raise InvalidInputError(f"Stratum quantiles {self.quantiles} must rise and lie between 0 and 1.")


AS_IN_THE_PAPER = SelectionDesign()
"""222 cases over a wide range of low, medium and high scores, three readers each (section "Medical data")."""


@dataclass(frozen=True)
class Stratum:
    """One stratum of a selection."""

    name: str  # "high, 0.67 and over", with ", omission" when decisions are balanced
    low: float  # scaled score from which on; minus infinity for the lowest
    high: float  # scaled score below which; infinity for the highest
    decision: Decision | None
    n_population: int
    n_wanted: int
    n_chosen: int

    @property
    def inclusion_probability(self) -> float:
        """Chance of each candidate of the stratum to be chosen; 0 for an empty stratum."""
        return self.n_chosen / self.n_population if self.n_population else 0.0


@dataclass(frozen=True)
class Selection:
    """The chosen cases.

    Attributes
    ----------
    index : ndarray of shape (n_chosen,), int
        Positions of the chosen candidates in the arrays given, in shuffled order (the order for display).
    stratum : ndarray of shape (n_chosen,), int
        Row of `strata` of each chosen case.
    inclusion_probability : ndarray of shape (n_chosen,)
    strata : tuple of Stratum
    n_candidates : int
        Candidates after order groups were made one.
    left_out : dict of str to int
        Why given rows were no candidates.
    notes : tuple of str
        Sentences about strata that could not give what was wanted.
    """

    index: Integers
    stratum: Integers
    inclusion_probability: NDArray[np.float64]
    strata: tuple[Stratum, ...]
    n_candidates: int
    left_out: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def choose_cases(
    scaled_score: ArrayLike,
    patient: ArrayLike,
    design: SelectionDesign = AS_IN_THE_PAPER,
    *,
    is_commission: ArrayLike | None = None,
    group: ArrayLike | None = None,
    eligible: ArrayLike | None = None,
) -> Selection:
    """Choose the cases of a study from all scored decisions of a run.

    Parameters
    ----------
    scaled_score : array-like of shape (n,)
        Scaled score of every instance x task; higher = more unusual; NaN leaves a row out.
    patient : array-like of shape (n,)
        Number or name of the patient behind each row.
    design : SelectionDesign
    is_commission : array-like of shape (n,), bool, optional
        True where the decision was taken. Needed to balance decisions.
    group : array-like of shape (n,), int, optional
        Rows with the same non-negative code are one order group on one instance with one decision, and one candidate;
        -1 stands alone.
    eligible : array-like of shape (n,), bool, optional
        False leaves a row out, for example windows cut short by discharge.

    Returns
    -------
    Selection
        The same for the same arrays and seed.

    Raises
    ------
    InvalidInputError
        If lengths differ, decisions are to be balanced but not given, or no row is a candidate.

    References
    ----------
    Cochran (1977), Sampling Techniques, chapters 5 and 8: stratified and systematic sampling.
    """
    score = np.asarray(scaled_score)
    if score.dtype.kind not in "fiub":
        score = as_vector("scaled_score", scaled_score)
    candidates, left_out = candidate_rows(score, group, eligible)
    if candidates.size == 0:
        raise InvalidInputError("No candidate is left to choose cases from. Check the run and the exclusions.")
    patients = _same_length("patient", patient, score.size)[candidates]
    codes = as_codes(patients, candidates.size, name="patient").astype(np.int32)
    if design.balance_decisions and is_commission is None:
        raise InvalidInputError("Omissions and commissions cannot be balanced without 'is_commission'.")
    kept_score = score[candidates].astype(np.float64)
    edges = np.quantile(kept_score, design.quantiles) if design.quantiles else np.asarray(design.edges)
    band = np.searchsorted(edges, kept_score, side="right")
    taken = None
    if design.balance_decisions:
        taken = _same_length("is_commission", is_commission, score.size)[candidates].astype(bool)
        band = 2 * band + taken
    n_strata = (edges.size + 1) * (2 if design.balance_decisions else 1)
    population = np.bincount(band, minlength=n_strata)
    wanted = _shares(design, population)
    chosen = _fill(wanted, population)
    rng = np.random.default_rng(design.seed)
    picks = [_spread(np.flatnonzero(band == h), codes, int(chosen[h]), rng) for h in range(n_strata)]
    stratum = np.repeat(np.arange(n_strata), [p.size for p in picks])
    order = rng.permutation(stratum.size)
    strata = _describe(edges, design.balance_decisions, population, wanted, chosen)
    probability = np.array([s.inclusion_probability for s in strata])
    index = candidates[np.concatenate(picks)][order]
    return Selection(
        index, stratum[order], probability[stratum[order]], strata, int(candidates.size), left_out, _notes(strata)
    )


def _same_length(name: str, values: ArrayLike | None, n: int) -> NDArray[np.generic]:
    array = np.asarray(values)
    if array.shape != (n,):
        raise InvalidInputError(f"'{name}' has shape {array.shape}; give one entry for each of {n} scores.")
    return array


def candidate_rows(
    score: NDArray[np.generic], group: ArrayLike | None = None, eligible: ArrayLike | None = None
) -> tuple[Integers, dict[str, int]]:
    """Return the rows that may be chosen, order groups once, and how many others there are by reason.

    A score of NaN leaves a row out; groups and eligible ones are those of `choose_cases`.
    """
    if score.ndim != 1:
        raise InvalidInputError(f"'scaled_score' has {score.ndim} dimensions; give one score for each decision.")
    finite = np.isfinite(score.astype(np.float64, copy=False))
    allowed = finite if eligible is None else finite & _same_length("eligible", eligible, score.size).astype(bool)
    left_out = {"no score": int((~finite).sum()), "not eligible": int((finite & ~allowed).sum())}
    rows = np.flatnonzero(allowed)
    if group is not None:
        codes = _same_length("group", group, score.size)[rows].astype(np.int64)
        grouped, alone = rows[codes >= 0], rows[codes < 0]
        codes = codes[codes >= 0]
        # Highest score first inside a group; equal scores by position, so that the choice never depends on the sort.
        order = np.lexsort((grouped, -score[grouped].astype(np.float64), codes))
        first = np.append(True, np.diff(codes[order]) != 0) if codes.size else np.empty(0, dtype=bool)
        rows = np.sort(np.concatenate([alone, grouped[order[first]]]))
        left_out["shown with another member of its order group"] = int(grouped.size - first.sum())
    return rows.astype(np.int64), {reason: count for reason, count in left_out.items() if count}


def _shares(design: SelectionDesign, population: NDArray[np.generic]) -> Integers:
    if not design.half_in_largest or population.size == 1:
        return _even_shares(design.n_cases, population.size)
    largest, in_others = int(np.argmax(population)), design.n_cases // 2
    return np.insert(_even_shares(in_others, population.size - 1), largest, design.n_cases - in_others)


def _even_shares(total: int, parts: int) -> Integers:
    shares = np.full(parts, total // parts, dtype=np.int64)
    # What does not divide evenly goes to the highest scores.
    shares[parts - total % parts :] += 1
    return shares


def _fill(wanted: Integers, population: NDArray[np.generic]) -> Integers:
    """Return what a stratum lacks to the others, evenly, as far as they have candidates."""
    available = population.astype(np.int64)
    chosen = np.minimum(wanted, available)
    while (missing := int(wanted.sum() - chosen.sum())) and (room := np.flatnonzero(chosen < available)).size:
        extra = _even_shares(missing, room.size)
        chosen[room] = np.minimum(chosen[room] + extra, available[room])
    return chosen


def _spread(members: Integers, patients: NDArray[np.int32], n: int, rng: np.random.Generator) -> Integers:
    """Return `n` members at equal steps along a list sorted by shuffled patients, from a random start."""
    if n == 0:
        return np.empty(0, dtype=np.int64)
    own = patients[members]
    shuffled = rng.permutation(int(own.max()) + 1)
    ends = np.cumsum(np.bincount(own, minlength=shuffled.size)[shuffled])
    step = members.size / n
    positions = np.minimum(np.floor((np.arange(n) + rng.random()) * step).astype(np.int64), members.size - 1)
    hit = shuffled[np.searchsorted(ends, positions, side="right")]
    # Only the patients that were hit are shuffled inside: the others of millions of candidates are never touched.
    needed = np.zeros(shuffled.size, dtype=bool)
    needed[hit] = True
    pool = members[needed[own]]
    pool = pool[np.lexsort((rng.random(pool.size), patients[pool]))]
    starts = np.searchsorted(patients[pool], hit, side="left")
    earlier = np.arange(n) - np.searchsorted(_turns(hit), _turns(hit), side="left")
    picked: Integers = pool[starts + earlier]
    return picked


def _turns(hit: NDArray[np.generic]) -> Integers:
    """Return the runs of equal entries the numbers 0, 1, 2 and so on."""
    return np.concatenate(([0], np.cumsum(hit[1:] != hit[:-1]))).astype(np.int64)


_BANDS = {2: ("low", "high"), 3: ("low", "middle", "high"), 4: ("low", "lower middle", "upper middle", "high")}


def _describe(
    edges: NDArray[np.float64],
    balanced: bool,
    population: NDArray[np.generic],
    wanted: Integers,
    chosen: Integers,
) -> tuple[Stratum, ...]:
    bounds = [-np.inf, *edges.tolist(), np.inf]
    names = _BANDS.get(len(bounds) - 1) or tuple(f"band {i + 1}" for i in range(len(bounds) - 1))
    decisions: Sequence[Decision | None] = (Decision.OMISSION, Decision.COMMISSION) if balanced else (None,)
    strata = []
    for code in range(len(wanted)):
        band, decision = code // len(decisions), decisions[code % len(decisions)]
        name = f"{names[band]}, {_between(bounds[band], bounds[band + 1])}" + (f", {decision}" if decision else "")
        counts = int(population[code]), int(wanted[code]), int(chosen[code])
        strata.append(Stratum(name, bounds[band], bounds[band + 1], decision, *counts))
    return tuple(strata)


def _between(low: float, high: float) -> str:
    if np.isinf(low) and np.isinf(high):
        return "all scores"
    if np.isinf(low):
        return f"under {high:.2f}"
    return f"{low:.2f} and over" if np.isinf(high) else f"{low:.2f}–{high:.2f}"


def _notes(strata: Sequence[Stratum]) -> tuple[str, ...]:
    notes = [
        f"Stratum '{s.name}' has {s.n_population} candidates, fewer than the {s.n_wanted} wanted; "
        "the other strata were asked for more."
        for s in strata
        if s.n_population < s.n_wanted
    ]
    unseen = [s for s in strata if s.n_population and not s.n_chosen]
    notes += [
        f"No case was chosen from stratum '{s.name}' ({s.n_population} candidates); weighted figures leave it out."
        for s in unseen
    ]
    missing = sum(s.n_wanted for s in strata) - sum(s.n_chosen for s in strata)
    if missing:
        notes.append(f"{missing} cases fewer than wanted could be chosen: every candidate is in the study.")
    return tuple(notes)
