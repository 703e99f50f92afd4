"""Mean AUC over readers with an interval that holds for other readers and other cases.

Obuchowski and Rockette's model: the AUC of test i by reader j is a mean of the test, an effect of the reader, an
interaction, and an error whose covariances come from leaving out one case at a time. Here a test is a scorer, and a
reader is who gives the labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import special

from core.errors import InvalidInputError
from core.statistics.auc import PairedTest
from core.statistics.estimate import Estimate, Floats, check_level, not_computable, t_quantile

METHOD = "mean of the readers' AUCs on the chosen cases; readers and cases random (Obuchowski and Rockette, Hillis)"


@dataclass(frozen=True)
class MultiReaderAnalysis:
    """What the model finds.

    Attributes
    ----------
    means : tuple of Estimate
        Mean AUC over readers, for each test.
    differences : dict of (int, int) to PairedTest
        First minus second, for each pair of tests.
    var_reader, var_interaction, var_error, cov1, cov2, cov3 : float
        Variance components; cov1: same reader, other test; cov2: same test, other reader; cov3: both others. NaN where
        there are too few tests or readers for them.
    """

    means: tuple[Estimate, ...]
    differences: dict[tuple[int, int], PairedTest]
    var_reader: float
    var_interaction: float
    var_error: float
    cov1: float
    cov2: float
    cov3: float


def obuchowski_rockette(values: Floats, without: Floats, *, level: float = 0.95, n: int = 0) -> MultiReaderAnalysis:
    """Analyse the AUCs of tests by readers, both readers and cases being random.

    Values have shape (n_tests, n_readers), `without`, the same with one case left out, (n_cases, n_tests, n_readers).
    Raise InvalidInputError if the shapes do not fit or a value is not a number.

    References
    ----------
    Obuchowski and Rockette (1995), Communications in Statistics 24, 285-308; Hillis (2007), Statistics in Medicine 26,
    596-619, for the degrees of freedom.
    """
    check_level(level)
    if values.ndim != 2 or without.shape[1:] != values.shape or len(without) < 2:
        raise InvalidInputError(
            f"AUCs of shape {values.shape} need jackknife values of shape (cases, tests, readers), not {without.shape}."
        )
    if not (np.isfinite(values).all() and np.isfinite(without).all()):
        raise InvalidInputError(
            "An AUC of a reader, or one with a case left out, is not a number. Leave the reader out."
        )
    t, r = values.shape
    if r < 2:
        missing = not_computable("fewer than two readers have an AUC", n=n, level=level, method=METHOD)
        nothing = float("nan")
        return MultiReaderAnalysis((missing,) * t, {}, nothing, nothing, nothing, nothing, nothing, nothing)
    deviation = (without - without.mean(axis=0)).reshape(len(without), t * r)
    covariance = (len(without) - 1) / len(without) * deviation.T @ deviation
    test, reader = np.repeat(np.arange(t), r), np.tile(np.arange(r), t)
    same_test, same_reader = test[:, None] == test, reader[:, None] == reader
    error = float(np.diag(covariance).mean())
    cov1 = _mean(covariance, ~same_test & same_reader)
    cov2 = _mean(covariance, same_test & ~same_reader)
    cov3 = _mean(covariance, ~same_test & ~same_reader)
    by_test, by_reader = values.mean(axis=1), values.mean(axis=0)
    ms_reader = t * float(np.var(by_reader, ddof=1))
    rest = values - by_test[:, None] - by_reader + values.mean()
    ms_interaction = float((rest**2).sum() / ((t - 1) * (r - 1))) if t > 1 else float("nan")
    means = []
    for i in range(t):
        ms = float(np.var(values[i], ddof=1))
        own = _mean(covariance, same_test & ~same_reader & (test == i)[:, None])
        standard_error, df = _error(ms, r * max(own, 0.0), r - 1, 1.0 / r)
        means.append(_estimate(float(by_test[i]), standard_error, df, (0.0, 1.0), level, n))
    differences = {}
    for i, j in combinations(range(t), 2):
        standard_error, df = _error(ms_interaction, r * max(cov2 - cov3, 0.0), (t - 1) * (r - 1), 2.0 / r)
        found = _estimate(float(by_test[i] - by_test[j]), standard_error, df, (-1.0, 1.0), level, n)
        differences[i, j] = _paired(found, standard_error, df)
    var_interaction = ms_interaction - error + cov1 + max(cov2 - cov3, 0.0)
    var_reader = (ms_reader - ms_interaction) / t - cov1 + cov3
    return MultiReaderAnalysis(tuple(means), differences, var_reader, var_interaction, error, cov1, cov2, cov3)


def _mean(covariance: Floats, where: "np.ndarray[tuple[int, ...], np.dtype[np.bool_]]") -> float:
    return float(covariance[where].mean()) if where.any() else float("nan")


def _error(mean_square: float, extra: float, degrees: int, factor: float) -> tuple[float, float]:
    """Return the standard error and Hillis' degrees of freedom, never without end."""
    total = mean_square + extra
    df = total**2 / (mean_square**2 / degrees) if mean_square > 0.0 else np.inf
    return float(np.sqrt(factor * total)), min(df, 1e9)


def _estimate(value: float, error: float, df: float, ends: tuple[float, float], level: float, n: int) -> Estimate:
    if error < 1e-12:
        reason = "interval not computable: the AUCs do not vary between readers or cases"
        return Estimate(value, None, None, level, n, {}, reason, METHOD)
    reach = t_quantile(level, df) * error
    return Estimate(value, max(ends[0], value - reach), min(ends[1], value + reach), level, n, {}, "", METHOD)


def _paired(found: Estimate, error: float, df: float) -> PairedTest:
    if not found.has_interval or found.value is None:
        return PairedTest(found, None, None)
    t = found.value / error
    return PairedTest(found, t, float(2.0 * special.stdtr(df, -abs(t))))


def holm(p_values: Sequence[float | None]) -> tuple[float | None, ...]:
    """Return p values adjusted for how many there are; None stays None and does not count.

    References
    ----------
    Holm (1979), Scandinavian Journal of Statistics 6, 65-70.

    Examples
    --------
    >>> holm([0.01, None, 0.04])
    (0.02, None, 0.04)
    """
    given = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(given):
        highest = max(highest, min(1.0, (len(given) - rank) * p))
        adjusted[place] = highest
    return tuple(adjusted)
