"""From a key to words and to the figure, measured inside Chromium: only what is new on the screen counts."""

from dataclasses import dataclass

from playwright.sync_api import Page

LONGEST_MS = 20_000
QUIET_MS = 200
"""So long no figure changes any more before the last change counts as the end of drawing."""

# The words of the place: what the selected alert's card says on the worklist, the title on an alert's page.
ARM = """where => {
  const main = () => document.querySelector('[data-testid=stMainBlockContainer]');
  const words = () => where === 'worklist'
    ? [...main().querySelectorAll('.st-key-preview [data-testid=stMarkdownContainer]')].map(e => e.innerText).join('|')
    : main().querySelector('.st-key-alert-bar')
      ? [...main().querySelectorAll('h1')].map(e => e.innerText).filter(title => title !== 'Worklist').join('|') : '';
  const inFigure = node => node.closest?.('.js-plotly-plot') ?? node.parentElement?.closest('.js-plotly-plot');
  const watch = {words, before: words(), pressed: null, text: null, figure: null, n: 0};
  watch.observer = new MutationObserver(changes => {
    const drawn = changes.some(one => inFigure(one.target)
      || [...one.addedNodes].some(node => inFigure(node) || node.querySelector?.('.js-plotly-plot')));
    if (drawn) { watch.figure = performance.now(); watch.n += 1; }
  });
  watch.observer.observe(document.body, {subtree: true, childList: true, attributes: true, characterData: true});
  addEventListener('keydown', event => { watch.pressed ??= event.timeStamp; }, {capture: true, once: true});
  const look = () => {
    if (watch.text === null && watch.pressed !== null) {
      const now = words();
      if (now && now !== watch.before) watch.text = performance.now();
    }
    if (watch.text === null) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  window.alertreviewWatch = watch;
}"""

# A figure is this alert's when the score that is drawn at its arrow is the one that its description names: the
# description comes with the element, the drawing later.
END = """([figures, quiet, longest]) => new Promise(done => {
  const watch = window.alertreviewWatch;
  const own = plot => {
    const said = plot.closest('[data-testid=stElementContainer]')?.querySelector('[aria-label]')?.ariaLabel ?? '';
    const score = said.match(/this alert scores ([0-9.]*[0-9])/i)?.[1];
    return !score || [...plot.querySelectorAll('.annotation-text')].some(e => e.textContent.includes(score));
  };
  const look = () => {
    const plots = [...document.querySelectorAll('.js-plotly-plot')];
    const drawn = plots.length === figures
      && plots.every(plot => plot.querySelector('.main-svg .trace') && own(plot));
    const app = document.querySelector('[data-testid=stApp]');
    const whole = app?.dataset.testScriptState === 'notRunning'
      && !document.querySelector('[data-testid=stSkeleton], [data-stale=true]');
    const now = performance.now();
    const over = watch.text !== null && drawn && whole && now - Math.max(watch.figure ?? 0, watch.text) > quiet;
    if (!over && now - watch.pressed < longest) return requestAnimationFrame(look);
    watch.observer.disconnect();
    done({over, pressed: watch.pressed, text: watch.text, figure: watch.figure, changes: watch.n});
  };
  requestAnimationFrame(look);
})"""


@dataclass(frozen=True)
class Reaction:
    """Milliseconds from a key to new words and to the last stroke of the new figures."""

    text: float
    chart: float
    is_redrawn: bool
    """False when the next alert's figure is the same to the last stroke, so that nothing had to be drawn."""


def press(page: Page, key: str, where: str, n_figures: int) -> Reaction:
    """Press a key and measure.

    Parameters
    ----------
    page
        It has the focus of the keyboard and is at rest.
    key
        One that leads to another alert.
    where
        "worklist" or "alert": the page that the key leads to.
    n_figures
        Figures of that page.

    Raises
    ------
    TimeoutError
        If words or figures are not there after 20 seconds.
    """
    page.wait_for_timeout(500)
    page.evaluate(ARM, where)
    page.keyboard.press(key)
    found = page.evaluate(END, [n_figures, QUIET_MS, LONGEST_MS])
    if not found["over"]:
        raise TimeoutError(f"key {key}: {where} is not whole within {LONGEST_MS / 1000:.0f} s ({found})")
    text = found["text"] - found["pressed"]
    is_redrawn = found["changes"] > 0
    chart = found["figure"] - found["pressed"] if is_redrawn else text
    return Reaction(text, max(text, chart), is_redrawn)
