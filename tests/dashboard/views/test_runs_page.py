"""The Runs page says in words what was imported and scored."""

import re
from dataclasses import fields

import pytest

from alertreview.records import catalogue
from alertreview.scoring.resume import GROUP_WEIGHTS
from core.scoring.parameters import ScoringParameters
from dashboard.components.runs.parameters import WORDS, parameters_in_words
from tests.dashboard.conftest import OpenPage, nothing_failed, words
from tests.dashboard.doubles.application import FakeApplication

RAW = re.compile(r"[a-z]_[a-z]|\bn_|[A-Z]{3,}_|[{}]|\bentries\b")


def test_every_parameter_of_a_run_has_a_label() -> None:
    stored = {one.name for one in fields(ScoringParameters)} | {"since", GROUP_WEIGHTS, catalogue._PARAMETER}
    assert stored == set(WORDS)
    assert len(set(WORDS.values())) == len(WORDS)


def test_values_are_written_as_numbers_and_what_is_not_set_is_left_out() -> None:
    weights = [{"now": 0.25, "stay": 0.0151234}, {"now": 0.3, "stay": 0.1}]
    stored = {"n_history_pairs": 500_000, "clip": 2.5, "length_scale": "local", "since": None, GROUP_WEIGHTS: weights}
    shown = parameters_in_words(stored)
    assert list(shown.values()) == ["500,000", "2.5", "local", "now 0.25, stay 0.0151; now 0.3, stay 0.1"]


@pytest.mark.parametrize("run", ["1", "2"])
def test_no_raw_key_is_on_the_page(open_page: OpenPage, run: str) -> None:
    page = open_page("runs", FakeApplication(), run=run)
    assert nothing_failed(page)
    tables = [table.value for table in page.table]
    cells = [str(cell).replace("\\", "") for table in tables for row in table.itertuples(index=False) for cell in row]
    assert "3,012 at 08:00 (225 with a cut window)" in cells
    assert "Lab order" in cells
    assert [cell for cell in [*cells, words(page)] if RAW.search(cell.replace("c_l", "").replace("γ_g", ""))] == []


def test_drift_is_drawn_from_the_second_run_on(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    double = FakeApplication()
    both = double.tasks.drift
    assert len([one for one in open_page("runs", double).get("plotly_chart") if "oldest first" in one.proto.alt]) == 3
    monkeypatch.setattr(type(double.tasks), "drift", lambda self, filters: both(filters)[:1])
    page = open_page("runs", double)
    assert not [one for one in page.get("plotly_chart") if "oldest first" in one.proto.alt]
    assert "from the second run on" in words(page)
