"""A browser window at a dashboard: opening it, and watching what passes between the two."""

import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urlparse

from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Page,
    Playwright,
    Request,
    Response,
    TimeoutError,  # noqa: A004 - one of the browser's errors, as its own waiting gives
    WebSocket,
    expect,
)
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

CHROMIUM = os.environ.get("ALERTREVIEW_CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    # No name but this machine's resolves: a request to another host fails, and is recorded below.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    # All pages of a window share a process, in which the dashboard's program stays compiled: see `_new_window`.
    "--process-per-site",
    "--js-flags=--no-flush-bytecode",
]
expect.set_options(timeout=180_000)
DESKTOP_AGENT = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Safari/537.36"
PHONE_AGENT = "Mozilla/5.0 (Linux; Android 14) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0 Mobile Safari/537.36"

AT_REST = "[data-testid=stApp][data-test-script-state=notRunning]"
CASE_IS_DRAWN = """() => {
    const shown = new URL(location.href).searchParams.get("case");
    const bars = [...document.querySelectorAll("[class*='st-key-rv_answer_']")];
    return !document.querySelector("[data-stale=true]")
        && (bars.length > 0 || !shown)
        && bars.every(bar => !shown || [...bar.classList].some(name => name.endsWith("_" + shown)));
}"""

# What a click on a link inside the dashboard does: the program stays, only the page is another.
GO = """path => { history.pushState({}, "", "/" + path); dispatchEvent(new PopStateEvent("popstate", {state: {}})); }"""
SETTLED = f"""() => document.querySelector("{AT_REST}") && !document.querySelector("[data-testid=stSkeleton]")
    && [...document.querySelectorAll("[data-testid=stMainBlockContainer] :is(h1, p)")]
        .some(one => one.checkVisibility({{visibilityProperty: true}}))
    && [...document.querySelectorAll("[data-testid=stPlotlyChart]")].every(one => one.querySelector(".main-svg"))"""
# Streamlit binds a button's key anew after each drawing; until then the key is the former button's, or nobody's.
DRAWN = "() => new Promise(done => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 50))"


@dataclass
class Visit:
    """One browser window at a dashboard, and everything that passed between the two."""

    page: Page
    url: str
    foreign: list[str] = field(default_factory=list)
    frames: list[bytes] = field(default_factory=list)
    console: list[str] = field(default_factory=list)

    def open(self, path: str = "") -> Page:
        """Go to a page and wait until it is fully drawn."""
        n_before = len(self.frames)
        self.page.goto(f"{self.url}/{path}")
        self._settle_after(n_before)
        return self.page

    def go(self, path: str = "") -> Page:
        """Go to a page as a link of the dashboard does, without loading the program again, and wait until it is drawn.

        The session goes on, with everything it holds: a test of arriving from outside opens the page instead.
        """
        if not self.page.url.startswith(self.url) or not self.page.locator("[data-testid=stApp]").count():
            return self.open(path)
        self.run(lambda: self.page.evaluate(GO, path))
        return self.page

    def run(self, act: Callable[[], object]) -> None:
        """Do what makes the script run, and wait until a run has ended since and is drawn."""
        self.page.wait_for_selector(AT_REST, timeout=180_000)
        n_before = len(self.frames)
        act()
        self._settle_after(n_before)

    def _settle_after(self, n_before: int) -> None:
        """Wait until a run has ended since so many frames had come, and is drawn."""
        deadline = time.monotonic() + 180
        # A page is at rest before its first run too, and a quick run begins and ends between two looks at its state.
        while not any(_is_end_of_run(frame) for frame in self.frames[n_before:]):
            assert time.monotonic() < deadline, f"nothing ran at {self.page.url}"
            self.page.wait_for_timeout(20)
        self.page.evaluate(DRAWN)
        self.settle()

    def settle(self) -> None:
        """Wait until the script has run and every figure is drawn, and nothing begins again with the next frames."""
        for _ in range(2):
            self.page.wait_for_function(SETTLED, timeout=180_000)
            self.page.evaluate(DRAWN)

    def key(self, keys: str, *, at_once: bool = False) -> None:
        """Press a key as a reader does, once the page is drawn and its keys are bound; or in haste, without waiting."""
        if not at_once:
            self.page.wait_for_selector(AT_REST, timeout=180_000)
            self.page.wait_for_function("!document.querySelector('[data-stale=true]')", timeout=180_000)
            self.page.evaluate(DRAWN)
        self.page.keyboard.press(keys)

    def received(self) -> str:
        """Everything that the server sent over the websocket, as text."""
        return b"\n".join(self.frames).decode("utf-8", errors="ignore")


