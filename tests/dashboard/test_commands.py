"""Commands on pages can be typed as they stand: complete with the home of the site, and known to the command line."""

import ast
import functools
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from alertreview.cli.main import cli
from dashboard import context
from tests.dashboard.doubles.application import FakeApplication

DASHBOARD = Path(context.__file__).parent
BEFORE_SIGN_IN = DASHBOARD / "gate"
"""Its pages are for everybody who finds the address, so they name no folder of the server."""


@functools.cache
def nodes() -> tuple[tuple[Path, ast.AST], ...]:
    return tuple(_nodes())


def _nodes() -> Iterator[tuple[Path, ast.AST]]:
    for path in sorted(DASHBOARD.rglob("*.py")):
        if BEFORE_SIGN_IN not in path.parents:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                yield path, node


def text_of(node: ast.expr) -> str:
    """Text of a literal, with 1 for what is filled in."""
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "1" for part in node.values)
    return str(ast.literal_eval(node))


COMMANDS = sorted(
    {
        text_of(node.args[0])
        for _, node in nodes()
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "command"
    }
)


@pytest.mark.parametrize("words", COMMANDS)
def test_the_command_line_knows_the_command_and_its_options(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "opened_site", lambda _home, _database: FakeApplication())
    program, *typed = shlex.split(context.command(words))
    assert program == "alertreview"
    found: click.Command = cli
    while isinstance(found, click.Group):
        known = found.get_command(click.Context(found), typed.pop(0))
        assert known is not None
        found = known
    options = {name for parameter in found.params for name in parameter.opts}
    assert {word for word in typed if word.startswith("--")} <= options
    assert typed[typed.index("--home") + 1] == "/srv/a ward's site"


@pytest.mark.parametrize("set_there", [True, False], ids=["the shell's own", "not in the shell"])
def test_a_database_of_the_environment_is_named_without_its_password(
    set_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context, "opened_site", lambda _home, _database: FakeApplication())
    assert "--database" not in context.command("score")
    monkeypatch.setenv(context.DATABASE_VARIABLE, "postgresql://ward:secret@db/site")
    typed = context.command("score")
    assert "secret" not in typed
    environment = {context.DATABASE_VARIABLE: "postgresql://other"} if set_there else {}
    shell = ["/bin/sh", "-c", typed.replace("alertreview", "printf '%s\\n'", 1)]
    run = subprocess.run(shell, env=environment, capture_output=True, text=True, check=False)
    if set_there:
        assert run.stdout.splitlines() == ["score", "--home", "/srv/a ward's site", "--database", "postgresql://other"]
    else:
        assert run.returncode != 0
        assert context.DATABASE_VARIABLE in run.stderr


def test_no_page_writes_a_command_of_its_own() -> None:
    known = "|".join(cli.list_commands(click.Context(cli)))
    written = re.compile(rf"\balertreview ({known})\b")
    docstrings = {
        id(node.body[0].value)
        for _, node in nodes()
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and isinstance(node.body[0], ast.Expr)
    }
    found = [
        (path.name, node.value)
        for path, node in nodes()
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and written.search(node.value)
        if id(node) not in docstrings
    ]
    assert found == []
    assert len(COMMANDS) >= 5
