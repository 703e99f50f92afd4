"""Scores of different tasks on one scale, learned from what the past instances of the task scored."""

from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from core.errors import InvalidInputError
from core.validation import FloatArray, as_decisions

ROBUST_SHARE = 0.01


class ScoreScaler:
    """Linear or rank scaling of one task's scores to [0, 1] on its past instances.

    The paper's text scales the score, its figure the soft label ("close to 1: the order should be done"); both are
    here. Values outside the past range are kept as they fall (below 0, above 1) and counted, never cut.
    A per-task scale gives every task, however noisy, its own 1.0: it serves histograms inside a task and the
    paper's scorer, not one pooled list over many tasks.

    Parameters
    ----------
    on : {"score", "soft_label"}
        What is scaled. With "soft_label" the scaled score is |scaled soft label - (y + 1) / 2|.
    method : {"min-max", "quantile"}
        "min-max" uses the two extreme past values; "quantile" the 1st and 99th percentile, which do not hang on
        two instances.

    Attributes
    ----------
    low_, high_ : float
        Past values that become 0 and 1.
    n_below_, n_above_ : int
        Values outside [low_, high_] in the last `transform`.

    References
    ----------
    The paper, section "Scaling for multi-task anomaly detection".

    Examples
    --------
    >>> ScoreScaler().fit([0.1, 0.9]).transform([0.1, 0.5, 0.9])
    array([0. , 0.5, 1. ])
    """

    def __init__(
        self, *, on: Literal["score", "soft_label"] = "score", method: Literal["min-max", "quantile"] = "min-max"
    ) -> None:
        if on not in ("score", "soft_label") or method not in ("min-max", "quantile"):
            raise InvalidInputError(
                f'ScoreScaler got on={on!r} and method={method!r}; on is "score" or "soft_label", '
                'method is "min-max" or "quantile".'
            )
        self.on = on
        self.method = method

    def fit(self, past_values: ArrayLike) -> Self:
        """Learn the ends from the past scores (or soft labels) of the task.

        Parameters
        ----------
        past_values : array-like of shape (n_past,)
            Finite; at least one.
        """
        values = self._checked(past_values)
        share = 0.0 if self.method == "min-max" else ROBUST_SHARE
        low, high = np.quantile(values, [share, 1 - share])
        self.low_, self.high_ = float(low), float(high)
        return self

    def transform(self, values: ArrayLike, y: ArrayLike | None = None) -> FloatArray:
        """Scale values of the task and count those outside the past range.

        Parameters
        ----------
        values : array-like of shape (n,)
            Scores or soft labels, as in `fit`.
        y : array-like of shape (n,), optional
            Decisions, needed with ``on="soft_label"``.

        Returns
        -------
        ndarray of shape (n,)
            Scaled scores, higher = more unusual; 0.5 everywhere when the past values were all the same.
        """
        values = self._checked(values)
        self.n_below_ = int((values < self.low_).sum())
        self.n_above_ = int((values > self.high_).sum())
        width = self.high_ - self.low_
        scaled = np.full(len(values), 0.5) if width <= 0 else (values - self.low_) / width
        if self.on == "score":
            return scaled
        if y is None:
            raise InvalidInputError(
                'A ScoreScaler on "soft_label" needs the decisions y to give scaled scores. Pass them.'
            )
        return np.abs(scaled - (as_decisions(y, n=len(values)) + 1) / 2)

    @staticmethod
    def _checked(values: ArrayLike) -> FloatArray:
        array = np.asarray(values, dtype=np.float64)
        if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
            raise InvalidInputError(
                f"Values to scale must be a non-empty vector of finite numbers (shape {array.shape}). "
                "Leave the task out."
            )
        return array
