"""The documents say what is true: links lead somewhere, commands and options exist, nothing of this machine leaks."""

import re
import shlex
import subprocess
from pathlib import Path

import click
import pytest

from alertreview.cli import cli

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "data").rglob("*.md")])


def committed_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        return [path for path in ROOT.rglob("*") if path.is_file() and ".venv" not in path.parts]
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def identify(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=identify)
def test_links_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (document.parent / target).exists(), target


def command_lines() -> list[tuple[str, str]]:
    found = []
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        lines = [
            line
            for block in re.findall(r"```(?:sh|console)?\n(.*?)```", text, re.DOTALL)
            for line in block.splitlines()
        ]
        lines += re.findall(r"`((?:alertreview|\./dev) [^`]+)`", text)
        for line in lines:
            line = line.split(" #")[0].strip()
            if line.startswith(("alertreview ", "./dev ")):
                found.append((identify(document), line))
    return found


@pytest.mark.parametrize(("document", "line"), command_lines())
def test_commands_and_options_exist(document: str, line: str) -> None:
    words = shlex.split(line)
    if words[0] == "./dev":
        script = (ROOT / "dev").read_text(encoding="utf-8")
        assert re.search(rf"^    {re.escape(words[1])}[ )]", script, re.MULTILINE), f"{document}: {line}"
        return
    command: click.Command = cli
    rest = words[1:]
    while rest and isinstance(command, click.Group):
        assert rest[0] in command.commands, f"{document}: {line}"
        command = command.commands[rest.pop(0)]
    known = {name for parameter in command.params for name in [*parameter.opts, *parameter.secondary_opts]}
    for word in rest:
        if word.startswith("--"):
            assert word in known, f"{document}: {line}"


def test_every_decision_is_listed() -> None:
    listing = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    for path in (ROOT / "docs" / "adr").glob("0*.md"):
        assert path.name in listing


def test_no_committed_file_names_a_registry_or_a_path_of_a_machine() -> None:
    # Written in pieces, so that this file does not find itself.
    forbidden = [
        "py" + "pi.org",
        "python" + "hosted",
        "npm" + "js.org",
        "deb." + "debian",
        "/wor" + "k/",
        "/ro" + "ot/",
    ]
    for path in committed_files():
        content = path.read_bytes()
        for text in forbidden:
            assert text.encode() not in content, f"{identify(path)} holds {text!r}"


def test_the_dev_script_explains_itself_and_refuses_what_it_does_not_know() -> None:
    shown = subprocess.run(["sh", str(ROOT / "dev"), "help"], capture_output=True, text=True, check=False)
    assert shown.returncode == 0
    for command in ("demo", "test", "setup", "lint", "lock", "bench"):
        assert re.search(rf"^  {command} ", shown.stdout, re.MULTILINE)
    refused = subprocess.run(["sh", str(ROOT / "dev"), "dance"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "unknown command 'dance'" in refused.stderr
