"""Dashboard over a million alerts: from key to text and to chart, many sessions at once, memory over time.

Builds a site, starts the real dashboard on loopback, measures in Chromium and over websockets, and prints each figure
beside its bound. Chromium is named by ALERTREVIEW_CHROMIUM (default /usr/bin/chromium).
"""

import argparse
import asyncio
import os
import platform
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np
from playwright.sync_api import Page, sync_playwright

from benchmarks._dashboard_clients import crowd, opened
from benchmarks._dashboard_site import build_site

ROOT = Path(__file__).resolve().parent.parent
BOUNDS_MS = {"text": (150, 400), "chart": (350, 700)}
"""p50 and p95 from key to text and to chart."""
CROWDS = ((20, 1.0, 300), (60, 2.0, 1_000))
"""Sessions, seconds between two acts of one, p95 in ms."""
# What is looked at in the page: the words that change, and what the figures draw.
TEXT = "document.querySelector('[data-testid=stMainBlockContainer] :is(.st-key-preview h3, h1)')?.innerText ?? ''"
WAIT = """([before, charts]) => new Promise(done => {
  const began = performance.now(); let text = null;
  const look = () => {
    const words = %s;
    const figures = [...document.querySelectorAll('.js-plotly-plot')];
    if (text === null && words && words !== before) text = performance.now();
    const drawn = figures.length >= charts && figures.every(f => f.querySelector('.main-svg .plot path'));
    const marks = figures.map(f => f.querySelector('.annotation-text')?.textContent + f.getBoundingClientRect().top)
    if (text !== null && drawn && !document.querySelector('[data-testid=stSkeleton], [data-stale=true]'))
      return done([text, performance.now(), marks.length]);
    if (performance.now() - began > 20000) return done([text, null, figures.length]);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
})"""


def main() -> int:
    """Measure and print; returns 1 when a bound is missed."""
    options = _options()
    home = options.home or Path(tempfile.mkdtemp(prefix="alertreview-bench-"))
    print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    began = time.perf_counter()
    build_site(home, options.alerts, options.instances)
    print(f"Site with {options.alerts:,} alerts in {home}: {time.perf_counter() - began:.0f} s")
    port = _free_port()
    server = _start(home, port)
    missed = 0
    try:
        if options.keys:
            missed += _in_browser(port, options.keys)
        for n_sessions, every, bound in CROWDS:
            missed += _in_crowd(port, server.pid, n_sessions, every, bound, options.seconds)
        if options.minutes:
            missed += _soak(port, server.pid, options.minutes)
    finally:
        server.terminate()
        server.wait(timeout=20)
    print("every bound holds" if not missed else f"{missed} bounds are missed")
    return int(missed > 0)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench dashboard", description=__doc__)
    parser.add_argument("--home", type=Path, help="keep the site here and use it again (default: a new folder)")
    parser.add_argument("--alerts", type=int, default=1_000_000)
    parser.add_argument("--instances", type=int, default=100_000, help="patient-days of the large import")
    parser.add_argument("--keys", type=int, default=20, help="key presses of each kind in Chromium; 0 leaves it out")
    parser.add_argument("--seconds", type=float, default=20.0, help="how long each crowd acts")
    parser.add_argument("--minutes", type=float, default=0.0, help="soak: open, act and close for so long")
    return parser.parse_args()


def _in_browser(port: int, n_keys: int) -> int:
    """Measure keys in Chromium: move in the list, open an alert, go back to the list."""
    missed = 0
    with sync_playwright() as started:
        chromium = os.environ.get("ALERTREVIEW_CHROMIUM", "/usr/bin/chromium")
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
        began = time.perf_counter()
        page.goto(f"http://127.0.0.1:{port}/worklist")
        page.wait_for_selector(".st-key-preview .main-svg", timeout=60_000)
        print(f"First opening in a new browser: {time.perf_counter() - began:.1f} s")
        times: dict[str, list[tuple[float, float]]] = {"next line": [], "open alert": [], "back to the worklist": []}
        for _ in range(n_keys):
            times["next line"].append(_key(page, "j", 1))
            times["open alert"].append(_key(page, "o", 3))
            times["back to the worklist"].append(_key(page, "b", 1))
        browser.close()
    for name, pairs in times.items():
        for what, column in zip(BOUNDS_MS, zip(*pairs, strict=True), strict=True):
            missed += _judge(f"{name}, key to {what}", np.array(column), BOUNDS_MS[what])
    return missed


def _key(page: Page, key: str, n_charts: int) -> tuple[float, float]:
    """Press a key; gives the milliseconds until words and figures have changed."""
    page.wait_for_timeout(700)
    before = page.evaluate(TEXT)
    pressed = page.evaluate("performance.now()")
    page.keyboard.press(key)
    text, chart, _ = page.evaluate(WAIT % TEXT, [before, n_charts])
    if text is None or chart is None:
        raise TimeoutError(f"key {key}: nothing changed within 20 s")
    return text - pressed, chart - pressed


def _in_crowd(port: int, pid: int, n_sessions: int, every: float, bound: int, seconds: float) -> int:
    before = _memory_mb(pid)
    cpu = _cpu_seconds(pid)
    found, n_failed = asyncio.run(crowd(port, n_sessions, every, seconds))
    name = f"{n_sessions} sessions, one act every {every:g} s"
    grown = (_memory_mb(pid) - before) / n_sessions
    work = 1000 * (_cpu_seconds(pid) - cpu) / max(len(found) + n_sessions, 1)
    print(
        f"{name}: {len(found):,} acts, {n_failed} failed, {work:.0f} ms CPU for each, {grown:.1f} MB for each session"
    )
    return _judge(name, 1000 * np.array(found), (None, bound)) + int(n_failed > 0)


def _soak(port: int, pid: int, minutes: float) -> int:
    """Open ten sessions, act and close, over and over; memory must level off."""
    levels = []
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        asyncio.run(crowd(port, 10, 1.0, 10.0))
        levels.append(_memory_mb(pid))
        print(f"  {len(levels) * 10:5d} sessions opened and closed: {levels[-1]:.0f} MB", flush=True)
    half = len(levels) // 2
    rise = float(np.mean(levels[half:]) - np.mean(levels[half // 2 : half])) if half >= 2 else 0.0
    share = rise / levels[-1]
    print(f"Memory over the soak: {levels[0]:.0f} -> {levels[-1]:.0f} MB; second half {share:+.1%}")
    return int(share > 0.05)


def _judge(name: str, found: np.ndarray, bounds: tuple[int | None, int]) -> int:
    p50, p95 = np.percentile(found, [50, 95])
    held = p95 <= bounds[1] and (bounds[0] is None or p50 <= bounds[0])
    wanted = f"{bounds[0]}/{bounds[1]}" if bounds[0] else f"-/{bounds[1]}"
    print(f"{name:45} p50 {p50:6.0f}  p95 {p95:6.0f} ms   bound {wanted:8} {'holds' if held else 'MISSED'}")
    return int(not held)


def _start(home: Path, port: int) -> subprocess.Popen[bytes]:
    log = (home / "bench-dashboard.log").open("wb")
    command = [sys.executable, "-m", "dashboard", "--port", str(port)]
    environment = {**os.environ, "ALERTREVIEW_HOME": str(home), "ALERTREVIEW_DATABASE": ""}
    server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log)
    for _ in range(300):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=1):
                asyncio.run(_warm(port))
                return server
        except OSError:
            time.sleep(0.2)
    server.kill()
    raise TimeoutError(f"the dashboard did not start; see {log.name}")


async def _warm(port: int) -> None:
    session = await opened(port)
    await session.press()
    await session.socket.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
