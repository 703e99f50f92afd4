"""Numbers in the texts beside results, censored ones included."""

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

_NUMBER = re.compile(r"\s*[<>]?=?\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?)\s*")


def number_in_text(text: str) -> float:
    """Read a number, also a censored one: the bound stands for the value.

    Parameters
    ----------
    text : str
        ``"4.1"``, ``"<0.01"``, ``">50"``; anything else ("HOLD", "1+") has no number.

    Returns
    -------
    float
        NaN when there is no number.

    Examples
    --------
    >>> number_in_text("<0.01")
    0.01
    >>> number_in_text("1+")
    nan
    """
    match = _NUMBER.fullmatch(text)
    value = float(match.group(1)) if match else float("nan")
    return value if np.isfinite(value) else float("nan")


def numbers_in_texts(texts: Sequence[str]) -> FloatArray:
    """Read the numbers of several texts; NaN where there is none.

    Parameters
    ----------
    texts : sequence of str

    Returns
    -------
    array of float, shape (n_texts,)
    """
    return np.array([number_in_text(text) for text in texts], dtype=np.float64)


def fill_from_texts(value: FloatArray, found: FloatArray, wanted: npt.NDArray[np.bool_]) -> tuple[FloatArray, int]:
    """Fill missing numbers with those found in the texts beside them.

    Parameters
    ----------
    value, found : array of shape (n,)
        NaN where there is none.
    wanted : array of bool, shape (n,)
        Rows whose numbers matter.

    Returns
    -------
    value : array of shape (n,)
    n_filled : int
    """
    fill = wanted & np.isnan(value) & ~np.isnan(found)
    return np.where(fill, found, value), int(fill.sum())
