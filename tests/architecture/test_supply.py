"""Where everything comes from and how it is started: installed by hash, licences listed, sound units."""

import ast
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.licences import PAGE, licence, page, pinned
from tests.support.pieces import require

ROOT = Path(__file__).resolve().parents[2]
UNITS = sorted([*(ROOT / "docs" / "deploy").glob("*.service"), *(ROOT / "docs" / "deploy").glob("*.timer")])


@pytest.mark.checklist("E1")
def test_the_script_installs_with_hashes_alone() -> None:
    script = (ROOT / "dev").read_text(encoding="utf-8")
    assert "--require-hashes" in script
    assert re.search(r"pip_install --no-deps --no-build-isolation --editable", script)


@pytest.mark.checklist("E2")
def test_the_licence_of_every_requirement_is_listed_and_none_asks_for_the_source() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.support.licences"
    for package in pinned():
        assert licence(package), f"{package} declares no licence"
        assert not re.search(r"\b(A?GPL)\b", licence(package)), package


def test_the_units_say_where_to_read_on_and_keep_the_program_in() -> None:
    assert {unit.name for unit in UNITS} == {
        "alertreview-backup.service",
        "alertreview-backup.timer",
        "alertreview-morning.service",
        "alertreview-morning.timer",
        "alertreview.service",
    }
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8")
        if unit.suffix == ".service":
            for line in ("NoNewPrivileges=yes", "ProtectSystem=strict", "UMask=0077", "IPAddressDeny=any"):
                assert line in text, f"{unit.name}: {line}"


@pytest.mark.checklist("E3")
def test_systemd_finds_the_units_sound(tmp_path: Path) -> None:
    found = shutil.which("systemd-analyze")
    require(found is not None, "systemd-analyze", "apt install systemd")
    for unit in UNITS:
        # The program need not be installed in /opt on the machine of the test.
        text = unit.read_text(encoding="utf-8").replace("/opt/alertreview/bin/alertreview", "/bin/true")
        (tmp_path / unit.name).write_text(text, encoding="utf-8")
    names = [str(tmp_path / unit.name) for unit in UNITS]
    ended = subprocess.run([str(found), "verify", *names], capture_output=True, text=True, check=False)
    about_ours = [line for line in (ended.stdout + ended.stderr).splitlines() if "alertreview" in line]
    assert about_ours == []
    assert ended.returncode == 0


@pytest.mark.checklist("E3")
def test_the_units_start_commands_that_exist() -> None:
    from alertreview.cli.main import cli

    for unit in UNITS:
        for line in re.findall(r"^ExecStart=(.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE):
            program, *words = line.split()
            assert program == "/opt/alertreview/bin/alertreview"
            command = cli
            while words and words[0] in getattr(command, "commands", {}):
                command = command.commands[words.pop(0)]  # type: ignore[attr-defined]
            known = {name for parameter in command.params for name in [*parameter.opts, *parameter.secondary_opts]}
            assert {word for word in words if word.startswith("--")} <= known, line


def test_no_container_recipe_is_there_that_nobody_tries() -> None:
    assert [path.name for path in ROOT.glob("*ockerfile*")] == []


@pytest.mark.checklist("D2")
def test_nothing_is_unpickled_anywhere() -> None:
    """Also not by a library on our behalf: arrays and models are read with pickling switched off."""
    forbidden = re.compile(
        r"\b(?:import|from) (?:pickle|dill|cloudpickle|shelve|marshal)\b|allow_pickle=True|read_pickle|joblib\.load\b"
    )
    for package in ("core", "db", "alertreview", "dashboard"):
        for path in (ROOT / package).rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            assert not forbidden.search(text), path.name
            for call in ast.walk(ast.parse(text)):
                if isinstance(call, ast.Call) and ast.unparse(call.func) in {"np.load", "numpy.load"}:
                    assert "allow_pickle=False" in ast.unparse(call), f"{path.name}: {ast.unparse(call)}"
