"""AUC weighted by inverse inclusion probability, and what it would be without each patient."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.statistics.estimate import Estimate, Floats, UsableCases, not_computable, usable_cases


def weighted_auc(y: ArrayLike, score: ArrayLike, weight: ArrayLike) -> Estimate:
    """Return the AUC of the population the cases were chosen from, by inverse inclusion probability; O(n log n).

    It is the sum of w_i w_j over pairs in the right order (ties half), over the sum of w_i w_j over all pairs. Weights
    of 1 give `auc`, whose parameters the others are.
    """
    method = "AUC weighted by inverse inclusion probability"
    cases = usable_cases(y, [score], weight=weight)
    if why := cases.why_no_auc():
        return not_computable(why, n=cases.n, left_out=cases.left_out, method=method)
    pairs = WeightedPairs.of(cases, 0)
    return Estimate(pairs.value, n=cases.n, left_out=cases.left_out, method=method)


@dataclass(frozen=True)
class WeightedPairs:
    """Weighted pair sums of one scorer, and what each patient contributes to them."""

    # `won` and `all_pairs`: sum of w_i w_j over pairs in the right order (ties half), and over all pairs.
    won: float
    all_pairs: float
    # Shape (n_patients,): AUC when a patient's cases are left out; NaN when that leaves one class.
    value_without: Floats

    @property
    def value(self) -> float:
        """The AUC; complete separation is exactly 0 or 1, whatever the order of the sums left in the last bits."""
        value = self.won / self.all_pairs
        return float(round(value)) if min(abs(value), abs(1.0 - value)) < 1e-12 else value

    @classmethod
    def of(cls, cases: UsableCases, scorer: int) -> "WeightedPairs":
        """Compute the sums; O(n log n) for all patients together, plus the pairs inside a patient."""
        y, score, weight, patient = cases.y, cases.scores[scorer], cases.weight, cases.patient
        n_patients = int(patient.max()) + 1
        below = _weight_below(score[y], score[~y], weight[~y])
        above = weight[y].sum() - _weight_below(score[~y], score[y], weight[y])
        by_case = np.empty(y.size)
        by_case[y], by_case[~y] = weight[y] * below, weight[~y] * above
        won = float(by_case[y].sum())
        positive = np.bincount(patient, np.where(y, weight, 0.0), n_patients)
        negative = np.bincount(patient, np.where(y, 0.0, weight), n_patients)
        # A pair inside one patient was taken away twice, once from each side.
        lost = np.bincount(patient, by_case, n_patients) - _won_inside(y, score, weight, patient, n_patients)
        pairs_left = (positive.sum() - positive) * (negative.sum() - negative)
        alone = np.bincount(patient, y, n_patients) == y.sum()
        alone |= np.bincount(patient, ~y, n_patients) == (~y).sum()
        without = np.full(n_patients, np.nan)
        without[~alone] = (won - lost[~alone]) / pairs_left[~alone]
        return cls(won, float(positive.sum() * negative.sum()), without)


def _weight_below(at: Floats, values: Floats, weight: Floats) -> Floats:
    """Return the weight of `values` below each entry of `at`, equal ones half."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    total = np.concatenate(([0.0], np.cumsum(weight[order])))
    left, right = np.searchsorted(ordered, at, "left"), np.searchsorted(ordered, at, "right")
    half: Floats = 0.5 * (total[left] + total[right])
    return half


def _won_inside(
    y: NDArray[np.bool_], score: Floats, weight: Floats, patient: NDArray[np.int64], n_patients: int
) -> Floats:
    """Return the weighted pairs in the right order between cases of the same patient, for all patients at once."""
    order = np.lexsort((score, patient))
    p, s, own = patient[order], score[order], y[order]
    total = np.concatenate(([0.0], np.cumsum(np.where(own, 0.0, weight[order]))))
    starts = np.flatnonzero(np.concatenate(([True], (p[1:] != p[:-1]) | (s[1:] != s[:-1]))))
    run = np.repeat(np.arange(starts.size), np.diff(np.append(starts, p.size)))
    ends = np.append(starts[1:], p.size)
    before_patient = total[np.searchsorted(p, p, side="left")]
    below = 0.5 * (total[starts[run]] + total[ends[run]]) - before_patient
    inside: Floats = np.bincount(p, np.where(own, weight[order] * below, 0.0), n_patients).astype(np.float64)
    return inside
