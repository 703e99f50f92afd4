"""What is sent to the browser of a reader holds nothing of the decisions that are still to be judged blindly."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from alertreview.access.sessions import DEMONSTRATION
from alertreview.access.site import PersonView
from alertreview.alerts.models import AlertRow, WorklistFilters
from alertreview.alerts.triage_models import Grouping
from alertreview.application import Application, open_application
from alertreview.rights import Actor
from core.vocabulary import Role
from dashboard import texts
from tests.dashboard.conftest import OpenPage, nothing_failed, words
from tests.dashboard.doubles.sign_in import FakeSessions

EVERY_ALERT = {"budget": "5", "group": Grouping.ALERT.value, "cut": "1", "triage": "any"}
EVERYTHING = WorklistFilters(alerts_per_patient_day=5.0, include_cut_windows=True)


@pytest.fixture(params=["visitor of the demonstration", "signed in"])
def own(own_home: Path, request: pytest.FixtureRequest) -> Iterator[Application]:
    """The small demonstration, read by the one person whose judgments are missing."""
    with open_application(own_home) as opened:
        me = waiting_reader(opened)
        signed_in = Actor(me.person_id, me.name, Role.REVIEWER, session_id=1)
        opened.sessions = FakeSessions(signed_in if request.param == "signed in" else DEMONSTRATION)  # type: ignore[assignment]
        yield opened


def waiting_reader(own: Application) -> PersonView:
    return next(person for person in own.site.people() if not person.simulated and person.role is Role.REVIEWER)


def withheld_row(own: Application, reader: int) -> AlertRow:
    """The highest alert that this reader must not meet yet."""
    everybody, mine = (own.worklist.page(replace(EVERYTHING, reader=one), limit=5_000) for one in (None, reader))
    assert everybody.next_cursor is None
    return next(row for row in everybody.rows if row.alert_id not in {one.alert_id for one in mine.rows})


def sent(page: AppTest) -> str:
    """Everything that a page put into the messages to the browser: tables as their values, the rest as protobuf."""
    tables = "\n".join(frame.value.to_csv() for frame in page.dataframe)
    links = "\n".join(link.proto.query_string + link.proto.label for link in page.get("page_link"))
    figures = "\n".join(chart.proto.spec for chart in page.get("plotly_chart"))
    return "\n".join((tables, links, figures, words(page)))


def test_the_rows_the_preview_and_the_home_page_hold_nothing_of_it(open_page: OpenPage, own: Application) -> None:
    reader = waiting_reader(own).person_id
    row = withheld_row(own, reader)
    asked = {**EVERY_ALERT, "task": row.task_key, "unit": row.unit}
    everybody = own.worklist.page(replace(EVERYTHING, task_key=row.task_key, unit=row.unit))
    assert row.alert_id in {one.alert_id for one in everybody.rows}, "nobody's first page would show it"
    page = open_page("worklist", own, **asked)
    assert nothing_failed(page)
    shown = sent(page)
    key = (texts.patient_cell(row), texts.short_time(row.snapshot_at))
    for frame in page.dataframe:
        assert key not in set(zip(frame.value["patient"], frame.value["day"], strict=True))
        assert row.scaled_score not in set(frame.value["score"])
    assert str(row.scaled_score) not in shown
    assert f"alert={row.alert_id}" not in shown
    assert "hidden until you have judged" in words(page)
    home = open_page("home", own)
    assert f"alert={row.alert_id}" not in sent(home)
    assert "hidden until you have judged" in words(home)


def test_a_link_to_it_is_refused_with_the_reason(open_page: OpenPage, own: Application) -> None:
    reader = waiting_reader(own).person_id
    row = withheld_row(own, reader)
    for name in ("worklist", "alert"):
        page = open_page(name, own, alert=str(row.alert_id), **EVERY_ALERT)
        assert not page.exception
        assert "still to judge this decision in a study, without knowing its score" in words(page)
        assert f"{row.scaled_score:.2f}" not in "".join(metric.value for metric in page.metric)
