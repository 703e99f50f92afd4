"""The composition root: opens a site and builds its services."""

from pathlib import Path
from types import TracebackType
from typing import Self

from alertreview.access.accounts import AccountService
from alertreview.access.api_tokens import ApiTokens
from alertreview.access.audit_trail import AuditTrailService
from alertreview.access.passwords import Passwords
from alertreview.access.sessions import SessionCaller, SessionService
from alertreview.access.sign_in import SignIn
from alertreview.access.site import SiteService
from alertreview.alerts.alert_lists import AlertLists
from alertreview.alerts.explanations import Explanations
from alertreview.alerts.task_views import TaskPages
from alertreview.alerts.triage import TriageService
from alertreview.alerts.triage_models import SavedViewService
from alertreview.alerts.worklist import Worklist
from alertreview.exports.exports import Exports
from alertreview.reports.sensitivity import SensitivityCurves
from alertreview.reports.service import ReportService
from alertreview.review.adjudication import AdjudicationService
from alertreview.review.digest import Digests
from alertreview.review.exchange import VoteExchange
from alertreview.review.panels import PanelService
from alertreview.review.review import ReviewService
from alertreview.rights import Caller, guarded
from alertreview.scoring.run_comparison import RunComparisons
from alertreview.scoring.task_catalogue import TaskCatalogue
from alertreview.settings import Settings, load_settings, now
from alertreview.studies.desk import StudyDesk
from alertreview.studies.studies import StudyService
from db.connection.engine import pass_on_sooner
from db.database import Database


class Services:
    """The use cases of a site; `Application.for_session` returns them as one person may use them."""

    def __init__(self, settings: Settings, database: Database, explanations: Explanations) -> None:
        snapshot = explanations.snapshot
        self.site = SiteService(database, now)
        self.worklist = Worklist(database, explanations, now)
        self.alert_lists = AlertLists(database, explanations, now)
        self.tasks = TaskPages(settings, database, now)
        self.catalogue = TaskCatalogue(settings, database, snapshot, now)
        self.triage = TriageService(database, now)
        self.saved_views = SavedViewService(database, now)
        self.run_comparisons = RunComparisons(database, now)
        self.sensitivity = SensitivityCurves(database, now)
        self.review = ReviewService(database, explanations, now)
        self.panels = PanelService(database, now)
        self.adjudication = AdjudicationService(database, explanations, now)
        self.exchange = VoteExchange(database, explanations, now)
        self.studies = StudyService(database, now)
        of_studies = database, self.studies, snapshot, self.review.is_blinded, now
        self.study_desk = StudyDesk(*of_studies)
        self.reports = ReportService(*of_studies)
        self.exports = Exports(*of_studies, settings.home, self.reports.signatures)
        self.accounts = AccountService(database, now)
        self.audit_trail = AuditTrailService(database, now)


class Application(Services):
    """One site, opened: services without a guard for the command line, and what only the composition root needs.

    The database is checked; `close` disposes of it.
    """

    def __init__(self, settings: Settings, database: Database) -> None:
        self.settings = settings
        self.database = database
        self._explanations = Explanations(settings, database)
        super().__init__(settings, database, self._explanations)
        self.sessions = SessionService(database, now)
        self.api_tokens = ApiTokens(database, now)
        self.digests = Digests(
            database, self.studies, self.review, self.adjudication, settings.digest, now, settings.webhook
        )
        self.sign_in = SignIn(database, Passwords(), now, settings.hosts)

    def for_session(self, token: str | None) -> Services:
        """Return the services as the person behind a browser's token may use them.

        Every call asks again who that is.
        """
        return services_for(self, SessionCaller(self.sessions, self.database, token))

    def for_program(self, token: str) -> Services:
        """Return the services as the person behind an API token may use them; every call asks again who that is."""
        return services_for(self, SessionCaller(self.api_tokens, self.database, token))

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
        """Finish saves in progress and refuse further ones, as the program stops; return whether all ended in time."""
        return self.database.finish_writing(within_seconds)


def services_for(services: Services, caller: Caller) -> Services:
    """Return services as a caller may use them, and nothing else of the application."""
    found = object.__new__(Services)
    vars(found).update(guarded(vars(services), caller))
    return found


def open_application(home: Path | None = None, database: str | None = None) -> Application:
    """Open the site named by options, environment or defaults.

    Raise SettingsError if there is no such home, StoreError if the database is not there, foreign, or older than this
    version.
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
