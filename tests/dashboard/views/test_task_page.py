"""The Task page: two tasks side by side, what the budget means, drift, and what it says when something is missing."""

import json
from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from tests.dashboard.conftest import OpenPage, address, nothing_failed, words
from tests.dashboard.doubles.application import FakeApplication
from tests.dashboard.doubles.tasks import FakeTasks


def alts(page: AppTest) -> list[str]:
    return [chart.proto.alt for chart in page.get("plotly_chart")]


def test_two_tasks_stand_side_by_side_and_both_stand_in_the_address(open_page: OpenPage) -> None:
    page = open_page("task", FakeApplication(), task="lab:amylase", other="med:insulin-iv")
    assert nothing_failed(page)
    assert "# Amylase" in words(page)
    said = [alt for alt in alts(page) if alt.startswith("Histogram")]
    assert [("Amylase" in alt, "scaled score" in alt) for alt in said] == [
        (True, True),
        (True, False),
        (False, True),
        (False, False),
    ]
    page.selectbox(key="task_choice_other").select("lab:magnesium").run()
    assert address(page) == {"task": "lab:amylase", "other": "lab:magnesium"}
    assert sum("Magnesium" in alt for alt in alts(page)) == 2
    page.selectbox(key="task_choice_task").select("lab:digoxin").run()
    assert "# Digoxin level" in words(page)


def test_without_a_task_in_the_address_it_shows_one_and_another_beside_it(open_page: OpenPage) -> None:
    page = open_page("task", FakeApplication())
    assert nothing_failed(page)
    assert "# Troponin I" in words(page)
    assert any("Vancomycin trough" in alt for alt in alts(page))


def test_the_budget_is_said_in_words_and_follows_the_slider(open_page: OpenPage) -> None:
    double = FakeApplication(n_alerts=400)
    page = open_page("task", double, task="lab:amylase", budget="0.01")
    before = words(page)
    assert "For this task the budget means **0 omissions** (scaled score 0.64 or more)" in before
    page.select_slider(key="task_budget").set_value(0.5).run()
    assert address(page)["budget"] == "0.5"
    n = sum(row.task_key == "lab:amylase" for row in double.rows())
    assert f"**{n} commissions**" in words(page)
    assert f"one in every {round(612 / n)} patient-days" in words(page)


def test_a_muted_task_says_why_it_has_no_alerts(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    view = FakeTasks.view
    muted = {"muted": "Medicine, to the end of 1 Jan 2027"}
    monkeypatch.setattr(FakeTasks, "view", lambda self, filters: replace(view(self, filters), **muted))
    said = "Muted in Medicine, to the end of 1 Jan 2027: runs scored in that time list no alert of it there."
    assert said in words(open_page("task", FakeApplication()))


def test_a_task_that_was_not_scored_says_why(open_page: OpenPage) -> None:
    page = open_page("task", FakeApplication(), task="lab:rare")
    assert nothing_failed(page)
    assert "This task was not scored: 3 past decisions of one kind" in words(page)


def test_the_auc_has_an_interval_or_a_reason(open_page: OpenPage) -> None:
    page = open_page("task", FakeApplication())
    assert "AUC of the scaled score 0.81" in words(page)
    assert "0.66–0.91, 23 judged cases of this task" in words(page)
    double = FakeApplication()
    double.tasks.is_judged = False
    page = open_page("task", double)
    assert "not computable: no study of this run is complete or locked yet" in words(page)


def test_drift_is_drawn_over_the_stored_runs_with_its_numbers_in_words(open_page: OpenPage) -> None:
    page = open_page("task", FakeApplication())
    drift = [alt for alt in alts(page) if "oldest first" in alt]
    assert len(drift) == 3
    assert "in scored instances: Run 1, 26 Nov 2026 40.0%; Run 2, 27 Nov 2026 41.0%." in drift[0]
    double = FakeApplication()
    double.tasks.n_runs = 0
    assert "Score again" in words(open_page("task", double))


def test_alerts_are_marked_in_the_histogram(open_page: OpenPage) -> None:
    page = open_page("task", FakeApplication(), task="lab:amylase", budget="5")
    first = json.loads(page.get("plotly_chart")[0].proto.spec)
    marks = {trace["marker"]["symbol"]: trace["text"] for trace in first["data"] if trace["type"] == "scatter"}
    assert marks == {"triangle-down": [], "diamond-open": ["5 commissions"]}


def test_the_worklist_and_the_alert_lead_to_their_task(open_page: OpenPage) -> None:
    for name in ("worklist", "alert"):
        page = open_page(name, FakeApplication(), alert="1003")
        links = {link.proto.label: link.proto.query_string for link in page.get("page_link")}
        assert "task=lab%3Aamylase" in links[":primary[All about Amylase]"]


def test_the_page_leads_to_the_tasks_alerts(open_page: OpenPage) -> None:
    page = open_page("task", FakeApplication(), task="lab:amylase", budget="0.5")
    page.button(key="task_worklist").click().run()
    assert address(page) == {"task": "lab:amylase", "budget": "0.5"}
    assert set(page.dataframe[0].value["decision"]) == {"Amylase ordered"}


def test_the_runs_page_draws_stored_curves_or_names_the_command(open_page: OpenPage) -> None:
    page = open_page("runs", FakeApplication(), run="2")
    assert nothing_failed(page)
    curves = [alt for alt in alts(page) if "regulariser" in alt or "nodes in the graph" in alt]
    assert len(curves) == 4
    assert "Found again by nodes in the graph. softhad: 60% at 50; 65% at 200." in curves
    assert "regulariser γ_g; bars are 95% intervals. softhad: 0.70 (0.60–0.90) at 0" in "".join(curves)
    assert len([alt for alt in alts(page) if "oldest first" in alt]) == 3
    double = FakeApplication()
    double.sensitivity.is_judged = False
    page = open_page("runs", double, run="2")
    assert sum("Found again" in alt for alt in alts(page)) == 2
    page = open_page("runs", FakeApplication(), run="1")
    assert "No curves are stored for this run" in words(page)
    assert any(code.value.startswith("alertreview sensitivity --run 1 --home ") for code in page.code)
