"""Triage: shared, never overwritten, all or nothing, and told to whoever was slower."""

import itertools
import sqlite3
from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alertreview.alerts.models import WorklistFilters
from alertreview.alerts.triage import MOST_AT_ONCE, TriageService
from alertreview.alerts.triage_models import TriageStory
from core.errors import ConflictError, InvalidInputError, NotFoundError, RefusedError
from core.vocabulary import Decision, TriageState
from db.database import Database
from db.models import DecisionKey
from tests.support.stored_site import Clock, StoredSite, new_instances, new_snapshot, new_tasks

SOME = "Fits this patient"


class Ward:
    """A site with six alerts and two people."""

    def __init__(self, site: StoredSite) -> None:
        self.site = site
        self.clock: Clock = site.clock
        self.run_id = site.publish([site.alert(row, 0, row + 1, Decision.OMISSION) for row in range(6)])
        self.anna, self.bert = site.person("Anna"), site.person("Bert")
        self.triage = TriageService(site.database, site.clock)

    def ids(self, run_id: int | None = None) -> list[int]:
        with self.site.database.read() as uow:
            rows = uow.alerts.page(run_id or self.run_id, limit=100, include_cut_windows=True).rows
        return [row.id for row in rows]

    def story(self, alert_id: int) -> TriageStory:
        return self.triage.story(alert_id)

    def state(self, alert_id: int) -> TriageState:
        return self.story(alert_id).status.state


@pytest.fixture
def ward(site: StoredSite) -> Ward:
    return Ward(site)


def test_an_act_keeps_who_when_from_what_to_what_and_why_and_one_audit_row(ward: Ward) -> None:
    alert = ward.ids()[0]
    done = ward.triage.act(ward.anna, {alert: 0}, TriageState.DISMISSED, form_key="a", reason=SOME)
    assert (done.n_done, done.n_already) == (1, 0)
    story = ward.story(alert)
    (act,) = story.acts
    assert (act.person, act.former_state, act.state, act.reason, act.version) == (
        "Anna",
        TriageState.NEW,
        TriageState.DISMISSED,
        SOME,
        1,
    )
    assert act.acted_at.utcoffset() is not None
    with ward.site.database.read() as uow:
        rows = [row for row in uow.audit.latest() if row.action == "triage saved"]
    assert [(row.actor, row.object) for row in rows] == [(f"person {ward.anna}", f"alert {alert}")]
    assert '"after":"dismissed"' in rows[0].details
    assert "canary" not in rows[0].details
    assert SOME not in rows[0].details


def test_the_second_of_two_tabs_hears_who_was_faster_and_nothing_is_lost(ward: Ward) -> None:
    alert = ward.ids()[0]
    ward.triage.act(ward.anna, {alert: 0}, TriageState.ACTIONED, form_key="a")
    with pytest.raises(ConflictError, match=r"Changed meanwhile: Anna set it to 'actioned' at \d\d:\d\d"):
        ward.triage.act(ward.bert, {alert: 0}, TriageState.DISMISSED, form_key="b", reason=SOME)
    assert ward.state(alert) is TriageState.ACTIONED
    assert len(ward.story(alert).acts) == 1


def test_an_act_on_many_is_all_or_nothing(ward: Ward) -> None:
    ids = ward.ids()
    ward.triage.act(ward.anna, {ids[3]: 0}, TriageState.IN_REVIEW, form_key="a")
    with pytest.raises(ConflictError, match=r"1 of the 6 alerts changed meanwhile"):
        ward.triage.act(ward.bert, dict.fromkeys(ids, 0), TriageState.DISMISSED, form_key="b", reason=SOME)
    assert [ward.state(one) for one in ids].count(TriageState.NEW) == 5


def test_the_same_press_twice_is_one_act(ward: Ward) -> None:
    alert = ward.ids()[0]
    for _ in range(2):
        ward.triage.act(ward.anna, {alert: 0}, TriageState.ACTIONED, form_key="once")
    assert len(ward.story(alert).acts) == 1


def test_undo_takes_an_act_on_many_back_but_leaves_what_others_moved_on(ward: Ward) -> None:
    ids = ward.ids()
    ward.triage.act(ward.anna, {ids[0]: 0}, TriageState.SNOOZED, form_key="s", snooze_hours=5)
    before = ward.story(ids[0]).status.snoozed_until
    seen = dict.fromkeys(ids, 0) | {ids[0]: 1}
    done = ward.triage.act(ward.anna, seen, TriageState.DISMISSED, form_key="all", reason=SOME)
    assert done.n_done == 6
    ward.triage.act(ward.bert, {ids[1]: 1}, TriageState.ACTIONED, form_key="b")
    for _ in range(2):
        undone = ward.triage.undo(ward.anna, "all")
        assert (undone.n_done, undone.n_changed_meanwhile) == (5, 1)
    assert ward.state(ids[0]) is TriageState.SNOOZED
    assert ward.story(ids[0]).status.snoozed_until == before
    assert ward.state(ids[1]) is TriageState.ACTIONED
    assert {ward.state(one) for one in ids[2:]} == {TriageState.NEW}
    assert [act.state for act in ward.story(ids[2]).acts] == [TriageState.NEW, TriageState.DISMISSED]


