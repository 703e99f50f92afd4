"""A figure of a report: value, interval, number of cases, what was left out, and why when it cannot be computed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from scipy import special

from core.errors import InvalidInputError


@dataclass(frozen=True)
class Estimate:
    """One figure with everything that must be said beside it; "not computable" is a value of its own, never NaN.

    Attributes
    ----------
    value : float or None
        The figure; None when it cannot be computed, and then `reason` says why.
    low, high : float or None
        Ends of the interval; None when only the interval, or the whole figure, cannot be computed.
    level : float
        Confidence level of the interval, in (0, 1).
    n : int
        Cases (or votes, or alerts: see `method`) the figure rests on.
    left_out : mapping of str to int
        Why cases were not used, and how many for each reason.
    reason : str
        "not computable: ..." when the value, or its interval, is missing; empty otherwise.
    method : str
        How value and interval were computed, in words for a methods section.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    n: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    reason: str = ""
    method: str = ""

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
        >>> not_computable("one reader only").text()
        'not computable: one reader only'
        """
        if self.value is None:
            return self.reason
        scale, mark = (100.0, "%") if percent else (1.0, "")
        places = 0 if percent else digits
        value = f"{scale * self.value:.{places}f}{mark}"
        if self.low is None or self.high is None:
            return value
        return f"{value} ({scale * self.low:.{places}f}–{scale * self.high:.{places}f}{mark})"


def not_computable(
    why: str, *, n: int = 0, left_out: Mapping[str, int] | None = None, level: float = 0.95, method: str = ""
) -> Estimate:
    """Return the value "not computable", with its reason.

    Parameters
    ----------
    why : str
        The reason, without the words "not computable".
    n, left_out, level, method
        As in `Estimate`.
    """
    return Estimate(None, None, None, level, n, dict(left_out or {}), f"not computable: {why}", method)


def check_level(level: float) -> float:
    """Return the confidence level, or raise when it is not inside (0, 1).

    Raises
    ------
    InvalidInputError
        If `level` is not between 0 and 1.
    """
    if not 0.0 < level < 1.0:
        raise InvalidInputError(f"Confidence level {level} is not between 0 and 1. Give for example 0.95.")
    return float(level)


def normal_quantile(level: float) -> float:
    """Two-sided standard normal quantile, 1.96 for 95 %."""
    return float(special.ndtri(0.5 + check_level(level) / 2.0))


def t_quantile(level: float, degrees: float) -> float:
    """Two-sided quantile of Student's t with `degrees` degrees of freedom."""
    return float(special.stdtrit(degrees, 0.5 + check_level(level) / 2.0))


def logit_interval(value: float, standard_error: float, quantile: float) -> tuple[float, float]:
    """Interval of a share or an AUC on the logit scale, so that it never leaves [0, 1].

    Parameters
    ----------
    value : float
        In the open interval (0, 1).
    standard_error : float
        Of `value` on its own scale; carried to the logit scale by the delta method.
    quantile : float
        For example `t_quantile(level, n_patients - 1)`.

    Returns
    -------
    low, high : float
    """
    centre = np.log(value / (1.0 - value))
    reach = quantile * standard_error / (value * (1.0 - value))
    return float(special.expit(centre - reach)), float(special.expit(centre + reach))


def wilson_interval(share: float, n: float, quantile: float) -> tuple[float, float]:
    """Wilson's score interval of a share; `n` may be an effective number (Kish) and need not be whole.

    References
    ----------
    E. B. Wilson (1927), Journal of the American Statistical Association 22, 209-212.
    """
    z2 = quantile**2
    centre = (share + z2 / (2.0 * n)) / (1.0 + z2 / n)
    reach = quantile / (1.0 + z2 / n) * np.sqrt(share * (1.0 - share) / n + z2 / (4.0 * n * n))
    return max(0.0, float(centre - reach)), min(1.0, float(centre + reach))
