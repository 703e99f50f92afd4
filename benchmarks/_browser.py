"""Debian's Chromium for measurements and pictures, and a dashboard of a site's own to look at with it."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Error, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = "ALERTREVIEW_CHROMIUM"
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser that ALERTREVIEW_CHROMIUM names (default /usr/bin/chromium), and end it."""
    path = os.environ.get(CHROMIUM, "/usr/bin/chromium")
    if not Path(path).is_file():
        raise SystemExit(f"There is no browser at {path}; install Debian's chromium or name another: {CHROMIUM}=...")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=list(ARGUMENTS))
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
    port = _free_port()
    log = home.parent / f"{home.name}-dashboard.log"
    environment = {**os.environ, "ALERTREVIEW_HOME": str(home), "ALERTREVIEW_DATABASE": ""}
    with log.open("wb") as output:
        command = [sys.executable, "-m", "dashboard", "--port", str(port)]
        server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=output)
    try:
        _wait_for(port, server, log)
        yield Served(f"http://127.0.0.1:{port}", port, server.pid)
    finally:
        server.terminate()
        try:
            server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    for _ in range(300):
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1):
                return
        except OSError:
            time.sleep(0.2)
    raise SystemExit(f"The dashboard did not start; see {log}")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(page: Page, expression: str, timeout: float = 30_000) -> None:
    """Wait from outside: waiting in the page makes code from text, which the Content-Security-Policy forbids."""
    deadline = time.monotonic() + timeout / 1000
    while not page.evaluate(expression):
        if time.monotonic() > deadline:
            raise Error(f"did not come true: {expression}")
        page.wait_for_timeout(50)


def settle(page: Page, timeout: float = 30_000) -> None:
    """Wait until the script has run and every figure is drawn."""
    page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=timeout)
    page.wait_for_selector("[data-testid=stMainBlockContainer] :is(h1, p):visible", timeout=timeout)
    until(page, "!document.querySelector('[data-testid=stSkeleton], [data-stale=true]')", timeout)
    drawn = "[...document.querySelectorAll('[data-testid=stPlotlyChart]')].every(c => c.querySelector('.main-svg'))"
    until(page, drawn, timeout)
    page.wait_for_timeout(500)
