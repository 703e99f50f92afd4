"""Intervals for all candidates of a run by a stratified Bayesian bootstrap over patients.

Cases are chosen by strata of the score. A low stratum holds most candidates and few or no positive cases, so an
interval that only looks at how judged cases vary sees no variance where it saw no positive. Here every stratum also
carries a few pseudo-cases of both classes: what the unjudged candidates could hide.

Each draw gives every patient a weight v from Gamma(1, 1), and a case of a stratum of which the share f is judged
1 + sqrt(1 - f) (v - 1); puts one pseudo-case of each class, of weight (1 - f) Gamma(c, 1), at a judged case of each
stratum chosen at random; and scales the weights of the stratum to the number of its candidates. Where all candidates of
all strata are judged, figures of the run are exact: f is then 0, and the interval is that of other runs like it.

Where the cases of a stratum had unequal chances to be chosen, each also counts as its weight over their mean. Where the
chances differ twice and more, the stratum is first divided by them: few cases of small chance stand for many
candidates, and what these could hide needs pseudo-cases of its own.

A figure computed from these weights is one draw of the figure that the panel's labels would give on all candidates. All
figures of a labelling share the draws.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import special

from core.errors import InvalidInputError
from core.statistics.estimate import Floats, normal_quantile, t_quantile

N_DRAWS = 600
PSEUDO_CASES = (0.1, 0.5)
"""Pseudo-cases of each class in a stratum: an interval spans the limits that both numbers give.

