"""The whole way on a real demonstration site: worklist, alert, blinded review by keyboard, report with an AUC."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from alertreview.application import open_application
from alertreview.cli.demo import STUDY, VISITOR
from core.vocabulary import Answer
from tests.browser.blinded_frames import VITAL_SIGN
from tests.browser.page_checks import FITS, faults
from tests.browser.visits import OpenVisit, Visit, wait_for_case

pytestmark = pytest.mark.browser

PAGES = ("", "worklist", "review", "my-judgments", "studies", "reports", "runs", "tasks", "export")


def judge(opened: Visit, key: str, name: str) -> None:
    """Answer the case that is shown with two keys and wait for what comes next."""
    page = opened.page
    wait_for_case(page)
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    before = page.url
    opened.key(key)
    expect(page.locator("[data-testid=stBottom] [data-testid=stBaseButton-primary]", has_text=name)).to_have_count(1)
    wait_for_case(page)
    opened.run(lambda: opened.key("s"))
    page.wait_for_function("before => location.href !== before", arg=before)


def judge_without_a_page(home: Path, n_cases: int) -> None:
    """Save answers of the same reader, who has read enough cases by key."""
    with open_application(home) as site:
        reader = next(person.person_id for person in site.site.people() if person.name == VISITOR)
        for number in range(n_cases):
            case = site.review.next_case(STUDY, reader)
            assert case is not None
            answer = Answer.RELEVANT if number % 2 else Answer.USUAL
            site.review.submit_judgment(
                STUDY, reader, case.case_id, answer=answer, version_seen=case.version_seen, form_key=case.form_key
            )


def test_from_the_worklist_to_the_auc(visit: OpenVisit, demo_url: str, demo_home: Path) -> None:
    opened = visit(demo_url)
    page = opened.open("worklist")
    expect(page.get_by_text(re.compile(r"^\d+ alerts$"))).to_be_visible()
    opened.key("j")
    page.wait_for_url("**alert=*")
    opened.key("o")
    expect(page.get_by_text("Time line green")).to_be_visible()
    opened.settle()
    for chart in ("timeline-", "histogram-scaled"):
        expect(page.locator(f"[class*='st-key-{chart}'] [data-testid=stPlotlyChart]")).to_have_count(1)
    expect(page.get_by_text(re.compile(r"of the \d+ most similar days of other patients"))).to_be_visible()

    # The long answers of a real study stay whole on a phone. Here, because afterwards nothing is left to judge.
    phone = visit(demo_url, phone=True)
    expect(phone.open("review").get_by_role("button", name="Unusual, not clinically relevant")).to_be_visible()
    assert faults(phone.page) == []

    reader = visit(demo_url)
    page = reader.open("review")
    total = int(re.search(r"of (\d+)", page.get_by_text(re.compile(r"^Case \d+ of \d+")).inner_text())[1])  # type: ignore[index]
    assert total >= 10
    for number in range(3):
        if number == 1:
            judge_without_a_page(demo_home, total - 3)
            reader.open("review")
        judge(reader, "3" if number % 2 else "1", "clinically relevant" if number % 2 else "Usual")
    expect(page.get_by_text("All read")).to_be_visible()
    sent = reader.received().lower().replace(VITAL_SIGN, "")
    for banned in ("score", "rank", "stratum", "strata", "inclusion", "support"):
        assert banned not in sent, banned

    page = opened.go("my-judgments")
    expect(page.get_by_text(f"{total} judgments.")).to_be_visible()

    page = opened.go("reports")
    main = page.locator("[data-testid=stMain]")
    expect(main.get_by_text("AUC, design-weighted", exact=True)).to_be_visible()
    text = main.inner_text()
    assert re.search(r"AUC, design-weighted\s+0\.\d\d\s+0\.\d\d–[01]\.\d\d", text)
    # The headline gives the AUC in words, or the reason why one figure would say too much.
    assert re.search(
        r"ranks (a relevant case above .* times in 100|relevant cases cannot be said in one figure: \S)", text
    )
    expect(main.get_by_text("ROC", exact=True)).to_be_visible()


def test_every_page_of_the_demonstration_draws_without_an_error(visit: OpenVisit, demo_url: str) -> None:
    opened = visit(demo_url)
    for path in PAGES:
        page = opened.go(path)
        assert page.locator("[data-testid=stAlert], [data-testid=stException]").count() == 0, path
        page.wait_for_function(FITS)
        expect(page.get_by_text("Simulated data").first).to_be_visible()


def test_a_link_to_an_alert_that_is_not_there_says_so(visit: OpenVisit, demo_url: str) -> None:
    page = visit(demo_url).open("alert?alert=999999999")
    expect(page.get_by_text("Alert not found")).to_be_visible()
    assert "Traceback" not in page.content()
