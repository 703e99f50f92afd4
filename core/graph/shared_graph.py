"""One graph for all tasks: the cosine of grouped, weighted features, and soft labels of every task from one solve.

The paper solves one graph for each task, eq. (had:sle): (L + (c + g) I) l = c y. With the regulariser L in the place of
the inverse of a similarity matrix K, one factorisation of K serves the decisions of all tasks.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import solve_triangular

from core.errors import InvalidInputError
from core.numerics.compiled import combine_rows, compiled
from core.validation import FloatArray, IntArray

MIN_STORED: Final = 5
"""A feature stored in fewer past rows tells nothing that another patient could confirm."""
_SMALLEST_EIGENVALUE: Final = 1e-6
"""Relative to the largest: directions below it are rounding."""
_SMALLEST_LENGTH: Final = 1e-9
_ROWS_AT_ONCE: Final = 1000
_MEMBERS_AT_ONCE: Final = 250
_ENTRIES_AT_ONCE: Final = 1_000_000
_INTERCEPT: Final = 100.0
"""Size of the constant column: so large that the ridge does not hold back a task's mean."""


@dataclass(frozen=True)
class WeightedCosine:
    """The similarity of the shared graph: cosine of features that are centred and weighted by group."""

    columns: NDArray[np.int32]  # shape (n_used,): features that are used
    factors: FloatArray  # shape (n_used,): what a feature is multiplied by
    center: FloatArray  # shape (n_used,): past means of the features

    @classmethod
    def fit(
        cls, past: sparse.csr_array, feature_groups: NDArray[Any], weights: Mapping[str, float]
    ) -> "WeightedCosine":
        """Learn means and sizes of groups from past instances; parameters and errors as those of `CosineMap.fit`."""
        n_past, n_features = past.shape
        n_stored, mean, squares = np.zeros(n_features, dtype=np.int64), np.zeros(n_features), np.zeros(n_features)
        for begin in range(0, past.nnz, _ENTRIES_AT_ONCE):
            part = slice(begin, begin + _ENTRIES_AT_ONCE)
            columns, values = past.indices[part], past.data[part].astype(np.float64)
            n_stored += np.bincount(columns, minlength=n_features)
            mean += np.bincount(columns, values, n_features) / n_past
            squares += np.bincount(columns, values**2, n_features) / n_past
        variance = squares - mean**2
        factors = np.zeros(n_features)
        for group, weight in weights.items():
            chosen = (feature_groups == group) & (n_stored >= MIN_STORED)
            size = float(variance[chosen].sum())
            if size > 0:
                factors[chosen] = np.sqrt(weight / size)
        used = np.flatnonzero(factors).astype(np.int32)
        if len(used) == 0:
            raise InvalidInputError(
                f"No feature is stored in {MIN_STORED} past instances and varies, so that no two instances can be "
                "compared. Import more records."
            )
        return cls(used, factors[used], mean[used])

    def lengths(self, rows: sparse.csr_array) -> FloatArray:
        """Return the length of each standardised row, centred and weighted; shape (n,)."""
        squared, across = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
        squared[self.columns] = self.factors**2
        across[self.columns] = 2 * self.factors**2 * self.center
        center = self.center * self.factors
        return np.asarray(np.sqrt(np.maximum((rows**2) @ squared - rows @ across + center @ center, 0.0)))

    def similarities(self, rows: sparse.csr_array, lengths: FloatArray, x: sparse.csr_array) -> FloatArray:
        """Return the cosines, in [-1, 1], of standardised rows with one instance.

        They are 0 where one of the two does not differ from the past mean. The lengths of the rows are those of
        `lengths`.
        """
        own = x[[0]].toarray()[0][self.columns].astype(np.float64)
        point = (own - self.center) * self.factors
        along = np.zeros(rows.shape[1])
        along[self.columns] = self.factors * point
        products = rows @ along - (self.center * self.factors) @ point
        scale = lengths * np.sqrt(point @ point)
        found = np.divide(products, scale, out=np.zeros(len(products)), where=scale > _SMALLEST_LENGTH)
        return np.asarray(np.clip(found, -1.0, 1.0))


