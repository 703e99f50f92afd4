"""Every page, light and dark, full and empty, as drawn first and after an act: one window for each mode."""

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from dashboard import frame
from tests.browser.page_checks import COLOURS, FITS, OF_STREAMLIT, OUT_OF_SIGHT, faults, faults_now
from tests.browser.visits import OpenVisit, Visit, wait_for_case

pytestmark = pytest.mark.browser

# Where a page needs more than its name to have something to show.
QUERIES = {"home": "", "alert": "alert?alert=1003", "reports": "reports?study=ward-2025"}
NAMES = [page[0].replace("_", "-") for page in (*frame.OFFERED, *frame.REACHED_FROM_OTHERS)]
PAGES = tuple(QUERIES.get(name, name) for name in NAMES)
WITHOUT_ALERTS = ("", "worklist", "alert?alert=1003", "runs", "tasks")
"""Pages that look another way where a run has no alert than where there is no run."""
EMPTY_IN_THE_DARK = ("", "worklist", "study-setup", "admin")
"""Those with every kind of card, box and button that only an empty page has."""
MODES = {
    "full-light": ("full", False, PAGES),
    "full-dark": ("full", True, PAGES),
    "empty-light": ("empty", False, PAGES),
    "empty-dark": ("empty", True, EMPTY_IN_THE_DARK),
    "no-alerts-light": ("no-alerts", False, WITHOUT_ALERTS),
}
PHONE_PAGES = (
    "",
    "worklist",
    "alert?alert=1003",
    "review",
    "my-judgments",
    "studies",
    "reports?study=ward-2025",
    "runs",
    "tasks",
)


def test_the_pages_are_read_from_the_frame() -> None:
    assert len(PAGES) >= 12
    assert {"", "worklist", "review", "study-setup", "adjudication", "tasks", "admin"} <= set(PAGES)


@pytest.mark.checklist("B5")
@pytest.mark.parametrize(("state", "dark", "paths"), MODES.values(), ids=MODES)
def test_every_page_is_whole_readable_and_accessible(
    visit: OpenVisit, state: str, dark: bool, paths: tuple[str, ...]
) -> None:
    opened = visit(state=state, dark=dark)
    found = []
    for path in paths:
        page = opened.go(path)
        expect(page.get_by_text("Simulated data").first, path).to_be_visible()
        expect(page, f"{path}: a tab and the history name the page").to_have_title(re.compile(r"\w.* · alertreview$"))
        found += [f"{path or 'home'}: {fault}" for fault in faults(page, COLOURS if dark else ())]
    assert found == [], "\n".join(found)


def test_every_page_is_whole_readable_and_accessible_on_a_phone(visit: OpenVisit) -> None:
    """At 390 pixels; and at 320 no page scrolls sideways. An act on all alerts of a list has room too."""
    opened = visit(phone=True)
    page = opened.page
    found = []
    for path in PAGES:
        opened.go(path)
        page.set_viewport_size({"width": 320, "height": 844})
        page.wait_for_function(FITS)
        page.set_viewport_size({"width": 390, "height": 844})
        opened.settle()
        found += [f"{path or 'home'}: columns out of sight: {one}" for one in page.evaluate(OUT_OF_SIGHT)]
        if path not in PHONE_PAGES:
            continue
        found += [f"{path or 'home'}: {fault}" for fault in faults(page)]
        # Buttons beside a title would break its words.
        found += [f"{path or 'home'}: a narrow title" for box in titles(page) if box["width"] < 330]
    opened.go("worklist")
    begin_a_bulk_act(opened)
    found += [f"an act on all: {fault}" for fault in faults(page)]
    assert found == [], "\n".join(found)


def test_on_a_phone_keys_reach_every_row_of_a_table_that_is_longer_than_a_screenful(visit: OpenVisit) -> None:
    opened = visit(state="many-tasks", phone=True)
    page = opened.go("tasks")
    assert faults(page) == []
    last = page.get_by_text("Lab 19", exact=True)
    expect(last).to_be_hidden()
    more = page.get_by_text(re.compile(r"^\d+ more$")).locator("xpath=ancestor::summary")
    more.focus()
    opened.key("Enter")
    expect(last).to_be_visible()
    assert faults(page) == []


def titles(page: Page) -> list[dict[str, float]]:
    return page.evaluate("[...document.querySelectorAll('h1')].map(one => one.getBoundingClientRect().toJSON())")


TOPS = """colours => ['task', 'other'].map(one => ['scaled', 'raw'].map(score =>
  document.querySelector(`.st-key-${one}-${score}-${colours}`).getBoundingClientRect().top))"""


def choose_an_answer(opened: Visit) -> None:
    wait_for_case(opened.page)
    opened.key("3")
    expect(opened.page.locator("[data-testid=stBottom] [data-testid=stBaseButton-primary]").first).to_be_visible()
    wait_for_case(opened.page)


