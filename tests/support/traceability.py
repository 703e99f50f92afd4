"""The checklist of what must never go wrong: ``@pytest.mark.checklist("A1")`` marks a test that shows an item.

A run of the whole suite fails if an item has no passing test, and prints it. Tests that were skipped because a piece of
the machine is missing (a browser, a server) do not fail the run: the pieces are named at the end with the command that
installs them. ``--checklist`` prints the number of passing tests of each item.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import pytest

from tests.support.pieces import MISSING_PIECE

CHECKLIST = {
    "A1": "every vote, change, export, sign-in, role change and publication has one audit row",
    "A2": "audit rows cannot be changed or deleted through the application",
    "A3": "the hash chain finds an edited, inserted, removed or swapped row and, with a printed head, a cut tail",
    "A4": "votes are versions and never deleted",
    "A5": "signing takes fresh credentials and stores name, time, meaning and hash; a later change supersedes it",
    "B1": "the matrix of role, act and object holds in the services, deny by default",
    "B2": "time-outs hold on pages, websocket and downloads",
    "B3": "log-out, disabling and change of role act at the next action in every tab",
    "B4": "without a cookie nothing but sign-in and health answers",
    "B5": "headers and Content-Security-Policy on every answer, and no foreign request",
    "B6": "blinding holds in raw frames",
    "C1": "no vote is lost while a scoring run is written",
    "C2": "the same form twice, at once or after a lost answer is one vote",
    "C3": "of two tabs the second hears that the answer changed meanwhile",
    "C4": "a kill at any moment loses nothing acknowledged and leaves the published run",
    "C5": "a full, read-only, locked, foreign, damaged or newer store ends in a plain message, nothing half-written",
    "C6": "a backup made while somebody writes restores and verifies",
    "C7": "jumps of the clock and daylight saving time change no order and no hour",
    "C8": "a second scoring job is refused",
    "D1": "malformed input names file, row, column and what to do, and nothing is half-loaded",
    "D2": "sizes are limited, zip bombs are refused, nothing is unpickled",
    "D3": "no cell of an export becomes a formula",
    "D4": "markup in any text field stays text in a real browser",
    "D5": "filters and sort keys carry no SQL",
    "D6": "no patient data in addresses, logs or error texts",
    "E1": "dependencies are pinned with hashes, without a host in a committed file",
    "E2": "licences are listed",
    "E3": "systemd's units are sound",
}


@dataclass
class Found:
    """Which tests of each item passed, which did not, and which pieces of the machine were missing."""

    passed: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    others: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    lacking: set[str] = field(default_factory=set)
    """Items with a test that was skipped for a missing piece."""
    pieces: Counter[str] = field(default_factory=Counter)
    """Number of tests skipped for each missing piece."""

    def missing(self) -> list[str]:
        """Return the items without a passing test, those aside that wait for a missing piece."""
        return [name for name in CHECKLIST if not self.passed[name] and name not in self.lacking]


_FOUND = pytest.StashKey[Found]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer the table of ids."""
    parser.addoption("--checklist", action="store_true", help="print how many passing tests stand for each id")


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known."""
    config.addinivalue_line(
        "markers", "checklist(*ids): what must never go wrong, and this test shows that it does not"
    )
    config.stash[_FOUND] = Found()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Hang the ids on each test, so that its reports carry them, from other processes too."""
    for item in items:
        ids = sorted({name for mark in item.iter_markers("checklist") for name in mark.args})
        if unknown := [name for name in ids if name not in CHECKLIST]:
            raise pytest.UsageError(f"{item.nodeid}: the checklist has no {', '.join(unknown)}")
        item.user_properties += [("checklist", name) for name in ids]


class Watch:
    """Gathers reports where they all arrive: in the one process, or in the one that leads the others."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test for its ids."""
        ids = [value for name, value in report.user_properties if name == "checklist"]
        found = self._config.stash[_FOUND]
        piece = missing_piece(report)
        found.pieces.update([piece] if piece else [])
        for name in ids:
            if piece:
                found.lacking.add(str(name))
            if report.when == "call" and report.passed:
                found.passed[str(name)].add(report.nodeid)
            elif not report.passed:
                found.others[str(name)].add(f"{report.nodeid} ({report.outcome})")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a whole run in which an id has no passing test."""
        is_good = session.exitstatus == pytest.ExitCode.OK
        if is_good and is_whole(self._config) and self._config.stash[_FOUND].missing():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say which ids stand without a test."""
        found = self._config.stash[_FOUND]
        if self._config.getoption("checklist"):
            terminalreporter.section("checklist")
            for name, words in CHECKLIST.items():
                terminalreporter.write_line(f"{name} {len(found.passed[name]):4}  {words}")
        if is_whole(self._config) and (missing := found.missing()):
            terminalreporter.section("without a passing test", red=True, bold=True)
            for name in missing:
                terminalreporter.write_line(f"{name}: {CHECKLIST[name]}")
                for test in sorted(found.others[name]):
                    terminalreporter.write_line(f"    {test}")
        if found.pieces:
            terminalreporter.section("left out, because this machine lacks", yellow=True, bold=True)
            for piece, n_tests in sorted(found.pieces.items()):
                terminalreporter.write_line(f"{piece} ({n_tests} tests)")


def missing_piece(report: pytest.TestReport) -> str:
    """Return the missing piece that a test was skipped for, with how to get it; empty if there is none."""
    reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
    return reason.partition(MISSING_PIECE)[2]


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Watch in the leading process only."""
    if not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(Watch(session.config), "checklist")


def is_whole(config: pytest.Config) -> bool:
    """Return whether the whole suite was asked for: no file named, nothing chosen or left out."""
    option = config.option
    chosen = (option.keyword, option.markexpr, option.deselect, option.ignore, option.ignore_glob, option.collectonly)
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not any(chosen)
