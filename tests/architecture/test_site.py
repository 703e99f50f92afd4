"""The documentation builds as a site without a warning, holds the reference, and loads nothing from elsewhere."""

import html
import importlib
import pkgutil
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from sklearn.base import BaseEstimator

import core
from alertreview.cli.main import cli
from alertreview.exports.schema import table_schemas
from dashboard.frame import OFFERED, REACHED_FROM_OTHERS
from tests.support import generated_docs
from tests.support.documents import ROOT

BUILD = ROOT / "docs" / "site" / "build.py"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site") / "site"
    ended = subprocess.run([sys.executable, BUILD, "--out", out], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return out


def test_every_document_and_every_public_module_is_a_page(site: Path) -> None:
    pages = {path.relative_to(site).with_suffix("").as_posix() for path in site.rglob("*.html")}
    documents = [path for path in (ROOT / "docs").rglob("*.md") if path.name != "README.md"]
    assert {path.relative_to(ROOT).with_suffix("").as_posix() for path in documents} <= pages
    assert {"index", "SECURITY", "CHANGELOG", "docs/tutorial", "data/index"} <= pages
    assert {f"reference/{module}" for module in runpy.run_path(str(BUILD))["PUBLIC"]} <= pages


def test_the_reference_holds_what_the_docstrings_say(site: Path) -> None:
    text = (site / "reference" / "core.softhad.html").read_text(encoding="utf-8")
    assert "score_samples" in text
    assert "how unusual their decision is" in text


def estimators() -> Iterator[str]:
    """Yield the name of every public estimator, with the public module that offers it."""
    for module in pkgutil.walk_packages(core.__path__, "core."):
        for name, thing in vars(importlib.import_module(module.name)).items():
            is_estimator = isinstance(thing, type) and issubclass(thing, BaseEstimator)
            if is_estimator and not name.startswith("_") and thing.__module__ == module.name:
                yield f"{module.name.removesuffix('.estimator')}.{name}"


def test_every_command_estimator_column_and_page_has_an_entry(site: Path) -> None:
    text = {path.stem: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    names = list(estimators())
    assert {"core.softhad.SoftHAD", "core.scoring.variants.CalibratedSoftHAD"} <= {*names}
    for name in names:
        assert f'id="{name}"' in text[name.rpartition(".")[0]], name
    for path, _ in generated_docs.commands(cli):
        assert f'id="{"-".join(("alertreview", *path))}"' in text["command-line"], path
    for table, schema in table_schemas().items():
        section = text["export-columns"].partition(f'<h2 id="{table}"')[2].partition("<h2 ")[0]
        for column in schema.columns:
            assert f"<td><code>{html.escape(column.name)}</code></td>" in section, (table, column.name)
    for page, title, *_ in (*OFFERED, *REACHED_FROM_OTHERS):
        address = page.replace("_", "-") if page != "home" else ""
        assert f"<td>{title}</td>\n<td><code>/{address}</code></td>" in text["pages"], page
    assert {path.stem for path in (ROOT / "dashboard" / "views").glob("*.py")} - {"__init__"} == {
        page for page, *_ in (*OFFERED, *REACHED_FROM_OTHERS)
    }


def test_the_page_of_the_package_links_to_what_the_site_holds(site: Path) -> None:
    page = WheelBuilder(str(ROOT)).metadata.core.readme
    assert re.findall(r"\]\((?!https?://|#)[^)]*\)", page) == []
    assert "](" in page
    absolute = runpy.run_path(str(ROOT / "docs" / "site" / "package_page.py"))["package_page"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    page = absolute(readme, "https://site.example/")
    links = re.findall(r"\]\(([^)]*)\)", page)
    assert len(links) == readme.count("](")
    held = [link.removeprefix("https://site.example/") for link in links if "site.example" in link]
    assert len(held) > 20
    for link in held:
        path, _, anchor = link.partition("#")
        assert (site / path).is_file(), link
        assert not anchor or f'id="{anchor}"' in (site / path).read_text(encoding="utf-8"), link


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r"<(?:script|img|iframe)[^>]+src=[\"']?(?:https?:)?//[^>]*>", text), page
        assert not re.findall(r"<link[^>]+rel=[\"']?(?:stylesheet|preconnect)[^>]+//[^>]*>", text), page


@pytest.mark.parametrize(("target", "is_whole"), [("method.md", True), ("nothing.md", False)])
def test_a_broken_link_stops_the_build(
    target: str, is_whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = runpy.run_path(str(BUILD))
    lay_out = names["lay_out"]

    def with_a_link(source: Path) -> None:
        """Lay out the pages of the menu without content, but for a link on one of them."""
        lay_out(source)
        for page in source.rglob("*.md"):
            if page.stem[0].isdigit() or "." in page.stem:
                page.unlink()
                continue
            page.write_text(f"[somewhere]({target})" if page.name == "glossary.md" else "", encoding="utf-8")

    monkeypatch.setitem(names["main"].__globals__, "lay_out", with_a_link)
    monkeypatch.setattr(sys, "argv", ["build.py", "--out", str(tmp_path / "site")])
    assert (names["main"]() == 0) == is_whole
