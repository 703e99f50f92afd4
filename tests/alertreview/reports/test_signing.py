"""Signed reports: who may sign what, what is kept, what ends a signature, and that documents show it."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from alertreview.application import open_application
from alertreview.cli.main import main
from alertreview.reports.documents import ReportFormat, render_report
from alertreview.reports.service import ReportService
from alertreview.reports.signing import canonical_json, content_hash
from core.errors import ConflictError, InvalidInputError, NotFoundError, RefusedError
from core.statistics.estimate import Ceiling, Estimate
from core.studies.report import AgreementFigures, AgreementReport, DawidSkeneReport, FlowDiagram, StudyReport
from core.vocabulary import Answer, Role
from tests.dashboard.doubles.report import simulated_report
from tests.support.stored_site import StoredSite

MEANING = "I approve this report"


class Desk:
    """Signing over a stored site whose report is invented, and can be swapped."""

    def __init__(self, site: StoredSite) -> None:
        self.site = site
        self.person = site.study(2, 3)[0]
        self.site.studies.lock_study("demo")
        self.report: StudyReport = simulated_report(self.site.studies.view("demo"))
        self.n_reports = 0
        self.signing = self.service(self.give)

    def service(self, compute: Callable[[str], StudyReport]) -> ReportService:
        class Invented(ReportService):
            def _whole(self, slug: str) -> StudyReport:
                return compute(slug)

        site = self.site
        return Invented(
            site.database,
            site.studies,
            lambda _hash: pytest.fail("reads no import"),
            lambda _slug, _person_id: False,
            site.clock,
        )

    def give(self, _slug: str) -> StudyReport:
        self.n_reports += 1
        return self.report

    def sign(self, meaning: str = MEANING, **options: str) -> None:
        self.signing.sign("demo", self.person, meaning, **options)

    def superseded(self) -> list[bool]:
        return [signature.superseded for signature in self.signing.signatures("demo")]


@pytest.fixture
def desk(site: StoredSite) -> Desk:
    return Desk(site)


@pytest.mark.checklist("A5")
def test_a_signature_holds_name_time_meaning_and_what_was_signed(desk: Desk) -> None:
    signed = desk.signing.sign("demo", desk.person, f"  {MEANING} ")
    assert (signed.name, signed.meaning, signed.content_hash) == ("demo reader 0", MEANING, content_hash(desk.report))
    assert signed.signed_at.tzname() == "CET"
    assert signed.holds_for(desk.report)
    assert desk.signing.signatures("demo") == desk.signing.signatures("demo", desk.report) == (signed,)
    with desk.site.database.read() as uow:
        row = uow.audit.latest(1)[0]
        uow.audit.require_whole()
    assert (row.actor, row.action, row.object) == (f"person {desk.person}", "report signed", "study demo")
    details = json.loads(row.details)
    assert list(details.pop("sealed")) == ["signature 1"]
    assert details == {"content_hash": signed.content_hash, "meaning": MEANING, "superseded": 0}
    assert row.moment == signed.signed_at


def test_a_study_that_is_not_locked_is_not_signed_and_no_report_is_computed(desk: Desk) -> None:
    desk.site.studies.reopen_study("demo", reason="to look again")
    with pytest.raises(RefusedError, match=r"'demo' is not locked.*Lock the study"):
        desk.sign()
    assert (desk.n_reports, desk.superseded()) == (0, [])


def test_a_hidden_report_is_not_signed(desk: Desk) -> None:
    desk.report = dataclasses.replace(desk.report, hidden=True)
    with pytest.raises(RefusedError, match="is hidden from person"):
        desk.sign()


def test_a_study_reopened_while_its_report_was_computed_is_not_signed(desk: Desk) -> None:
    def reopen(_slug: str) -> StudyReport:
        desk.site.studies.reopen_study("demo", reason="a vote came late")
        return desk.report

    with pytest.raises(RefusedError, match="is not locked"):
        desk.service(reopen).sign("demo", desk.person, MEANING)
    assert desk.superseded() == []


@pytest.mark.checklist("A5")
def test_signing_another_content_supersedes_for_good_what_was_signed_before(desk: Desk) -> None:
    old = desk.report
    desk.sign()
    desk.report = dataclasses.replace(old, n_votes=old.n_votes + 1)
    assert desk.superseded() == [True]
    desk.sign()
    assert desk.superseded() == [True, False]
    desk.report = old
    assert desk.superseded() == [True, True]


@pytest.mark.checklist("A5")
def test_a_reopened_study_supersedes_for_good_even_when_nothing_changed(desk: Desk) -> None:
    desk.sign()
    desk.site.studies.reopen_study("demo", reason="to look again")
    desk.site.studies.lock_study("demo")
    n_reports = desk.n_reports
    (still,) = desk.signing.signatures("demo")
    assert desk.n_reports == n_reports
    assert still.content_hash == content_hash(desk.report)
    assert still.state(desk.report) == "superseded: the study was reopened after signing"
    desk.sign()
    assert desk.superseded() == [True, False]


def test_the_same_signature_is_not_given_twice_and_another_meaning_stands_beside_it(desk: Desk) -> None:
    desk.sign()
    with pytest.raises(RefusedError, match="has signed this report"):
        desk.sign()
    desk.sign("I checked the statistics")
    assert desk.superseded() == [False, False]


@pytest.mark.parametrize(("meaning", "part"), [(" ", "needs a meaning"), ("x" * 301, "301 characters; at most 300")])
def test_a_meaning_is_there_and_short(desk: Desk, meaning: str, part: str) -> None:
    with pytest.raises(InvalidInputError, match=part):
        desk.sign(meaning)


@pytest.mark.checklist("A5")
def test_what_is_signed_is_what_was_shown(desk: Desk) -> None:
    with pytest.raises(ConflictError, match="changed since it was shown"):
        desk.sign(seen_hash="0" * 64)
    desk.sign(seen_hash=content_hash(desk.report))
    assert desk.superseded() == [False]


def test_nobody_unknown_or_deactivated_signs_and_no_unknown_study_is_signed(desk: Desk) -> None:
    with pytest.raises(NotFoundError, match="no person 999"):
        desk.signing.sign("demo", 999, MEANING)
    with pytest.raises(NotFoundError, match="no study 'nothing'"):
        desk.signing.sign("nothing", desk.person, MEANING)
    with pytest.raises(NotFoundError, match="no study 'nothing'"):
        desk.signing.signatures("nothing")
    with desk.site.database.write() as uow:
        uow.people.change(desk.person, role=Role.REVIEWER, active=False)
        uow.commit()
    with pytest.raises(RefusedError, match="was deactivated"):
        desk.sign()


def test_html_and_pdf_print_the_signatures_and_json_stays_what_was_signed(desk: Desk) -> None:
    desk.sign("<b>Approved</b>")
    signatures = desk.signing.signatures("demo")
    html = render_report(desk.report, ReportFormat.HTML, signatures).decode()
    assert "&lt;b&gt;Approved&lt;/b&gt;" in html
    assert "<td>valid</td>" in html
    pdf = render_report(desk.report, ReportFormat.PDF, signatures)
    assert len(pdf) > len(render_report(desk.report, ReportFormat.PDF))
    json_bytes = render_report(desk.report, ReportFormat.JSON, signatures)
    assert json_bytes == render_report(desk.report, ReportFormat.JSON)


@pytest.mark.checklist("A5")
def test_a_changed_vote_of_a_real_study_supersedes_what_was_signed_at_the_command_line(
    own_home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_application(own_home) as application:
        visitor = next(person for person in application.site.people() if not person.simulated)
        application.studies.lock_study("demo")
    sign = ["sign-report", "--study", "demo", "--meaning", MEANING, "--home", str(own_home)]
    assert main([*sign, "--person", "Nobody"]) == 2
    assert "no active person named 'Nobody'" in capsys.readouterr().err
    assert main([*sign, "--person", visitor.name]) == 0
    assert f"{visitor.name} signed the report of study demo: {MEANING}." in capsys.readouterr().out

    with open_application(own_home) as application:
        application.studies.reopen_study("demo", reason="a vote came late")
        case = application.review.next_case("demo", visitor.person_id)
        assert case is not None
        application.review.submit_judgment(
            "demo", visitor.person_id, case.case_id, answer=Answer.RELEVANT, version_seen=0, form_key="late"
        )
        application.studies.lock_study("demo")
    out = tmp_path / "report.html"
    assert main(["report", "--study", "demo", "--format", "html", "--out", str(out), "--home", str(own_home)]) == 0
    page = out.read_text(encoding="utf-8")
    assert f"<td>{visitor.name}</td><td>{MEANING}</td>" in page
    assert "superseded: the report changed after signing" in page


def test_a_signed_report_keeps_its_hash_in_later_versions() -> None:
    """Other bytes of an unchanged report would end every signature."""
    missing = Estimate(None, reason="not computable: one reader only")
    figures = AgreementFigures("all cases", 0, 0, missing, missing, missing, missing)
    reached = Estimate(0.1 + 0.2, 1e-9, 1.0, n=3, left_out={"no score": 1, "no label": 2}, method="AUC")
    report = StudyReport(
        format_version=2,
        slug="icu",
        title="Überwachung",
        simulated=True,
        locked=True,
        hidden=False,
        question="Relevant?",
        positive_texts=("relevant", "unusual"),
        primary_scorer="softhad",
        n_cases=3,
        n_patients=2,
        n_readers=1,
        n_slots=1,
        n_votes=3,
        n_cannot_judge=0,
        headline=("**0.30**",),
        warnings=(),
        results=(),
        agreement=AgreementReport(figures, figures),
        ceiling=Ceiling(reached, missing, None, 1),
        readers=(),
        dawid_skene=DawidSkeneReport(3, None, {}, {}, 0, False, 0, "not computable: fewer than three readers"),
        flow=FlowDiagram(None, 9, 3, 3, 3, 3),
        strata=(),
        design={"seed": "7", "run": "run-1"},
    )
    assert content_hash(report) == "09ea71b4c10c28c7e2a8c09cd93225f02b883b8fecb2d984e525e3f018796e5a"
    assert content_hash(StudyReport.from_dict(json.loads(canonical_json(report)))) == content_hash(report)
