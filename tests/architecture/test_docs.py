"""The documents say what is true: links lead somewhere, nothing is left unsaid, nothing of this machine leaks."""

import dataclasses
import itertools
import re
import shlex
import subprocess
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any, get_args, get_type_hints

import click
import pytest
import yaml
from PIL import Image

import alertreview
from alertreview.cli.main import cli
from core.statistics.estimate import Estimate
from core.studies.report import StudyReport
from tests.support import generated_docs
from tests.support.documents import DOCUMENTS, ROOT, anchors, commands_in, identify, links_in

COMMANDS = [(identify(document), line) for document in DOCUMENTS for line in commands_in(document)]
BY_HAND = [path for path in DOCUMENTS if path.name not in generated_docs.PAGES]


def committed_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        # Lint, which may run now, writes and renames files in its caches.
        passed_over = {".venv", ".mypy_cache", ".ruff_cache"}
        return [path for path in ROOT.rglob("*") if passed_over.isdisjoint(path.parts) and path.is_file()]
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def written_by_hand() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in BY_HAND)


@pytest.mark.parametrize("document", DOCUMENTS, ids=identify)
def test_links_and_anchors_lead_somewhere(document: Path) -> None:
    for target, anchor in links_in(document):
        there = document.parent / target if target else document
        assert there.exists(), target
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there), f"{target}#{anchor}"


def test_every_document_picture_and_example_is_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        document = waiting.pop()
        if document in reached:
            continue
        reached.add(document)
        if document.suffix == ".md":
            waiting += [(document.parent / target).resolve() for target, _ in links_in(document) if target]
    for path in [*DOCUMENTS, *(ROOT / "docs" / "pictures").glob("*"), *(ROOT / "docs" / "examples").glob("*.py")]:
        assert path in reached, f"nothing leads to {identify(path)}"


@pytest.mark.parametrize("document", BY_HAND, ids=identify)
def test_every_picture_has_words_for_those_who_do_not_see_it(document: Path) -> None:
    for words in re.findall(r"!\[([^\]]*)\]", document.read_text(encoding="utf-8")):
        assert len(words.split()) >= 3, words


def test_the_readme_shows_a_judgment_that_moves_in_few_bytes() -> None:
    file = ROOT / "docs" / "pictures" / "judgment.gif"
    assert file.stat().st_size < 300_000
    with Image.open(file) as picture:
        assert picture.n_frames == 3
        frames = []
        for at in range(3):
            picture.seek(at)
            frames.append(picture.convert("RGB").tobytes())
    assert len(set(frames)) == 3
    assert "docs/pictures/judgment.gif" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", generated_docs.PAGES)
def test_pages_written_from_the_program_are_current(page: str) -> None:
    written = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert written == generated_docs.PAGES[page](), "run: python -m tests.support.generated_docs"


def test_every_column_of_every_table_says_what_it_holds() -> None:
    for model in generated_docs.models():
        said = generated_docs.column_texts(model)
        for column in model.__table__.columns:
            meaning = generated_docs.column_meaning(column, said)
            assert meaning, f"{model.__tablename__}.{column.name}"
            assert not meaning.startswith("One of"), f"{model.__tablename__}.{column.name}"


def test_every_command_stands_in_a_guide_and_every_option_in_the_list_of_commands() -> None:
    guides = "\n".join(path.read_text(encoding="utf-8") for path in BY_HAND if path.name != "CHANGELOG.md")
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    for path, command in generated_docs.commands(cli):
        if isinstance(command, click.Group):
            continue
        assert f"alertreview {' '.join(path)}" in guides, path
        section = page.split(f"## alertreview {' '.join(path)}\n")[1].split("\n## ")[0]
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert all(f"{name}" in section for name in [*parameter.opts, *parameter.secondary_opts]), path


def test_every_setting_is_explained() -> None:
    text = written_by_hand()
    named: set[str] = set()
    for path in committed_files():
        if path.suffix == ".py" or path.name == "dev":
            named |= set(re.findall(r"\bALERTREVIEW_[A-Z][A-Z_]+[A-Z]\b", path.read_text(encoding="utf-8")))
    assert len(named) > 12
    assert sorted(name for name in named if f"`{name}" not in text) == []


