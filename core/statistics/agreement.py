"""How far readers agree: raw agreement, Fleiss kappa, Krippendorff alpha, Gwet AC1 and Cohen kappa, with intervals.

Votes come as a matrix with one row for each case and one column for each reader; NaN is no vote. An answer that is no
vote, such as "cannot judge", is masked before (`core.statistics.consensus.votes_of`). Cases with fewer than two votes
carry no information on agreement and are counted as left out. Every coefficient may be "not computable", and then says
why; kappa and its kin fall towards zero when nearly all cases get the same answer, so none of them is shown without raw
agreement.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import InvalidInputError
from core.statistics.estimate import (
    ONE_PATIENT,
    Estimate,
    check_level,
    normal_quantile,
    not_computable,
    t_quantile,
    wilson_interval,
)

Floats = NDArray[np.float64]

ONE_CATEGORY = "one category only"
ALL_ALIKE = "interval not computable: all cases agree equally"
NO_SPREAD = 1e-12
"""A smaller standard error is none: it comes from rounding, and an interval without width would claim to be exact."""


@dataclass(frozen=True)
class _Counts:
    """How often each case got each answer, for cases with at least two votes."""

    table: Floats  # shape (n_cases, n_categories)
    # Shape (n_categories,): votes on cases with exactly one vote: they say how common an answer is, not how far readers
    # agree.
    single: Floats
    n_single: int  # cases with exactly one vote
    cluster: NDArray[np.int64]  # shape (n_cases,): codes of the patients, 0 .. n_patients - 1
    left_out: dict[str, int]

    @property
    def n(self) -> int:
        return int(self.table.shape[0])

    def why_nothing(self, n_readers: int) -> str:
        """Return why no agreement can be computed; empty if it can."""
        if n_readers < 2:
            return "one reader only" if n_readers == 1 else "no votes"
        return "" if self.n else "no case has two votes"


def _counts(votes: ArrayLike, patient: ArrayLike | None) -> tuple[_Counts, int]:
    """Count answers; also the number of readers who voted at all."""
    matrix = np.asarray(votes, dtype=np.float64)
    if matrix.ndim != 2:
        raise InvalidInputError(f"Votes have {matrix.ndim} dimensions; give a row per case and a column per reader.")
    clusters = np.arange(matrix.shape[0]) if patient is None else np.asarray(patient)
    if clusters.shape != (matrix.shape[0],):
        raise InvalidInputError(
            f"'patient' has shape {clusters.shape}; give one entry for each of {len(matrix)} cases."
        )
    given = ~np.isnan(matrix)
    categories = np.unique(matrix[given])
    table = (
        np.stack([(matrix == c).sum(axis=1) for c in categories], axis=1)
        if categories.size
        else np.zeros((len(matrix), 0))
    )
    per_case = given.sum(axis=1)
    kept = per_case >= 2
    left_out = {"no vote": int((per_case == 0).sum()), "one vote only": int((per_case == 1).sum())}
    codes = np.unique(clusters[kept], return_inverse=True)[1].astype(np.int64)
    single = table[per_case == 1].sum(axis=0).astype(np.float64)
    counts = _Counts(
        table[kept].astype(np.float64),
        single,
        left_out["one vote only"],
        codes,
        {k: v for k, v in left_out.items() if v},
    )
    return counts, int(given.any(axis=0).sum())


def raw_agreement(votes: ArrayLike, *, patient: ArrayLike | None = None, level: float = 0.95) -> Estimate:
    """Return the share of pairs of votes on the same case that are equal, averaged over cases.

    Votes, of shape (n_cases, n_readers), are answer codes; NaN where there is no vote. The interval comes from the
    spread between units, cases or patients where given, with Student's t; Wilson's when all cases agree equally.

    Examples
    --------
    >>> raw_agreement([[1, 1, 1], [1, 1, 3]]).value
    0.6666666666666666
    """
    method = "share of equal pairs of votes, averaged over cases"
    check_level(level)
    counts, n_readers = _counts(votes, patient)
    if why := counts.why_nothing(n_readers):
        return not_computable(why, n=counts.n, left_out=counts.left_out, level=level, method=method)
    per_case = _agreeing(counts.table)
    return _with_spread(float(per_case.mean()), per_case, counts, level, method, share=True)


def _agreeing(table: Floats) -> Floats:
    votes = table.sum(axis=1)
    share: Floats = (table * (table - 1.0)).sum(axis=1) / (votes * (votes - 1.0))
    return share


def fleiss_kappa(votes: ArrayLike, *, patient: ArrayLike | None = None, level: float = 0.95) -> Estimate:
    """Return Fleiss' kappa, generalised to cases with different numbers of votes; parameters as in `raw_agreement`.

    Interval by the linearised per-case contributions (Gwet 2014), Student's t with units - 1 degrees of freedom.

    References
    ----------
    Fleiss (1971), Psychological Bulletin 76, 378-382; Gwet (2014), Handbook of Inter-Rater Reliability, 4th edition.
    """

    def chance(shares: Floats, per_case: Floats) -> tuple[float, Floats]:
        return float(np.sum(shares**2)), per_case @ shares

    return _chance_corrected(votes, patient, level, chance, "Fleiss kappa; interval by linearised variance")


def gwet_ac1(
    votes: ArrayLike, *, n_categories: int | None = None, patient: ArrayLike | None = None, level: float = 0.95
) -> Estimate:
    """Return Gwet's AC1, whose chance agreement falls when nearly all cases get the same answer.

    Parameters as in `raw_agreement`; there are as many answers to choose from as occur unless told otherwise. Interval
    as in `fleiss_kappa`.

    References
    ----------
    Gwet (2008), British Journal of Mathematical and Statistical Psychology 61, 29-48.
    """

    def chance(shares: Floats, per_case: Floats) -> tuple[float, Floats]:
        scale = 1.0 / max((n_categories or shares.size) - 1, shares.size - 1)
        return float(scale * np.sum(shares * (1.0 - shares))), scale * (per_case @ (1.0 - shares))

    return _chance_corrected(votes, patient, level, chance, "Gwet AC1; interval by linearised variance")


def _chance_corrected(
    votes: ArrayLike,
    patient: ArrayLike | None,
    level: float,
    chance: Callable[[Floats, Floats], tuple[float, Floats]],
    method: str,
) -> Estimate:
    """Return (agreement - chance) / (1 - chance) with the variance of its linearised per-case contributions."""
    check_level(level)
    counts, n_readers = _counts(votes, patient)
    why = counts.why_nothing(n_readers)
    if not why and int((counts.table.sum(axis=0) + counts.single > 0).sum()) < 2:
        why = ONE_CATEGORY
    if why:
        return not_computable(why, n=counts.n, left_out=counts.left_out, level=level, method=method)
    n_voted = counts.n + counts.n_single
    per_case = counts.table / counts.table.sum(axis=1, keepdims=True)
    shares = (per_case.sum(axis=0) + counts.single) / n_voted
    agreeing = _agreeing(counts.table)
    expected, expected_per_case = chance(shares, per_case)
    value = (float(agreeing.mean()) - expected) / (1.0 - expected)
    linear = (agreeing - expected) / (1.0 - expected)
    linear = linear - 2.0 * (1.0 - value) * (expected_per_case - expected) / (1.0 - expected)
    return _with_spread(value, linear, counts, level, method)


def _with_spread(
    value: float, per_case: Floats, counts: _Counts, level: float, method: str, *, share: bool = False
) -> Estimate:
    """Return the interval from the spread of per-case contributions, summed over the cases of a patient."""
    found = Estimate(value, None, None, level, counts.n, counts.left_out, "", method)
    n_units = int(counts.cluster.max()) + 1
    if n_units < 2:
        return replace(found, reason=ONE_PATIENT)
    deviations = np.bincount(counts.cluster, per_case - per_case.mean(), n_units)
    error = float(np.sqrt(n_units / (n_units - 1.0) * np.sum(deviations**2))) / counts.n
    reach = t_quantile(level, n_units - 1) * error
    low, high = max(0.0 if share else -1.0, value - reach), min(1.0, value + reach)
    if error < NO_SPREAD:
        if not share:
            return replace(found, reason=ALL_ALIKE)
        low, high = wilson_interval(value, n_units, normal_quantile(level))
    return replace(found, low=low, high=high)


def krippendorff_alpha(votes: ArrayLike, *, patient: ArrayLike | None = None, level: float = 0.95) -> Estimate:
    """Return Krippendorff's alpha for unordered answers; cases may have different numbers of votes.

    Parameters as in `raw_agreement`. Interval by leaving out one unit (case or patient) at a time, Student's t.

    References
    ----------
    Krippendorff (2011), Computing Krippendorff's alpha-reliability.
    """
    method = "Krippendorff alpha, nominal; interval by leaving out one unit at a time"
    check_level(level)
    counts, n_readers = _counts(votes, patient)
    why = counts.why_nothing(n_readers)
    if not why and int((counts.table.sum(axis=0) > 0).sum()) < 2:
        why = ONE_CATEGORY
    if why:
        return not_computable(why, n=counts.n, left_out=counts.left_out, level=level, method=method)
    per_case = counts.table.sum(axis=1)
    equal = (counts.table * (counts.table - 1.0)).sum(axis=1) / (per_case - 1.0)
    value = float(_alpha(equal.sum(), counts.table.sum(axis=0)))
    n_units = int(counts.cluster.max()) + 1
    unit_equal = np.bincount(counts.cluster, equal, n_units)
    unit_table = np.zeros((n_units, counts.table.shape[1]))
    np.add.at(unit_table, counts.cluster, counts.table)
    without = _alpha(equal.sum() - unit_equal, counts.table.sum(axis=0) - unit_table)
    return _jackknifed(np.append(value, without), -1.0, level, counts.n, counts.left_out, method)


def _alpha(equal: Floats, totals: Floats) -> Floats:
    """Return alpha from the sum of coincidences on the diagonal and the votes for each answer."""
    n_votes = totals.sum(axis=-1)
    chance = (totals * (totals - 1.0)).sum(axis=-1)
    possible = n_votes * (n_votes - 1.0) - chance
    safe = np.where(possible > 0.0, possible, 1.0)
    alpha: Floats = np.where(possible > 0.0, ((n_votes - 1.0) * equal - chance) / safe, np.nan)
    return alpha


def cohen_kappa(
    first: ArrayLike, second: ArrayLike, *, patient: ArrayLike | None = None, level: float = 0.95
) -> Estimate:
    """Return Cohen's kappa of two readers on the cases both voted on, answer codes with NaN where there is no vote.

    The large-sample interval is that of Fleiss, Cohen and Everitt (1969); there is none where all cases come from one
    patient.
    """
    method = "Cohen kappa; large-sample interval"
    quantile = normal_quantile(level)
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1:
        raise InvalidInputError(f"Votes of the two readers have shapes {a.shape} and {b.shape}; give one per case.")
    both = ~(np.isnan(a) | np.isnan(b))
    left_out = {"not voted on by both": int((~both).sum())} if not both.all() else {}
    categories = np.unique(np.concatenate([a[both], b[both]]))
    if categories.size < 2:
        why = "no case has votes of both" if not both.any() else ONE_CATEGORY
        return not_computable(why, n=int(both.sum()), left_out=left_out, level=level, method=method)
    table = np.zeros((categories.size, categories.size))
    np.add.at(table, (np.searchsorted(categories, a[both]), np.searchsorted(categories, b[both])), 1.0)
    value, error = _cohen(table)
    kappa = Estimate(value, None, None, level, int(both.sum()), left_out, "", method)
    if error == 0.0:
        return replace(kappa, reason="interval not computable: no spread between cases")
    if patient is not None and np.unique(np.asarray(patient)[both]).size < 2:
        return replace(kappa, reason=ONE_PATIENT)
    reach = quantile * error
    return replace(kappa, low=max(-1.0, value - reach), high=min(1.0, value + reach))


def _cohen(table: Floats) -> tuple[float, float]:
    """Return Cohen's kappa of a table of two readers' answers, and its standard error."""
    shares = table / table.sum()
    of_first, of_second, equal = shares.sum(axis=1), shares.sum(axis=0), np.diag(shares)
    chance = float(of_first @ of_second)
    kappa = (float(np.trace(table) / table.sum()) - chance) / (1.0 - chance)
    both = of_second[:, None] + of_first[None, :]
    unequal = shares * both**2
    variance = (
        float((equal * (1.0 - np.diag(both) * (1.0 - kappa)) ** 2).sum())
        + (1.0 - kappa) ** 2 * float(unequal.sum() - np.trace(unequal))
        - (kappa - chance * (1.0 - kappa)) ** 2
    )
    error = float(np.sqrt(variance / table.sum()) / (1.0 - chance)) if variance > NO_SPREAD else 0.0
    return kappa, error


def weighted_agreement(
    votes: ArrayLike, weight: ArrayLike, *, n_categories: int, patient: ArrayLike | None = None, level: float = 0.95
) -> tuple[Estimate, Estimate, Estimate]:
    """Return raw agreement, Fleiss' kappa and Gwet's AC1 as they would be on all candidates.

    Weights are inverse inclusion probabilities. The coefficients have weighted means of cases in the place of means;
    intervals leave out one patient at a time, with Student's t, or are Wilson's for raw agreement when all cases agree
    equally. Votes, of shape (n_cases, n_readers), are answer codes out of `n_categories`, NaN where there is no vote;
    cases with fewer than two votes or without a weight are left out.
    """
    check_level(level)
    matrix, weights = np.asarray(votes, dtype=np.float64), np.asarray(weight, dtype=np.float64)
    given = (~np.isnan(matrix)).sum(axis=1)
    kept = (given >= 2) & np.isfinite(weights) & (weights > 0.0)
    left_out = {"fewer than two votes, or no weight": int((~kept).sum())} if not kept.all() else {}
    codes = np.arange(kept.sum()) if patient is None else np.unique(np.asarray(patient)[kept], return_inverse=True)[1]
    names = ("share of equal pairs of votes", "Fleiss kappa", "Gwet AC1")
    methods = [f"{name}, weighted to all candidates; interval by leaving out one patient at a time" for name in names]
    n = int(kept.sum())
    if n == 0:
        why = "no case has two votes and a weight"
        missing = [not_computable(why, left_out=left_out, level=level, method=method) for method in methods]
        return missing[0], missing[1], missing[2]
    own, r, w = matrix[kept], given[kept], weights[kept]
    categories = np.unique(own[~np.isnan(own)])
    counts = np.stack([(own == code).sum(axis=1) for code in categories], axis=1).astype(np.float64)
    agreeing = (counts * (counts - 1.0)).sum(axis=1) / (r * (r - 1.0))
    per_case = np.column_stack((np.ones(n), agreeing, counts / r[:, None])) * w[:, None]
    by_patient = np.zeros((int(codes.max()) + 1, per_case.shape[1]))
    np.add.at(by_patient, codes, per_case)
    total = by_patient.sum(axis=0)
    rows = np.vstack((total, total - by_patient)) if len(by_patient) > 1 else total[None]
    mean = rows[:, 1:] / rows[:, :1]
    observed, shares = mean[:, 0], mean[:, 1:]
    kappa_chance = (shares**2).sum(axis=1)
    ac1_chance = (shares * (1.0 - shares)).sum(axis=1) / (n_categories - 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = [observed, *((observed - chance) / (1.0 - chance) for chance in (kappa_chance, ac1_chance))]
    raw, kappa, ac1 = (
        _jackknifed(values, lowest, level, n, left_out, method)
        for values, method, lowest in zip(found, methods, (0.0, -1.0, -1.0), strict=True)
    )
    if categories.size < 2:
        kappa, ac1 = (
            not_computable(ONE_CATEGORY, n=n, left_out=left_out, level=level, method=method) for method in methods[1:]
        )
    if raw.reason == ALL_ALIKE:
        effective = min(float(w.sum() ** 2 / np.sum(w**2)), float(len(by_patient)))
        low, high = wilson_interval(float(observed[0]), effective, normal_quantile(level))
        raw = replace(raw, low=low, high=high, reason="")
    return raw, kappa, ac1


def _jackknifed(values: Floats, lowest: float, level: float, n: int, left_out: dict[str, int], method: str) -> Estimate:
    """Return an estimate from the value of all units, cases or patients, and then those without each of them."""
    value, without, size = float(values[0]), values[1:], values.size - 1
    found = Estimate(value, None, None, level, n, left_out, "", method)
    if size < 2:
        return replace(found, reason=ONE_PATIENT)
    if not np.isfinite(without).all():
        return replace(found, reason="interval not computable: without one of the units there is one category only")
    error = float(np.sqrt((size - 1) / size * np.sum((without - without.mean()) ** 2)))
    if error < NO_SPREAD:
        return replace(found, reason=ALL_ALIKE)
    reach = t_quantile(level, size - 1) * error
    return replace(found, low=max(lowest, value - reach), high=min(1.0, value + reach))
