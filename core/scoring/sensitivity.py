"""Sensitivity of a run to graph size and regularisation: what its curves are made of."""

from collections.abc import Collection, Hashable
from dataclasses import dataclass
from enum import StrEnum

from core.errors import InvalidInputError
from core.statistics.estimate import Estimate

N_TOP = 50
"""Length of the top of each list that is compared, as in the paper."""


class Varied(StrEnum):
    """What is changed while everything else stays as in the run."""

    GRAPH_SIZE = "graph size"  # nodes of a backbone graph
    REGULARIZATION = "regularisation"  # gamma_g, the edge of every node to a sink with label 0


@dataclass(frozen=True)
class SensitivityPoint:
    """One setting."""

    varied: Varied
    setting: float  # nodes, or gamma_g
    scorer: str
    shared: float  # share of the run's first alerts that are among the first at this setting as well, in [0, 1]
    auc: Estimate  # of the scaled scores against the judged study of the run; "not computable" without one


@dataclass(frozen=True)
class Sensitivity:
    """The curves of a run."""

    points: tuple[SensitivityPoint, ...]  # by scorer, what is varied, and setting
    n_top: int  # alerts of each list that `shared` compares
    # Of the nodes: another one than the run's, so that what is shared at the run's own setting tells what another draw
    # of nodes changes by itself.
    seed: int
    study: str  # title of the judged study; empty without one
    # `n_nodes` and `regularization`: the run's own setting.
    n_nodes: float
    regularization: float


def share_in_common(first: Collection[Hashable], second: Collection[Hashable]) -> float:
    """Return the share of the members of a list that are in another list as well, in [0, 1].

    Raise InvalidInputError if the first list is empty: nothing can be shared then.

    Examples
    --------
    >>> share_in_common(["a", "b", "c", "d"], ["d", "e", "a"])
    0.5
    """
    if not first:
        raise InvalidInputError("The list to compare with is empty. Score the run first, then compare.")
    known = set(second)
    return sum(member in known for member in first) / len(first)
