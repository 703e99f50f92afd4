"""Alerts: pages by key equal a plain sort, whatever the filters; nothing is counted or sorted at length."""

import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from core.errors import InvalidInputError, NotFoundError
from core.kinds import Kind
from core.vocabulary import Decision, TriageState
from db.database import Database
from db.models import AlertFilters, ListedAlert, TriageAct
from db.unit_of_work import UnitOfWork
from tests.support.stored_site import EPOCH, StoredSite

NOW = EPOCH + timedelta(days=40)
OPEN = (TriageState.NEW, TriageState.IN_REVIEW)
CLOSED = (TriageState.ACTIONED, TriageState.DISMISSED)
SNOOZES = {3: NOW - timedelta(hours=1), 4: NOW + timedelta(hours=1)}
"""Row of the instance -> end of the snooze of its decisions on the first task: one is over, one is not."""
STATES = {5: TriageState.IN_REVIEW, 6: TriageState.ACTIONED, 7: TriageState.DISMISSED, 8: TriageState.NEW}

FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "decision": st.sampled_from([None, *Decision]),
        "kind": st.sampled_from([None, *Kind]),
        "unit": st.sampled_from(["", "Ward A", "Ward B", "Ward Z"]),
        "task_key": st.sampled_from(["", "LAB_ORDER/0", "MEDICATION/1", "MEDICATION/99"]),
        "text": st.sampled_from(["", "na", "NATRIUM (NA⁺)", "%", "in", "canary-1", "CANARY-2", "canary"]),
        "patient_id": st.sampled_from(["", "canary-1"]),
        "max_ranks": st.dictionaries(st.sampled_from(list(Decision)), st.sampled_from([0, 3, 11]), max_size=2),
        "min_ranks": st.dictionaries(st.sampled_from(list(Decision)), st.sampled_from([0, 2, 9, 99]), max_size=2),
        "since": st.sampled_from([None, EPOCH + timedelta(days=3)]),
        "before": st.sampled_from([None, EPOCH + timedelta(days=8), EPOCH]),
        "within": st.sampled_from([None, (), ("Ward A",), ("Ward A", "")]),
        "triage": st.sampled_from([tuple(TriageState), OPEN, (TriageState.NEW,), CLOSED, (TriageState.SNOOZED,)]),
        "include_cut_windows": st.booleans(),
    },
).map(lambda filters: filters | {"now": NOW})


@pytest.fixture
def on_sqlite(sqlite_database: Database) -> tuple[StoredSite, int]:
    return filled(StoredSite(sqlite_database))


@pytest.fixture
def listed(site: StoredSite) -> tuple[StoredSite, int]:
    return filled(site)


def filled(site: StoredSite) -> tuple[StoredSite, int]:
    """A site with a run of 60 alerts in shuffled order, and another run whose alerts must never show."""
    chance = random.Random(7)
    omissions = [
        site.alert(chance.randrange(12), chance.randrange(4), rank, Decision.OMISSION, 1 - rank / 50)
        for rank in range(1, 36)
    ]
    commissions = [
        site.alert(chance.randrange(12), chance.randrange(4), rank, Decision.COMMISSION, 1 - rank / 40)
        for rank in range(1, 26)
    ]
    alerts = omissions + commissions
    chance.shuffle(alerts)
    run_id = site.publish(alerts)
    triage(site)
    site.publish([site.alert(0, 0, 1, Decision.OMISSION)])
    return site, run_id


def triage(site: StoredSite) -> None:
    """Triage the decisions of some instances on the first two tasks."""
    person = site.person("Anna")
    acts = [
        TriageAct(
            patient_id=site.instances[row].patient_id,
            snapshot_at=site.instances[row].snapshot_at,
            task_key=site.tasks[task].task_key,
            version=1,
            former_state=TriageState.NEW,
            state=STATES.get(row, TriageState.SNOOZED),
            snoozed_until=SNOOZES.get(row),
            reason="because",
            person_id=person,
            acted_at=EPOCH,
            form_key=f"{row}",
        )
        for row in (*SNOOZES, *STATES)
        for task in (0, 1)
    ]
    with site.database.write() as uow:
        uow.triage.append(acts)
        uow.commit()


def stands(alert: ListedAlert) -> TriageState:
    """Where an alert stands at `NOW`, the obvious way."""
    row = alert.row_index
    if alert.column_index > 1 or row not in {*SNOOZES, *STATES} or SNOOZES.get(row, NOW) < NOW:
        return TriageState.NEW
    return STATES.get(row, TriageState.SNOOZED)


def everything(site: StoredSite, run_id: int) -> list[ListedAlert]:
    with site.database.read() as uow:
        return list(uow.alerts.page(run_id, limit=1_000, include_cut_windows=True).rows)


