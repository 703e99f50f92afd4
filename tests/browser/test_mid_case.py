"""In mid-case the system's colours change, or the browser is slow: nothing that was chosen or typed is lost."""

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.test_review_keys import expect_case, expect_chosen, expect_nothing_chosen
from tests.browser.visits import OpenVisit

pytestmark = pytest.mark.browser
SETTLE_A_CASE = "adjudication?study=demo"
FAINT = """() => {
  const light = (rgb) => { const [r, g, b] = rgb.match(/[\\d.]+/g).map(one => {
    const part = one / 255; return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = light(getComputedStyle(document.querySelector("[data-testid=stApp]")).backgroundColor);
  const texts = [...document.querySelectorAll("[data-testid=stPlotlyChart] .main-svg text")];
  return [texts.length, texts.filter(one => {
    const [low, high] = [ground, light(getComputedStyle(one).fill)].sort((a, b) => a - b);
    return one.textContent.trim() && (high + 0.05) / (low + 0.05) < 3;
  }).map(one => one.textContent)];
}"""
"""How many words figures have, and those that cannot be read on the page's ground."""


def field_of(page: Page, path: str) -> Locator:
    name = {"review": "Comment", "alert": "Note", "adjudication": "Reason"}[path.partition("?")[0]]
    return page.get_by_role("textbox", name=name, exact=True)


def test_colours_switched_in_mid_case_redraw_every_figure_and_lose_nothing(visit: OpenVisit) -> None:
    opened = visit(state="panel")
    page = opened.page
    for path in ("review", "alert?alert=1005", SETTLE_A_CASE):
        opened.go(path)
        opened.key("2")
        opened.settle()
        chosen = page.locator("[class*=_answer_2_] button").first
        field_of(page, path).click()
        page.keyboard.type("half a thought")
        for mode in ("dark", "light"):
            page.emulate_media(color_scheme=mode)  # type: ignore[arg-type]
            expect(page.locator(f"[class*=st-key-timeline-][class*=-{mode}] .main-svg").first).to_be_visible()
            opened.settle()
            n_words, faint = page.evaluate(FAINT)
            assert n_words > 10, path
            assert faint == [], path
            expect(field_of(page, path)).to_have_value("half a thought")
            expect(chosen).to_have_attribute("kind", "primary")


def slow_down(page: Page, rate: int) -> None:
    page.context.new_cdp_session(page).send("Emulation.setCPUThrottlingRate", {"rate": rate})


def test_on_a_browser_four_times_slower_an_answer_typed_in_one_go_is_saved_once(visit: OpenVisit) -> None:
    opened = visit()
    page = opened.page
    opened.open("review")
    slow_down(page, 4)
    opened.key("e")  # the server is busy with it when the next two come
    page.keyboard.type("3s")
    expect_case(page, 2)
    expect_nothing_chosen(page)
    assert page.locator("[data-testid=stAlert]").count() == 0
    opened.key("ArrowLeft")
    expect_case(page, 1)
    expect_chosen(page, "Unusual and relevant")
    slow_down(page, 1)
    expect(opened.go("").get_by_text("1 of 24 cases read")).to_be_visible()


def test_on_a_browser_four_times_slower_two_keys_in_one_go_dismiss_an_alert_once(visit: OpenVisit) -> None:
    opened = visit()
    page = opened.open("alert?alert=1005")
    dismissed = page.locator(".st-key-alert-triage").get_by_text("Dismissed")
    slow_down(page, 4)
    before = page.url
    opened.key("j")
    expect(page).not_to_have_url(before)
    opened.settle()
    expect(dismissed).to_be_hidden()
    for answer in ("1", "2"):
        opened.key("d")
        opened.key(answer, at_once=True)
        expect(dismissed).to_be_visible()
        if answer == "1":
            opened.key("z")
            expect(dismissed).to_be_hidden()
    slow_down(page, 1)


def test_on_a_browser_four_times_slower_a_case_settled_in_one_go_is_settled_once(visit: OpenVisit) -> None:
    opened = visit()
    page = opened.open(SETTLE_A_CASE)
    slow_down(page, 4)
    expect(page.get_by_text("1 of 2 cases waiting for you")).to_be_visible()
    opened.key("3")
    field_of(page, "adjudication").click()
    page.keyboard.type("read twice")
    opened.run(lambda: page.keyboard.press("Tab"))
    page.locator("h1").first.click()
    opened.key("s")
    expect(page.get_by_text("Saved: ").first).to_be_visible()
    opened.settle()
    expect(page.get_by_text("1 of 1 case waiting for you")).to_be_visible()
    expect(field_of(page, "adjudication")).to_have_value("")
    expect(page.locator("[class*=adj_answer] button[kind=primary]")).to_have_count(0)
    slow_down(page, 1)
