"""Debian's Chromium for measurements and pictures, and a dashboard of a site's own to look at with it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

from tests.browser.visits import CHROMIUM, start_chromium, until
from tests.support.served import dashboard

DRAWN_MS = 30_000


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser that ALERTREVIEW_CHROMIUM names (default /usr/bin/chromium), and end it."""
    if not Path(CHROMIUM).is_file():
        raise SystemExit(f"There is no browser at {CHROMIUM}; install Debian's, or name it: ALERTREVIEW_CHROMIUM=...")
    with sync_playwright() as started:
        browser = start_chromium(started)
        try:
            yield browser
        finally:
            browser.close()


@dataclass(frozen=True)
class Served:
    """A running dashboard."""

    url: str
    port: int
    pid: int


@contextmanager
def serving(home: Path) -> Iterator[Served]:
    """Start the real dashboard of a site on loopback, wait until it answers, and stop it at the end."""
    with dashboard(home, home.parent / f"{home.name}-dashboard.log") as (port, server):
        yield Served(f"http://127.0.0.1:{port}", port, server.pid)


def settle(page: Page, timeout: float = DRAWN_MS) -> None:
    """Wait until the script has run and every figure is drawn."""
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=timeout)
    page.wait_for_selector("[data-testid=stMainBlockContainer] :is(h1, p):visible", timeout=timeout)
    until(page, "!document.querySelector('[data-testid=stSkeleton], [data-stale=true]')", timeout=timeout)
    drawn = "[...document.querySelectorAll('[data-testid=stPlotlyChart]')].every(c => c.querySelector('.main-svg'))"
    until(page, drawn, timeout=timeout)
    page.wait_for_timeout(500)
