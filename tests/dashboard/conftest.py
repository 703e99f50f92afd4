"""Pages of the dashboard over the double, without a browser; sites behind the gate; a small demonstration."""

import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import plotly.graph_objects as go
import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.scriptrunner.script_cache import ScriptCache
from streamlit.testing.v1 import AppTest, app_test, local_script_runner
from streamlit.util import calc_hash

from dashboard import context
from dashboard.charts.base import Json
from dashboard.charts.raw_figure import RawFigure
from dashboard.components import cards
from tests.dashboard.doubles.application import FakeApplication
from tests.dashboard.guarded import browser, clock, desk, site_with_ada
from tests.support.demo_site import application, built_demo, demo_home, own_home
from tests.support.reports_once import reports_once

__all__ = [
    "application",
    "browser",
    "built_demo",
    "clock",
    "demo_home",
    "desk",
    "own_home",
    "reports_once",
    "site_with_ada",
]

ROOT = Path(__file__).resolve().parents[2]

OpenPage = Callable[..., AppTest]


@pytest.fixture(scope="session", autouse=True)
def components_are_looked_for_once() -> Iterator[None]:
    """Search what is installed for components once: for every page it takes longer than the page."""
    search = functools.cache(manifest_scanner.scan_component_manifests)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", search)
        yield


@pytest.fixture(scope="session", autouse=True)
def pages_are_compiled_once() -> Iterator[None]:
    """Share the compiled pages, as a server does: each run of a page compiled it anew, a quarter of the time."""
    shared = ScriptCache()
    with pytest.MonkeyPatch.context() as patch:
        for module in (app_test, local_script_runner):
            patch.setattr(module, "ScriptCache", lambda: shared)
        yield


@pytest.fixture(scope="session")
def figures_seen() -> set[str]:
    """Figures that Plotly has accepted."""
    return set()


@pytest.fixture(autouse=True)
def valid_figures(monkeypatch: pytest.MonkeyPatch, figures_seen: set[str]) -> None:
    """Hold every figure that a page draws to Plotly's own rules, once, which pages leave out to save time."""

    class Checked(RawFigure):
        def __init__(self, figure: Json) -> None:
            if (text := json.dumps(figure)) not in figures_seen:
                go.Figure(figure)
                figures_seen.add(text)
            super().__init__(figure)

    monkeypatch.setattr(cards, "RawFigure", Checked)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the pause that lets a browser show words before figures; here is no browser."""
    monkeypatch.setattr(cards, "_PAUSE_SECONDS", 0.0)


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> OpenPage:
    """Open a page by its file name over a double, with parameters of its address."""

    def opening(name: str, double: FakeApplication | Exception, **params: str) -> AppTest:
        def site(_home: str, _database: str) -> FakeApplication:
            if isinstance(double, Exception):
                raise double
            return double

        monkeypatch.setattr(context, "opened_site", site)
        page = AppTest.from_file(str(ROOT / "dashboard" / "app.py"), default_timeout=120)
        # Before the first run no page is registered, so the address is given as the browser gives it.
        page._page_hash = calc_hash(name.replace("_", "-"))
        for key, value in params.items():
            page.query_params[key] = value
        page.run()
        return page

    return opening


def words(page: AppTest) -> str:
    """All text of a page, one piece a line, without Markdown's escapes."""
    pieces = [*page.markdown, *page.error, *page.info, *page.caption]
    texts = [piece.value for piece in pieces] + [f"{m.label} {m.value}" for m in page.metric]
    return "\n".join(texts).replace("\\", "").replace("\u2060", "")


def address(page: AppTest) -> dict[str, str]:
    """Parameters of the page's address."""
    return {name: value[0] if isinstance(value, list) else value for name, value in page.query_params.items()}


def nothing_failed(page: AppTest) -> bool:
    """No exception was drawn, and no error box either."""
    return not page.exception and not page.error
