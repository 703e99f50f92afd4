"""Accounts at the command line: the first administrator, codes, roles and units, and errors in one line."""

import re
from pathlib import Path

import pytest

from alertreview.application import open_application
from alertreview.cli.main import main
from core.vocabulary import Role


@pytest.fixture
def home(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["init", "--home", str(tmp_path)]) == 0
    capsys.readouterr()
    return tmp_path


def said(capsys: pytest.CaptureFixture[str], home: Path, *words: str, code: int = 0) -> str:
    assert main(["account", *words, "--home", str(home)]) == code
    captured = capsys.readouterr()
    return captured.out if code == 0 else captured.err


def test_the_first_administrator_signs_in_with_the_printed_code(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "Create the first administrator" in said(capsys, home, "list")
    printed = said(capsys, home, "create", "Ada Admin", "--role", "administrator", "--login", "Ada")
    code = re.search(r"only now: ([A-Z2-9-]{19})", printed)
    assert code is not None
    with open_application(home) as application:
        token = application.sign_in.with_code("ada", code[1], "a long enough sentence")
        assert application.sessions.who(token).role is Role.ADMINISTRATOR
    listed = said(capsys, home, "list")
    assert re.search(r"ada +administrator +active +all +Ada Admin", listed)
    assert code[1] not in listed


def test_roles_units_resets_and_deactivation_are_one_command_each(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, home, "create", "Ada", "--role", "administrator")
    said(capsys, home, "create", "Rita", "--role", "reviewer", "--unit", "ICU", "--unit", "Ward")
    assert "Rita: coordinator, ICU, Ward." in said(capsys, home, "role", "rita", "coordinator", "--reason", "leads")
    assert "Rita: coordinator, all units." in said(capsys, home, "role", "rita", "--all-units")
    assert "One-time code" in said(capsys, home, "reset", "rita")
    assert "Rita may no longer sign in." in said(capsys, home, "disable", "rita")
    assert re.search(r"rita +coordinator +deactivated", said(capsys, home, "list"))
    assert "Rita may sign in again." in said(capsys, home, "disable", "rita", "--enable")
    outside = said(capsys, home, "create", "Vera", "--role", "viewer", "--login", "vera@clinic", "--source", "oidc")
    assert "No code needed" in outside


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("reset", "nobody"), "no person with login or name 'nobody'"),
        (("create", "Ada", "--role", "viewer"), "has an account already"),
        (("create", "Other", "--role", "viewer", "--login", "ada"), "login 'ada' is taken"),
        (("disable", "ada"), "last administrator"),
        (("role", "ada", "viewer"), "last administrator"),
        (("role", "ada"), "Name a role, or units"),
        (("role", "ada", "--unit", "x", "--all-units"), "are mutually exclusive"),
    ],
)
def test_what_is_refused_is_one_line(
    home: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    said(capsys, home, "create", "Ada", "--role", "administrator")
    error = said(capsys, home, *words, code=2)
    assert message in error
    assert "Traceback" not in error
