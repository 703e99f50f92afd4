"""Area under the ROC curve by mid-ranks, with DeLong's interval and paired test.

Everywhere `y` marks the relevant (positive) cases and a higher score means more unusual, so an AUC above .5 says that
relevant cases are ranked above the others. Ties count half. A figure that cannot be computed is an `Estimate` with a
reason, never NaN and never an exception; only malformed input raises.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from core.statistics.estimate import (
    SEPARATED,
    Estimate,
    Floats,
    RocCurve,
    UsableCases,
    check_level,
    normal_quantile,
    not_computable,
    usable_cases,
)


def auc(y: ArrayLike, score: ArrayLike) -> Estimate:
    """Return the area under the ROC curve, all cases weighted equally, without interval; O(n log n).

    Labels are 1 positive, 0 negative, NaN undetermined; a higher score is more unusual, NaN where there is none.

    Examples
    --------
    >>> auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).value
    0.75
    >>> auc([1, 1], [0.3, 0.4]).reason
    'not computable: one class only (2 positive, 0 negative)'

    References
    ----------
    Hanley and McNeil (1982), Radiology 143, 29-36: the AUC is the Wilcoxon statistic.
    """
    method = "AUC by mid-ranks (ties count half)"
    cases = usable_cases(y, [score])
    if why := cases.why_no_auc():
        return not_computable(why, n=cases.n, left_out=cases.left_out, method=method)
    value = _area(cases.y, cases.scores[0])
    return Estimate(value, n=cases.n, left_out=cases.left_out, method=method)


def _placements(y: NDArray[np.bool_], score: Floats) -> tuple[Floats, Floats]:
    """Return share of negatives below each positive, and share of positives above each negative (DeLong's V10, V01)."""
    positives, negatives = np.sort(score[y]), np.sort(score[~y])
    return _share_below(score[y], negatives), 1.0 - _share_below(score[~y], positives)


def _area(y: NDArray[np.bool_], score: Floats) -> float:
    """Return the AUC from whole numbers; a sum of shares would depend on the order of the cases."""
    positives, negatives = score[y], np.sort(score[~y])
    return int(_twice_below(positives, negatives).sum()) / (2 * positives.size * negatives.size)


def _share_below(at: Floats, ordered: Floats) -> Floats:
    """Return the share of `ordered` below each entry of `at`, ties half: the mid-rank, in O(n log n)."""
    share: Floats = _twice_below(at, ordered) / (2.0 * ordered.size)
    return share


def _twice_below(at: Floats, ordered: Floats) -> NDArray[np.int64]:
    """Return twice the number of entries of `ordered` below each entry of `at`, ties half."""
    below, not_above = np.searchsorted(ordered, at, "left"), np.searchsorted(ordered, at, "right")
    return (below + not_above).astype(np.int64)


def delong_interval(y: ArrayLike, score: ArrayLike, *, level: float = 0.95) -> Estimate:
    """Return the AUC with DeLong's interval, which is valid only for independent cases drawn at random.

    Labels and scores as in `auc`. The interval is symmetric and cut at 0 and 1.

    References
    ----------
    DeLong, DeLong and Clarke-Pearson (1988), Biometrics 44, 837-845; by mid-ranks as in Sun and Xu (2014), IEEE Signal
    Processing Letters 21, 1389-1393.
    """
    method = "AUC by mid-ranks; interval by DeLong (cases independent, drawn at random)"
    quantile = normal_quantile(level)
    cases = usable_cases(y, [score])
    if why := cases.why_no_auc() or cases.why_no_order():
        return not_computable(why, n=cases.n, left_out=cases.left_out, level=level, method=method)
    values, covariance, reason = _delong(cases)
    value = float(values[0])
    if not reason and covariance[0, 0] <= 0.0:
        reason = SEPARATED
    if reason:
        return Estimate(value, None, None, level, cases.n, cases.left_out, reason, method)
    reach = quantile * float(np.sqrt(covariance[0, 0]))
    return Estimate(value, max(0.0, value - reach), min(1.0, value + reach), level, cases.n, cases.left_out, "", method)


def _delong(cases: UsableCases) -> tuple[Floats, Floats, str]:
    """AUCs of all scorers, their covariance, and a reason when there is no covariance."""
    n_positive, n_negative = int(cases.y.sum()), int((~cases.y).sum())
    placements = [_placements(cases.y, s) for s in cases.scores]
    values = np.array([_area(cases.y, s) for s in cases.scores])
    if min(n_positive, n_negative) < 2:
        what = "positive" if n_positive < 2 else "negative"
        return values, np.full((values.size, values.size), np.nan), f"interval not computable: one {what} case only"
    s10 = np.atleast_2d(np.cov(np.vstack([v10 for v10, _ in placements])))
    s01 = np.atleast_2d(np.cov(np.vstack([v01 for _, v01 in placements])))
    return values, s10 / n_positive + s01 / n_negative, ""


@dataclass(frozen=True)
class PairedTest:
    """Difference of two AUCs on the same cases, first minus second."""

    difference: Estimate
    z: float | None  # test statistic; None when it cannot be computed
    p_value: float | None  # two-sided


def delong_paired(y: ArrayLike, score_a: ArrayLike, score_b: ArrayLike, *, level: float = 0.95) -> PairedTest:
    """Compare two scorers (higher = more unusual) on the cases that both scored, by DeLong's paired test."""
    method = "difference of AUCs on the same cases; interval and test by paired DeLong"
    quantile = normal_quantile(level)
    cases = usable_cases(y, [score_a, score_b])
    if why := cases.why_no_auc() or cases.why_no_order():
        return PairedTest(
            not_computable(why, n=cases.n, left_out=cases.left_out, level=level, method=method), None, None
        )
    values, covariance, reason = _delong(cases)
    difference = float(values[0] - values[1])
    variance = float(covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1])
    # Two scorers that rank alike leave rounding noise, not a variance.
    if not reason and variance <= 1e-15:
        reason = "interval not computable: both scorers rank these cases alike, or separate them completely"
    if reason:
        return PairedTest(Estimate(difference, None, None, level, cases.n, cases.left_out, reason, method), None, None)
    error = float(np.sqrt(variance))
    z = difference / error
    low, high = max(-1.0, difference - quantile * error), min(1.0, difference + quantile * error)
    estimate = Estimate(difference, low, high, level, cases.n, cases.left_out, "", method)
    return PairedTest(estimate, z, float(2.0 * special.ndtr(-abs(z))))


