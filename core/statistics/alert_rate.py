"""True-alert rate against the number of alerts shown per patient-day, weighted to all alerts of a run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import InvalidInputError
from core.statistics.estimate import (
    BudgetPoint,
    Estimate,
    Floats,
    UsableCases,
    check_level,
    logit_interval,
    not_computable,
    t_quantile,
    usable_cases,
    wilson_interval,
)

BUDGETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5)
"""Alerts per patient-day at which reports give the true-alert rate."""
HEADLINE_BUDGET = 0.25
"""The budget of headline, tiles and documents, and the one with which the worklist opens."""


@dataclass(frozen=True)
class Budget:
    """An alert budget, and where it ends in a run."""

    alerts_per_patient_day: float
    # Scaled score of the last alert inside the budget, counted over the whole run; None to estimate it from the weights
    # of the judged cases.
    threshold: float | None = None
    n_alerts: int | None = None  # alerts of the run at or above the threshold


def share_of_cases(positive: ArrayLike, patient: ArrayLike, *, level: float = 0.95) -> Estimate:
    """Return the unweighted share of positive cases with an interval that leaves out one patient at a time.

    Cases are 1 positive, 0 negative, NaN undetermined. Logit interval with Student's t; Wilson's with the number of
    patients when all cases are alike.
    """
    check_level(level)
    method = "share of positive cases"
    cases = usable_cases(positive, [], patient=patient)
    if cases.n == 0:
        return not_computable("no labelled case", left_out=cases.left_out, level=level, method=method)
    value, n_patients = float(cases.y.mean()), int(cases.patient.max()) + 1
    n, hit = np.bincount(cases.patient), np.bincount(cases.patient, cases.y)
    if 0.0 < value < 1.0 and n_patients > 1:
        without = (hit.sum() - hit) / (n.sum() - n)
        error = float(np.sqrt((n_patients - 1) / n_patients * np.sum((without - without.mean()) ** 2)))
        low, high = logit_interval(value, error, t_quantile(level, n_patients - 1))
        method += "; interval by leaving out one patient at a time (logit, t)"
    else:
        low, high = wilson_interval(value, n_patients, t_quantile(level, max(n_patients - 1, 1)))
        method += "; interval by Wilson with the effective number of cases"
    return Estimate(value, low, high, level, cases.n, cases.left_out, "", method)


def true_alert_rate(
    y: ArrayLike,
    scaled_score: ArrayLike,
    weight: ArrayLike,
    n_patient_days: float,
    budgets: Sequence[Budget | float],
    rate_of: Callable[[NDArray[np.bool_]], Estimate],
    *,
    minutes_per_case: float | None = None,
    level: float = 0.95,
) -> tuple[BudgetPoint, ...]:
    """Return the share of alerts judged relevant, for each alert budget (alerts per patient-day), rising.

    Cases are 1 relevant, 0 not, NaN undetermined, ranked by scaled score, higher = more unusual, NaN for cases that the
    curve is not about; weights are inverse inclusion probabilities; the patient-days are the instances of the run. The
    rate of the cases that a mask marks comes from the caller. A budget that is a plain number has its threshold
    estimated from the weights. Raise InvalidInputError if the patient-days or a budget are not positive.
    """
    if not n_patient_days > 0:
        raise InvalidInputError(
            f"There are {n_patient_days} patient-days; alerts per patient-day need a positive number."
        )
    wanted = [b if isinstance(b, Budget) else Budget(float(b)) for b in budgets]
    if bad := [b.alerts_per_patient_day for b in wanted if not b.alerts_per_patient_day > 0]:
        raise InvalidInputError(f"Alert budget {bad[0]} is not positive. Give alerts per patient-day, like 0.05.")
    labels, score, weights = (np.asarray(values, dtype=np.float64) for values in (y, scaled_score, weight))
    # Undetermined cases still stand for alerts: the threshold is found over all cases that have score and weight.
    standing = usable_cases(np.zeros(labels.shape), [score], weight=weights)
    decided = ~np.isnan(labels) & np.isfinite(weights) & (weights > 0.0)
    points = []
    for budget in sorted(wanted, key=lambda b: b.alerts_per_patient_day):
        threshold, n_alerts = _reach(budget, standing, n_patient_days)
        inside = score >= threshold
        n, method = int((inside & decided).sum()), "weighted share of relevant cases among alerts inside the budget"
        none = not_computable("no decided case is inside this budget", level=level, method=method)
        minutes = None if minutes_per_case is None else minutes_per_case * budget.alerts_per_patient_day
        rate = rate_of(inside) if n else none
        points.append(BudgetPoint(budget.alerts_per_patient_day, threshold, n, n_alerts, rate, minutes))
    return tuple(points)


def _reach(budget: Budget, standing: UsableCases, n_patient_days: float) -> tuple[float, float]:
    """Return the threshold of a budget, and alerts at or above it."""
    allowed = budget.alerts_per_patient_day * n_patient_days
    if budget.threshold is not None:
        return budget.threshold, allowed if budget.n_alerts is None else float(budget.n_alerts)
    if standing.n == 0:
        return 0.0, 0.0
    order = np.argsort(-standing.scores[0], kind="stable")
    score, total = standing.scores[0][order], np.cumsum(standing.weight[order])
    last = np.append(score[:-1] != score[1:], True)
    ends: Floats = total[last]
    # The first case always counts: a budget smaller than its weight cannot be told from one that just holds it.
    reached = max(int(np.searchsorted(ends, allowed * (1.0 + 1e-12), side="right")) - 1, 0)
    return float(score[last][reached]), float(ends[reached])
