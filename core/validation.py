"""What arrays from outside must be before any number is computed from them; refusals name rule, value, next step."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from core.errors import InvalidGraphError, InvalidInputError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
Matrix: TypeAlias = Any
"""A dense array-like or a SciPy sparse matrix of shape (n_instances, n_features)."""

ASYMMETRY_TOLERANCE = 1e-10


def is_sparse(matrix: Any) -> bool:
    """Return whether a matrix is sparse (a plain bool: it narrows no type)."""
    return bool(sparse.issparse(matrix))


def to_csr(matrix: Any) -> sparse.csr_array:
    """Return any matrix as a float64 CSR array of two dimensions."""
    converted: Any = sparse.csr_array(matrix, dtype=np.float64)
    return converted  # type: ignore[no-any-return]


def as_finite_matrix(X: Matrix) -> Any:
    """Return `X` as a two-dimensional float64 array or CSR array, refusing values that are not finite.

    Raise InvalidInputError when `X` is not two-dimensional, not numeric, empty, or holds NaN or infinity.
    """
    if is_sparse(X):
        matrix: Any = to_csr(X)
        matrix.sum_duplicates()
        values = matrix.data
    else:
        matrix = _as_float_array(X)
        if matrix.ndim != 2:
            raise InvalidInputError(
                f"X has {matrix.ndim} dimension(s); a matrix of shape (n_instances, n_features) is needed. "
                "Reshape your data: one row for each instance, one column for each feature."
            )
        values = matrix
    if min(matrix.shape) == 0:
        raise InvalidInputError(
            f"X is empty: {matrix.shape[0]} instance(s) and {matrix.shape[1]} feature(s) (shape={matrix.shape}) "
            "while a minimum of 1 is required."
        )
    n_bad = int(values.size - np.count_nonzero(np.isfinite(values)))
    if n_bad:
        raise InvalidInputError(
            f"X holds {n_bad} value(s) that are NaN or infinity; every feature must be a finite number. "
            "Leave unmeasured entries out of a sparse matrix, or impute them beside a 'measured' flag."
        )
    return matrix


def _as_float_array(X: ArrayLike) -> FloatArray:
    array = np.asarray(X)
    if np.iscomplexobj(array):
        raise InvalidInputError("Complex data not supported: X holds complex numbers; features must be real.")
    try:
        return np.ascontiguousarray(array, dtype=np.float64)
    except ValueError as problem:
        raise InvalidInputError(f"X holds something that is not a number: {problem}. Encode it first.") from problem


def as_weights(values: ArrayLike, n: int, *, name: str, allow_zero: bool = True) -> FloatArray:
    """Return `n` finite weights that are not negative (or positive); a single number stands for all of them."""
    weights = np.asarray(values, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise InvalidInputError(f"{name} has shape {weights.shape}; one number, or {n} of them, are needed.")
    if not np.isfinite(weights).all() or (weights < 0).any() or (not allow_zero and (weights == 0).any()):
        rule = "not negative" if allow_zero else "positive"
        raise InvalidInputError(f"{name} must be finite and {rule}; the smallest is {weights.min()}. Correct it.")
    return weights


def whole_number(value: object, *, name: str, least: int) -> int:
    """Return a whole number from `least` on; refuse anything else, also 2.0 and True."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InvalidInputError(f"'{name}' is {value!r}; give a whole number from {least} on.")
    return int(value)


def as_codes(identifiers: ArrayLike, n: int, *, name: str) -> IntArray:
    """Return codes 0, 1, ... of `n` identifiers in their sorted order.

    Raise InvalidInputError when the length is not `n`, an identifier is missing, or text and numbers are mixed.
    """
    array = np.asarray(identifiers)
    if array.shape != (n,):
        raise InvalidInputError(f"'{name}' has shape {array.shape}; give one entry for each of {n} cases.")
    if array.dtype.kind == "f":
        missing = np.isnan(array)
    elif array.dtype == object:
        missing = np.array([not isinstance(one, str) and str(one) in _MISSING for one in array], dtype=bool)
    else:
        missing = np.zeros(n, dtype=bool)
    if missing.any():
        raise InvalidInputError(
            f"Entry {int(missing.argmax())} of '{name}' is missing. Cases of unknown patients cannot be told apart: "
            "leave them out, or give each a name of its own."
        )
    if array.dtype.kind in "iu" and n and (reach := int(array.max()) - (least := int(array.min()))) < 4 * n:
        there = np.zeros(reach + 1, dtype=bool)  # ten times as fast as sorting
        there[array - least] = True
        codes: IntArray = (np.cumsum(there) - 1)[array - least]
        return codes
    try:
        return np.unique(array, return_inverse=True)[1].astype(np.int64)
    except TypeError:
        raise InvalidInputError(f"'{name}' mixes text and numbers. Write all of them in one way.") from None