def task_macro_auc(y: ArrayLike, score: ArrayLike, task: ArrayLike) -> Estimate:
    """Return the mean of the tasks' AUCs, over the tasks that have cases of both classes; without interval.

    Labels and scores as in `auc`. `n` counts tasks, not cases; `left_out` counts tasks by reason ("0 positive", "0
    negative", "all scores equal").

    Examples
    --------
    >>> mean = task_macro_auc([0, 1, 0, 0], [0.1, 0.9, 0.5, 0.6], ["K", "K", "Na", "Na"])
    >>> mean.value, mean.n, mean.left_out
    (1.0, 1, {'0 positive': 1})
    """
    method = "mean of the AUCs of the tasks that have cases of both classes and different scores"
    tasks = np.asarray(task)
    cases = usable_cases(y, [score], patient=tasks)
    values: list[float] = []
    left_out: Counter[str] = Counter()
    for code in np.unique(cases.patient):
        own = cases.patient == code
        labels, scores = cases.y[own], cases.scores[0][own]
        if not labels.any():
            left_out["0 positive"] += 1
        elif labels.all():
            left_out["0 negative"] += 1
        elif np.ptp(scores) == 0.0:
            left_out["all scores equal"] += 1
        else:
            values.append(_area(labels, scores))
    if without := np.unique(tasks).size - np.unique(cases.patient).size:
        left_out["no usable case"] = int(without)
    if not values:
        return not_computable(
            "no task has cases of both classes and different scores", left_out=dict(left_out), method=method
        )
    return Estimate(float(np.mean(values)), n=len(values), left_out=dict(left_out), method=method)


