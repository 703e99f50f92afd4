"""Layout shift of every page: each is loaded in a new window as a link from outside does."""

from collections.abc import Iterator

from playwright.sync_api import Browser

from benchmarks._browser import settle
from tests.browser.layout_shift import Shift, shifts_so_far, watch_shifts
from tests.browser.visits import PHONE_AGENT

WINDOWS = {1280: (800, None), 390: (844, PHONE_AGENT)}
"""Width of the window -> its height and the browser's name for itself; None: a desktop's."""


def shifts_of_pages(
    browser: Browser, url: str, paths: dict[str, str], width: int, timeout: float
) -> Iterator[tuple[str, list[Shift]]]:
    """Load each page, and give its name with its shifts until it is at rest.

    Parameters
    ----------
    browser, url
    paths : dict of str to str
        Name -> page and parameters.
    width : int
        One of `WINDOWS`.
    timeout : float
        Milliseconds to wait for a page.
    """
    height, agent = WINDOWS[width]
    for name, path in paths.items():
        context = browser.new_context(viewport={"width": width, "height": height}, user_agent=agent)
        page = context.new_page()
        watch_shifts(page)
        page.goto(f"{url}/{path}", timeout=timeout)
        settle(page, timeout)
        page.wait_for_timeout(1000)
        yield name, shifts_so_far(page)
        context.close()
