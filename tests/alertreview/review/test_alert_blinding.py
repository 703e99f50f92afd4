"""Who has still to judge a decision blindly does not see its alert; who saw it first is marked in the judgment."""

from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest

from alertreview.alerts.lines import decision_of
from alertreview.alerts.models import AlertRow, WorklistFilters
from alertreview.alerts.triage_models import Grouping, ListOrder
from alertreview.application import Application, open_application
from alertreview.reports.checklists import checklist_items
from core.errors import RefusedError
from core.studies.report_input import SAW_SCORE
from core.vocabulary import Answer, Role
from db.models import DecisionKey

NOW = datetime(2026, 3, 1, 9, tzinfo=UTC)


@pytest.fixture
def own(own_home: Path) -> Application:
    return open_application(own_home)


def case_with_alert(own: Application) -> tuple[int, int]:
    """A case that the visitor may judge and that has an alert in the run: (case, alert)."""
    run = own.worklist.run()
    assert run is not None
    cases = {case.case_id: (case.row_index, case.task_key) for case in own.studies.case_rows("demo")}
    with own.database.read() as uow:
        slots = uow.slots.of_study(uow.studies.by_slug("demo").id)
        alerts = uow.alerts.ids_of_decisions(run.run_id, list(cases.values()))
    free = {slot.case_id for slot in slots if slot.reviewer_id is None}
    return next((case, alerts[place]) for case, place in cases.items() if case in free and place in alerts)


def visitor(own: Application) -> int:
    return next(person.person_id for person in own.site.people() if not person.simulated)


def test_a_reader_with_an_open_case_is_refused_and_sees_it_after_judging(own: Application) -> None:
    case, alert = case_with_alert(own)
    for look in (own.worklist.alert, own.worklist.preview):
        look(alert)
        with pytest.raises(RefusedError, match="still to judge"):
            look(alert, person_id=visitor(own))
    shown = own.review.case("demo", visitor(own), case)
    own.review.submit_judgment(
        "demo", visitor(own), case, answer=Answer.USUAL, version_seen=shown.version_seen, form_key=shown.form_key
    )
    assert own.worklist.alert(alert, person_id=visitor(own)).row.alert_id == alert
    vote = next(vote for vote in own.studies.votes("demo") if vote.reviewer_id == visitor(own))
    assert not vote.saw_score_before


def test_a_judgment_after_seeing_the_score_carries_the_mark(own: Application) -> None:
    case, alert = case_with_alert(own)
    with own.database.read() as uow:
        seen = uow.alerts.get(alert)
    with own.database.write() as uow:
        uow.cases.note_score_seen(visitor(own), decision_of(seen), seen.snapshot_at)
        uow.commit()
    shown = own.review.case("demo", visitor(own), case)
    own.review.submit_judgment(
        "demo", visitor(own), case, answer=Answer.USUAL, version_seen=shown.version_seen, form_key=shown.form_key
    )
    vote = next(vote for vote in own.studies.votes("demo") if vote.reviewer_id == visitor(own))
    assert vote.saw_score_before
    report = own.reports.report("demo")
    assert report.design[SAW_SCORE] == "1"
    assert (
        "1 judgment came after the reader had seen the score of the case, and may lean towards it." in report.warnings
    )
    (known,) = {item.answer for item in checklist_items(report) if item.number == "13b" and "STARD" in item.checklist}
    assert known == "Readers were shown no score; 1 judgment came after the reader had seen it elsewhere"


def test_somebody_who_is_no_reader_sees_every_alert(own: Application) -> None:
    _, alert = case_with_alert(own)
    with own.database.write() as uow:
        stranger = uow.people.add("Stranger", Role.VIEWER, created_at=NOW)
        uow.commit()
    assert own.worklist.alert(alert, person_id=stranger.id).row.alert_id == alert


EVERYTHING = WorklistFilters(alerts_per_patient_day=float("inf"), include_cut_windows=True)


def awaited_alerts(own: Application) -> dict[int, DecisionKey]:
    """Alerts on decisions that the visitor has still to judge, by a road of its own: cases with a free slot."""
    run = own.worklist.run()
    assert run is not None
    cases = {case.case_id: (case.row_index, case.task_key) for case in own.studies.case_rows("demo")}
    with own.database.read() as uow:
        slots = uow.slots.of_study(uow.studies.by_slug("demo").id)
        free = {slot.case_id for slot in slots if slot.reviewer_id is None}
        alerts = uow.alerts.ids_of_decisions(run.run_id, [cases[case] for case in free])
        return uow.alerts.keys(sorted(alerts.values()))


def whole_list(own: Application, filters: WorklistFilters) -> list[AlertRow]:
    rows: list[AlertRow] = []
    after: str | None = None
    while True:
        page = own.worklist.page(filters, after, limit=50)
        rows += [member for line in page.lines for member in line.members]
        assert {row.alert_id for row in page.rows} <= {row.alert_id for row in rows}
        if page.next_cursor is None:
            return rows
        after = page.next_cursor


