"""What holds on every page: nothing leaves the machine, nothing scrolls sideways, no script comes out of a name."""

import http.client
import urllib.request
from urllib.parse import urlparse

import pytest

from tests.browser.conftest import OpenVisit

pytestmark = pytest.mark.browser

PAGES = ("", "worklist", "alert?alert=1003", "review", "my-judgments", "studies", "reports?study=ward-2025", "runs")

SIDEWAYS = """() => {
  const main = document.querySelector('[data-testid=stMain]');
  return Math.max(main.scrollWidth - main.clientWidth, document.documentElement.scrollWidth - window.innerWidth);
}"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_no_page_scrolls_sideways_at_1280_and_none_asks_another_host(visit: OpenVisit, dark: bool) -> None:
    opened = visit(dark=dark)
    for path in PAGES:
        page = opened.open(path)
        assert page.evaluate(SIDEWAYS) <= 0, path
        assert page.get_by_text("Simulated data").first.is_visible(), path
        assert page.locator("[data-testid=stException]").count() == 0, path


def test_no_page_scrolls_sideways_on_a_phone(visit: OpenVisit) -> None:
    opened = visit(phone=True)
    for path in PAGES:
        page = opened.open(path)
        assert page.evaluate(SIDEWAYS) <= 0, path


def test_the_whole_case_and_the_answer_bar_fit_on_a_laptop(visit: OpenVisit) -> None:
    page = visit().open("review")
    chart = page.locator("[data-testid=stPlotlyChart]").first.bounding_box()
    bar = page.get_by_role("button", name="Unusual and relevant").bounding_box()
    assert chart is not None
    assert bar is not None
    assert chart["y"] + chart["height"] <= bar["y"]
    assert bar["y"] + bar["height"] <= 800


def test_title_time_line_and_answers_fit_on_a_phone(visit: OpenVisit) -> None:
    page = visit(phone=True).open("review")
    chart = page.locator("[data-testid=stPlotlyChart]").first.bounding_box()
    bar = page.get_by_role("button", name="Usual", exact=True).bounding_box()
    assert chart is not None
    assert bar is not None
    assert chart["y"] + chart["height"] <= bar["y"] + 4
    for name in ("Usual", "Unusual, not relevant", "Unusual and relevant", "Cannot judge", "Save"):
        box = page.get_by_role("button", name=name, exact=True).bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
        assert box["y"] + box["height"] <= 844


def test_the_rules_of_css_are_in_force(visit: OpenVisit) -> None:
    light = visit().open("review")
    padding = "e => [getComputedStyle(e).paddingLeft, getComputedStyle(e).paddingRight]"
    assert light.locator(".stMainBlockContainer").first.evaluate(padding) == ["18.75px", "18.75px"]
    bottom = light.locator("[data-testid=stBottomBlockContainer]")
    assert bottom.evaluate("e => getComputedStyle(e).padding") == "7.5px 18.75px 11.25px"
    light.keyboard.press("3")
    button = "[data-testid=stBaseButton-primary]:not([disabled])"
    light.wait_for_selector(button)
    assert light.locator(button).first.evaluate("e => getComputedStyle(e).color") == "rgb(255, 255, 255)"
    assert light.locator(button).first.evaluate("e => getComputedStyle(e).backgroundColor") == "rgb(11, 107, 107)"
    dark = visit(dark=True).open("")
    dark.wait_for_selector(button)
    assert dark.locator(button).first.evaluate("e => getComputedStyle(e).color") == "rgb(16, 24, 28)"
    assert dark.locator(button).first.evaluate("e => getComputedStyle(e).backgroundColor") == "rgb(92, 196, 190)"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_word_keeps_a_contrast_of_4_5(visit: OpenVisit, dark: bool) -> None:
    opened = visit(dark=dark)
    for path in PAGES:
        page = opened.open(path)
        poor = page.evaluate(CONTRAST)
        assert poor == [], f"{path}: {poor}"


CONTRAST = """() => {
  const parse = c => (c.match(/[\\d.]+/g) || []).map(Number);
  const lin = v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const lum = c => 0.2126 * lin(c[0]) + 0.7152 * lin(c[1]) + 0.0722 * lin(c[2]);
  const over = (top, under) => [0, 1, 2].map(i => top[i] * top[3] + under[i] * (1 - top[3]));
  const four = c => c.length === 3 ? [...c, 1] : c;
  const behind = element => {
    const layers = [];
    for (let e = element; e; e = e.parentElement) {
      const c = four(parse(getComputedStyle(e).backgroundColor));
      if (c.length === 4 && c[3] > 0) { layers.push(c); if (c[3] === 1) break; }
    }
    let colour = [255, 255, 255];
    for (const layer of layers.reverse()) colour = over(layer, colour);
    return colour;
  };
  const poor = [];
  const walker = document.createTreeWalker(document.querySelector('[data-testid=stApp]'), NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
    if (!text || element.closest('svg, canvas, script, style, [disabled], [aria-disabled=true]')) continue;
    // Grids are drawn on a canvas; the ends of a slider are printed at no opacity.
    if (element.closest('[data-testid=stDataFrame], [data-testid=stSlider]')) continue;
    const box = element.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue;
    let alpha = 1;
    for (let e = element; e; e = e.parentElement) alpha *= Number(getComputedStyle(e).opacity);
    if (alpha < 0.05) continue;
    // Keys inside a filled button stand in the key list as well.
    if (element.closest('[data-testid=stBaseButton-primary]') && /^([A-Z0-9]|Ctrl.*)$/.test(text)) continue;
    const under = behind(element), own = four(parse(getComputedStyle(element).color));
    const colour = over([...own.slice(0, 3), own[3] * alpha], under);
    const [a, b] = [lum(colour), lum(under)].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) poor.push(`${text.slice(0, 30)} ${ratio.toFixed(2)}`);
  }
  return poor;
}"""


def test_markup_in_names_is_text_everywhere(visit: OpenVisit) -> None:
    opened = visit(state="hostile")
    for path in (*PAGES, "alert?alert=1001", "reports?study=demo"):
        page = opened.open(path)
        page.wait_for_timeout(200)
        assert page.evaluate("window.pwned === undefined"), path
        assert page.locator("img[src=x]").count() == 0, path
        assert page.locator('a[href*="example.org"]').count() == 0, path
        assert page.evaluate(SIDEWAYS) <= 0, path


@pytest.mark.parametrize("state", ["empty", "no-alerts"])
def test_empty_sites_draw_every_page(visit: OpenVisit, state: str) -> None:
    opened = visit(state=state)
    for path in PAGES:
        page = opened.open(path)
        assert page.locator("[data-testid=stException]").count() == 0, path
        assert page.evaluate(SIDEWAYS) <= 0, path


def test_every_figure_and_table_has_words_for_screen_readers(visit: OpenVisit) -> None:
    opened = visit()
    for path in ("", "worklist", "alert?alert=1003", "review", "studies", "reports?study=ward-2025"):
        page = opened.open(path)
        for figure in page.locator("[data-testid=stPlotlyChart]").all():
            html = figure.evaluate("e => e.closest('[data-testid=stElementContainer]').outerHTML")
            assert "aria-label=" in html, path


def test_every_answer_carries_the_protecting_headers(double_url: str) -> None:
    for path in ("/", "/_stcore/health", "/review"):
        with urllib.request.urlopen(f"{double_url}{path}") as answer:
            headers = {name.lower(): value for name, value in answer.headers.items()}
        assert "default-src 'self'" in headers["content-security-policy"]
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize("path", ["/", "/_stcore/health", "/_stcore/host-config", "/static/index.html"])
def test_a_foreign_host_name_is_refused(double_url: str, path: str) -> None:
    address = urlparse(double_url)
    connection = http.client.HTTPConnection(str(address.hostname), address.port)
    connection.request("GET", path, headers={"Host": f"evil.example:{address.port}"})
    answer = connection.getresponse()
    assert answer.status == 403
    assert b"does not answer under this address" in answer.read()
    connection.close()