def plainly(alerts: list[ListedAlert], filters: dict[str, Any]) -> list[ListedAlert]:
    """Filter and sort the slow and obvious way; what triage hides keeps its turn."""

    states = filters.get("triage", tuple(TriageState))

    def passes(alert: ListedAlert) -> bool:
        return all(
            (
                not filters.get("decision") or alert.decision is filters["decision"],
                not filters.get("kind") or alert.kind is filters["kind"],
                not filters.get("unit") or alert.unit == filters["unit"],
                not filters.get("task_key") or alert.task_key == filters["task_key"],
                filters.get("text", "").casefold() in alert.task_name.casefold()
                or filters["text"].casefold() == alert.patient_id.casefold(),
                not filters.get("patient_id") or alert.patient_id == filters["patient_id"],
                alert.rank <= filters.get("max_ranks", {}).get(alert.decision, 1_000),
                alert.rank >= filters.get("min_ranks", {}).get(alert.decision, 0),
                not filters.get("since") or alert.snapshot_at >= filters["since"],
                not filters.get("before") or alert.snapshot_at < filters["before"],
                filters.get("within") is None or alert.unit in filters["within"],
                TriageState.NEW in states or stands(alert) in states,
                filters.get("include_cut_windows", False)
                or alert.decision is Decision.COMMISSION
                or alert.window_hours >= 24,
            )
        )

    return [alert for _, alert in places(list(filter(passes, alerts))) if stands(alert) in states]


def places(alerts: list[ListedAlert]) -> list[tuple[tuple[int, str], ListedAlert]]:
    """Have commissions and omissions take turns."""
    found = []
    for decision in Decision:
        queue = sorted((one for one in alerts if one.decision is decision), key=lambda alert: alert.rank)
        found += [((turn, decision.value), alert) for turn, alert in enumerate(queue)]
    return sorted(found, key=lambda one: one[0])


def newest_first(alerts: list[ListedAlert]) -> list[ListedAlert]:
    by_rank = sorted(alerts, key=lambda alert: (alert.rank, alert.decision.value))
    return sorted(by_rank, key=lambda alert: alert.snapshot_at, reverse=True)


def pages(site: StoredSite, run_id: int, limit: int, filters: dict[str, Any]) -> Iterator[tuple[ListedAlert, ...]]:
    cursor = None
    while True:
        with site.database.read() as uow:
            page = uow.alerts.page(run_id, after=cursor, limit=limit, **filters)
        yield page.rows
        cursor = page.next_cursor
        if cursor is None:
            return


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(filters=FILTERS, limit=st.integers(3, 20))
def test_pages_put_together_are_the_sorted_list(
    listed: tuple[StoredSite, int], filters: dict[str, Any], limit: int
) -> None:
    site, run_id = listed
    expected = plainly(everything(site, run_id), filters)
    shown = list(pages(site, run_id, limit, filters))
    assert [alert for page in shown for alert in page] == expected
    assert all(len(page) == limit for page in shown[:-1])
    assert shown == [()] or all(shown)
    with site.database.read() as uow:
        assert uow.alerts.count(run_id, **filters) == len(expected)
        lowest = uow.alerts.lowest_scaled_scores(run_id, **filters)
        units = uow.alerts.units(run_id, **filters)
        by_day = uow.alerts.page(run_id, by_day=True, limit=100, **filters).rows
        if "triage" in filters:
            whatever = {name: value for name, value in filters.items() if name != "triage"}
            n_hidden = uow.alerts.count_hidden_by_triage(run_id, **filters)
            assert n_hidden == uow.alerts.count(run_id, **whatever) - len(expected)
    assert {(unit, one): n for unit, counts in units.items() for one, n in counts.items()} == Counter(
        (alert.unit, alert.decision) for alert in expected
    )
    assert list(by_day) == newest_first(expected)
    assert lowest == {
        decision: min(alert.scaled_score for alert in expected if alert.decision is decision)
        for decision in {alert.decision for alert in expected}
    }


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(filters=FILTERS, at=st.integers(0, 59))
@example(filters={"decision": Decision.OMISSION, "triage": CLOSED, "now": NOW}, at=48)  # the other list has ended
def test_neighbours_are_those_in_the_list_of_the_filters(
    listed: tuple[StoredSite, int], filters: dict[str, Any], at: int
) -> None:
    site, run_id = listed
    alerts = everything(site, run_id)
    here = alerts[at]
    others = plainly(alerts, filters)
    if here in others:
        at = others.index(here)
        expected = (others[at - 1].id if at else None, others[at + 1].id if at + 1 < len(others) else None)
        with site.database.read() as uow:
            assert uow.alerts.neighbours(here, **filters) == expected
        return
    # Beside the list, an alert stands where it would stand if the ward had not dealt with it, or in front of the next.
    states = filters.get("triage", tuple(TriageState))
    whatever = {**filters, "triage": tuple(TriageState) if TriageState.NEW in states else states}
    ahead = [one for one in plainly(alerts, {**whatever, "decision": here.decision}) if one.rank < here.rank]
    key = (len(ahead), here.decision.value, here.rank)
    listed_at = {alert.id: (*place, alert.rank) for place, alert in places(plainly(alerts, whatever))}
    before = [alert.id for alert in others if listed_at[alert.id] < key]
    after = [alert.id for alert in others if listed_at[alert.id] > key]
    with site.database.read() as uow:
        found = uow.alerts.neighbours(here, **filters)
    assert found == (before[-1] if before else None, after[0] if after else None)


