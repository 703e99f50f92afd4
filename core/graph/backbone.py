"""The backbone: a few nodes that stand for all past instances, with multiplicities set back to the empirical prior."""

from dataclasses import dataclass

import numpy as np

from core.errors import InvalidInputError
from core.validation import FloatArray, IntArray


@dataclass(frozen=True)
class SampledNodes:
    """Past instances that stand for all past instances."""

    rows: IntArray  # shape (n_nodes,): rows of the past, ascending
    # Shape (n_nodes,): weight of each node, set back to the empirical prior: the positive nodes hold the share of
    # positive past instances. The mean is 1, so that label weight and regularisation mean per node what they mean
    # without a backbone. (Counts of instances, n / n_nodes times as much, act like label weights that much smaller:
    # labels then spread over the whole graph, and the own label left out becomes louder than the neighbourhood.)
    multiplicities: FloatArray


def sample_balanced_nodes(y: FloatArray, n_nodes: int, random: np.random.Generator) -> SampledNodes:
    """Draw equal numbers of positive and negative past instances (`y` is -1 or +1) without replacement.

    When one decision has fewer instances than its half, all of them are taken and the other fills the rest; all past
    instances are nodes when there are no more than wanted. Raise InvalidInputError when fewer than 2 are wanted or a
    decision does not occur.
    """
    positive, negative = np.flatnonzero(y > 0), np.flatnonzero(y <= 0)
    if n_nodes < 2:
        raise InvalidInputError(f"n_nodes is {n_nodes}; a backbone has at least 2 nodes, one for each decision.")
    if min(len(positive), len(negative)) == 0:
        raise InvalidInputError("The past holds one class only; a balanced backbone needs decisions of both kinds.")
    half = n_nodes // 2
    n_positive = min(len(positive), max(half, n_nodes - len(negative)))
    n_negative = min(len(negative), n_nodes - n_positive)
    chosen_positive = random.choice(positive, n_positive, replace=False)
    chosen_negative = random.choice(negative, n_negative, replace=False)
    rows = np.sort(np.concatenate((chosen_positive, chosen_negative)))
    multiplicities = np.where(y[rows] > 0, len(positive) / n_positive, len(negative) / n_negative)
    multiplicities *= len(rows) / len(y)
    return SampledNodes(rows, multiplicities)
