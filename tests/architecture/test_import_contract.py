"""The arrows of the house hold, and the checker that says so would notice if they did not."""

import ast
import re
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


PLANTED = {
    "core/vocabulary.py": ("import sqlalchemy", "from core.scoring import parameters"),
    "core/errors.py": ("import db",),
    "core/statistics/auc.py": ("from core.studies import selection",),
    "core/events/stays.py": ("from core.cohort import cohort",),
    "core/graph/backbone.py": ("from core.simulation import hospital",),
    "db/audit.py": ("import scipy.stats", "import alertreview"),
    "db/models/base.py": ("from db.repositories import cases",),
    "db/connection/engine.py": ("from db.models import base",),
    "db/queries/votes.py": ("from db import database",),
    "alertreview/files.py": ("import streamlit",),
    "alertreview/records/snapshots.py": ("from alertreview.review import review",),
    "alertreview/scoring/ranking.py": ("if TYPE_CHECKING:\n    from alertreview.studies import studies",),
    "alertreview/access/sessions.py": ("def late():\n    from alertreview import application",),
    "dashboard/texts.py": ("import db.database", "import sklearn"),
    "dashboard/charts/timeline.py": ("from dashboard.views import review",),
    "dashboard/views/home.py": ("from dashboard.views import worklist",),
    "dashboard/components/links.py": ("from dashboard.components.worklist import state",),
}
"""Lines that break the contract, by the module in which they are planted."""


def test_planted_forbidden_imports_are_found(house: Path) -> None:
    """All in one run of the checker, which names each import it refuses."""
    for module, lines in PLANTED.items():
        path = house / module
        path.write_text("\n".join([path.read_text(encoding="utf-8"), *lines, ""]), encoding="utf-8")
    result = lint_imports(house)
    assert result.returncode != 0
    report = " ".join(result.stdout.split())
    for module, lines in PLANTED.items():
        name = module.removesuffix(".py").replace("/", ".")
        for line in lines:
            assert re.search(rf"{re.escape(name)} -> {re.escape(imported(line))}\b", report), f"{module}: {line}"


def imported(line: str) -> str:
    """Return the dotted name that a planted line imports; of another distribution, its top package."""
    words = line.split("\n")[-1].replace(" import ", ".").split()
    name = words[-1].lstrip(".")
    return name if name.split(".")[0] in PACKAGES else name.split(".")[0]


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
