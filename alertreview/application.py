"""The composition root: opens a site and hands out the one object that pages and commands talk to."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from alertreview.access.accounts import AccountService
from alertreview.access.audit_trail import AuditTrailService
from alertreview.access.guard import UnitLookup
from alertreview.access.health import Health
from alertreview.access.passwords import Passwords
from alertreview.access.roles import PersonView
from alertreview.access.sessions import SessionService
from alertreview.access.sign_in import SignIn
from alertreview.alerts.alert_lists import AlertLists
from alertreview.alerts.explanations import Explanations
from alertreview.alerts.models import AlertDetail, FilterChoices, WorklistFilters, WorklistPage
from alertreview.alerts.preview_model import AlertPreview
from alertreview.alerts.task_views import TaskPages
from alertreview.alerts.triage import TriageService
from alertreview.alerts.triage_models import SavedViewService
from alertreview.alerts.withheld import JUDGE_FIRST
from alertreview.alerts.worklist import Worklist
from alertreview.exports.exports import Exports
from alertreview.exports.past_exports import PastExport, past_exports
from alertreview.reports.documents import ReportFormat, render_report
from alertreview.reports.report import ReportCache
from alertreview.reports.sensitivity import SensitivityCurves
from alertreview.reports.signing import ReportSigning, Signature, content_hash
from alertreview.review.adjudication import AdjudicationService
from alertreview.review.blinding import is_blinded
from alertreview.review.models import BlindedCase, DraftView, JudgmentRow, QueueView, SavedJudgment
from alertreview.review.panels import PanelService
from alertreview.review.review import ReviewService
from alertreview.scoring.models import RunView
from alertreview.scoring.run_comparison import RunComparisons
from alertreview.settings import Settings, load_settings, now
from alertreview.studies.desk import StudyDesk
from alertreview.studies.models import ExportPreview, StudyView
from alertreview.studies.studies import StudyService
from core.errors import NotFoundError, RefusedError
from core.statistics.planning import required_cases
from core.studies.make_report import StudyReport, blinded_report
from core.vocabulary import Answer, CaseState, Certainty
from db.connection.engine import pass_on_sooner
from db.database import Database


class Application:
    """One site, opened: every question that pages and commands ask.

    Parameters
    ----------
    settings : Settings
        The site.
    database : Database
        Checked; `close` disposes of it.
    """

    def __init__(self, settings: Settings, database: Database) -> None:
        self.settings = settings
        self.database = database
        self._explanations = Explanations(settings, database)
        self._worklist = Worklist(database, self._explanations, now)
        self.alert_lists = AlertLists(database, self._explanations, now)
        self.triage = TriageService(database, now)
        self.saved_views = SavedViewService(database, now)
        self._review = ReviewService(database, self._explanations, now)
        self.studies_service = StudyService(database, now)
        self.adjudication = AdjudicationService(database, self._explanations, now)
        self.panels = PanelService(database, now)
        self.study_desk = StudyDesk(database, self.studies_service, self._explanations.snapshot, self.is_blinded)
        self.run_comparisons = RunComparisons(database)
        self.tasks = TaskPages(settings, database, now)
        self.sensitivity = SensitivityCurves(database)
        self._reports = ReportCache(database, self.studies_service, self._explanations.snapshot)
        self._signing = ReportSigning(database, self.report, now)
        self.exports = Exports(database, self.studies_service, self._explanations.snapshot, now, settings.home)
        self.sessions = SessionService(database, now)
        self.accounts = AccountService(database, now)
        self.sign_in = SignIn(database, Passwords(), now)
        self.unit_lookup = UnitLookup(database)
        self.audit_trail = AuditTrailService(database, now)
        self.health = Health(database)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database and the snapshots."""
        self._explanations.close()
        self.database.dispose()

    def finish_writing(self, within_seconds: float) -> bool:
        """Let saves that have begun end, and refuse further ones: the program is about to stop.

        Returns
        -------
        bool
            Whether all have ended within that time.
        """
        return self.database.finish_writing(within_seconds)

    @property
    def simulated(self) -> bool:
        """Whether the site's last import says that no real patient stands behind it."""
        with self.database.read() as uow:
            return uow.snapshots.latest_is_simulated()

    def people(self) -> tuple[PersonView, ...]:
        """Return the active people of the site."""
        with self.database.read() as uow:
            return tuple(
                PersonView(person.id, person.name, person.role, person.simulated)
                for person in uow.people.all()
                if person.active
            )

    def person_named(self, name: str) -> PersonView:
        """Return an active person by name.

        Raises
        ------
        NotFoundError
            If there is none; the text does not list who there is.
        """
        found = next((person for person in self.people() if person.name == name), None)
        if found is None:
            raise NotFoundError(f"There is no active person named '{name}'. Write the name as the site has it.")
        return found

    def runs(self) -> tuple[RunView, ...]:
        """Return the published runs, newest first."""
        return self._worklist.runs()

    def run(self, run_id: int | None = None) -> RunView | None:
        """Return a published run, the latest without a number."""
        return self._worklist.run(run_id)

    def filter_choices(self, run_id: int, scorer: str = "") -> FilterChoices:
        """Return what the worklist's filters offer."""
        return self._worklist.filter_choices(run_id, scorer)

    def worklist(self, filters: WorklistFilters, after: str | None = None, limit: int = 13) -> WorklistPage:
        """Return a page of ranked alerts."""
        return self._worklist.page(filters, after, limit)

    def alert(self, alert_id: int, filters: WorklistFilters | None = None, person_id: int | None = None) -> AlertDetail:
        """Return everything that the alert page shows.

        Parameters
        ----------
        alert_id : int
            Number of the alert.
        filters : WorklistFilters or None
            The list that the reader came from.
        person_id : int or None
            Who looks. Somebody who has still to judge this decision blindly is refused; for everybody else it is
            remembered that the score was seen, and a later judgment of the decision carries the mark.

        Raises
        ------
        NotFoundError
            If there is no such alert.
        RefusedError
            If the person must not see its score yet.
        """
        self._show_score(person_id, alert_id)
        listed = replace(filters or WorklistFilters(), reader=person_id) if person_id is not None else filters
        return self._worklist.alert(alert_id, listed)

    def preview(self, alert_id: int, person_id: int | None = None) -> AlertPreview:
        """Return the preview of an alert beside the worklist; parameters, errors and mark as those of `alert`."""
        self._show_score(person_id, alert_id)
        return self._worklist.preview(alert_id)

    def _show_score(self, person_id: int | None, alert_id: int) -> None:
        """Refuse an alert to a reader who has still to judge it, and remember that everybody else saw its score."""
        if person_id is not None and not self._review.show_score(person_id, alert_id):
            raise RefusedError(JUDGE_FIRST)

    def studies(self) -> tuple[StudyView, ...]:
        """Return the studies, newest first."""
        return self._review.studies()

    def study(self, slug: str) -> StudyView:
        """Return a study by its short name."""
        return self._review.study(slug)

    def queue(self, slug: str, person_id: int) -> QueueView:
        """Return a reviewer's place in a study."""
        return self._review.queue(slug, person_id)

    def next_case(
        self, slug: str, person_id: int, after_case_id: int | None = None, backwards: bool = False
    ) -> BlindedCase | None:
        """Return the case that comes next for a reviewer; None when none is left."""
        return self._review.next_case(slug, person_id, after_case_id, backwards=backwards)

    def case(self, slug: str, person_id: int, case_id: int) -> BlindedCase:
        """Return one case as its blinded reviewer sees it."""
        return self._review.case(slug, person_id, case_id)

    def save_draft(self, slug: str, person_id: int, case_id: int, draft: DraftView) -> None:
        """Keep what a reviewer has chosen and typed but not saved."""
        self._review.save_draft(slug, person_id, case_id, draft)

    def mark_later(self, slug: str, person_id: int, case_id: int) -> None:
        """Put a case aside."""
        self._review.mark_later(slug, person_id, case_id)

    def submit_judgment(
        self,
        slug: str,
        person_id: int,
        case_id: int,
        *,
        answer: Answer,
        certainty: Certainty | None = None,
        comment: str = "",
        version_seen: int,
        form_key: str,
        reason: str = "",
        active_seconds: float | None = None,
    ) -> SavedJudgment:
        """Save a judgment and read it back."""
        return self._review.submit_judgment(
            slug,
            person_id,
            case_id,
            answer=answer,
            certainty=certainty,
            comment=comment,
            version_seen=version_seen,
            form_key=form_key,
            reason=reason,
            active_seconds=active_seconds,
        )

    def undo(self, slug: str, person_id: int, case_id: int, *, version_seen: int, form_key: str) -> BlindedCase:
        """Take back the answer saved last; nothing is deleted, the choice comes back as a draft."""
        return self._review.undo(slug, person_id, case_id, version_seen=version_seen, form_key=form_key)

    def feedback(self, slug: str, person_id: int, case_id: int) -> tuple[Answer, str] | None:
        """Return the reference answer of a training case, once the reader has judged it."""
        return self._review.feedback(slug, person_id, case_id)

    def my_judgments(self, person_id: int, slug: str | None = None) -> tuple[JudgmentRow, ...]:
        """Return a reviewer's own current judgments."""
        return self._review.my_judgments(person_id, slug)

    def is_blinded(self, slug: str, person_id: int | None) -> bool:
        """Return whether results of an open study are hidden from a reader who has cases left to judge."""
        return person_id is not None and is_blinded(self._review, slug, person_id)

    def report(self, slug: str, person_id: int | None = None) -> StudyReport:
        """Compute the report of a study from the judgments as they stand.

        Parameters
        ----------
        slug : str
            Short name of the study.
        person_id : int or None
            Who reads it; somebody who is still blinded gets counts only. None is the researcher at the command line.
        """
        report = self._reports.report(slug)
        return blinded_report(report) if self.is_blinded(slug, person_id) else report

    def sign_report(self, slug: str, person_id: int, meaning: str, *, seen_hash: str | None = None) -> Signature:
        """Sign the report of a locked study as it stands, with a person's name, the time and a meaning."""
        return self._signing.sign_report(slug, person_id, meaning, seen_hash=seen_hash)

    def content_hash(self, report: StudyReport) -> str:
        """Return what a signature under a report holds on to: pass it back as `seen_hash`."""
        return content_hash(report)

    def signatures(self, slug: str, report: StudyReport | None = None) -> tuple[Signature, ...]:
        """Return the signatures under a study's reports; `report` saves computing the whole one once more."""
        return self._signing.signatures(slug, report)

    def report_file(self, report: StudyReport, output_format: str) -> bytes:
        """Make a report's file, "json", "html" or "pdf", for a download; HTML and PDF print the signatures.

        Parameters
        ----------
        report : StudyReport
            As the person who downloads it may see it; a hidden one carries no signatures.
        output_format : str
            A value of `ReportFormat`.
        """
        signatures = () if report.hidden else self.signatures(report.slug, report)
        return render_report(report, ReportFormat(output_format), signatures)

    def export_preview(
        self, slug: str, output_format: str, layout: str, *, person_id: int | None = None
    ) -> ExportPreview:
        """Count the rows of an export by where their cases stand; nothing is written."""
        self._refuse_blinded(slug, person_id)
        return self.exports.preview(slug, output_format, layout)

    def export_labels(
        self,
        slug: str,
        output_format: str,
        layout: str,
        *,
        states: Collection[CaseState] = (),
        person_id: int | None = None,
    ) -> tuple[str, bytes]:
        """Make a file of judgments or labels for a download: its name and its bytes.

        Raises
        ------
        NotFoundError, InvalidInputError
            If there is no such study, format or layout.
        RefusedError
            If results of the study are still hidden from the person.
        """
        self._refuse_blinded(slug, person_id)
        return self.exports.labels_download(slug, output_format, layout, states=states, actor=_actor(person_id))

    def export_study_zip(self, slug: str, formats: Sequence[str], *, person_id: int | None = None) -> tuple[str, bytes]:
        """Make everything for a paper as one zip: all tables, dictionary, manifest, report and checksums.

        Raises
        ------
        NotFoundError
            If there is no such study.
        RefusedError
            If results of the study are still hidden from the person.
        """
        self._refuse_blinded(slug, person_id)

        def signatures(report: StudyReport) -> tuple[Signature, ...]:
            return self._signing.signatures(slug, report)

        return self.exports.study_download(slug, formats, signatures, actor=_actor(person_id))

    def past_exports(self, slug: str, limit: int = 50) -> tuple[PastExport, ...]:
        """Return the exports of a study that were written, newest first, with their checksums."""
        with self.database.read() as uow:
            return past_exports(uow, slug, limit)

    plan_study = staticmethod(required_cases)
    """Say how many cases a next study needs."""

    def _refuse_blinded(self, slug: str, person_id: int | None) -> None:
        if self.is_blinded(slug, person_id):
            raise RefusedError(
                f"Study '{slug}' is open and you are its reader: an export would show the others' answers. "
                "Judge your cases, or wait until the study is locked; an open panel's readers always wait."
            )


def _actor(person_id: int | None) -> str:
    """Name who acts in the audit trail."""
    return "dashboard" if person_id is None else f"person {person_id}"


def open_application(home: Path | None = None, database: str | None = None) -> Application:
    """Open the site named by options, environment or defaults.

    Raises
    ------
    SettingsError
        If there is no such home.
    StoreError
        If the database is not there, foreign, or older than this version.
    """
    settings = load_settings(home, database)
    site_database = Database(settings.database_url)
    try:
        site_database.check()
    except BaseException:
        site_database.dispose()
        raise
    site_database.sweep()
    pass_on_sooner()
    return Application(settings, site_database)
