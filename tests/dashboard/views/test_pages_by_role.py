"""Every page lets in exactly the roles that the matrix allows the use case behind it."""

from types import SimpleNamespace

import pytest
import streamlit as st

from alertreview.access.accounts import AccountService
from alertreview.alerts.task_views import TaskPages
from alertreview.alerts.worklist import Worklist
from alertreview.exports.exports import Exports
from alertreview.reports.service import ReportService
from alertreview.review.adjudication import AdjudicationService
from alertreview.review.review import ReviewService
from alertreview.rights import Actor, roles_that_may, rule_of
from alertreview.scoring.task_catalogue import TaskCatalogue
from alertreview.studies.desk import StudyDesk
from alertreview.studies.studies import StudyService
from core.vocabulary import Role
from dashboard import frame
from tests.dashboard.conftest import OpenPage, words
from tests.dashboard.doubles.application import FakeApplication
from tests.dashboard.doubles.sign_in import FakeSessions

pytestmark = pytest.mark.checklist("B1")

BEHIND = {
    "worklist": Worklist.page,
    "review": ReviewService.next_case,
    "my-judgments": ReviewService.next_case,
    "studies": StudyService.all,
    "reports": ReportService.report,
    "runs": Worklist.runs,
    "tasks": TaskCatalogue.view,
    "export": Exports.labels_download,
    "admin": AccountService.all,
}
"""Page in the navigation -> the use case it is for."""
HIDDEN = {
    "task": TaskPages.view,
    "tasks": TaskCatalogue.view,
    "alert": Worklist.alert,
    "study-setup": StudyDesk.set_up,
    "adjudication": AdjudicationService.disagreements,
    "worklist": Worklist.page,
    "export": Exports.labels_download,
    "review": ReviewService.next_case,
}
"""Pages whose address can be typed by anybody, also some of those in the navigation."""


def may(role: Role, use_case: object) -> bool:
    rule = rule_of(use_case)
    assert rule is not None
    return rule.action is None or role in roles_that_may(rule.action)


def somebody(role: Role) -> Actor:
    return Actor(person_id=6, name="Ada", role=role, session_id=1)


@pytest.mark.parametrize("role", Role)
def test_the_navigation_offers_the_pages_of_the_role(role: Role, monkeypatch: pytest.MonkeyPatch) -> None:
    def page_of(_file: str, **named: str) -> SimpleNamespace:
        return SimpleNamespace(url_path=named["url_path"], visibility=named.get("visibility", "visible"))

    monkeypatch.setattr(frame.st, "Page", page_of)
    offered = {page.url_path for page in frame.pages(somebody(role))[""] if page.visibility == "visible"}
    assert offered - {"", "home"} == {name for name, use_case in BEHIND.items() if may(role, use_case)}


def test_who_can_keep_no_views_is_told_of_links(open_page: OpenPage) -> None:
    double = FakeApplication()
    double.sessions = FakeSessions(somebody(Role.VIEWER))
    assert "No views are kept for your role. A copied link holds" in words(open_page("worklist", double))


@pytest.mark.parametrize("name", [name for name, use_case in BEHIND.items() if may(Role.ADMINISTRATOR, use_case)])
def test_no_button_leads_an_administrator_to_a_page_that_refuses(
    open_page: OpenPage, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    led_to: list[str] = []
    monkeypatch.setattr(st, "switch_page", lambda page, **_: led_to.append(page))
    double = FakeApplication()
    double.sessions = FakeSessions(somebody(Role.ADMINISTRATOR))
    keys = [button.key for button in open_page(name, double).button if not button.disabled]
    for key in keys:
        open_page(name, double).button(key=key).click().run()
    files = {page.removeprefix("views/").removesuffix(".py").replace("_", "-") for page in led_to}
    assert [file for file in files if not may(Role.ADMINISTRATOR, (BEHIND | HIDDEN)[file])] == []


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("role", Role)
def test_a_typed_address_lets_in_whom_the_matrix_lets_in(open_page: OpenPage, role: Role, name: str) -> None:
    double = FakeApplication()
    double.sessions = FakeSessions(somebody(role))
    page = open_page(name, double)
    assert not page.exception
    refused = f"Your role, {role.value}, may not" in words(page)
    assert refused is not may(role, HIDDEN[name])
    if refused:
        assert words(page).startswith("# "), "a refused page has its title"
        assert not page.button, "and nothing that could be tried"
        assert not page.selectbox
