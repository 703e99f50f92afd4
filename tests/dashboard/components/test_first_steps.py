"""First steps on Home: for visitors of a demonstration, one card, a role at a time, until it is put away."""

import pytest

from alertreview.rights import Actor
from core.vocabulary import Role
from dashboard.components.first_steps import STEPS
from dashboard.frame import OFFERED, REACHED_FROM_OTHERS
from tests.dashboard.conftest import OpenPage, nothing_failed, words
from tests.dashboard.doubles.application import FakeApplication


def linked(page: object) -> list[str]:
    return [link.proto.label for link in page.get("page_link")]  # type: ignore[attr-defined]


def test_a_visitor_of_the_demonstration_finds_three_steps_of_a_role(open_page: OpenPage) -> None:
    page = open_page("home", FakeApplication())
    assert "First steps" in words(page)
    assert "1. Judge a case" in words(page)
    assert "Press the number of an answer" in words(page)
    assert linked(page)[:3] == [":primary[Review]", ":primary[Review]", ":primary[My judgments]"]


@pytest.mark.parametrize("role", STEPS)
def test_every_role_has_its_own_steps_to_pages_that_are_there(open_page: OpenPage, role: str) -> None:
    page = open_page("home", FakeApplication())
    page.button_group(key="first_steps_role").set_value(role).run()
    assert nothing_failed(page)
    for number, step in enumerate(STEPS[role], start=1):
        assert f"{number}. {step.title}" in words(page)
        assert f":primary[{step.link}]" in linked(page)
        assert (step.page, step.link) in {(name, title) for name, title, *_ in (*OFFERED, *REACHED_FROM_OTHERS)}


def test_once_put_away_it_stays_away_on_every_page_of_the_visit(open_page: OpenPage) -> None:
    page = open_page("home", FakeApplication())
    page.button(key="first_steps_hide").click().run()
    assert "First steps" not in words(page)
    page.run()
    assert "First steps" not in words(page)


def test_who_signs_in_on_a_site_of_her_own_gets_no_lesson(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    double = FakeApplication()
    monkeypatch.setattr(
        double.sessions, "who", lambda _token: Actor(person_id=1, name="Ada", role=Role.COORDINATOR), raising=True
    )
    page = open_page("home", double)
    assert nothing_failed(page)
    assert "First steps" not in words(page)
