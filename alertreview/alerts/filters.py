"""Which alerts somebody is shown: the worklist's filters, and decisions withheld until they are judged blindly."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from datetime import date, datetime, time, timedelta
from typing import cast
from zoneinfo import ZoneInfo

from alertreview.alerts.lines import Line, decision_of, lines_after
from alertreview.alerts.models import WorklistFilters
from alertreview.alerts.triage_models import STATES_SHOWN, Grouping, ListOrder
from alertreview.settings import Clock
from core.errors import InvalidInputError, RefusedError
from core.vocabulary import AlertId, Decision, PersonId, TriageState
from db.cache import Cache
from db.database import Database
from db.models import AlertFilters, ListedAlert, ScoringRun
from db.unit_of_work import UnitOfWork

JUDGE_FIRST = (
    "You have still to judge this decision in a study, without knowing its score. The alert opens once you have."
)
NO_FILTERS = frozenset({"run_id", "scorer", "within", "reader", "grouping", "order"})
"""Fields that choose what the list is and how it looks, not which alerts of it are shown."""


def restriction_of(
    uow: UnitOfWork, run: ScoringRun, filters: WorklistFilters, zone: ZoneInfo, now: datetime
) -> AlertFilters:
    """Translate filters; the budget is counted before any other filter, on what the lists offer.

    Raise InvalidInputError if the run has no such scorer.
    """
    if filters.scorer and filters.scorer not in (run.scorer, *run.scorers):
        raise InvalidInputError(
            f"Scoring run {run.id} has no scorer '{filters.scorer}'; it has {', '.join(run.all_scorers)}."
        )
    restriction = AlertFilters(
        without=withheld_alerts(uow, run, filters.reader),
        since=_start(filters.first_day, zone),
        before=_start(filters.last_day + timedelta(days=1) if filters.last_day else None, zone),
        max_ranks=_last_ranks(uow, run, filters),
        min_ranks=_first_ranks(uow, run, filters),
        triage=STATES_SHOWN[filters.triage],
        now=now,
    )
    as_they_are = {
        field.name: getattr(filters, field.name)
        for field in fields(filters)
        if field.name in AlertFilters.__annotations__ and field.name not in restriction
    }
    return cast("AlertFilters", restriction | as_they_are)


def withheld_alerts(uow: UnitOfWork, run: ScoringRun, reader: PersonId | None) -> list[AlertId]:
    """Return the alerts of a run that a reader must not meet in any list: the decisions still to be judged blindly.

    Left out whole, not blanked: the place of a row in a list by rank tells its score as well.
    """
    awaited = uow.cases.awaited_of(reader) if reader is not None else set()
    return uow.alerts.cached_of_decisions(run, awaited) if awaited else []


def refuse_withheld(uow: UnitOfWork, alert: ListedAlert, person_id: PersonId | None) -> None:
    """Raise RefusedError, saying what to do first, to a reader who has still to judge an alert's decision."""
    if person_id is not None and uow.cases.awaits_judgment_of(person_id, decision_of(alert)):
        raise RefusedError(JUDGE_FIRST)


def show_score(database: Database, clock: Clock, person_id: PersonId, alert_id: AlertId) -> bool:
    """Return whether an alert may show score and votes, and if so remember that the person saw them.

    Not to a reader who has still to judge the decision blindly. To everybody else it may, and a later judgment of the
    same decision carries the mark. Raise NotFoundError if there is no such alert.
    """
    with database.read() as uow:
        decision = uow.alerts.keys([alert_id])[alert_id]
        if uow.cases.awaits_judgment_of(person_id, decision):
            return False
        was_seen = uow.cases.score_of_decision_was_seen(person_id, decision)
    if not was_seen:
        with database.write() as uow:
            # Checked again inside the transaction: the reader's case may have come up meanwhile.
            if uow.cases.awaits_judgment_of(person_id, decision):
                return False
            uow.cases.note_score_seen(person_id, decision, clock())
            uow.commit()
    return True


