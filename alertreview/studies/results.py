"""What a study has brought: votes, cases with scores, and progress, as plain rows for reports and exports."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from alertreview.studies.models import (
    JUDGED,
    CaseForReport,
    ReaderProgress,
    ScorerSays,
    StudyProgress,
    counted_slots,
    states_of_cases,
    zone_of,
)
from core.errors import RefusedError
from core.statistics import design_weighted_auc
from core.statistics.candidate_figures import CandidateFigures
from core.statistics.consensus import majority_label
from core.statistics.estimate import Estimate
from core.vocabulary import CaseId, CaseState, PersonId, SlotState, StudyStatus
from db.models import CaseScore, CastVote, NamedReader, Slot, Study
from db.unit_of_work import UnitOfWork


def votes(uow: UnitOfWork, slug: str) -> tuple[CastVote, ...]:
    """Return the current judgments of a study, by case and reader, without hidden repeats."""
    study = _for_report(uow, slug)
    zone = zone_of(uow, study)
    return tuple(row.in_zone(zone) for row in uow.judgments.votes(study.id) if not row.repeat_number)


def repeats(uow: UnitOfWork, slug: str) -> tuple[tuple[CastVote, CastVote], ...]:
    """Return pairs of a reader's judgments of the same decision: the first showing and a hidden repeat."""
    study = _for_report(uow, slug)
    zone = zone_of(uow, study)
    decision = {case.id: (case.instance_id, case.task_id) for case in uow.cases.in_study(study.id)}
    rows = uow.judgments.votes(study.id)
    first = {(row.reviewer_id, decision[row.case_id]): row for row in rows if not row.repeat_number}
    return tuple(
        (first[row.reviewer_id, decision[row.case_id]].in_zone(zone), row.in_zone(zone))
        for row in rows
        if row.repeat_number and (row.reviewer_id, decision[row.case_id]) in first
    )


def auc_on_candidates(
    cases: Sequence[CaseForReport], labels: npt.NDArray[np.float64], scores: npt.NDArray[np.float64]
) -> Estimate:
    """Return the AUC of scores of a study's cases on all candidates of its run, with the interval of reports."""
    names = sorted({case.stratum for case in cases})
    sizes = {case.stratum: case.stratum_size for case in cases}
    return design_weighted_auc(
        labels,
        scores,
        patients=[case.patient_id for case in cases],
        inclusion_probability=[case.inclusion_probability for case in cases],
        strata=[names.index(case.stratum) for case in cases],
        stratum_sizes=[sizes[name] for name in names],
    )


def share_on_candidates(
    cases: Sequence[CaseForReport], labels: npt.NDArray[np.float64], inside: npt.NDArray[np.bool_]
) -> Estimate:
    """Return the share of relevant candidates where some of a study's cases lie, with the interval of reports."""
    names = sorted({case.stratum for case in cases})
    sizes = {case.stratum: float(case.stratum_size) for case in cases}
    figures = CandidateFigures(
        labels,
        np.array([1.0 / case.inclusion_probability for case in cases]),
        np.unique([case.patient_id for case in cases], return_inverse=True)[1].astype(np.int64),
        np.array([names.index(case.stratum) for case in cases], dtype=np.int64),
        np.array([sizes[name] for name in names]),
        level=0.95,
    )
    return figures.share(inside)


def case_rows(uow: UnitOfWork, slug: str) -> tuple[CaseForReport, ...]:
    """Return the cases of a study with how they were chosen and what scorers say, without hidden repeats."""
    study = _for_report(uow, slug)
    zone = zone_of(uow, study)
    states = states_of_cases(uow, study)
    scores = _by_case(uow.cases.scores(study.id))
    adjudicated = {row.case_id: row.answer for row in uow.adjudications.in_study(study.id)}
    return tuple(
        CaseForReport(
            case_id=case.id,
            case_number=case.number,
            row_index=case.row_index,
            patient_id=case.patient_id,
            snapshot_at=case.snapshot_at.astimezone(zone),
            task_key=case.task_key,
            task_name=case.task_name,
            kind=case.kind,
            decision=case.decision,
            unit=case.unit,
            stratum=case.stratum,
            stratum_size=case.stratum_size,
            inclusion_probability=case.inclusion_probability,
            state=states[case.id],
            n_slots=study.n_slots,
            scores=scores.get(case.id, {}),
            adjudicated=adjudicated.get(case.id),
        )
        for case in uow.cases.in_study(study.id)
        if not case.repeat_number
    )


