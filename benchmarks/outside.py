"""Addresses outside this machine that commands, pages and the libraries below them look up or call: none.

Everything runs under strace, which also sees what libraries written in C do. One process runs every command of the
program on a demonstration, but for those in `LEFT_OUT`; then the dashboard draws every page over its websocket. What
Chromium asks for is watched by the browser tests. It ends with 0 when no address outside this machine was named, and
no name server or resolver of this machine asked; with 1 when one was; with 2 when strace does not see a look-up that
is made on purpose.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from alertreview.cli.demo import DemoSize, build_demo
from alertreview.cli.main import cli
from alertreview.cli.main import main as command
from alertreview.settings import load_settings
from tests.conftest import ROOT
from tests.support.isolated import run_apart
from tests.support.outside import outside
from tests.support.page_session import open_page
from tests.support.served import free_port, wait_for_port

LEFT_OUT = {
    "demo": "built here, smaller than the command does",
    "dashboard": "served apart",
    "reproduce scaling": "the same code as `reproduce synthetic`, for longer",
    "reproduce sensitivity": "the same",
    "reproduce uci": "downloads three public data sets unless --data names them, as its help says",
    "sensitivity": "scores again, for longer",
    "sign-report": "asks for a password at a terminal",
    "db grant": "PostgreSQL alone",
    "db downgrade": "the way back from `db upgrade`",
    "study votes": "reads a file that a labelling tool wrote",
    "digest": "calls the mail server that is set up",
    "account token create": "writes a row, as `account create` does",
    "account token revoke": "the same",
}
SITE = DemoSize(n_patients=60, n_cases=36, n_waiting=6)
PAGES = ("", "worklist", "review", "studies", "reports", "export", "runs", "tasks", "my-judgments", "adjudication")
PAGES += ("study-setup", "task", "alert", "admin")
_CALL = re.compile(r'htons\((\d+)\), (?:sin_addr=inet_addr\("([^"]+)"\)|.*?inet_pton\(AF_INET6, "([^"]+)")')
_RESOLVER = re.compile(r'sun_path="[^"]*(?:resolve|avahi)[^"]*"')
_NAME_SERVER = "53"


def named(traced: str) -> list[str]:
    """Return the lines of strace that name an address outside this machine, or ask for the address of a name."""
    found = []
    for line in traced.splitlines():
        call = _CALL.search(line)
        if call is not None:
            address = call[2] or call[3]
            is_outside = call[1] == _NAME_SERVER or outside("socket.connect", (None, (address, int(call[1]))))
        else:
            is_outside = _RESOLVER.search(line)
        if is_outside:
            found.append(line)
    return found


def traced(file: Path) -> list[str]:
    """Return the words that run a program under strace."""
    calls = "trace=connect,sendto,sendmsg,sendmmsg"
    return ["strace", "--follow-forks", "--seccomp-bpf", "-qq", "-e", calls, "-e", "signal=none", "-o", str(file)]


def walk(home: Path, place: Path) -> Iterator[list[str]]:
    """Yield the words of each command, in an order in which they work."""
    here, out = ["--home", str(home)], str(place / "out")
    yield ["simulate", "--out", str(place / "hospital")]
    yield ["mapping", "check", str(place / "hospital")]
    yield ["mapping", "suggest", str(place / "hospital"), "--out", str(place / "mapping.yaml")]
    yield ["init", "--home", str(place / "new")]
    yield ["import", str(place / "hospital"), "--home", str(place / "new")]
    yield ["mapping", "groups", "--home", str(place / "new")]
    yield ["score", "--home", str(place / "new")]
    yield ["db", "status", *here]
    yield ["db", "upgrade", *here]
    yield ["doctor", *here]
    yield ["audit", "verify", *here]
    yield ["audit", "export", str(place / "trail.jsonl"), *here]
    yield ["alerts", *here]
    yield ["run", "list", *here]
    for words in ("list", "alerts"):
        yield ["tasks", words, *here]
    yield ["tasks", "export", "--out", str(place / "tasks.yaml"), *here]
    yield ["tasks", "apply", str(place / "tasks.yaml"), "--reason", "tried", *here]
    yield ["metrics", "--out", str(place / "metrics.prom"), *here]
    yield ["export", "labels", "--study", "demo", "--out", str(place / "labels.csv"), *here]
    yield ["export", "study", "--study", "demo", "--out", out, *here]
    yield ["recompute", out]
    for ending in ("html", "pdf", "json"):
        yield ["report", "--study", "demo", "--format", ending, "--out", str(place / f"report.{ending}"), *here]
    yield ["study", "list", *here]
    yield ["study", "plan", "--study", "demo", *here]
    yield ["study", "cases", "--study", "demo", "--tool", "redcap", "--out", str(place / "cases"), *here]
    yield [
        "study",
        "create",
        "--study",
        "new",
        "--title",
        "New",
        "--reader",
        "A",
        "--cases",
        "6",
        "--readers-per-case",
        "1",
        *here,
    ]
    yield ["study", "lock", "--study", "new", *here]
    yield ["account", "create", "Eve", "--role", "viewer", "--login", "eve", "--home", str(place / "new")]
    for words in (["list"], ["reset", "eve"], ["role", "eve", "reviewer"], ["token", "list"], ["disable", "eve"]):
        yield ["account", *words, "--home", str(place / "new")]
    yield ["backup", "create", "--to", str(place / "backups"), *here]
    [made] = sorted((place / "backups").glob("*-site"))
    yield ["backup", "verify", str(made)]
    yield ["backup", "restore", str(made), "--home", str(place / "restored")]
    yield ["reproduce", "synthetic", "--runs", "1", "--out", str(place / "reproduced")]


def run_walk(place: Path) -> None:
    """Build a small demonstration and run every command in this process; print how each ended."""
    list(build_demo(load_settings(place / "home", create=True), SITE))
    for words in walk(place / "home", place):
        code = command(words)
        print(f"{code} {' '.join(word for word in words[:3])}", file=sys.stderr, flush=True)


def commands(group: click.Command = cli, before: str = "") -> Iterator[str]:
    """Yield the names of all commands of the program."""
    for name, one in getattr(group, "commands", {}).items():
        if isinstance(one, click.Group):
            yield from commands(one, f"{before}{name} ")
        else:
            yield f"{before}{name}"


async def draw_pages(port: int) -> int:
    """Have every page drawn and return how many were."""
    for page in PAGES:
        async with open_page(port, page) as session:
            if session.failures:
                print(f"page {page or 'home'}: {session.failures[0]}")
    return len(PAGES)


def measure(place: Path) -> int:
    """Trace the commands and the dashboard, and print what was named."""
    canary, trace, served = place / "canary.txt", place / "commands.txt", place / "served.txt"
    look_up = "import socket\ntry: socket.getaddrinfo('outside.invalid', 80)\nexcept OSError: pass"
    subprocess.run([*traced(canary), sys.executable, "-c", look_up], check=True)
    if not named(canary.read_text(encoding="utf-8")):
        print("strace does not show a look-up that was made on purpose")
        return 2
    words = [sys.executable, "-m", "benchmarks.outside", "--walk", str(place)]
    with (place / "walk.txt").open("wb") as said:
        subprocess.run([*traced(trace), *words], cwd=ROOT, stdout=subprocess.DEVNULL, stderr=said, check=True)
    lines = [line for line in (place / "walk.txt").read_text(encoding="utf-8").splitlines() if re.match(r"\d+ ", line)]
    worked = [line for line in lines if line.startswith("0 ")]
    print(f"{len(worked)} of {len(lines)} commands ended with 0; the others: {sorted(set(lines) - set(worked))}")
    tried = {" ".join(line.split()[1:]) for line in worked}
    untried = [
        name
        for name in commands()
        if name not in LEFT_OUT and not any(f"{one} ".startswith(f"{name} ") for one in tried)
    ]
    port = free_port()
    environment = {**os.environ, "ALERTREVIEW_HOME": str(place / "home"), "ALERTREVIEW_DATABASE": ""}
    with (place / "server.log").open("wb") as log:
        words = [sys.executable, "-m", "dashboard", "--port", str(port)]
        server = subprocess.Popen([*traced(served), *words], cwd=ROOT, env=environment, stdout=log, stderr=log)
        try:
            wait_for_port(port, server, place / "server.log")
            n_pages = run_apart(draw_pages(port))
        finally:
            # strace passes no signal on: its child, the server, is told to stop.
            for child in Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text(encoding="ascii").split():
                os.kill(int(child), signal.SIGTERM)
            server.wait(timeout=60)
    found = {file.stem: named(file.read_text(encoding="utf-8", errors="replace")) for file in (trace, served)}
    print(f"{n_pages} pages drawn; commands that were not tried: {untried}")
    for what, outside_lines in found.items():
        print(f"{what}: {len(outside_lines)} outside addresses {outside_lines[:3]}")
    return 1 if any(found.values()) or untried or len(worked) < len(lines) else 0


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(prog="./dev bench outside", description=__doc__)
    parser.add_argument("--walk", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.walk is not None:
        run_walk(options.walk)
        return 0
    if shutil.which("strace") is None:
        print("strace is missing: apt install strace")
        return 2
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder))


if __name__ == "__main__":
    sys.exit(main())