The smaller one holds where hardly any candidate is positive, the larger one where one positive case is seen.
"""
PSEUDO_CASES_OF_AUC = (0.1, 0.25)
"""The same for one AUC, which half a pseudo-case of each class in every stratum draws to one half."""
FEW = 2.0, 4.0
"""Effective numbers of patients up to which the larger number of pseudo-cases would outweigh the cases seen."""
APART = 2.0
"""Weights of one stratum differ less than this many times; otherwise it is divided."""
CACHED = 40_000
"""Weights of a class that are drawn at a time: half a megabyte, with those of the other class, is fast to go over."""
_NUMBERS = sorted({*PSEUDO_CASES, *PSEUDO_CASES_OF_AUC})
Statistic = Callable[[Floats, Floats], Floats]
"""From weights of the positive and the negative class, both of shape (n_draws, n), to draws of a figure."""


def pseudo_cases_of_auc(n_effective: float) -> tuple[float, ...]:
    """Return the pseudo-cases for one AUC that rests on this effective number of patients with the rarer class."""
    return PSEUDO_CASES_OF_AUC if n_effective > FEW[1] else PSEUDO_CASES_OF_AUC[:1]


def pseudo_cases_of_difference(n_effective: float) -> tuple[float, ...]:
    """Return the same for a difference of two AUCs, which pseudo-cases do not draw to one side."""
    if n_effective > FEW[1]:
        return PSEUDO_CASES
    return PSEUDO_CASES_OF_AUC if n_effective > FEW[0] else PSEUDO_CASES[:1]


class CandidateDraws:
    """Weights of the judged cases that stand for all candidates, drawn again and again.

    Of the inverse inclusion probabilities only how they differ inside a stratum counts; `size` has the candidates of
    each stratum. Raise InvalidInputError if a case has a stratum without a size.
    """

    def __init__(
        self,
        positive: NDArray[np.bool_],
        patient: NDArray[np.int64],
        stratum: NDArray[np.int64],
        size: Floats,
        weight: Floats,
        seed: int = 0,
        n_draws: int = N_DRAWS,
    ) -> None:
        if stratum.size and not (stratum.min() >= 0 and stratum.max() < size.size):
            raise InvalidInputError(f"A case has stratum {stratum.max()}, but there are {size.size} stratum sizes.")
        stratum, size = _divided_by_chance(weight, stratum, size)
        self._positive, self._stratum, self._size = positive, stratum, size
        self._patient = np.unique(patient, return_inverse=True)[1]
        self.n_patients = int(self._patient.max()) + 1 if self._patient.size else 0
        rng = np.random.default_rng(seed)
        self._relative = _over_mean_of_stratum(weight, stratum, size.size)
        by_patient = rng.standard_gamma(1.0, (n_draws, self.n_patients))[:, self._patient]
        shape = (2, n_draws, size.size)
        unjudged = _share_unjudged(np.bincount(stratum, minlength=size.size), size)
        self._by_patient = (1.0 + np.sqrt(unjudged)[stratum] * (by_patient - 1.0)) * self._relative
        self._places = rng.random(shape)
        # A sum of gamma weights is a gamma weight: a larger number of pseudo-cases adds to the draws of a smaller one.
        steps = [rng.standard_gamma(more, shape) for more in np.diff((0.0, *_NUMBERS))]
        self._pseudo = dict(zip(_NUMBERS, np.cumsum(steps, axis=0) * unjudged, strict=True))
        self._every = _sums_by_stratum(self._by_patient, stratum, size.size)

    def n_effective(self, inside: NDArray[np.bool_]) -> float:
        """Return the effective number of patients with cases of the rarer class, by Kish; 0 without one of the classes.

        `inside` are the cases that a figure is about.
        """
        counts = np.bincount(self._stratum, minlength=self._size.size)[self._stratum]
        weight = np.where(inside, self._size[self._stratum] / counts * self._relative, 0.0)
        found = []
        for of in (self._positive, ~self._positive):
            by_patient = np.bincount(self._patient, weight * of)
            found.append(by_patient.sum() ** 2 / max(float(by_patient @ by_patient), 1e-300))
        # Rounded, so that the order of the rows does not decide on which side of a bound two equal weights lie.
        return round(float(min(found)), 6)

    def interval(
        self,
        statistic: Statistic,
        level: float,
        rows: NDArray[np.int64],
        *,
        order_by: Sequence[Floats] = (),
        is_share: bool = True,
        pseudo_cases: Sequence[float] = PSEUDO_CASES,
    ) -> tuple[float, float]:
        """Return low and high end of the interval of a figure, which is handed the weights of the cases `rows`.

        The scores `order_by` that it is about order the cases at which pseudo-cases are put, so that the order of the
        rows changes nothing. A share lies in [0, 1], its interval is taken on the logit scale; other figures lie in
        [-1, 1]. Pseudo-cases are some of `PSEUDO_CASES` and `PSEUDO_CASES_OF_AUC`.
        """
        n_patients = np.unique(self._patient[rows]).size
        drawn = self._drawn(statistic, rows, order_by, pseudo_cases)
        return _widest(drawn, n_patients, level, is_share=is_share)

    def interval_between(
        self,
        statistics: tuple[Statistic, Statistic],
        level: float,
        inside: tuple[NDArray[np.bool_], NDArray[np.bool_]],
        *,
        order_by: Sequence[Floats],
        pseudo_cases: Sequence[float],
    ) -> tuple[float, float]:
        """Return the interval of a figure of one group of cases less that of another group; otherwise as `interval`.

        Patients weigh the same in both groups. Pseudo-cases stand in both, as for the figure of one group alone: those
        of a whole stratum would seldom stand in a small group. The group with fewer patients sets Student's t.
        """
        drawn, n_patients = [], []
        for statistic, own, turned in zip(statistics, inside, (False, True), strict=True):
            rows = np.flatnonzero(own)
            drawn.append(self._drawn(statistic, rows, order_by, pseudo_cases, turned=turned))
            n_patients.append(np.unique(self._patient[rows]).size)
        apart = [first - other for first, other in zip(*drawn, strict=True)]
        return _widest(apart, min(n_patients), level, is_share=False)

    def _drawn(
        self,
        statistic: Statistic,
        rows: NDArray[np.int64],
        order_by: Sequence[Floats],
        pseudo_cases: Sequence[float],
        *,
        turned: bool = False,
    ) -> list[Floats]:
        """Return the draws of a figure for each number of pseudo-cases, as many at a time as a cache holds.

        Pseudo-cases that are turned are those of the last draw in the first, and so on: independent of the others.
        """
        by_stratum = np.lexsort((*(score[rows] for score in order_by[::-1]), self._stratum[rows]))
        step = max(1, CACHED // max(rows.size, 1))
        parts = []
        for first in range(0, len(self._by_patient), step):
            weights = self._weights(rows, by_stratum, pseudo_cases, slice(first, first + step), turned=turned)
            parts.append([statistic(*classes) for classes in weights])
        return [np.concatenate(drawn) for drawn in zip(*parts, strict=True)]

    def _weights(
        self,
        rows: NDArray[np.int64],
        by_stratum: NDArray[np.int64],
        pseudo_cases: Sequence[float] = PSEUDO_CASES,
        draws: slice = slice(None),
        *,
        turned: bool = False,
    ) -> list[tuple[Floats, Floats]]:
        """Return the weights of both classes, of shape (n_draws, n), for each number of pseudo-cases."""
        n_strata, stratum = self._size.size, self._stratum[rows]
        counts = np.bincount(stratum, minlength=n_strata)
        there = np.flatnonzero(counts)
        first = (np.cumsum(counts) - counts)[there]
        weight, positive, found = np.take(self._by_patient[draws], rows, axis=1), self._positive[rows], []
        draw, step = np.arange(len(weight))[:, None], slice(None, None, -1 if turned else 1)
        # The judged case at which the pseudo-cases of a class and stratum stand, in each draw.
        places = [
            by_stratum[first + np.floor(u[:, there] * counts[there]).astype(np.int64)]
            for u in self._places[:, step][:, draws]
        ]
        for pseudo in (self._pseudo[number][:, step][:, draws] for number in pseudo_cases):
            total = self._every[draws].copy()
            total[:, there] += pseudo.sum(axis=0)[:, there]
            scale = np.divide(self._size, total, out=np.zeros_like(total), where=total > 0.0)
            real = weight * np.take(scale, stratum, axis=1)
            classes = []
            for of, place, mass in zip((positive, ~positive), places, pseudo, strict=True):
                weights = real * of
                weights[draw, place] = (weight[draw, place] * of[place] + mass[:, there]) * scale[:, there]
                classes.append(weights)
            found.append((classes[0], classes[1]))
        return found


def _share_unjudged(n_judged: NDArray[np.int64], size: Floats) -> Floats:
    """Return the share of each stratum that is not judged; 1 everywhere if all candidates of all strata are."""
    if (n_judged >= size).all():
        return np.ones_like(size)
    share: Floats = 1.0 - np.minimum(n_judged / np.maximum(size, 1e-300), 1.0)
    return share


def _divided_by_chance(weight: Floats, stratum: NDArray[np.int64], size: Floats) -> tuple[NDArray[np.int64], Floats]:
    """Divide strata whose weights differ `APART` times or more, by powers of it from the smallest weight.

    Weights and strata have shape (n,), sizes (n_strata,). Return the strata with the parts after them, and their sizes:
    a part has as many of the candidates as of the stratum's weight (Horvitz and Thompson), at least its cases.
    """
    divided, sizes = stratum.copy(), list(size)
    for h in range(size.size):
        rows = np.flatnonzero(stratum == h)
        if not rows.size:
            continue
        # Weights that differ by rounding are equal, wherever a bound lies.
        part = np.floor(np.log(weight[rows] / weight[rows].min() * (1.0 + 1e-9)) / math.log(APART))
        total = math.fsum(weight[rows].tolist())
        for later in np.unique(part)[1:]:
            own = rows[part == later]
            share = math.fsum(weight[own].tolist()) / total
            sizes[h] -= size[h] * share
            divided[own] = len(sizes)
            sizes.append(max(size[h] * share, float(own.size)))
        sizes[h] = max(sizes[h], float((part == 0).sum()))
    return divided, np.array(sizes)


def _over_mean_of_stratum(weight: Floats, stratum: NDArray[np.int64], n_strata: int) -> Floats:
    """Return each weight over the mean of its stratum, exactly 1 where those of the stratum are equal."""
    relative = np.ones_like(weight)
    for h in range(n_strata):
        own = weight[stratum == h]
        if own.size and own.min() < own.max():
            # An exact sum, so that the order of the rows changes nothing.
            relative[stratum == h] = own * own.size / math.fsum(own.tolist())
    return relative


def _widest(draws: Sequence[Floats], n_patients: int, level: float, *, is_share: bool) -> tuple[float, float]:
    """Return the interval that spans the limits of all draws, each for one number of pseudo-cases."""
    ends = [limits(values[np.isfinite(values)], n_patients, level, is_share=is_share) for values in draws]
    return min(low for low, _ in ends), max(high for _, high in ends)


def _sums_by_stratum(weights: Floats, stratum: NDArray[np.int64], n_strata: int) -> Floats:
    """Return sums of weights by stratum, of shape (n_draws, n_strata)."""
    sums: Floats = weights @ (stratum[:, None] == np.arange(n_strata)).astype(np.float64)
    return sums


def limits(values: Floats, n_patients: int, level: float, *, is_share: bool) -> tuple[float, float]:
    """Return the interval of draws, widened as Student's t is for few patients."""
    if is_share:
        values = special.logit(np.clip(values, 1e-12, 1.0 - 1e-12))
    low, middle, high = np.quantile(values, [0.5 - level / 2.0, 0.5, 0.5 + level / 2.0])
    wider = t_quantile(level, n_patients - 1) / normal_quantile(level)
    low, high = middle - wider * (middle - low), middle + wider * (high - middle)
    if is_share:
        return float(special.expit(low)), float(special.expit(high))
    return max(-1.0, float(low)), min(1.0, float(high))


