"""What the review asks of the records behind an instance: the one thing it cannot get from the database."""

from collections.abc import Callable
from typing import Protocol, TypeAlias

from alertreview.read_models import LastValue, Timeline


class PatientViews(Protocol):
    """The patients of one import; `row_index` is the row of an instance in that import's arrays."""

    def timeline(self, row_index: int, task_key: str) -> Timeline:
        """Give what was known at the snapshot, and the decision in question."""
        ...

    def last_values(self, row_index: int) -> tuple[LastValue, ...]:
        """Give the last result of each lab before the snapshot."""
        ...


OpenPatientViews: TypeAlias = Callable[[str], PatientViews]
"""Gives the patients of the import with this content hash.

A study stays with the import that its cases were chosen from; the same row of a later import is another patient.
"""
