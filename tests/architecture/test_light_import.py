"""Heavy libraries are loaded by the commands and classes that use them, not by an import or by help."""

import ast
import json
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import click

import core.softhad
from alertreview.cli.main import cli

ROOT = Path(__file__).resolve().parents[2]
BROUGHT_BY_STREAMLIT = {"anyio", "protobuf", "starlette"}
"""What the gate and the pages take from the server and the messages that Streamlit itself is made of."""
HEAVY = {
    "alembic", "distributed", "numba", "pandas", "plotly", "pyarrow", "scipy", "sklearn", "sqlalchemy", "statsmodels",
    "streamlit", "typst",
}  # fmt: skip
BEHIND_AN_ESTIMATOR = {"pandas", "pyarrow", "scipy", "sklearn"}
"""What `sklearn.base` itself loads, and all that an estimator may load before it is fitted."""


def loaded_after(code: str) -> set[str]:
    """Return the heavy libraries that a fresh interpreter has loaded after some code."""
    ask = f"import json, sys\n{code}\nsys.stderr.write(json.dumps([name.split('.')[0] for name in sys.modules]))"
    ran = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True, timeout=120)
    return HEAVY & set(json.loads(ran.stderr))


def commands(command: click.Command, path: tuple[str, ...] = ()):
    yield path, command
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from commands(child, (*path, name))


def imported_by(package: str) -> set[str]:
    """Return the top names that the modules of a package import, wherever they do."""
    found = set()
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(str(node.module).partition(".")[0])
    return found


def test_each_package_imports_what_it_declares_and_core_nothing_of_the_program():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    offered = packages_distributions()

    def needed_by(*packages: str) -> set[str]:
        ours = {"core", "db", "alertreview", "dashboard"} | set(sys.stdlib_module_names)
        return {offered[name][0].lower().replace("_", "-") for name in set().union(*map(imported_by, packages)) - ours}

    def named(requirements: list[str]) -> set[str]:
        return {re.split(r"[><=\[]", one)[0] for one in requirements}

    extras = {name: named(listed) for name, listed in project["optional-dependencies"].items()}
    assert needed_by("core") == named(project["dependencies"])
    optional = extras["postgresql"] | extras["duckdb"] | extras["cluster"] | extras["metrics"]
    needed = needed_by("db", "alertreview", "dashboard") - named(project["dependencies"])
    assert extras["app"] - needed == set()
    assert needed - extras["app"] - optional == BROUGHT_BY_STREAMLIT


def test_importing_softhad_loads_no_heavy_library_and_takes_less_than_a_second():
    timed = "import core.softhad, time\nassert time.process_time() < 1"
    assert loaded_after(timed) == set()


def test_estimators_load_what_scikit_learn_loads_and_no_more():
    names = ("core.softhad", "core.graph", "core.features", "core.baselines", "core.evaluation")
    assert loaded_after(f"import {', '.join(names)}\nfrom core.softhad import SoftHAD") <= BEHIND_AN_ESTIMATOR


def test_softhad_offers_its_names_before_they_are_loaded():
    code = "import core.softhad as s\nassert {*s.__all__} <= {*dir(s)}\nassert not hasattr(s, 'nothing')"
    assert loaded_after(code) == set()
    assert all(hasattr(core.softhad, name) for name in core.softhad.__all__)


def test_fitting_it_compiles_its_loops():
    fit = "import core.softhad\ncore.softhad.SoftHAD(n_neighbors=1).fit([[0.0], [1.0], [2.0], [3.0]], [1, 0, 1, 0])"
    assert "numba" in loaded_after(fit)


def test_help_of_every_command_loads_none_of_them():
    pages = {path: any(each.type.name == "format" for each in command.params) for path, command in commands(cli)}
    assert len(pages) > 30

    def loaded_by(names_formats: bool) -> set[str]:
        chosen = [[*path, "--help"] for path, names in pages.items() if names == names_formats]
        return loaded_after(f"from alertreview.cli.main import main\nfor page in {chosen!r}: assert main(page) == 0")

    assert not loaded_by(names_formats=False)
    assert loaded_by(names_formats=True) <= {"pandas", "pyarrow", "sqlalchemy"}  # these read the sources
