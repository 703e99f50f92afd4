"""Every page over the double: full, empty, unknown links, errors of the application, hostile names."""

import ast
import logging
import re
from dataclasses import replace
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from streamlit.testing.v1.element_tree import Markdown

from alertreview.alerts.triage_models import TriageChoice
from alertreview.rights import Actor
from alertreview.scoring.task_catalogue import OpenCheck
from core.errors import DatabaseUnavailableError, NotFoundError
from core.vocabulary import Role, Split, TriageState
from dashboard import context
from dashboard.charts import bars
from dashboard.charts.bars import alerts_by_unit as draw_units
from dashboard.context import NEUTRAL_SENTENCE
from tests.dashboard.conftest import ROOT, OpenPage, address, nothing_failed, words
from tests.dashboard.doubles.application import FakeApplication
from tests.dashboard.doubles.exports import FakeReports
from tests.dashboard.doubles.records import HOSTILE

VIEWS = ROOT / "dashboard" / "views"
PAGES = ("home", "worklist", "alert", "task", "review", "my_judgments", "studies", "reports", "runs", "tasks", "export")
EVERY_PAGE = pytest.mark.parametrize("name", PAGES)
ONE_OF_MANY = re.compile(r"(?<![\d.,/–−-])1 (?!(?:is|was|has|as)\b)[a-z]+[^s\W]s\b")
"""As in "1 alerts"."""
ADDRESS = {"alert": {"alert": "1003"}}


@EVERY_PAGE
def test_a_full_page_draws_and_says_that_the_data_are_simulated(open_page: OpenPage, name: str) -> None:
    page = open_page(name, FakeApplication(), **ADDRESS.get(name, {}))
    assert nothing_failed(page)
    assert "Simulated data" in words(page)


@EVERY_PAGE
def test_real_data_are_not_called_simulated_and_one_thing_is_counted_as_one(open_page: OpenPage, name: str) -> None:
    double = FakeApplication(simulated=False, n_alerts=1, n_cases=1)
    page = open_page(name, double, **({"alert": str(double.rows_made[0].alert_id)} if name == "alert" else {}))
    assert nothing_failed(page)
    assert "Simulated data" not in words(page)
    assert ONE_OF_MANY.findall(words(page)) == []


@EVERY_PAGE
def test_a_site_without_a_published_run_says_what_to_do(open_page: OpenPage, name: str) -> None:
    page = open_page(name, FakeApplication(published=False), **ADDRESS.get(name, {}))
    assert nothing_failed(page)
    shown = words(page)
    assert any(part in shown for part in ("Import records", "No study", "No judgment yet"))


@EVERY_PAGE
def test_a_run_without_alerts_studies_and_people_draws(open_page: OpenPage, name: str) -> None:
    double = FakeApplication(n_alerts=0, with_studies=False, with_people=False)
    page = open_page(name, double, **ADDRESS.get(name, {}))
    assert nothing_failed(page)


@EVERY_PAGE
def test_hostile_names_are_text_on_every_page(open_page: OpenPage, name: str) -> None:
    address = {"alert": "1001"} if name == "alert" else {}
    page = open_page(name, FakeApplication(hostile=True), **address)
    assert nothing_failed(page)
    for markdown in page.markdown:
        if not markdown.allow_html:
            assert "[link](" not in markdown.value
            assert "<img" not in markdown.value.replace(r"\<", "‹")
    assert len(HOSTILE) > 500
    assert max(len(markdown.value) for markdown in page.markdown) < 3_000


@EVERY_PAGE
def test_an_error_of_ours_is_shown_as_its_sentence(open_page: OpenPage, name: str) -> None:
    error = DatabaseUnavailableError("The database is busy. Nothing was changed; try again in a minute.")
    page = open_page(name, error)
    assert not page.exception
    assert [e.value.replace("\\", "") for e in page.error] == [str(error)]


