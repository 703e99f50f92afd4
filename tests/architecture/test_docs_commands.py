"""What the documents show is done: commands of each document one after the other on a small site, and the examples."""

import json
import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from alertreview.application import open_application
from alertreview.cli.main import main
from core.simulation import hospital
from core.simulation.hospital import simulate_cohort, write_meds
from tests.support.built_once import shared_folder
from tests.support.demo_site import small_demonstration
from tests.support.documents import DOCUMENTS, ROOT, identify, shown_commands
from tests.support.generated_docs import PAGES

NOT_RUN = {
    r"^\./dev ": "sets an environment up; continuous integration does it",
    r"^alertreview demo\b": "tests of packaging do it with the installed program",
    r"^alertreview dashboard\b": "serves until it is stopped; the browser tests start it",
    r"^alertreview reproduce\b": "takes hours; tests of reproduce do it with few runs",
    r"^alertreview sensitivity\b": "scores a run again and again; its own tests do it on a smaller one",
    r"--cluster tcp://HOST:PORT": "needs a cluster; tests of the cluster start one",
    r"/alertreview-demo$": "needs the whole demonstration; tests of the command do it on a small one",
    r"--labels ": "needs label files; the tests of label tasks write them",
    r"--accept ": "needs an import with a red check; the tests of doubts make one",
    r"postgresql\+psycopg://": "needs a server; tests of roles start one",
}
"""Commands that only have to exist, and why."""
MAY_REFUSE = {r"^alertreview doctor": {0, 1}, r"^alertreview db downgrade": {0, 2}}
"""Exit codes of commands whose answer may be no: findings, or rows that would be lost."""

TOLD = [
    document
    for document in DOCUMENTS
    if document.name not in PAGES and any(line.startswith("alertreview ") for line in shown_commands(document))
]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Records of a hospital so small that a whole story takes seconds."""
    folder = tmp_path_factory.mktemp("records") / "source"
    write_meds(simulate_cohort(n_patients=40, seed=7), folder)
    return folder


@pytest.fixture(scope="module")
def scored_site(records: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site with one import and one published run, for documents that begin in the middle."""
    home = tmp_path_factory.mktemp("site") / "home"
    for command in (["import", str(records)], ["score", "--scorer", "softhad"]):
        assert main([*command, "--home", str(home)]) == 0
    return home


class Story:
    """A person who does what a document shows, in a folder of her own."""

    def __init__(self, folder: Path, site: Path, records: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys, self.printed = folder, capsys, ""
        self.named = {
            "SITE": site,
            "SOURCE": records,
            "FOLDER": records,
            "NEXT_DAY": records,
            "DIR": folder / "DIR",
            "NEW": folder / "NEW",
        }

    def does(self, line: str) -> None:
        words = [self._meant(word) for word in shlex.split(line)[1:]]
        code = main(words)
        ended = self.capsys.readouterr()
        self.printed += ended.out
        allowed = next((codes for pattern, codes in MAY_REFUSE.items() if re.search(pattern, line)), {0})
        assert code in allowed, f"{line}: {ended.out}{ended.err}"
        for before, word in pairwise(words):
            if before in {"--out", "--report"}:
                assert (self.folder / word).exists(), f"{line}: {word} was not written"
        if words[:2] == ["db", "downgrade"]:
            assert main(["db", "upgrade"]) == 0

    def _meant(self, word: str) -> str:
        """What a word in capitals stands for."""
        if word.startswith("DIR/"):
            return str(max((self.folder / "DIR").iterdir()))
        if word == "HASH":
            return re.findall(r"head ([0-9a-f]{64})", self.printed)[-1]
        return str(self.named.get(word, word))


@pytest.mark.parametrize("document", TOLD, ids=identify)
def test_what_a_document_shows_works_from_its_first_line_to_its_last(
    document: Path,
    records: Path,
    scored_site: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = [line for line in shown_commands(document) if not any(re.search(why, line) for why in NOT_RUN)]
    site = tmp_path / "site"
    if not any(line.startswith(("alertreview import", "alertreview init")) for line in lines):
        shutil.copytree(scored_site, site)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ALERTREVIEW_HOME", str(site))
    monkeypatch.setitem(hospital.SIZES, "small", hospital.SIZES["small"] | {"n_patients": 40})
    story = Story(tmp_path, site, records, capsys)
    capsys.readouterr()
    for line in lines:
        story.does(line)


def test_every_command_that_is_not_run_is_still_shown_somewhere() -> None:
    shown = [line for document in DOCUMENTS for line in shown_commands(document)]
    for pattern in NOT_RUN:
        assert any(re.search(pattern, line) for line in shown), pattern


@pytest.fixture
def printed_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Run an example as a script, in an empty folder, and give what it printed."""

    def running(name: str, *arguments: str) -> str:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        capsys.readouterr()
        runpy.run_path(str(ROOT / "docs" / "examples" / name), run_name="__main__")
        return capsys.readouterr().out

    return running


@pytest.mark.parametrize(("name", "promised"), [("estimator", "turned_around"), ("own_features", "blood culture")])
def test_an_example_runs_as_it_is(name: str, promised: str, printed_by: Callable[..., str]) -> None:
    assert promised in printed_by(f"{name}.py")


def test_the_example_that_compares_scorers_gives_what_the_report_gives(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, printed_by: Callable[..., str]
) -> None:
    home = shutil.copytree(small_demonstration(shared_folder(tmp_path_factory)) / "home", tmp_path / "home")
    exported = tmp_path / "exported"
    with open_application(home) as application:
        application.exports.study("demo", ("csv",), exported)
        result = application.reports.report("demo").results[0]
    printed = printed_by("compare_scorers.py", str(exported), "softhad", "logistic")
    for scorer in result.scorers:
        if scorer.scorer in {"softhad", "logistic"}:
            found = scorer.auc_weighted
            assert f"AUC of {scorer.scorer}: {found.value:.3f} ({found.low:.3f} to {found.high:.3f})" in printed
    assert re.search(r"^difference: -?0\.\d{3} \(.*, p = [01]\.\d{3}$", printed, re.MULTILINE)


def test_the_tutorial_runs_and_runs_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    notebook = json.loads((ROOT / "docs" / "examples" / "tutorial.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    for _ in range(2):
        for cell in cells:
            exec(cell, names)
        figure, truth = names["figure"], names["truth"]
        assert figure.low < truth < figure.high
    assert len(names["cases"]) == 120
    assert not any(cell.get("outputs") for cell in notebook["cells"]), "commit the notebook without outputs"


def test_every_example_is_run() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    for path in (ROOT / "docs" / "examples").glob("*.py"):
        assert f'"{path.stem}' in text, path.name
