"""An open panel in a real browser: a key saves beside the score, and keys of triage stay those of triage."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.page_checks import COLOURS, faults
from tests.browser.visits import OpenVisit

pytestmark = pytest.mark.browser


def test_keys_judge_take_back_and_lead_on(visit: OpenVisit) -> None:
    opened = visit(state="panel")
    page = opened.open("alert?alert=1005")
    expect(page.get_by_text("open: you see the score")).to_be_visible()
    opened.key("3")
    expect(page.get_by_text(re.compile(r"Saved \d\d:\d\d"))).to_be_visible()
    opened.key("1")
    expect(page.get_by_text("Say why it changes, then save.")).to_be_visible()
    page.get_by_label("Comment or reason").fill("read again 0 1 2")
    opened.run(lambda: page.keyboard.press("Tab"))
    opened.key("1")
    expect(page.get_by_role("button", name="Usual").first).to_have_attribute("kind", "primary")
    expect(page.get_by_text("Say why it changes, then save.")).to_be_hidden()
    opened.key("u")
    expect(page.get_by_text("Undone.")).to_be_visible()
    opened.key("p")
    expect(page.get_by_text("Undone.")).to_be_hidden()
    expect(page.get_by_text("open: you see the score")).to_be_visible()
    expect(page).not_to_have_url(re.compile("alert=1005"))


def test_a_digit_answers_the_question_of_the_triage_bar_and_never_the_panel(visit: OpenVisit) -> None:
    opened = visit(state="panel")
    page = opened.open("alert?alert=1005")
    opened.key("d")
    expect(page.get_by_text("Dismiss it because")).to_be_visible()
    opened.key("0")
    opened.key("1")
    expect(page.locator(".st-key-alert-triage").get_by_text("Dismissed")).to_be_visible()
    opened.settle()
    expect(page.get_by_text("open: you see the score")).to_be_visible()
    expect(page.get_by_text(re.compile(r"Saved \d\d:\d\d"))).to_be_hidden()
    opened.key("2")
    expect(page.get_by_text(re.compile(r"Saved \d\d:\d\d"))).to_be_visible()


def test_a_digit_typed_before_the_question_is_drawn_waits_for_it(visit: OpenVisit) -> None:
    opened = visit(state="panel")
    page = opened.open("alert?alert=1005")
    opened.key("d")
    opened.key("1", at_once=True)
    expect(page.locator(".st-key-alert-triage").get_by_text("Dismissed")).to_be_visible()
    expect(page.get_by_text(re.compile(r"Saved \d\d:\d\d"))).to_be_hidden()
    opened.settle()
    opened.key("2")
    expect(page.get_by_text(re.compile(r"Saved \d\d:\d\d"))).to_be_visible()


def test_a_phone_shows_the_whole_card_and_a_finger_saves(visit: OpenVisit) -> None:
    opened = visit(state="panel", phone=True)
    page = opened.open("alert?alert=1005")
    page.get_by_role("button", name="Unusual and clinically relevant").click()
    expect(page.get_by_text(re.compile(r"Saved \d\d:\d\d"))).to_be_visible()
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize(("phone", "widths"), [(False, (1280,)), (True, (390, 320))], ids=["laptop", "phone"])
def test_the_card_is_whole_and_readable_before_and_after_an_answer(
    visit: OpenVisit, phone: bool, widths: tuple[int, ...]
) -> None:
    opened = visit(state="panel", phone=phone)
    page = opened.open("alert?alert=1005")
    expect(page.get_by_text("open: you see the score")).to_be_visible()

    def assert_whole() -> None:
        for width in widths:
            page.set_viewport_size({"width": width, "height": 844 if phone else 800})
            opened.settle()
            assert faults(page) == [], width
        page.emulate_media(color_scheme="dark")
        expect(page.locator("[class*=st-key-timeline-][class*=-dark] .main-svg").first).to_be_visible()
        opened.settle()
        assert faults(page, COLOURS) == [], "dark"
        page.emulate_media(color_scheme="light")
        expect(page.locator("[class*=st-key-timeline-][class*=-light] .main-svg").first).to_be_visible()
        opened.settle()

    assert_whole()
    page.get_by_role("button", name="Unusual, not clinically relevant").click()
    expect(page.get_by_text(re.compile(r"Saved \d\d:\d\d"))).to_be_visible()
    assert_whole()
