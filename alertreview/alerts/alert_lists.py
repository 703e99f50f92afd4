"""Parts of the ranked lists that pages ask for: one line, everything that filters leave, counts by unit."""

from dataclasses import dataclass, replace
from zoneinfo import ZoneInfo

import numpy as np

from alertreview.alerts.explanations import Explanations, Past
from alertreview.alerts.filters import ranks_at_budget, refuse_withheld, restriction_of
from alertreview.alerts.lines import decision_of, find_run, lines_in_words, members_of
from alertreview.alerts.models import Timeline, WorklistFilters, WorklistLine
from alertreview.alerts.triage import MOST_AT_ONCE
from alertreview.rights import Action, Service, requires
from alertreview.settings import Clock
from alertreview.studies.models import CaseForReport, states_of_cases
from alertreview.studies.results import case_rows, majority_labels, share_on_candidates
from core.errors import NotFoundError, RefusedError
from core.statistics.estimate import Estimate
from core.vocabulary import AlertId, CaseState, Decision, PersonId, RunId, StudyId, StudyStatus
from db.database import Database
from db.models import ScoringRun, Study
from db.unit_of_work import UnitOfWork


@dataclass(frozen=True)
class ExpectedRate:
    """Expected true-alert rate inside an alert budget."""

    rate: Estimate  # share of relevant alerts, weighted to all alerts inside the budget
    n_cases: int  # decided cases inside the budget
    study: str  # title of the study


def judged_study(uow: UnitOfWork, run_id: RunId) -> Study | None:
    """Return the largest blinded study of a run whose judging is over, the newest of several: locked, or all complete.

    As long as a case is open its readers must not learn results, so an open study gives none. An open panel never
    does: its figures are flattered, because its readers saw the scores.
    """
    found: dict[StudyId, int] = {}
    studies = {study.id: study for study in uow.studies.all()}
    for study in studies.values():
        if study.run_id != run_id or study.is_calibration or study.status is StudyStatus.DRAFT or study.is_open_panel:
            continue
        states = states_of_cases(uow, study).values()
        if states and (study.status is StudyStatus.LOCKED or CaseState.OPEN not in states):
            found[study.id] = len(states)
    return studies[max(found, key=found.__getitem__)] if found else None


def expected_rate(uow: UnitOfWork, run: ScoringRun, study: Study, filters: WorklistFilters) -> ExpectedRate:
    """Compute the true-alert rate inside the budget of the filters, from a judged study of cases of the run.

    Of the filters, decision, budget and scorer count; others would leave too few judged cases to say anything.
    """
    thresholds = _thresholds(uow, run, filters)
    cases = case_rows(uow, study.slug)
    inside = np.array([_inside(case, run, filters, thresholds) for case in cases], dtype=bool)
    rate = share_on_candidates(cases, majority_labels(uow, study.slug, cases), inside)
    return ExpectedRate(rate, rate.n, study.title)


def _thresholds(uow: UnitOfWork, run: ScoringRun, filters: WorklistFilters) -> dict[Decision, float]:
    """Scaled score at which the budget ends in each list."""
    return uow.alerts.lowest_scaled_scores(
        run.id,
        scorer=filters.scorer,
        include_cut_windows=filters.include_cut_windows,
        max_ranks=ranks_at_budget(uow, run, filters),
    )


def _inside(case: CaseForReport, run: ScoringRun, filters: WorklistFilters, thresholds: dict[Decision, float]) -> bool:
    said = case.scores.get(filters.scorer or run.scorer)
    return (
        said is not None
        and filters.decision in {None, case.decision}
        and case.decision in thresholds
        and said.scaled_score >= thresholds[case.decision]
    )


