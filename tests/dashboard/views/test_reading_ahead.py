"""What is likely to be opened next is read ahead: once, by right, and without anybody noticing when it fails."""

import threading

import pytest

from tests.dashboard.conftest import OpenPage, address, nothing_failed
from tests.dashboard.doubles.application import FakeApplication
from tests.dashboard.doubles.exports import FakeReports
from tests.dashboard.doubles.review import FakeReview


def wait() -> None:
    for thread in threading.enumerate():
        if thread.name == "read-ahead":
            thread.join()


def test_the_case_after_the_one_shown_is_read_ahead_once(open_page: OpenPage) -> None:
    double = FakeApplication()
    page = open_page("review", double)
    wait()
    shown = int(address(page)["case"])
    ((slug, _, after),) = double.ahead
    assert (slug, after) == (address(page)["study"], shown)
    page.button(key=f"rv_answer_1_{shown}").click().run()
    wait()
    assert len(double.ahead) == 1, "an answer to the same case asks for nothing"
    page.button(key="rv_right").click().run()
    wait()
    assert double.ahead[1:] == [(slug, double.ahead[0][1], int(address(page)["case"]))]


def test_the_next_alert_is_read_ahead_and_the_last_one_has_none(open_page: OpenPage) -> None:
    double = FakeApplication(n_alerts=2)
    first, last = (row.alert_id for row in double.rows_made)
    open_page("alert", double, alert=str(first))
    wait()
    open_page("alert", double, alert=str(last))
    wait()
    assert double.ahead == [last]


def test_the_selected_line_of_the_worklist_is_read_ahead(open_page: OpenPage) -> None:
    double = FakeApplication()
    selected = double.rows_made[2].alert_id
    open_page("worklist", double, alert=str(selected))
    wait()
    assert double.ahead == [selected]


def test_studies_reads_the_report_of_its_study_ahead(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(FakeReports, "report", lambda _, slug: asked.append(slug))
    open_page("studies", FakeApplication(), study="demo")
    wait()
    assert asked == ["demo"]


def test_a_failure_ahead_is_logged_without_its_text_and_the_next_one_is_read(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise OSError("Canary-Patient-4711")

    read_ahead = FakeReview.read_ahead
    monkeypatch.setattr(FakeReview, "read_ahead", fail)
    caplog.set_level("INFO", "alertreview.dashboard")
    double = FakeApplication()
    page = open_page("review", double)
    wait()
    assert nothing_failed(page)
    assert "nothing read ahead: OSError" in caplog.text
    assert "Canary" not in caplog.text
    monkeypatch.setattr(FakeReview, "read_ahead", read_ahead)
    page.button(key="rv_right").click().run()
    wait()
    assert len(double.ahead) == 1