def test_nobody_takes_back_what_somebody_else_did(ward: Ward) -> None:
    alert = ward.ids()[0]
    ward.triage.act(ward.anna, {alert: 0}, TriageState.ACTIONED, form_key="a")
    with pytest.raises(RefusedError, match="nothing to undo"):
        ward.triage.undo(ward.bert, "a")


def test_a_snooze_lapses_by_itself_and_the_alert_is_new_again(ward: Ward) -> None:
    alert = ward.ids()[0]
    ward.triage.act(ward.anna, {alert: 0}, TriageState.SNOOZED, form_key="s", snooze_hours=24)
    with ward.site.database.read() as uow:
        now = ward.clock()
        snoozed = {"triage": [TriageState.SNOOZED], "include_cut_windows": True}
        assert uow.alerts.count(ward.run_id, now=now, **snoozed) == 1  # type: ignore[arg-type]
    ward.clock.pass_hours(25)
    status = ward.story(alert).status
    assert status.state is TriageState.NEW
    assert status.snoozed_until is not None
    with ward.site.database.read() as uow:
        now = ward.clock()
        assert uow.alerts.count(ward.run_id, now=now, **snoozed) == 0  # type: ignore[arg-type]
        new = {"triage": [TriageState.NEW], "include_cut_windows": True}
        assert uow.alerts.count(ward.run_id, now=now, **new) == 6  # type: ignore[arg-type]


def test_what_is_closed_can_be_opened_again(ward: Ward) -> None:
    alert = ward.ids()[0]
    ward.triage.act(ward.anna, {alert: 0}, TriageState.DISMISSED, form_key="a", reason=SOME)
    ward.triage.act(ward.bert, {alert: 1}, TriageState.NEW, form_key="b")
    assert [(act.former_state, act.state) for act in ward.story(alert).acts] == [
        (TriageState.DISMISSED, TriageState.NEW),
        (TriageState.NEW, TriageState.DISMISSED),
    ]


def test_triage_and_notes_follow_the_decision_into_a_new_run_and_a_new_import(ward: Ward) -> None:
    alert = ward.ids()[0]
    ward.triage.act(ward.anna, {alert: 0}, TriageState.ACTIONED, form_key="a")
    ward.triage.add_note(ward.bert, alert, "Called the ward.", form_key="n")
    site = ward.site
    again = site.publish([site.alert(0, 0, 1, Decision.OMISSION)])
    with site.database.write() as uow:
        later = [replace(one, row_index=11 - one.row_index) for one in new_instances(12)]
        uow.snapshots.add(new_snapshot("b" * 64), later, new_tasks(4))
        uow.commit()
    newest = StoredSite.reopen(site.database)
    moved = newest.publish(
        [
            newest.alert(
                newest.instances.index(next(one for one in newest.instances if one.row_index == 11)),
                0,
                1,
                Decision.OMISSION,
            )
        ]
    )
    for run_id in (again, moved):
        (there,) = ward.ids(run_id)
        assert there != alert
        assert ward.state(there) is TriageState.ACTIONED
        assert [note.text for note in ward.story(there).notes] == ["Called the ward."]


@pytest.mark.parametrize(
    ("state", "options", "error", "words"),
    [
        (TriageState.DISMISSED, {}, RefusedError, "Dismissing needs a reason"),
        (TriageState.DISMISSED, {"reason": "  "}, RefusedError, "Dismissing needs a reason"),
        (TriageState.DISMISSED, {"reason": "x" * 501}, InvalidInputError, "501 characters; at most 500"),
        (TriageState.DISMISSED, {"reason": "a\0b"}, InvalidInputError, "null character"),
        (TriageState.SNOOZED, {}, RefusedError, "at most 90 days"),
        (TriageState.SNOOZED, {"snooze_hours": -1.0}, RefusedError, "at most 90 days"),
        (TriageState.SNOOZED, {"snooze_hours": float("nan")}, RefusedError, "at most 90 days"),
        (TriageState.NEW, {}, RefusedError, "it is new already"),
    ],
)
def test_what_the_rules_refuse_leaves_no_trace(
    ward: Ward, state: TriageState, options: dict[str, object], error: type[Exception], words: str
) -> None:
    alert = ward.ids()[0]
    with pytest.raises(error, match=words):
        ward.triage.act(ward.anna, {alert: 0}, state, form_key="x", **options)  # type: ignore[arg-type]
    assert ward.story(alert).acts == ()
    with ward.site.database.read() as uow:
        assert [row for row in uow.audit.latest() if row.action.startswith("triage")] == []


