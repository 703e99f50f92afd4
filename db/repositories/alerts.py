"""Alerts by rank: pages by key, never by offset, and counts that touch no wide column."""

from collections.abc import Sequence
from itertools import islice
from typing import Any, Unpack

from sqlalchemy import ColumnElement, Select, and_, exists, false, func, literal, not_, select, tuple_
from sqlalchemy.orm import Session

from core.errors import InvalidInputError, NotFoundError
from core.vocabulary import Decision
from db.models import Alert, Instance, ScoringRun, Task
from db.repositories.reading import read_all, read_one
from db.rows import AlertFilters, AlertPage, AlertRecord

_RECORD = (
    *(
        getattr(Alert, name)
        for name in (
            "id",
            "run_id",
            "rank",
            "decision",
            "kind",
            "unit",
            "window_cut",
            "score",
            "scaled_score",
            "soft_label",
            "support",
            "task_id",
            "instance_id",
        )
    ),
    Task.task_key,
    Task.name.label("task_name"),
    Task.order_group,
    Task.column_index,
    *(
        getattr(Instance, name)
        for name in (
            "row_index",
            "patient_id",
            "stay_id",
            "snapshot_at",
            "day_of_stay",
            "age_years",
            "sex",
            "window_hours",
        )
    ),
)


ROWS_AT_ONCE = 500
"""Values in one IN list: well below what any database takes."""


