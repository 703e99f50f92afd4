"""The expected true-alert rate of a budget, for both lists, once more by a plain road."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from alertreview.alerts.models import WorklistFilters
from alertreview.application import Application, open_application
from alertreview.studies.models import CaseForReport
from core.vocabulary import Answer, Decision

BUDGETS = (0.02, 0.1, 0.5, 3.0)


@pytest.fixture(scope="module")
def judged(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    """The small demonstration with its study locked: enough votes of the simulated readers, no more to come."""
    home = Path(shutil.copytree(demo_home, tmp_path_factory.mktemp("judged") / "home"))
    with open_application(home) as opened:
        opened.studies.lock_study("demo", reason="the panel is done")
        yield opened


def rate_by_hand(judged: Application, filters: WorklistFilters, scorer: str) -> tuple[float | None, int, int]:
    """Weighted share of relevant cases among those whose score lies inside the budget of their own list.

    The end of the budget is read off the worklist: the lowest score among the alerts that it shows of that list.
    """
    ends: dict[Decision, float] = {}
    for decision in Decision:
        only = replace(filters, decision=decision, kind=None, unit="", task_key="")
        shown = judged.worklist.page(only, limit=5_000).rows
        if shown:
            ends[decision] = min(row.scaled_score for row in shown)
    votes = judged.studies.votes("demo")
    hit = total = 0.0
    n_labelled = n_inside = 0
    for case in judged.studies.case_rows("demo"):
        if not is_inside(case, ends, filters, scorer):
            continue
        n_inside += 1
        answers = [vote.answer for vote in votes if vote.case_id == case.case_id]
        counted = [answer for answer in answers if answer is not Answer.CANNOT_JUDGE]
        yes = sum(answer is Answer.RELEVANT for answer in counted)
        if len(counted) < 2 or 2 * yes == len(counted):
            continue
        n_labelled += 1
        weight = 1.0 / case.inclusion_probability
        total += weight
        hit += weight * (2 * yes > len(counted))
    return (hit / total if total else None), n_labelled, n_inside


def is_inside(case: CaseForReport, ends: dict[Decision, float], filters: WorklistFilters, scorer: str) -> bool:
    wanted = filters.decision is None or filters.decision is case.decision
    return wanted and case.decision in ends and case.scores[scorer].scaled_score >= ends[case.decision]


@pytest.mark.parametrize("decision", [None, *Decision])
@pytest.mark.parametrize("budget", BUDGETS)
def test_the_rate_is_that_of_a_count_by_hand_in_both_lists(
    judged: Application, budget: float, decision: Decision | None
) -> None:
    filters = WorklistFilters(alerts_per_patient_day=budget, decision=decision)
    found = judged.alert_lists.expected_rate(filters)
    assert found is not None
    value, n_labelled, _ = rate_by_hand(judged, filters, "shared")
    assert found.rate.value == (None if value is None else pytest.approx(value))
    assert found.n_cases == found.rate.n == n_labelled
    assert found.study == "Demonstration panel"
    if value is None:
        assert "no labelled case" in found.rate.reason
    else:
        assert found.rate.method.startswith("weighted share of positive cases; interval by a stratified Bayesian boot")
        if found.rate.has_interval:
            assert found.rate.low <= value <= found.rate.high
        else:
            assert found.rate.reason.endswith("one patient")


def test_enough_cases_lie_inside_for_the_count_to_mean_something(judged: Application) -> None:
    for decision in (None, *Decision):
        filters = WorklistFilters(alerts_per_patient_day=3.0, decision=decision)
        _, n_labelled, n_inside = rate_by_hand(judged, filters, "shared")
        assert n_inside >= n_labelled >= 4


def test_both_lists_together_hold_the_cases_of_each(judged: Application) -> None:
    for budget in BUDGETS:
        filters = WorklistFilters(alerts_per_patient_day=budget)
        whole, *parts = (
            judged.alert_lists.expected_rate(replace(filters, decision=decision)) for decision in (None, *Decision)
        )
        assert whole is not None
        assert whole.n_cases == sum(part.n_cases for part in parts if part is not None)


def test_a_larger_budget_only_adds_cases(judged: Application) -> None:
    for decision in (None, *Decision):
        asked = [WorklistFilters(alerts_per_patient_day=budget, decision=decision) for budget in BUDGETS]
        counts = [found.n_cases for one in asked if (found := judged.alert_lists.expected_rate(one))]
        assert counts == sorted(counts)
        assert len(counts) == len(BUDGETS)


def test_other_filters_and_the_reader_do_not_change_it_but_the_scorer_does(judged: Application) -> None:
    filters = WorklistFilters(alerts_per_patient_day=0.5)
    reader = judged.site.people()[0].person_id
    same = replace(filters, unit="Nowhere", text="gluc", patient_id="x", reader=reader, within=("Nowhere",))
    assert judged.alert_lists.expected_rate(same) == judged.alert_lists.expected_rate(filters)
    for scorer in ("logistic", "softhad-paper"):
        other = replace(filters, scorer=scorer)
        found = judged.alert_lists.expected_rate(other)
        value, n_labelled, _ = rate_by_hand(judged, other, scorer)
        assert found is not None
        assert (found.rate.value, found.n_cases) == (pytest.approx(value), n_labelled)


def test_there_is_none_before_the_study_is_judged(application: Application) -> None:
    assert application.alert_lists.expected_rate(WorklistFilters()) is None
