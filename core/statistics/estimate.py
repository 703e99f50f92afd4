"""A figure of a report: value, interval, number of cases, what was left out, and why when it cannot be computed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from core.errors import InvalidInputError
from core.number_texts import fixed_text, percent_places, percent_text


@dataclass(frozen=True)
class Estimate:
    """One figure with everything that must be shown with it; "not computable" is a separate value, never NaN."""

    value: float | None  # the figure; None when it cannot be computed, and then `reason` says why
    # `low` and `high`: ends of the interval; None when only the interval, or the whole figure, cannot be computed.
    low: float | None = None
    high: float | None = None
    level: float = 0.95  # confidence level of the interval, in (0, 1)
    n: int = 0  # cases (or votes, or alerts: see `method`) the figure rests on
    left_out: Mapping[str, int] = field(default_factory=dict)  # why cases were not used, and how many for each reason
    reason: str = ""  # "not computable: ..." when the value, or its interval, is missing; empty otherwise
    method: str = ""  # how value and interval were computed, in words for a methods section

    @property
    def computable(self) -> bool:
        """Whether there is a value."""
        return self.value is not None

    @property
    def has_interval(self) -> bool:
        """Whether both ends of the interval are there."""
        return self.low is not None and self.high is not None

    def text(self, digits: int = 2, *, percent: bool = False) -> str:
        """Write the figure for people.

        Examples
        --------
        >>> Estimate(0.781, 0.712, 0.843).text()
        '0.78 (0.71–0.84)'
        >>> Estimate(0.62, 0.51, 0.72).text(percent=True)
        '62% (51–72%)'
        >>> Estimate(0.9967, 0.9951, 0.9981).text(percent=True)
        '99.7% (99.5–99.8%)'
        >>> Estimate(-0.02, -0.05, 0.01).text()
        '−0.02 (−0.05 to 0.01)'
        >>> Estimate(-0.0004, -0.05, 0.01).text()
        '0.00 (−0.05 to 0.01)'
        >>> not_computable("one reader only").text()
        'not computable: one reader only'
        """
        if self.value is None:
            return self.reason
        value = percent_text(self.value) if percent else fixed_text(self.value, digits)
        if self.low is None or self.high is None:
            return value
        scale, mark = (100.0, "%") if percent else (1.0, "")
        places = percent_places(self.value) if percent else digits
        dash = "–" if self.low >= 0.0 else " to "
        low, high = (fixed_text(scale * end, places) for end in (self.low, self.high))
        return f"{value} ({low}{dash}{high}{mark})"

    def full_text(self, digits: int = 2, *, percent: bool = False) -> str:
        """Write the figure for a table: where the interval is missing, with the reason.

        Examples
        --------
        >>> Estimate(0.78, reason="interval not computable: all cases come from one patient").full_text()
        '0.78 (no interval: all cases come from one patient)'
        """
        words = self.text(digits, percent=percent)
        if self.value is None or self.has_interval or not self.reason:
            return words
        return f"{words} (no interval: {self.reason.removeprefix('interval not computable: ')})"


def not_computable(
    why: str, *, n: int = 0, left_out: Mapping[str, int] | None = None, level: float = 0.95, method: str = ""
) -> Estimate:
    """Return the value "not computable", with its reason, without these words."""
    return Estimate(None, None, None, level, n, dict(left_out or {}), f"not computable: {why}", method)


def check_level(level: float) -> float:
    """Return the confidence level; raise InvalidInputError when it is not inside (0, 1)."""
    if not isinstance(level, (int, float)) or not 0.0 < level < 1.0:
        raise InvalidInputError(f"Confidence level {level!r} is not between 0 and 1. Give for example 0.95.")
    return float(level)


def normal_quantile(level: float) -> float:
    """Return the two-sided standard normal quantile, 1.96 for 95 %."""
    return float(special.ndtri(0.5 + check_level(level) / 2.0))


def t_quantile(level: float, degrees: float) -> float:
    """Return the two-sided quantile of Student's t with `degrees` degrees of freedom."""
    return float(special.stdtrit(degrees, 0.5 + check_level(level) / 2.0))


def logit_interval(value: float, standard_error: float, quantile: float) -> tuple[float, float]:
    """Return the interval of a share or an AUC in (0, 1) on the logit scale, so that it never leaves [0, 1].

    The standard error, on the value's own scale, is carried to the logit scale by the delta method; the quantile is for
    example `t_quantile(level, n_patients - 1)`.
    """
    centre = np.log(value / (1.0 - value))
    reach = quantile * standard_error / (value * (1.0 - value))
    return float(special.expit(centre - reach)), float(special.expit(centre + reach))


