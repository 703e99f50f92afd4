"""Chromium, a dashboard over doubles, a dashboard over a real demonstration site, and watching what leaves the page."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Playwright, sync_playwright

from tests.browser.visits import CHROMIUM, OpenVisit, Visit, let_go, open_visit, start_chromium
from tests.support import installed
from tests.support.built_once import shared_folder
from tests.support.pieces import require
from tests.support.served import running


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    """Playwright without any browser of its own."""
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def chromium(playwright: Playwright) -> Iterator[Browser]:
    """Debian's Chromium."""
    require(Path(CHROMIUM).is_file(), f"Chromium ({CHROMIUM})", "apt install chromium, or set ALERTREVIEW_CHROMIUM")
    browser = start_chromium(playwright)
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def double_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a dashboard over doubles; each visit names its own."""
    with running(["tests.browser.serve_double"], tmp_path_factory.mktemp("double") / "server.log", {}) as (port, _):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="session")
def demo_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Home of a real demonstration site, made once by the program as it is installed from its wheel."""
    home = tmp_path_factory.mktemp("demo") / "home"
    shutil.copytree(installed.demonstration(shared_folder(tmp_path_factory)), home)
    return home


@pytest.fixture(scope="session")
def demo_url(chromium: Browser, demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the dashboard on the real demonstration site, started as `python -m dashboard`."""
    del chromium  # asked for first: without it the site would be built for nothing
    environment = {"ALERTREVIEW_HOME": str(demo_home), "ALERTREVIEW_DATABASE": ""}
    with running(["dashboard"], tmp_path_factory.mktemp("demo-server") / "server.log", environment) as (port, _):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="session")
def windows(chromium: Browser) -> list[BrowserContext]:
    """Browser windows that nobody uses now: one that has shown the dashboard before shows it in half the time."""
    del chromium
    return []


@pytest.fixture
def visit(chromium: Browser, windows: list[BrowserContext], request: pytest.FixtureRequest) -> Iterator[OpenVisit]:
    """Open browser windows; at the end nothing may have left this machine and no script may have failed."""
    visits: list[Visit] = []

    def opening(
        url: str | None = None,
        *,
        name: str = "",
        state: str = "full",
        dark: bool = False,
        phone: bool = False,
        width: int | None = None,
    ) -> Visit:
        address = url or request.getfixturevalue("double_url")
        opened = open_visit(chromium, windows, address, name=name, state=state, dark=dark, phone=phone, width=width)
        visits.append(opened)
        return opened

    yield opening
    for opened in visits:
        let_go(opened, windows)
        assert opened.foreign == [], f"requests to other hosts: {opened.foreign}"
        assert opened.console == [], f"errors in the browser: {opened.console}"
