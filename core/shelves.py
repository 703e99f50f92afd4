"""Where rows wait between two steps of an import, so that memory holds one part of them at a time."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Protocol

import pandas as pd


class Shelf(Protocol):
    """Rows of numbers and times in numbered parts."""

    def put(self, part: int, rows: pd.DataFrame) -> None:
        """Add rows to a part; all rows of a shelf have the same columns."""
        ...

    def read(self, part: int, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Everything that was put into a part, in that order; an empty table where nothing was."""
        ...

    def drop(self, part: int) -> None:
        """Forget a part."""
        ...


MakeShelf = Callable[[str], Shelf]
"""Makes an empty shelf; the name is for whoever looks at the disk."""


class MemoryShelf:
    """A shelf that keeps everything in memory."""

    def __init__(self, name: str = "") -> None:
        self.name = name
        self._parts: defaultdict[int, list[pd.DataFrame]] = defaultdict(list)

    def put(self, part: int, rows: pd.DataFrame) -> None:
        """Add rows to a part."""
        self._parts[part].append(rows)

    def read(self, part: int, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Everything that was put into a part, in that order."""
        parts = self._parts.get(part)
        if not parts:
            return pd.DataFrame()
        if len(parts) > 1:
            self._parts[part] = parts = [pd.concat(parts, ignore_index=True)]
        return parts[0] if columns is None else parts[0][list(columns)]

    def drop(self, part: int) -> None:
        """Forget a part."""
        self._parts.pop(part, None)
