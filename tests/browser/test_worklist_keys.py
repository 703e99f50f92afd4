"""The worklist and the alert page in a real browser: keys, links, back."""

import re
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Page, expect

from benchmarks.dashboard import KEYS
from tests.browser.visits import OpenVisit

pytestmark = pytest.mark.browser
FIGURES = {where: n_figures for *_, where, n_figures in KEYS}
"""Of each page, as `./dev bench dashboard` waits for them."""
ROW = 30
"""Pixels of a row of the grid, its head included."""


def address(page: Page) -> str:
    return str(page.evaluate("location.href"))


def query(page: Page) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlparse(address(page)).query).items()}


def preview(page: Page, words: str) -> None:
    expect(page.get_by_role("heading", name=words, level=3)).to_be_visible()


def test_j_and_k_move_the_selection_and_o_opens_it(visit: OpenVisit) -> None:
    opened = visit()
    page = opened.open("worklist")
    preview(page, "Troponin I not ordered")
    opened.key("j")
    preview(page, "Vancomycin trough not ordered")
    opened.key("j")
    preview(page, "Insulin, IV not given")
    opened.key("k")
    preview(page, "Vancomycin trough not ordered")
    assert query(page)["alert"] == "1001"
    expect(page.locator(".js-plotly-plot")).to_have_count(FIGURES["worklist"])
    opened.key("o")
    expect(page.get_by_role("heading", name=re.compile("Vancomycin trough not ordered"), level=1)).to_be_visible()
    assert query(page)["alert"] == "1001"
    assert urlparse(address(page)).path == "/alert"
    expect(page.locator(".js-plotly-plot")).to_have_count(FIGURES["alert"])
    opened.key("j")
    expect(page.get_by_role("heading", name=re.compile("Insulin, IV not given"), level=1)).to_be_visible()
    opened.key("b")
    preview(page, "Insulin, IV not given")


def test_j_at_the_last_row_turns_the_page(visit: OpenVisit) -> None:
    opened = visit()
    page = opened.open("worklist?alert=1012")
    for key in ("wl_open", "wl_next"):
        box = page.locator(f".st-key-{key} button").bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 800, f"{key} is above the fold"
    expect(page.get_by_text("Lines 1–13, 62 alerts")).to_be_visible()
    opened.key("j")
    expect(page.get_by_text("Lines 14–26, 62 alerts")).to_be_visible()
    opened.key("k")
    expect(page.get_by_text("Lines 1–13, 62 alerts")).to_be_visible()
    assert query(page)["alert"] == "1012"


def test_filters_stand_in_the_address_and_a_link_brings_them_back(visit: OpenVisit) -> None:
    opened = visit()
    page = opened.open("worklist")
    page.get_by_text("Commissions", exact=True).click()
    preview(page, "Amylase ordered")
    assert query(page) == {"decision": "commission"}
    again = visit().open("worklist?decision=commission&alert=1007")
    preview(again, "Platelet count ordered")
    expect(again.get_by_text("Lines 1–13, 15 alerts")).to_be_visible()


