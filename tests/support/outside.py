"""Look-ups and calls of addresses outside this machine, noted in a file by every Python process that is told to."""

import contextlib
import ipaddress
import os
import sys
from collections.abc import Iterator
from pathlib import Path

VARIABLE = "NOTE_OUTSIDE_ADDRESSES"
LOOK_UPS = {"socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"}
CALLS = {"socket.connect", "socket.sendto", "socket.sendmsg"}

_files: list[Path] = []
"""Where this process notes now; a hook of the interpreter cannot be taken out again."""


def outside(event: str, given: tuple[object, ...]) -> str:
    """Return the outside address that an event of the interpreter is about; empty if it is about none."""
    if event in LOOK_UPS:
        host = given[0]
    elif event in CALLS and isinstance(given[1], tuple):  # a path is a socket of this machine
        host = given[1][0]
    else:
        return ""
    name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host or "")
    try:
        is_here = ipaddress.ip_address(name.partition("%")[0]).is_loopback or name in {"0.0.0.0", "::"}
    except ValueError:
        is_here = name in {"", "localhost"}
    return "" if is_here else name


def _note(event: str, given: tuple[object, ...]) -> None:
    if _files and event.startswith("socket.") and (name := outside(event, given)):
        with _files[-1].open("a", encoding="utf-8") as opened:
            opened.write(f"{event} {name}\n")


@contextlib.contextmanager
def noting(file: Path) -> Iterator[None]:
    """Note what this process looks up and calls."""
    if not getattr(sys, "_alertreview_notes", False):
        sys.addaudithook(_note)
        sys._alertreview_notes = True  # type: ignore[attr-defined]
    _files.append(file)
    yield
    _files.pop()


def noting_environment(folder: Path) -> dict[str, str]:
    """Return the environment in which another Python process notes into `folder/outside.txt`."""
    place = folder / "noting"
    place.mkdir()
    started = "from tests.support.outside import start\nstart()\n"
    (place / "sitecustomize.py").write_text(started, encoding="utf-8")
    root = Path(__file__).resolve().parents[2]
    return {"PYTHONPATH": f"{place}{os.pathsep}{root}", VARIABLE: str(folder / "outside.txt")}


def start() -> None:
    """Note from the start of a process to its end."""
    sys.addaudithook(_note)
    file = Path(os.environ[VARIABLE])
    file.touch()
    _files.append(file)