@pytest.mark.parametrize("include_cut_windows", [True, False])
def test_the_ranks_of_the_first_alerts_end_the_budget_in_each_list(
    listed: tuple[StoredSite, int], include_cut_windows: bool
) -> None:
    site, run_id = listed
    filters: AlertFilters = {"include_cut_windows": include_cut_windows}
    alerts = plainly(everything(site, run_id), dict(filters))
    with site.database.read() as uow:
        for n in range(len(alerts) + 2):
            ranks = uow.alerts.ranks_of_first(run_id, n, include_cut_windows=include_cut_windows)
            inside = [
                alert.id for alert in alerts if alert.decision not in ranks or alert.rank <= ranks[alert.decision]
            ]
            assert inside == [alert.id for alert in alerts[:n]]
            assert (ranks == {}) is (n > len(alerts))
            assert uow.alerts.count(run_id, **filters, max_ranks=ranks) == min(n, len(alerts))


@pytest.mark.parametrize("decision", list(Decision))
def test_the_rank_at_a_score_counts_the_alerts_at_or_above_it(
    listed: tuple[StoredSite, int], decision: Decision
) -> None:
    site, run_id = listed
    scores = [alert.scaled_score for alert in everything(site, run_id) if alert.decision is decision]
    with site.database.read() as uow:
        for score in (0.0, 0.5, min(scores), max(scores), 1.0, 2.0):
            found = uow.alerts.rank_at_score(run_id, score, decision)
            assert found == sum(one >= score for one in scores)


@pytest.mark.parametrize("limit", [1, 4, 7])
def test_pages_by_day_put_together_are_the_newest_first(listed: tuple[StoredSite, int], limit: int) -> None:
    site, run_id = listed
    shown: list[ListedAlert] = []
    cursor = None
    while True:
        with site.database.read() as uow:
            page = uow.alerts.page(run_id, by_day=True, after=cursor, limit=limit, include_cut_windows=True)
        shown += page.rows
        cursor = page.next_cursor
        if cursor is None:
            break
    assert shown == newest_first(everything(site, run_id))


def test_both_decisions_together_take_turns(listed: tuple[StoredSite, int]) -> None:
    site, run_id = listed
    first = everything(site, run_id)[:6]
    assert [(alert.rank, alert.decision) for alert in first] == [
        (rank, decision) for rank in (1, 2, 3) for decision in (Decision.COMMISSION, Decision.OMISSION)
    ]


def test_an_alert_brings_its_instance_and_task(listed: tuple[StoredSite, int]) -> None:
    site, run_id = listed
    for alert in everything(site, run_id):
        instance = next(i for i in site.instances if i.id == alert.instance_id)
        task = next(t for t in site.tasks if t.id == alert.task_id)
        assert (alert.patient_id, alert.snapshot_at, alert.sex) == (
            instance.patient_id,
            instance.snapshot_at,
            instance.sex,
        )
        assert (alert.row_index, alert.window_hours) == (instance.row_index, instance.window_hours)
        assert (alert.task_key, alert.task_name, alert.kind) == (task.task_key, task.name, task.kind)
        with site.database.read() as uow:
            assert uow.alerts.get(alert.id) == alert


def test_alerts_are_found_by_their_decisions(listed: tuple[StoredSite, int]) -> None:
    site, run_id = listed
    alerts = everything(site, run_id)
    wanted = [(alert.row_index, alert.task_key) for alert in alerts[:7]]
    with site.database.read() as uow:
        found = uow.alerts.ids_of_decisions(run_id, [*wanted, (0, "LAB_ORDER/none"), (999, "LAB_ORDER/0")])
    assert set(found) == set(wanted)
    by_id = {alert.id: (alert.row_index, alert.task_key) for alert in alerts}
    assert all(by_id[alert_id] == decision for decision, alert_id in found.items())


