"""The report of a study, from votes and scores to figures: one pure function over arrays."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from core.ceiling import agreement_ceiling
from core.consensus import (
    UNUSUAL_OR_RELEVANT,
    CaseLabels,
    adjudicated_label,
    case_state,
    majority_label,
    positive_votes,
    without_open,
)
from core.dawid_skene import ReaderReliability, dawid_skene
from core.report_readers import agreement_report, dawid_skene_report, reader_reports
from core.report_results import Labelling, result_set
from core.report_texts import headline, warnings
from core.study_input import StudyArrays, StudyInput, prepare
from core.study_report import FORMAT_VERSION, FlowDiagram, ResultSet, StratumReport, StudyReport
from core.vocabulary import Answer, CaseState

__all__ = ["StudyInput", "StudyReport", "study_report"]


def study_report(study: StudyInput) -> StudyReport:
    """Make the report of a study.

    Parameters
    ----------
    study : StudyInput

    Returns
    -------
    StudyReport
        The same for the same input, whatever the order of its rows. What cannot be computed says why.

    Raises
    ------
    InvalidInputError
        If a table is malformed. Too few votes, one class, lost runs and the like do not raise: the report says so.
    """
    arrays = prepare(study)
    states = _states(arrays)
    positive = positive_votes(arrays.answers)
    reliability = dawid_skene(positive)
    labellings = _labellings(arrays, states, reliability)
    results = _results(arrays, labellings, states)
    majority = labellings["majority-3"].labels
    agreement = agreement_report(arrays)
    ceiling = agreement_ceiling(
        positive, weight=arrays.weight, patient=arrays.patient, n_readers=study.n_slots, level=study.level
    )
    skene = dawid_skene_report(arrays, reliability, majority.label)
    return StudyReport(
        format_version=FORMAT_VERSION,
        slug=study.slug,
        title=study.title,
        simulated=study.simulated,
        locked=study.locked,
        hidden=False,
        question=study.question,
        positive_texts=tuple(study.positive_texts),
        primary_scorer=next(iter(study.scorer_labels)),
        n_cases=arrays.n,
        n_patients=len(set(arrays.patient.tolist())),
        n_readers=len(arrays.readers),
        n_slots=study.n_slots,
        n_votes=int((~np.isnan(positive)).sum()),
        n_cannot_judge=int((arrays.answers == Answer.CANNOT_JUDGE).sum()),
        headline=headline(arrays, results["majority-3"], agreement, ceiling),
        warnings=warnings(arrays, results, agreement, ceiling, skene),
        results=tuple(results.values()),
        agreement=agreement,
        ceiling=ceiling,
        readers=reader_reports(arrays),
        dawid_skene=skene,
        flow=_flow(arrays, majority),
        strata=_strata(arrays, majority),
        design={str(key): str(value) for key, value in study.design.items()},
        level=study.level,
    )


def _results(
    arrays: StudyArrays, labellings: Mapping[str, Labelling], states: tuple[CaseState, ...]
) -> dict[str, ResultSet]:
    """One result set for each labelling; equal labels are computed once and shown twice."""
    results: dict[str, ResultSet] = {}
    for key, labelling in labellings.items():
        twin = next((k for k in results if labellings[k].same_figures_as(labelling)), None)
        if twin is None:
            results[key] = result_set(arrays, labelling, states)
        else:
            results[key] = dataclasses.replace(results[twin], key=key, title=labelling.title)
    return results


def _states(arrays: StudyArrays) -> tuple[CaseState, ...]:
    adjudicated = ~np.isnan(arrays.numbers("adjudicated_answer"))
    return tuple(
        case_state(row.tolist(), arrays.source.n_slots, adjudicated=bool(done))
        for row, done in zip(arrays.answers, adjudicated, strict=True)
    )


def _labellings(
    arrays: StudyArrays, states: tuple[CaseState, ...], reliability: ReaderReliability
) -> Mapping[str, Labelling]:
    """Every way of labelling the cases, in the order of the report."""
    n_judged = (~np.isnan(arrays.answers)).sum(axis=1)
    waiting = np.zeros(arrays.n, dtype=bool) if arrays.source.locked else n_judged < arrays.source.n_slots
    adjudications = arrays.numbers("adjudicated_answer")
    first, second = (*arrays.source.positive_texts, "", "")[:2]
    majority = without_open(majority_label(arrays.answers), waiting)
    wider = without_open(majority_label(arrays.answers, UNUSUAL_OR_RELEVANT), waiting)
    adjudicated = adjudicated_label(majority, adjudications)
    adjudicated_wider = adjudicated_label(wider, adjudications, UNUSUAL_OR_RELEVANT)
    skene = without_open(_labels(reliability.label, "votes do not decide"), waiting)
    made = [
        Labelling("majority-3", f"Majority of the readers; positive: {first}", majority, in_full=True),
        Labelling("adjudicated-3", f"After adjudication; positive: {first}", adjudicated, in_full=True),
        Labelling("majority-2-3", f"Majority of the readers; positive: {second}", wider, in_full=True),
        Labelling("adjudicated-2-3", f"After adjudication; positive: {second}", adjudicated_wider, in_full=True),
        Labelling("dawid-skene-3", f"Readers weighted by reliability; positive: {first}", skene, in_full=False),
    ]
    record = arrays.numbers("record_reference")
    if not np.isnan(record).all():
        labels = _labels(record, "the record does not tell")
        made.append(Labelling("record", "What the record shows in the next 24–72 h", labels, in_full=True))
    return {labelling.key: labelling for labelling in made}


def _labels(values: np.ndarray, why_not: str) -> CaseLabels:
    return CaseLabels(values, tuple(why_not if np.isnan(v) else "" for v in values))


def _flow(arrays: StudyArrays, majority: CaseLabels) -> FlowDiagram:
    judged = (~np.isnan(arrays.answers)).sum(axis=1)
    return FlowDiagram(
        n_instances=arrays.source.n_instances,
        n_candidates=arrays.source.n_candidates,
        n_chosen=arrays.n,
        n_judged=int((judged > 0).sum()),
        n_complete=int((judged >= arrays.source.n_slots).sum()),
        n_decided=majority.n,
        left_out=majority.left_out,
    )


def _strata(arrays: StudyArrays, majority: CaseLabels) -> tuple[StratumReport, ...]:
    stratum, decided = arrays.column("stratum"), ~np.isnan(majority.label)
    reports = []
    for name, population, chosen in arrays.source.strata:
        inside = stratum == name
        reports.append(
            StratumReport(
                stratum=name,
                n_population=population,
                n_chosen=chosen,
                inclusion_probability=chosen / population if population else 0.0,
                n_decided=int((inside & decided).sum()),
                n_positive=int((inside & (majority.label == 1.0)).sum()),
            )
        )
    return tuple(reports)
