"""SECURITY.md says no more than tests show: each of its sentences names tests, and they are there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT

TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
MARK = re.compile(r"\[\^([\w-]+)\]")
DEFINED = dict(re.findall(r"^\[\^([\w-]+)\]: (.+)$", TEXT, re.MULTILINE))


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of the lists and tables of a page, each with its marks."""
    body = text.partition("## Tests")[0]
    for item in re.findall(r"^- (.+?)(?=^- |^#|^\||\n\n)", body, re.MULTILINE | re.DOTALL):
        yield from re.split(r"(?<=[.:]) (?=[A-Z])", " ".join(item.split()))
    yield from re.findall(r"^([^\n]+)\n\n\|", body, re.MULTILINE)


def unproved(text: str) -> list[str]:
    """Return the sentences that do not end with a mark."""
    return [one for one in sentences(text) if not re.search(r"\]([.:])?$", one) or not MARK.search(one)]


def named_by(name: str) -> list[tuple[Path, str]]:
    """Return file and function of the tests that a mark names."""
    groups = re.findall(r"`(tests/[\w/]+\.py)`: ((?:`\w+`(?:, )?)+)", DEFINED[name])
    return [(ROOT / file, test) for file, tests in groups for test in re.findall(r"`(\w+)`", tests)]


def test_no_claim_is_without_a_test() -> None:
    assert len(list(sentences(TEXT))) > 50
    assert unproved(TEXT) == []
    assert unproved("- Nobody gets in[^a]. Nobody gets out.\n\n") == ["Nobody gets out."]
    assert unproved("The matrix:\n\n| a |") == ["The matrix:"]
    used = set(MARK.findall(TEXT.partition("## Tests")[0]))
    assert used == set(DEFINED)


@pytest.mark.parametrize("name", sorted(DEFINED))
def test_every_test_that_a_claim_names_is_there_and_runs(name: str) -> None:
    found = named_by(name)
    assert len(found) == DEFINED[name].count("`test_"), "a line that cannot be read"
    for file, test in found:
        assert file.is_file(), file
        code = file.read_text(encoding="utf-8")
        begin = re.search(rf"((?:^@[^\n]*\n(?:[^\n@d][^\n]*\n|\)\n)*)*)^def {test}\(", code, re.MULTILINE)
        assert begin is not None, f"{file.name} has no {test}"
        assert "skip" not in begin[1], f"{test} is left out"
