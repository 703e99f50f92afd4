"""What is shipped: four packages and the presets, pinned requirements without hosts, no module that is not ours."""

import re
import tomllib
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """Build the wheel from this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    path = next(WheelBuilder(str(ROOT)).build(directory=str(folder), versions=["standard"]))
    return zipfile.ZipFile(path)


def test_the_wheel_holds_exactly_four_packages(wheel: zipfile.ZipFile) -> None:
    top = {name.split("/")[0] for name in wheel.namelist()}
    assert {name for name in top if not name.endswith(".dist-info")} == {"core", "db", "alertreview", "dashboard"}


def test_the_wheel_carries_every_module_and_data_file(wheel: zipfile.ZipFile) -> None:
    names = set(wheel.namelist())
    for package in ("core", "db", "alertreview", "dashboard"):
        for path in (ROOT / package).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert path.relative_to(ROOT).as_posix() in names
    for path in (ROOT / "data").rglob("*.yaml"):
        assert f"alertreview/{path.relative_to(ROOT).as_posix()}" in names


@pytest.mark.checklist("E1")
def test_every_requirement_is_pinned_with_a_hash_and_names_no_host() -> None:
    for path in (ROOT / "requirements").glob("*.txt"):
        text = path.read_text(encoding="utf-8")
        assert "://" not in text
        assert "index-url" not in text
        requirements = re.split(r"\n(?=\S)", text.strip())
        assert len(requirements) > 20
        for requirement in requirements:
            assert "==" in requirement, requirement
            assert "--hash=sha256:" in requirement, requirement


def test_every_declared_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    pinned = (ROOT / "requirements" / "app.txt").read_text(encoding="utf-8")
    for dependency in project["dependencies"]:
        name = re.split(r"[><=\[]", dependency)[0]
        assert re.search(rf"^{re.escape(name)}==", pinned, re.MULTILINE), f"{name}: run ./dev lock"


@pytest.mark.checklist("E1")
def test_no_lock_file_that_holds_hosts_is_committed() -> None:
    assert not [path for name in ("uv.lock", "pylock.toml", "poetry.lock") for path in ROOT.glob(name)]
