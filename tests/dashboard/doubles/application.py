"""A double of the application for page tests: the same services and read models, simulated data held in memory."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from alertreview.access.site import PersonView, SiteService
from alertreview.alerts.models import AlertRow, WorklistFilters
from alertreview.alerts.triage_models import STATES_SHOWN
from alertreview.application import Services, services_for
from alertreview.exports.exports import PastExport
from alertreview.reports.signing import Signature
from alertreview.review.models import DraftView
from alertreview.rights import Service
from alertreview.settings import Settings
from core.vocabulary import Answer, Role
from tests.dashboard.doubles.catalogue import FakeCatalogue
from tests.dashboard.doubles.exports import FakeExports, FakeReports
from tests.dashboard.doubles.panels import FakePanels
from tests.dashboard.doubles.records import HOSTILE, PEOPLE, ZONE, alert_rows
from tests.dashboard.doubles.review import FakeReview, FakeVote
from tests.dashboard.doubles.sign_in import FakeCaller, FakeSessions, guarded_as
from tests.dashboard.doubles.studies import FakeAdjudication, FakeDesk, FakeRunComparisons, FakeStudies
from tests.dashboard.doubles.tasks import FakeSensitivity, FakeTasks
from tests.dashboard.doubles.triage import FakeLists, FakeTriage, FakeViews
from tests.dashboard.doubles.worklist import FakeWorklist


@guarded_as(SiteService)
@dataclass
class FakeSite(Service):
    """The double's people."""

    app: "FakeApplication"

    @property
    def simulated(self) -> bool:
        return self.app.simulated

    def people(self) -> tuple[PersonView, ...]:
        if not self.app.with_people:
            return ()
        if self.app.hostile:
            return (PersonView(1, HOSTILE, Role.REVIEWER, simulated=False), *PEOPLE[1:])
        return PEOPLE


@dataclass
class FakeApplication:
    """The application's services over simulated data.

    Parameters
    ----------
    n_alerts
        Length of the worklist from which the cases come; 0 gives a published run without alerts.
    published
        False gives a site where nothing was scored yet.
    hostile
        Puts markup, 500-character and right-to-left names everywhere.
    fail_with
        Raised by the next saves, each call taking one; tests put errors in.
    """

    n_alerts: int = 62
    n_cases: int = 24
    published: bool = True
    simulated: bool = True
    hostile: bool = False
    with_people: bool = True
    with_studies: bool = True
    fail_with: list[BaseException] = field(default_factory=list)
    calls: list[tuple[str, tuple[Any, ...]]] = field(default_factory=list)
    votes: dict[tuple[str, int, int], list[FakeVote]] = field(default_factory=dict)
    drafts: dict[tuple[str, int, int], DraftView] = field(default_factory=dict)
    later: set[tuple[str, int, int]] = field(default_factory=set)
    training: bool = False
    n_more_tasks: int = 0  # in the catalogue
    with_panel: bool = False
    """A third study, an open panel that takes judgments."""
    taken_back: set[tuple[str, int, int]] = field(default_factory=set)
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    exported: list[PastExport] = field(default_factory=list)
    signed: list[Signature] = field(default_factory=list)
    ahead: list[object] = field(default_factory=list)
    """What was read ahead: the number of an alert, or study, reader and case."""

    def __post_init__(self) -> None:
        self.rows_made = alert_rows(self.n_alerts, hostile=self.hostile)
        if self.with_studies:
            self._add_simulated_votes()
        self.settings = Settings(Path("/srv/a ward's site"), "sqlite://")
        self.sessions = FakeSessions()
        self.site = FakeSite(self)
        self.worklist = FakeWorklist(self)
        self.alert_lists = FakeLists(self)
        self.tasks = FakeTasks(self)
        self.catalogue = FakeCatalogue(self)
        self.triage, self.saved_views = FakeTriage(self.clock), FakeViews()
        self.run_comparisons = FakeRunComparisons()
        self.sensitivity = FakeSensitivity(self)
        self.review = FakeReview(self)
        self.panels = FakePanels(self)
        self.adjudication = FakeAdjudication(self)
        self.studies, self.study_desk = FakeStudies(self), FakeDesk(self)
        self.reports, self.exports = FakeReports(self), FakeExports(self)

    def for_session(self, _token: str | None) -> Services:
        return services_for(self, FakeCaller(self.sessions))

    def finish_writing(self, _within_seconds: float) -> bool:
        return True

    def case_ids(self) -> list[int]:
        return list(range(1, self.n_cases + 1))

    def _add_simulated_votes(self) -> None:
        random_ = random.Random(3)
        for slug, readers, share in (("demo", (2, 3), 0.8), ("ward-2025", (2, 3, 4), 1.1)):
            for case_id in self.case_ids():
                for person in readers:
                    if random_.random() < share:
                        answer = random_.choice((Answer.USUAL, Answer.UNUSUAL, Answer.RELEVANT, Answer.RELEVANT))
                        saved = datetime(2026, 11, 20, 9, 0, tzinfo=ZONE)
                        vote = FakeVote(
                            answer, None, f"peer-comment-{person}-{case_id}", 1, saved, f"sim{person}-{case_id}", ""
                        )
                        self.votes[slug, person, case_id] = [vote]

    def rows(self) -> list[AlertRow]:
        return [replace(row, triage=self.triage.status(row.alert_id)) for row in self.rows_made]

    def within(self, filters: WorklistFilters) -> list[AlertRow]:
        most = round(filters.alerts_per_patient_day * 612)
        return [
            row
            for row in self.rows()
            if row.rank <= most
            and row.triage.state in STATES_SHOWN[filters.triage]
            and filters.patient_id in {"", row.patient_id}
            and filters.decision in {None, row.decision}
            and filters.kind in {None, row.kind}
            and filters.unit in {"", row.unit}
            and (filters.first_day is None or row.snapshot_at.date() >= filters.first_day)
            and (filters.last_day is None or row.snapshot_at.date() <= filters.last_day)
            and filters.task_key in {"", row.task_key}
            and (filters.text.lower() in row.task_name.lower() or filters.text.upper() == row.patient_id)
        ]