class AlertLists(Service):
    """Reads parts of the ranked lists."""

    def __init__(self, database: Database, explanations: Explanations, clock: Clock) -> None:
        super().__init__(database, clock)
        self._explanations = explanations

    @requires(Action.TRIAGE)
    def targets(self, filters: WorklistFilters) -> dict[AlertId, int]:
        """Return all alerts that the filters let through, with the versions of where they stand, for one act on all.

        Raise RefusedError if there are more than one act takes.
        """
        now = self._clock()
        with self._database.read() as uow:
            run = find_run(uow, filters.run_id)
            if run is None:
                return {}
            zone = ZoneInfo(uow.snapshots.get(run.snapshot_id).site_timezone)
            restriction = restriction_of(uow, run, filters, zone, now)
            page = uow.alerts.page(run.id, limit=MOST_AT_ONCE, **restriction)
            if page.next_cursor is not None:
                raise RefusedError(
                    f"These filters leave more than {MOST_AT_ONCE:,} alerts. Narrow them to triage them together."
                )
            keys = {row.id: decision_of(row) for row in page.rows}
            status = uow.triage.status(list(keys.values()))
            return {alert_id: status[key].version if key in status else 0 for alert_id, key in keys.items()}

    @requires(Action.SEE_ALERTS, unit_of="alert_id")
    def line(self, alert_id: AlertId, filters: WorklistFilters) -> WorklistLine:
        """Return the line of an alert, whether the filters let it through or not; then it is the alert alone.

        Raise NotFoundError if there is no such alert, RefusedError if the reader of the filters has still to judge the
        decision without knowing its score.
        """
        now = self._clock()
        with self._database.read() as uow:
            record = uow.alerts.get(alert_id)
            refuse_withheld(uow, record, filters.reader)
            run = uow.runs.get(record.run_id)
            snapshot = uow.snapshots.get(run.snapshot_id)
            zone = ZoneInfo(snapshot.site_timezone)
            listed = replace(filters, run_id=run.id, scorer=record.scorer)
            restriction = restriction_of(uow, run, listed, zone, now)
            line = members_of(uow, run.id, listed.grouping, listed.order, record, restriction)
            return lines_in_words(uow, [line], listed.grouping, snapshot, now)[0]

    @requires(Action.SEE_ALERTS, unit_of="alert_id")
    def past_instance(self, alert_id: AlertId, position: int, person_id: PersonId | None = None) -> Timeline:
        """Return the time line of one of the nearest past instances of an alert, by its place in the list of its page.

        Raise NotFoundError if there is no such alert or past instance, RefusedError if the person has still to judge
        the decision without knowing its score.
        """
        with self._database.read() as uow:
            record = uow.alerts.get(alert_id)
            refuse_withheld(uow, record, person_id)
            run = uow.runs.get(record.run_id)
            snapshot = uow.snapshots.get(run.snapshot_id)
            result = uow.runs.past_of_task(run, record.task_id, record.scorer)
            past = Past(run, result, uow.runs.cached_folds(run))
        found = self._explanations.past_timeline(snapshot.content_hash, record, past, position)
        if found is None:
            raise NotFoundError(f"Alert {alert_id} has no past instance {position + 1}. Reload its page.")
        return found

    @requires(Action.SEE_RESULTS)
    def expected_rate(self, filters: WorklistFilters) -> ExpectedRate | None:
        """Return the expected true-alert rate inside the budget of run, scorer and decision.

        There is none until a study of the run is judged.
        """
        with self._database.read() as uow:
            run = find_run(uow, filters.run_id)
            study = judged_study(uow, run.id) if run is not None else None
            if run is None or study is None:
                return None
            return expected_rate(uow, run, study, filters)

    @requires(Action.SEE_ALERTS)
    def units(self, filters: WorklistFilters) -> tuple[tuple[str, int, int], ...]:
        """Count the alerts that the filters let through by unit: name, omissions, commissions; most alerts first."""
        with self._database.read() as uow:
            run = find_run(uow, filters.run_id)
            if run is None:
                return ()
            zone = ZoneInfo(uow.snapshots.get(run.snapshot_id).site_timezone)
            counts = uow.alerts.units(run.id, **restriction_of(uow, run, filters, zone, self._clock()))
        rows = [(unit, n.get(Decision.OMISSION, 0), n.get(Decision.COMMISSION, 0)) for unit, n in counts.items()]
        return tuple(sorted(rows, key=lambda row: (-row[1] - row[2], row[0])))