def majority_labels(uow: UnitOfWork, slug: str, cases: Sequence[CaseForReport]) -> npt.NDArray[np.float64]:
    """Return the majority label of some cases of a study: 1 relevant, 0 not, NaN undetermined."""
    answers: dict[CaseId, list[int]] = {case.case_id: [] for case in cases}
    for vote in votes(uow, slug):
        if vote.case_id in answers:
            answers[vote.case_id].append(int(vote.answer))
    matrix = np.full((len(cases), max([1, *map(len, answers.values())])), np.nan)
    for row, given in enumerate(answers.values()):
        matrix[row, : len(given)] = given
    return majority_label(matrix).label


def progress(uow: UnitOfWork, slug: str, now: datetime) -> StudyProgress:
    """Count how far a study and its readers have come; hidden repeats do not count."""
    study = uow.studies.by_slug(slug)
    slots = counted_slots(uow, study)
    case_states = Counter(states_of_cases(uow, study, slots).values())
    zone = zone_of(uow, study)
    saved: dict[PersonId, list[datetime]] = {}
    first: dict[tuple[PersonId | None, CaseId], tuple[datetime, float | None]] = {}
    for reader_id, case_id, moment, active_seconds in uow.judgments.moments(study.id):
        saved.setdefault(reader_id, []).append(moment.astimezone(zone))
        first.setdefault((reader_id, case_id), (moment, active_seconds))
    judged = [(slot.reviewer_id, *first[slot.reviewer_id, slot.case_id]) for slot in slots if slot.state in JUDGED]
    answered = Counter(moment.astimezone(zone).date() for _, moment, _ in judged)
    seconds: dict[PersonId | None, list[float]] = {}
    for holder_id, _, active_seconds in judged:
        if active_seconds is not None:
            seconds.setdefault(holder_id, []).append(active_seconds)
    days = sorted(answered)
    return StudyProgress(
        n_cases=case_states.total(),
        n_complete=case_states.total() - case_states[CaseState.OPEN],
        case_states={state: case_states[state] for state in CaseState},
        n_slots=len(slots),
        slot_states=_count(slots),
        readers=tuple(
            _reader_progress(
                reader,
                study,
                slots,
                saved.get(reader.person_id, []),
                now.astimezone(zone),
                tuple(seconds.get(reader.person_id, ())),
            )
            for reader in uow.studies.readers(study.id)
        ),
        judged_by=tuple(zip(days, accumulate(answered[day] for day in days), strict=True)),
        today=now.astimezone(zone).date(),
    )


def _reader_progress(
    reader: NamedReader,
    study: Study,
    slots: Sequence[Slot],
    saved: Sequence[datetime],
    now: datetime,
    seconds: tuple[float, ...],
) -> ReaderProgress:
    own = [slot for slot in slots if slot.reviewer_id == reader.person_id]
    mine = {slot.case_id for slot in own}
    if study.status is StudyStatus.OPEN:
        mine |= {slot.case_id for slot in slots if slot.is_claimable(now)}
    states = _count(own)
    days = {moment.date() for moment in saved}
    n_judged = sum(states[state] for state in JUDGED)
    n_days = (now.date() - min(days)).days + 1 if len(days) > 1 else 0
    return ReaderProgress(
        reader.person_id,
        reader.code,
        reader.name,
        states,
        n_mine=len(mine),
        last_judged_at=max(saved, default=None),
        per_day=n_judged / n_days if n_days > 0 else None,
        seconds=seconds,
    )


def _for_report(uow: UnitOfWork, slug: str) -> Study:
    study = uow.studies.by_slug(slug)
    if study.is_calibration:
        raise RefusedError(f"Study '{slug}' is for calibration; its judgments never enter a report or an export.")
    return study


def _by_case(rows: Iterable[CaseScore]) -> dict[CaseId, dict[str, ScorerSays]]:
    scores: dict[CaseId, dict[str, ScorerSays]] = {}
    for row in rows:
        says = ScorerSays(row.score, row.scaled_score, row.soft_label, row.support)
        scores.setdefault(row.case_id, {})[row.scorer] = says
    return scores


def _count(slots: Iterable[Slot]) -> dict[SlotState, int]:
    counted = Counter(slot.state for slot in slots)
    return {state: counted[state] for state in SlotState}
