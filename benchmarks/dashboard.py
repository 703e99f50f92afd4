"""Dashboard over a million alerts: from key to text and to chart, layout shift, many sessions at once, memory.

Builds a site, starts the real dashboard on loopback, measures in Chromium and over websockets, and prints each figure
beside its bound. Chromium is named by ALERTREVIEW_CHROMIUM (default /usr/bin/chromium). Ends with 1 when a bound is
missed.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks._browser import Served, chromium, serving
from benchmarks._dashboard_clients import crowd, opened
from benchmarks._dashboard_keys import Reaction, press
from benchmarks._dashboard_shifts import WINDOWS, shifts_of_pages
from benchmarks._dashboard_site import build_site
from benchmarks._machine import Watch, described
from benchmarks._pictures import paths_of_pages
from tests.browser.layout_shift import GOOD, cumulative

BOUNDS_MS = {"text": (150, 400), "chart": (350, 700)}
"""p50 and p95 from key to text and to chart."""
CROWDS = ((20, 1.0, 300), (60, 2.0, 1_000))
"""Sessions, seconds between two acts of one, p95 in ms."""
MOST_RISE = 0.05
"""Share by which memory may stand higher in the second half of the soak than in the quarter before it."""
KEYS = (
    ("next line", "j", "worklist", 1),
    ("open the alert", "o", "alert", 2),
    ("back to the worklist", "b", "worklist", 1),
)
"""What a key does, the key, the page it leads to and that page's figures."""