def test_a_click_on_any_cell_selects_its_row_whenever_it_comes(visit: OpenVisit) -> None:
    opened = visit()
    page = opened.open("worklist?alert=1001")
    box = page.locator("[data-testid=stDataFrame]").first.bounding_box()
    assert box is not None
    for place, x in enumerate((16, 70, 180, 340, 430, 550, 650, 750, 840)):
        opened.settle()
        page.keyboard.press("j")
        page.wait_for_timeout(25 * place)
        for row, words, alert in (
            (4, "Tacrolimus level not ordered", 1004),
            (1, "Vancomycin trough not ordered", 1001),
        ):
            # A click that waits for nothing, as a person's.
            page.mouse.click(box["x"] + x, box["y"] + ROW * (row + 1) + ROW // 2)
            preview(page, words)
            assert query(page)["alert"] == str(alert), x


def test_copy_link_copies_the_list_without_the_place_in_it_and_helps_without_a_clipboard(visit: OpenVisit) -> None:
    opened = visit()
    opened.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = opened.open("worklist?unit=Neuro+ICU&alert=1014")
    page.get_by_role("textbox", name="Search labs, drugs, patients").fill("SIM-0570")
    page.keyboard.press("Enter")
    preview(page, "Heparin, IV infusion not given")
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_text("Link copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == f"{opened.url}/worklist?unit=Neuro+ICU"
    assert "SIM" not in address(page)
    for has_fallback, said in ((False, f"Copy this: {opened.url}/worklist?unit=Neuro+ICU"), (True, "Link copied")):
        page.evaluate(
            "works => { navigator.clipboard.writeText = () => Promise.reject(); document.execCommand = () => works; }",
            has_fallback,
        )
        page.get_by_role("button", name="Copy link").click()
        expect(page.get_by_text(said)).to_be_visible()


def test_on_a_phone_a_tap_on_a_line_opens_it_and_the_pager_turns_pages(visit: OpenVisit) -> None:
    page = visit(phone=True).open("worklist")
    menu = page.get_by_role("button", name="Expand sidebar")
    expect(menu).to_be_visible()
    assert menu.evaluate("button => getComputedStyle(button, '::after').content") == '"Menu"'
    lines = page.locator("[class*=st-key-wl-card-] button")
    expect(lines).to_have_count(13)
    first = lines.first
    expect(first).to_contain_text("0.97 Troponin I not ordered")
    expect(first).to_contain_text("SIM-0331, 63 y F · Medical ICU")
    words = first.locator("p").bounding_box()
    assert words is not None
    assert words["x"] < 80, "the words begin at the left"
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_text("Lines 14–26, 62 alerts")).to_be_visible()
    page.get_by_role("button", name="Previous").click()
    expect(page.get_by_text("Lines 1–13, 62 alerts")).to_be_visible()
    lines.nth(4).click()
    expect(page.get_by_role("heading", name=re.compile("Tacrolimus level not ordered"), level=1)).to_be_visible()
    assert query(page)["alert"] == "1004"


def test_home_leads_to_an_alert_in_the_same_window(visit: OpenVisit) -> None:
    page = visit().open("")
    page.get_by_role("link", name="Vancomycin trough not ordered").click()
    expect(page.get_by_role("heading", name=re.compile("Vancomycin trough not ordered"), level=1)).to_be_visible()
    assert query(page) == {"alert": "1001"}


def test_a_second_question_is_left_by_a_key(visit: OpenVisit) -> None:
    opened = visit()
    page = opened.open("worklist?alert=1001")

    def ask_and_leave() -> None:
        for key, asked in (("s", "Snooze it for"), ("d", "Dismiss it because")):
            opened.key(key)
            expect(page.get_by_text(asked)).to_be_visible()
            opened.key("Escape")
            expect(page.get_by_text(asked)).to_be_hidden()

    ask_and_leave()
    opened.key("o")
    page.wait_for_url("**/alert?*")
    expect(page.locator(".st-key-alert-triage").get_by_text("Snooze")).to_be_visible()
    ask_and_leave()


def test_two_keys_dismiss_an_alert_and_a_typed_name_reaches_neither_address_nor_history(visit: OpenVisit) -> None:
    opened = visit()
    page = opened.open("worklist")
    preview(page, "Troponin I not ordered")
    opened.key("d")
    expect(page.get_by_text("Dismiss it because")).to_be_visible()
    opened.key("1")
    preview(page, "Vancomycin trough not ordered")
    expect(page.get_by_text("Lines 1–13, 61 alerts")).to_be_visible()
    opened.key("z")
    expect(page.get_by_text("Lines 1–13, 62 alerts")).to_be_visible()
    expect(page.get_by_text("Undone: 1 alert")).to_be_visible()
    page.get_by_role("textbox", name="Search labs, drugs, patients").fill("Mrs Canary")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No alert matches these filters")).to_be_visible()
    assert "Canary" not in address(page)
    page.get_by_role("button", name="Clear the search").click()
    preview(page, "Troponin I not ordered")


def test_a_question_mark_lists_the_keys_but_is_a_letter_where_text_is_typed(visit: OpenVisit) -> None:
    opened = visit()
    page = opened.page
    listed = page.get_by_text("this list")
    for path in ("worklist", "alert?alert=1001", "review", "adjudication?study=demo"):
        opened.go(path)
        expect(page.get_by_role("button", name="Keys", exact=True)).to_be_visible()
        expect(listed).to_be_hidden()
        if path == "worklist":
            field = page.get_by_placeholder("Heparin, patient ID")
            field.click()
            opened.settle()  # the grid, drawn last, may take the focus
            field.click()
            opened.key("?")
            expect(field).to_have_value("?")
            expect(listed).to_be_hidden()
            field.fill("")
            field.blur()
        opened.key("?")
        expect(listed).to_be_visible()


def test_the_slash_searches_from_every_page_but_those_with_a_case_to_judge(visit: OpenVisit) -> None:
    opened = visit()
    page = opened.open("runs")
    opened.key("/")
    field = page.get_by_placeholder("Heparin, patient ID")
    expect(field).to_be_focused()
    page.keyboard.type("troponin/")
    expect(field).to_have_value("troponin/")
    opened.go("tasks")
    opened.key("/")
    expect(page.get_by_placeholder("for example troponin")).to_be_focused()
    opened.go("review?study=demo")
    opened.key("/")
    page.wait_for_timeout(300)
    assert urlparse(address(page)).path == "/review"