def test_every_kind_of_error_and_warning_is_explained() -> None:
    page = (ROOT / "docs" / "command-line.md").read_text(encoding="utf-8")
    assert len(generated_docs.errors()) > 12
    for error in generated_docs.errors():
        assert f"| `{error.__name__}` | {error.exit_code} |" in page


def test_every_word_of_a_state_a_role_or_an_answer_is_in_the_glossary_or_a_guide() -> None:
    from core import kinds, vocabulary

    text = written_by_hand().lower()
    for words in (vocabulary.Role, vocabulary.TriageState, vocabulary.Decision, kinds.Kind, vocabulary.Split):
        for word in words:
            assert word.value.lower().replace("_", " ") in text.replace("_", " "), word


@pytest.mark.parametrize(("document", "line"), COMMANDS)
def test_commands_and_options_exist(document: str, line: str) -> None:
    words = shlex.split(line)
    if words[0] == "./dev":
        script = (ROOT / "dev").read_text(encoding="utf-8")
        assert re.search(rf"^    {re.escape(words[1])}[ )]", script, re.MULTILINE), f"{document}: {line}"
        if words[1] == "bench" and len(words) > 2:
            names = {path.stem for path in (ROOT / "benchmarks").glob("[a-z]*.py")}
            assert any(name.startswith(words[2]) for name in names), f"{document}: {line}"
        return
    command: click.Command = cli
    of_program = {name for option in cli.params for name in option.opts}
    rest = list(itertools.dropwhile(of_program.__contains__, words[1:]))
    while rest and isinstance(command, click.Group):
        assert rest[0] in command.commands, f"{document}: {line}"
        command = command.commands[rest.pop(0)]
    known = {name for parameter in command.params for name in [*parameter.opts, *parameter.secondary_opts]}
    for word in rest:
        if word.startswith("--"):
            assert word in known, f"{document}: {line}"


def test_every_decision_is_listed_by_its_title_and_has_three_parts() -> None:
    listing = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    for path in (ROOT / "docs" / "adr").glob("0*.md"):
        text, number = path.read_text(encoding="utf-8"), path.name[:4]
        title = text.splitlines()[0].removeprefix(f"# {number}: ")
        assert f"| [{number}]({path.name}) | {title}" in listing
        parts = re.findall(r"^\*\*(Context|Decision|Consequences)\.\*\*", text, re.MULTILINE)
        assert parts == ["Context", "Decision", "Consequences"], path.name


