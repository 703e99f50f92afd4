"""Order groups: tasks that are ordered together, such as the labs of one panel."""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components

PHI_THRESHOLD = 0.5
_TASKS_AT_ONCE = 256


def phi_coefficients(decisions: sparse.csc_matrix) -> npt.NDArray[np.float64]:
    """Correlate the decisions of every pair of tasks.

    Parameters
    ----------
    decisions : csc_matrix of shape (n_instances, n_tasks), bool
        Past decisions.

    Returns
    -------
    array of shape (n_tasks, n_tasks)
        Phi coefficients in [-1, 1]; 0 where a task has only one kind of decision.
    """
    return _phi_rows(sparse.csc_array(decisions, dtype=np.int32), 0, decisions.shape[1])


def _phi_rows(counts: sparse.csc_array, first: int, end: int) -> npt.NDArray[np.float64]:
    """Correlate the tasks `first` to `end` - 1 with all."""
    n = counts.shape[0]
    both = (counts[:, first:end].T @ counts).toarray().astype(np.float64)
    single = np.asarray(counts.sum(axis=0), dtype=np.float64).ravel()
    spread = np.sqrt(single * (n - single))
    with np.errstate(divide="ignore", invalid="ignore"):
        phi = (n * both - np.outer(single[first:end], single)) / np.outer(spread[first:end], spread)
    return np.where(np.isfinite(phi), phi, 0.0)


def _linked(decisions: sparse.csc_matrix, threshold: float) -> sparse.csr_array:
    """Mark the pairs of tasks beyond the threshold, some rows at a time: thousands of tasks make large squares."""
    counts = sparse.csc_array(decisions, dtype=np.int32)
    n_tasks = decisions.shape[1]
    rows = [
        sparse.csr_array(np.abs(_phi_rows(counts, first, min(first + _TASKS_AT_ONCE, n_tasks))) > threshold)
        for first in range(0, n_tasks, _TASKS_AT_ONCE)
    ]
    return sparse.csr_array(sparse.vstack(rows, format="csr"))


def order_groups(
    decisions: sparse.csc_matrix, names: Sequence[str], threshold: float = PHI_THRESHOLD
) -> npt.NDArray[np.object_]:
    """Find the connected components of ``|phi| > threshold`` between decisions.

    Parameters
    ----------
    decisions : csc_matrix of shape (n_instances, n_tasks), bool
        Past decisions.
    names : sequence of str, length n_tasks
    threshold : float, default 0.5

    Returns
    -------
    array of str, shape (n_tasks,)
        Name of the group, which is that of its commonest member (the first of equally common ones); "" for a task that
        is alone.
    """
    n_tasks = decisions.shape[1]
    out = np.full(n_tasks, "", dtype=object)
    if n_tasks == 0:
        return out
    _, component = connected_components(_linked(decisions, threshold), directed=False)
    n_positive = np.asarray(decisions.sum(axis=0)).ravel()
    taken: set[str] = set()
    for number in np.unique(component):
        members = np.flatnonzero(component == number)
        if len(members) > 1:
            commonest = names[members[int(np.argmax(n_positive[members]))]]
            name, i = commonest, 2
            while name in taken:
                name, i = f"{commonest} ({i})", i + 1
            taken.add(name)
            out[members] = name
    return out


def edited_groups(
    groups: npt.NDArray[np.object_], keys: Sequence[str], edits: Mapping[str, Sequence[str]]
) -> npt.NDArray[np.object_]:
    """Put tasks into the groups that a site mapping names, whatever was found for them.

    Parameters
    ----------
    groups : array of str, shape (n_tasks,)
    keys : sequence of str, length n_tasks
        Task keys.
    edits : mapping from group name to task keys
        A group named "" takes its tasks out of every group.

    Returns
    -------
    array of str, shape (n_tasks,)
    """
    out = groups.copy()
    for name, members in edits.items():
        for key in members:
            if key in keys:
                out[list(keys).index(key)] = name
    return out
