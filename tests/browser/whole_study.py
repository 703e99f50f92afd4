"""A whole study in browsers: a coordinator makes it, three readers judge, an adjudicator settles, a report comes out.

The flow is written here once; the suite runs it small and `./dev bench study` with the method paper's 222 cases. What
is stored in the end is checked by `tests.browser.whole_study_checks`.
"""

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from alertreview.application import open_application
from core.vocabulary import Role
from tests.browser.blinded_frames import Secrets, leaks
from tests.browser.study_reader import (
    ADJUDICATOR,
    COORDINATOR,
    PASSWORD,
    READERS,
    Answers,
    Reader,
    Scanned,
    Times,
    login_of,
    sign_in,
)
from tests.browser.visits import Visit
from tests.browser.whole_study_checks import (
    StoredStudy,
    check_report,
    check_votes,
    final_answers,
    majority,
    read_report,
)

PAPER = "As in the paper"
OWN_CHOICE = "Own choice"
SCORE_WORDS = ("score", "rank", "stratum", "inclusion")
"""What an adjudicator must not get either."""


@dataclass(frozen=True)
class Design:
    """How the coordinator fills the form in.

    Parameters
    ----------
    title : str
    preset : str
        PAPER, or OWN_CHOICE with a number of cases.
    n_cases : int
        For the own choice; the preset has its own.
    """

    title: str
    preset: str = PAPER
    n_cases: int = 222


def make_site(demonstration: Path, home: Path) -> Path:
    """Copy a demonstration and give five people accounts: it is a site to sign in to from then on."""
    shutil.copytree(demonstration, home)
    roles = {COORDINATOR: Role.COORDINATOR, ADJUDICATOR: Role.ADJUDICATOR, **dict.fromkeys(READERS, Role.REVIEWER)}
    with open_application(home) as site:
        for name, role in roles.items():
            site.sign_in.with_code(login_of(name), site.accounts.create(name, role, login=login_of(name)), PASSWORD)
    return home


def choose(page: Page, label: str, *texts: str) -> None:
    """Choose in a selectbox or a list of many, as a coordinator does."""
    box = page.get_by_role("combobox", name=re.compile(label))
    for text in texts:
        box.click()
        box.fill(text)
        page.get_by_role("option", name=re.compile(re.escape(text[:30]))).first.click()


def make_study(opened: Visit, design: Design) -> str:
    """Make a study and start it; gives its short name."""
    page = opened.open("studies")
    page.get_by_role("button", name="New study").click()
    page.get_by_role("textbox", name="Title").fill(design.title)
    page.get_by_role("textbox", name="Title").press("Tab")
    opened.settle()
    if design.preset != PAPER:
        choose(page, "Design", design.preset)
        cases = page.get_by_role("spinbutton", name="Cases", exact=True)
        cases.fill(str(design.n_cases))
        cases.press("Enter")
    expect(page.get_by_text(re.compile(rf"^{design.n_cases} cases of \d+ patients"))).to_be_visible(timeout=180_000)
    opened.settle()
    choose(page, "Readers", *READERS)
    page.keyboard.press("Escape")
    opened.settle()
    page.get_by_role("button", name="Create draft").click()
    page.get_by_role("button", name="Start the study").click(timeout=180_000)
    expect(page.get_by_role("button", name="Lock the study")).to_be_visible(timeout=180_000)
    opened.settle()
    found = re.search(r"[?&]study=([a-z0-9-]+)", page.url)
    assert found, page.url
    return found[1]


def read_all(readers: list[Reader], slug: str, said: Callable[[str], None] = lambda _: None) -> None:
    """Let the readers judge in turns, each in her own order, until every list is at its end."""
    for reader in readers:
        reader.arrive()
    n_turns = 0
    while waiting := [reader for reader in readers if not reader.is_done()]:
        for reader in waiting:
            reader.judge()
        n_turns += 1
        if n_turns == 2:
            readers[1].look_around(slug)
        if n_turns % 25 == 0:
            said(f"  {sum(len(reader.times.to_mark) for reader in readers)} judgments")


def settle_all(opened: Visit, slug: str, answer: int, n_waiting: int, secrets: Secrets, scanned: Scanned) -> None:
    """Settle every case that the votes leave open, by keys, and search the frames; there must be just so many."""
    opened.frames.clear()
    page = opened.open(f"studies?study={slug}")
    way = page.get_by_role("button", name="Settle disagreements")
    expect(way).to_have_count(int(n_waiting > 0))
    if n_waiting:
        way.click()
    else:
        opened.go(f"adjudication?study={slug}")
    n_settled = 0
    while True:
        expect(page.get_by_text(re.compile(r"waiting for you|Nothing to settle")).first).to_be_visible(timeout=180_000)
        opened.settle()
        if page.get_by_text("Nothing to settle").count():
            break
        before = page.locator("[data-testid=stMain]").inner_text()
        assert re.search(r"^A\s", before, re.MULTILINE), before
        opened.key(str(answer))
        expect(page.locator("[data-testid=stBottom] [data-testid=stBaseButton-primary]")).to_have_count(2)
        reason = page.get_by_placeholder("Reason, stored with the answer")
        reason.fill("settled after reading the record")
        opened.run(reason.blur)
        opened.run(lambda: opened.key("s"))
        expect(page.get_by_text("Saved: ")).to_be_visible(timeout=180_000)
        n_settled += 1
    scanned.found += [f"{ADJUDICATOR}: {one}" for one in leaks(opened.frames, secrets)]
    scanned.n_frames += len(opened.frames)
    scanned.n_bytes += sum(map(len, opened.frames))
    assert n_settled == n_waiting


