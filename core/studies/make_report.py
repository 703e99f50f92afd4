"""The report of a study, from votes and scores to figures: one pure function over arrays."""

import dataclasses
from collections.abc import Collection, Mapping

import numpy as np

from core.statistics.ceiling import agreement_ceiling
from core.statistics.consensus import (
    RELEVANT_ONLY,
    UNUSUAL_OR_RELEVANT,
    CaseLabels,
    ReaderReliability,
    adjudicated_label,
    case_state,
    dawid_skene,
    majority_label,
    positive_votes,
    without_open,
)
from core.statistics.estimate import Ceiling, Estimate, not_computable
from core.studies.report import (
    FORMAT_VERSION,
    AgreementFigures,
    AgreementReport,
    DawidSkeneReport,
    FlowDiagram,
    ResultSet,
    StratumReport,
    StudyReport,
)
from core.studies.report_input import StudyArrays, StudyInput, prepare
from core.studies.results import (
    Labelling,
    agreement_report,
    dawid_skene_report,
    multi_reader_report,
    reader_reports,
    result_set,
)
from core.studies.texts import headline, warnings
from core.vocabulary import OPEN_PANEL_LIMIT, Answer, CaseState

__all__ = ["StudyInput", "StudyReport", "study_report"]


def study_report(study: StudyInput) -> StudyReport:
    """Make the report of a study, the same whatever the order of its rows. What cannot be computed says why.

    Raise InvalidInputError if a table is malformed. Too few votes, one class, lost runs and the like do not raise.
    """
    arrays = prepare(study)
    states = case_states(arrays)
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
        n_cannot_judge=int((~np.isnan(arrays.answers) & np.isnan(positive)).sum()),
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
        headline_budget=study.headline_budget,
        ceiling_second_rule=agreement_ceiling(
            positive_votes(arrays.answers, UNUSUAL_OR_RELEVANT),
            weight=arrays.weight,
            patient=arrays.patient,
            n_readers=study.n_slots,
            level=study.level,
        ),
        multi_reader=multi_reader_report(arrays),
    )


def _results(
    arrays: StudyArrays, labellings: Mapping[str, Labelling], states: tuple[CaseState, ...]
) -> dict[str, ResultSet]:
    """Return one result set per labelling; equal labels are computed once and shown twice."""
    results: dict[str, ResultSet] = {}
    for key, labelling in labellings.items():
        twin = next((k for k in results if labellings[k].same_figures_as(labelling)), None)
        if twin is None:
            results[key] = result_set(arrays, labelling, states)
        else:
            results[key] = dataclasses.replace(results[twin], key=key, title=labelling.title)
    return results


def case_states(arrays: StudyArrays) -> tuple[CaseState, ...]:
    """Return the state of each case, as report and exports name it."""
    adjudicated = ~np.isnan(arrays.numbers("adjudicated_answer"))
    return tuple(
        case_state(row.tolist(), arrays.source.n_slots, adjudicated=bool(done))
        for row, done in zip(arrays.answers, adjudicated, strict=True)
    )


def _labellings(
    arrays: StudyArrays, states: tuple[CaseState, ...], reliability: ReaderReliability
) -> Mapping[str, Labelling]:
    """Return every way of labelling the cases, in the order of the report."""
    waiting = _waiting(arrays)
    adjudications = arrays.numbers("adjudicated_answer")
    first, second = (*arrays.source.positive_texts, "", "")[:2]
    majority = majority_labels(arrays)
    wider = majority_labels(arrays, UNUSUAL_OR_RELEVANT)
    adjudicated = adjudicated_label(majority, adjudications)
    adjudicated_wider = adjudicated_label(wider, adjudications, UNUSUAL_OR_RELEVANT)
    why_not = reliability.reason.removeprefix("not computable: ") or "votes do not decide"
    skene = without_open(_labels(reliability.label, why_not), waiting)
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


def majority_labels(arrays: StudyArrays, positive: Collection[Answer] = RELEVANT_ONLY) -> CaseLabels:
    """Return majority labels as report and exports use them: open cases of an open study have none."""
    return without_open(majority_label(arrays.answers, positive), _waiting(arrays))


def _waiting(arrays: StudyArrays) -> np.ndarray:
    n_judged = (~np.isnan(arrays.answers)).sum(axis=1)
    return np.zeros(arrays.n, dtype=bool) if arrays.source.locked else n_judged < arrays.source.n_slots


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


BLINDED_HIDDEN = "Results are hidden while readers are blinded. They are shown when the study is locked."
OPEN_PANEL_HIDDEN = "Results are hidden from the readers of an open panel until it is locked."
HIDDEN = "hidden while readers are blinded; shown when the study is locked"
HIDDEN_IN_PANEL = "hidden from readers; shown when the panel is locked"
HIDDEN_COUNT = "hidden until you have finished"
HIDDEN_COUNT_IN_PANEL = "hidden until it is locked"


def hidden_count(report: StudyReport) -> str:
    """Return the text in place of a number that a report hides; empty if it hides none."""
    if not report.hidden:
        return ""
    return HIDDEN_COUNT_IN_PANEL if report.is_open_panel else HIDDEN_COUNT


def blinded_report(report: StudyReport) -> StudyReport:
    """Return only what may be seen while readers are blinded: counts of cases and judgments, with `hidden` set.

    Every figure says that it is hidden, and lists of results, readers, pairs and strata are empty: how many cases of
    high score there are tells a reader what to expect of the next one.
    """
    why = HIDDEN_IN_PANEL if report.is_open_panel else HIDDEN
    nothing = dataclasses.replace(not_computable(why, level=report.level), reason=why)
    name = report.agreement.answers.name
    figures = AgreementFigures(name, 0, 0, raw=nothing, fleiss=nothing, alpha=nothing, ac1=nothing)
    flow = dataclasses.replace(report.flow, n_decided=0, left_out={})
    return dataclasses.replace(
        report,
        hidden=True,
        n_cannot_judge=0,
        headline=(OPEN_PANEL_HIDDEN if report.is_open_panel else BLINDED_HIDDEN,),
        warnings=tuple(w for w in report.warnings if w.startswith("Simulated") or w == OPEN_PANEL_LIMIT),
        results=(_hidden_result(report.primary, nothing),),
        agreement=AgreementReport(answers=figures, positive=figures),
        ceiling=Ceiling(nothing, nothing, None, report.ceiling.n_readers, nothing, nothing),
        ceiling_second_rule=None,
        multi_reader=None,
        readers=(),
        dawid_skene=DawidSkeneReport(0, None, {}, {}, 0, False, 0, why),
        flow=flow,
        strata=(),
        design={name: text for name, text in report.design.items() if not name.startswith("selection")},
    )


def _hidden_result(result: ResultSet, nothing: Estimate) -> ResultSet:
    return dataclasses.replace(
        result,
        n_used=0,
        n_positive=0,
        left_out={},
        prevalence_naive=nothing,
        prevalence_weighted=nothing,
        scorers=(),
        comparisons=(),
        alert_rates=(),
        cases=(),
        operating_point=None,
        calibration=(),
        subgroup_differences=(),
    )