@pytest.mark.parametrize("order", ListOrder)
@pytest.mark.parametrize("grouping", Grouping)
def test_no_list_of_a_reader_holds_what_is_still_to_be_judged_blindly(
    own: Application, grouping: Grouping, order: ListOrder
) -> None:
    awaited, reader = awaited_alerts(own), visitor(own)
    assert awaited
    filters = replace(EVERYTHING, grouping=grouping, order=order)
    everybody = whole_list(own, filters)
    mine = whole_list(own, replace(filters, reader=reader))
    assert awaited.keys() <= {row.alert_id for row in everybody}
    assert mine
    assert {row.alert_id for row in mine} == {row.alert_id for row in everybody} - awaited.keys()


def test_the_other_ways_to_a_list_leave_the_same_decisions_out(own: Application) -> None:
    awaited, reader = awaited_alerts(own), visitor(own)
    mine = replace(EVERYTHING, reader=reader)
    assert not awaited.keys() & own.alert_lists.targets(mine).keys()
    n_everybody = sum(omissions + commissions for _, omissions, commissions in own.alert_lists.units(EVERYTHING))
    n_mine = sum(omissions + commissions for _, omissions, commissions in own.alert_lists.units(mine))
    assert n_mine == n_everybody - len(awaited)
    for alert in awaited:
        with pytest.raises(RefusedError, match="still to judge"):
            own.alert_lists.line(alert, mine)
        with pytest.raises(RefusedError, match="still to judge"):
            own.alert_lists.past_instance(alert, 0, reader)
        with pytest.raises(RefusedError, match="still to judge"):
            own.triage.story(alert, reader)
        assert own.alert_lists.line(alert, EVERYTHING).first.alert_id == alert
    order = [row.alert_id for row in whole_list(own, mine)]
    assert order
    assert not awaited.keys() & set(order)
    for left, right in pairwise(order[:40]):
        assert own.worklist.alert(left, EVERYTHING, reader).next_alert_id == right
        assert own.worklist.alert(right, EVERYTHING, reader).previous_alert_id == left


def test_no_number_of_a_list_tells_the_score_of_what_is_left_out(own: Application) -> None:
    awaited, reader = awaited_alerts(own), visitor(own)
    n_cases = len(own.studies.case_rows("demo"))
    scores = {row.alert_id: row.scaled_score for row in whole_list(own, EVERYTHING)}
    n_to_judge = own.worklist.page(replace(EVERYTHING, reader=reader)).n_to_judge_first
    assert 0 < n_to_judge <= n_cases
    for alert, key in list(awaited.items())[:3]:
        only = replace(EVERYTHING, patient_id=key.patient_id, task_key=key.task_key)
        for low, high in ((None, None), (scores[alert] - 1e-6, scores[alert] + 1e-6), (scores[alert] + 1e-6, None)):
            asked = replace(only, lowest_score=low, highest_score=high)
            everybody = own.worklist.page(asked)
            mine = own.worklist.page(replace(asked, reader=reader))
            hidden = sum(row.alert_id in awaited for row in everybody.rows)
            assert mine.n_within_budget == mine.n_in_lists == len(mine.rows) == len(everybody.rows) - hidden
            assert mine.lowest_scaled_score == min((row.scaled_score for row in mine.rows), default=None)
            assert (mine.n_to_judge_first, everybody.n_to_judge_first) == (n_to_judge, 0)
            for name, n_shown_without in mine.n_hidden_by_filter.items():
                relaxed = replace(asked, reader=reader, **{name: getattr(WorklistFilters(), name)})
                assert n_shown_without == len(whole_list(own, relaxed))


def test_a_comparison_of_runs_leaves_them_out_as_well(own: Application) -> None:
    run = own.worklist.run()
    assert run is not None
    awaited = awaited_alerts(own)
    with own.database.read() as uow:
        ranks = {alert: uow.alerts.get(alert) for alert in awaited}
    for one in own.run_comparisons.compare(run.run_id, run.run_id, 5_000, visitor(own)):
        (whole,) = (w for w in own.run_comparisons.compare(run.run_id, run.run_id, 5_000) if w.decision is one.decision)
        assert one.n_after == whole.n_after - sum(record.decision is one.decision for record in ranks.values())


def test_a_case_whose_slots_are_all_judged_by_others_is_no_longer_awaited(own: Application) -> None:
    """Until the visitor has judged, a free slot keeps the alert closed; a full case can never become his."""
    with own.database.read() as uow:
        awaited = uow.cases.awaited_of(visitor(own))
        slots = uow.slots.of_study(uow.studies.by_slug("demo").id)
        cases = {case.id: case for case in uow.cases.in_study(uow.studies.by_slug("demo").id)}
    free = {slot.case_id for slot in slots if slot.reviewer_id is None}
    assert awaited == {DecisionKey(cases[c].patient_id, cases[c].snapshot_at, cases[c].task_key) for c in free}


def test_taking_a_judgment_back_closes_the_alert_again(own: Application) -> None:
    case, alert = case_with_alert(own)
    reader = visitor(own)
    shown = own.review.case("demo", reader, case)
    saved = own.review.submit_judgment(
        "demo", reader, case, answer=Answer.USUAL, version_seen=shown.version_seen, form_key=shown.form_key
    )
    assert alert in {row.alert_id for row in whole_list(own, replace(EVERYTHING, reader=reader))}
    own.review.undo("demo", reader, case, version_seen=saved.version, form_key="back")
    assert alert not in {row.alert_id for row in whole_list(own, replace(EVERYTHING, reader=reader))}
    with pytest.raises(RefusedError, match="still to judge"):
        own.worklist.alert(alert, person_id=reader)
