"""Alerts in the order of the worklist, read no further than a page asks, and counts that touch no wide column.

Filters become conditions that an index or the order of ranks can answer.
"""

import re
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from datetime import datetime
from heapq import merge
from itertools import islice, permutations
from typing import Any, NamedTuple, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt
from sqlalchemy import ColumnElement, Row, Select, and_, bindparam, exists, false, func, not_, or_, select, tuple_
from sqlalchemy.engine import Connection

from core.errors import InvalidInputError, NotFoundError
from core.vocabulary import AlertId, Decision, InstanceId, RunId, TaskId, TriageState
from db.cache import cached_of_run
from db.models import Alert, AlertFilters, AlertPage, DecisionKey, Instance, ListedAlert, ScoringRun, Task, Triage
from db.queries.reading import SEEN, Repository, given, in_parts, run, select_records

_CURSOR = re.compile(rf"(-?\d{{1,11}})\.(\d{{1,11}})\.(\d{{1,11}})\.({'|'.join(Decision)})", re.ASCII)


class Place(NamedTuple):
    """Where an alert stands; places sort as their list does."""

    day: int
    """The moment in seconds, negative so that the newest is first; 0 in a list that does not go by day."""
    turn: int
    decision: str
    rank: int


def cursor_of(place: Place) -> str:
    """Name a place, for the page after it."""
    return f"{place.day}.{place.turn}.{place.rank}.{place.decision}"


def read_cursor(cursor: str) -> Place:
    """Read what `cursor_of` wrote; raise InvalidInputError if it was not written there."""
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise InvalidInputError(
            "The link to this page of the worklist is damaged: its place in the list cannot be read. "
            "Open the first page."
        )
    day, turn, rank, decision = found.groups()
    return Place(int(day), int(turn), decision, int(rank))


Scores: TypeAlias = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]
"""Scores and scaled scores of the same alerts."""
OrderGroup: TypeAlias = tuple[InstanceId, Decision, str]
"""Instance, decision and name of a group of tasks that are ordered together."""
Listed: TypeAlias = tuple[Place, Row[Any]]
"""An alert in a list: where it stands, and what tells which line it belongs to."""
LineOf: TypeAlias = Callable[[Any], Hashable]
"""Names the line that an alert belongs to, from its columns or those of its instance and task."""
_LINE_COLUMNS = (Alert.instance_id, Alert.task_id, Task.order_group, Instance.patient_id, Instance.stay_id)
_WALKED = 64
"""Alerts fetched at once on the way to a page."""
_BY_RANK = (Alert.rank, Alert.decision)
_FEW_INSTANCES = 2_000
"""Up to so many instances of some days, their alerts are gathered; beyond, the list is walked by rank."""


_OF_INSTANCE = ("row_index", "patient_id", "stay_id", "snapshot_at", "day_of_stay", "age_years", "sex", "window_hours")
_LISTED = (
    select_records(Alert, ListedAlert, Task.task_key, Task.name.label("task_name"), Task.order_group, Task.column_index)
    .add_columns(*(getattr(Instance, name) for name in _OF_INSTANCE))
    .join(Task, Task.id == Alert.task_id)
    .join(Instance, Instance.id == Alert.instance_id)
)
_BY_IDS = _LISTED.where(Alert.id.in_(bindparam("ids", expanding=True)))
_PUBLISHED = _LISTED.join(ScoringRun, ScoringRun.id == Alert.run_id).where(
    Alert.id == given("alert_id"), ScoringRun.published_at.is_not(None)
)
_KEYS = (
    select(Alert.id, Instance.patient_id, Instance.snapshot_at, Task.task_key)
    .join(Task, Task.id == Alert.task_id)
    .join(Instance, Instance.id == Alert.instance_id)
    .join(ScoringRun, ScoringRun.id == Alert.run_id)
    .where(Alert.id.in_(bindparam("ids", expanding=True)), ScoringRun.published_at.is_not(None))
)


