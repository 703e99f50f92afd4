"""A whole run in which an id of the checklist has no passing test fails; runs of parts only count."""

from pathlib import Path

import pytest

from tests.support.traceability import CHECKLIST

pytest_plugins = ("pytester",)
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def only_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plugins that have nothing to do with this would take most of the time of these runs."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def suite(pytester: pytest.Pytester, *, left_out: str = "", workers: str = "") -> pytest.Pytester:
    """A suite with one passing test for each id but one."""
    pytester.makeini(f"[pytest]\ntestpaths = tests\npythonpath = {ROOT}\naddopts = --strict-markers {workers}")
    folder = pytester.mkdir("tests")
    (folder / "conftest.py").write_text('pytest_plugins = ("tests.support.traceability",)\n', encoding="utf-8")
    ids = [name for name in CHECKLIST if name != left_out]
    broken = (
        f"\n@pytest.mark.checklist({left_out!r})\ndef test_skipped():\n    pytest.skip('no piece')\n"
        if left_out
        else ""
    )
    (folder / "test_all.py").write_text(
        f"import pytest\n@pytest.mark.checklist(*{ids!r})\ndef test_all():\n    pass\n{broken}", encoding="utf-8"
    )
    return pytester


@pytest.mark.parametrize("workers", ["", "-p xdist -n 1"])
def test_a_whole_run_fails_without_a_passing_test_for_an_id(pytester: pytest.Pytester, workers: str) -> None:
    result = suite(pytester, left_out="C7", workers=workers).runpytest_subprocess()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*without a passing test*", f"C7: {CHECKLIST['C7']}", "*test_skipped (skipped)*"])


def test_a_missing_piece_is_named_and_fails_nothing(pytester: pytest.Pytester) -> None:
    suite(pytester, left_out="C7")
    tests = pytester.path / "tests" / "test_all.py"
    said = "missing piece: a browser: apt install browser"
    tests.write_text(tests.read_text(encoding="utf-8").replace("no piece", said), encoding="utf-8")
    result = pytester.runpytest_subprocess()
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*left out, because this machine lacks*", "a browser: apt install browser (1 tests)"])


def test_a_whole_run_with_all_ids_passes(pytester: pytest.Pytester) -> None:
    result = suite(pytester).runpytest_subprocess("--checklist")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["A1    1  *"])


@pytest.mark.parametrize("part", [("tests/test_all.py",), ("-k", "all")])
def test_a_run_of_a_part_only_counts(pytester: pytest.Pytester, part: tuple[str, ...]) -> None:
    assert suite(pytester, left_out="C7").runpytest_subprocess(*part).ret == pytest.ExitCode.OK


def test_an_unknown_id_is_a_mistake(pytester: pytest.Pytester) -> None:
    suite(pytester)
    (pytester.path / "tests" / "test_more.py").write_text(
        "import pytest\n@pytest.mark.checklist('Z9')\ndef test_x():\n    pass\n", encoding="utf-8"
    )
    result = pytester.runpytest_subprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*the checklist has no Z9*"])
