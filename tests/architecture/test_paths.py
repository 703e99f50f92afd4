"""How far a judgment and the page of an alert travel through our own files."""

from pathlib import Path

from alertreview.application import open_application
from benchmarks.judgment_path import follow_alert_page, follow_judgment
from tests.support.demo_site import built_demo, demo_home, own_home

__all__ = ["built_demo", "demo_home", "own_home"]


def test_a_judgment_and_an_alert_take_a_short_way(own_home: Path) -> None:
    with open_application(own_home) as application:
        judgment, page = follow_judgment(application), follow_alert_page(application)
    assert len(judgment.files) <= 18, judgment.files
    assert len(judgment.calls) <= 130, judgment.files
    assert len(page.files) <= 25, page.files
