"""Figures that the labels of a panel would give on all candidates of a run; one set of draws for each labelling."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

from core.statistics.auc import PairedTest
from core.statistics.bayesian_bootstrap import (
    N_DRAWS,
    PSEUDO_CASES,
    PSEUDO_CASES_OF_AUC,
    CandidateDraws,
    Statistic,
    auc_of,
    pseudo_cases_of_auc,
    pseudo_cases_of_difference,
    share_positive,
)
from core.statistics.estimate import (
    ONE_PATIENT,
    Estimate,
    Floats,
    UsableCases,
    not_computable,
    t_quantile,
    usable_cases,
)
from core.statistics.weighted_auc import weighted_auc

Mask = NDArray[np.bool_]
INTERVAL = (
    "interval by a stratified Bayesian bootstrap over patients with {} pseudo-cases of each class in every stratum"
)
EXACT = 1e-9
"""A narrower interval has no width: all candidates that the figure is about are judged; draws differ by rounding."""
ONE_PATIENT_OF_GROUP = "interval not computable: all cases of the group, or all others, come from one patient"


class CandidateFigures:
    """Weighted figures of one labelling of chosen cases: 1 positive, 0 negative, NaN undetermined.

    A weight is an inverse inclusion probability; NaN leaves a case out. `size` has the candidates of each stratum.
    """

    def __init__(
        self,
        y: Floats,
        weight: Floats,
        patient: NDArray[np.int64],
        stratum: NDArray[np.int64],
        size: Floats,
        level: float,
        seed: int = 0,
        n_draws: int = N_DRAWS,
    ) -> None:
        self._y, self._weight, self._patient = y, weight, patient
        self._stratum, self._size, self._level = stratum, size, level
        self._seed, self._n_draws = seed, n_draws
        self._labelled = np.flatnonzero(~np.isnan(y) & np.isfinite(weight))

    def auc(self, score: Floats, inside: Mask | None = None) -> Estimate:
        """Return the AUC of a score on the candidates, or on those of a subgroup."""
        method = f"AUC weighted by inverse inclusion probability; {INTERVAL} (logit, t)"
        rows = np.ones(score.size, dtype=bool) if inside is None else inside
        used = rows & np.isfinite(score)
        cases, value, why = self._auc(score, rows)
        if value is None:
            return self._missing(why, cases, method, PSEUDO_CASES_OF_AUC)
        pseudo_cases: Sequence[float] = PSEUDO_CASES_OF_AUC
        if inside is None:
            pseudo_cases = pseudo_cases_of_auc(self._draws.n_effective(used[self._labelled]))
        order = np.argsort(score[self._labelled], kind="stable")
        ordered = order[used[self._labelled][order]]
        statistic = auc_of(score[self._labelled[ordered]])
        return self._with_interval(value, statistic, ordered, cases, method, (score,), pseudo_cases=pseudo_cases)

    def _auc(self, score: Floats, rows: Mask) -> tuple[UsableCases, float | None, str]:
        """Return the usable cases among some, and the AUC of a score on them, or None and why there is none."""
        cases = self._usable(rows, score)
        if why := cases.why_no_auc() or cases.why_no_order():
            return cases, None, why
        return cases, weighted_auc(cases.y, cases.scores[0], cases.weight).value or 0.0, ""

    def difference(self, first: Floats, other: Floats) -> PairedTest:
        """Return the AUC of the first score less that of the other on the cases that have both."""
        method = f"difference of weighted AUCs on the same cases; {INTERVAL} (t)"
        used = np.isfinite(first) & np.isfinite(other)
        cases = self._usable(np.ones_like(used), first, other)
        if why := cases.why_no_auc() or cases.why_no_order():
            return PairedTest(self._missing(why, cases, method), None, None)
        a, b = (weighted_auc(cases.y, score, cases.weight).value or 0.0 for score in cases.scores)
        apart = 0.0 if abs(a - b) < 1e-12 else a - b
        rows = self._labelled[used[self._labelled]]
        auc_a, auc_b = auc_of(first[rows]), auc_of(other[rows])

        def statistic(positive: Floats, negative: Floats) -> Floats:
            return auc_a(positive, negative) - auc_b(positive, negative)

        pseudo_cases = pseudo_cases_of_difference(self._draws.n_effective(used[self._labelled]))
        found = self._with_interval(
            apart, statistic, self._of(used), cases, method, (first, other), is_share=False, pseudo_cases=pseudo_cases
        )
        return self._tested(found, int(cases.patient.max()))

    def share(self, inside: Mask | None = None) -> Estimate:
        """Return the share of positive candidates, of all or of a subgroup."""
        rows = np.ones(self._y.size, dtype=bool) if inside is None else inside
        method = f"weighted share of positive cases; {INTERVAL} (logit, t)"
        cases = self._usable(rows)
        if cases.n == 0:
            return self._missing("no labelled case", cases, method)
        # Sums that round alike, so that a share of all is 1 exactly.
        value = float((cases.weight * cases.y).sum() / cases.weight.sum())
        return self._with_interval(value, share_positive, self._of(rows), cases, method)

    def operating_point(self, score: Floats, threshold: float) -> dict[str, Estimate]:
        """Return sensitivity, specificity and negative predictive value of showing all candidates from a score on.

        The positive predictive value is the share of positive candidates among those shown, see `share`.
        """
        rows = np.isfinite(score)
        cases = self._usable(np.ones_like(rows), score)
        used = score[self._labelled[rows[self._labelled]]] >= threshold
        shown, y, weight = cases.scores[0] >= threshold, cases.y, cases.weight
        parts: dict[str, tuple[Mask, Mask, str]] = {
            "sensitivity": (y & shown, y, "no case is relevant"),
            "specificity": (~y & ~shown, ~y, "every case is relevant"),
            "negative_value": (~y & ~shown, ~shown, "every decided case is shown"),
        }
        statistics: dict[str, Statistic] = {
            "sensitivity": lambda p, n: p[:, used].sum(axis=1) / p.sum(axis=1),
            "specificity": lambda p, n: n[:, ~used].sum(axis=1) / n.sum(axis=1),
            "negative_value": lambda p, n: _ratio(n[:, ~used], p[:, ~used]),
        }
        found = {}
        for name, (hit, of, why) in parts.items():
            method = f"weighted {name.replace('_', ' ')}; {INTERVAL} (logit, t)"
            if why := "no labelled case" if not cases.n else why if not of.any() else "":
                found[name] = self._missing(why, cases, method)
                continue
            value = float(weight[hit].sum() / weight[of].sum())
            found[name] = self._with_interval(value, statistics[name], self._of(rows), cases, method, (score,))
            if name != "negative_value" and shown.all():
                why = "interval not computable: every decided case is shown"
                found[name] = replace(found[name], low=None, high=None, reason=why)
            elif name != "negative_value" and not shown.any():
                found[name] = self._missing("no decided case is shown", cases, method)
        return found

    def net_benefit(self, score: Floats, threshold: float, chance: float) -> Estimate:
        """Return relevant less weighted irrelevant alerts per candidate, of showing all candidates from a score on.

        An irrelevant alert weighs chance / (1 - chance): who shows an alert from this chance of relevance on is
        indifferent there.
        """
        rows, odds = np.isfinite(score), chance / (1.0 - chance)
        cases = self._usable(np.ones_like(rows), score)
        method = f"weighted net benefit per candidate; {INTERVAL} (t)"
        if cases.n == 0:
            return self._missing("no labelled case", cases, method)
        used = score[self._labelled[rows[self._labelled]]] >= threshold
        shown = cases.weight * (cases.scores[0] >= threshold)
        if not shown.any():
            return self._missing("no decided case is shown", cases, method)
        value = float((shown * np.where(cases.y, 1.0, -odds)).sum() / cases.weight.sum())

        def statistic(positive: Floats, negative: Floats) -> Floats:
            every = positive.sum(axis=1) + negative.sum(axis=1)
            benefit: Floats = (positive[:, used].sum(axis=1) - odds * negative[:, used].sum(axis=1)) / every
            return benefit

        return self._with_interval(value, statistic, self._of(rows), cases, method, (score,), is_share=False)

    def group_difference(self, score: Floats, group: Mask) -> PairedTest:
        """Return the AUC inside a group of candidates less that among the others."""
        method = f"difference of weighted AUCs between a group and the others; {INTERVAL} (t)"
        rows = np.isfinite(score)
        cases = self._usable(np.ones_like(rows), score)
        (_, own, why), (_, others, why_not) = self._auc(score, group), self._auc(score, ~group)
        if own is None or others is None:
            return PairedTest(self._missing(why or why_not, cases, method, PSEUDO_CASES_OF_AUC), None, None)
        used = rows[self._labelled]
        inside = group[self._labelled] & used, ~group[self._labelled] & used
        method, about = _method(method, PSEUDO_CASES_OF_AUC), (self._level, cases.n, cases.left_out)
        n_patients = min(np.unique(self._patient[self._labelled][side]).size for side in inside)
        apart = own - others
        if n_patients < 2:
            return PairedTest(Estimate(apart, None, None, *about, ONE_PATIENT_OF_GROUP, method), None, None)
        ordered = score[self._labelled]
        statistics = auc_of(ordered[inside[0]]), auc_of(ordered[inside[1]])
        low, high = self._draws.interval_between(
            statistics, self._level, inside, order_by=(ordered,), pseudo_cases=PSEUDO_CASES_OF_AUC
        )
        found = Estimate(apart, min(low, apart), max(high, apart), *about, "", method)
        return self._tested(found, n_patients - 1)

    def _tested(self, found: Estimate, degrees: int) -> PairedTest:
        """Add the p value to a difference."""
        # Without width every candidate is judged, and nothing is left to test.
        if found.value is None or found.low is None or found.high is None or found.high - found.low < EXACT:
            return PairedTest(found, None, None)
        # The distance to the limit that faces 0, so that p is below 1 - level exactly where the interval leaves out 0.
        reach = found.value - found.low if found.value > 0.0 else found.high - found.value
        z = found.value / reach * t_quantile(self._level, degrees) if reach > 0.0 else 0.0
        return PairedTest(found, z, float(2.0 * special.stdtr(degrees, -abs(z))))

    def _missing(
        self, why: str, cases: UsableCases, method: str, pseudo_cases: Sequence[float] = PSEUDO_CASES
    ) -> Estimate:
        method = _method(method, pseudo_cases)
        return not_computable(why, n=cases.n, left_out=cases.left_out, level=self._level, method=method)

    def _of(self, inside: Mask) -> NDArray[np.int64]:
        """Return the places among the labelled cases of those inside."""
        return np.flatnonzero(inside[self._labelled])

    def _usable(self, rows: Mask, *scores: Floats) -> UsableCases:
        chosen = [score[rows] for score in scores]
        return usable_cases(self._y[rows], chosen, patient=self._patient[rows], weight=self._weight[rows])

    @cached_property
    def _draws(self) -> CandidateDraws:
        rows = self._labelled
        cases = self._y[rows] == 1.0, self._patient[rows], self._stratum[rows]
        return CandidateDraws(*cases, self._size, self._weight[rows], self._seed, self._n_draws)

    def _with_interval(
        self,
        value: float,
        statistic: Statistic,
        rows: NDArray[np.int64],
        cases: UsableCases,
        method: str,
        order_by: tuple[Floats, ...] = (),
        *,
        is_share: bool = True,
        pseudo_cases: Sequence[float] = PSEUDO_CASES,
    ) -> Estimate:
        method = _method(method, pseudo_cases)
        if cases.patient.max() < 1:
            return Estimate(value, None, None, self._level, cases.n, cases.left_out, ONE_PATIENT, method)
        ordered = [score[self._labelled] for score in order_by]
        low, high = self._draws.interval(
            statistic, self._level, rows, order_by=ordered, is_share=is_share, pseudo_cases=pseudo_cases
        )
        if high - low < EXACT:
            low = high = value
        return Estimate(value, min(low, value), max(high, value), self._level, cases.n, cases.left_out, "", method)


def _method(text: str, pseudo_cases: Sequence[float]) -> str:
    """Fill the numbers of pseudo-cases into the description of a figure."""
    return text.format(" and ".join(f"{number:g}" for number in pseudo_cases))


def _ratio(part: Floats, rest: Floats) -> Floats:
    """Return part / (part + rest) of each draw; NaN where both are empty."""
    total = part.sum(axis=1)
    every = total + rest.sum(axis=1)
    share: Floats = np.divide(total, every, out=np.full_like(every, np.nan), where=every > 0.0)
    return share
