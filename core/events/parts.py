"""The event stream in parts of whole patients: what the cohort is built from, one part in memory at a time."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pandas as pd

from core.events.stream import EVENT_COLUMNS, finish_events
from core.kinds import EVENT_NAMES, EventKind


class Spill(Protocol):
    """Rows of numbers and times in numbered parts."""

    def put(self, part: int, rows: pd.DataFrame) -> None:
        """Add rows to a part; all rows of a spill have the same columns."""
        ...

    def read(self, part: int, columns: Sequence[str] | None = None) -> pd.DataFrame:
        """Everything that was put into a part, in that order; an empty table where nothing was."""
        ...

    def drop(self, part: int) -> None:
        """Forget a part."""
        ...


MakeSpill = Callable[[str], Spill]
"""Makes an empty spill; the name is for whoever looks at the disk."""


class MemorySpill:
    """A spill that keeps everything in memory."""

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


@dataclass(frozen=True)
class Vocabulary:
    """What the numbers of stored events stand for."""

    # `items`, `units`, `texts` and `names`: sorted.
    items: list[str]
    units: list[str]
    texts: list[str]
    names: list[str]
    name_of_item: npt.NDArray[np.int32]  # shape (n_items,): place in `names`
    patients: list[list[str]]  # pseudonyms of each part's patients, sorted


class EventStream:
    """Events sorted by patient and time, cut between patients; its parts lie in a spill as numbers.

    Every part is a table as `core.cohort.cohort.Cohort.events`, with the column ``stay``. Categories of texts are
    sorted and the same in every part; those of ``patient_id`` are the part's own patients. What is stored has patient,
    time, known_at, kind, item, value, text, unit, is_decision and stay, sorted as
    `core.events.stream.finish_events` sorts.
    """

    def __init__(
        self, spill: Spill, vocabulary: Vocabulary, kinds: frozenset[EventKind], n_events: int, end: pd.Timestamp
    ) -> None:
        self._spill = spill
        self._vocabulary = vocabulary
        self.kinds = kinds
        self.n_events = n_events
        self.end = end
        texts = {"item": vocabulary.items, "name": vocabulary.names, "text": vocabulary.texts, "unit": vocabulary.units}
        self.categories: dict[str, list[str]] = texts
        self._types = {
            name: pd.CategoricalDtype(pd.Index(categories, dtype="str")) for name, categories in texts.items()
        }
        self._types["kind"] = pd.CategoricalDtype(EVENT_NAMES)

    def parts(self, columns: Sequence[str] | None = None) -> Iterator[pd.DataFrame]:
        """Read the parts back in the order of their patients: some columns of `EVENT_COLUMNS`, or all and ``stay``."""
        wanted = (*EVENT_COLUMNS, "stay") if columns is None else tuple(columns)
        for number, patients in enumerate(self._vocabulary.patients):
            stored = self._spill.read(number, sorted({_STORED_AS.get(name, name) for name in wanted}))
            if len(stored):
                yield pd.DataFrame({name: self._column(name, stored, patients) for name in wanted}, copy=False)

    def _column(self, name: str, stored: pd.DataFrame, patients: list[str]) -> object:
        codes = stored[_STORED_AS.get(name, name)].to_numpy()
        if name == "patient_id":
            return pd.Categorical.from_codes(codes, categories=pd.Index(patients, dtype="str"), validate=False)
        if name == "name":
            codes = self._vocabulary.name_of_item[codes]
        if name in self._types:
            return pd.Categorical.from_codes(codes, dtype=self._types[name], validate=False)
        return codes


_STORED_AS = {"patient_id": "patient", "name": "item"}


def gathered(stream: EventStream) -> pd.DataFrame:
    """Put all parts together in one table, with the categories that occur and the column ``stay``."""
    parts = list(stream.parts())
    patients = pd.Index([str(each) for part in parts for each in part["patient_id"].cat.categories], dtype="str")
    offset = 0
    for part in parts:
        codes = part["patient_id"].cat.codes.to_numpy(dtype=np.int32) + offset
        offset += len(part["patient_id"].cat.categories)
        part["patient_id"] = pd.Categorical.from_codes(codes, categories=patients, validate=False)
    whole = parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)
    return finish_events(whole, keep=("stay",))