@EVERY_PAGE
def test_any_other_error_is_one_neutral_sentence_and_the_log_does_not_repeat_it(
    open_page: OpenPage, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    canary = "Canary-Patient-4711"
    with caplog.at_level(logging.ERROR):
        page = open_page(name, KeyError(f"value of {canary}"))
    assert not page.exception
    assert [e.value.replace("\\", "") for e in page.error] == [NEUTRAL_SENTENCE]
    assert canary not in caplog.text
    assert "KeyError at" in caplog.text


@pytest.mark.parametrize(
    ("name", "address", "part"),
    [
        ("worklist", {"run": "99"}, "no run 99"),
        ("runs", {"run": "99"}, "no run 99"),
        ("alert", {"alert": "99999"}, "no alert 99999"),
        ("alert", {"alert": "1000", "run": "99"}, "no run 99"),
        ("alert", {}, "Open one from the worklist"),
        ("alert", {"alert": "<script>"}, "Open one from the worklist"),
        ("task", {"run": "99"}, "no run 99"),
        ("task", {"task": "lab:none"}, "has no such task"),
        ("task", {"task": "<script>"}, "has no such task"),
        ("review", {"study": "nowhere"}, "no study 'nowhere'"),
        ("review", {"study": "demo", "case": "9999"}, "no case 9999"),
        ("studies", {"study": "nowhere"}, "no study 'nowhere'"),
        ("reports", {"study": "nowhere"}, "no study 'nowhere'"),
        ("export", {"study": "nowhere"}, "no study 'nowhere'"),
        ("adjudication", {"study": "nowhere"}, "no study 'nowhere'"),
    ],
)
def test_a_link_to_what_is_not_there_says_so(
    open_page: OpenPage, name: str, address: dict[str, str], part: str
) -> None:
    page = open_page(name, FakeApplication(), **address)
    assert not page.exception
    assert part in words(page)
    if address.get("study") == "nowhere":
        assert nothing_failed(page), "a page with a title and a way on, no bare error"
        assert words(page).startswith("# ")
        assert page.button(key="to_studies").label == "Back to studies"


def test_home_goes_on_with_the_open_study(open_page: OpenPage) -> None:
    page = open_page("home", FakeApplication())
    shown = words(page)
    assert "0 of 24 cases read, 24 left, about 50 min" in shown
    assert page.button(key="home_continue").label == "Start reviewing"
    page.button(key="home_continue").click().run()
    assert "Case 1 of 24" in words(page)


@pytest.mark.parametrize("role", [Role.COORDINATOR, Role.REVIEWER], ids=str)
@pytest.mark.parametrize("published", [True, False])
def test_home_says_what_is_wrong_with_the_import_to_whom_it_concerns(
    open_page: OpenPage, role: Role, published: bool
) -> None:
    double = FakeApplication(published=published)
    double.sessions.actor = Actor(3, "Ada", role, session_id=1)
    double.catalogue.checks = (
        OpenCheck(
            "sentinel_dates", is_red=True, sentence="3 of 90 discharges stand for none.", effect="Stays end late."
        ),
        OpenCheck("future_events", is_red=False, sentence="1 event lies ahead.", effect="It is left out."),
    )
    page = open_page("home", double)
    assert nothing_failed(page)
    concerned = role is Role.COORDINATOR
    assert ("3 of 90 discharges stand for none. Stays end late." in words(page)) is concerned
    accept = any("--accept sentinel_dates --accept future_events" in code.value for code in page.code)
    assert accept is concerned


@pytest.mark.parametrize("with_studies", [True, False])
def test_reviewing_is_offered_only_where_cases_wait(open_page: OpenPage, with_studies: bool) -> None:
    page = open_page("my_judgments", FakeApplication(with_studies=with_studies))
    assert "No judgment yet" in words(page)
    assert ("mj_start" in {button.key for button in page.button}) is with_studies


def test_home_lists_the_highest_ranked_alerts_as_links(open_page: OpenPage) -> None:
    page = open_page("home", FakeApplication())
    links = [link.proto for link in page.get("page_link")]
    assert any("alert=1000" in link.query_string for link in links)
    first, second, *_ = FakeApplication().rows_made
    shown = words(page)
    assert f"{first.patient_id}, {first.age_years:.0f} y" in shown, "whose alert it is"
    assert f"**{first.scaled_score:.2f}" in shown.replace("***", "**")
    assert shown.index(first.patient_id) < shown.index(second.patient_id)


def test_home_counts_every_alert_and_task(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    double, drawn = FakeApplication(), []
    rows = [(f"Ward {n}", n, 20 - n) for n in range(12)]
    monkeypatch.setattr(type(double.alert_lists), "units", lambda self, filters: tuple(rows))
    monkeypatch.setattr(
        bars, "alerts_by_unit", lambda rows, colours: (drawn.append(rows), draw_units(rows, colours))[1]
    )
    shown = words(open_page("home", double))
    assert "240, by unit" in shown
    assert drawn[-1][-1] == ("4 other units", 8 + 9 + 10 + 11, 12 + 11 + 10 + 9)
    assert sum(a + b for _, a, b in drawn[-1]) == 240
    run = double.worklist.run()
    assert f"{run.n_tasks_scored} of {run.n_tasks_scored + run.n_tasks_left_out} tasks scored" in shown


@pytest.mark.parametrize(
    ("n_now", "n_before", "said"),
    [
        (31, 27, "31 alerts within the budget, closed ones included, 4 more than in the run of 26 Nov 08:06"),
        (1, 3, "1 alert within the budget, closed ones included, 2 fewer than in the run of 26 Nov 08:06"),
        (0, 0, "0 alerts within the budget, closed ones included, as many as in the run of 26 Nov 08:06"),
        (5, None, "5 alerts within the budget, closed ones included, in the first run of this site"),
    ],
)
def test_home_compares_with_the_run_before(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, n_now: int, n_before: int | None, said: str
) -> None:
    double, asked = FakeApplication(), []
    newest, older = double.worklist.runs()
    n_of = {newest.run_id: n_now, older.run_id: n_before}
    monkeypatch.setattr(
        type(double.alert_lists), "units", lambda _, filters: asked.append(filters) or (("A", n_of[filters.run_id], 0),)
    )
    if n_before is None:
        monkeypatch.setattr(type(double.worklist), "runs", lambda _, most=None: (newest,))
    shown = words(open_page("home", double))
    assert f"- {said}\n" in shown
    assert "No alert moved by colleagues, no study opened or locked" in shown
    compared = [filters for filters in asked if filters.triage is TriageChoice.ANY]
    assert len(compared) == 1 + (n_before is not None)


def test_home_says_what_colleagues_and_coordinators_did_since_yesterday(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    double = FakeApplication()
    moved = {TriageState.ACTIONED: 2, TriageState.DISMISSED: 1}
    monkeypatch.setattr(type(double.triage), "moved_by_others", lambda *_: moved)
    now = datetime.now(ZoneInfo("Europe/Vienna"))
    study = replace(double.studies.view("demo"), opened_at=now - timedelta(days=3), locked_at=now)
    monkeypatch.setattr(type(double.studies), "all", lambda _: (study,))
    shown = words(open_page("home", double))
    assert "- 3 alerts moved by colleagues: 2 actioned, 1 dismissed" in shown
    assert f"- ICU pilot 2026 locked {now.day} {now:%b %H:%M}" in shown
    assert "ICU pilot 2026 opened" not in shown


@pytest.mark.parametrize("split", Split)
def test_home_says_what_instances_were_compared_with(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, split: Split
) -> None:
    double = FakeApplication()
    run = replace(double.worklist.run(), split=split.value)
    monkeypatch.setattr(type(double.worklist), "run", lambda self, run_id=None: run)
    shown = words(open_page("home", double))
    in_folds = "612 instances, each compared with those of other patients" in shown
    assert in_folds is (split is Split.FOLDS), "in folds there is no past of its own"
    assert ("612 recent instances, compared with 2,400 past ones" in shown) is not in_folds


def test_on_a_phone_the_reasons_of_an_alert_come_before_similar_days_and_notes(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = []
    for phone in (False, True):
        monkeypatch.setattr(context, "is_phone", lambda phone=phone: phone)
        page = open_page("alert", FakeApplication(), alert="1000")
        shown = "\n".join(piece.value for piece in page.main if isinstance(piece, Markdown))
        orders.append([shown.index(title) for title in ("Why it was", "Similar days", "Notes and history")])
    assert orders[0] != sorted(orders[0])
    assert orders[1] == sorted(orders[1])


def test_an_alert_explains_itself(open_page: OpenPage) -> None:
    page = open_page("alert", FakeApplication(), alert="1000")
    shown = words(page)
    assert "# Troponin I not ordered" in shown
    assert "71 of the 75 most similar days of other patients (61 patients) had the order" in shown
    assert "Scaled score 0.97" in shown
    assert "Soft label 0.94" in shown
    assert "Support 0.90" in shown
    assert "Of 100 days scored like this one, about 92 had the other decision" in shown
    assert ": 12 times the odds among all patients." in shown
    assert "ordered 41 h later" in shown
    assert "Why it was expected" in shown
    assert "0.41\N{NO-BREAK SPACE}ng/mL" in shown.replace("\\", "")
    assert "scaled score from" in page.get("plotly_chart")[-1].proto.alt
    page.button_group(key="histogram_score").set_value("Raw score").run()
    assert "raw score from" in page.get("plotly_chart")[-1].proto.alt


def test_the_keys_of_an_alert_lead_to_its_neighbours_in_the_filtered_list(open_page: OpenPage) -> None:
    page = open_page("alert", FakeApplication(), alert="1003", decision="commission")
    assert page.button(key="al_previous").disabled
    page.button(key="al_next").click().run()
    assert address(page)["alert"] == "1007"
    assert "# Platelet count ordered" in words(page)


@pytest.mark.parametrize(
    ("score", "said"),
    [(0.9999, "over 99"), (0.991, "over 99"), (0.985, "about 98"), (0.012, "about 1"), (0.004, "under 1")],
)
def test_no_chance_is_said_to_be_certain(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, score: float, said: str
) -> None:
    double = FakeApplication()
    detail = double.worklist.alert(1000)
    detail = replace(detail, row=replace(detail.row, score=score), disagreement=None)
    monkeypatch.setattr(type(double.worklist), "alert", lambda *_: detail)
    assert f"Of 100 days scored like this one, {said} had the other decision" in words(
        open_page("alert", double, alert="1000")
    )


def test_an_alert_opens_although_the_filters_hide_it(open_page: OpenPage) -> None:
    page = open_page("alert", FakeApplication(), alert="1000", decision="commission")
    assert "# Troponin I not ordered" in words(page)
    assert page.button(key="al_next").disabled


def test_the_studies_page_counts_what_the_application_counts(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("studies", double)
    judged = sum(double.review.queue("demo", person.person_id).n_submitted for person in double.site.people())
    assert f"Judgments {judged} of 72" in words(page)
    states = double.studies.view("demo").case_states
    assert sum(states.values()) == 24


def test_a_study_without_cases_says_none_of_none(open_page: OpenPage) -> None:
    page = open_page("studies", FakeApplication(n_cases=0))
    assert nothing_failed(page)
    assert "Judgments 0 of 0" in words(page)
    assert "This study has no cases yet" in words(page)
    assert nothing_failed(open_page("review", FakeApplication(n_cases=0)))
    assert nothing_failed(open_page("reports", FakeApplication(n_cases=0)))


def test_home_says_what_is_made_up_and_no_seed_that_a_run_may_have_of_its_own(open_page: OpenPage) -> None:
    shown = words(open_page("home", FakeApplication()))
    assert "marked as simulated on this site are made up. Nothing here describes a real person." in shown
    assert "seed" not in shown


def test_a_report_leads_with_its_sentences_and_every_tile_has_an_interval(open_page: OpenPage) -> None:
    page = open_page("reports", FakeApplication(), study="ward-2025")
    shown = words(page)
    assert "**78 times in 100**" in shown
    assert "AUC, design-weighted 0.78" in shown
    assert "0.72–0.84, resampled over 22 patients" in shown
    assert "True-alert rate at 0.25 56%" in shown
    assert "46–66%" in shown
    assert len(page.get("plotly_chart")) == 6
    flow = next(chart.proto.spec for chart in page.get("plotly_chart") if "patient-state instances" in chart.proto.spec)
    assert flow.count("left out, ") == 1
    assert "cases used" in shown
    assert "edges of the strata: 0.33, 0.67" in shown
    assert "left out" not in shown.lower(), "the figure says it already"


def test_the_report_of_an_open_study_hides_its_figures(open_page: OpenPage) -> None:
    page = open_page("reports", FakeApplication(), study="demo")
    shown = words(page)
    assert "Figures hidden" in shown
    assert "AUC, design-weighted" not in shown
    # How many cases were chosen and read is no result; how many were decided is left out of it.
    assert [chart.key for chart in page.get("plotly_chart")] == ["flow-light"]


def test_a_report_that_cannot_be_computed_says_why(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_place: object) -> object:
        raise NotFoundError("Study 'demo' has no judged case. Judge some, then open the report.")

    monkeypatch.setattr(FakeReports, "report", fails)
    page = open_page("reports", FakeApplication())
    assert "no judged case" in words(page)


def test_runs_show_parameters_and_the_import(open_page: OpenPage) -> None:
    page = open_page("runs", FakeApplication(), run="1")
    tables = [table.value for table in page.table]
    assert any("75" in table.to_string() for table in tables)
    assert any("186,420" in table.to_string() for table in tables)
    assert "**Run 1**" in words(page)


def test_my_judgments_show_only_the_readers_own(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("my_judgments", double)
    assert "No judgment yet" in words(page)
    page.selectbox(key="w_person").select(2).run()
    assert nothing_failed(page)
    frame = page.dataframe[0].value
    assert len(frame) == len(double.review.my_judgments(2))
    assert frame["comment"].str.startswith("peer-comment-2-").all()


def test_my_judgments_can_be_filtered_to_nothing_and_back(open_page: OpenPage) -> None:
    page = open_page("my_judgments", FakeApplication())
    page.selectbox(key="w_person").select(2).run()
    page.text_input(key="mj_find").input("digitoxin").run()
    assert "No judgment matches" in words(page)
    page.button(key="mj_all").click().run()
    assert len(page.dataframe[0].value) > 0


@pytest.mark.parametrize("folder", ["dashboard", "alertreview", "core"])
def test_words_that_a_physician_would_not_use_stand_nowhere(folder: str) -> None:
    said = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / folder).rglob("*.py"))
    assert len(said) > 10_000
    for words_of_nobody in (
        "stand in no list", "One row a judgment", "Put away", "awaits its code", "Beside it", "Its alerts",
        "Also omissions in windows",
    ):  # fmt: skip
        assert words_of_nobody not in said


@pytest.mark.parametrize("name", sorted(path.name for path in VIEWS.glob("*.py")))
def test_no_text_stands_bare_in_the_file_of_a_page_where_streamlit_would_show_it(name: str) -> None:
    body = ast.parse((VIEWS / name).read_text(encoding="utf-8")).body
    bare = [node.lineno for node in body[1:] if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)]
    assert bare == []


def test_an_alert_of_another_run_than_the_address_names_says_so(open_page: OpenPage) -> None:
    double = FakeApplication()
    run = double.worklist.run()
    assert run is not None
    assert "not to run" not in words(open_page("alert", double, alert="1000", run=str(run.run_id)))
    other = next(one.run_id for one in double.worklist.runs() if one.run_id != run.run_id)
    assert f"not to run {other}" in words(open_page("alert", double, alert="1000", run=str(other)))
