"""Which pictures are taken: every page of the frame and every sign-in page, full and empty, and what opens on them."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page

from alertreview.alerts.models import WorklistFilters
from alertreview.application import open_application
from alertreview.cli.demo import STUDY
from benchmarks._browser import settle
from core.vocabulary import Decision
from dashboard import frame

Act = Callable[[Page], None]


@dataclass(frozen=True)
class Picture:
    """One picture.

    Parameters
    ----------
    name : str
        Begins with the page's name.
    site : str
        One of `benchmarks._picture_sites`.
    login : str
        Who is signed in; empty for nobody.
    path : str
        Page and parameters.
    act : callable or None
        What is done on the page before the picture.
    """

    name: str
    site: str
    login: str
    path: str
    act: Act | None = None


def paths_of_pages(home: Path) -> dict[str, str]:
    """Return each page of the frame with an address at which a demonstration's site has something to show."""
    with open_application(home) as site:
        first = {one: site.worklist.page(WorklistFilters(decision=one)).rows[0] for one in Decision}
    queries = {
        "home": "",
        "alert": f"alert?alert={first[Decision.OMISSION].alert_id}",
        "task": f"task?task={first[Decision.OMISSION].task_key}",
        "reports": f"reports?study={STUDY}",
        "studies": f"studies?study={STUDY}",
        "adjudication": f"adjudication?study={STUDY}",
        "alert-commission": f"alert?alert={first[Decision.COMMISSION].alert_id}",
    }
    names = [page[0].replace("_", "-") for page in (*frame.OFFERED, *frame.REACHED_FROM_OTHERS)]
    return {name: queries.get(name, name) for name in (*names, "alert-commission")}


def pictures(homes: dict[str, Path]) -> list[Picture]:
    """Return all pictures; neighbours share site and login, so that each window is signed in once."""
    paths = paths_of_pages(homes["demonstration"])
    alert, names = paths["alert"], [name for name in paths if name != "alert-commission"]
    full = [Picture(name, "demonstration", "", path) for name, path in paths.items()]
    opened = [Picture(name, "demonstration", "", path, act) for name, (path, act) in OPENED.items()]
    opened.append(Picture("alert-dismiss", "demonstration", "", alert, _press("d", "Dismiss it because")))
    empty = [Picture(f"{name}-empty", "new", _who_sees(name), "" if name == "home" else name) for name in names]
    return [*full, *opened, *BY_ROLE, *SIGNED_OUT, *sorted(empty, key=lambda one: one.login)]


def _who_sees(name: str) -> str:
    return {"admin": "administrator", "adjudication": "adjudicator", "review": "reviewer"}.get(name, "coordinator")


def _press(key: str, text: str) -> Act:
    """Press a key, and wait for a text."""

    def act(page: Page) -> None:
        page.keyboard.press(key)
        if page.viewport_size and page.viewport_size["width"] > 500:  # a phone has no keys, and no hints of them
            page.get_by_text(text).first.wait_for(timeout=20_000)
        settle(page)

    return act


def _click(*names: str) -> Act:
    """Click one button or text after the other."""

    def act(page: Page) -> None:
        for name in names:
            button = page.get_by_role("button", name=re.compile(name))
            (button if button.count() else page.get_by_text(re.compile(name))).first.click(timeout=20_000)
            settle(page)

    return act


def _answer(page: Page) -> None:
    _click("Unusual and clinically relevant")(page)


def _open_filters(page: Page) -> None:
    """Open what a phone shows folded."""
    folded = page.get_by_text("Filters", exact=True)
    if folded.count():
        folded.first.click()
        page.get_by_role("textbox", name="Search labs, drugs, patients").wait_for(timeout=10_000)


def _more(page: Page) -> None:
    _open_filters(page)
    _click("^More")(page)


def _filter_everything_out(page: Page) -> None:
    _open_filters(page)
    page.get_by_role("textbox", name="Search labs, drugs, patients").fill("zzz")
    page.keyboard.press("Enter")
    page.get_by_text("No alert matches these filters").wait_for(timeout=10_000)
    settle(page)


def _own_design(page: Page) -> None:
    page.get_by_label("Design", exact=True).click()
    page.get_by_role("option", name="Own choice").click()
    page.get_by_role("textbox", name="Strata boundaries").wait_for(timeout=10_000)
    settle(page)


OPENED: dict[str, tuple[str, Act | None]] = {
    "worklist-omissions": ("worklist?decision=omission", None),
    "worklist-every-alert": ("worklist?group=alert", None),
    "worklist-more": ("worklist", _more),
    "worklist-views": ("worklist", _click("Views")),
    "worklist-bulk": ("worklist", _click("^Triage all")),
    "worklist-nothing-left": ("worklist", _filter_everything_out),
    "alert-not-there": ("alert?alert=999999", None),
    "review-answered": ("review", _answer),
    "study-setup-own-design": ("study-setup", _own_design),
    "reports-planner": (f"reports?study={STUDY}", _click("How many cases would another study need")),
    "studies-not-there": ("studies?study=none", None),
    "task-not-there": ("task?task=none", None),
}
"""What opens on a page of the demonstration: name -> path and act."""

BY_ROLE = [
    *(Picture(f"home-as-{login}", "accounts", login, "") for login in ("reviewer", "coordinator", "viewer")),
    Picture("admin-signed-in", "accounts", "administrator", "admin"),
    Picture("runs-as-administrator", "accounts", "administrator", "runs"),
    Picture("export-refused", "accounts", "viewer", "export"),
    Picture("adjudication-signed-in", "accounts", "adjudicator", f"adjudication?study={STUDY}"),
    Picture("reports-to-sign", "accounts", "researcher", f"reports?study={STUDY}"),
    Picture("sign-in-confirm", "accounts", "researcher", "confirm?next=/reports"),
    Picture("sign-in-password", "accounts", "researcher", "password"),
    Picture("sign-in-logout", "accounts", "researcher", "logout"),
]
"""What the same site shows to people who are signed in."""


def _wrong_password(page: Page) -> None:
    page.fill("#login", "reviewer")
    page.fill("#password", "not the password")
    page.get_by_role("button", name="Sign in").click()
    page.locator(".error").wait_for(timeout=10_000)


SIGNED_OUT = [
    Picture("sign-in", "accounts", "", "login"),
    Picture("sign-in-wrong", "accounts", "", "login", _wrong_password),
    Picture("sign-in-code", "accounts", "", "login/code"),
    Picture("sign-in-nobody", "nobody", "", "login"),
]
"""What those see who are not."""
DOCUMENTED = ("worklist", "alert", "review", "reports")
"""Pictures of the README and the documents: the first screen, light."""