def ask_why_it_is_dismissed(opened: Visit) -> None:
    opened.key("d")
    expect(opened.page.get_by_text("Dismiss it because")).to_be_visible()


def open_more_filters(opened: Visit) -> None:
    opened.page.get_by_role("button", name="More", exact=True).click()
    expect(opened.page.get_by_role("textbox", name="Patient identifier")).to_be_visible()


def begin_a_bulk_act(opened: Visit) -> None:
    opened.page.get_by_role("button", name=re.compile("^Triage all")).click()
    expect(opened.page.get_by_role("button", name="Not now")).to_be_visible()


def filter_everything_out(opened: Visit) -> None:
    opened.page.get_by_role("textbox", name="Search labs, drugs, patients").fill("zzz")
    opened.page.keyboard.press("Enter")
    expect(opened.page.get_by_text("No alert matches these filters")).to_be_visible()


def design_by_oneself(opened: Visit) -> None:
    opened.page.get_by_label("Design", exact=True).click()
    opened.page.get_by_role("option", name="Own choice").click()
    expect(opened.page.get_by_role("textbox", name="Strata boundaries")).to_be_visible()


def open_the_planner(opened: Visit) -> None:
    opened.page.get_by_text("How many cases would another study need?").click()
    expect(
        opened.page.get_by_role("spinbutton", name="Expected AUC")
        .or_(opened.page.get_by_label("Expected AUC", exact=True))
        .first
    ).to_be_visible()


OPENED: dict[str, tuple[str, Callable[[Visit], None]]] = {
    "an answer is chosen": ("review", choose_an_answer),
    "a dismissal asks why": ("worklist", ask_why_it_is_dismissed),
    "more filters": ("worklist", open_more_filters),
    "an act on all": ("worklist", begin_a_bulk_act),
    "nothing is left": ("worklist", filter_everything_out),
    "an own design": ("study-setup", design_by_oneself),
    "the planner": ("reports?study=ward-2025", open_the_planner),
    "an alert that is not there": ("alert?alert=999", lambda _: None),
    "a study that is not there": ("studies?study=none", lambda _: None),
}
OPENED_IN_THE_DARK = (
    "an answer is chosen",
    "a dismissal asks why",
    "an act on all",
    "nothing is left",
    "an own design",
)
"""Those with every kind of button, box and field that the others have too."""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_what_is_opened_on_a_page_is_readable_and_accessible_too(visit: OpenVisit, dark: bool) -> None:
    opened = visit(dark=dark)
    found = []
    for name in OPENED_IN_THE_DARK if dark else OPENED:
        path, act = OPENED[name]
        page = opened.go(path)
        act(opened)
        opened.settle()
        found += [f"{name}: {fault}" for fault in faults(page, COLOURS if dark else ())]
    tops = opened.go("task").evaluate(TOPS, "dark" if dark else "light")
    assert tops[0] == tops[1], "two tasks stand level"
    assert found == [], "\n".join(found)


BROKEN = {
    "image-alt": "<img src='/favicon.png'>",
    "button-name": "<button></button>",
    "label": "<input type=text>",
    "color-contrast": "<p style='color:#999;background:#fff'>hard to read</p>",
    "without words": "<div data-testid=stElementContainer><div data-testid=stPlotlyChart></div></div>",
    "drawn twice": "<div data-testid=stPlotlyChart style='width:99.5px'></div>",
    "out of sight": "<div data-testid=stDataFrame aria-label=x><div class=dvn-scroller "
    "style='width:90px;overflow:auto'><div style='width:300px;height:9px'></div></div></div>",
    "scrolls sideways": "<div style='width:3000px;height:1px'></div>",
    "cut off on a button": "<button><div class=stMarkdownEllipsis style='width:30px;overflow:hidden;"
    "white-space:nowrap'>Unusual and relevant</div></button>",
    "an error is shown": "<div data-testid=stException>Traceback</div>",
}


def test_each_kind_of_fault_is_found_when_it_is_there(visit: OpenVisit) -> None:
    page = visit(state="empty").go("studies")
    assert faults(page) == []
    put(page, "".join(BROKEN.values()))
    found = faults_now(page)
    assert [name for name in BROKEN if not any(name in fault for fault in found)] == []
    page.evaluate("document.querySelector('#broken').remove()")
    assert faults(page) == []


def put(page: Page, markup: str) -> None:
    page.evaluate(
        """markup => { const box = document.createElement('div'); box.id = 'broken'; box.innerHTML = markup;
        document.querySelector('[data-testid=stMainBlockContainer]').append(box); }""",
        markup,
    )


def test_what_is_left_to_streamlit_is_named_with_a_reason() -> None:
    for (rule, selector), reason in OF_STREAMLIT.items():
        assert rule
        assert "stApp" not in selector
        assert len(reason) > 20
