"""The blinded review in a real browser: keys, comments, reloads, failing saves, two windows, and what is sent."""

import re
import uuid

import pytest
from playwright.sync_api import Page, expect

from tests.browser.visits import OpenVisit, wait_for_case

pytestmark = pytest.mark.browser


def comment(page: Page) -> object:
    return page.get_by_label("Comment", exact=True)


def answer(page: Page, name: str) -> object:
    return page.get_by_role("button", name=re.compile(rf"^(check )?{name}"))


def expect_chosen(page: Page, name: str) -> None:
    expect(page.locator("[data-testid=stBaseButton-primary]", has_text=name)).to_have_count(1)
    wait_for_case(page)


def expect_nothing_chosen(page: Page) -> None:
    expect(page.locator("[data-testid=stBottom] [data-testid=stBaseButton-primary]:not([disabled])")).to_have_count(0)
    wait_for_case(page)


def expect_case(page: Page, number: int) -> None:
    expect(page.get_by_text(f"Case {number} of 24")).to_be_visible()
    expect(page.locator("[class*='st-key-rv_answer_']")).not_to_have_count(0)
    wait_for_case(page)


def judgments(page: Page) -> str:
    return page.locator("[data-testid=stMain]").inner_text()


@pytest.mark.checklist("B6")
def test_a_case_takes_two_keys_and_no_frame_holds_score_rank_stratum_or_another_vote(visit: OpenVisit) -> None:
    opened = visit()
    page = opened.open("review")
    expect_nothing_chosen(page)
    for number, key, name in ((1, "1", "Usual"), (2, "2", "Unusual, not relevant"), (3, "3", "Unusual and relevant")):
        expect_case(page, number)
        opened.key(key)
        expect_chosen(page, name)
        opened.key("s")
        expect_case(page, number + 1)
        expect(page.get_by_text(re.compile(r"Saved \d\d:\d\d"))).to_be_visible()
        expect_nothing_chosen(page)
    opened.settle()
    sent = opened.received().lower()
    assert "platelet count ordered" in sent
    for banned in ("score", "rank", "stratum", "strata", "peer-comment", "soft label", "inclusion", "support"):
        assert banned not in sent, banned
    page = opened.go("")
    expect(page.get_by_text("3 of 24 cases read")).to_be_visible()


def test_letters_in_the_comment_fire_nothing_and_control_enter_saves_from_it(visit: OpenVisit) -> None:
    opened = visit()
    page = opened.open("review")
    opened.key("2")
    expect_chosen(page, "Unusual, not relevant")
    comment(page).click()
    page.keyboard.type("3 1 z l s n 0", delay=20)
    expect(comment(page)).to_have_value("3 1 z l s n 0")
    expect_case(page, 1)
    expect_chosen(page, "Unusual, not relevant")
    page.keyboard.press("Control+Enter")
    expect_case(page, 2)
    expect(comment(page)).to_have_value("")
    opened.key("ArrowLeft")
    expect_case(page, 1)
    expect(comment(page)).to_have_value("3 1 z l s n 0")


def test_what_is_typed_or_pressed_in_one_go_is_taken(visit: OpenVisit) -> None:
    opened = visit()
    page = opened.open("review")
    opened.key("1")
    expect_chosen(page, "Usual")
    comment(page).click()
    page.keyboard.type("typed in one go")
    page.get_by_role("button", name=re.compile("^Save and next")).click()
    expect_case(page, 2)
    opened.key("ArrowLeft")
    expect_case(page, 1)
    expect(comment(page)).to_have_value("typed in one go")
    opened.key("ArrowRight")
    for number in (2, 3):
        expect_case(page, number)
        expect_nothing_chosen(page)
        opened.key("3")
        opened.key("s", at_once=True)
        expect_case(page, number + 1)
    assert page.locator("[data-testid=stAlert]").count() == 0


def test_two_presses_within_fifty_milliseconds_or_five_clicks_are_one_judgment_and_one_advance(
    visit: OpenVisit,
) -> None:
    opened = visit()
    page = opened.open("review")

    def press_twice() -> None:
        opened.key("s")
        opened.key("s", at_once=True)

    def click_five_times() -> None:
        page.evaluate("""() => {
          const save = [...document.querySelectorAll('button')].find(b => b.innerText.startsWith('Save and next'));
          for (let i = 0; i < 5; i++) save.click();
        }""")

    for number, save in ((1, press_twice), (2, click_five_times)):
        expect_nothing_chosen(page)
        opened.key("3")
        expect_chosen(page, "Unusual and relevant")
        save()
        expect_case(page, number + 1)
        page.wait_for_timeout(500)
        expect_case(page, number + 1)
        assert page.locator("[data-testid=stAlert]").count() == 0
    page = opened.go("")
    expect(page.get_by_text("2 of 24 cases read")).to_be_visible()


def test_a_reload_and_the_key_r_lose_no_draft(visit: OpenVisit) -> None:
    opened = visit()
    page = opened.open("review")
    opened.key("2")
    expect_chosen(page, "Unusual, not relevant")
    comment(page).click()
    opened.run(lambda: page.keyboard.type("half a thought"))  # a pause keeps it, without leaving the field
    page.reload()
    opened.settle()
    expect(comment(page)).to_have_value("half a thought")
    opened.run(lambda: opened.key("r"))
    expect_case(page, 1)
    expect_chosen(page, "Unusual, not relevant")
    expect(comment(page)).to_have_value("half a thought")