def wilson_interval(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Return Wilson's score interval of a share; `n` may be an effective number (Kish), not an integer.

    References
    ----------
    E. B. Wilson (1927), Journal of the American Statistical Association 22, 209-212.
    """
    z2 = quantile**2
    centre = (share + z2 / (2.0 * n)) / (1.0 + z2 / n)
    reach = quantile / (1.0 + z2 / n) * np.sqrt(share * (1.0 - share) / n + z2 / (4.0 * n * n))
    # At the ends centre and reach are equal but for rounding, which must not exclude the share itself.
    low = 0.0 if share <= 0.0 else max(0.0, float(centre - reach))
    return low, 1.0 if share >= 1.0 else min(1.0, float(centre + reach))


@dataclass(frozen=True)
class RocCurve:
    """Receiver operating characteristic of a scorer; empty tuples and a reason when there is none.

    The curve has a corner at every distinct score. The band is pointwise, at `band_at`, found by resampling patients.
    """

    false_alert_fraction: tuple[float, ...]  # 1 - specificity, rising from 0 to 1
    found_fraction: tuple[float, ...]  # sensitivity at the same threshold, rising from 0 to 1
    band_at: tuple[float, ...] = ()
    band_low: tuple[float, ...] = ()
    band_high: tuple[float, ...] = ()
    weighted: bool = False
    level: float = 0.95
    reason: str = ""


@dataclass(frozen=True)
class BudgetPoint:
    """True-alert rate when this many alerts are shown."""

    alerts_per_patient_day: float
    threshold: float  # scaled score of the last alert inside the budget
    n_cases: int  # decided cases at or above the threshold
    n_alerts: float
    """Alerts of the run at or above the threshold (estimated from the weights when the run does not say)."""
    rate: Estimate  # share of alerts judged relevant, weighted to all alerts of the run
    minutes_per_patient_day: float | None = None
    """Reading time: alerts per patient-day x median active minutes per case; None when time was not measured."""


@dataclass(frozen=True)
class Ceiling:
    """How far disagreement limits any AUC (see `core.statistics.ceiling`)."""

    naive: Estimate  # highest AUC a perfect detector would show on the chosen cases
    weighted: Estimate  # the same for all candidates, at their weighted share of positives
    reader_error: float | None  # share of votes that are wrong in the model
    n_readers: int
    sensitivity: Estimate = Estimate(None, reason="not computable: no votes")
    """Share of positive votes on truly positive cases."""
    specificity: Estimate = Estimate(None, reason="not computable: no votes")
    """Share of negative votes on truly negative cases."""


Floats = NDArray[np.float64]
EQUAL_SCORES = "all scores equal"
ONE_PATIENT = "interval not computable: all cases come from one patient"
SEPARATED = "interval not computable: the scores separate the two classes completely"


@dataclass(frozen=True)
class UsableCases:
    """Cases that have a label, every score and a weight."""

    y: NDArray[np.bool_]  # shape (n,)
    scores: Floats  # shape (n_scorers, n)
    weight: Floats  # shape (n,): inverse inclusion probability, or ones
    patient: NDArray[np.int64]  # shape (n,): codes 0 .. n_patients - 1
    left_out: dict[str, int]

    @property
    def n(self) -> int:
        """Number of cases."""
        return int(self.y.size)

    def why_no_auc(self) -> str:
        """Return why no AUC can be computed; empty if it can."""
        n_positive = int(self.y.sum())
        if self.n == 0:
            return "no case has both a label and a score"
        if n_positive == 0:
            return f"one class only (0 positive, {self.n} negative)"
        if n_positive == self.n:
            return f"one class only ({n_positive} positive, 0 negative)"
        return ""

    def why_no_order(self) -> str:
        """Return why a scorer says nothing of these cases; empty if each says something."""
        return EQUAL_SCORES if self.n and any(np.ptp(score) == 0.0 for score in self.scores) else ""


def usable_cases(
    y: ArrayLike,
    scores: Sequence[ArrayLike],
    *,
    patient: ArrayLike | None = None,
    weight: ArrayLike | None = None,
) -> UsableCases:
    """Return the cases with a label, all scores and a weight, and count the others by reason.

    `y` is 1 or True for positive, 0 or False for negative, NaN for undetermined; scores are NaN where a scorer has
    none; every case is its own patient, and weighs 1, unless told otherwise. NaN, infinite and non-positive weights
    leave a case out. Raise InvalidInputError if lengths differ or `y` holds anything but 0, 1 and NaN.
    """
    labels = as_vector("y", y)
    columns = [as_vector(f"score {i + 1}", s) for i, s in enumerate(scores)]
    weights = np.ones(labels.size) if weight is None else as_vector("weight", weight)
    clusters = np.arange(labels.size) if patient is None else np.asarray(patient)
    for name, size in [*((f"score {i + 1}", c.size) for i, c in enumerate(columns)), ("weight", weights.size)]:
        if size != labels.size:
            raise InvalidInputError(f"'{name}' has {size} values and 'y' has {labels.size}; give one for each case.")
    if clusters.shape != labels.shape:
        raise InvalidInputError(
            f"'patient' has shape {clusters.shape}; it must have one entry for each of {labels.size} cases."
        )
    labelled = ~np.isnan(labels)
    strange = labels[labelled & (labels != 0.0) & (labels != 1.0)]
    if strange.size:
        raise InvalidInputError(
            f"Label {strange[0]:g} is neither 1 (positive), 0 (negative) nor missing. Recode the labels."
        )
    matrix = np.vstack(columns) if columns else np.empty((0, labels.size))
    scored = np.isfinite(matrix).all(axis=0)
    weighted = np.isfinite(weights) & (weights > 0)
    keep = labelled & scored & weighted
    counts = {
        "no label": int((~labelled).sum()),
        "no score": int((labelled & ~scored).sum()),
        "no inclusion probability": int((labelled & scored & ~weighted).sum()),
    }
    codes = np.unique(clusters[keep], return_inverse=True)[1].astype(np.int64)
    left_out = {reason: count for reason, count in counts.items() if count}
    return UsableCases(labels[keep] == 1.0, matrix[:, keep], weights[keep], codes, left_out)


def as_vector(name: str, values: ArrayLike) -> Floats:
    """Return values as one float for each case; raise `InvalidInputError` with their name if they are not."""
    try:
        vector = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(f"'{name}' holds something that is not a number. Use NaN for missing values.") from None
    if vector.ndim != 1:
        raise InvalidInputError(f"'{name}' has {vector.ndim} dimensions; it must be one value for each case.")
    return vector
