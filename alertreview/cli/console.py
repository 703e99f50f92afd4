"""Terminal side of the commands: progress bars, the technical log, signals, and starting the dashboard."""

import logging
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click
from tqdm import tqdm

import alertreview
from alertreview.cli.tables import is_set
from alertreview.settings import (
    DATABASE_VARIABLE,
    FIRST_PAGE_VARIABLE,
    HOME_VARIABLE,
    Progress,
    Settings,
    load_settings,
)

EXIT_INTERRUPTED = 130
"""Exit code of a shell for Ctrl+C."""
EXIT_TERMINATED = 143
"""Exit code of a shell for SIGTERM."""


class Terminated(SystemExit):
    """SIGTERM arrived; not an error to be handled on the way.

    It is a SystemExit because psycopg cancels its query at SystemExit and KeyboardInterrupt alone: at any other
    exception the connection stays busy, and the rollback fails in place of the order to stop.
    """


@contextmanager
def progress_bar(title: str) -> Iterator[Progress]:
    """Yield a callback (done, total) that draws a bar with the time left.

    Without a terminal it draws nothing; ``-v`` makes it a line for each tenth. ``-q`` draws nothing anywhere.
    """
    disable = True if is_set("quiet") else None
    bar = tqdm(desc=title, unit="", disable=disable, leave=False, dynamic_ncols=True, file=sys.stderr)
    in_lines, told = bool(bar.disable) and is_set("verbose"), 0

    def report(done: int, total: int) -> None:
        nonlocal told
        if in_lines and total and 10 * done // total > told:
            told = int(10 * done // total)
            click.echo(f"{title}: {10 * told} %", err=True)
        if bar.total != total:
            bar.total = total
        bar.update(done - bar.n)

    try:
        yield report
    finally:
        bar.close()


@contextmanager
def log_to_terminal(title: str) -> Iterator[None]:
    """Write the program's log on standard error while a command runs, and then how long it took."""
    logger, handler, started = logging.getLogger("alertreview"), logging.StreamHandler(), time.monotonic()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.info("%s took %.1f s.", title.strip(), time.monotonic() - started)
        logger.setLevel(logging.NOTSET)
        logger.removeHandler(handler)


def write_technical_log(log_file: Path, error: BaseException) -> None:
    """Append kind and stack of an unexpected error, without its message, which may hold patient data."""
    logger = logging.getLogger("alertreview.technical")
    handler = logging.FileHandler(log_file, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger.addHandler(handler)
    try:
        frames = traceback.extract_tb(error.__traceback__)
        places = "\n".join(f"  {Path(frame.filename).name}:{frame.lineno} in {frame.name}" for frame in frames)
        logger.error("%s\n%s", type(error).__name__, places)
    finally:
        logger.removeHandler(handler)
        handler.close()


def serve_dashboard(settings: Settings, *, port: int, open_browser: bool | None, path: str = "/") -> NoReturn:
    """Replace this process by the dashboard on the loopback address: signals and the exit code are the dashboard's own.

    With None, a browser window opens, at the page `path`, if the machine has a display.
    """
    # A folder named `dashboard` in the current directory must not shadow ours, hence -P and the parent of our packages.
    parent = str(Path(alertreview.__file__).resolve().parent.parent)
    environment = {
        **os.environ,
        HOME_VARIABLE: str(settings.home),
        # Not an argument: a path with a one-time code must not be seen in the list of processes.
        FIRST_PAGE_VARIABLE: path,
        "PYTHONPATH": os.pathsep.join(filter(None, [parent, os.environ.get("PYTHONPATH")])),
    }
    # Pages show commands with this variable where it is set, and a shell without it refuses them.
    if load_settings(settings.home).database_url != settings.database_url:
        environment[DATABASE_VARIABLE] = settings.database_url
    if open_browser is None:
        open_browser = sys.platform in {"darwin", "win32"} or bool(
            os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        )
    arguments = [sys.executable, "-P", "-m", "dashboard", "--port", str(port), *(["--browser"] if open_browser else [])]
    sys.stdout.flush()
    os.execve(sys.executable, arguments, environment)  # noqa: S606 - our own interpreter with our own module


def stop_in_order() -> None:
    """Raise Terminated at SIGTERM from now on, unless the signal is ignored or handled already."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _terminate(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends the program at once
    raise Terminated(EXIT_TERMINATED)