_MISSING = frozenset({"None", "nan", "<NA>", "NaT"})
"""How values that stand for nothing are written, in NumPy and pandas."""


def as_decisions(y: ArrayLike, *, n: int | None = None) -> FloatArray:
    """Return decisions as -1.0 and +1.0; accepts booleans, and for nodes mean labels inside [-1, 1].

    Raise InvalidInputError when a value lies outside [-1, 1], is not finite, or the length is not `n`.
    """
    decisions = np.asarray(y)
    if decisions.ndim != 1 or (n is not None and len(decisions) != n):
        raise InvalidInputError(f"y has shape {decisions.shape}; one decision for each instance, ({n},), is needed.")
    if decisions.dtype == bool:
        return np.where(decisions, 1.0, -1.0)
    decisions = np.asarray(decisions, dtype=np.float64)
    if not np.isfinite(decisions).all() or (np.abs(decisions) > 1).any():
        raise InvalidInputError("y must lie in [-1, 1] (-1 = not taken, +1 = taken). Recode the decisions.")
    return decisions


def require_both_decisions(y: FloatArray, *, fewest: int = 1) -> None:
    """Refuse decisions that are all the same, or of which one kind is rarer than a method needs."""
    if len(np.unique(np.sign(y))) < 2:
        raise InvalidInputError(
            "y holds one class only; decisions of both kinds are needed to say which are unusual. "
            "Leave this task out or take a longer past."
        )
    if n_of_rarer(y) < fewest:
        raise InvalidInputError(
            f"y holds {n_of_rarer(y)} of its rarer decision; this method needs {fewest} of each. "
            "Leave this task out or take a longer past."
        )


def n_of_rarer(y: FloatArray) -> int:
    """Count the rarer of the decisions -1 and +1 in an array of shape (n,); 0 when they are all the same."""
    return int(min((y > 0).sum(), (y <= 0).sum()))


def as_similarity(similarity: Matrix) -> sparse.csr_array:
    """Return a similarity matrix as CSR float64 without self edges, refusing what is not a similarity graph.

    Raise InvalidGraphError when the matrix is not square, not symmetric, or holds negative or non-finite weights.
    """
    graph: Any = to_csr(similarity)
    if graph.ndim != 2 or graph.shape[0] != graph.shape[1]:
        raise InvalidGraphError(
            f"The similarity matrix has shape {graph.shape}; it must be square. Pass one row per node."
        )
    if not np.isfinite(graph.data).all():
        raise InvalidGraphError("The similarity matrix holds NaN or infinity; check the features it was computed from.")
    if graph.nnz and graph.data.min() < 0:
        raise InvalidGraphError(
            f"The similarity matrix holds a negative weight ({graph.data.min():g}); similarities are 0 or more. "
            "Use exp(-distance^2 / scale) or clip at 0."
        )
    asymmetry = abs(graph - graph.T)
    worst = float(asymmetry.max()) if asymmetry.nnz else 0.0
    if worst > ASYMMETRY_TOLERANCE * max(float(graph.max()) if graph.nnz else 0.0, 1e-300):
        raise InvalidGraphError(
            f"The similarity matrix is not symmetric (largest difference {worst:g}); "
            "symmetrise it, for example by the larger of w_ij and w_ji."
        )
    if graph.diagonal().any():
        # A self edge says nothing about the neighbourhood, and cancels in the Laplacian.
        graph = sparse.csr_array(graph - sparse.diags_array(graph.diagonal()))
        graph.eliminate_zeros()
    return graph  # type: ignore[no-any-return]