def test_filters_offer_what_has_alerts(site: StoredSite) -> None:
    run_id = site.publish(
        [
            site.alert(0, 2, 1, Decision.OMISSION),
            site.alert(1, 0, 2, Decision.OMISSION),
            site.alert(2, 0, 3, Decision.OMISSION),
        ]
    )
    with site.database.read() as uow:
        units, tasks = uow.alerts.filter_choices(run_id)
        assert units == ("Ward A", "Ward B")
        assert tasks == (("LAB_ORDER/2", "Natrium (Na⁺)"), ("LAB_ORDER/0", "Troponin I"))
        assert uow.alerts.filter_choices(run_id + 1) == ((), ())


def test_an_empty_unit_does_not_hide_the_others(site: StoredSite) -> None:
    run_id = site.publish([site.alert(2, 0, 1, Decision.OMISSION), site.alert(0, 0, 2, Decision.OMISSION)])
    with site.database.read() as uow:
        assert uow.alerts.filter_choices(run_id)[0] == ("Ward A",)


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "3",
        "0.3.3.both",
        "3-omission",
        "0.0.0.0.omission",
        f"{'9' * 30}.3.3.omission",
        "0.1; DROP TABLE alert.1.omission",
    ],
)
def test_a_damaged_cursor_is_refused(listed: tuple[StoredSite, int], cursor: str) -> None:
    site, run_id = listed
    with site.database.read() as uow, pytest.raises(InvalidInputError, match="Open the first page"):
        uow.alerts.page(run_id, after=cursor)


@pytest.mark.parametrize("attack", ["' OR 1=1 --", "%'; DROP TABLE alert; --", "_", "\\", "\x00"])
@pytest.mark.checklist("D5")
def test_filters_are_values_never_sql(listed: tuple[StoredSite, int], attack: str) -> None:
    site, run_id = listed
    with site.database.read() as uow:
        for name in ("unit", "task_key", "text", "patient_id"):
            assert uow.alerts.page(run_id, **{name: attack}).rows == ()  # type: ignore[arg-type]
    assert len(everything(site, run_id)) == 60


def test_an_alert_that_does_not_exist_is_said_to_be_missing(listed: tuple[StoredSite, int]) -> None:
    site, _ = listed
    with site.database.read() as uow:
        with pytest.raises(NotFoundError, match="no alert 999"):
            uow.alerts.get(999)
        with pytest.raises(NotFoundError, match="no alert 999"):
            uow.alerts.keys([999])


def plans_of(site: StoredSite, act: Callable[[UnitOfWork], object]) -> list[str]:
    """How SQLite goes about each statement of an act that reads alerts."""
    statements: list[str] = []
    raw = site.database.engine.raw_connection()
    driver = raw.driver_connection
    assert driver is not None
    driver.set_trace_callback(statements.append)
    raw.close()
    with site.database.read() as uow:
        act(uow)
        chosen = [text for text in statements if "FROM alert" in text]
        return [" | ".join(row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {text}")) for text in chosen]


def test_alerts_of_awaited_decisions_are_found_without_reading_a_run(on_sqlite: tuple[StoredSite, int]) -> None:
    site, run_id = on_sqlite
    with site.database.read() as uow:
        alerts = [alert.id for alert in uow.alerts.page(run_id).rows[:3]]
        keys = uow.alerts.keys(alerts)
        found = uow.alerts.of_decisions(run_id, keys.values())
        assert set(alerts) <= set(found)
        assert set(uow.alerts.keys(found).values()) == set(keys.values()), "those of other scorers as well"
        assert {uow.alerts.get(alert_id).run_id for alert_id in found} == {run_id}
    (plan,) = plans_of(site, lambda uow: uow.alerts.of_decisions(run_id, keys.values()))
    assert "SEARCH alert USING INDEX ix_alert_instance_id_task_id (instance_id=?" in plan


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"decision": Decision.OMISSION},
        {"kind": Kind.MEDICATION},
        {"unit": "Ward A"},
        {"task_key": "LAB_ORDER/0"},
        {"text": "in"},
        {"unit": "Ward A", "decision": Decision.COMMISSION},
        {"max_ranks": dict.fromkeys(Decision, 20)},
        {"triage": OPEN, "now": NOW},
        {"min_ranks": dict.fromkeys(Decision, 3)},
    ],
)
def test_no_page_sorts_and_no_count_leaves_its_index(
    on_sqlite: tuple[StoredSite, int], filters: dict[str, Any]
) -> None:
    site, run_id = on_sqlite

    def read(uow: UnitOfWork) -> None:
        uow.alerts.page(run_id, line_of=lambda row: row.order_group, **filters)
        uow.alerts.count(run_id, **filters)

    *walks, records_plan, count_plan = plans_of(site, read)
    for walk in walks[-1 if filters.get("decision") else -2 :]:
        assert "SEARCH alert USING" in walk
        assert "INDEX" in walk
        assert "TEMP B-TREE" not in walk
        assert "SCAN alert" not in walk
    assert "SCAN alert" not in records_plan
    assert "USING COVERING INDEX" in count_plan
