"""Print the CPU seconds of each room of the tests: ``./dev test -n 2 --dist worksteal -p tests.support.cpu_seconds``.

A test has the seconds of its process and of child processes that have ended, fixtures included; a fixture counts where
it is first asked for, a server or browser where it is stopped.
"""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

import pytest

_seconds: Counter[str] = Counter()


def _spent() -> float:
    """Return the CPU seconds of this process and of its children so far."""
    return sum(os.times()[:4])


def _room(nodeid: str) -> str:
    """Return the folder below `tests` in which a test lies, by package and room."""
    return "/".join(PurePath(nodeid.partition("::")[0]).parts[1:3]).removesuffix(".py")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Count what a test spends, from its set-up to its end."""
    before = _spent()
    try:
        return (yield)
    finally:
        _seconds[_room(item.nodeid)] += _spent() - before


def pytest_collection_finish() -> None:
    """Count what came before the first test: libraries, and finding the tests."""
    _seconds["collection"] += _spent()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the seconds of a worker over to the process that prints."""
    if (output := getattr(session.config, "workeroutput", None)) is not None:
        output["cpu_seconds"] = dict(_seconds)


def pytest_testnodedown(node: Any) -> None:
    """Add what a worker has counted."""
    _seconds.update(getattr(node, "workeroutput", {}).get("cpu_seconds", {}))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the rooms, the most expensive first."""
    terminalreporter.section("CPU seconds")
    for room, seconds in _seconds.most_common():
        terminalreporter.line(f"{seconds:8.1f}  {room}")
    terminalreporter.line(f"{_seconds.total():8.1f}  all")
