"""Text that tries to be SQL stays text through every filter, name and login; and no error repeats a patient."""

import logging
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from alertreview.alerts.models import WorklistFilters
from alertreview.application import Application
from alertreview.settings import Settings
from core.errors import AlertReviewError
from core.vocabulary import Decision, Role
from tests.support.sign_in_desk import SignInDesk
from tests.support.stored_site import StoredSite

SQL = (
    "' OR '1'='1",
    "'; DROP TABLE person; --",
    '" OR ""="',
    "1; DELETE FROM judgment",
    "%' UNION SELECT password_hash FROM account --",
    "\\'; UPDATE person SET role='administrator' --",
    "x' || (SELECT 1/0) || '",
    "%_%",
    "\x00",
)
CANARY = "canary-0"


@pytest.fixture
def desk(site: StoredSite) -> SignInDesk:
    site.publish([site.alert(0, 0, 1, Decision.OMISSION), site.alert(4, 1, 1, Decision.COMMISSION)])
    site.study(3, 3)
    desk = SignInDesk(site.database, site.clock)
    desk.account("ada", Role.COORDINATOR)
    return desk


@pytest.fixture
def application(desk: SignInDesk, site: StoredSite, tmp_path: Path) -> Application:
    whole = Application(Settings(tmp_path, "sqlite://"), site.database)
    for name in ("sessions", "accounts", "sign_in"):
        setattr(whole, name, getattr(desk, name))
    return whole


def contents(site: StoredSite) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of every table that a person's text could reach."""
    with site.database.engine.connect().execution_options(readonly=True) as connection:
        return {
            table: [
                tuple(row)
                for row in connection.execute(sa.text(f"SELECT id, name, role, active FROM {table} ORDER BY id"))
            ]
            for table in ("person",)
        } | {
            table: [tuple(row) for row in connection.execute(sa.text(f"SELECT count(*) FROM {table}"))]
            for table in ("account", "alert", "study_case", "judgment", "instance")
        }


def outcome(act: Callable[[], Any]) -> str:
    """Return what an act answered, or the text of an error of ours; any other error fails the test."""
    try:
        return repr(act())
    except AlertReviewError as error:
        return str(error)


@pytest.mark.checklist("D5")
def test_no_filter_or_cursor_of_the_worklist_carries_sql(application: Application, site: StoredSite) -> None:
    before = contents(site)
    first = min(run.run_id for run in application.worklist.runs())
    wide = WorklistFilters(run_id=first, alerts_per_patient_day=float("inf"), include_cut_windows=True)
    everything = len(application.worklist.page(wide).rows)
    assert everything == 2
    texts = [field.name for field in fields(WorklistFilters) if field.type in (str, "str")]
    assert {"unit", "task_key", "text", "patient_id", "scorer"} <= set(texts)
    for text in SQL:
        for name in texts:
            found = outcome(lambda name=name, text=text: application.worklist.page(replace(wide, **{name: text})).rows)
            assert "AlertRow" not in found, (name, text)
            assert "argon2" not in found
        assert "AlertRow" not in outcome(
            lambda text=text: application.worklist.page(replace(wide, within=(text,))).rows
        )
        outcome(lambda text=text: application.worklist.page(wide, after=text))
    assert contents(site) == before


@pytest.mark.checklist("D5")
def test_no_name_login_study_or_reason_carries_sql(
    application: Application, desk: SignInDesk, site: StoredSite
) -> None:
    before = contents(site)
    ada = desk.accounts.find("ada").person_id
    page = application.for_session(desk.enter("ada"))
    acts: list[Callable[[str], Any]] = [
        lambda text: desk.sign_in.with_password(text, text),
        lambda text: desk.sign_in.with_code(text, text, "a long enough sentence " + text),
        desk.sessions.who,
        desk.accounts.find,
        page.studies.view,
        lambda text: page.review.queue(text, ada),
        page.exports.past,
        lambda text: page.exports.preview(text, text, text),
        lambda text: application.audit_trail.page(action=text, thing=text).entries,
        lambda text: desk.accounts.set_units(ada, [text.replace("\x00", "")]),
    ]
    for text in SQL:
        for act in acts:
            said = outcome(lambda act=act, text=text: act(text))
            assert "argon2" not in said
            assert "SELECT" not in said.replace(text, "").replace(repr(text), "").replace(text.casefold(), "")
    assert contents(site) == before
    with site.database.read() as uow:
        uow.audit.require_whole()


@pytest.mark.checklist("D6")
def test_no_error_and_no_log_line_repeats_a_patient(
    application: Application, desk: SignInDesk, site: StoredSite, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ada = desk.accounts.find("ada").person_id
    desk.accounts.set_units(ada, ["Ward B"])
    page = application.for_session(desk.enter("ada"))
    with site.database.read() as uow:
        run = uow.runs.latest_published()
        assert run is not None
        study = uow.studies.by_slug("demo")
        case_id = min(uow.units.cases_within(study.id, ["Ward A"]))
    said = [
        outcome(lambda: page.worklist.alert(1)),
        outcome(lambda: page.worklist.alert(10**9)),
        outcome(lambda: page.review.case("demo", ada, case_id)),
        outcome(lambda: page.reports.report("demo")),
        outcome(lambda: page.exports.labels_download("demo", "csv", "long")),
        outcome(
            lambda: page.review.submit_judgment("demo", ada + 1, case_id, answer=None, version_seen=0, form_key="x")
        ),
        outcome(lambda: page.triage.story(1)),
    ]
    assert all("Ward A" not in text for text in said)
    assert CANARY not in "\n".join([*said, caplog.text])
    assert len({text for text in said if "does not exist, or belongs to a unit that is not yours" in text}) >= 2