def relaxed_one_by_one(filters: WorklistFilters) -> Iterator[tuple[str, WorklistFilters]]:
    """Return the filters once more without each single one that is in use, by its field name."""
    unrestricted = WorklistFilters()
    for field in fields(WorklistFilters):
        blank = getattr(unrestricted, field.name)
        if field.name not in NO_FILTERS and getattr(filters, field.name) != blank:
            yield field.name, replace(filters, **{field.name: blank})


def ranks_at_budget(uow: UnitOfWork, run: ScoringRun, filters: WorklistFilters) -> dict[Decision, int]:
    """Return the rank at which the budget ends in each list; empty when the lists together are shorter.

    One budget for both lists, which share it by turns.
    """
    if math.isinf(filters.alerts_per_patient_day):
        return {}
    n_alerts = round(filters.alerts_per_patient_day * run.n_patient_days)
    return uow.alerts.ranks_at_budget(
        run, n_alerts, include_cut_windows=filters.include_cut_windows, scorer=filters.scorer
    )


def _last_ranks(uow: UnitOfWork, run: ScoringRun, filters: WorklistFilters) -> dict[Decision, int]:
    """Lowest rank shown: where the budget ends, or the lower end of the scores if that comes first."""
    ranks = ranks_at_budget(uow, run, filters)
    if filters.lowest_score is None:
        return ranks
    at_score = {
        decision: uow.alerts.rank_at_score(run.id, filters.lowest_score, decision, scorer=filters.scorer)
        for decision in Decision
    }
    return {decision: min(rank, ranks.get(decision, rank)) for decision, rank in at_score.items()}


def _first_ranks(uow: UnitOfWork, run: ScoringRun, filters: WorklistFilters) -> dict[Decision, int]:
    """Highest rank shown: the first one that scores no more than the upper end of the scores."""
    if filters.highest_score is None:
        return {}
    just_above = math.nextafter(filters.highest_score, math.inf)
    return {
        decision: 1 + uow.alerts.rank_at_score(run.id, just_above, decision, scorer=filters.scorer)
        for decision in Decision
    }


def _start(day: date | None, zone: ZoneInfo) -> datetime | None:
    """First moment of a day at the site."""
    return datetime.combine(day, time.min, zone) if day is not None else None


CACHED_ALERTS = 20_000
"""Alerts on all cached pages together, about a kilobyte each."""


@dataclass(frozen=True)
class FoundPage:
    """Lines of a page, and how many alerts of the whole list the triage filter hides."""

    lines: tuple[Line, ...]
    next_cursor: str | None
    n_hidden_by_triage: int


class WorklistPages:
    """Cache of the pages of published runs, shared by all sessions of the process.

    A published run never changes; its triage does. The key therefore holds the last triage act and the number of
    snoozes that are over, and nothing has to be invalidated when somebody acts, in this process or another.
    """

    def __init__(self) -> None:
        self._cache: Cache[FoundPage] = Cache(CACHED_ALERTS, weight=lambda page: 1 + sum(map(len, page.lines)))

    def get(
        self,
        uow: UnitOfWork,
        run: ScoringRun,
        grouping: Grouping,
        order: ListOrder,
        after: str | None,
        limit: int,
        restriction: AlertFilters,
    ) -> FoundPage:
        """Return a page of a published run, as `alertreview.alerts.lines.lines_after`."""
        shows_every_state = set(restriction["triage"]) == set(TriageState)
        triage_stamp = None if shows_every_state else uow.triage.latest_change(restriction["now"])
        asked = {name: value for name, value in restriction.items() if name != "now"}

        def read() -> FoundPage:
            lines, cursor = lines_after(uow, run.id, grouping, order, after, limit, restriction)
            return FoundPage(tuple(lines), cursor, uow.alerts.count_hidden_by_triage(run.id, **restriction))

        return self._cache.get((run.id, run.published_at, grouping, order, after, limit, asked, triage_stamp), read)
