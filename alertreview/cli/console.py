"""How the command line talks: progress with time left, figures for people, and one line for an error."""

import logging
import os
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

from tqdm import tqdm

import alertreview
from alertreview.settings import DATABASE_VARIABLE, HOME_VARIABLE, Progress, Settings


@contextmanager
def progress_bar(title: str) -> Iterator[Progress]:
    """Yield a callback (done, total) that draws a bar with the time left, or nothing without a terminal."""
    bar = tqdm(desc=title, unit="", disable=None, leave=False, dynamic_ncols=True, file=sys.stderr)

    def report(done: int, total: int) -> None:
        if bar.total != total:
            bar.total = total
        bar.update(done - bar.n)

    try:
        yield report
    finally:
        bar.close()


def write_technical_log(log_file: Path, error: BaseException) -> None:
    """Append where an unexpected error came from; the message itself may hold patient data and is left out."""
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


def serve_dashboard(settings: Settings, *, port: int, open_browser: bool | None) -> NoReturn:
    """Replace this process by the dashboard, so that signals and the exit code are the dashboard's own.

    Parameters
    ----------
    settings : Settings
        The site to show.
    port : int
        Port on the loopback address.
    open_browser : bool or None
        None opens a browser window when the machine has a display.
    """
    environment = dict(os.environ)
    environment[HOME_VARIABLE] = str(settings.home)
    environment[DATABASE_VARIABLE] = settings.database_url
    # The packages stand beside each other wherever they are installed; a folder named `dashboard` in the
    # current directory must not win over ours (-P), so their common parent goes on the path by name.
    parent = str(Path(alertreview.__file__).resolve().parent.parent)
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [parent, environment.get("PYTHONPATH")]))
    if open_browser is None:
        open_browser = sys.platform in {"darwin", "win32"} or bool(
            os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
        )
    arguments = [sys.executable, "-P", "-m", "dashboard", "--port", str(port)]
    if open_browser:
        arguments.append("--browser")
    sys.stdout.flush()
    os.execve(sys.executable, arguments, environment)  # noqa: S606 - our own interpreter with our own module


EXIT_INTERRUPTED = 130
"""What a shell reports for a program that Ctrl+C ended."""
EXIT_TERMINATED = 143
"""What a shell reports for a program that SIGTERM ended."""


class Terminated(BaseException):
    """The program was told to stop; like KeyboardInterrupt it is no error that anybody should handle on the way."""


def stop_in_order() -> None:
    """Raise Terminated at SIGTERM from now on; whoever had the signal ignored or handled before keeps it so."""
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminate)


def _terminate(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a second one ends the program at once
    raise Terminated