@dataclass(frozen=True)
class CosineMap:
    """Coordinates whose inner products are the similarities of `WeightedCosine`; exact on the landmarks."""

    # `columns`, `factors` and `center`: shape (n_used,): as in `WeightedCosine`.
    columns: NDArray[np.int32]
    factors: NDArray[np.float32]
    center: NDArray[np.float32]
    landmarks: NDArray[np.float32]  # shape (n_used, n_landmarks): centred, multiplied, and of length 1
    projection: NDArray[np.float32]  # shape (n_landmarks, n_coordinates)

    @classmethod
    def fit(
        cls,
        past: sparse.csr_array,
        feature_groups: NDArray[Any],
        weights: Mapping[str, float],
        n_landmarks: int,
        random: np.random.Generator,
    ) -> "CosineMap":
        """Learn means, sizes of groups and landmarks from past instances, standardised.

        Group g of features is multiplied by sqrt(w_g / mean squared length of its centred rows), so that w_g is its
        share of a mean squared length of all; a group without a weight is left out. All past rows are landmarks where
        there are no more than wanted. Raise InvalidInputError if no feature of a weighted group varies.
        """
        n_past = past.shape[0]
        cosine = WeightedCosine.fit(past, feature_groups, weights)
        used, scales, center = cosine.columns, cosine.factors, cosine.center
        rows = np.arange(n_past)
        if n_past > n_landmarks:
            rows = np.sort(random.choice(n_past, n_landmarks, replace=False))
        dense = (past[rows][:, used].toarray().astype(np.float64) - center) * scales
        lengths = np.linalg.norm(dense, axis=1, keepdims=True)
        dense = np.divide(dense, lengths, out=np.zeros_like(dense), where=lengths > 0)
        sizes, directions = np.linalg.eigh(dense @ dense.T)
        kept = sizes > _SMALLEST_EIGENVALUE * sizes[-1]
        projection = directions[:, kept] / np.sqrt(sizes[kept])
        single = np.float32
        return cls(
            used,
            scales.astype(single),
            center.astype(single),
            np.ascontiguousarray(dense.T, dtype=single),
            projection.astype(single),
        )

    def transform(self, rows: sparse.csr_array, n_jobs: int | None = None) -> NDArray[np.float32]:
        """Return coordinates of shape (n, n_coordinates) of standardised instances; each by itself."""
        place = np.full(rows.shape[1], -1, dtype=np.int32)
        place[self.columns] = np.arange(len(self.columns), dtype=np.int32)
        center = (self.center * self.factors).astype(np.float32)
        offset = center @ self.landmarks
        squared = float(center @ center)

        found = np.empty((rows.shape[0], self.projection.shape[1]), dtype=np.float32)

        def part(begin: int) -> None:
            chosen = rows[begin : begin + _ROWS_AT_ONCE]
            similarity = np.empty((chosen.shape[0], self.landmarks.shape[1]), dtype=np.float32)
            _cosines(
                chosen.indptr,
                chosen.indices,
                chosen.data.astype(np.float32),
                place,
                self.factors,
                center,
                squared,
                self.landmarks,
                offset,
                similarity,
            )
            np.matmul(similarity, self.projection, out=found[begin : begin + _ROWS_AT_ONCE])

        parallel = joblib.Parallel(n_jobs=n_jobs, require="sharedmem")
        parallel(joblib.delayed(part)(begin) for begin in range(0, rows.shape[0], _ROWS_AT_ONCE))
        return found

    def arrays(self, prefix: str) -> dict[str, NDArray[Any]]:
        """Return the map as arrays fit for an .npz file."""
        names = ("columns", "factors", "center", "landmarks", "projection")
        return {f"{prefix}_{name}": getattr(self, name) for name in names}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, NDArray[Any]], prefix: str) -> "CosineMap":
        """Read back what `arrays` gave."""
        names = ("columns", "factors", "center", "landmarks", "projection")
        return cls(*(arrays[f"{prefix}_{name}"] for name in names))


