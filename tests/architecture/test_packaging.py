"""What is shipped: four packages and the presets, pinned requirements without hosts, no module that is not ours."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support import installed
from tests.support.built_once import shared_folder

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("core", "db", "alertreview", "dashboard")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder in which the program is built and installed once for the whole run."""
    return shared_folder(tmp_path_factory)


@pytest.fixture(scope="module")
def wheel(shared: Path) -> set[str]:
    """Names of the files in the wheel, which is built from the sdist."""
    return set(zipfile.ZipFile(installed.built_distributions(shared)[1]).namelist())


def files_below(folder: Path) -> list[str]:
    """Files of the checkout, without what Python or a system leaves behind."""
    return [
        path.relative_to(ROOT).as_posix()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]


def test_the_wheel_holds_exactly_four_packages(wheel: set[str]) -> None:
    top = {name.split("/")[0] for name in wheel}
    assert {name for name in top if not name.endswith(".dist-info")} == set(PACKAGES)


def test_the_wheel_carries_every_module_and_data_file(wheel: set[str]) -> None:
    for package in PACKAGES:
        assert set(files_below(ROOT / package)) <= wheel
    for name in files_below(ROOT / "data"):
        assert f"alertreview/{name}" in wheel


def test_the_sdist_carries_everything_that_its_documents_point_to(shared: Path) -> None:
    with tarfile.open(installed.built_distributions(shared)[0]) as archive:
        held = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    for folder in (*PACKAGES, "data", "docs", "tests", "requirements", "benchmarks"):
        assert set(files_below(ROOT / folder)) <= held
    for name in ("README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "pyproject.toml", "dev"):
        assert name in held


def test_nothing_that_is_required_is_missing_where_the_wheel_is_installed(shared: Path) -> None:
    checked = installed.pip_check(installed.installed_program(shared))
    assert checked.returncode == 0, checked.stdout
    assert "No broken requirements" in checked.stdout


def test_the_installed_program_knows_nothing_of_the_checkout(shared: Path, tmp_path: Path) -> None:
    """Modules, presets, dictionary, migrations, theme: all of them come out of the environment."""
    environment = installed.installed_program(shared)
    script = """
import importlib, pathlib, sys
from alertreview.files import data_folder, preset_paths
from alertreview.exports.schema import table_schemas
from db.schema import head
for name in ("core", "db", "alertreview", "dashboard"):
    print(importlib.import_module(name).__file__)
print(data_folder())
print(pathlib.Path(importlib.import_module("dashboard").__file__).parent / "theme" / "logo.svg")
assert len(preset_paths()) >= 7 and len(table_schemas()) >= 10 and head()
"""
    ended = subprocess.run(
        [str(environment / "bin" / "python"), "-c", script],
        cwd=tmp_path,
        env={"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    for line in ended.stdout.splitlines():
        assert Path(line).is_relative_to(environment), line
        assert Path(line).exists(), line


@pytest.mark.slow
def test_the_installed_program_builds_the_demonstration_in_an_empty_home(shared: Path) -> None:
    person = installed.built_demonstration(shared)
    printed = (person / "printed.txt").read_text(encoding="utf-8")
    assert "no real patient" in printed
    assert "is published" in printed
    assert {path.name for path in person.iterdir()} == {".local", "printed.txt"}
    listed = installed.run_installed(
        installed.installed_program(shared), person, "alerts", "--top", "3", "--home", str(installed.DEMONSTRATION)
    )
    assert listed.returncode == 0, listed.stderr
    assert "SIM-" in listed.stdout


@pytest.mark.parametrize("name", ["core", "db", "dashboard"])
def test_a_package_of_the_same_name_from_elsewhere_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("", encoding="utf-8")
    environment = {"HOME": str(tmp_path), "PYTHONPATH": f"{tmp_path}:{ROOT}"}
    ended = subprocess.run(
        [sys.executable, "-m", "alertreview", "--version"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert ended.stderr.startswith(f"alertreview: The package '{name}' comes from {tmp_path / name}, not from")
    assert ended.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (None, "The package 'core' is missing"),
        (
            "import logging\nfrom .agent import *\n",
            "was replaced by another program's. Install alertreview in its own env",
        ),
        ("", "was replaced by another program's"),
    ],
    ids=["taken away", "r2r", "empty"],
)
def test_a_package_whose_beginning_another_program_took_or_replaced_is_refused(
    left: str | None, said: str, tmp_path: Path
) -> None:
    """As when it was installed into the same folder, or uninstalled again with `core/__init__.py`, as r2r would be."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    beginning = tmp_path / "core" / "__init__.py"
    beginning.unlink() if left is None else beginning.write_text(left, encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-S", "-m", "alertreview", "--version"],
        cwd=tmp_path,
        env={"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 2
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_every_python_at_hand_that_is_promised_reads_every_module(tmp_path: Path) -> None:
    """The newest syntax stays that of the oldest Python."""
    promised = re.findall(
        r"Programming Language :: Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    )
    assert promised
    found = [program for version in promised if (program := shutil.which(f"python{version}"))]
    read = 0
    for program in [*found, sys.executable]:
        ended = subprocess.run(
            [program, "-W", "error", "-c", READ_ALL, *(str(ROOT / package) for package in PACKAGES)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        if "not found" in ended.stderr and ended.returncode == 127:
            continue  # a placeholder for a Python that is not installed
        assert ended.returncode == 0, ended.stderr
        read += 1
    assert read >= 1


READ_ALL = """
import ast, pathlib, sys
for folder in sys.argv[1:]:
    for path in pathlib.Path(folder).rglob("*.py"):
        compile(path.read_text(encoding="utf-8"), str(path), "exec")
"""


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
    for dependency in (*project["dependencies"], *project["optional-dependencies"]["app"]):
        name = re.split(r"[><=\[]", dependency)[0]
        assert re.search(rf"^{re.escape(name)}==", pinned, re.MULTILINE), f"{name}: run ./dev lock"


def test_every_python_gets_the_versions_that_the_tests_ran_with() -> None:
    versions: dict[str, set[str]] = {}
    for path in (ROOT / "requirements").glob("*.txt"):
        pins = re.findall(r"^([^\s=]+)==(\S+)", path.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(dict(pins)) == len(pins), f"{path.name} pins a package twice"
        for name, version in pins:
            versions.setdefault(name, set()).add(version)
    assert {name: several for name, several in versions.items() if len(several) > 1} == {}


def brought_by(package: str, extra: str) -> list[Requirement]:
    """What an installed package needs on any system: without an extra, or what one of its extras adds."""
    try:
        needed = [Requirement(one) for one in metadata.requires(package) or ()]
    except metadata.PackageNotFoundError:  # for another system
        return []
    extras = [re.search(r'extra == "([^"]+)"', str(one.marker or "")) for one in needed]
    return [one for one, found in zip(needed, extras, strict=True) if (found.group(1) if found else "") == extra]


def test_a_site_installs_nothing_that_nothing_needs() -> None:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, groups = pyproject["project"], pyproject["dependency-groups"]
    listed = (*project["dependencies"], *project["optional-dependencies"]["app"], *groups["setup"])
    waiting, needed = [Requirement(one) for one in listed], set()
    while waiting:
        one = waiting.pop()
        for asked in {(canonicalize_name(one.name), extra) for extra in {"", *one.extras}} - needed:
            needed.add(asked)
            waiting += brought_by(*asked)
    pinned = (ROOT / "requirements" / "app.txt").read_text(encoding="utf-8")
    surplus = set(re.findall(r"^([^\s=]+)==", pinned, re.MULTILINE)) - {name for name, _ in needed}
    assert surplus == set(), "run ./dev lock"


@pytest.mark.checklist("E1")
def test_no_lock_file_that_holds_hosts_is_committed() -> None:
    assert not [path for name in ("uv.lock", "pylock.toml", "poetry.lock") for path in ROOT.glob(name)]
