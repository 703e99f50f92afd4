"""Keeps the pages of the worklist asked for last: whoever moves in a page asks for the same page each time."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from alertreview.triage_models import Grouping, ListOrder
from alertreview.worklist_lines import Line, lines_after
from core.vocabulary import TriageState
from db.last_asked import LastAsked
from db.rows import AlertFilters, RunRow
from db.unit_of_work import UnitOfWork

MOST_ALERTS = 20_000
"""Alerts on the kept pages together, a kilobyte each."""


@dataclass(frozen=True)
class FoundPage:
    """Lines of a page, and what the filter on triage keeps away from the whole list."""

    lines: tuple[Line, ...]
    next_cursor: str | None
    n_hidden_by_triage: int

    @property
    def n_alerts(self) -> int:
        """Alerts on the page."""
        return sum(len(line) for line in self.lines)


class WorklistPages:
    """Pages of published runs; one for all sessions of the process.

    A published run never changes. What the ward does with its alerts does, so an answer is kept under everything it
    depends on, the last act of triage and the snoozes that are over among it; nothing has to be thrown away when
    somebody acts, in this process or another.
    """

    def __init__(self) -> None:
        self._pages: LastAsked[FoundPage] = LastAsked(MOST_ALERTS, weight=lambda page: 1 + page.n_alerts)

    def get(
        self,
        uow: UnitOfWork,
        run: RunRow,
        grouping: Grouping,
        order: ListOrder,
        after: str | None,
        limit: int,
        restriction: AlertFilters,
    ) -> FoundPage:
        """Give a page; parameters as those of `alertreview.worklist_lines.lines_after`.

        Parameters
        ----------
        run : RunRow
            A published one.
        restriction : AlertFilters
            With `triage` and `now`.
        """
        whatever_was_done = set(restriction["triage"]) == set(TriageState)
        done = None if whatever_was_done else uow.triage.latest_change(restriction["now"])
        asked = {name: value for name, value in restriction.items() if name != "now"}
        key = (run.id, run.published_at, grouping, order, after, limit, _frozen(asked), done)

        def ask() -> FoundPage:
            lines, cursor = lines_after(uow, run.id, grouping, order, after, limit, restriction)
            return FoundPage(tuple(lines), cursor, uow.alerts.count_hidden_by_triage(run.id, **restriction))

        return self._pages.get(key, ask)


def _frozen(value: Any) -> Any:
    """Give a restriction, or a part of one, as something that can be looked up."""
    if isinstance(value, Mapping):
        return frozenset((key, _frozen(part)) for key, part in value.items())
    if isinstance(value, Set):
        return frozenset(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(value)
    return value
