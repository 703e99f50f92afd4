"""The list of keys on each page names every key that a button of the page has, and no other."""

import re

import pytest
from streamlit.elements.lib.shortcut_utils import normalize_shortcut
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from core.vocabulary import TriageState
from dashboard.components.keys import KEYS
from tests.dashboard.conftest import OpenPage, nothing_failed
from tests.dashboard.doubles.application import FakeApplication
from tests.support.documents import ROOT


def bound(page: AppTest) -> set[str]:
    assert nothing_failed(page)
    return {one.proto.shortcut for one in page.button if one.proto.shortcut}


def press(page: AppTest, key: str) -> AppTest:
    (button,) = [one for one in page.button if one.proto.shortcut == key]
    return button.click().run()


def through_triage(page: AppTest) -> set[str]:
    """Keys of every state of a triage bar: open, either question asked, done, and closed."""
    found = bound(page)
    for question in ("d", "s"):
        found |= bound(press(page, question))
        press(page, "escape")
    return found | bound(press(page, "d")) | bound(press(page, "1"))


@pytest.mark.parametrize("name", sorted(KEYS))
def test_each_key_bound_is_listed_and_each_listed_is_bound(open_page: OpenPage, name: str) -> None:
    double = FakeApplication()
    page = open_page(name, double, **{"alert": {"alert": "1000"}, "adjudication": {"study": "demo"}}.get(name, {}))
    found = through_triage(page) if name in {"alert", "worklist"} else bound(page)
    if name == "worklist":
        found |= bound(open_page(name, double, triage=TriageState.DISMISSED))
    if name == "alert":
        panel = open_page(name, FakeApplication(with_panel=True), alert="1005")
        found |= bound(panel)
        found |= bound(press(panel, "3"))
    assert found == {normalize_shortcut(one) for shortcuts, _ in KEYS[name] for one in shortcuts}


@pytest.mark.parametrize("name", sorted(KEYS))
def test_the_list_shows_every_key_with_its_meaning(open_page: OpenPage, name: str) -> None:
    page = open_page(
        name, FakeApplication(), **{"alert": {"alert": "1000"}, "adjudication": {"study": "demo"}}.get(name, {})
    )
    (listed,) = [one.value for one in page.markdown if "**?** this list" in one.value]
    for _, words in KEYS[name]:
        assert words in listed
    assert ("**/** search" in listed) is (name in {"alert", "worklist"}), "a case is not left by a slip"


@pytest.mark.parametrize("name", sorted(KEYS))
def test_a_phone_has_no_keys(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(ContextProxy, "headers", {"User-Agent": "Mobile"})
    given = {"alert": {"alert": "1005"}, "adjudication": {"study": "demo"}}.get(name, {})
    assert bound(open_page(name, FakeApplication(with_panel=True), **given)) == set()


def test_the_guide_for_clinicians_names_every_key() -> None:
    guide = (ROOT / "docs" / "clinicians.md").read_text(encoding="utf-8")
    named = "|".join([*re.findall(r"\*\*([^*\s]+)\*\*", guide), *re.findall(r"^\| ([^|]+) \|", guide, re.MULTILINE)])
    spelled = {"Left": "←", "Right": "→", "Escape": "Esc", "Ctrl+Enter": "Ctrl + Enter"}
    for key in {key for rows in KEYS.values() for keys, _ in rows for key in keys}:
        assert re.search(rf"(^|[|, ]){re.escape(spelled.get(key, key))}([|, ]|$)", named), key
