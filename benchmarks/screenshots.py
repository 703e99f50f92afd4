"""Take pictures of every page, light and dark, at 1280 and 390 pixels, of a dashboard that is already running.

python benchmarks/screenshots.py --url http://127.0.0.1:8501 --out pictures [--only review] [--full]
"""

import argparse
import sys
import time
from pathlib import Path

from playwright.sync_api import Browser, Error, Page, sync_playwright

PAGES = ("home", "worklist", "alert", "review", "my-judgments", "studies", "reports", "runs")
WIDTHS = {"1280": (1280, 800), "390": (390, 844)}
PHONE_AGENT = "Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Mobile Safari/537.36"
CHROMIUM_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
)


def main() -> int:
    """Take the pictures; returns the number of pages that could not be drawn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", default="http://127.0.0.1:8501", help="Address of the running dashboard.")
    parser.add_argument("--out", type=Path, required=True, help="Folder for the pictures.")
    parser.add_argument("--only", choices=PAGES, action="append", help="Only these pages.")
    parser.add_argument("--mode", choices=("light", "dark"), action="append", help="Only these modes.")
    parser.add_argument("--width", choices=tuple(WIDTHS), action="append", help="Only these widths.")
    parser.add_argument("--query", default="", help="Parameters added to every address, like study=ward-2025.")
    parser.add_argument("--full", action="store_true", help="The whole page, not just the first screen.")
    parser.add_argument("--chromium", default="/usr/bin/chromium", help="Path of the browser.")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    failed = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=options.chromium, args=list(CHROMIUM_ARGUMENTS))
        for mode in options.mode or ("light", "dark"):
            for width in options.width or WIDTHS:
                failed += _pictures(browser, options, mode, width)
        browser.close()
    return failed


def _pictures(browser: Browser, options: argparse.Namespace, mode: str, width: str) -> int:
    """Take the pictures of one mode and width; one session for all pages."""
    x, y = WIDTHS[width]
    phone = width == "390"
    context = browser.new_context(
        viewport={"width": x, "height": y},
        color_scheme=mode,
        device_scale_factor=2 if phone else 1,
        user_agent=PHONE_AGENT if phone else None,
    )
    page = context.new_page()
    failed = 0
    for name in options.only or PAGES:
        address = "" if name == "home" else name
        query = _first_alert(page, options) if name == "alert" else options.query
        page.goto(f"{options.url}/{address}?{query}")
        failed += not settled(page)
        if options.full:
            _grow(page, x)
        page.screenshot(path=options.out / f"{name}_{mode}_{width}.png")
        page.set_viewport_size({"width": x, "height": y})
    context.close()
    return failed


def _first_alert(page: Page, options: argparse.Namespace) -> str:
    """Find an alert the way a person does: through the link on the first page."""
    page.goto(options.url)
    settled(page)
    link = page.locator('a[href*="alert?alert="]').first
    return str(link.get_attribute("href")).split("?", 1)[1] if link.count() else "alert=1"


def _grow(page: Page, width: int) -> None:
    """Make the window as tall as the page, which scrolls inside its own box."""
    height = page.evaluate("document.querySelector('[data-testid=stMain]')?.scrollHeight ?? document.body.scrollHeight")
    page.set_viewport_size({"width": width, "height": int(height) + 20})
    page.wait_for_timeout(800)


def until(page: Page, expression: str, timeout: float) -> None:
    """Wait from outside: waiting in the page makes code from text, which the Content-Security-Policy forbids."""
    deadline = time.monotonic() + timeout / 1000
    while not page.evaluate(expression):
        if time.monotonic() > deadline:
            raise Error(f"did not come true: {expression}")
        page.wait_for_timeout(50)


def settled(page: Page, timeout: float = 30_000) -> bool:
    """Wait until the script has run and every figure is drawn; False when that does not happen."""
    try:
        page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=timeout)
        page.wait_for_selector("[data-testid=stMainBlockContainer] :is(h1, p)", timeout=timeout)
        until(page, "!document.querySelector('[data-testid=stSkeleton]')", timeout)
        until(
            page,
            "[...document.querySelectorAll('[data-testid=stPlotlyChart]')].every(c => c.querySelector('.main-svg'))",
            timeout,
        )
    except Error as error:
        print(f"{page.url}: {error}", file=sys.stderr)
        return False
    page.wait_for_timeout(700)
    return True


if __name__ == "__main__":
    sys.exit(main())