class Alerts:
    """Alerts of the unit of work's session.

    All lists are in the order (rank, decision): one decision by rank, both together by turns.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def page(
        self, run_id: int, *, after: str | None = None, limit: int = 13, **filters: Unpack[AlertFilters]
    ) -> AlertPage:
        """Give a page of alerts.

        Parameters
        ----------
        run_id : int
            Number of the run.
        after : str or None
            `AlertPage.next_cursor` of the page before; None for the first page.
        limit : int
            Rows on a page.
        **filters
            See `db.rows.AlertFilters`.

        Raises
        ------
        InvalidInputError
            If the cursor was not made by this method.
        """
        statement = self._matching(run_id, filters)
        if after is not None:
            statement = statement.where(_key() > _position(*_read_cursor(after)))
        chosen = statement.order_by(Alert.rank, Alert.decision).limit(limit + 1).subquery()
        found = read_all(
            self._session,
            AlertRecord,
            select(*_RECORD)
            .join(chosen, chosen.c.id == Alert.id)
            .join(Task, Task.id == Alert.task_id)
            .join(Instance, Instance.id == Alert.instance_id)
            .order_by(Alert.rank, Alert.decision),
        )
        rows = tuple(found[:limit])
        more = len(found) > limit
        return AlertPage(rows, f"{rows[-1].rank}-{rows[-1].decision.value}" if more else None)

    def count(self, run_id: int, **filters: Unpack[AlertFilters]) -> int:
        """Count the alerts that the filters let through; reads nothing but an index."""
        statement = select(func.count()).select_from(self._matching(run_id, filters).subquery())
        return self._session.execute(statement).scalar_one()

    def lowest_scaled_score(self, run_id: int, **filters: Unpack[AlertFilters]) -> float | None:
        """Give the scaled score of the last alert that the filters let through, None when there is none."""
        last = self._matching(run_id, filters).order_by(Alert.rank.desc(), Alert.decision.desc()).limit(1).subquery()
        return self._session.execute(select(Alert.scaled_score).join(last, last.c.id == Alert.id)).scalar_one_or_none()

    def get(self, alert_id: int) -> AlertRecord:
        """Give an alert of a run that readers may see.

        Raises
        ------
        NotFoundError
            If there is none, or its run is not published.
        """
        statement = (
            select(*_RECORD)
            .join(Task, Task.id == Alert.task_id)
            .join(Instance, Instance.id == Alert.instance_id)
            .join(ScoringRun, ScoringRun.id == Alert.run_id)
            .where(Alert.id == alert_id, ScoringRun.published_at.is_not(None))
        )
        found = read_one(self._session, AlertRecord, statement)
        if found is None:
            raise NotFoundError(f"There is no alert {alert_id}. The link may come from another site or an old run.")
        return found

    def ids_of_decisions(self, run_id: int, decisions: Sequence[tuple[int, str]]) -> dict[tuple[int, str], int]:
        """Give the alert of each decision (row of the instance, task key) that has one in the run."""
        found: dict[tuple[int, str], int] = {}
        wanted = set(decisions)
        remaining = iter(sorted({row for row, _ in wanted}))
        while rows := list(islice(remaining, ROWS_AT_ONCE)):
            statement = (
                select(Instance.row_index, Task.task_key, Alert.id)
                .join(Task, Task.id == Alert.task_id)
                .join(Instance, Instance.id == Alert.instance_id)
                .where(Alert.run_id == run_id, Instance.row_index.in_(rows))
            )
            for row_index, task_key, alert_id in self._session.execute(statement):
                if (row_index, task_key) in wanted:
                    found[row_index, task_key] = alert_id
        return found

    def neighbours(self, alert_id: int, **filters: Unpack[AlertFilters]) -> tuple[int | None, int | None]:
        """Give the alerts before and after this one in the list of the filters, whether it is in that list or not."""
        alert = self.get(alert_id)
        here = _position(alert.rank, alert.decision)
        matching = self._matching(alert.run_id, filters)
        before = matching.where(_key() < here).order_by(Alert.rank.desc(), Alert.decision.desc()).limit(1)
        after = matching.where(_key() > here).order_by(Alert.rank, Alert.decision).limit(1)
        return (
            self._session.execute(before).scalars().one_or_none(),
            self._session.execute(after).scalars().one_or_none(),
        )

    def rank_of_nth(self, run_id: int, n: int, decision: Decision, *, include_cut_windows: bool = False) -> int | None:
        """Give the rank of the n-th alert of a list, 0 for n = 0, None when the list is shorter."""
        if n <= 0:
            return 0
        matching = self._matching(run_id, {"decision": decision, "include_cut_windows": include_cut_windows})
        ranks = matching.with_only_columns(Alert.rank).order_by(Alert.rank).offset(n - 1).limit(1)
        return self._session.execute(ranks).scalar_one_or_none()

    def filter_choices(self, run_id: int) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """Give the units and the (key, name) of the tasks that have alerts, each by name."""
        units: list[str] = []
        while True:  # one seek for each unit, where SELECT DISTINCT would walk over every alert
            later = select(func.min(Alert.unit)).where(Alert.run_id == run_id)
            unit = self._session.execute(later.where(Alert.unit > units[-1]) if units else later).scalar()
            if unit is None:
                break
            units.append(unit)
        has_alert = exists().where(Alert.run_id == run_id, Alert.task_id == Task.id)
        of_run = select(ScoringRun.snapshot_id).where(ScoringRun.id == run_id).scalar_subquery()
        tasks = self._session.execute(
            select(Task.task_key, Task.name).where(Task.snapshot_id == of_run, has_alert).order_by(Task.name)
        )
        return tuple(unit for unit in units if unit), tuple((key, name) for key, name in tasks)

    def _matching(self, run_id: int, filters: AlertFilters) -> Select[int]:
        statement = select(Alert.id).where(Alert.run_id == run_id)
        if any("\0" in value for value in filters.values() if isinstance(value, str)):
            return statement.where(false())  # no name holds it, and PostgreSQL would not even take the question
        if decision := filters.get("decision"):
            statement = statement.where(Alert.decision == decision)
        if kind := filters.get("kind"):
            statement = statement.where(Alert.kind == kind)
        if unit := filters.get("unit"):
            statement = statement.where(Alert.unit == unit)
        max_ranks = filters.get("max_ranks") or {}
        for limited, max_rank in max_ranks.items():
            statement = statement.where(not_(and_(Alert.decision == limited, Alert.rank > max_rank)))
        shown = [decision] if decision else list(Decision)
        if all(one in max_ranks for one in shown):  # said once more for all, so that the index can stop there
            statement = statement.where(Alert.rank <= max(max_ranks[one] for one in shown))
        if not filters.get("include_cut_windows", False):
            statement = statement.where(not_(and_(Alert.decision == Decision.OMISSION, Alert.window_cut)))
        if patient_id := filters.get("patient_id"):
            of_run = select(ScoringRun.snapshot_id).where(ScoringRun.id == run_id).scalar_subquery()
            mine = select(Instance.id).where(Instance.snapshot_id == of_run, Instance.patient_id == patient_id)
            statement = statement.where(Alert.instance_id.in_(mine))
        if filters.get("task_key") or filters.get("text"):
            statement = statement.where(self._of_tasks(run_id, filters.get("task_key", ""), filters.get("text", "")))
        return statement

    def _of_tasks(self, run_id: int, task_key: str, text: str) -> ColumnElement[bool]:
        """Find the tasks first, in all alphabets; many of them are no reason to leave the order of ranks."""
        tasks = self._session.execute(
            select(Task.id, Task.task_key, Task.name)
            .join(ScoringRun, ScoringRun.snapshot_id == Task.snapshot_id)
            .where(ScoringRun.id == run_id)
        )
        wanted = text.casefold()
        ids = [id_ for id_, key, name in tasks if (not task_key or key == task_key) and wanted in name.casefold()]
        # The plus keeps the database from gathering every alert of many tasks only to sort them.
        column: Any = Alert.task_id if len(ids) == 1 else Alert.task_id + 0
        return column.in_(ids)  # type: ignore[no-any-return]


def _key() -> Any:
    return tuple_(Alert.rank, Alert.decision)


def _position(rank: int, decision: Decision) -> Any:
    return tuple_(literal(rank), literal(decision, Alert.decision.type))


def _read_cursor(cursor: str) -> tuple[int, Decision]:
    rank, _, decision = cursor.partition("-")
    try:
        return int(rank), Decision(decision)
    except ValueError:
        raise InvalidInputError(
            "The link to this page of the worklist is damaged: its place in the list cannot be read. "
            "Open the first page."
        ) from None
