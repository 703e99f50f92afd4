"""What the console script says before it works: an old Python, a missing package; and what the shell completes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from alertreview import __main__
from alertreview.cli import options
from core.errors import MissingPackageError
from tests.support.generated_docs import command_line

ROOT = Path(__file__).resolve().parents[2]


def test_an_old_python_is_named_with_the_command_for_a_new_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 9, 18))
    assert __main__.main() == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"Python 3.11 or newer is needed, and {sys.executable} is 3.9." in said
    assert "-m venv DIR" in said


def test_the_oldest_python_is_that_of_the_package() -> None:
    declared = re.search(r'requires-python = ">=(\d+)\.(\d+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert declared is not None
    assert tuple(map(int, declared.groups())) == __main__.OLDEST_PYTHON


def started(tmp_path: Path, missing: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Start the program where a package cannot be imported."""
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        "class Missing:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] == {missing!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Missing())\n"
    )
    environment = {"HOME": str(tmp_path), "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    command = [sys.executable, "-m", "alertreview", *arguments]
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("missing", "arguments"),
    [("click", ["--version"]), ("tqdm", ["--help"]), ("sqlalchemy", ["init"]), ("numpy", ["simulate", "--out", "x"])],
)
def test_a_missing_package_is_one_line_that_says_where_and_what_to_do(
    tmp_path: Path, missing: str, arguments: list[str]
) -> None:
    ended = started(tmp_path, missing, *arguments)
    assert ended.returncode == 2
    assert ended.stderr == f"alertreview: {MissingPackageError(missing)}\n"
    assert str(sys.executable) in ended.stderr


def test_a_package_that_a_command_misses_half_way_is_named_too() -> None:
    @options.log_the_unforeseen
    def command() -> None:
        raise ModuleNotFoundError("No module named 'pandas.core'", name="pandas.core")

    with pytest.raises(MissingPackageError, match="The package 'pandas' is missing"):
        command()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_documented_lines_for_completion_give_a_script(tmp_path: Path, shell: str) -> None:
    variable = f"_ALERTREVIEW_COMPLETE={shell}_source"
    assert variable in command_line()
    name, _, value = variable.partition("=")
    environment = {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", name: value}
    command = [sys.executable, "-c", "import sys; from alertreview.__main__ import main; sys.exit(main())"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "_ALERTREVIEW_COMPLETE" in ended.stdout


def test_the_shell_completes_the_name_of_a_command(tmp_path: Path) -> None:
    environment = {
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
        "_ALERTREVIEW_COMPLETE": "bash_complete",
        "COMP_WORDS": "alertreview study l",
        "COMP_CWORD": "2",
    }
    command = [sys.executable, "-c", "import sys; from alertreview.__main__ import main; sys.exit(main())"]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["plain,list", "plain,lock"]
