"""Reading the house: small functions and modules, each of which says what it is for, and nothing that nobody uses."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("core", "db", "alertreview", "dashboard", "benchmarks")
MOST_LINES_OF_A_FUNCTION = 60
"""Without its docstring, which may be long: shapes, units, errors and sources belong there."""
USED_FROM_ELSEWHERE = re.compile(
    r"^(revision|down_revision|upgrade|downgrade|model_config|cache_ok|impl|scores_|support_)$"
)
"""Names that Alembic, pydantic, SQLAlchemy and scikit-learn's users read."""

MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def lines_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function from its name to its end, without the docstring."""
    first = function.body[0]
    has_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    text = (first.end_lineno or 0) - first.lineno + 1 if has_text else 0
    return (function.end_lineno or 0) - function.lineno + 1 - text


def test_the_words_of_a_decision_come_from_its_import() -> None:
    """What was "ordered" in one hospital's records was "measured" in another's; `Kind.worded` knows."""
    own = re.compile(r"(kind|Kind\(.*\))\.words\.(noun|done|act|had|happened)\b")
    found = [name_of(path) for path in MODULES if own.search(path.read_text(encoding="utf-8"))]
    assert found == ["alertreview/exports/schema.py"], "the data dictionary alone speaks of kinds in general"


def test_no_function_is_long() -> None:
    found = [
        f"{name_of(path)}: {node.name}, {lines_of(node)} lines"
        for path in MODULES + TESTS
        if "versions" not in path.parts
        for node in _functions(parsed(path).body)
        if lines_of(node) > MOST_LINES_OF_A_FUNCTION
    ]
    assert found == []


def _functions(statements: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """All functions below some statements; expressions, which hold none, are not walked through."""
    for one in statements:
        if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef):
            yield one
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            yield from _functions(getattr(one, name, []))


@pytest.mark.parametrize("package", ["core", "db", "alertreview", "dashboard"])
def test_every_name_of_a_module_is_used_somewhere(package: str) -> None:
    """Also in a test or a measurement: a slow, obvious version that a fast one is held to is of use."""
    everywhere = _words()
    unused = [
        f"{name_of(path)}: {name}"
        for path in MODULES
        if path.is_relative_to(ROOT / package)
        for name in _named(parsed(path))
        if everywhere[name] < 2 and not USED_FROM_ELSEWHERE.match(name) and not name.startswith("__")
    ]
    assert unused == []


def _named(module: ast.Module) -> list[str]:
    """Functions, classes and constants of a module; not commands and listeners, which a decorator hands on."""
    names = []
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if not any(isinstance(decorator, ast.Call) for decorator in node.decorator_list):
                names.append(node.name)
        elif isinstance(node, ast.Assign):
            names += [target.id for target in node.targets if isinstance(target, ast.Name)]
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.append(node.target.id)
    return names


def test_missing_moments_and_durations_name_their_unit() -> None:
    # NumPy 2.5 warns where they do not, and a later version refuses.
    unitless = re.compile(r"""(datetime64|timedelta64)\(("NaT"|-?\d[\d_]*)\)""")
    assert [name_of(path) for path in MODULES + TESTS if unitless.search(path.read_text(encoding="utf-8"))] == []


def test_every_name_that_a_measurement_imports_exists() -> None:
    """Measurements are typed and run by hand only, so that nothing else notices a name that has moved."""
    missing = []
    for path in (ROOT / "benchmarks").glob("*.py"):
        every = list(ast.walk(parsed(path)))
        # Older versions, which are compared, had some names elsewhere.
        older = {inner for node in every if isinstance(node, ast.ExceptHandler) for inner in ast.walk(node)}
        for node in every:
            if not isinstance(node, ast.ImportFrom) or node in older:
                continue
            if str(node.module).split(".")[0] in {*PACKAGES, "tests"}:
                known = _importable(str(node.module))
                missing += [f"{name_of(path)}: {node.module}.{a.name}" for a in node.names if a.name not in known]
    assert missing == []


@cache
def _importable(module: str) -> frozenset[str]:
    """Names that a module of the repository defines or imports at its top, and the modules of a package."""
    folder = ROOT.joinpath(*module.split("."))
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    names = {inner.stem for inner in folder.glob("*")} if folder.is_dir() else set()
    if path.exists():
        for node in ast.walk(parsed(path)):
            names.update(_names_in(node))
            names.update(alias.asname for alias in getattr(node, "names", []) if getattr(alias, "asname", None))
    return frozenset(names)


@cache
def _words() -> Counter[str]:
    """How often each name stands in the code of the whole repository; words of comments and sentences do not count."""
    words: Counter[str] = Counter()
    for folder in (*PACKAGES, "tests", "docs"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(parsed(path)):
                words.update(_names_in(node))
    return words


def _names_in(node: ast.AST) -> list[str]:
    """Names that a piece of code defines or uses, also where they are written as text: to patch, to look up, to run."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return [name]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.alias(name=name):
            return name.split(".")
        case ast.Constant(value=str(text)) if " " not in text:
            return re.findall(r"\w+", text)
    return []


TRANSLATED = re.compile(
    r"(?<!here )\bis no (?!longer|more|such)\w|\bstands? (in|at|on) no\b|\b[Oo]ne (row|graph|type|line) a\b"
    r"|\b[Pp]ut away\b|awaits its|\bhere is none\b|\bmay be anybody|\b[Nn]obody may\b|\b[Bb]eside it\b"
    r"|\b[Ii]ts alerts\b|is not here\b|[Tt]aken back:|\btakes? no (more )?judgment|\bdoubts itself"
    r"|\b[Mm]end (the|its)\b|\bstood there\b|\(needed\)|\bset\w* \w+ up\b|\bgood for \d+ (h|days)"
)
"""Phrases of other languages in English words, which readers of pages, commands and exports stumble over."""


def test_shown_words_read_like_english() -> None:
    found = [
        f"{name_of(path)}:{node.lineno}: {node.value.strip()[:80]}"
        for path in MODULES
        if path.parts[len(ROOT.parts)] in {"dashboard", "alertreview"}
        for node in _strings(parsed(path))
        if TRANSLATED.search(node.value)
    ]
    assert found == []


def _strings(module: ast.Module) -> list[ast.Constant]:
    """Texts of a module that are used, without docstrings."""
    unused = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
    return [
        node
        for node in ast.walk(module)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in unused
    ]


def test_every_change_is_under_a_heading_of_the_change_list() -> None:
    """Added, Changed, Fixed or Security: a line on top is a merge that brought former lines back."""
    unreleased = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").split("\n## ")[1]
    assert re.findall(r"^### (\w+)$", unreleased, re.MULTILINE) == ["Added", "Changed", "Fixed", "Security"]
    assert "\n- " not in unreleased.split("\n### ")[0], "put the line under Added, Changed, Fixed or Security"