@compiled
def _cosines(
    indptr: Any,
    indices: Any,
    data: Any,
    place: Any,
    factors: Any,
    center: Any,
    squared: Any,
    landmarks: Any,
    offset: Any,
    similarity: Any,
) -> None:
    """Write the cosines of sparse rows, centred only in thought, with the landmarks."""
    rows, values = np.empty(len(factors), dtype=np.int32), np.empty(len(factors), dtype=np.float32)
    for i in range(len(similarity)):
        n, length = 0, squared
        for entry in range(indptr[i], indptr[i + 1]):
            row = place[indices[entry]]
            if row >= 0:
                value = data[entry] * factors[row]
                rows[n], values[n] = row, value
                length += value * (value - 2 * center[row])
                n += 1
        combine_rows(landmarks, rows[:n], values[:n], similarity[i])
        scale = 1 / np.sqrt(length) if length > 1e-12 else 0.0
        for j in range(similarity.shape[1]):
            similarity[i, j] = (similarity[i, j] - offset[j]) * np.float32(scale)


class Rows(Protocol):
    """A matrix that is asked for a few of its rows at a time, and may make them then."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of rows and columns."""
        ...

    def __getitem__(self, rows: Any, /) -> NDArray[Any]: ...


@dataclass(frozen=True)
class SharedSolution:
    """Soft labels of all tasks by one graph."""

    # Shape (n_past + n_recent, n_tasks): expected targets, found without the targets of the instance's own group.
    soft_labels: NDArray[np.float32]
    # Shape (n_past + n_recent,): 1 - the share of the variance at the instance that other groups leave, in [0, 1]; 0 =
    # isolated.
    support: NDArray[np.float32]
    # Shape (n_coordinates + 1, n_tasks): of the coordinates and of the constant, for later instances.
    coefficients: NDArray[np.float32]
    # Shape (n_coordinates + 1, n_coordinates + 1): lower Cholesky factor of the system, for the support of later
    # instances.
    root: NDArray[np.float32]
    penalty: float  # ridge n


def solve_shared_graph(
    coordinates: Rows,
    targets: Rows,
    groups: IntArray,
    *,
    ridge: float,
    keep: Callable[[IntArray, NDArray[np.float32]], None] | None = None,
    n_jobs: int | None = None,
) -> SharedSolution:
    """Solve (K^-1 + 1 / (ridge n)) l = y / (ridge n) for all tasks at once, each group's own targets left out.

    The paper's eq. (had:sle) with the regulariser K^-1 in the place of the Laplacian and c = 1 / (ridge n), n the
    number of past instances. A large constant in K leaves the tasks' means free. With M = (K + ridge n)^-1 and a = M y,
    a group P is left out in closed form: l_P = y_P - M_PP^-1 a_P.

    K = coordinates coordinates' (see `CosineMap`), past rows first; targets have shape (n_past, n_tasks), groups, which
    are patients, shape (n_past + n_recent,).

    With `keep`, which is called from threads with a few rows at a time and their soft labels, the solution has none.
    Those rows of coordinates and targets are not read again.
    """
    n_past, n_tasks = targets.shape
    system, right = _normal_equations(coordinates, targets)
    penalty = ridge * n_past
    system[np.diag_indices(len(system))] += penalty
    root = np.linalg.cholesky(system)
    coefficients = solve_triangular(root.T, solve_triangular(root, right, lower=True), lower=False)
    del system, right
    turned = coefficients.astype(np.float32)
    soft_labels = np.empty((0 if keep else len(groups), n_tasks), dtype=np.float32)
    support = np.empty(len(groups), dtype=np.float32)

    def leave_out(members: IntArray, parts: list[slice]) -> None:
        rows = coordinates[members]
        expected = soft_labels_of(rows, turned)
        rotated = solve_triangular(root, _with_constant(rows).T, lower=True).T
        left = np.einsum("ij,ij->i", rotated, rotated)
        for part in parts:
            _leave_out(part, members, rotated, targets, expected, left)
        (keep or soft_labels.__setitem__)(members, expected)
        support[members] = _support(left, penalty, ridge)

    in_threads = joblib.Parallel(n_jobs=n_jobs, require="sharedmem")
    in_threads(joblib.delayed(leave_out)(*block) for block in _blocks_of_groups(groups))
    return SharedSolution(soft_labels, support, turned, root.astype(np.float32), penalty)


