"""Signing in in a real browser: deep link, hostile texts in every field, log-out in another tab."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from alertreview.application import open_application
from core.vocabulary import Role
from tests.browser.page_checks import grave_findings
from tests.browser.visits import OpenVisit, Visit, wait_for_case
from tests.support import installed
from tests.support.built_once import shared_folder
from tests.support.served import dashboard

pytestmark = pytest.mark.browser

PASSWORD = "four boats in winter"
CORPUS = (
    '<img src=x onerror="window.pwned=1">',
    "<script>window.pwned=1</script>",
    '"><svg onload=window.pwned=1>',
    "[link](javascript:window.pwned=1)",
    "<iframe srcdoc='<script>parent.pwned=1</script>'>",
    "{{constructor.constructor('window.pwned=1')()}}",
    "$\\href{javascript:window.pwned=1}{x}$ :red[x] `x`",
)


@pytest.fixture(scope="module")
def real_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the demonstration, as nobody has touched it, in which people have accounts: it is none any more."""
    built = installed.demonstration(shared_folder(tmp_path_factory))
    home = Path(shutil.copytree(built, tmp_path_factory.mktemp("real") / "home"))
    with open_application(home) as site:
        for login, role, name in (
            ("rita", Role.REVIEWER, "You (demonstration)"),
            ("root", Role.ADMINISTRATOR, CORPUS[0]),
            ("cora", Role.COORDINATOR, CORPUS[1]),
        ):
            site.sign_in.with_code(login, site.accounts.create(name, role, login=login), PASSWORD)
    return home


@pytest.fixture(scope="module")
def real_url(real_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the dashboard on that site."""
    with dashboard(real_home, tmp_path_factory.mktemp("real-server") / "server.log") as (port, _):
        yield f"http://127.0.0.1:{port}"


def enter(opened: Visit, login: str, path: str = "") -> Page:
    """Go somewhere, be asked who one is, sign in, and be there."""
    page = opened.page
    page.goto(f"{opened.url}/{path}")
    page.fill("#login", login)
    page.fill("#password", PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector(".ar-who", timeout=180_000)
    opened.settle()
    return page


def unharmed(page: Page) -> bool:
    return page.evaluate("window.pwned === undefined && document.querySelector('iframe') === null") is True


OPENS = """address => new Promise(done => {
  const link = new WebSocket(address, ["streamlit"]);
  link.onopen = () => { link.close(); done("opened"); };
  link.onerror = () => done("refused");
})"""


@pytest.mark.checklist("B4", "B5")
def test_a_page_on_another_port_opens_no_websocket(chromium: Browser, real_url: str) -> None:
    """A browser sends the cookie of a site to its other ports and from them: to it, they are the same site."""
    context = chromium.new_context()
    page = context.new_page()
    page.goto(f"{real_url}/login")
    page.fill("#login", "rita")
    page.fill("#password", PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector(".ar-who", timeout=180_000)
    stream = f"{real_url.replace('http', 'ws')}/_stcore/stream"
    assert page.evaluate(OPENS, stream) == "opened"
    sent: list[dict[str, str]] = []
    context.on("request", lambda request: sent.append(request.all_headers()) if request.url == f"{real_url}/" else None)
    for other in ("http://127.0.0.1:9", "http://127.0.0.1"):
        context.route(f"{other}/", lambda route: route.fulfill(body="<p>another program</p>", content_type="text/html"))
        page.goto(f"{other}/")
        assert page.evaluate("location.origin") == other
        assert page.evaluate(OPENS, stream) == "refused"
        page.evaluate("address => fetch(address, {mode: 'no-cors', credentials: 'include'}).catch(() => 0)", real_url)
    assert any("alertreview_" in headers.get("cookie", "") for headers in sent), "the cookie was not sent at all"
    context.close()


@pytest.mark.checklist("B3", "B5", "D4", "D6")
def test_a_reader_signs_in_at_a_deep_link_judges_with_hostile_words_and_is_out_in_every_tab(
    visit: OpenVisit, real_url: str, real_home: Path
) -> None:
    opened = visit(real_url)
    page = enter(opened, "rita", "review?study=demo")
    expect(page.get_by_text(re.compile(r"^Case \d+ of \d+"))).to_be_visible()
    assert page.url.startswith(f"{real_url}/review?study=demo")
    assert page.locator("[data-testid=stSelectbox]", has_text="You (demonstration)").count() == 0
    for text in CORPUS[:2]:
        wait_for_case(page)
        opened.key("3")
        expect(
            page.locator("[data-testid=stBottom] [data-testid=stBaseButton-primary]", has_text="relevant")
        ).to_be_visible()
        wait_for_case(page)
        page.get_by_label("Comment", exact=True).fill(text)
        before = page.url
        opened.key("Control+Enter")
        page.wait_for_function("before => location.href !== before", arg=before, timeout=180_000)
        opened.settle()
    page = opened.open("my-judgments")
    assert unharmed(page)
    opened.open("worklist?find=" + "%3Cimg%20src%3Dx%20onerror%3Dwindow.pwned%3D1%3E&unit=%27%3B--")
    assert unharmed(page)
    opened.open("worklist")
    field = page.get_by_placeholder(re.compile("heparin"))
    if field.count():
        for text in CORPUS:
            field.first.fill(text)
            field.first.press("Enter")
            opened.settle()
            assert unharmed(page)
            assert "pwned" not in page.url, "what a person typed does not go into the address"
    other = page.context.new_page()
    other.goto(f"{real_url}/logout")
    other.get_by_role("button", name="Sign out", exact=True).click()
    expect(other.get_by_role("heading", name="Sign in")).to_be_visible()
    page.wait_for_url("**/login?next=**", timeout=180_000)
    assert "You (demonstration)" not in page.content()
    other.close()
    kept = {cookie["name"] for cookie in page.context.cookies()} - {"alertreview_form"}
    assert not any(name.startswith("alertreview_") for name in kept), kept


@pytest.mark.checklist("B5", "D4")
def test_hostile_names_are_text_on_every_page_and_on_the_sign_in_pages(visit: OpenVisit, real_url: str) -> None:
    opened = visit(real_url)
    page = enter(opened, "root", "admin")
    expect(page.get_by_role("tab", name="People")).to_be_visible()
    page.get_by_label("Name, as printed under signatures").fill(CORPUS[2])
    page.get_by_label("Login", exact=True).fill("eve")
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_text("has an account")).to_be_visible()
    assert unharmed(page)
    assert grave_findings(page) == []
    for name in ("Sessions", "Failed sign-ins", "Audit"):
        page.get_by_role("tab", name=name).click()
        opened.settle()
        assert unharmed(page)
        assert grave_findings(page) == [], name
    for path in ("password", "confirm?next=%2F", "logout"):
        page.goto(f"{real_url}/{path}")
        assert grave_findings(page) == [], path
    expect(page.get_by_text(CORPUS[0])).to_be_visible()
    page.get_by_role("button", name="Sign out", exact=True).click()
    for text in CORPUS:
        page.fill("#login", text)
        page.fill("#password", text)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_contain_text("Login or password is wrong")
        assert unharmed(page)
    for mode in ("dark", "light"):
        page.emulate_media(color_scheme=mode)
        for path in ("login", "login/code"):
            page.goto(f"{real_url}/{path}")
            assert grave_findings(page) == [], path
    page = enter(opened, "cora", "studies")
    for path in ("studies", "reports", "export", "runs", ""):
        opened.open(path)
        assert page.locator(".ar-who").inner_text().startswith(CORPUS[1])
        assert unharmed(page)