def test_too_many_none_or_unknown_alerts_are_refused(ward: Ward) -> None:
    for targets in ({}, dict.fromkeys(range(1, MOST_AT_ONCE + 2), 0)):
        with pytest.raises(InvalidInputError, match="1 to 1,000"):
            ward.triage.act(ward.anna, targets, TriageState.ACTIONED, form_key="x")
    with pytest.raises(NotFoundError, match="no alert 999"):
        ward.triage.act(ward.anna, {999: 0}, TriageState.ACTIONED, form_key="x")


def test_notes_are_kept_once_and_empty_ones_are_refused(ward: Ward) -> None:
    alert = ward.ids()[0]
    for _ in range(2):
        ward.triage.add_note(ward.anna, alert, "  Seen on the round. ", form_key="n")
    assert [(note.person, note.text) for note in ward.story(alert).notes] == [("Anna", "Seen on the round.")]
    with pytest.raises(RefusedError, match="note is empty"):
        ward.triage.add_note(ward.anna, alert, " ", form_key="m")
    with pytest.raises(InvalidInputError, match="at most 4,000"):
        ward.triage.add_note(ward.anna, alert, "x" * 4_001, form_key="m")
    with ward.site.database.read() as uow:
        (row,) = [row for row in uow.audit.latest() if row.action == "note added"]
    assert "round" not in row.details


def test_the_database_itself_keeps_acts_and_notes_as_they_are(sqlite_database: Database) -> None:
    ward = Ward(StoredSite(sqlite_database))
    alert = ward.ids()[0]
    ward.triage.act(ward.anna, {alert: 0}, TriageState.ACTIONED, form_key="a")
    ward.triage.add_note(ward.anna, alert, "x", form_key="n")
    raw = ward.site.database.engine.raw_connection()
    driver = raw.driver_connection
    assert driver is not None
    driver.execute("PRAGMA query_only = 0")
    for statement in ("UPDATE triage_act SET reason = 'y'", "DELETE FROM triage_act", "DELETE FROM triage_note"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            driver.execute(statement)
    raw.close()


ACTS = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(list(TriageState)), st.booleans()), min_size=1, max_size=12
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(acts=ACTS)
def test_replaying_the_acts_gives_where_every_decision_stands(
    ward: Ward, acts: list[tuple[int, TriageState, bool]]
) -> None:
    ids = ward.ids()[:3]
    for place, state, undone in acts:
        seen = ward.story(ids[place]).status.version
        key = f"{place}-{seen}"
        try:
            ward.triage.act(ward.anna, {ids[place]: seen}, state, form_key=key, reason="r", snooze_hours=1.0)
        except RefusedError:
            continue
        if undone:
            ward.triage.undo(ward.anna, key)
    with ward.site.database.read() as uow:
        for key in uow.alerts.keys(ids).values():
            history = uow.triage.history(DecisionKey(*key))
            status = uow.triage.status([key]).get(key)
            if not history:
                assert status is None
                continue
            assert [act.version for act in history] == list(range(len(history), 0, -1))
            assert all(late.former_state is early.state for late, early in itertools.pairwise(history))
            assert status is not None
            assert (status.version, status.state, status.snoozed_until) == (
                history[0].version,
                history[0].state,
                history[0].snoozed_until,
            )


def test_what_others_moved_is_counted_where_it_stands_now_without_ones_own_and_what_was_taken_back(ward: Ward) -> None:
    ids, began = ward.ids(), ward.clock()

    def moved(reader: int | None, since: datetime = began, **filters: object) -> dict[TriageState, int]:
        shown = WorklistFilters(run_id=ward.run_id, reader=reader, **filters)  # type: ignore[arg-type]
        return dict(ward.triage.moved_by_others(since, shown))

    assert moved(ward.anna) == {}, "nobody did anything"
    for number, (who, at, state) in enumerate(
        [
            (ward.anna, 0, TriageState.IN_REVIEW),
            (ward.bert, 0, TriageState.ACTIONED),  # over Anna's
            (ward.bert, 1, TriageState.IN_REVIEW),
            (ward.anna, 2, TriageState.ACTIONED),
            (ward.bert, 3, TriageState.ACTIONED),
            (ward.bert, 3, TriageState.NEW),  # back again
        ]
    ):
        version = ward.story(ids[at]).status.version
        ward.triage.act(who, {ids[at]: version}, state, form_key=str(number))
    assert moved(ward.anna) == {TriageState.ACTIONED: 1, TriageState.IN_REVIEW: 1}
    assert moved(ward.bert) == {TriageState.ACTIONED: 1}
    assert moved(None) == {TriageState.ACTIONED: 2, TriageState.IN_REVIEW: 1}
    assert moved(None, within=("no such unit",)) == {}
    ward.clock.pass_hours(1)
    assert moved(None, ward.clock()) == {}, "before the moment"
    ward.site.studies.create_study("one", "One", ward.run_id, [ward.site.case(0)], n_slots=1)
    ward.site.studies.add_readers("one", [ward.anna])
    ward.site.studies.open_study("one")
    assert moved(ward.anna) == {TriageState.IN_REVIEW: 1}, "what is still to be judged blindly stays out"
