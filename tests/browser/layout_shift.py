"""Layout shift: how far what is on the screen moves by itself, as the browser counts it."""

from dataclasses import dataclass

from playwright.sync_api import Page

GOOD = 0.1
"""What https://web.dev/articles/cls calls good."""
WATCH = """(() => {
  const seen = [];
  window.alertreviewShifts = seen;
  new PerformanceObserver(list => seen.push(...list.getEntries().map(one => ({
    at: one.startTime, by: one.hadRecentInput ? 0 : one.value,
    what: one.sources.map(source => {
      const node = source.node?.nodeType === 1 ? source.node : source.node?.parentElement;
      const box = node?.closest('[class*=st-key-]') ?? node;
      const name = box?.className?.match?.(/st-key-\\S+/)?.[0] ?? node?.tagName ?? 'gone';
      const area = source.previousRect.width * source.previousRect.height;
      return [area, `${name} ${source.previousRect.top.toFixed()} -> ${source.currentRect.top.toFixed()}`];
    }).sort((a, b) => b[0] - a[0]).slice(0, 1).map(one => one[1]).join()
  })))).observe({type: 'layout-shift', buffered: true});
})();"""


@dataclass(frozen=True)
class Shift:
    """When (ms from the start of the page), by how much, and what moved most, from which top edge to which."""

    at: float
    by: float
    what: str


def cumulative(shifts: list[Shift]) -> float:
    """Return the cumulative layout shift: the largest sum within 5 s of shifts less than 1 s apart.

    As defined by https://web.dev/articles/cls.
    """
    largest = sum_now = began = last = 0.0
    for one in sorted(shifts, key=lambda one: one.at):
        if one.at - last >= 1000 or one.at - began >= 5000:
            sum_now, began = 0.0, one.at
        sum_now, last = sum_now + one.by, one.at
        largest = max(largest, sum_now)
    return largest


def watch_shifts(page: Page) -> None:
    """Record the shifts of every page that is loaded from now on."""
    page.add_init_script(WATCH)


def shifts_so_far(page: Page) -> list[Shift]:
    """Return the shifts since the page was loaded."""
    return [Shift(**one) for one in page.evaluate("window.alertreviewShifts")]