BAND_AT = np.linspace(0.0, 1.0, 51)
"""False-alert fractions at which the band is given."""
N_RESAMPLES = 400
BAND_SEED = 20_131
"""The resamples are always the same ones, so a report can be computed again to the last digit."""


def roc_curve(
    y: ArrayLike,
    score: ArrayLike,
    *,
    patient: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    band: bool = True,
    level: float = 0.95,
) -> RocCurve:
    """Return the fraction of relevant cases found by fraction of false alerts, from the highest score down.

    Labels and scores as in `auc`; weights are inverse inclusion probabilities. The band is pointwise; every case is its
    own patient unless told otherwise. The area under the corners is `weighted_auc` (or `auc`): tied scores share one
    corner.
    """
    check_level(level)
    cases = usable_cases(y, [score], patient=patient, weight=weight)
    if why := cases.why_no_auc():
        return RocCurve((), (), weighted=weight is not None, level=level, reason=f"not computable: {why}")
    last, positive, negative = _sorted_weights(cases)
    found = np.concatenate(([0.0], np.cumsum(positive)[last] / positive.sum()))
    false = np.concatenate(([0.0], np.cumsum(negative)[last] / negative.sum()))
    found[-1] = false[-1] = 1.0
    low, high = _band(cases, false, found, level) if band else (np.empty(0), np.empty(0))
    return RocCurve(
        tuple(false.tolist()),
        tuple(found.tolist()),
        tuple(BAND_AT.tolist()) if low.size else (),
        tuple(low.tolist()),
        tuple(high.tolist()),
        weight is not None,
        level,
        "" if low.size or not band else "band not computable: one class comes from too few patients",
    )


def _sorted_weights(cases: UsableCases) -> tuple[np.ndarray, Floats, Floats]:
    """Return the last position of each distinct score, and weights of positives and negatives, by falling score."""
    order = np.argsort(-cases.scores[0], kind="stable")
    score, y, weight = cases.scores[0][order], cases.y[order], cases.weight[order]
    last = np.flatnonzero(np.append(score[:-1] != score[1:], True))
    return last, np.where(y, weight, 0.0), np.where(y, 0.0, weight)


def _band(cases: UsableCases, false: Floats, found: Floats, level: float) -> tuple[Floats, Floats]:
    """Return the ends of the band at `BAND_AT`; empty when too many resamples hold one class only.

    Patients are resampled because leaving out one at a time fails for a curve of steps (not smooth in the weights).
    """
    last, positive, negative = _sorted_weights(cases)
    patient = cases.patient[np.argsort(-cases.scores[0], kind="stable")]
    n_patients = int(patient.max()) + 1
    x, z = np.zeros(last.size + 1), np.zeros(last.size + 1)
    rng = np.random.default_rng(BAND_SEED)
    heights = []
    for _ in range(N_RESAMPLES):
        times = np.bincount(rng.integers(0, n_patients, n_patients), minlength=n_patients)[patient]
        found_sum, false_sum = np.cumsum(positive * times), np.cumsum(negative * times)
        if found_sum[-1] > 0.0 and false_sum[-1] > 0.0:
            z[1:], x[1:] = found_sum[last] / found_sum[-1], false_sum[last] / false_sum[-1]
            heights.append(np.interp(BAND_AT, x, z))
    if n_patients < 2 or len(heights) < 0.9 * N_RESAMPLES:
        return np.empty(0), np.empty(0)
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(np.vstack(heights), [tail, 1.0 - tail], axis=0)
    height = np.interp(BAND_AT, false, found)
    # A resample can only repeat what was seen: the band must at least hold the curve itself.
    return np.minimum(low, height), np.maximum(high, height)
