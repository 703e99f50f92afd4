"""ROC curve of a scorer, plain or weighted, with a pointwise band found by resampling patients."""

import numpy as np
from numpy.typing import ArrayLike

from core.estimate import check_level
from core.study_report import RocCurve
from core.usable_cases import Floats, UsableCases, usable_cases

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
    """Trace the fraction of relevant cases found against the fraction of false alerts, from the highest score down.

    Parameters
    ----------
    y : array-like of shape (n,)
        1 positive, 0 negative, NaN undetermined.
    score : array-like of shape (n,)
        Higher = more unusual.
    patient : array-like of shape (n,), optional
        For the band; every case its own patient when left out.
    weight : array-like of shape (n,), optional
        Inverse inclusion probability; ones when left out.
    band : bool
        Whether to compute the band.
    level : float
        Confidence level of the band, pointwise.

    Returns
    -------
    RocCurve
        The area under its corners is `weighted_auc` (or `auc`), since tied scores share one corner.
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
    """Last position of each distinct score, and weights of positives and negatives, by falling score."""
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
