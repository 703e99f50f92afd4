"""The arrows of the house hold, and the checker that says so would notice if they did not."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("core", "db", "alertreview", "dashboard")


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the import contract of pyproject.toml in a folder."""
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", program, "--no-cache"], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """Return a copy of the four packages with their contract, to plant faults in."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_import_contract_holds(house: Path) -> None:
    result = lint_imports(house)
    assert result.returncode == 0, result.stdout
    assert "0 broken" in result.stdout


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("core/vocabulary.py", "import sqlalchemy"),
        ("core/vocabulary.py", "import db"),
        ("db/__init__.py", "import scipy.stats"),
        ("db/__init__.py", "import alertreview"),
        ("alertreview/__init__.py", "import streamlit"),
        ("dashboard/__init__.py", "import db.database"),
        ("dashboard/__init__.py", "import sklearn"),
    ],
)
def test_a_planted_forbidden_import_is_found(house: Path, module: str, line: str) -> None:
    path = house / module
    path.write_text(path.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")
    result = lint_imports(house)
    assert result.returncode != 0
    assert "broken" in result.stdout


def modules() -> list[Path]:
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_each_module_says_what_it_is_for_and_asserts_no_input(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), f"{path} has no first line that says what it is for"
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Assert)]


def test_no_dashboard_module_shadows_the_standard_library() -> None:
    names = {path.stem for path in (ROOT / "dashboard").glob("*.py")}
    names |= {path.name for path in (ROOT / "dashboard").iterdir() if path.is_dir()}
    assert not names & set(sys.stdlib_module_names)


def test_no_pages_folder_switches_on_streamlits_old_navigation() -> None:
    assert not (ROOT / "dashboard" / "pages").exists()


def test_no_package_files_below_tests() -> None:
    assert not list((ROOT / "tests").rglob("__init__.py"))