class Alerts(Repository):
    """Alerts of scoring runs.

    Every question is about the lists of one scorer, the run's first one unless another is named.
    """

    def page(
        self,
        run_id: RunId,
        *,
        by_day: bool = False,
        line_of: LineOf | None = None,
        after: str | None = None,
        limit: int = 13,
        **filters: Unpack[AlertFilters],
    ) -> AlertPage:
        """Return a page of alerts, after the cursor of the page before; `db.models.AlertFilters` tells the filters.

        Omissions and commissions take turns until one list ends, each by rank; `by_day`, the newest day comes first,
        by rank within a day. Of the alerts of one line only the first is on a page, and a line takes one turn. Raise
        InvalidInputError if the cursor was not made by this method.
        """
        reached = None if after is None else read_cursor(after)
        if by_day:
            listed = self._by_day(run_id, filters, line_of)
        else:
            first_turn = reached.turn if reached is not None and line_of is None else 1
            listed = self._by_turns(run_id, filters, line_of, first_turn)
        firsts = _first_of_lines(listed, line_of)
        found = list(islice((one for one in firsts if reached is None or one[0] > reached), limit + 1))
        cursor = cursor_of(found[limit - 1][0]) if len(found) > limit else None
        return AlertPage(rows=tuple(self._records([row.id for _, row in found[:limit]])), next_cursor=cursor)

    def _by_day(self, run_id: RunId, filters: AlertFilters, line_of: LineOf | None) -> Iterator[Listed]:
        dated = self._matching(run_id, filters).join(Instance, Instance.id == Alert.instance_id)
        ordered = dated.order_by(Instance.snapshot_at.desc(), *_BY_RANK)
        if line_of is not None:
            ordered = ordered.join(Task, Task.id == Alert.task_id)
        for row in self._walk(ordered, Instance.snapshot_at, *(_LINE_COLUMNS if line_of else ())):
            yield Place(-int(row.snapshot_at.timestamp()), row.rank, row.decision.value, row.rank), row

    def _by_turns(
        self, run_id: RunId, filters: AlertFilters, line_of: LineOf | None = None, first_turn: int = 1
    ) -> Iterator[Listed]:
        """Yield alerts in turns; those that the ward has dealt with keep their turn, so that the others stay in place.

        A withheld alert keeps none: a gap would tell where it stands.
        """
        everything, hidden = self._whatever_was_done(run_id, filters)
        wanted = filters.get("decision")
        queues = [
            self._queue(self._matching(run_id, {**everything, "decision": one}), line_of, first_turn)
            for one in ([wanted] if wanted else Decision)
        ]
        return ((place, row) for place, row in merge(*queues) if row.id not in hidden)

    def _whatever_was_done(self, run_id: RunId, filters: AlertFilters) -> tuple[AlertFilters, Collection[AlertId]]:
        """Return filters that let through what triage hides, and what it hides; nothing changes without "new"."""
        states, now = filters.get("triage"), filters.get("now")
        if states is None or now is None or TriageState.NEW not in states:
            return filters, ()
        others = [state for state in TriageState if state not in states]
        hidden = set(_triaged(self._connection, run_id, others, now)) if others else ()
        return {**filters, "triage": frozenset(TriageState)}, hidden

    def _queue(self, matching: Select[AlertId], line_of: LineOf | None, first_turn: int) -> Iterator[Listed]:
        """Yield the alerts of one decision by rank, from a turn on; the n-th line has the n-th turn."""
        rank = self._rank_at(matching, first_turn - 1)
        if rank is None:
            return
        ordered = matching.where(Alert.rank > rank).order_by(Alert.rank)
        if line_of is not None:
            of_instance = Instance.id == Alert.instance_id
            ordered = ordered.join(Instance, of_instance).join(Task, Task.id == Alert.task_id)
        begun = set()
        for row in self._walk(ordered, *(_LINE_COLUMNS if line_of else ())):
            begun.add(line_of(row) if line_of else row.id)
            yield Place(0, first_turn - 1 + len(begun), row.decision.value, row.rank), row

    def _walk(self, ordered: Select[AlertId], *columns: Any) -> Iterator[Row[Any]]:
        statement = ordered.with_only_columns(Alert.id, Alert.decision, Alert.rank, *columns)
        with self._run(statement.execution_options(yield_per=_WALKED)) as rows:
            yield from rows

    def _rank_at(self, matching: Select[AlertId], n: int) -> int | None:
        """Return the rank of the n-th alert of one decision, None when there are fewer."""
        ranks = matching.with_only_columns(Alert.rank).order_by(Alert.rank)
        return self._run(ranks.offset(n - 1).limit(1)).scalar() if n > 0 else 0

    def of_instances(
        self,
        run_id: RunId,
        instance_ids: Collection[InstanceId],
        **filters: Unpack[AlertFilters],
    ) -> list[ListedAlert]:
        """Return the alerts of at most `ROWS_AT_ONCE` instances that the filters let through, by rank."""
        statement = self._matching(run_id, filters).where(Alert.instance_id.in_(instance_ids))
        return self._records(self._run(statement.order_by(*_BY_RANK)).scalars().all())

    def of_groups(
        self, run_id: RunId, groups: Collection[OrderGroup], **filters: Unpack[AlertFilters]
    ) -> list[ListedAlert]:
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
        return self._records([id_ for id_, *group in self._run(statement) if tuple(group) in wanted])

    def of_stays(
        self, run_id: RunId, stays: Collection[tuple[str, int]], **filters: Unpack[AlertFilters]
    ) -> list[ListedAlert]:
        """Return the alerts of some stays (patient, number of the stay) that the filters let through, by rank."""
        of_run = select(ScoringRun.snapshot_id).where(ScoringRun.id == run_id).scalar_subquery()
        rows = self._run(
            select(Instance.id, Instance.patient_id, Instance.stay_id).where(
                Instance.snapshot_id == of_run, Instance.patient_id.in_({patient for patient, _ in stays})
            ),
        )
        wanted = set(stays)
        ids = [id_ for id_, patient, stay in rows if (patient, stay) in wanted]
        return [alert for some in in_parts(ids) for alert in self.of_instances(run_id, some, **filters)]

    def _records(self, ids: Sequence[AlertId]) -> list[ListedAlert]:
        """Return alerts by number, in this order."""
        found = {one.id: one for some in in_parts(ids) for one in self._all(ListedAlert, _BY_IDS, ids=some)}
        return [found[id_] for id_ in ids]

    def units(self, run_id: RunId, **filters: Unpack[AlertFilters]) -> dict[str, dict[Decision, int]]:
        """Count the alerts that the filters let through by unit and decision."""
        inside = self._matching(run_id, filters).with_only_columns(Alert.unit, Alert.decision).subquery()
        statement = select(inside.c.unit, inside.c.decision, func.count()).group_by(inside.c.unit, inside.c.decision)
        found: dict[str, dict[Decision, int]] = {}
        for unit, decision, n in self._run(statement):
            found.setdefault(unit, {})[decision] = n
        return found

    def scores(self, run_id: RunId, **filters: Unpack[AlertFilters]) -> dict[Decision, Scores]:
        """Return (scores, scaled scores) of the alerts that the filters let through, by decision and rank."""
        inside = self._matching(run_id, filters).with_only_columns(Alert.decision, Alert.score, Alert.scaled_score)
        rows = self._run(inside.order_by(Alert.rank)).all()
        of_decision = {one: [row for row in rows if row.decision is one] for one in Decision}
        return {
            one: (np.array([row.score for row in own]), np.array([row.scaled_score for row in own]))
            for one, own in of_decision.items()
        }

    def count(self, run_id: RunId, **filters: Unpack[AlertFilters]) -> int:
        """Count the alerts that the filters let through; reads nothing but an index."""
        statement = select(func.count()).select_from(self._matching(run_id, filters).subquery())
        return int(self._run(statement).scalar_one())

    def count_hidden_by_triage(self, run_id: RunId, **filters: Unpack[AlertFilters]) -> int:
        """Count the alerts that only the filter on triage keeps away; starts from what was triaged where it can."""
        states, now = filters["triage"], filters["now"]
        everything = {name: value for name, value in filters.items() if name != "triage"}
        if TriageState.NEW not in states:
            return self.count(run_id, **everything) - self.count(run_id, **filters)  # type: ignore[arg-type]
        others = [state for state in TriageState if state not in states]
        hidden = _triaged(self._connection, run_id, others, now) if others else []
        if not hidden:
            return 0
        statement = self._matching(run_id, everything).where(Alert.id.in_(hidden)).subquery()  # type: ignore[arg-type]
        return int(self._run(select(func.count()).select_from(statement)).scalar_one())

    def lowest_scaled_scores(self, run_id: RunId, **filters: Unpack[AlertFilters]) -> dict[Decision, float]:
        """Return the scaled score of the last alert of each list that the filters let through."""
        found = {}
        wanted = filters.get("decision")
        for decision in [wanted] if wanted else Decision:
            of_list = self._matching(run_id, {**filters, "decision": decision})
            last = of_list.order_by(Alert.rank.desc()).limit(1).subquery()
            for score in self._run(select(Alert.scaled_score).join(last, last.c.id == Alert.id)).scalars():
                found[decision] = score
        return found

    def get(self, alert_id: AlertId) -> ListedAlert:
        """Return an alert that readers may see; raise NotFoundError if there is none, or its run is not published."""
        found = self._one(ListedAlert, _PUBLISHED, alert_id_=alert_id)
        if found is None:
            raise _no_alert(alert_id)
        return found

    def keys(self, alert_ids: Sequence[AlertId]) -> dict[AlertId, DecisionKey]:
        """Return the decisions that alerts of published runs are about, by alert and in their order.

        Raise NotFoundError if one of them does not exist.
        """
        found: dict[AlertId, DecisionKey] = {}
        for some in in_parts(alert_ids):
            for id_, patient_id, snapshot_at, task_key in self._run(_KEYS, ids=some):
                found[id_] = DecisionKey(patient_id, snapshot_at, task_key)
        for alert_id in alert_ids:
            if alert_id not in found:
                raise _no_alert(alert_id)
        return {alert_id: found[alert_id] for alert_id in alert_ids}

    def ids_of_decisions(self, run_id: RunId, decisions: Sequence[tuple[int, str]]) -> dict[tuple[int, str], AlertId]:
        """Return the alert of each decision (row of the instance, task key) that has one in the run's first lists."""
        found: dict[tuple[int, str], AlertId] = {}
        wanted = set(decisions)
        for rows in in_parts(sorted({row for row, _ in wanted})):
            statement = (
                select(Instance.row_index, Task.task_key, Alert.id)
                .join(Task, Task.id == Alert.task_id)
                .join(Instance, Instance.id == Alert.instance_id)
                .where(_of_scorer(run_id), Instance.row_index.in_(rows))
            )
            for row_index, task_key, alert_id in self._run(statement):
                if (row_index, task_key) in wanted:
                    found[row_index, task_key] = alert_id
        return found

    def of_decisions(self, run_id: RunId, decisions: Collection[DecisionKey]) -> list[AlertId]:
        """Return the alerts of a run that are about these decisions, in the lists of every scorer."""
        of_run = select(ScoringRun.snapshot_id).where(ScoringRun.id == run_id).scalar_subquery()
        of_import = select(Task.task_key, Task.id).where(Task.snapshot_id == of_run)
        tasks: dict[str, TaskId] = {}
        for keys in in_parts(sorted({key.task_key for key in decisions})):
            tasks |= dict(map(tuple, self._run(of_import.where(Task.task_key.in_(keys)))))
        found: list[AlertId] = []
        for some_known in in_parts(sorted(key for key in decisions if key.task_key in tasks)):
            of_patients = select(Instance.id, Instance.patient_id, Instance.snapshot_at).where(
                Instance.snapshot_id == of_run, Instance.patient_id.in_({key.patient_id for key in some_known})
            )
            instances = {(patient_id, moment): id_ for id_, patient_id, moment in self._run(of_patients)}
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
                found += self._run(statement).scalars()
        return found

    def cached_of_decisions(self, run: ScoringRun, decisions: Collection[DecisionKey]) -> list[AlertId]:
        """Return `of_decisions`, cached once the run is published."""
        wanted = frozenset(decisions)
        return cached_of_run(self._caches, "decisions", run, wanted, lambda: self.of_decisions(run.id, wanted))

    def neighbours(self, alert: ListedAlert, **filters: Unpack[AlertFilters]) -> tuple[AlertId | None, AlertId | None]:
        """Return the alerts before and after this one in the list of the filters, whether it is in that list or not.

        The list is that of the alert's own scorer.
        """
        filters["scorer"] = alert.scorer
        everything, hidden = self._whatever_was_done(alert.run_id, filters)
        own = self._matching(alert.run_id, {**everything, "decision": alert.decision})
        higher = own.where(Alert.rank < alert.rank).subquery()
        turn = 1 + self._run(select(func.count()).select_from(higher)).scalar_one()
        here, before = Place(0, turn, alert.decision.value, alert.rank), None
        last = turn - 1
        if filters.get("decision") not in {None, alert.decision}:  # the list of the other decision may end before it
            last = min(last, self.count(alert.run_id, **everything))
        # Among so many turns before it one is shown, if there is any.
        for place, row in self._by_turns(alert.run_id, filters, first_turn=max(1, last - len(hidden))):
            if place > here:
                return before, row.id
            if place < here:
                before = row.id
        return before, None

    def ranks_of_first(
        self, run_id: RunId, n: int, *, include_cut_windows: bool = False, scorer: str = ""
    ) -> dict[Decision, int]:
        """Return the last rank of each decision among the first n alerts by turns; empty when there are fewer."""
        lists = {
            one: self._matching(run_id, {"scorer": scorer, "include_cut_windows": include_cut_windows, "decision": one})
            for one in Decision
        }
        shares = {Decision.COMMISSION: (n + 1) // 2, Decision.OMISSION: n // 2}
        for one, other in permutations(Decision):
            if self._rank_at(lists[one], shares[one]) is None:  # this list ends early, the other takes its turns
                shares[one] = self._run(select(func.count()).select_from(lists[one].subquery())).scalar_one()
                shares[other] = n - shares[one]
        ranks = {one: self._rank_at(lists[one], shares[one]) for one in Decision}
        return {one: rank for one, rank in ranks.items() if rank is not None} if None not in ranks.values() else {}

    def ranks_at_budget(
        self, run: ScoringRun, n: int, *, include_cut_windows: bool = False, scorer: str = ""
    ) -> dict[Decision, int]:
        """Return `ranks_of_first`, cached once the run is published."""
        return cached_of_run(
            self._caches,
            "rank",
            run,
            (n, include_cut_windows, scorer),
            lambda: self.ranks_of_first(run.id, n, include_cut_windows=include_cut_windows, scorer=scorer),
        )

    def rank_at_score(self, run_id: RunId, score: float, decision: Decision, *, scorer: str = "") -> int:
        """Count the alerts of a list that score this much or more; ranks follow scores, so a few seeks tell."""
        listed = (_of_scorer(run_id, scorer), Alert.decision == decision)
        low, high = 0, self._run(select(func.max(Alert.rank)).where(*listed)).scalar() or 0
        while low < high:
            middle = (low + high + 1) // 2
            here = select(Alert.scaled_score).where(*listed, Alert.rank == middle)
            low, high = (middle, high) if self._run(here).scalar_one() >= score else (low, middle - 1)
        return low

    def days(self, run_id: RunId) -> tuple[datetime, datetime] | None:
        """Return the first and the last instance time of the run's import, None when it has no instance."""
        of_run = select(ScoringRun.snapshot_id).where(ScoringRun.id == run_id).scalar_subquery()
        mine = select(Instance.snapshot_at).where(Instance.snapshot_id == of_run)
        ends = [
            self._run(mine.order_by(order).limit(1)).scalar_one_or_none()
            for order in (Instance.snapshot_at.asc(), Instance.snapshot_at.desc())
        ]
        return None if ends[0] is None or ends[1] is None else (ends[0], ends[1])

    def filter_choices(self, run_id: RunId, scorer: str = "") -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
        """Return the units and the (key, name) of the tasks that have alerts, each by name."""
        units: list[str] = []
        while True:  # one seek for each unit, where SELECT DISTINCT would walk over every alert
            later = select(func.min(Alert.unit)).where(_of_scorer(run_id, scorer))
            unit = self._run(later.where(Alert.unit > units[-1]) if units else later).scalar()
            if unit is None:
                break
            units.append(unit)
        has_alert = exists().where(_of_scorer(run_id, scorer), Alert.task_id == Task.id)
        of_run = select(ScoringRun.snapshot_id).where(ScoringRun.id == run_id).scalar_subquery()
        tasks = self._run(
            select(Task.task_key, Task.name).where(Task.snapshot_id == of_run, has_alert).order_by(Task.name),
        )
        return tuple(unit for unit in units if unit), tuple((key, name) for key, name in tasks)

    def _matching(self, run_id: RunId, filters: AlertFilters) -> Select[AlertId]:
        return _matching_ids(self._connection, run_id, filters)


def _no_alert(alert_id: AlertId) -> NotFoundError:
    return NotFoundError(f"There is no alert {alert_id}. The link may come from another site or an old run.")


def _first_of_lines(listed: Iterator[Listed], line_of: LineOf | None) -> Iterator[Listed]:
    if line_of is None:
        yield from listed
        return
    begun = set()
    for place, row in listed:
        if (line := line_of(row)) not in begun:
            begun.add(line)
            yield place, row


def _of_scorer(run_id: RunId, scorer: str = "") -> ColumnElement[bool]:
    """Restrict alerts to the lists of one scorer of a run; without a name to those of its first."""
    if "\0" in scorer:
        return false()  # no name holds it, and PostgreSQL would not even take the question
    first = select(ScoringRun.scorer).where(ScoringRun.id == run_id).scalar_subquery()
    return and_(Alert.run_id == run_id, Alert.scorer == (scorer or first))


_CONDITIONS: dict[str, Callable[[Any, RunId], ColumnElement[bool]]] = {
    "decision": lambda decision, _: Alert.decision == decision,
    "kind": lambda kind, _: Alert.kind == kind,
    "unit": lambda unit, _: Alert.unit == unit,
    "patient_id": lambda patient, run_id: Alert.instance_id.in_(
        _instances(run_id).where(Instance.patient_id == patient)
    ),
}
"""Filters that one condition answers, from the value and the number of the run; nothing is asked for an empty value."""


def _matching_ids(connection: Connection, run_id: RunId, filters: AlertFilters) -> Select[AlertId]:
    """Select the ids of the alerts of a run that filters let through, without an order."""
    statement = select(Alert.id).where(_of_scorer(run_id, filters.get("scorer", "")))
    if any("\0" in value for value in filters.values() if isinstance(value, str)):
        return statement.where(false())  # no name holds it, and PostgreSQL would not even take the question
    for name, condition in _CONDITIONS.items():
        if value := filters.get(name):
            statement = statement.where(condition(value, run_id))
    if (within := filters.get("within")) is not None:
        statement = statement.where(Alert.unit.in_(within))
    statement = statement.where(*_between_ranks(filters))
    if not filters.get("include_cut_windows", False):
        statement = statement.where(not_(and_(Alert.decision == Decision.OMISSION, Alert.window_cut)))
    if filters.get("since") or filters.get("before"):
        statement = statement.where(_in_days(connection, run_id, filters.get("since"), filters.get("before")))
    if filters.get("task_key") or filters.get("text"):
        statement = statement.where(_searched(connection, run_id, filters.get("task_key", ""), filters.get("text", "")))
    if without := filters.get("without"):
        statement = statement.where(Alert.id.not_in(without))
    states, now = filters.get("triage"), filters.get("now")
    if states is not None and now is not None and set(states) != set(TriageState):
        statement = statement.where(_stands_at(connection, run_id, states, now))
    return statement


def _triaged(connection: Connection, run_id: RunId, states: Collection[TriageState], now: datetime) -> list[AlertId]:
    """Return the ids of a run's alerts that somebody has triaged and that stand at one of these states.

    A reader, who sees one state of the database as long as he reads, looks once.
    """
    seen: dict[Any, list[AlertId]] | None = connection.get_execution_options().get(SEEN)
    if seen is None:
        return _find_triaged(connection, run_id, states, now)
    key = (run_id, frozenset(states), now)
    if key not in seen:
        seen[key] = _find_triaged(connection, run_id, states, now)
    return seen[key]


def _find_triaged(
    connection: Connection, run_id: RunId, states: Collection[TriageState], now: datetime
) -> list[AlertId]:
    """Look for triaged alerts.

    A snooze that is over stands at "new". Step by step from what was triaged to its alerts: left to itself, the
    database would begin at the alerts, of which there are millions.
    """
    over = and_(Triage.state == TriageState.SNOOZED, Triage.snoozed_until <= now)
    stands: list[Any] = [and_(Triage.state.in_(states), not_(over))]
    if TriageState.NEW in states:
        stands.append(over)
    keys = select(Triage.patient_id, Triage.snapshot_at, Triage.task_key).where(or_(*stands))
    wanted = {(row.patient_id, row.snapshot_at, row.task_key) for row in run(connection, keys)}
    patients = sorted({patient for patient, _, _ in wanted})
    found: list[AlertId] = []
    run_of_alert: Any = Alert.run_id + 0
    for some in in_parts(patients):
        for ids in in_parts(run(connection, _instances(run_id).where(Instance.patient_id.in_(some))).scalars().all()):
            rows = run(
                connection,
                select(Alert.id, Instance.patient_id, Instance.snapshot_at, Task.task_key)
                .join(Instance, Instance.id == Alert.instance_id)
                .join(Task, Task.id == Alert.task_id)
                .where(run_of_alert == run_id, Alert.instance_id.in_(ids)),
            )
            found += [id_ for id_, *key in rows if tuple(key) in wanted]
    return found


def _stands_at(
    connection: Connection, run_id: RunId, states: Collection[TriageState], now: datetime
) -> ColumnElement[bool]:
    """Whether an alert stands at one of these states; what nobody has touched is new."""
    if TriageState.NEW not in states:
        found = _triaged(connection, run_id, states, now)
        return Alert.id.in_(found) if found else false()
    return Alert.id.not_in(_triaged(connection, run_id, [state for state in TriageState if state not in states], now))


def _between_ranks(filters: AlertFilters) -> list[ColumnElement[bool]]:
    decision = filters.get("decision")
    max_ranks, min_ranks = filters.get("max_ranks") or {}, filters.get("min_ranks") or {}
    conditions = [not_(and_(Alert.decision == limited, Alert.rank > rank)) for limited, rank in max_ranks.items()]
    conditions += [not_(and_(Alert.decision == limited, Alert.rank < rank)) for limited, rank in min_ranks.items()]
    shown = [decision] if decision else list(Decision)
    if all(one in max_ranks for one in shown):  # said once more for all, so that the index can stop there
        conditions.append(Alert.rank <= max(max_ranks[one] for one in shown))
    if all(one in min_ranks for one in shown):
        conditions.append(Alert.rank >= min(min_ranks[one] for one in shown))
    return conditions


def _instances(run_id: RunId) -> Select[InstanceId]:
    of_run = select(ScoringRun.snapshot_id).where(ScoringRun.id == run_id).scalar_subquery()
    return select(Instance.id).where(Instance.snapshot_id == of_run)


def _in_days(
    connection: Connection, run_id: RunId, since: datetime | None, before: datetime | None
) -> ColumnElement[bool]:
    """Find the instances first; many of them are no reason to leave the order of ranks."""
    within = _instances(run_id)
    if since is not None:
        within = within.where(Instance.snapshot_at >= since)
    if before is not None:
        within = within.where(Instance.snapshot_at < before)
    some = within.limit(_FEW_INSTANCES + 1).subquery()
    n_instances = run(connection, select(func.count()).select_from(some)).scalar_one()
    # The plus keeps the database from gathering every alert of many instances only to sort them.
    column: Any = Alert.instance_id if n_instances <= _FEW_INSTANCES else Alert.instance_id + 0
    return column.in_(within)  # type: ignore[no-any-return]


def _searched(connection: Connection, run_id: RunId, task_key: str, text: str) -> ColumnElement[bool]:
    """Restrict alerts to a task, and to tasks named like a text or the patient of this identifier.

    Tasks are found first, in all alphabets; many of them are no reason to leave the order of ranks.
    """
    tasks = run(
        connection,
        select(Task.id, Task.task_key, Task.name)
        .join(ScoringRun, ScoringRun.snapshot_id == Task.snapshot_id)
        .where(ScoringRun.id == run_id),
    )
    wanted = text.casefold()
    listed = {id_: name for id_, key, name in tasks if not task_key or key == task_key}
    named = _of_tasks([id_ for id_, name in listed.items() if wanted in name.casefold()])
    if not text:
        return named
    spellings = {text, text.upper(), text.lower()}
    days = run(connection, _instances(run_id).where(Instance.patient_id.in_(spellings)).limit(_FEW_INSTANCES))
    ids = days.scalars().all()
    if not ids:
        return named
    of_patient = Alert.instance_id.in_(ids)
    return or_(named, and_(of_patient, _of_tasks(list(listed))) if task_key else of_patient)


def _of_tasks(ids: list[TaskId]) -> ColumnElement[bool]:
    # The plus keeps the database from gathering every alert of many tasks only to sort them.
    column: Any = Alert.task_id if len(ids) == 1 else Alert.task_id + 0
    return column.in_(ids)  # type: ignore[no-any-return]
