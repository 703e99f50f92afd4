"""Cached worklist pages are read once and never stale."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle, pairwise, product
from typing import Any, cast

import pytest
import sqlalchemy as sa

from alertreview.alerts.explanations import Explanations
from alertreview.alerts.models import WorklistFilters, WorklistPage
from alertreview.alerts.triage import TriageService
from alertreview.alerts.triage_models import Grouping, ListOrder, TriageChoice
from alertreview.alerts.worklist import Worklist
from core.vocabulary import Decision, TriageState
from db.database import Database
from tests.support.stored_site import StoredSite

N_ALERTS = 8


class Ward:
    """A site with some alerts, and a worklist that stays open."""

    def __init__(self, site: StoredSite) -> None:
        self.site = site
        self.run_id = site.publish(
            [site.alert(row, row % 2, row + 1, list(Decision)[row % 2]) for row in range(N_ALERTS)]
        )
        self.worklist = self.opened()

    def opened(self) -> Worklist:
        """A worklist with an empty cache."""
        return Worklist(self.site.database, cast("Explanations", None), self.site.clock)

    def ids(self) -> list[int]:
        page = self.worklist.page(WorklistFilters(alerts_per_patient_day=float("inf"), include_cut_windows=True))
        return [row.alert_id for row in page.rows]


@pytest.fixture
def ward(site: StoredSite) -> Ward:
    return Ward(site)


def every_filter() -> Iterator[WorklistFilters]:
    """Every pair of a grouping and a choice, in each order in turn."""
    for (grouping, triage), order in zip(product(Grouping, TriageChoice), cycle(ListOrder), strict=False):
        yield WorklistFilters(
            grouping=grouping,
            order=order,
            triage=triage,
            alerts_per_patient_day=float("inf"),
            include_cut_windows=True,
        )


def every_page(worklist: Worklist) -> list[WorklistPage]:
    return [worklist.page(filters, limit=3) for filters in every_filter()]


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    """Statements that reach the tables of alerts."""
    asked: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if "FROM alert" in statement:
            asked.append(statement)

    sa.event.listen(database.engine, "before_cursor_execute", note)
    try:
        yield asked
    finally:
        sa.event.remove(database.engine, "before_cursor_execute", note)


def test_a_page_of_a_published_run_is_read_once(ward: Ward) -> None:
    # A list that shows nothing counts anew what each filter hides.
    shown = [filters for filters in every_filter() if ward.worklist.page(filters, limit=3).rows]
    assert len(shown) > len(Grouping)
    first = [ward.worklist.page(filters, limit=3) for filters in shown]
    with statements(ward.site.database) as asked:
        assert [ward.worklist.page(filters, limit=3) for filters in shown] == first
    assert not asked


def test_every_act_shows_at_once(ward: Ward) -> None:
    anna = ward.site.person("Anna")
    ids = ward.ids()
    clock = ward.site.clock
    with Database(ward.site.database.url) as elsewhere:
        here, there = TriageService(ward.site.database, clock), TriageService(elsewhere, clock)
        acts = (
            lambda: here.act(anna, {ids[0]: 0}, TriageState.IN_REVIEW, form_key="a"),
            lambda: there.act(anna, {ids[1]: 0}, TriageState.DISMISSED, form_key="b", reason="Fits this patient"),
            lambda: there.act(anna, {ids[2]: 0}, TriageState.SNOOZED, form_key="c", snooze_hours=2),
            lambda: clock.pass_hours(1),
            lambda: clock.pass_hours(2),
            lambda: here.undo(anna, "a"),
            lambda: ward.site.publish([ward.site.alert(row, 1, row + 1, Decision.OMISSION) for row in range(4)]),
        )
        seen = [every_page(ward.worklist)]
        for act in acts:
            act()
            seen.append(every_page(ward.worklist))
            assert seen[-1] == every_page(ward.opened())
    changes = [earlier != later for earlier, later in pairwise(seen)]
    assert changes == [True, True, True, False, True, True, True]


def test_cached_pages_respect_what_each_reader_may_see(site: StoredSite) -> None:
    readers = site.study(4, 2, n_slots=1)
    site.publish([site.alert(row, 0, row + 1, Decision.OMISSION) for row in range(4)])
    worklist = Worklist(site.database, cast("Explanations", None), site.clock)
    whole = WorklistFilters(alerts_per_patient_day=float("inf"), include_cut_windows=True)
    assert len(worklist.page(whole).rows) == 4
    for reader in readers:
        awaited = worklist.page(replace(whole, reader=reader))
        assert len(awaited.rows) == 4 - awaited.n_to_judge_first
        assert worklist.page(replace(whole, within=())).rows == ()
