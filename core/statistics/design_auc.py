"""The AUC that the labels of a panel would give on all candidates of a run, with its interval."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from core.errors import InvalidInputError
from core.statistics.auc import PairedTest
from core.statistics.candidate_figures import CandidateFigures
from core.statistics.estimate import Estimate, Floats, as_vector, check_level, usable_cases
from core.validation import as_codes, whole_number

StratumSizes = ArrayLike | Mapping[Any, float]


def design_weighted_auc(
    y: ArrayLike,
    score: ArrayLike,
    *,
    patients: ArrayLike,
    inclusion_probability: ArrayLike,
    strata: ArrayLike,
    stratum_sizes: StratumSizes,
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
        Chance of each case to be chosen, in (0, 1]. A stratum in which chances differ twice and more is divided by
        them.
    strata : array-like of shape (n,)
        Stratum of each case: a position in `stratum_sizes`, or one of its keys.
    stratum_sizes : array-like of shape (n_strata,), or mapping
        Candidates in each stratum. Strata without a usable case are left out of the figure.
    level : float
        Confidence level.
    random_state : int, optional
        Seed of the draws; 0 if left out, so that a report is the same whenever it is made.

    Returns
    -------
    Estimate
        Value, low and high; `low` and `high` are None with a reason when no interval can be computed. The interval is
        about these candidates, and narrows as more of a stratum are judged. The order of the rows changes nothing.

    Raises
    ------
    InvalidInputError
        If lengths differ, a label is not 0, 1 or NaN, a patient is missing, an inclusion probability is not in (0, 1],
        a stratum is unknown or has fewer candidates than cases, or `random_state` is no whole number from 0 on.

    References
    ----------
    Rubin (1981), The Bayesian Bootstrap, Annals of Statistics 9, 130-134. The pseudo-cases are a Beta prior as for a
    share with few positives: Brown, Cai and DasGupta (2001), Interval Estimation for a Binomial Proportion,
    Statistical Science 16, 101-133.
    """
    scores = as_vector("score", score)
    given = {"score": scores}
    return _figures(y, given, patients, inclusion_probability, strata, stratum_sizes, level, random_state).auc(scores)


def design_weighted_difference(
    y: ArrayLike,
    score_a: ArrayLike,
    score_b: ArrayLike,
    *,
    patients: ArrayLike,
    inclusion_probability: ArrayLike,
    strata: ArrayLike,
    stratum_sizes: StratumSizes,
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
    given = {"score_a": a, "score_b": b}
    figures = _figures(y, given, patients, inclusion_probability, strata, stratum_sizes, level, random_state)
    return figures.difference(a, b)


def _figures(
    y: ArrayLike,
    scores: dict[str, Floats],
    patients: ArrayLike,
    inclusion_probability: ArrayLike,
    strata: ArrayLike,
    stratum_sizes: StratumSizes,
    level: float,
    random_state: int | None,
) -> CandidateFigures:
    check_level(level)
    seed = 0 if random_state is None else whole_number(random_state, name="random_state", least=0)
    labels = as_vector("y", y)
    probability = as_vector("inclusion_probability", inclusion_probability)
    codes, size = _strata(strata, stratum_sizes)
    for name, vector in (*scores.items(), ("inclusion_probability", probability), ("strata", codes)):
        if vector.size != labels.size:
            raise InvalidInputError(
                f"'{name}' has {vector.size} values and 'y' has {labels.size}; give one for each case."
            )
    patient = as_codes(patients, labels.size, name="patients")
    usable_cases(labels, list(scores.values()))
    if bad := probability[~((probability > 0.0) & (probability <= 1.0))].tolist():
        raise InvalidInputError(f"Inclusion probability {bad[0]:g} is not above 0 and at most 1.")
    n_chosen = np.bincount(codes, minlength=size.size)
    if (wrong := np.flatnonzero(~(np.isfinite(size) & (size >= n_chosen)))).size:
        h = int(wrong[0])
        stratum = list(stratum_sizes)[h] if isinstance(stratum_sizes, Mapping) else h
        raise InvalidInputError(
            f"Stratum {stratum} has {size[h]:g} candidates and {n_chosen[h]} cases; give the number of its candidates."
        )
    return CandidateFigures(labels, 1.0 / probability, patient, codes, size, level, seed)


def _strata(strata: ArrayLike, stratum_sizes: StratumSizes) -> tuple[NDArray[np.int64], Floats]:
    """Return the position of each case's stratum, and the sizes of the strata."""
    if isinstance(stratum_sizes, Mapping):
        size = as_vector("stratum_sizes", list(stratum_sizes.values()))
        position = {name: h for h, name in enumerate(stratum_sizes)}
        names = np.asarray(strata).tolist()
        names = names if isinstance(names, list) else [names]
        if unknown := [name for name in names if name not in position]:
            raise InvalidInputError(f"A case has stratum {unknown[0]!r}, which has no size in 'stratum_sizes'.")
        return np.array([position[name] for name in names], dtype=np.int64), size
    size = as_vector("stratum_sizes", stratum_sizes)
    try:
        stratum = as_vector("strata", strata)
    except InvalidInputError as problem:
        raise InvalidInputError(f"{problem} Give 'stratum_sizes' as a dict where strata have names.") from None
    if bad := stratum[~np.isin(stratum, np.arange(size.size))].tolist():
        raise InvalidInputError(
            f"A case has stratum {bad[0]:g}, but there are {size.size} stratum sizes, for strata from 0 on. "
            "Give 'stratum_sizes' as a dict where strata have other names."
        )
    codes = stratum.astype(np.int64)
    if size.size == codes.size > np.unique(codes).size and np.array_equal(size, size[_first_of_stratum(codes)]):
        raise InvalidInputError("'stratum_sizes' repeats a size for each case; give one for each stratum.")
    return codes, size


def _first_of_stratum(codes: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return for each case the first case of its stratum."""
    _, first, inverse = np.unique(codes, return_index=True, return_inverse=True)
    return first[inverse]
