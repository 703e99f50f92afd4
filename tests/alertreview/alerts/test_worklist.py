"""The worklist: what the filters and the budget let through, in the order of ranks, page by page."""

from dataclasses import replace
from pathlib import Path

import pytest

from alertreview.alerts.models import AlertRow, WorklistFilters
from alertreview.alerts.triage_models import Grouping, TriageChoice
from alertreview.application import Application, open_application
from core.errors import NotFoundError
from core.kinds import Kind
from core.vocabulary import Decision, TriageState

EVERYTHING = WorklistFilters(alerts_per_patient_day=float("inf"), include_cut_windows=True)


def all_rows(application: Application, filters: WorklistFilters, limit: int = 7) -> list[AlertRow]:
    rows: list[AlertRow] = []
    after: str | None = None
    while True:
        page = application.worklist.page(filters, after=after, limit=limit)
        rows += page.rows
        if page.next_cursor is None:
            return rows
        after = page.next_cursor


@pytest.mark.parametrize("decision", list(Decision))
def test_one_list_is_in_the_order_of_scaled_scores(application: Application, decision: Decision) -> None:
    rows = all_rows(application, replace(EVERYTHING, decision=decision))
    assert len(rows) > 50
    scores = [row.scaled_score for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert [row.rank for row in rows] == list(range(1, len(rows) + 1))
    assert {row.decision for row in rows} == {decision}


@pytest.mark.parametrize("grouping", [Grouping.ALERT, Grouping.ORDER_GROUP, Grouping.EPISODE])
@pytest.mark.parametrize(
    "restricted", ["", "include_cut_windows", "kind", "unit", "task_key", "patient_id", "alerts_per_patient_day"]
)
def test_what_is_shown_takes_turns_until_one_list_ends(
    application: Application, restricted: str, grouping: Grouping
) -> None:
    cut = [row for row in all_rows(application, EVERYTHING) if row.window_cut and row.decision is Decision.OMISSION]
    assert min(row.rank for row in cut) < 10, "the default list passes over omissions near its top"
    value = {"include_cut_windows": True, "alerts_per_patient_day": 0.25}.get(restricted) or (
        getattr(cut[0], restricted) if restricted else None
    )
    filters = replace(EVERYTHING, include_cut_windows=False, grouping=grouping)
    filters = replace(filters, **{restricted: value}) if restricted else filters
    rows = all_rows(application, filters)
    n_both = 2 * min(sum(row.decision is one for row in rows) for one in Decision)
    assert n_both
    assert [row.decision for row in rows[:n_both]] == [Decision.COMMISSION, Decision.OMISSION] * (n_both // 2)
    for one in Decision:
        ranks = [row.rank for row in rows if row.decision is one]
        assert ranks == sorted(set(ranks))


def test_what_the_ward_has_dealt_with_leaves_the_others_in_their_places(own_home: Path) -> None:
    with open_application(own_home) as application:
        filters = replace(EVERYTHING, grouping=Grouping.ORDER_GROUP, triage=TriageChoice.OPEN)
        before = [row.alert_id for row in all_rows(application, filters)]
        dealt_with = {before[at] for at in (0, 2, 5, 6)}
        person = application.site.people()[0].person_id
        application.triage.act(person, dict.fromkeys(dealt_with, 0), TriageState.ACTIONED, form_key="some")
        after = [row.alert_id for row in all_rows(application, filters)]
        assert [one for one in after if one in before] == [one for one in before if one not in dealt_with]
        # Whoever goes on from an alert that has left the list meets the one that followed it.
        alone = replace(filters, grouping=Grouping.ALERT)
        order = [row.alert_id for row in all_rows(application, replace(alone, triage=TriageChoice.ANY))]
        left = [one for one in order if one not in dealt_with]
        for gone in dealt_with:
            following = order[order.index(gone) + 1 :]
            assert application.worklist.alert(gone, alone).next_alert_id == next(x for x in following if x in left)


def test_pages_hold_every_row_once_whatever_their_size(application: Application) -> None:
    small, large = (all_rows(application, EVERYTHING, limit) for limit in (7, 1000))
    assert [row.alert_id for row in small] == [row.alert_id for row in large]


@pytest.mark.parametrize("budget", [0.004, 0.05, 0.2, 0.25, 1.0])
@pytest.mark.parametrize("include_cut_windows", [False, True])
def test_a_budget_gives_that_many_alerts_of_both_lists_together(
    application: Application, budget: float, include_cut_windows: bool
) -> None:
    run = application.worklist.run()
    assert run is not None
    filters = WorklistFilters(alerts_per_patient_day=budget, include_cut_windows=include_cut_windows)
    page = application.worklist.page(filters)
    wanted = round(budget * page.n_patient_days)
    assert page.n_patient_days == run.n_recent
    rows = all_rows(application, filters)
    everything = all_rows(application, replace(filters, alerts_per_patient_day=float("inf")))
    assert [row.alert_id for row in rows] == [row.alert_id for row in everything[:wanted]]
    assert page.n_within_budget == len(rows) == wanted
    assert page.lowest_scaled_score == min((row.scaled_score for row in rows), default=None)
    assert page.lowest_scores == {
        decision: min(row.scaled_score for row in rows if row.decision is decision)
        for decision in {row.decision for row in rows}
    }
    assert [
        [row.alert_id for row in all_rows(application, replace(filters, decision=decision))] for decision in Decision
    ] == [[row.alert_id for row in rows if row.decision is decision] for decision in Decision]


def test_a_larger_budget_only_adds_rows(application: Application) -> None:
    small, large = (
        {row.alert_id for row in all_rows(application, WorklistFilters(alerts_per_patient_day=budget))}
        for budget in (0.1, 0.4)
    )
    assert small < large


def test_omissions_on_cut_windows_are_shown_only_when_asked_for(application: Application) -> None:
    cut = {row.alert_id for row in all_rows(application, EVERYTHING)} - {
        row.alert_id for row in all_rows(application, replace(EVERYTHING, include_cut_windows=False))
    }
    assert cut
    for alert_id in sorted(cut)[:6]:
        detail = application.worklist.alert(alert_id)
        assert detail.row.decision is Decision.OMISSION
        assert detail.patient.timeline.window_hours < 24


@pytest.mark.parametrize("kind", list(Kind))
def test_filters_show_what_they_say(application: Application, kind: Kind) -> None:
    unfiltered = all_rows(application, EVERYTHING)
    unit, task = unfiltered[0].unit, unfiltered[0].task_key
    for filters, fits in (
        (replace(EVERYTHING, kind=kind), lambda row: row.kind is kind),
        (replace(EVERYTHING, unit=unit), lambda row: row.unit == unit),
        (replace(EVERYTHING, task_key=task), lambda row: row.task_key == task),
        (replace(EVERYTHING, text="GLUC"), lambda row: "gluc" in row.task_name.lower()),
    ):
        found = all_rows(application, filters)
        assert {row.alert_id for row in found} == {row.alert_id for row in unfiltered if fits(row)}


def test_filters_that_fit_nothing_say_which_one_hides_how_much(application: Application) -> None:
    page = application.worklist.page(replace(EVERYTHING, text="no such task"))
    assert page.rows == ()
    assert page.n_within_budget == 0
    assert page.lowest_scaled_score is None
    assert page.n_hidden_by_filter["text"] > 0


def test_filter_choices_are_the_units_and_tasks_of_the_alerts(application: Application) -> None:
    run = application.worklist.run()
    assert run is not None
    choices = application.worklist.filter_choices(run.run_id)
    rows = all_rows(application, EVERYTHING)
    assert set(choices.units) == {row.unit for row in rows if row.unit}
    assert dict(choices.tasks) == {row.task_key: row.task_name for row in rows}


def test_previous_and_next_follow_the_list_the_reader_came_from(application: Application) -> None:
    filters = replace(EVERYTHING, decision=Decision.OMISSION, kind=Kind.LAB_ORDER)
    rows = all_rows(application, filters)
    middle = application.worklist.alert(rows[3].alert_id, filters)
    assert (middle.previous_alert_id, middle.next_alert_id) == (rows[2].alert_id, rows[4].alert_id)
    assert application.worklist.alert(rows[0].alert_id, filters).previous_alert_id is None
    assert application.worklist.alert(rows[-1].alert_id, filters).next_alert_id is None


def test_unknown_alerts_and_runs_are_not_found(application: Application) -> None:
    with pytest.raises(NotFoundError, match="no alert 987654"):
        application.worklist.alert(987654)
    with pytest.raises(NotFoundError, match="no published scoring run 77"):
        application.worklist.page(WorklistFilters(run_id=77))


def test_a_run_says_what_it_was_made_of(application: Application) -> None:
    run = application.worklist.run()
    assert run is not None
    assert application.worklist.runs() == (run,)
    assert run.simulated
    assert application.site.simulated
    assert run.n_alerts == len(all_rows(application, EVERYTHING))
    assert run.n_past + run.n_recent > run.n_recent > 0
    assert run.parameters["n_nodes"] == 200
