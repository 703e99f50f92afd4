"""How many alerts inside a budget are expected to be judged relevant, from a judged study of the same run."""

from dataclasses import dataclass

import numpy as np

from alertreview.read_models import WorklistFilters
from alertreview.study_results import case_rows, progress, votes
from alertreview.study_rows import CaseForReport
from alertreview.worklist_restriction import ranks_at_budget
from core.alert_rate import weighted_share
from core.consensus import majority_label
from core.estimate import Estimate
from core.vocabulary import Answer, Decision, StudyStatus
from db.rows import AlertFilters, RunRow, StudyRow
from db.unit_of_work import UnitOfWork


@dataclass(frozen=True)
class ExpectedRate:
    """Expected true-alert rate inside an alert budget."""

    rate: Estimate
    """Share of relevant alerts, weighted to all alerts inside the budget."""
    n_cases: int
    """Judged cases inside the budget."""
    study: str
    """Title of the study."""


def judged_study(uow: UnitOfWork, run_id: int) -> StudyRow | None:
    """Give the newest blinded study of a run whose judging is over: locked, or every case complete.

    As long as a case is open its readers must not learn results, so an open study gives none. An open panel never
    does: its figures are flattered, because its readers saw the scores.
    """
    for study in uow.studies.all():
        if study.run_id != run_id or study.is_calibration or study.status is StudyStatus.DRAFT or study.is_open_panel:
            continue
        done = progress(uow, study.slug)
        if done.n_cases and (study.status is StudyStatus.LOCKED or done.n_complete == done.n_cases):
            return study
    return None


def expected_rate(uow: UnitOfWork, run: RunRow, study: StudyRow, filters: WorklistFilters) -> ExpectedRate:
    """Compute the true-alert rate inside the budget of the filters.

    Parameters
    ----------
    uow : UnitOfWork
    run : RunRow
        That the study chose its cases from.
    study : StudyRow
        Judged.
    filters : WorklistFilters
        Their decision, budget and scorer count; others would leave too few judged cases to say anything.
    """
    thresholds = _thresholds(uow, run, filters)
    cases = [case for case in case_rows(uow, study.slug) if _inside(case, run, filters, thresholds)]
    answers: dict[int, list[int]] = {}
    for vote in votes(uow, study.slug):
        if vote.answer is not Answer.CANNOT_JUDGE:
            answers.setdefault(vote.case_id, []).append(int(vote.answer))
    most = max((len(given) for given in answers.values()), default=1)
    table = np.full((len(cases), most), np.nan)
    for row, case in enumerate(cases):
        given = answers.get(case.case_id, [])
        table[row, : len(given)] = given
    labels = majority_label(table).label if cases else np.empty(0)
    rate = weighted_share(
        labels,
        np.array([case.patient_id for case in cases]),
        np.array([1.0 / case.inclusion_probability for case in cases]),
    )
    return ExpectedRate(rate, rate.n, study.title)


def _thresholds(uow: UnitOfWork, run: RunRow, filters: WorklistFilters) -> dict[Decision, float]:
    """Scaled score at which the budget ends in each list."""
    ranks = ranks_at_budget(uow, run, filters)
    found = {}
    for decision in Decision:
        listed = AlertFilters(
            scorer=filters.scorer,
            decision=decision,
            include_cut_windows=filters.include_cut_windows,
            max_ranks={one: rank for one, rank in ranks.items() if one is decision},
        )
        lowest = uow.alerts.lowest_scaled_score(run.id, **listed)
        if lowest is not None:
            found[decision] = lowest
    return found


def _inside(case: CaseForReport, run: RunRow, filters: WorklistFilters, thresholds: dict[Decision, float]) -> bool:
    said = case.scores.get(filters.scorer or run.scorer)
    return (
        said is not None
        and filters.decision in {None, case.decision}
        and case.decision in thresholds
        and said.scaled_score >= thresholds[case.decision]
    )
