"""The password for a signature is asked for at a terminal and nowhere else: not shown, never from a pipe."""

import fcntl
import os
import pty
import select
import shutil
import sqlite3
import subprocess
import sys
import termios
import time
from contextlib import closing
from pathlib import Path

import pytest

from alertreview.application import open_application
from core.vocabulary import Role
from tests.conftest import ROOT
from tests.support.sign_in_desk import PASSWORD

MEANING = "I approve this report"
PATIENCE_SECONDS = 120
NO_TERMINAL = "alertreview: The password is asked for at a terminal, and there is none."
WRONG = "alertreview: Login or password is wrong"


@pytest.fixture(scope="module")
def home(demo_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with a locked study and the account of Ada."""
    home = Path(shutil.copytree(demo_home, tmp_path_factory.mktemp("signing") / "home"))
    with open_application(home) as application:
        code = application.accounts.create("Ada", Role.COORDINATOR, login="ada")
        application.sign_in.with_code("ada", code, PASSWORD)
        application.studies.lock_study("demo")
    return home


def command(home: Path) -> list[str]:
    sign = ["sign-report", "--study", "demo", "--person", "Ada", "--meaning", MEANING, "--home", str(home)]
    return [sys.executable, "-m", "alertreview", *sign]


def signatures(home: Path) -> int:
    with closing(sqlite3.connect(home / "alertreview.db")) as raw:
        return int(raw.execute("SELECT count(*) FROM report_signature").fetchone()[0])


class Terminal:
    """A program at a terminal of its own, and what is to be seen there."""

    def __init__(self, arguments: list[str]) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            arguments,
            cwd=ROOT,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one call, no lock
        )
        os.close(theirs)
        self.screen = ""

    def read_until(self, words: str = "") -> str:
        """Read until some words are on the screen, or all that comes until the program ends."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not words or words not in self.screen:
            assert time.monotonic() < deadline, self.screen
            if select.select([self._ours], [], [], 0.1)[0]:
                try:
                    self.screen += os.read(self._ours, 4096).decode()
                except OSError:  # the program has closed its end
                    return self.screen
        return self.screen

    def type(self, line: str) -> None:
        os.write(self._ours, line.encode())

    def end(self) -> int:
        """Read the rest; gives the exit code."""
        self.read_until()
        code = self.process.wait(timeout=PATIENCE_SECONDS)
        os.close(self._ours)
        return code


@pytest.mark.checklist("A5")
@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        (f"{PASSWORD}\n", 0, f"Ada signed the report of study demo: {MEANING}."),
        ("not her password\n", 2, WRONG),
        ("\x04", 130, "alertreview: interrupted"),
        ("\x03", 130, "alertreview: interrupted"),
    ],
    ids=["right", "wrong", "end of input", "Ctrl+C"],
)
def test_at_a_terminal_the_password_is_asked_for_and_not_shown(home: Path, typed: str, code: int, said: str) -> None:
    before = signatures(home)
    terminal = Terminal(command(home))
    terminal.read_until("Password: ")
    terminal.type(typed)
    assert terminal.end() == code, terminal.screen
    assert said in terminal.screen
    assert typed.strip("\x03\x04\n") == "" or typed.strip() not in terminal.screen
    assert "Traceback" not in terminal.screen
    assert signatures(home) == before + (code == 0)


@pytest.mark.checklist("A5")
@pytest.mark.parametrize("piped", ["", f"{PASSWORD}\n"], ids=["nothing", "the password"])
def test_without_a_terminal_nothing_is_asked_read_or_signed(home: Path, piped: str) -> None:
    before = signatures(home)
    done = subprocess.run(
        command(home), cwd=ROOT, input=piped, capture_output=True, text=True, start_new_session=True, check=False
    )
    assert done.stderr.startswith(NO_TERMINAL), done.stderr
    assert done.stderr.count("\n") == 1
    assert (done.returncode, done.stdout) == (2, "")
    assert signatures(home) == before
