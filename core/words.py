"""Texts and identifiers as numbers, so that millions of rows can wait on disk without repeating them."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

IntArray = npt.NDArray[np.int64]


class Words:
    """Texts, numbered in the order in which they are first met.

    The empty text is number 0 and stands for a missing one.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": 0}
        self.texts: list[str] = [""]

    def number(self, text: str) -> int:
        """Give the number of a text; a new one is added."""
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return number

    def numbers(self, column: pd.Series) -> npt.NDArray[np.int32]:
        """Numbers of a column of texts.

        Parameters
        ----------
        column : Series of str or category, shape (n,)

        Returns
        -------
        array of int32, shape (n,)
        """
        categories = column.astype("category").cat.remove_unused_categories().cat
        found = [self.number(str(each)) for each in categories.categories]
        numbers: npt.NDArray[np.int32] = np.array([*found, 0], dtype=np.int32)[categories.codes.to_numpy()]
        return numbers


class Subjects:
    """Patients as the source names them, numbered in the order in which they are first met, with their rows counted."""

    def __init__(self) -> None:
        self._numbers: dict[int | str, int] = {}
        self.n_rows = np.zeros(0, dtype=np.int64)

    @property
    def names(self) -> Sequence[int | str]:
        """As the source has them, in order of their numbers."""
        return list(self._numbers)

    def numbers(self, column: npt.NDArray[np.generic]) -> npt.NDArray[np.int32]:
        """Numbers of a column of identifiers, each row counted.

        Parameters
        ----------
        column : array of int64 or str, shape (n,)

        Returns
        -------
        array of int32, shape (n,)
        """
        codes, unique = pd.factorize(column)
        known = self._numbers
        found = np.array([known.setdefault(each, len(known)) for each in unique.tolist()], dtype=np.int32)
        numbers: npt.NDArray[np.int32] = found[codes]
        counts = np.bincount(numbers, minlength=len(known))
        counts[: len(self.n_rows)] += self.n_rows
        self.n_rows = counts
        return numbers


def ranked(texts: Sequence[str]) -> tuple[list[str], npt.NDArray[np.int32]]:
    """Sort texts, and say where each has gone.

    Returns
    -------
    texts : list of str
        Sorted, each once.
    rank : array of int32
        Place of each text given.

    Examples
    --------
    >>> ranked(["b", "a", "b"])
    (['a', 'b'], array([1, 0, 1], dtype=int32))
    """
    ordered = sorted(set(texts))
    place = {text: i for i, text in enumerate(ordered)}
    return ordered, np.array([place[text] for text in texts], dtype=np.int32)
