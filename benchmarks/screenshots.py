"""Pictures of every page: light and dark, full and empty, at 1280 and 390 pixels; with --docs those of the documents.

Builds the demonstration (kept in the folder of the pictures and used again), starts the real dashboard on it and on a
site with accounts and a new one, and looks with Chromium (ALERTREVIEW_CHROMIUM names another than /usr/bin/chromium).
"""

import argparse
import io
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Error, Page

from alertreview.application import open_application
from benchmarks._browser import chromium, serving, settle
from benchmarks._picture_sites import PASSWORD, build_sites
from benchmarks._pictures import DOCUMENTED, Picture, pictures
from benchmarks._questions import QUESTIONS, clip, pictured_alert
from tests.browser.visits import PHONE_AGENT, wait_for_case
from tests.conftest import ROOT

MODES = ("light", "dark")
WIDTHS = {"1280": (1280, 800), "390": (390, 844)}
N_COLOURS = 128
"""Colours of a picture in the documents; enough for its edges to stay smooth, at a third of the bytes."""
FRAME_MS = [3000, 1500, 2500]
"""How long the animation shows the case, the chosen answer and the next case."""


def main() -> int:
    """Take the pictures; returns 1 when a page could not be drawn."""
    options = _options()
    options.out.mkdir(parents=True, exist_ok=True)
    homes = build_sites(options.out / "sites", again=options.again)
    chosen = [one for one in pictures(homes) if not options.only or any(one.name.startswith(o) for o in options.only)]
    modes, widths, folder = options.mode or MODES, options.width or tuple(WIDTHS), options.out
    if options.docs:
        chosen = [one for one in chosen if one.name in DOCUMENTED]
        modes, widths, folder = ("light",), ("1280",), ROOT / "docs" / "pictures"
    failed = []
    with ExitStack() as stack:
        browser = stack.enter_context(chromium())
        urls = {site: stack.enter_context(serving(homes[site])).url for site in dict.fromkeys(p.site for p in chosen)}
        for mode in modes:
            for width in widths:
                for _, group in groupby(chosen, key=lambda one: (one.site, one.login)):
                    failed += _window(browser, list(group), urls, mode, width, folder, docs=options.docs)
        if options.docs and not options.only:
            ask(browser, urls["demonstration"], homes["demonstration"], folder)
            judge(browser, urls["demonstration"], folder / "judgment.gif")
    print(f"{len(chosen) * len(modes) * len(widths) - len(failed)} pictures in {folder}")
    for one in failed:
        print(f"not drawn: {one}", file=sys.stderr)
    return int(bool(failed))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev screenshots", description=__doc__)
    folder = Path(tempfile.gettempdir()) / "alertreview-screenshots"
    parser.add_argument("--out", type=Path, default=folder, help=f"folder for pictures and sites (default: {folder})")
    parser.add_argument("--docs", action="store_true", help="take those of docs/pictures instead, in few bytes")
    parser.add_argument("--only", action="append", metavar="NAME", help="only pictures whose name begins so")
    parser.add_argument("--mode", choices=MODES, action="append", help="only this mode")
    parser.add_argument("--width", choices=tuple(WIDTHS), action="append", help="only this width")
    parser.add_argument("--again", action="store_true", help="build the demonstration again, as the program now does")
    return parser.parse_args()


def _window(
    browser: Browser,
    wanted: Sequence[Picture],
    urls: dict[str, str],
    mode: str,
    width: str,
    folder: Path,
    *,
    docs: bool,
) -> list[str]:
    """Take the pictures of one person in one mode and width; gives those that failed, and why."""
    x, y = WIDTHS[width]
    context = browser.new_context(
        viewport={"width": x, "height": y},
        color_scheme="dark" if mode == "dark" else "light",
        user_agent=PHONE_AGENT if width == "390" else None,
    )
    page, url, failed = context.new_page(), urls[wanted[0].site], []
    if wanted[0].login:
        _sign_in(page, url, wanted[0].login)
    for one in wanted:
        try:
            page.set_viewport_size({"width": x, "height": y})
            page.goto(f"{url}/{one.path}")
            if page.locator("main > .logo").count() == 0:
                settle(page, 180_000)  # a report is computed first
            if one.act:
                one.act(page)
            if docs:
                _save_small(page, folder / f"{one.name}-{mode}.png")
            else:
                _grow(page, x, y)
                page.screenshot(path=folder / f"{one.name}_{mode}_{width}.png")
        except Error as error:
            failed.append(f"{one.name} {mode} {width}: {str(error).splitlines()[0]}")
    context.close()
    return failed


def _sign_in(page: Page, url: str, login: str) -> None:
    page.goto(f"{url}/login")
    page.fill("#login", login)
    page.fill("#password", PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_selector("[data-testid=stApp]", timeout=60_000)


def _grow(page: Page, width: int, height: int) -> None:
    """Make the window as tall as the page, which scrolls inside its own box."""
    tall = page.evaluate("document.querySelector('[data-testid=stMain]')?.scrollHeight ?? document.body.scrollHeight")
    bottom = page.evaluate("document.querySelector('[data-testid=stBottom]')?.offsetHeight ?? 0")
    if tall + bottom > height:
        page.set_viewport_size({"width": width, "height": int(tall + bottom) + 20})
        page.wait_for_timeout(600)


def ask(browser: Browser, url: str, home: Path, folder: Path) -> None:
    """Take a picture of each answer that a case gives at a glance."""
    with open_application(home) as site:
        alert = pictured_alert(site)
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, color_scheme="light")
    page = context.new_page()
    page.goto(f"{url}/alert?alert={alert}")
    settle(page)
    for question in QUESTIONS:
        _save_small(page, folder / f"case-{question.name}.png", clip(page, question))
    context.close()


def judge(browser: Browser, url: str, path: Path) -> None:
    """Save the animation of a judgment: a blinded case, the answer that a key chooses, the next case."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, color_scheme="light")
    page = context.new_page()
    page.goto(f"{url}/review")
    frames = [_drawn(page)]
    page.keyboard.press("3")
    page.locator("[data-testid=stBottom] [data-testid=stBaseButton-primary]", has_text="relevant").wait_for()
    frames.append(_drawn(page))
    before = page.url
    page.keyboard.press("s")
    page.wait_for_function("before => location.href !== before", arg=before)
    frames.append(_drawn(page))
    context.close()
    first, *rest = [_in_few_colours(Image.open(io.BytesIO(frame))) for frame in frames]
    first.save(path, save_all=True, append_images=rest, duration=FRAME_MS, loop=0, optimize=True)


def _drawn(page: Page) -> bytes:
    wait_for_case(page)
    settle(page)
    return page.screenshot()


def _save_small(page: Page, path: Path, part: dict[str, float] | None = None) -> None:
    """Save the first screen in few colours."""
    _in_few_colours(Image.open(io.BytesIO(page.screenshot(clip=part)))).save(path, optimize=True)  # type: ignore[arg-type]


def _in_few_colours(picture: Image.Image) -> Image.Image:
    """Return a picture in its most frequent colours, which are those of the pages, not blends of them."""
    whole = picture.convert("RGB")
    counted = sorted(whole.getcolors(whole.width * whole.height) or [], reverse=True)
    palette = Image.new("P", (1, 1))
    palette.putpalette([part for _, colour in counted[:N_COLOURS] for part in colour])  # type: ignore[attr-defined]
    return whole.quantize(palette=palette, dither=Image.Dither.NONE)


if __name__ == "__main__":
    sys.exit(main())
