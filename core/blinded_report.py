"""The part of a report that may be seen while its readers are still blinded."""

import dataclasses

from core.estimate import Estimate, not_computable
from core.open_panel import OPEN_PANEL_LIMIT
from core.study_report import AgreementFigures, AgreementReport, Ceiling, DawidSkeneReport, ResultSet, StudyReport

BLINDED_HIDDEN = "Results are hidden while readers are blinded. They are shown when the study is locked."
OPEN_PANEL_HIDDEN = "Results are hidden from the readers of an open panel until it is locked."
HIDDEN = "hidden while readers are blinded; shown when the study is locked"
HIDDEN_IN_PANEL = "hidden from readers; shown when the panel is locked"
HIDDEN_COUNT = "hidden until you have finished"
HIDDEN_COUNT_IN_PANEL = "hidden until it is locked"


def hidden_count(report: StudyReport) -> str:
    """Say what stands in place of a number that a report hides; empty when it hides none."""
    if not report.hidden:
        return ""
    return HIDDEN_COUNT_IN_PANEL if report.is_open_panel else HIDDEN_COUNT


def blinded_report(report: StudyReport) -> StudyReport:
    """Keep what may be seen while readers are still blinded: counts of cases and judgments, no votes and no figures.

    Parameters
    ----------
    report : StudyReport

    Returns
    -------
    StudyReport
        With `hidden` set; every figure says that it is hidden, and lists of results, readers, pairs and strata are
        empty: how many cases of high score there are tells a reader what to expect of the next one.
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
        ceiling=Ceiling(nothing, nothing, None, report.ceiling.n_readers),
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
    )
