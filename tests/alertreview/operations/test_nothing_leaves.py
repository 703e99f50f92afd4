"""No act of the program looks up or calls an address outside this machine; the dashboard's process: `test_kills.py`."""

import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest

from alertreview.application import open_application
from alertreview.cli.main import main
from alertreview.operations.doctor import examine_site
from alertreview.settings import Settings
from tests.support.outside import noting, outside
from tests.support.panel_site import write_ward


@pytest.mark.parametrize(
    ("event", "given", "found"),
    [
        ("socket.getaddrinfo", ("files.example", 443, 0, 0, 0), "files.example"),
        ("socket.getaddrinfo", (b"files.example", 443, 0, 0, 0), "files.example"),
        ("socket.getaddrinfo", ("127.0.0.1", 8501, 0, 0, 0), ""),
        ("socket.getaddrinfo", (None, 8501, 0, 0, 0), ""),
        ("socket.gethostbyaddr", ("machine-of-the-ward",), "machine-of-the-ward"),
        ("socket.connect", (None, ("203.0.113.9", 80)), "203.0.113.9"),
        ("socket.connect", (None, ("2001:db8::1", 80, 0, 0)), "2001:db8::1"),
        ("socket.connect", (None, ("::1", 80, 0, 0)), ""),
        ("socket.connect", (None, "/run/postgresql/.s.PGSQL.5432"), ""),
        ("socket.sendto", (None, ("198.51.100.1", 53)), "198.51.100.1"),
        ("socket.bind", (None, ("203.0.113.9", 80)), ""),
    ],
)
def test_an_outside_address_is_told_from_one_of_this_machine(event: str, given: tuple[object, ...], found: str) -> None:
    assert outside(event, given) == found


@pytest.mark.checklist("B5")
def test_no_act_looks_up_or_calls_an_outside_address(own_home: Path, tmp_path: Path) -> None:
    file = tmp_path / "outside.txt"
    with noting(file):
        with pytest.raises(socket.gaierror, match=r"\w"):
            socket.getaddrinfo("outside.invalid", 80)
        assert file.read_text(encoding="utf-8") == "socket.getaddrinfo outside.invalid\n"
        file.unlink()
        home = ["--home", str(own_home)]
        for words in (
            ["import", str(write_ward(tmp_path / "ward", n_patients=8, n_days=3)), "--format", "csv", *home],
            ["backup", "create", *home],
            ["audit", "verify", *home],
            ["export", "study", "--study", "demo", "--out", str(tmp_path / "out"), *home],
            ["report", "--study", "demo", "--out", str(tmp_path / "report.html"), "--format", "html", *home],
        ):
            assert main(words) == 0, words
        list(examine_site(Settings(own_home, f"sqlite:///{own_home / 'alertreview.db'}"), datetime.now(UTC)))
        with open_application(own_home) as application:
            application.reports.report("demo")
    assert not file.exists(), file.read_text(encoding="utf-8")
