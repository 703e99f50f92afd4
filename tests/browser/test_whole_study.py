"""A small study from its draft to its report, by a coordinator, three readers who only use keys, and an adjudicator."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.visits import OpenVisit
from tests.browser.whole_study import OWN_CHOICE, READERS, Design, make_site, whole_study
from tests.support import installed
from tests.support.built_once import shared_folder
from tests.support.served import dashboard

pytestmark = [pytest.mark.browser, pytest.mark.slow]

VOTES = ((3, 1, 0), (3, 3, 1), (1, 2, 3), (2, 2, 1))
"""Answers of the three readers, case by case: the first ones leave the case open."""


@pytest.fixture
def site(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the demonstration with accounts."""
    return make_site(installed.demonstration(shared_folder(tmp_path_factory)), tmp_path / "home")


@pytest.fixture
def site_url(site: Path) -> Iterator[str]:
    """Address of its dashboard."""
    with dashboard(site, site / "server.log") as (port, _):
        yield f"http://127.0.0.1:{port}"


def answers_for(slug: str) -> dict[tuple[int, str], int]:
    assert slug == "three-readers-four-cases"
    return {(case, name): votes[place] for case, votes in enumerate(VOTES, 1) for place, name in enumerate(READERS)}


@pytest.mark.checklist("A4", "B6", "C2")
def test_a_whole_study_from_its_draft_to_its_report(visit: OpenVisit, site: Path, site_url: str) -> None:
    design = Design("Three readers, four cases", OWN_CHOICE, len(VOTES))
    outcome = whole_study(lambda: visit(site_url), site, design, answers_for)
    assert outcome.n_judgments == len(READERS) * (len(VOTES) + 1), "each of them saves one answer twice"
    assert outcome.auc is not None
    assert outcome.n_settled == 1
    assert outcome.scanned.n_frames > 10 * outcome.n_judgments