def _leave_out(
    part: slice,
    members: IntArray,
    rotated: FloatArray,
    targets: Rows,
    expected: NDArray[np.float32],
    left: FloatArray,
) -> None:
    """Change what is expected of a group, and its variance, to what they are without the group's targets."""
    n_past, n_tasks = targets.shape
    own = members[part] < n_past
    past = members[part][own]
    if len(past) == 0:
        return
    rows, found = rotated[part], expected[part]
    mine, y = rows[own], targets[past]
    rest = np.eye(len(past)) - mine @ mine.T
    solved = np.linalg.solve(rest, np.hstack((y - found[own], mine @ rows.T)))
    # What is left of the variance when the group itself is unknown: x' (S - X_P' X_P)^-1 x.
    left[part] += np.einsum("ij,ji->i", rows @ mine.T, solved[:, n_tasks:])
    solved = solved[:, :n_tasks]
    found[own] = y - solved
    if not own.all():
        found[~own] -= rows[~own] @ (mine.T @ solved)


def _support(variance: FloatArray, penalty: float, ridge: float) -> FloatArray:
    """Return 1 - the share of the variance that is left, without that of the constant, which is about the ridge."""
    return np.clip(1 + ridge - penalty * variance, 0.0, 1.0)


def _blocks_of_groups(groups: IntArray) -> Iterator[tuple[IntArray, list[slice]]]:
    """Yield rows of whole groups, a few groups at a time, and where each group lies among them."""
    order = np.argsort(groups, kind="stable")
    _, starts = np.unique(groups[order], return_index=True)
    bounds = np.append(starts, len(order))
    first = 0
    while first < len(starts):
        last = max(first + 1, int(np.searchsorted(bounds, bounds[first] + _MEMBERS_AT_ONCE, side="right")) - 1)
        begin = bounds[first]
        yield order[begin : bounds[last]], [slice(bounds[i] - begin, bounds[i + 1] - begin) for i in range(first, last)]
        first = last


def soft_labels_of(coordinates: NDArray[np.float32], coefficients: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return soft labels of new instances by the coefficients of a solution; shape (n, n_tasks)."""
    return np.asarray(coordinates @ coefficients[:-1] + np.float32(_INTERCEPT) * coefficients[-1])


def support_of(
    coordinates: NDArray[np.float32], root: NDArray[np.float32], penalty: float, ridge: float
) -> NDArray[np.float32]:
    """Return the support of new instances by the root and penalty of a solution; shape (n,)."""
    rotated = solve_triangular(root.astype(np.float64), _with_constant(coordinates).T, lower=True)
    return _support(np.einsum("ij,ij->j", rotated, rotated), penalty, ridge).astype(np.float32)


def _with_constant(coordinates: NDArray[np.float32]) -> FloatArray:
    return np.hstack((coordinates.astype(np.float64), np.full((len(coordinates), 1), _INTERCEPT)))


def _normal_equations(coordinates: Rows, targets: Rows) -> tuple[FloatArray, FloatArray]:
    """Return X' X and X' y of the past, a few rows at a time; products in float32, sums in float64."""
    n_past, n_tasks = targets.shape
    size = coordinates.shape[1] + 1
    system, right = np.zeros((size, size)), np.zeros((size, n_tasks))
    for begin in range(0, n_past, _ROWS_AT_ONCE):
        end = min(begin + _ROWS_AT_ONCE, n_past)
        rows, y = coordinates[begin:end], targets[begin:end]
        system[:-1, :-1] += rows.T @ rows
        right[:-1] += rows.T @ y.astype(np.float32)
        sums = _INTERCEPT * rows.sum(axis=0, dtype=np.float64)
        system[-1, :-1] += sums
        system[:-1, -1] += sums
        right[-1] += _INTERCEPT * y.sum(axis=0, dtype=np.float64)
    system[-1, -1] = _INTERCEPT**2 * n_past
    return system, right