def auc_of(score: Floats) -> Statistic:
    """Return the AUC of a score (higher = more unusual, ties half) as a statistic of the weights of its cases."""
    order = np.argsort(score, kind="stable")
    is_ordered, ordered = bool((order == np.arange(order.size)).all()), score[order]
    below, up_to = np.searchsorted(ordered, ordered, "left"), np.searchsorted(ordered, ordered, "right")
    has_ties = bool((up_to - below > 1).any())

    def statistic(positive: Floats, negative: Floats) -> Floats:
        if not is_ordered:
            positive, negative = np.take(positive, order, axis=1), np.take(negative, order, axis=1)
        lower = np.zeros((len(negative), order.size + 1))
        np.cumsum(negative, axis=1, out=lower[:, 1:])
        twice = (
            np.take(lower, below, axis=1) + np.take(lower, up_to, axis=1) if has_ties else lower[:, :-1] + lower[:, 1:]
        )
        won = np.einsum("ij,ij->i", positive, twice)
        value: Floats = 0.5 * won / (positive.sum(axis=1) * lower[:, -1])
        return value

    return statistic


def share_positive(positive: Floats, negative: Floats) -> Floats:
    """Return the share of the positive class among the candidates."""
    total = positive.sum(axis=1)
    value: Floats = total / (total + negative.sum(axis=1))
    return value
