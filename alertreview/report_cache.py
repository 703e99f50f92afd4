"""Keeps the last reports: a page draws at every click, the statistics run again only when a judgment has come in."""

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from alertreview.reporting import study_report_of
from alertreview.snapshots import Snapshot
from alertreview.studies import StudyService
from core.study_report import StudyReport
from db.session import Database

KEPT = 8


class ReportCache:
    """Whole reports by study and by what they were computed from; hiding for a blinded person comes after it.

    Parameters
    ----------
    database : Database
        The site's database.
    studies : StudyService
        Gives cases and votes.
    open_snapshot : callable
        Gives the import with a content hash.
    """

    def __init__(self, database: Database, studies: StudyService, open_snapshot: Callable[[str], Snapshot]) -> None:
        self._database = database
        self._studies = studies
        self._open_snapshot = open_snapshot
        self._kept: OrderedDict[tuple[object, ...], StudyReport] = OrderedDict()
        self._lock = Lock()

    def report(self, slug: str) -> StudyReport:
        """Give the report of a study from its judgments as they stand.

        Raises
        ------
        NotFoundError
            If there is no such study.
        RefusedError
            If the study is for calibration.
        """
        before = self._stamp(slug)
        with self._lock:
            found = self._kept.get(before)
            if found is not None:
                self._kept.move_to_end(before)
                return found
        report = study_report_of(self._database, self._studies, self._open_snapshot, slug)
        # Judgments that came in meanwhile may be half in it: such a report is shown once and not kept.
        if self._stamp(slug) == before:
            with self._lock:
                self._kept[before] = report
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
        return report

    def _stamp(self, slug: str) -> tuple[object, ...]:
        """Give everything that a report hangs on and that can change: votes, adjudications, readers, state."""
        with self._database.read() as uow:
            study = uow.studies.by_slug(slug)
            return (
                study.id,
                study.status,
                study.rubric_version,
                *uow.judgments.stamp(study.id),
                uow.adjudications.count(study.id),
                len(uow.studies.readers(study.id)),
                len(uow.cases.in_study(study.id)),
            )