def test_files_that_the_architecture_names_are_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:core|db|alertreview|dashboard|data|tests|benchmarks)/[\w/*.-]*)`", text)
    assert len(named) > 40
    for name in named:
        assert list(ROOT.glob(name.rstrip("/").replace("TABLE", "*"))), name


@pytest.mark.parametrize("name", ["method.md", "failures-elsewhere.md"])
def test_tests_that_a_document_calls_on_are_there(name: str) -> None:
    text = (ROOT / "docs" / name).read_text(encoding="utf-8")
    called = re.findall(r"`((?:core|db|alertreview|dashboard|browser)/(?:\w+/)*test_\w+\.py)`([\w, ]*)", text)
    assert len(called) > 15
    for file, words in called:
        there = re.findall(r"def (test_\w+)", (ROOT / "tests" / file).read_text(encoding="utf-8"))
        for part in re.findall(r"\w+", words):
            assert any(part in test for test in there), f"{file}: {part}"


def test_no_committed_file_names_a_registry_or_a_path_of_a_machine() -> None:
    # Written in pieces, so that this file does not find itself.
    forbidden = [
        "py" + "pi.org",
        "python" + "hosted",
        "npm" + "js.org",
        "deb." + "debian",
        "/wor" + "k/",
        "/ro" + "ot/",
    ]
    for path in committed_files():
        content = path.read_bytes()
        for text in forbidden:
            assert text.encode() not in content, f"{identify(path)} holds {text!r}"


def test_the_dev_script_explains_itself_and_refuses_what_it_does_not_know() -> None:
    shown = subprocess.run(["sh", str(ROOT / "dev"), "help"], capture_output=True, text=True, check=False)
    assert shown.returncode == 0
    for command in ("demo", "test", "setup", "lint", "lock", "bench"):
        assert re.search(rf"^  {command} ", shown.stdout, re.MULTILINE)
    refused = subprocess.run(["sh", str(ROOT / "dev"), "dance"], capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "unknown command 'dance'" in refused.stderr


def test_the_citation_names_this_version_and_what_its_format_asks_for() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    assert (cited["cff-version"], cited["type"], cited["license"]) == ("1.2.0", "software", "BSD-3-Clause")
    assert str(cited["version"]) == alertreview.__version__
    date.fromisoformat(cited["date-released"])
    paper = cited["preferred-citation"]
    assert {"type", "title", "authors"} <= paper.keys()
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").replace("> ", "").split())
    assert all(f"{one['given-names']} {one['family-names']}" in readme for one in paper["authors"])
    assert paper["title"] in readme


def test_reasons_for_missing_figures_are_the_words_of_the_code() -> None:
    text = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    section = text.split("## When there is no figure\n")[1].split("\n## ")[0]
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "core" / "statistics").glob("*.py"))
    code += "".join(path.read_text(encoding="utf-8") for path in (ROOT / "core" / "studies").glob("*.py"))
    quoted = re.findall(r"`([^`]+)`", section)
    assert len(quoted) > 20
    assert [words for words in quoted if words not in code] == []


def test_messages_to_look_up_are_the_words_of_the_code() -> None:
    text = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    section = text.split("## Troubleshooting\n")[1].split("\n## ")[0]
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "db").rglob("*.py"))
    parts = [
        part.strip()
        for message in re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)[1:]
        for part in re.split(r"\b[NM]\b", message)
    ]
    assert len(parts) > 8
    assert [part for part in parts if part not in code] == []


def test_each_figure_of_the_summary_of_results_is_in_its_section() -> None:
    page = ROOT / "docs" / "results.md"
    summary = page.read_text(encoding="utf-8").split("## What was promised, and what is met\n")[1].split("\n## ")[0]
    sections: dict[str, str] = {}
    for document in (page, page.with_name("performance.md"), page.with_name("operations.md")):
        for part in re.split(r"^##+ ", document.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
            name = re.sub(r"[^\w\- ]", "", part.splitlines()[0].lower()).replace(" ", "-")
            sections[f"{document.name if document != page else ''}#{name}"] = part.replace("−", "-")
    section, rows = "", [line.strip("|").split(" | ") for line in summary.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 20
    for claim, _, reached, *_ in rows:
        linked = re.search(r"\]\(([^)]+)\)", claim)
        section = sections[linked[1]] if linked else section
        for figure in re.findall(r"(?<![\w.])\.?\d[\d,.e-]*\d|(?<![\w.])\d+", reached):
            assert re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d)", section), f"{claim}: {figure}"


def numbers_of_a_report(kind: Any = StudyReport, seen: set[type] | None = None) -> Iterator[str]:
    """Yield the names of all fields of a report that hold numbers or figures; of an estimate only its own name."""
    seen = set() if seen is None else seen
    if not dataclasses.is_dataclass(kind) or kind in seen:
        return
    seen.add(kind)
    for name, hint in get_type_hints(kind).items():
        kinds = set(parts_of(hint))
        if kinds & {Estimate, int, float}:
            yield name
        for part in kinds - {Estimate}:
            yield from numbers_of_a_report(part, seen)


def parts_of(hint: Any) -> Iterator[Any]:
    yield hint
    for argument in get_args(hint):
        yield from parts_of(argument)


def test_statistics_names_every_figure_of_a_report_and_no_other() -> None:
    text = (ROOT / "docs" / "statistics.md").read_text(encoding="utf-8")
    section = text.split("## Every figure, with its formula\n")[1].split("\n*Jackknife.*")[0]
    rows = [line[1:-1].split("|") for line in section.splitlines() if line.startswith("| ")][1:]
    assert all(len(row) == 4 for row in rows)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row[0] + row[1] + row[2])}
    settings = {"format_version", "level", "headline_budget", "n"}
    expected = set(numbers_of_a_report()) - settings
    assert len(expected) > 60
    assert expected - named == set()
    assert named - expected == {"ceiling", "ceiling_second_rule", "dawid_skene", "weighted"} - expected
