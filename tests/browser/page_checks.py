"""What holds on every page as it is drawn: no error, nothing sideways, words that can be read, axe-core content."""

from dataclasses import dataclass
from functools import cache
from importlib import resources

from playwright.sync_api import Page

from tests.browser.visits import AT_REST

GRAVE = frozenset({"serious", "critical"})
COLOURS = ("color-contrast", "link-in-text-block")
"""Rules of axe-core about what a dark page has of its own."""


@dataclass(frozen=True)
class Finding:
    """One element that breaks one rule of axe-core."""

    rule: str
    impact: str
    target: str
    html: str

    def __str__(self) -> str:
        return f"{self.rule} ({self.impact}) at {self.target}: {self.html}"


# Rule and a selector -> why nobody here can mend it. Every other grave finding fails the test.
OF_STREAMLIT: dict[tuple[str, str], str] = {}


@cache
def axe_core() -> str:
    """axe-core's script, as the package that carries it has it."""
    return resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")


def grave_findings(page: Page, only: tuple[str, ...] = ()) -> list[Finding]:
    """What axe-core finds serious or critical on the page as it is drawn now, but for what is Streamlit's own.

    By all of its rules, or by some.
    """
    # Handed over by the debugger: the Content-Security-Policy refuses a script tag, as it should.
    if not page.evaluate("'axe' in window"):
        page.evaluate(f"{axe_core()};undefined")
    known = [list(pair) for pair in OF_STREAMLIT]
    return [Finding(**one) for one in page.evaluate(AXE, [known, only]) if one["impact"] in GRAVE]


def faults(page: Page, rules: tuple[str, ...] = ()) -> list[str]:
    """Return everything that is wrong with the page, in words, and stays wrong: what is still being drawn is not.

    Of axe-core's rules all are asked, or those that are named.
    """
    for pause in (300, 1_000, 4_000):
        page.wait_for_selector(AT_REST, timeout=180_000)
        page.wait_for_function("!document.querySelector('[data-stale=true]')", timeout=180_000)
        page.wait_for_timeout(pause)
        if not (found := faults_now(page, rules)):
            break
    return found


def faults_now(page: Page, rules: tuple[str, ...] = ()) -> list[str]:
    """Return everything that is wrong with the page at this moment, in words."""
    found = [f"poor contrast: {words}" for words in page.evaluate(CONTRAST)]
    found += [f"an error is shown: {one}" for one in page.locator("[data-testid=stException]").all_inner_texts()]
    if (excess := page.evaluate(SIDEWAYS)) > 0:
        found.append(f"scrolls sideways by {excess} px")
    found += [f"cut off on a button: {words}" for words in page.evaluate(CUT)]
    found += [f"a table with columns out of sight: {one}" for one in page.evaluate(OUT_OF_SIGHT)]
    found += [f"a figure or table without words: {one}" for one in page.evaluate(WORDLESS)]
    found += [f"a figure drawn twice, as it is no whole number of pixels wide: {one}" for one in page.evaluate(BROKEN)]
    return found + [str(finding) for finding in grave_findings(page, rules)]


AXE = """([known, only]) => axe.run(document, {
  resultTypes: ['violations'], elementRef: true, ...(only.length ? {runOnly: only} : {})
}).then(found => found.violations.flatMap(rule => rule.nodes
    .filter(node => !known.some(([id, selector]) => id === rule.id && node.element.closest(selector)))
    .map(node => ({rule: rule.id, impact: rule.impact, target: node.target.flat(3).join(' ').slice(0, 200),
      html: node.html.slice(0, 300)}))))"""

CUT = """() => [...document.querySelectorAll('button .stMarkdownEllipsis')]
  .filter(words => words.scrollWidth > words.clientWidth + 1).map(words => words.innerText)"""

# A table may be moved sideways on the smallest phones (WCAG 1.4.10 exempts tables), not on the usual ones.
OUT_OF_SIGHT = """() => [...document.querySelectorAll('[data-testid=stDataFrame]')].filter(grid => {
  const rows = grid.querySelector('.dvn-scroller');
  return innerWidth >= 360 && rows && rows.scrollWidth > rows.clientWidth + 1;
}).map(grid => grid.querySelector('[aria-label]')?.ariaLabel ?? grid.outerHTML.slice(0, 200))"""

# Plotly measures its place in thousandths of a pixel and Streamlit exactly; where they differ, it draws again.
BROKEN = """() => [...document.querySelectorAll('[data-testid=stPlotlyChart]')]
  .map(figure => figure.getBoundingClientRect().width).filter(width => !Number.isInteger(width))"""

WORDLESS = """() => [...document.querySelectorAll('[data-testid=stPlotlyChart], [data-testid=stDataFrame]')]
  .map(element => element.closest('[data-testid=stElementContainer]') ?? element)
  .filter(element => !element.querySelector('[aria-label]') && !element.hasAttribute('aria-label'))
  .map(element => element.className.match(/st-key-\\S+/)?.[0] ?? element.outerHTML.slice(0, 200))"""

SIDEWAYS = """() => {
  const main = document.querySelector('[data-testid=stMain]');
  return Math.max(main.scrollWidth - main.clientWidth, document.documentElement.scrollWidth - window.innerWidth);
}"""

FITS = f"({SIDEWAYS})() <= 0"
"""Holds once nothing on the page scrolls sideways: a figure takes its width a moment after it is drawn."""

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
