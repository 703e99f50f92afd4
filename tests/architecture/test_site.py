"""The documentation builds as a site without a warning, holds the reference, and loads nothing from elsewhere."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from core import baselines
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
    text = (site / "reference" / "core.baselines.html").read_text(encoding="utf-8")
    classes = [
        name for name, thing in vars(baselines).items() if getattr(thing, "__module__", "") == baselines.__name__
    ]
    assert all(name in text for name in classes if not name.startswith("_"))


def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r"<(?:script|img|iframe)[^>]+src=[\"']?(?:https?:)?//[^>]*>", text), page
        assert not re.findall(r"<link[^>]+rel=[\"']?(?:stylesheet|preconnect)[^>]+//[^>]*>", text), page


def test_a_broken_link_stops_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = runpy.run_path(str(BUILD))
    lay_out = names["lay_out"]

    def with_a_broken_link(source: Path) -> None:
        lay_out(source)
        (source / "docs" / "glossary.md").write_text("[nowhere](nothing.md)", encoding="utf-8")

    monkeypatch.setitem(names["main"].__globals__, "lay_out", with_a_broken_link)
    monkeypatch.setattr(sys, "argv", ["build.py", "--out", str(tmp_path / "site")])
    assert names["main"]() != 0