def lock_and_report(opened: Visit, slug: str, folder: Path) -> tuple[str, dict[str, Any]]:
    """Lock the study with a reason and open its report; gives the page's text and the report as a file."""
    page = opened.open(f"studies?study={slug}")
    page.get_by_role("textbox", name="Reason").fill("every case is judged and settled")
    page.get_by_role("button", name="Lock the study").click()
    expect(page.get_by_role("button", name="Reopen the study")).to_be_visible(timeout=180_000)
    opened.settle()
    page.get_by_role("button", name="Report", exact=True).click()
    expect(page.get_by_text("AUC, design-weighted", exact=True)).to_be_visible(timeout=180_000)
    opened.settle()
    text = page.locator("[data-testid=stMain]").inner_text()
    page.get_by_test_id("stPopoverButton").filter(has_text="Download").click()
    for _ in range(3):  # a browser gives up a download whose connection is closed at that moment
        with page.expect_download() as download:
            page.get_by_role("button", name="JSON").click()
        if not (failure := download.value.failure()):
            break
    assert not failure, failure
    download.value.save_as(folder / "report.json")
    return text, read_report(folder / "report.json")


@dataclass(frozen=True)
class Outcome:
    """What came of a whole study.

    Parameters
    ----------
    n_cases, n_judgments, n_settled, n_aucs : int
        Cases; saved marks seen; cases settled; AUCs that plain counting gave as well.
    times : Times
        Of all readers.
    scanned : Scanned
        Of all readers and the adjudicator.
    auc : float or None
        On the page, weighted by the design; None when the answers leave one class only.
    """

    n_cases: int
    n_judgments: int
    n_settled: int
    n_aucs: int
    times: Times
    scanned: Scanned
    auc: float | None


def whole_study(
    open_window: Callable[[], Visit],
    home: Path,
    design: Design,
    answers_for: Callable[[str], Answers],
    said: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """Run the study and check everything that it has stored and shown.

    Parameters
    ----------
    open_window : callable
        Opens a window at the site's dashboard.
    home : Path
        Of the site; see `make_site`.
    design : Design
    answers_for : callable
        What each reader means to answer, once the study with this short name has its cases.
    said : callable
        Takes lines on how far it is.

    Raises
    ------
    AssertionError
        If anything stored or shown differs from what was typed, or a frame holds what is not for its reader.
    """
    coordinator = open_window()
    sign_in(coordinator, COORDINATOR)
    slug = make_study(coordinator, design)
    stored = StoredStudy(home / "alertreview.db", slug)
    answers = answers_for(slug)
    readers = [Reader(open_window(), name, stored, answers) for name in READERS]
    read_all(readers, slug, said)
    typed = {(case, reader.name): entries for reader in readers for case, entries in reader.typed.items()}
    check_votes(stored, typed)
    labels = {case: majority(given) for case, given in final_answers(typed).items()}
    assert len(labels) == design.n_cases
    assert all(len(given) == len(READERS) for given in final_answers(typed).values())

    scanned = Scanned(found=[one for reader in readers for one in reader.scanned.found])
    scanned.n_frames = sum(reader.scanned.n_frames for reader in readers)
    scanned.n_bytes = sum(reader.scanned.n_bytes for reader in readers)
    adjudicator = open_window()
    sign_in(adjudicator, ADJUDICATOR)
    undecided = [case for case, label in labels.items() if label is None]
    secrets = Secrets(READERS, [one for case in undecided for one in stored.numbers()[case]], SCORE_WORDS)
    settle_all(adjudicator, slug, 3, len(undecided), secrets, scanned)
    assert set(stored.adjudications().values()) <= {(3, ADJUDICATOR)}
    assert scanned.found == [], "\n".join(scanned.found[:20])

    text, report = lock_and_report(coordinator, slug, home)
    assert stored.status() == "locked"
    n_aucs = check_report(stored, report, typed)
    auc = next(one for one in report["results"][0]["scorers"] if one["scorer"] == report["primary_scorer"])
    value = auc["auc_weighted"]["value"]
    shown = re.search(r"AUC, design-weighted\s+(\d\.\d\d|–)", text)
    assert shown, text
    assert shown[1] == ("–" if value is None else f"{value:.2f}")
    # The coordinator gets what a reader must not get: a search that found nothing here would find nothing anywhere.
    assert {"word: score", "word: inclusion", "word: auc"} <= set(leaks(coordinator.frames, Secrets()))
    times = Times()
    for reader in readers:
        times.add(reader.times)
    return Outcome(design.n_cases, len(times.to_mark), len(undecided), n_aucs, times, scanned, value)