def main() -> int:
    """Measure and print; returns 1 when a bound is missed."""
    options = _options()
    home = options.home or Path(tempfile.mkdtemp(prefix="alertreview-bench-"))
    print(described())
    watch = Watch("")
    began = time.perf_counter()
    build_site(home, options.alerts, options.instances)
    print(f"Site with {options.alerts:,} alerts in {home}: {time.perf_counter() - began:.0f} s", flush=True)
    missed = 0
    with serving(home) as server:
        asyncio.run(_warm(server.port))
        if options.keys:
            missed += _in_browser(server, options.keys)
        if options.shifts:
            missed += _layout_shifts(server, home)
        for n_sessions, every, bound in CROWDS if options.seconds else ():
            missed += _in_crowd(server, n_sessions, every, bound, options.seconds)
        if options.minutes:
            missed += _soak(server, options.minutes)
    around = watch.stop()
    print(f"The machine: {around}" + ("" if around.is_quiet else "; not quiet, so the times say little"))
    print("every bound holds" if not missed else f"{missed} bounds are missed")
    return int(missed > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench dashboard", description=__doc__)
    parser.add_argument("--home", type=Path, help="keep the site here and use it again (default: a new folder)")
    parser.add_argument("--alerts", type=int, default=1_000_000)
    parser.add_argument("--instances", type=int, default=100_000, help="patient-days of the large import")
    parser.add_argument("--keys", type=int, default=40, help="presses of each key in Chromium; 0 leaves them out")
    parser.add_argument("--no-shifts", dest="shifts", action="store_false", help="leave out the layout shift of pages")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each crowd acts; 0 leaves them out")
    parser.add_argument("--minutes", type=float, default=30.0, help="soak: open, act and close for so long; 0: none")
    return parser.parse_args()


def _in_browser(server: Served, n_keys: int) -> int:
    """Measure keys in Chromium: move in the list, open an alert, go back to the list."""
    missed = 0
    with chromium() as browser:
        page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        began = time.perf_counter()
        page.goto(f"{server.url}/worklist")
        page.wait_for_selector(".st-key-preview .main-svg", timeout=60_000)
        print(f"First opening in a new browser: {time.perf_counter() - began:.1f} s")
        found: dict[str, list[Reaction]] = {name: [] for name, *_ in KEYS}
        for _ in range(n_keys):
            for name, key, where, n_figures in KEYS:
                found[name].append(press(page, key, where, n_figures))
    for name, reactions in found.items():
        missed += _judge(f"{name}, key to text", np.array([one.text for one in reactions]), BOUNDS_MS["text"])
        redrawn = [one for one in reactions if one.is_redrawn]
        if redrawn:
            missed += _judge(f"{name}, key to chart", np.array([one.chart for one in redrawn]), BOUNDS_MS["chart"])
        if len(redrawn) < len(reactions):
            print(f"  {len(reactions) - len(redrawn)} of {len(reactions)} figures were the same and not drawn again")
    return missed


def _layout_shifts(server: Served, home: Path) -> int:
    """Load every page on a desktop and a phone, and print how far it jumps meanwhile."""
    missed = 0
    with chromium() as browser:
        for width in WINDOWS:
            for name, shifts in shifts_of_pages(browser, server.url, paths_of_pages(home), width, 300_000):
                found = cumulative(shifts)
                missed += found >= GOOD
                worst = max(shifts, key=lambda one: one.by, default=None)
                word = "holds" if found < GOOD else f"MISSED: {worst.what if worst else ''}"
                print(f"layout shift of {name:20} at {width:4} px  {found:.3f}   bound {GOOD:g}  {word}", flush=True)
    return missed


def _in_crowd(server: Served, n_sessions: int, every: float, bound: int, seconds: float) -> int:
    before, cpu = _memory_mb(server.pid), _cpu_seconds(server.pid)
    met = asyncio.run(crowd(server.port, n_sessions, every, seconds, lambda: _memory_mb(server.pid)))
    name = f"{n_sessions} sessions, one act every {every:g} s"
    work = 1000 * (_cpu_seconds(server.pid) - cpu) / max(len(met.seconds) + n_sessions, 1)
    print(
        f"{name}: {len(met.seconds):,} acts, {met.n_failed} failed, {work:.0f} ms CPU for each; memory {before:.0f} -> "
        f"{met.level_mb:.0f} MB, {(met.level_mb - before) / n_sessions:.1f} MB for each session"
    )
    return _judge(name, 1000 * np.array(met.seconds), (None, bound)) + int(met.n_failed > 0)


def _soak(server: Served, minutes: float) -> int:
    """Open ten sessions, act and close, over and over; memory must level off."""
    levels: list[float] = []
    n_acts = n_failed = 0
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        met = asyncio.run(crowd(server.port, 10, 1.0, 10.0, lambda: _memory_mb(server.pid)))
        n_acts, n_failed = n_acts + len(met.seconds), n_failed + met.n_failed
        levels.append(met.level_mb)
        print(f"  {len(levels) * 10:5d} sessions opened and closed: {levels[-1]:.0f} MB", flush=True)
    half = len(levels) // 2
    rise = float(np.mean(levels[half:]) / np.mean(levels[half // 2 : half]) - 1) if half >= 2 else 0.0
    held = rise <= MOST_RISE and not n_failed
    print(
        f"Soak of {minutes:g} min: {n_acts:,} acts in {len(levels) * 10:,} sessions, {n_failed} failed; memory "
        f"{levels[0]:.0f} -> {levels[-1]:.0f} MB, at most {max(levels):.0f}; second half {rise:+.1%} against the "
        f"quarter before it   bound {MOST_RISE:+.0%}   {'holds' if held else 'MISSED'}"
    )
    return int(not held)


def _judge(name: str, found: np.ndarray, bounds: tuple[int | None, int]) -> int:
    p50, p95 = np.percentile(found, [50, 95])
    held = p95 <= bounds[1] and (bounds[0] is None or p50 <= bounds[0])
    wanted = f"{bounds[0]}/{bounds[1]}" if bounds[0] else f"-/{bounds[1]}"
    word = "holds" if held else "MISSED"
    print(f"{name:45} n {len(found):5}  p50 {p50:6.0f}  p95 {p95:6.0f} ms   bound {wanted:8} {word}", flush=True)
    return int(not held)


async def _warm(port: int) -> None:
    session = await opened(port)
    await session.press()
    await session.socket.close()


def _memory_mb(pid: int) -> float:
    """Resident memory of the server."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _cpu_seconds(pid: int) -> float:
    """User and system time of the server."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
