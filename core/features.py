"""Which features tell decisions apart (Wilcoxon), and how sparse values are standardised by the past alone."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from core.errors import InvalidInputError
from core.validation import FloatArray, Matrix, is_sparse, to_csr

_TASKS_AT_ONCE = 256


@dataclass(frozen=True)
class WilcoxonTable:
    """AUC and z of every feature against every task.

    Parameters
    ----------
    auc : float array of shape (n_features, n_tasks)
        Chance that a positive instance has the larger value, ties half; 0.5 where a task has one decision only.
    z : float array of shape (n_features, n_tasks)
        AUC minus 0.5 in standard errors under "no difference", corrected for ties; 0 where it is not defined.
    """

    auc: FloatArray
    z: FloatArray


def wilcoxon_auc(X: Matrix, Y: Matrix) -> FloatArray:
    """Area under the ROC curve of every feature against every task at once, exact with ties.

    Entries of a sparse `X` that are not stored count as 0. Ranks are taken relative to the block of zeros, so they
    are sparse as well, and one sparse product of ranks and decisions gives all sums of ranks.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_instances, n_features)
    Y : array-like or sparse matrix of shape (n_instances, n_tasks)
        Decisions: positive where > 0.

    Returns
    -------
    ndarray of shape (n_features, n_tasks)
        0.5 = the feature says nothing; NaN where a task has one decision only.

    References
    ----------
    The paper, "Parameters for the graph-based algorithms" (univariate Wilcoxon score, Hanley and McNeil 1982).

    Examples
    --------
    >>> wilcoxon_auc([[1.0], [2.0], [3.0]], [[0], [0], [1]])
    array([[1.]])
    """
    decisions = positive_decisions(Y)
    table = wilcoxon_table(X, decisions)
    n_positive = np.asarray(decisions.sum(axis=0)).ravel()
    table.auc[:, (n_positive == 0) | (n_positive == decisions.shape[0])] = np.nan
    return table.auc


def positive_decisions(Y: Matrix) -> sparse.csr_array:
    """Return decisions as a CSR array of ones where positive."""
    if not is_sparse(Y):
        dense = np.asarray(Y)
        Y = dense[:, None] if dense.ndim == 1 else dense
    return to_csr(sparse.csr_array(Y) > 0)


def wilcoxon_table(X: Matrix, decisions: sparse.csr_array) -> WilcoxonTable:
    """Compute AUC and tie-corrected z of all features against all tasks; see `wilcoxon_auc`.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_instances, n_features)
    decisions : csr_array of shape (n_instances, n_tasks)
        1.0 where positive.
    """
    columns = sparse.csc_array(X)
    n, n_tasks = decisions.shape
    if columns.shape[0] != n:
        raise InvalidInputError(f"X has {columns.shape[0]} rows and Y {n}; pass one row of each per instance.")
    ranks, zero_rank, tie_term = _ranks_relative_to_zeros(columns)
    n_positive = np.asarray(decisions.sum(axis=0)).ravel()
    n_pairs = n_positive * (n - n_positive)
    by_feature = sparse.csr_array(ranks.T)
    auc = np.empty((columns.shape[1], n_tasks))
    for start in range(0, n_tasks, _TASKS_AT_ONCE):
        part = slice(start, min(start + _TASKS_AT_ONCE, n_tasks))
        auc[:, part] = (by_feature @ sparse.csr_array(decisions[:, part])).toarray()
    auc += zero_rank[:, None] * n_positive - n_positive * (n_positive + 1) / 2
    defined = n_pairs > 0
    auc[:, defined] /= n_pairs[defined]
    auc[:, ~defined] = 0.5
    # Var(U) = n+ n- / 12 (n + 1 - sum(t^3 - t) / (n (n - 1))): a factor of the task times a factor of the feature.
    spread = np.sqrt(np.maximum(n + 1 - tie_term / max(n * (n - 1), 1), 0.0) / 12)
    z = auc - 0.5
    z *= np.sqrt(n_pairs)
    np.divide(z, spread[:, None], out=z, where=spread[:, None] > 1e-9)
    z[spread <= 1e-9] = 0.0
    return WilcoxonTable(auc, z)


def _ranks_relative_to_zeros(columns: sparse.csc_array) -> tuple[sparse.csc_array, FloatArray, FloatArray]:
    """Midranks of stored entries minus the midrank of the zeros, that midrank, and sum(t^3 - t) over ties."""
    n, n_features = columns.shape
    ranks = np.zeros(len(columns.data))
    zero_rank = np.empty(n_features)
    tie_term = np.empty(n_features)
    indptr = columns.indptr
    for j in range(n_features):
        part = slice(indptr[j], indptr[j + 1])
        values = columns.data[part]
        if not np.isfinite(values).all():
            raise InvalidInputError(
                f"Feature {j} of X holds NaN or infinity; ranks need finite numbers. Clean it first."
            )
        order = np.argsort(values)
        ordered = values[order]
        starts = (
            np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(values) else np.zeros(0, dtype=np.int64)
        )
        levels = ordered[starts]
        counts = np.diff(np.r_[starts, len(values)]).astype(np.float64)
        n_implicit = float(n - len(values))
        at_zero = levels == 0
        n_zeros = n_implicit + counts[at_zero].sum()
        below = np.cumsum(counts) - counts + np.where(levels > 0, n_implicit, 0.0)
        zero_rank[j] = counts[levels < 0].sum() + (n_zeros + 1) / 2
        midrank = below + (counts + 1) / 2
        midrank[at_zero] = zero_rank[j]
        relative = np.empty(len(values))
        relative[order] = np.repeat(midrank - zero_rank[j], counts.astype(np.int64))
        ranks[part] = relative
        ties = np.r_[counts[~at_zero], n_zeros]
        tie_term[j] = (ties**3 - ties).sum()
    relative_ranks = sparse.csc_array((ranks, columns.indices, indptr), shape=columns.shape)
    return relative_ranks, zero_rank, tie_term


HOURS_OF_A_DAY = 24.0


@dataclass
class SparseStandardizer:
    """Brings sparse features to comparable size, learned on past instances only; what is not stored stays 0.

    Every stored number is compressed first, because hours, counts and many lab values have long tails in which a few
    instances would own the spread: x becomes sign(x) log(1 + |x|), and an *elapsed time* of h hours becomes the recency
    1 / (1 + h / 24). Both keep the order of values. Then:

    A *value* (a lab result) is stored where it was measured: stored entries become (value - mean) / standard deviation
    of the stored past entries. What was not measured thereby counts as the past mean; that it was not measured is told
    by its own "measured" flag. A *flag or count* means 0 where it is not stored, and an elapsed time "never", which is
    recency 0: both are divided by their standard deviation over all past instances and not centred, because a shift
    changes no distance and would fill the matrix. All are clipped to +-`clip`.

    Parameters
    ----------
    clip : float
        Largest absolute standardised value.

    Attributes
    ----------
    center_, scale_ : float arrays of shape (n_features,)
        Of compressed values, learned on the past; a feature without spread, or never stored, gets scale 0 and vanishes.
    """

    clip: float = 2.5

    def fit(self, X: Matrix, is_flag: ArrayLike, is_elapsed: ArrayLike | None = None) -> Self:
        """Learn centre and scale of every feature.

        Parameters
        ----------
        X : sparse matrix of shape (n_past, n_features)
        is_flag : bool array of shape (n_features,)
            True where "not stored" means 0.
        is_elapsed : bool array of shape (n_features,), optional
            True for hours since something happened, where "not stored" means never.
        """
        past = sparse.csc_array(X)
        n, n_features = past.shape
        flags = self._per_feature(is_flag, n_features, "is_flag")
        self._elapsed = (
            np.zeros(n_features, dtype=bool)
            if is_elapsed is None
            else self._per_feature(is_elapsed, n_features, "is_elapsed")
        )
        flags = flags | self._elapsed
        if not np.isfinite(past.data).all():
            raise InvalidInputError("X holds NaN or infinity; leave unmeasured values out of the sparse matrix.")
        column = np.repeat(np.arange(n_features), np.diff(past.indptr))
        values = self._compressed(past.data, column).astype(np.float64)
        n_stored = np.bincount(column, minlength=n_features)
        sums = np.bincount(column, weights=values, minlength=n_features)
        n_counted = np.where(flags, n, n_stored)
        mean = np.divide(sums, n_counted, out=np.zeros(n_features), where=n_counted > 0)
        squares = np.bincount(column, weights=(values - mean[column]) ** 2, minlength=n_features)
        squares += np.where(flags, (n - n_stored) * mean**2, 0.0)
        deviation = np.sqrt(np.divide(squares, n_counted, out=np.zeros(n_features), where=n_counted > 0))
        self.center_ = np.where(flags, 0.0, mean)
        self.scale_ = np.where(deviation > 1e-6 * np.maximum(np.abs(mean), 1e-12), deviation, 0.0)
        return self

    @staticmethod
    def _per_feature(values: ArrayLike, n_features: int, name: str) -> NDArray[np.bool_]:
        array = np.asarray(values, dtype=bool)
        if array.shape != (n_features,):
            raise InvalidInputError(
                f"{name} has shape {array.shape}; one entry for each of {n_features} features is needed."
            )
        return array

    def _compressed(self, data: NDArray[Any], column: NDArray[Any]) -> NDArray[np.float32]:
        values = data.astype(np.float32)
        compressed = np.log1p(np.abs(values))
        np.copysign(compressed, values, out=compressed)
        if self._elapsed.any():
            elapsed = self._elapsed[column]
            compressed[elapsed] = 1 / (1 + np.maximum(values[elapsed], 0) / np.float32(HOURS_OF_A_DAY))
        return np.asarray(compressed)

    def transform(self, X: Matrix) -> sparse.csr_array:
        """Return standardised features as float32 CSR of the same sparsity."""
        matrix: Any = sparse.csr_array(X)
        inverse = np.divide(1.0, self.scale_, out=np.zeros_like(self.scale_), where=self.scale_ > 0)
        data = self._compressed(matrix.data, matrix.indices)
        data -= self.center_.astype(np.float32)[matrix.indices]
        data *= inverse.astype(np.float32)[matrix.indices]
        np.clip(data, -self.clip, self.clip, out=data)
        return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
