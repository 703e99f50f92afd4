"""A ward round in Chromium: one alert after the other is opened, read and settled, by keys alone."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from tests.browser.study_reader import COORDINATOR, LISTEN, sign_in
from tests.browser.visits import Visit

TITLE = "() => document.querySelector('.st-key-alert-title')?.innerText ?? ''"
# Milliseconds from the last key to the next alert's title, and to that alert with its figures, whole.
OPENED = """before => new Promise(done => {
  const began = performance.now(); let text = null;
  const look = () => {
    const title = document.querySelector('.st-key-alert-title');
    if (text === null && title && title.innerText !== before && !title.closest('[data-stale=true]'))
      text = performance.now() - window.pressedAt;
    const charts = [...document.querySelectorAll('[data-testid=stPlotlyChart]')];
    const isWhole = charts.length && charts.every(c => c.querySelector('.main-svg .xtick'))
      && !document.querySelector('[data-testid=stSkeleton], [data-stale=true]')
      && document.querySelector('[data-testid=stApp]').dataset.testScriptState === 'notRunning';
    if (text !== null && isWhole) return done([text, performance.now() - window.pressedAt]);
    if (performance.now() - began > 60000) return done(null);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""
KEPT = """() => new Promise(done => {
  const began = performance.now();
  const look = () => {
    const words = document.querySelector('[data-testid=stMain]').innerText;
    if (/Actioned \\d\\d:\\d\\d: 1 alert/.test(words) && !document.querySelector('[data-stale=true]'))
      return done(performance.now() - window.pressedAt);
    if (performance.now() - began > 60000) return done(null);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""


@dataclass
class RoundTimes:
    """Milliseconds from a key to the next alert's title, to that alert whole, and to the word that triage was kept.

    Beside them the processor time of the browser's main thread until then, on which other work tells less.
    """

    to_text: list[float] = field(default_factory=list)
    to_whole: list[float] = field(default_factory=list)
    to_kept: list[float] = field(default_factory=list)
    of_browser: list[float] = field(default_factory=list)


def ward_round(opened: Visit, home: Path, n_alerts: int) -> RoundTimes:
    """Open the first alert of the worklist and settle so many in their order; each must be kept in the database."""
    times, page = RoundTimes(), opened.page
    sign_in(opened, COORDINATOR)
    opened.open("worklist")
    page.evaluate(LISTEN)
    metrics = page.context.new_cdp_session(page)
    metrics.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> float:
        found = metrics.send("Performance.getMetrics")["metrics"]
        return next(1000 * one["value"] for one in found if one["name"] == "TaskDuration")

    for number in range(n_alerts):
        before, had_spent = page.evaluate(TITLE), spent()
        opened.key("j" if number else "o")
        taken = page.evaluate(OPENED, before)
        assert taken is not None, f"alert {number + 1} did not come at {page.url}"
        times.to_text.append(taken[0])
        times.to_whole.append(taken[1])
        times.of_browser.append(spent() - had_spent)
        opened.settle()
        opened.key("a")
        kept = page.evaluate(KEPT)
        assert kept is not None, f"alert {number + 1} was not kept at {page.url}"
        times.to_kept.append(kept)
        opened.settle()
        with closing(sqlite3.connect(f"file:{home / 'alertreview.db'}?mode=ro", uri=True)) as database:
            (n_acts,) = database.execute("SELECT count(*) FROM triage_act WHERE state = 'actioned'").fetchone()
        assert n_acts == number + 1, "what the page says is kept is in the database"
    return times