OpenVisit = Callable[..., Visit]


def _is_end_of_run(frame: bytes) -> bool:
    """Whether the server says in this frame that the page is whole."""
    if len(frame) > 200:
        return False
    message = ForwardMsg.FromString(frame)
    is_end = message.WhichOneof("type") == "script_finished"
    return is_end and message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY


def wait_for_case(page: Page) -> None:
    """Wait until the answers on the screen are the shown case's."""
    page.wait_for_selector(AT_REST, timeout=180_000)
    page.wait_for_function(CASE_IS_DRAWN, timeout=180_000)


def start_chromium(playwright: Playwright) -> Browser:
    """Start Chromium, which reaches this machine only."""
    return playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)


def open_visit(
    chromium: Browser,
    windows: list[BrowserContext],
    url: str,
    *,
    name: str = "",
    state: str = "full",
    dark: bool = False,
    phone: bool = False,
    width: int | None = None,
) -> Visit:
    """Open a window, one of those that nobody uses now if there is one, and watch it."""
    agent = PHONE_AGENT if phone else DESKTOP_AGENT
    window = windows.pop() if windows else _new_window(chromium)
    page = window.new_page()
    page.set_viewport_size({"width": width or (390 if phone else 1280), "height": 844 if phone else 800})
    page.emulate_media(color_scheme="dark" if dark else "light")
    window.new_cdp_session(page).send(
        "Emulation.setUserAgentOverride",
        {"userAgent": f"{agent} Double/{name or uuid.uuid4().hex} State/{state}"},
    )
    page.wait_for_function = partial(until, page)  # type: ignore[method-assign]
    opened = Visit(page, url)
    _watch(opened)
    return opened


def let_go(opened: Visit, windows: list[BrowserContext]) -> None:
    """Close a window's page and keep the window, with nothing in it but the program, which every page loads."""
    window = opened.page.context
    opened.page.close()
    window.clear_cookies()
    windows.append(window)


def until(page: Page, expression: str, *, arg: object = None, timeout: float = 180_000) -> None:
    """Wait until an expression holds, asking from outside: the browser's own waiting makes code from text in the page,
    which the dashboard's Content-Security-Policy forbids, as it should."""
    deadline = time.monotonic() + timeout / 1000
    while not page.evaluate(expression, arg):
        if time.monotonic() > deadline:
            raise TimeoutError(f"did not come true at {page.url}: {expression}")
        page.wait_for_timeout(50)


def _new_window(chromium: Browser) -> BrowserContext:
    window = chromium.new_context(service_workers="block")
    window.set_default_timeout(180_000)
    # An empty page of this machine holds the process of its site, so that the next page is opened in half the time.
    holding = window.new_page()
    holding.route("**", lambda route: route.fulfill(body=""))
    holding.goto("http://127.0.0.1/")
    return window


def _watch(opened: Visit) -> None:
    """Record every request to another host (the browser cannot reach one); keep frames, errors and what is missing.

    Without routing through here, which would switch off the browser's cache and make every page slow.
    """
    own = urlparse(opened.url).netloc

    def check(request: Request) -> None:
        address = urlparse(request.url)
        if address.scheme in {"http", "https"} and address.netloc != own:
            opened.foreign.append(request.url)

    def listen(websocket: WebSocket) -> None:
        if urlparse(websocket.url).netloc != own:
            opened.foreign.append(websocket.url)
        websocket.on(
            "framereceived", lambda data: opened.frames.append(data if isinstance(data, bytes) else data.encode())
        )

    def failed(error: Error) -> None:
        opened.console.append(str(error))

    def printed(message: object) -> None:
        text = f"{message.type}: {message.text}"  # type: ignore[attr-defined]
        if "Content Security Policy" in text or "Refused to" in text:
            opened.console.append(text)

    def answered(response: Response) -> None:
        if response.status == 404:
            opened.console.append(f"not there: {response.url}")

    opened.page.on("request", check)
    opened.page.on("response", answered)
    opened.page.on("websocket", listen)
    opened.page.on("pageerror", failed)
    opened.page.on("console", printed)
