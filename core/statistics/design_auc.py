"""The AUC that the labels of a panel would give on all candidates of a run, with its interval."""

import numpy as np
from numpy.typing import ArrayLike

from core.errors import InvalidInputError
from core.statistics.auc import PairedTest
from core.statistics.candidate_figures import CandidateFigures
from core.statistics.estimate import Estimate, Floats, as_vector, check_level, usable_cases


def design_weighted_auc(
    y: ArrayLike,
    score: ArrayLike,
    *,
    patients: ArrayLike,
    inclusion_probability: ArrayLike,
    strata: ArrayLike,
    stratum_sizes: ArrayLike,
    level: float = 0.95,
    random_state: int | None = None,
) -> Estimate:
    """Estimate the AUC that the panel's labels would give on all candidates from which the cases were chosen.

    Parameters
    ----------
    y : array-like of shape (n,)
        1 relevant, 0 not relevant, NaN undetermined (left out).
    score : array-like of shape (n,)
        Higher = more unusual.
    patients : array-like of shape (n,)
        Patient of each case; cases of one patient are drawn together.
    inclusion_probability : array-like of shape (n,)
        Chance of each case to be chosen, in (0, 1].
    strata : array-like of shape (n,), int
        Stratum of each case, a position in `stratum_sizes`.
    stratum_sizes : array-like of shape (n_strata,)
        Candidates in each stratum. Strata without a usable case are left out of the figure.
    level : float
        Confidence level.
    random_state : int, optional
        Seed of the draws; 0 if left out, so that a report is the same whenever it is made.

    Returns
    -------
    Estimate
        Value, low and high; `low` and `high` are None with a reason when no interval can be computed. The order of the
        rows changes nothing.

    Raises
    ------
    InvalidInputError
        If lengths differ, a label is not 0, 1 or NaN, an inclusion probability is not in (0, 1], a stratum is unknown
        or has fewer candidates than cases, or `random_state` is negative.

    References
    ----------
    Rubin (1981), The Bayesian Bootstrap, Annals of Statistics 9, 130-134. The pseudo-cases are a Beta prior as for a
    share with few positives: Brown, Cai and DasGupta (2001), Interval Estimation for a Binomial Proportion,
    Statistical Science 16, 101-133.
    """
    scores = as_vector("score", score)
    return _figures(y, [scores], patients, inclusion_probability, strata, stratum_sizes, level, random_state).auc(
        scores
    )


def design_weighted_difference(
    y: ArrayLike,
    score_a: ArrayLike,
    score_b: ArrayLike,
    *,
    patients: ArrayLike,
    inclusion_probability: ArrayLike,
    strata: ArrayLike,
    stratum_sizes: ArrayLike,
    level: float = 0.95,
    random_state: int | None = None,
) -> PairedTest:
    """Estimate the difference of two scorers' AUCs (first minus second) on all candidates.

    Parameters
    ----------
    y, patients, inclusion_probability, strata, stratum_sizes, level, random_state
        As in `design_weighted_auc`.
    score_a, score_b : array-like of shape (n,)
        Cases without either score are left out.

    Returns
    -------
    PairedTest
        `p_value` is below 1 - level exactly where the interval leaves out 0.

    Raises
    ------
    InvalidInputError
        As `design_weighted_auc` does.
    """
    a, b = as_vector("score_a", score_a), as_vector("score_b", score_b)
    figures = _figures(y, [a, b], patients, inclusion_probability, strata, stratum_sizes, level, random_state)
    return figures.difference(a, b)


def _figures(
    y: ArrayLike,
    scores: list[Floats],
    patients: ArrayLike,
    inclusion_probability: ArrayLike,
    strata: ArrayLike,
    stratum_sizes: ArrayLike,
    level: float,
    random_state: int | None,
) -> CandidateFigures:
    check_level(level)
    labels = as_vector("y", y)
    probability = as_vector("inclusion_probability", inclusion_probability)
    stratum, size = as_vector("strata", strata), as_vector("stratum_sizes", stratum_sizes)
    for name, vector in (("inclusion_probability", probability), ("strata", stratum)):
        if vector.size != labels.size:
            raise InvalidInputError(
                f"'{name}' has {vector.size} values and 'y' has {labels.size}; give one for each case."
            )
    usable_cases(labels, scores, patient=patients)
    if bad := probability[~((probability > 0.0) & (probability <= 1.0))].tolist():
        raise InvalidInputError(f"Inclusion probability {bad[0]:g} is not above 0 and at most 1.")
    if bad := stratum[~np.isin(stratum, np.arange(size.size))].tolist():
        raise InvalidInputError(f"A case has stratum {bad[0]:g}, but there are {size.size} stratum sizes.")
    codes = stratum.astype(np.int64)
    n_chosen = np.bincount(codes, minlength=size.size)
    if (wrong := np.flatnonzero(~(np.isfinite(size) & (size >= n_chosen)))).size:
        h = int(wrong[0])
        raise InvalidInputError(
            f"Stratum {h} has {size[h]:g} candidates and {n_chosen[h]} cases; give the number of its candidates."
        )
    if random_state is not None and random_state < 0:
        raise InvalidInputError(f"'random_state' is {random_state}; give a whole number from 0 on.")
    patient = np.unique(np.asarray(patients), return_inverse=True)[1].astype(np.int64)
    return CandidateFigures(labels, 1.0 / probability, patient, codes, size, level, random_state or 0)
