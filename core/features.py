"""Which features tell decisions apart (Wilcoxon), and how sparse values are standardised by the past alone."""

from dataclasses import dataclass
from typing import Any, Self

import joblib
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from core.errors import InvalidInputError
from core.numerics.compiled import compiled
from core.validation import FloatArray, Matrix, is_sparse, to_csr

_FEATURES_AT_ONCE = 500
HOURS_OF_A_DAY = 24.0


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
    """Return the area under the ROC curve of every feature against every task at once, exact with ties.

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


def wilcoxon_table(
    X: Matrix, decisions: sparse.csr_array, *, n_jobs: int | None = None, first_rows: bool = False
) -> WilcoxonTable:
    """Compute AUC and tie-corrected z of all features against all tasks; see `wilcoxon_auc`.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n_instances, n_features)
    decisions : csr_array of shape (n_instances, n_tasks)
        1.0 where positive.
    n_jobs : int, optional
        Threads, by joblib's rules.
    first_rows : bool
        Let `X` have more rows than `decisions`, which belong to the first ones; spares a copy of these.
    """
    columns = sparse.csc_array(X)
    n, n_tasks = decisions.shape
    if columns.shape[0] < n or (columns.shape[0] > n and not first_rows):
        raise InvalidInputError(f"X has {columns.shape[0]} rows and Y {n}; pass one row of each per instance.")
    if not np.isfinite(columns.data).all():
        broken = np.searchsorted(columns.indptr, np.flatnonzero(~np.isfinite(columns.data))[0], side="right") - 1
        raise InvalidInputError(
            f"Feature {broken} of X holds NaN or infinity; ranks need finite numbers. Clean it first."
        )
    if not decisions.data.all():
        decisions = to_csr(decisions > 0)
    if first_rows and not columns.has_sorted_indices:
        columns = columns.sorted_indices()
    n_features = columns.shape[1]
    auc, zero_rank, tie_term = np.zeros((n_features, n_tasks)), np.zeros(n_features), np.zeros(n_features)
    parts = np.array_split(np.arange(n_features), max(1, n_features // _FEATURES_AT_ONCE))
    joblib.Parallel(n_jobs=n_jobs, require="sharedmem")(
        joblib.delayed(_sum_ranks)(
            columns.indptr,
            columns.indices,
            columns.data,
            decisions.indptr,
            decisions.indices,
            part,
            auc,
            zero_rank,
            tie_term,
        )
        for part in parts
    )
    n_positive = np.asarray(decisions.sum(axis=0)).ravel()
    n_pairs = n_positive * (n - n_positive)
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


@compiled
def _sum_ranks(
    indptr: Any,
    indices: Any,
    data: Any,
    decision_starts: Any,
    decision_tasks: Any,
    features: Any,
    sums: Any,
    zero_rank: Any,
    tie_term: Any,
) -> None:
    """Sum midranks, less that of the zeros, over the positive instances of every task; exact in any order.

    Also writes the midrank of the zeros and sum(t^3 - t) over ties. Ranks are halves of integers, whose sums are exact.
    """
    n = len(decision_starts) - 1
    for feature in features:
        first, end = indptr[feature], indptr[feature + 1]
        while end > first and indices[end - 1] >= n:
            # Rows without decisions; they come last.
            end -= 1
        values, rows = data[first:end], indices[first:end]
        n_negative = (values < 0).sum()
        n_zeros = n - (values != 0).sum()
        zero_rank[feature] = n_negative + (n_zeros + 1) / 2
        ties = float(n_zeros) ** 3 - n_zeros
        is_level = len(values) == 0 or values.min() == values.max()
        order = np.arange(len(values)) if is_level else np.argsort(values)
        start = 0
        while start < len(values):
            value = values[order[start]]
            stop = start + 1
            while stop < len(values) and values[order[stop]] == value:
                stop += 1
            if value != 0:
                count = stop - start
                ties += float(count) ** 3 - count
                # Zeros that are not stored come after the negative values.
                before = start if value < 0 else n - len(values) + start
                relative = before + (count + 1) / 2 - zero_rank[feature]
                for place in range(start, stop):
                    row = rows[order[place]]
                    for entry in range(decision_starts[row], decision_starts[row + 1]):
                        sums[feature, decision_tasks[entry]] += relative
            start = stop
        tie_term[feature] = ties


@compiled
def _count_and_sum(columns: Any, values: Any, n_columns: int) -> Any:
    """Count and sum the entries of each column, whatever their order."""
    counts, sums = np.zeros(n_columns, dtype=np.int64), np.zeros(n_columns)
    for i in range(len(columns)):
        counts[columns[i]] += 1
        sums[columns[i]] += values[i]
    return counts, sums


@compiled
def _squares_about(columns: Any, values: Any, means: Any) -> Any:
    """Sum of squared distances of the entries of each column from its mean."""
    squares = np.zeros(len(means))
    for i in range(len(columns)):
        squares[columns[i]] += (values[i] - means[columns[i]]) ** 2
    return squares


@compiled
def _standardise(data: Any, columns: Any, centers: Any, factors: Any, clip: Any) -> None:
    """Centre, scale and clip in place."""
    for i in range(len(data)):
        data[i] = min(max((data[i] - centers[columns[i]]) * factors[columns[i]], -clip), clip)


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
        past = sparse.csr_array(X)
        n, n_features = past.shape
        flags = self._per_feature(is_flag, n_features, "is_flag")
        self._elapsed = (
            np.zeros(n_features, dtype=bool)
            if is_elapsed is None
            else self._per_feature(is_elapsed, n_features, "is_elapsed")
        )
        flags = flags | self._elapsed
        self._require_finite(past.data)
        values = self._compressed(past.data, past.indices)
        n_stored, sums = _count_and_sum(past.indices, values, n_features)
        n_counted = np.where(flags, n, n_stored)
        mean = np.divide(sums, n_counted, out=np.zeros(n_features), where=n_counted > 0)
        squares = _squares_about(past.indices, values, mean)
        squares += np.where(flags, (n - n_stored) * mean**2, 0.0)
        deviation = np.sqrt(np.divide(squares, n_counted, out=np.zeros(n_features), where=n_counted > 0))
        self.center_ = np.where(flags, 0.0, mean)
        self.scale_ = np.where(deviation > 1e-6 * np.maximum(np.abs(mean), 1e-12), deviation, 0.0)
        return self

    @property
    def is_elapsed_(self) -> NDArray[np.bool_]:
        """Which features are elapsed times."""
        return self._elapsed

    @classmethod
    def restored(cls, clip: float, center: ArrayLike, scale: ArrayLike, is_elapsed: ArrayLike) -> Self:
        """Make a standardizer that was fitted before out of its attributes."""
        standardizer = cls(clip=clip)
        standardizer.center_, standardizer.scale_ = np.asarray(center), np.asarray(scale)
        standardizer._elapsed = np.asarray(is_elapsed, dtype=bool)
        return standardizer

    @staticmethod
    def _require_finite(data: NDArray[Any]) -> None:
        if not np.isfinite(data).all():
            raise InvalidInputError("X holds NaN or infinity; leave unmeasured values out of the sparse matrix.")

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
        self._require_finite(matrix.data)
        inverse = np.divide(1.0, self.scale_, out=np.zeros_like(self.scale_), where=self.scale_ > 0)
        data = self._compressed(matrix.data, matrix.indices)
        centers, factors = self.center_.astype(np.float32), inverse.astype(np.float32)
        _standardise(data, matrix.indices, centers, factors, np.float32(self.clip))
        return sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
