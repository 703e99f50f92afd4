"""A whole study in Chromium: 222 cases by three readers with keys alone, adjudication, a report and a ward round.

Builds a demonstration, gives five people accounts, and lets the study run from its draft to its report: the
same flow as in the test suite, at the method paper's size. Everything that is stored and shown is checked against plain
counting, and every frame that a reader or the adjudicator gets is searched for what is not for them. Then prints the
time from a key to what it brings about. By their votes five cases stay undecided on purpose, one for and one against.
Last, the coordinator settles the first 20 alerts of the worklist by keys. Chromium is named by ALERTREVIEW_CHROMIUM
(default /usr/bin/chromium).
"""

import argparse
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import BrowserContext, sync_playwright

from alertreview.application import open_application
from alertreview.cli.demo import PANEL, SEED, build_demo, truth_of_cases
from alertreview.settings import load_settings
from benchmarks._machine import Watch
from benchmarks._ward_round import ward_round
from core.simulation.study import simulate_votes
from tests.browser.study_reader import CANNOT_JUDGE, READERS, Answers
from tests.browser.visits import Visit, open_visit, start_chromium
from tests.browser.whole_study import OWN_CHOICE, PAPER, Design, Outcome, make_site, whole_study
from tests.support.served import dashboard

PAPERS_CASES = 222
LEFT_OPEN, ALERTS_OF_A_ROUND = 5, 20
P95_TEXT_MS, P95_CHART_MS = 300, 700


def main() -> int:
    """Run it and print; an assertion names what did not hold."""
    options = _options()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="alertreview-study-"))
    machine = platform.processor() or platform.machine()
    print(f"{machine}, {os.cpu_count()} CPUs, Python {platform.python_version()}")
    demonstration = folder / "demonstration"
    for line in build_demo(load_settings(demonstration, create=True)):
        print(f"  {line}", flush=True)
    home = make_site(demonstration, Path(tempfile.mkdtemp(prefix="site-", dir=folder)) / "home")
    watch = Watch("")
    with dashboard(home, folder / "server.log") as (port, _):
        _run(f"http://127.0.0.1:{port}", home, options.cases)
    # Only now, with server and browser ended, is their work known to be this measurement's own.
    surroundings = watch.stop()
    print(surroundings)
    if not surroundings.is_quiet:
        print("Other work was going on: the times say more about the machine than about the program.")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="./dev bench study", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=PAPERS_CASES, help="other than 222: not the paper's design")
    parser.add_argument("--folder", type=Path, help="keep demonstration and site here (default: a new folder)")
    return parser.parse_args()


def _run(url: str, home: Path, n_cases: int) -> None:
    preset = PAPER if n_cases == PAPERS_CASES else OWN_CHOICE
    visits: list[Visit] = []
    windows: list[BrowserContext] = []
    with sync_playwright() as playwright:
        chromium = start_chromium(playwright)

        def open_window() -> Visit:
            visits.append(open_visit(chromium, windows, url))
            return visits[-1]

        began = time.perf_counter()
        design = Design("Whole study", preset, n_cases)
        outcome = whole_study(open_window, home, design, lambda slug: _answers(home, slug), _say)
        seconds = time.perf_counter() - began
        of_round = ward_round(open_window(), home, ALERTS_OF_A_ROUND)
        foreign = [address for visit in visits for address in visit.foreign]
        errors = [error for visit in visits for error in visit.console]
        chromium.close()
    _print(outcome, preset, seconds)
    print(
        f"Ward round: {ALERTS_OF_A_ROUND} alerts opened and settled by keys, "
        "each found in the database when it was said to be kept"
    )
    _print_times("key to the next alert's title", of_round.to_text, P95_TEXT_MS)
    _print_times("key to that alert with its figures", of_round.to_whole, P95_CHART_MS)
    _print_times("the browser's main thread until then, processor time", of_round.of_browser)
    _print_times("triage key to the word that it is kept", of_round.to_kept)
    print(f"Requests to other hosts: {len(foreign)}; errors in the browser: {len(errors)}")
    assert foreign == []
    assert errors == []


def _say(line: str) -> None:
    print(line, flush=True)


def _answers(home: Path, slug: str) -> Answers:
    """Return what three readers with errors of their own answer to decisions whose truth is simulated."""
    with open_application(home) as application:
        cases, relevant, true_score = truth_of_cases(application, home / "simulated-source", slug)
    votes = simulate_votes(relevant, true_score, PANEL, seed=SEED)
    votes.answers[:LEFT_OPEN] = CANNOT_JUDGE, 1, 3
    return {
        (case.case_number, name): int(votes.answers[row, place])
        for row, case in enumerate(cases)
        for place, name in enumerate(READERS)
    }


def _print(outcome: Outcome, preset: str, seconds: float) -> None:
    scanned, times = outcome.scanned, outcome.times
    print(
        f"{outcome.n_cases} cases ({preset.lower()}) x {len(READERS)} readers in {seconds / 60:.1f} min: "
        f"{outcome.n_judgments} answers saved, each found in the database when its mark was shown; none else stored"
    )
    print(f"{outcome.n_settled} cases that the votes left open, settled; consensus as counted plainly for every case")
    auc = "none (one class only)" if outcome.auc is None else f"{outcome.auc:.4f}"
    print(f"AUC on the page {auc}; {outcome.n_aucs} AUCs of the report as counted pair by pair")
    print(
        f"Searched {scanned.n_frames:,} frames, {scanned.n_bytes / 2**20:.1f} MiB, of readers and adjudicator: "
        f"{len(scanned.found)} findings"
    )
    _print_times("answer key to the choice shown", times.to_choice)
    _print_times("save key to the next case's words", times.to_next_text, P95_TEXT_MS)
    _print_times("save key to the saved mark", times.to_mark)
    _print_times("save key to the next case with its figure", times.to_next_case, P95_CHART_MS)


def _print_times(name: str, found: list[float], bound: float | None = None) -> None:
    p50, p95 = np.percentile(found, [50, 95])
    held = "" if bound is None else f"   p95 bound {bound:g} {'holds' if p95 <= bound else 'MISSED'}"
    print(f"{name:45} p50 {p50:6.0f}  p95 {p95:6.0f} ms   n {len(found):,}{held}")


if __name__ == "__main__":
    sys.exit(main())
