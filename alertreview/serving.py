"""Start the dashboard as a program of its own: the application layer never imports what stands above it."""

import os
import sys
from pathlib import Path
from typing import NoReturn

import alertreview
from alertreview.settings import DATABASE_VARIABLE, HOME_VARIABLE, Settings


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
