"""The systemd units of the documentation, run as systemd runs them: the same words and variables, in other folders."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from alertreview.cli.main import main
from tests.conftest import ROOT

UNITS = ROOT / "docs" / "deploy"
PROGRAM = "/opt/alertreview/bin/alertreview"


def run_unit(
    name: str, folders: Mapping[str, Path], patch: pytest.MonkeyPatch, urls: Mapping[str, str] | None = None
) -> None:
    """Run every ExecStart line of a unit in this process, one after the other; each must end with 0.

    Parameters
    ----------
    name : str
        Of the file.
    folders : mapping of str to Path
        Where the unit's folders are here.
    patch : MonkeyPatch
        Sets the unit's environment.
    urls : mapping of str to str, optional
        With these databases in the place of those in the comment on its environment file, whose lines then count.
    """
    text = (UNITS / name).read_text(encoding="utf-8")
    lines = re.findall(r"^Environment=(\w+)=(.*)$", text, re.MULTILINE)
    if urls:
        lines += re.findall(r"^# ([A-Z_]+)=(.*)$", text, re.MULTILINE)
    here = {there: str(folder) for there, folder in folders.items()} | dict(urls or {})
    variables = {name: " ".join(here.get(word, word) for word in value.split()) for name, value in lines}
    for variable, value in variables.items():
        patch.setenv(variable, value)
    for program, *words in (line.split() for line in re.findall(r"^ExecStart=(.*)$", text, re.MULTILINE)):
        assert program == PROGRAM
        given: list[str] = []
        for word in words:
            given += variables[word[1:]].split() if word.startswith("$") else [here.get(word, word)]
        assert main(given) == 0, given