def test_a_pause_while_the_reason_of_a_form_is_typed_sends_nothing(visit: OpenVisit) -> None:
    page = visit().open("studies?study=ward-2025")
    page.evaluate("addEventListener('keydown', event => { window.sent ||= !event.isTrusted; })")
    reason = page.get_by_role("textbox", name="Reason", exact=True)
    reason.click()
    page.keyboard.type("every case of")
    page.wait_for_timeout(2000)  # longer than the pause after which a comment is kept
    assert not page.evaluate("window.sent"), "nothing is typed for the reader"
    expect(page.get_by_role("button", name="Reopen the study")).to_be_visible()
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(1000)
    expect(reason).to_have_value("every case of")


def test_undo_later_and_arrows(visit: OpenVisit) -> None:
    opened = visit()
    page = opened.open("review")
    opened.key("3")
    expect_chosen(page, "Unusual and relevant")
    opened.key("z")
    expect_nothing_chosen(page)
    opened.key("ArrowRight")
    expect_case(page, 2)
    opened.key("ArrowLeft")
    expect_case(page, 1)
    opened.key("l")
    expect_case(page, 2)
    opened.key("1")
    expect_chosen(page, "Usual")
    opened.key("s")
    expect_case(page, 3)
    opened.key("z")
    expect_case(page, 2)
    expect_chosen(page, "Usual")


def test_cannot_judge_asks_for_a_reason(visit: OpenVisit) -> None:
    opened = visit()
    page = opened.open("review")
    opened.key("0")
    expect_chosen(page, "Cannot judge")
    before = page.locator("h1").bounding_box()
    opened.key("s")
    error = page.get_by_text("needs a reason")
    expect(error).to_be_visible()
    assert page.locator("h1").bounding_box() == before, "the case stays where it is"
    field, said = comment(page).bounding_box(), error.bounding_box()
    assert field is not None
    assert said is not None
    assert 0 < field["y"] - said["y"] < 200, "it is said beside the field"
    expect_case(page, 1)
    page.get_by_label("Comment", exact=True).fill("no labs at all")
    page.keyboard.press("Control+Enter")
    expect_case(page, 2)


def test_when_every_second_save_fails_nothing_is_lost_and_nothing_is_claimed(visit: OpenVisit) -> None:
    opened = visit(state="failing")
    page = opened.open("review")
    for number in (1, 2):
        opened.key("3")
        expect_chosen(page, "Unusual and relevant")
        opened.key("s")
        expect(page.get_by_text("Nothing of this answer was kept")).to_be_visible()
        expect_case(page, number)
        expect_chosen(page, "Unusual and relevant")
        opened.key("s")
        expect_case(page, number + 1)
    page = opened.go("")
    expect(page.get_by_text("2 of 24 cases read")).to_be_visible()


def test_the_second_of_two_windows_hears_of_the_first(visit: OpenVisit) -> None:
    name = uuid.uuid4().hex
    one, two = visit(name=name), visit(name=name)
    first, second = one.open("review"), two.open("review")
    expect_case(first, 1)
    expect_case(second, 1)
    one.key("1")
    expect_chosen(first, "Usual")
    two.key("3")
    expect_chosen(second, "Unusual and relevant")
    one.key("s")
    expect_case(first, 2)
    two.key("s")
    expect(second.get_by_text("changed meanwhile")).to_be_visible()
    expect_case(second, 1)
    second.get_by_role("button", name="Load the saved version").click()
    expect_chosen(second, "Usual")


def test_the_list_ends_with_thanks_and_undo_still_works(visit: OpenVisit) -> None:
    opened = visit(state="short")
    page = opened.open("review")
    for number in (1, 2):
        expect(page.get_by_text(f"Case {number} of 2", exact=False)).to_be_visible()
        opened.settle()
        opened.key("1")
        expect_chosen(page, "Usual")
        opened.key("s")
    expect(page.get_by_text("All read")).to_be_visible()
    opened.key("z")
    expect(page.get_by_text("Case 2 of 2", exact=False)).to_be_visible()
    expect_chosen(page, "Usual")


def test_a_phone_shows_title_time_line_and_answers_and_judges_by_touch(visit: OpenVisit) -> None:
    opened = visit(phone=True)
    page = opened.open("review")
    chart = page.locator("[data-testid=stPlotlyChart]").first.bounding_box()
    bar = page.get_by_role("button", name="Usual", exact=True).bounding_box()
    assert chart is not None
    assert bar is not None
    assert chart["y"] + chart["height"] <= bar["y"] + 4
    for name in ("Usual", "Unusual, not relevant", "Unusual and relevant", "Cannot judge", "Save"):
        box = page.get_by_role("button", name=name, exact=True).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert box["y"] + box["height"] <= 844
    page.get_by_role("button", name="Unusual and relevant").click()
    expect_chosen(page, "Unusual and relevant")
    page.get_by_role("button", name="Comment").click()
    page.get_by_role("textbox", name="Comment").fill("from the ward")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Save", exact=True).click()
    expect_case(page, 2)
