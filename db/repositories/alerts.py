"""Alerts by rank: pages by key, never by offset, and counts that touch no wide column."""

from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import islice
from typing import Any, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt
from sqlalchemy import Select, exists, func, literal, or_, select, tuple_
from sqlalchemy.engine import Connection

from core.errors import NotFoundError
from core.vocabulary import Decision, TriageState
from db.cache import Caches, cached_of_run
from db.models import Alert, Instance, ScoringRun, Task
from db.queries.alert_lists import of_scorer
from db.queries.reading import read_all, read_one, run
from db.queries.runs import alert_records, published_alert
from db.repositories.alert_cursors import cursor_of, day_cursor_of, read_cursor, read_day_cursor
from db.repositories.alert_matching import matching, triaged
from db.rows import AlertFilters, AlertPage, AlertRecord, DecisionKey, RunRow

Scores: TypeAlias = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Scores and scaled scores of the same alerts."""
OrderGroup: TypeAlias = tuple[int, Decision, str]
"""Instance, decision and name of a group of tasks that are ordered together."""
_BY_RANK = (Alert.rank, Alert.decision)
ROWS_AT_ONCE = 500
"""Values in one IN list: well below what any database takes."""


class Alerts:
    """Alerts of the unit of work's connection.

    Every question is about the lists of one scorer, the run's first one unless another is named. All lists are in the
    order (rank, decision): one decision by rank, both together by turns.
    """

    def __init__(self, connection: Connection, caches: Caches | None = None) -> None:
        self._connection = connection
        self._caches = caches

    def page(
        self, run_id: int, *, after: str | None = None, limit: int = 13, **filters: Unpack[AlertFilters]
    ) -> AlertPage:
        """Return a page of alerts.

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
            statement = statement.where(_key() > _position(*read_cursor(after)))
        found = self._records(run(self._connection, statement.order_by(*_BY_RANK).limit(limit + 1)).scalars().all())
        more = len(found) > limit
        return AlertPage(tuple(found[:limit]), cursor_of(found[limit - 1]) if more else None)

    def page_by_day(
        self, run_id: int, *, after: str | None = None, limit: int = 13, **filters: Unpack[AlertFilters]
    ) -> AlertPage:
        """Return a page of alerts by day, newest first, and by rank within a day; parameters as those of `page`."""
        statement = self._matching(run_id, filters).join(Instance, Instance.id == Alert.instance_id)
        if after is not None:
            moment, rank, decision = read_day_cursor(after)
            later = (Instance.snapshot_at == moment) & (_key() > _position(rank, decision))
            statement = statement.where(or_(Instance.snapshot_at < moment, later))
        order = (Instance.snapshot_at.desc(), *_BY_RANK)
        found = self._records(run(self._connection, statement.order_by(*order).limit(limit + 1)).scalars().all())
        more = len(found) > limit
        return AlertPage(tuple(found[:limit]), day_cursor_of(found[limit - 1]) if more else None)

    def of_instances(
        self,
        run_id: int,
        instance_ids: Collection[int],
        **filters: Unpack[AlertFilters],
    ) -> list[AlertRecord]:
        """Return the alerts of at most `ROWS_AT_ONCE` instances that the filters let through, by rank."""
        statement = self._matching(run_id, filters).where(Alert.instance_id.in_(instance_ids))
        return self._records(run(self._connection, statement.order_by(*_BY_RANK)).scalars().all())

    def of_groups(
        self, run_id: int, groups: Collection[OrderGroup], **filters: Unpack[AlertFilters]
    ) -> list[AlertRecord]:
        """Return the alerts of some order groups that the filters let through, by rank; at most `ROWS_AT_ONCE` groups.

        Whole records only of those that belong: a patient-day has many more alerts than one of its groups.
        """
        wanted = set(groups)
        # The plus keeps the database with the instances, of which there are few.
        task_of_alert: Any = Alert.task_id + 0
        statement = (
            self._matching(run_id, filters)
            .join(Task, Task.id == task_of_alert)
            .where(Alert.instance_id.in_({instance_id for instance_id, _, _ in wanted}), Task.order_group != "")
            .with_only_columns(Alert.id, Alert.instance_id, Alert.decision, Task.order_group)
            .order_by(*_BY_RANK)
        )
        return self._records([id_ for id_, *group in run(self._connection, statement) if tuple(group) in wanted])

    def of_stays(
        self, run_id: int, stays: Collection[tuple[str, int]], **filters: Unpack[AlertFilters]
    ) -> list[AlertRecord]:
        """Return the alerts of some stays (patient, number of the stay) that the filters let through, by rank."""
        of_run = select(ScoringRun.snapshot_id).where(ScoringRun.id == run_id).scalar_subquery()
        rows = run(
            self._connection,
            select(Instance.id, Instance.patient_id, Instance.stay_id).where(
                Instance.snapshot_id == of_run, Instance.patient_id.in_({patient for patient, _ in stays})
            ),
        )
        wanted = set(stays)
        ids = [id_ for id_, patient, stay in rows if (patient, stay) in wanted]
        found: list[AlertRecord] = []
        for start in range(0, len(ids), ROWS_AT_ONCE):
            found += self.of_instances(run_id, ids[start : start + ROWS_AT_ONCE], **filters)
        return found

    def _records(self, ids: Sequence[int]) -> list[AlertRecord]:
        """Return alerts by number, in this order."""
        found: dict[int, AlertRecord] = {}
        for start in range(0, len(ids), ROWS_AT_ONCE):
            some = read_all(self._connection, AlertRecord, alert_records(), ids=ids[start : start + ROWS_AT_ONCE])
            found |= {one.id: one for one in some}
        return [found[id_] for id_ in ids]

    def units(self, run_id: int, **filters: Unpack[AlertFilters]) -> dict[str, dict[Decision, int]]:
        """Count the alerts that the filters let through by unit and decision."""
        inside = self._matching(run_id, filters).with_only_columns(Alert.unit, Alert.decision).subquery()
        statement = select(inside.c.unit, inside.c.decision, func.count()).group_by(inside.c.unit, inside.c.decision)
        found: dict[str, dict[Decision, int]] = {}
        for unit, decision, n in run(self._connection, statement):
            found.setdefault(unit, {})[decision] = n
        return found

    def scores(self, run_id: int, **filters: Unpack[AlertFilters]) -> dict[Decision, Scores]:
        """Give (scores, scaled scores) of the alerts that the filters let through, by decision and rank."""
        inside = self._matching(run_id, filters).with_only_columns(Alert.decision, Alert.score, Alert.scaled_score)
        rows = run(self._connection, inside.order_by(Alert.rank)).all()
        of_decision = {one: [row for row in rows if row.decision is one] for one in Decision}
        return {
            one: (np.array([row.score for row in own]), np.array([row.scaled_score for row in own]))
            for one, own in of_decision.items()
        }

    def count(self, run_id: int, **filters: Unpack[AlertFilters]) -> int:
        """Count the alerts that the filters let through; reads nothing but an index."""
        statement = select(func.count()).select_from(self._matching(run_id, filters).subquery())
        return int(run(self._connection, statement).scalar_one())

    def count_hidden_by_triage(self, run_id: int, **filters: Unpack[AlertFilters]) -> int:
        """Count the alerts that only the filter on triage keeps away; starts from what was triaged where it can."""
        states, now = filters["triage"], filters["now"]
        everything = {name: value for name, value in filters.items() if name != "triage"}
        if TriageState.NEW not in states:
            return self.count(run_id, **everything) - self.count(run_id, **filters)  # type: ignore[arg-type]
        others = [state for state in TriageState if state not in states]
        hidden = triaged(self._connection, run_id, others, now) if others else []
        if not hidden:
            return 0
        statement = self._matching(run_id, everything).where(Alert.id.in_(hidden)).subquery()  # type: ignore[arg-type]
        return int(run(self._connection, select(func.count()).select_from(statement)).scalar_one())

    def lowest_scaled_score(self, run_id: int, **filters: Unpack[AlertFilters]) -> float | None:
        """Return the scaled score of the last alert that the filters let through, None when there is none."""
        last = self._matching(run_id, filters).order_by(Alert.rank.desc(), Alert.decision.desc()).limit(1).subquery()
        return run(self._connection, select(Alert.scaled_score).join(last, last.c.id == Alert.id)).scalar_one_or_none()

    def get(self, alert_id: int) -> AlertRecord:
        """Return an alert of a run that readers may see.

        Raises
        ------
        NotFoundError
            If there is none, or its run is not published.
        """
        found = read_one(self._connection, AlertRecord, published_alert(), alert_id=alert_id)
        if found is None:
            raise _no_alert(alert_id)
        return found

    def keys(self, alert_ids: Sequence[int]) -> dict[int, DecisionKey]:
        """Return the decisions that alerts of published runs are about, by alert and in their order.

        Raises
        ------
        NotFoundError
            If one of them does not exist.
        """
        found: dict[int, DecisionKey] = {}
        for start in range(0, len(alert_ids), ROWS_AT_ONCE):
            statement = (
                select(Alert.id, Instance.patient_id, Instance.snapshot_at, Task.task_key)
                .join(Task, Task.id == Alert.task_id)
                .join(Instance, Instance.id == Alert.instance_id)
                .join(ScoringRun, ScoringRun.id == Alert.run_id)
                .where(Alert.id.in_(alert_ids[start : start + ROWS_AT_ONCE]), ScoringRun.published_at.is_not(None))
            )
            for id_, patient_id, snapshot_at, task_key in run(self._connection, statement):
                found[id_] = DecisionKey(patient_id, snapshot_at, task_key)
        for alert_id in alert_ids:
            if alert_id not in found:
                raise _no_alert(alert_id)
        return {alert_id: found[alert_id] for alert_id in alert_ids}

    def ids_of_decisions(self, run_id: int, decisions: Sequence[tuple[int, str]]) -> dict[tuple[int, str], int]:
        """Return the alert of each decision (row of the instance, task key) that has one in the run's first lists."""
        found: dict[tuple[int, str], int] = {}
        wanted = set(decisions)
        remaining = iter(sorted({row for row, _ in wanted}))
        while rows := list(islice(remaining, ROWS_AT_ONCE)):
            statement = (
                select(Instance.row_index, Task.task_key, Alert.id)
                .join(Task, Task.id == Alert.task_id)
                .join(Instance, Instance.id == Alert.instance_id)
                .where(of_scorer(run_id), Instance.row_index.in_(rows))
            )
            for row_index, task_key, alert_id in run(self._connection, statement):
                if (row_index, task_key) in wanted:
                    found[row_index, task_key] = alert_id
        return found

    def of_decisions(self, run_id: int, decisions: Collection[DecisionKey]) -> list[int]:
        """Return the alerts of a run that are about these decisions, in the lists of every scorer."""
        of_run = select(ScoringRun.snapshot_id).where(ScoringRun.id == run_id).scalar_subquery()
        keys = sorted({key.task_key for key in decisions})
        tasks: dict[str, int] = {}
        for start in range(0, len(keys), ROWS_AT_ONCE):
            some = Task.task_key.in_(keys[start : start + ROWS_AT_ONCE])
            rows = run(self._connection, select(Task.task_key, Task.id).where(Task.snapshot_id == of_run, some))
            tasks |= {row.task_key: row.id for row in rows}
        found: list[int] = []
        known = sorted(key for key in decisions if key.task_key in tasks)
        for start in range(0, len(known), ROWS_AT_ONCE):
            some_known = known[start : start + ROWS_AT_ONCE]
            instances = {
                (patient_id, snapshot_at): id_
                for id_, patient_id, snapshot_at in run(
                    self._connection,
                    select(Instance.id, Instance.patient_id, Instance.snapshot_at).where(
                        Instance.snapshot_id == of_run,
                        Instance.patient_id.in_({key.patient_id for key in some_known}),
                    ),
                )
            }
            pairs = [
                (instances[key.patient_id, key.snapshot_at], tasks[key.task_key])
                for key in some_known
                if (key.patient_id, key.snapshot_at) in instances
            ]
            if pairs:
                about_them = tuple_(Alert.instance_id, Alert.task_id).in_(pairs)
                # Found by the instance alone: SQLite has no index for pairs, and with that of the run it would read the
                # whole run; a sum is nothing that an index is of.
                of_instances = Alert.instance_id.in_({instance_id for instance_id, _ in pairs})
                statement = select(Alert.id).where(of_instances, about_them, Alert.run_id + 0 == run_id)
                found += run(self._connection, statement).scalars()
        return found

    def cached_of_decisions(self, run: RunRow, decisions: Collection[DecisionKey]) -> list[int]:
        """Return `of_decisions`, cached once the run is published."""
        wanted = frozenset(decisions)
        return cached_of_run(self._caches, "decisions", run, wanted, lambda: self.of_decisions(run.id, wanted))

    def neighbours(self, alert: AlertRecord, **filters: Unpack[AlertFilters]) -> tuple[int | None, int | None]:
        """Return the alerts before and after this one in the list of the filters, whether it is in that list or not.

        The list is that of the alert's own scorer.
        """
        filters["scorer"] = alert.scorer
        here = _position(alert.rank, alert.decision)
        listed = self._matching(alert.run_id, filters)
        before = listed.where(_key() < here).order_by(Alert.rank.desc(), Alert.decision.desc()).limit(1)
        after = listed.where(_key() > here).order_by(Alert.rank, Alert.decision).limit(1)
        return (
            run(self._connection, before).scalars().one_or_none(),
            run(self._connection, after).scalars().one_or_none(),
        )

    def rank_of_nth(
        self, run_id: int, n: int, decision: Decision, *, include_cut_windows: bool = False, scorer: str = ""
    ) -> int | None:
        """Return the rank of the n-th alert of a list, 0 for n = 0, None when the list is shorter."""
        if n <= 0:
            return 0
        matching = self._matching(
            run_id, {"scorer": scorer, "decision": decision, "include_cut_windows": include_cut_windows}
        )
        ranks = matching.with_only_columns(Alert.rank).order_by(Alert.rank).offset(n - 1).limit(1)
        return run(self._connection, ranks).scalar_one_or_none()

    def rank_at_budget(
        self, run: RunRow, n: int, decision: Decision, *, include_cut_windows: bool = False, scorer: str = ""
    ) -> int | None:
        """Return `rank_of_nth`, cached once the run is published."""
        return cached_of_run(
            self._caches,
            "rank",
            run,
            (n, decision, include_cut_windows, scorer),
            lambda: self.rank_of_nth(run.id, n, decision, include_cut_windows=include_cut_windows, scorer=scorer),
        )

    def rank_at_score(self, run_id: int, score: float, decision: Decision, *, scorer: str = "") -> int:
        """Count the alerts of a list that score this much or more; ranks follow scores, so a few seeks tell."""
        listed = (of_scorer(run_id, scorer), Alert.decision == decision)
        low, high = 0, run(self._connection, select(func.max(Alert.rank)).where(*listed)).scalar() or 0
        while low < high:
            middle = (low + high + 1) // 2
            here = select(Alert.scaled_score).where(*listed, Alert.rank == middle)
            low, high = (middle, high) if run(self._connection, here).scalar_one() >= score else (low, middle - 1)
        return low

    def days(self, run_id: int) -> tuple[datetime, datetime] | None:
        """Return the first and the last instance time of the run's import, None when it has no instance."""
        of_run = select(ScoringRun.snapshot_id).where(ScoringRun.id == run_id).scalar_subquery()
        mine = select(Instance.snapshot_at).where(Instance.snapshot_id == of_run)
        ends = [
            run(self._connection, mine.order_by(order).limit(1)).scalar_one_or_none()
            for order in (Instance.snapshot_at.asc(), Instance.snapshot_at.desc())
        ]
        return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])

    def filter_choices(self, run_id: int, scorer: str = "") -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """Return the units and the (key, name) of the tasks that have alerts, each by name."""
        units: list[str] = []
        while True:  # one seek for each unit, where SELECT DISTINCT would walk over every alert
            later = select(func.min(Alert.unit)).where(of_scorer(run_id, scorer))
            unit = run(self._connection, later.where(Alert.unit > units[-1]) if units else later).scalar()
            if unit is None:
                break
            units.append(unit)
        has_alert = exists().where(of_scorer(run_id, scorer), Alert.task_id == Task.id)
        of_run = select(ScoringRun.snapshot_id).where(ScoringRun.id == run_id).scalar_subquery()
        tasks = run(
            self._connection,
            select(Task.task_key, Task.name).where(Task.snapshot_id == of_run, has_alert).order_by(Task.name),
        )
        return tuple(unit for unit in units if unit), tuple((key, name) for key, name in tasks)

    def _matching(self, run_id: int, filters: AlertFilters) -> Select[int]:
        return matching(self._connection, run_id, filters)


def _no_alert(alert_id: int) -> NotFoundError:
    return NotFoundError(f"There is no alert {alert_id}. The link may come from another site or an old run.")


def _key() -> Any:
    return tuple_(Alert.rank, Alert.decision)


def _position(rank: int, decision: Decision) -> Any:
    return tuple_(literal(rank), literal(decision, Alert.decision.type))
