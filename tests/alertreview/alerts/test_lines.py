"""Lines of the worklist: alerts that belong together stand once, where the first of them stands, on one page only."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from alertreview.alerts.alert_lists import AlertLists
from alertreview.alerts.lines import headline, line_words
from alertreview.alerts.models import AlertRow, WorklistFilters, WorklistLine
from alertreview.alerts.triage_models import Grouping, ListOrder
from alertreview.application import Application
from core.errors import InvalidInputError, NotFoundError
from core.kinds import ACT_WORDS, Kind
from core.vocabulary import Decision

ALL = WorklistFilters(alerts_per_patient_day=float("inf"), include_cut_windows=True)
KEYS: dict[Grouping, Callable[[AlertRow], object]] = {
    Grouping.ALERT: lambda row: row.alert_id,
    Grouping.ORDER_GROUP: lambda row: (
        (row.patient_id, row.snapshot_at, row.decision, row.order_group) if row.order_group else row.alert_id
    ),
    Grouping.PATIENT_DAY: lambda row: (row.patient_id, row.snapshot_at),
}


def all_lines(application: Application, filters: WorklistFilters, limit: int) -> list[WorklistLine]:
    lines: list[WorklistLine] = []
    after: str | None = None
    while True:
        page = application.worklist.page(filters, after=after, limit=limit)
        assert page.rows == tuple(line.first for line in page.lines)
        lines += page.lines
        if page.next_cursor is None:
            return lines
        assert len(page.lines) == limit
        after = page.next_cursor


@pytest.mark.parametrize("decision", Decision)
@pytest.mark.parametrize("name", ["Platelets", "Triglycerides", "Potassium", "Blood cultures", "LABEL falls"])
def test_no_verb_depends_on_whether_a_name_is_one_thing_or_many(name: str, decision: Decision) -> None:
    negation = "not " if decision is Decision.OMISSION else ""
    for kind in Kind:
        for done in ("", *(word for event in kind.events for word in ACT_WORDS.get(event, ()))):
            words = kind.worded(done)
            assert headline(name, words, decision) == f"{name} {negation}{words.done}"


@pytest.mark.parametrize("order", list(ListOrder))
@pytest.mark.parametrize("grouping", list(KEYS))
def test_every_alert_is_in_one_line_with_those_it_belongs_to(
    application: Application, grouping: Grouping, order: ListOrder
) -> None:
    filters = replace(ALL, order=order, kind=Kind.LAB_ORDER)
    (flat,) = [[line.first for line in all_lines(application, filters, 10_000)]]
    if order is ListOrder.RANK:  # the n-th line of either decision has the n-th turn
        places = []
        for decision in Decision:
            own = [row for row in flat if row.decision is decision]
            begun = [len({KEYS[grouping](row) for row in own[: at + 1]}) for at in range(len(own))]
            places += [((turn, row.decision.value, row.rank), row) for turn, row in zip(begun, own, strict=True)]
        flat = [row for _, row in sorted(places, key=lambda one: one[0])]
    expected: dict[object, list[AlertRow]] = {}
    for row in flat:
        expected.setdefault(KEYS[grouping](row), []).append(row)
    lines = all_lines(application, replace(filters, grouping=grouping), 13)
    by_rank = [sorted(members, key=lambda row: (row.rank, row.decision.value)) for members in expected.values()]
    assert [list(line.members) for line in lines] == by_rank


def test_an_episode_is_the_same_decision_on_several_days_of_one_stay(application: Application) -> None:
    lines = all_lines(application, replace(ALL, grouping=Grouping.EPISODE), 50)
    several = [line for line in lines if len(line.members) > 1]
    assert several
    for line in several:
        assert len({(row.patient_id, row.task_key, row.decision) for row in line.members}) == 1
        assert len({row.snapshot_at for row in line.members}) == len(line.members)
        assert line.words.endswith(f", {len(line.members)} days")
    ids = [row.alert_id for line in lines for row in line.members]
    assert len(ids) == len(set(ids)) == len(all_lines(application, ALL, 10_000))


def test_an_alert_leads_to_its_line_and_stands_alone_where_filters_hide_it(application: Application) -> None:
    filters = replace(ALL, grouping=Grouping.PATIENT_DAY)
    line = next(line for line in all_lines(application, filters, 50) if len(line.members) > 1)
    lists: AlertLists = application.alert_lists
    assert lists.line(line.members[-1].alert_id, filters) == line
    hidden = replace(filters, text="no such task")
    assert lists.line(line.first.alert_id, hidden).members == (line.first,)
    with pytest.raises(NotFoundError, match="no alert 999999"):
        lists.line(999_999, filters)


def test_the_lists_of_two_scorers_are_never_merged(application: Application) -> None:
    run = application.worklist.run()
    assert run is not None
    assert len(run.scorers) > 1
    for scorer in run.scorers[:2]:
        rows = application.worklist.page(replace(ALL, scorer=scorer), limit=200).rows
        assert {row.scorer for row in rows} == {scorer}
        assert application.worklist.alert(rows[0].alert_id).row.scorer == scorer
    with pytest.raises(InvalidInputError, match="has no scorer 'magic'; it has"):
        application.worklist.page(replace(ALL, scorer="magic"))


def test_days_and_scores_narrow_the_list_as_they_say(application: Application) -> None:
    rows = application.worklist.page(ALL, limit=10_000).rows
    days = sorted({row.snapshot_at.date() for row in rows})
    first, last = days[len(days) // 3], days[2 * len(days) // 3]
    low, high = 0.65, 0.9
    found = application.worklist.page(replace(ALL, first_day=first, last_day=last), limit=10_000)
    assert {row.alert_id for row in found.rows} == {
        row.alert_id for row in rows if first <= row.snapshot_at.date() <= last
    }
    found = application.worklist.page(replace(ALL, lowest_score=low, highest_score=high), limit=10_000)
    assert {row.alert_id for row in found.rows} == {row.alert_id for row in rows if low <= row.scaled_score <= high}
    assert found.n_within_budget == len(found.rows)


def test_units_add_up_to_the_list(application: Application) -> None:
    filters = WorklistFilters(alerts_per_patient_day=0.5)
    counted = application.alert_lists.units(filters)
    assert (
        sum(omissions + commissions for _, omissions, commissions in counted)
        == application.worklist.page(filters).n_within_budget
    )
    totals = [omissions + commissions for _, omissions, commissions in counted]
    assert totals == sorted(totals, reverse=True)


def test_each_similar_day_opens_at_its_own_morning_with_its_own_decision(application: Application) -> None:
    seen = set()
    for decision in Decision:
        for alert in application.worklist.page(replace(ALL, decision=decision), limit=20).rows:
            for position, neighbour in enumerate(application.worklist.alert(alert.alert_id).neighbours):
                timeline = application.alert_lists.past_instance(alert.alert_id, position)
                assert timeline.snapshot_at == neighbour.snapshot_at
                assert (timeline.decision is Decision.COMMISSION) == neighbour.decided
                seen.add((decision, timeline.decision))
    assert len(seen) == 4, "both decisions occur beside alerts of both kinds"


@pytest.mark.parametrize("position", [-1, 6])
def test_a_similar_day_that_is_not_listed_is_not_opened(application: Application, position: int) -> None:
    alert = application.worklist.page(ALL, limit=1).rows[0]
    with pytest.raises(NotFoundError, match="no past instance"):
        application.alert_lists.past_instance(alert.alert_id, position)


def test_support_times_disagreement_is_the_score(application: Application) -> None:
    softhad = replace(ALL, scorer="softhad")
    detail = application.worklist.alert(application.worklist.page(softhad, limit=1).rows[0].alert_id)
    assert detail.disagreement is not None
    assert detail.disagreement * detail.row.support == pytest.approx(detail.row.score)
    # The default scorer's score is a chance, and no such product is shown beside it.
    default = application.worklist.alert(application.worklist.page(ALL, limit=1).rows[0].alert_id)
    assert default.disagreement is None
    assert 0 <= default.row.score <= 1


def test_a_line_says_what_its_members_have_in_common(application: Application) -> None:
    row = application.worklist.page(replace(ALL, kind=Kind.LAB_ORDER, decision=Decision.OMISSION), limit=1).rows[0]
    panel = [replace(row, order_group="Basic metabolic panel")] * 8
    assert line_words(panel, Grouping.ORDER_GROUP) == "Basic metabolic panel: 8 labs not ordered"
    assert line_words(panel[:1], Grouping.ORDER_GROUP) == row.decision_words
    assert line_words(panel[:3], Grouping.PATIENT_DAY) == f"{row.decision_words} and 2 more"
    mixed = [panel[0], replace(panel[0], kind=Kind.MEDICATION)]
    assert line_words(mixed, Grouping.ORDER_GROUP) == "Basic metabolic panel: 2 decisions not taken"


def test_the_expected_rate_waits_until_a_study_is_judged(application: Application) -> None:
    assert application.alert_lists.expected_rate(WorklistFilters()) is None
