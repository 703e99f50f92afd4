"""How many cases a study needs before anyone is asked to read."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy import special

from core.errors import InvalidInputError
from core.statistics.estimate import normal_quantile


@dataclass(frozen=True)
class PlannedStudy:
    """What a study needs."""

    n_cases: int  # cases to choose, undecided ones included
    n_decided: int  # cases that must end with a label
    n_positive: int  # relevant cases among them
    n_judgments: int  # cases x readers
    half_width: float  # half the width of the AUC's interval that `n_decided` gives
    minutes: float | None  # reading time of all readers together
    method: str


def auc_variance(auc: float, n_positive: float, n_negative: float) -> float:
    """Return the variance of an AUC by Hanley and McNeil's formula for independent cases.

    References
    ----------
    Hanley and McNeil (1982), Radiology 143, 29-36.
    """
    q1, q2 = auc / (2.0 - auc), 2.0 * auc**2 / (1.0 + auc)
    spread = auc * (1.0 - auc) + (n_positive - 1.0) * (q1 - auc**2) + (n_negative - 1.0) * (q2 - auc**2)
    return spread / (n_positive * n_negative)


def required_cases(
    auc: float = 0.75,
    positive_share: float = 0.25,
    half_width: float = 0.07,
    *,
    level: float = 0.95,
    design_effect: float = 1.0,
    undecided_share: float = 0.05,
    n_readers: int = 3,
    minutes_per_judgment: float | None = None,
) -> PlannedStudy:
    """Find the smallest number of cases that gives the AUC's interval the wanted half width, in (0, 0.5).

    Expected are the AUC, in (0.5, 1) (mind the ceiling that disagreement sets), and the share of relevant cases among
    the chosen, in (0, 1). `design_effect` is the factor by which weights and shared patients widen the variance: 1 for
    independent cases that count the same; from a finished study (width of the weighted interval / width of the naive
    one) squared. `undecided_share`, in [0, 1), will end without a label. Raise InvalidInputError if an expectation lies
    outside its range.

    Examples
    --------
    >>> required_cases(0.75, 0.25, 0.08, undecided_share=0.0).n_cases
    224
    """
    _check(auc=(auc, 0.5, 1.0), positive_share=(positive_share, 0.0, 1.0), half_width=(half_width, 0.0, 0.5))
    if not design_effect >= 1.0 or not 0.0 <= undecided_share < 1.0 or n_readers < 1:
        raise InvalidInputError(
            f"Design effect {design_effect} must be at least 1, undecided share {undecided_share} in [0, 1), "
            f"readers {n_readers} at least 1."
        )
    quantile = normal_quantile(level)

    def reach(n: int) -> float:
        positive = n * positive_share
        return quantile * math.sqrt(design_effect * auc_variance(auc, positive, n - positive))

    fewest = math.ceil(max(2.0 / positive_share, 2.0 / (1.0 - positive_share)))
    decided = _smallest(lambda n: reach(n) <= half_width, fewest)
    n_cases = math.ceil(decided / (1.0 - undecided_share))
    minutes = None if minutes_per_judgment is None else n_cases * n_readers * minutes_per_judgment
    method = "Hanley and McNeil's variance times the design effect"
    positive = round(decided * positive_share)
    return PlannedStudy(n_cases, decided, positive, n_cases * n_readers, reach(decided), minutes, method)


def required_cases_to_compare(
    auc_a: float,
    auc_b: float,
    positive_share: float = 0.25,
    *,
    correlation: float = 0.5,
    power: float = 0.8,
    level: float = 0.95,
    design_effect: float = 1.0,
) -> int:
    """Find the smallest number of decided cases that shows a difference of two scorers with the wanted power.

    The AUCs, on the same cases, lie in (0.5, 1) and differ; the correlation of their estimates lies in [0, 1).

    References
    ----------
    Hanley and McNeil (1983), Radiology 148, 839-843.
    """
    _check(
        auc_a=(auc_a, 0.5, 1.0),
        auc_b=(auc_b, 0.5, 1.0),
        positive_share=(positive_share, 0.0, 1.0),
        correlation=(correlation, -1e-12, 1.0),
        power=(power, 0.0, 1.0),
    )
    if auc_a == auc_b:
        raise InvalidInputError(f"Both AUCs are {auc_a}: no number of cases shows a difference that is not there.")
    both = normal_quantile(level) + float(special.ndtri(power))

    def shown(n: int) -> bool:
        positive = n * positive_share
        va, vb = (auc_variance(a, positive, n - positive) for a in (auc_a, auc_b))
        variance = design_effect * (va + vb - 2.0 * correlation * math.sqrt(va * vb))
        return both * math.sqrt(variance) <= abs(auc_a - auc_b)

    return _smallest(shown, math.ceil(max(2.0 / positive_share, 2.0 / (1.0 - positive_share))))


def _check(**ranges: tuple[float, float, float]) -> None:
    for name, (value, low, high) in ranges.items():
        if not low < value < high:
            raise InvalidInputError(f"'{name}' is {value}; it must lie between {max(low, 0.0):g} and {high:g}.")


def _smallest(holds: Callable[[int], bool], start: int) -> int:
    """Return the smallest n >= start for which `holds`; it holds for all larger ones too."""
    high = start
    while not holds(high):
        high *= 2
    low = max(start, high // 2)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return high
