"""Caches of published runs: read once, bounded, never of what can still change, never for a writer."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from core.vocabulary import Decision
from db.cache import SIZES, Cache, shared_caches
from db.database import Database
from db.maintenance import bulk
from db.models import ScoringRun
from db.unit_of_work import UnitOfWork
from tests.db.test_runs import result
from tests.support.stored_site import EPOCH, StoredSite, new_run

ASKED: dict[str, Callable[[UnitOfWork, ScoringRun], object]] = {
    "snapshot": lambda uow, run: uow.snapshots.get(run.snapshot_id).content_hash,
    "folds": lambda uow, run: uow.runs.cached_folds(run).tolist(),
    "task": lambda uow, run: uow.runs.past_of_task(run, 1, "softhad").n_past,
    "rank": lambda uow, run: uow.alerts.ranks_at_budget(run, 2, include_cut_windows=True),
}


@contextmanager
def statements(database: Database) -> Iterator[list[str]]:
    found: list[str] = []

    def note(*given: object) -> None:
        found.append(str(given[2]))

    sa.event.listen(database.engine, "before_cursor_execute", note)
    yield found
    sa.event.remove(database.engine, "before_cursor_execute", note)


def begun(site: StoredSite, n_alerts: int) -> int:
    """A run with results and alerts that is not published yet."""
    with site.database.write() as uow:
        run_id = uow.runs.start(*new_run(site.snapshot.id, len(site.instances)))
        uow.commit()
    alerts = [site.alert(row, 0, row + 1, Decision.OMISSION) for row in range(n_alerts)]
    bulk.store_results(site.database, run_id, [result(task.id) for task in site.tasks], alerts)
    return run_id


def publish(site: StoredSite, run_id: int) -> None:
    with site.database.write() as uow:
        uow.runs.publish(run_id, published_at=EPOCH, floors={})
        uow.commit()


def row_of(site: StoredSite, run_id: int) -> ScoringRun:
    with site.database.read() as uow:
        return uow.runs.get(run_id)


@pytest.mark.parametrize("kind", list(ASKED))
def test_a_second_reader_sends_no_query(site: StoredSite, kind: str) -> None:
    run_id = begun(site, 3)
    publish(site, run_id)
    run = row_of(site, run_id)
    with site.database.read() as uow:
        first = ASKED[kind](uow, run)
    with statements(site.database) as asked, site.database.read() as uow:
        assert ASKED[kind](uow, run) == first
    assert not [text for text in asked if "FROM" in text]


def test_an_unpublished_run_is_not_cached(site: StoredSite) -> None:
    run_id = begun(site, 1)
    with site.database.read() as uow:
        assert uow.alerts.ranks_at_budget(uow.runs.get(run_id), 2, include_cut_windows=True) == {}
    bulk.store_results(site.database, run_id, [], [site.alert(1, 0, 2, Decision.OMISSION)])
    publish(site, run_id)
    with site.database.read() as uow:
        found = uow.alerts.ranks_at_budget(uow.runs.get(run_id), 2, include_cut_windows=True)
        assert found[Decision.OMISSION] == 2


@pytest.mark.parametrize("kind", list(ASKED))
def test_a_writer_bypasses_the_caches(site: StoredSite, kind: str) -> None:
    run_id = begun(site, 3)
    publish(site, run_id)
    run = row_of(site, run_id)
    with site.database.read() as uow:
        ASKED[kind](uow, run)
    with statements(site.database) as asked, site.database.write() as uow:
        ASKED[kind](uow, run)
    assert [text for text in asked if "FROM" in text]


def test_runs_scorers_and_budgets_have_separate_entries(site: StoredSite) -> None:
    for n_alerts in (2, 3):
        run_id = begun(site, n_alerts)
        publish(site, run_id)
        with site.database.read() as uow:
            run = uow.runs.get(run_id)
            ranks = [uow.alerts.ranks_at_budget(run, n, include_cut_windows=True) for n in (0, 1, 2, 3)]
            assert [one.get(Decision.OMISSION) for one in ranks] == [0, 1, 2, 3 if n_alerts == 3 else None]
            assert uow.alerts.ranks_at_budget(run, 1, scorer="another") == {}


@pytest.mark.parametrize("kind", list(SIZES))
def test_each_cache_drops_the_least_recently_used_entry(kind: str) -> None:
    cache, computed = shared_caches()[kind], []

    def ask(number: int) -> int:
        return cache.get(number, lambda: computed.append(number) or number)  # type: ignore[func-returns-value]

    for number in range(SIZES[kind] + 1):
        ask(number)
    computed.clear()
    assert [ask(number) for number in (SIZES[kind], 1, 0)] == [SIZES[kind], 1, 0]
    assert computed == [0]
    cache.clear()
    assert ask(1) == 1
    assert computed == [0, 1]


def test_errors_are_not_cached() -> None:
    cache: Cache[int] = Cache(4)
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: 1 // 0)
    assert cache.get("a", lambda: 7) == 7


def test_a_value_that_is_out_of_date_when_computed_is_not_cached() -> None:
    cache: Cache[int] = Cache(4)
    assert cache.get("a", lambda: 1, is_current=lambda: False) == 1
    assert cache.get("a", lambda: 2, is_current=lambda: True) == 2
    assert cache.get("a", lambda: 3) == 2


def test_keys_are_compared_by_content() -> None:
    cache: Cache[int] = Cache(4)
    assert cache.get((1, {"units": ["B4"], "tasks": {"K", "Na"}}), lambda: 1) == 1
    assert cache.get((1, {"tasks": {"Na", "K"}, "units": ("B4",)}), lambda: 2) == 1
    assert cache.get((1, {"tasks": {"Na", "K"}, "units": ("B4", "B5")}), lambda: 3) == 3


def test_the_total_weight_stays_within_bounds_in_many_threads() -> None:
    cache: Cache[str] = Cache(100, len)

    def ask() -> None:
        for number in range(500):
            assert cache.get(number % 37, lambda number=number: "x" * (number % 37)) == "x" * (number % 37)  # type: ignore[misc]

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(map(len, cache._entries.values())) == cache._entries.currsize <= 100
    assert cache.get("too heavy", lambda: "x" * 101) == "x" * 101
    assert sum(map(len, cache._entries.values())) == cache._entries.currsize <= 100
