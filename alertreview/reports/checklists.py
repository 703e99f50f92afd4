"""Items of reporting checklists that the database can fill, each in words of our own with the answer from the report.

The lists themselves are published elsewhere and are longer; items that only people can answer are named as theirs.
"""

from collections.abc import Callable
from dataclasses import dataclass

from alertreview.reports.blocks import Block, Heading, Paragraph, Table
from alertreview.reports.design_words import design_in_words
from core.number_texts import counted
from core.studies.report import StudyReport
from core.studies.report_input import SAW_SCORE, STRATA_BY
from core.vocabulary import NO_VOTE_WORDS, OPEN_PANEL_LIMIT


@dataclass(frozen=True)
class ChecklistItem:
    """One item of a checklist."""

    checklist: str  # "STARD 2015", "TRIPOD+AI", "DECIDE-AI" or "GRRAS"
    number: str  # as in the publication
    topic: str  # what it asks for, in short
    answer: str  # from the report; empty when only people can answer


def _design_value(report: StudyReport, *names: str) -> str:
    told = [design_in_words(name, report.design[name]) for name in names if name in report.design]
    return "; ".join(f"{name}: {value}" for name, value in told)


def _participants(report: StudyReport) -> str:
    flow = report.flow
    parts = [f"{n:,} {what}" for n, what in ((flow.n_instances, "instances"), (flow.n_candidates, "candidates")) if n]
    return ", ".join([*parts, f"{counted(flow.n_chosen, 'case')} of {counted(report.n_patients, 'patient')} chosen"])


def _sampling(report: StudyReport) -> str:
    strata = "; ".join(f"{s.stratum}: {s.n_chosen} of {s.n_population:,}" for s in report.strata)
    scores = f"scaled score of {report.design[STRATA_BY]}" if STRATA_BY in report.design else "scaled score"
    return f"Stratified by {scores}, known inclusion probabilities ({strata})" if strata else ""


def _reference(report: StudyReport) -> str:
    return f"Majority of {counted(report.n_slots, 'reader')} per case; positive: {report.positive_texts[0]}"


def _known(report: StudyReport) -> str:
    if report.is_open_panel:
        return OPEN_PANEL_LIMIT
    if seen := int(report.design.get(SAW_SCORE, 0)):
        return f"Readers were shown no score; {counted(seen, 'judgment')} came after the reader had seen it elsewhere"
    return "Readers saw no score before they judged (setting of the study)"


def _blinding(report: StudyReport) -> str:
    return "Open panel, see STARD 2015, 13b" if report.is_open_panel else _known(report)


def _cross(report: StudyReport) -> str:
    point = report.primary.operating_point
    if point is None:
        return ""
    shown = f"shown: {point.n_shown_relevant} relevant, {point.n_shown_other} not"
    hidden = f"not shown: {point.n_missed_relevant} relevant, {point.n_cleared} not"
    return f"At {point.alerts_per_patient_day:g} alerts per patient-day {shown}; {hidden}"


def _agreement(report: StudyReport) -> str:
    found = report.agreement.positive
    raw, kappa, ac1 = found.raw.full_text(percent=True), found.fleiss.full_text(), found.ac1.full_text()
    return f"Relevant or not: raw {raw}, Fleiss κ {kappa}, Gwet AC1 {ac1}"


def _agreement_methods(report: StudyReport) -> str:
    found = report.agreement.positive
    return "; ".join(dict.fromkeys(one.method for one in (found.raw, found.fleiss, found.alpha, found.ac1)))


def _independence(report: StudyReport) -> str:
    repeats = report.agreement.repeats
    again = f"; {counted(repeats.n_pairs, 'case')} came back hidden" if repeats is not None else ""
    return (
        f"{_blinding(report)}{again}"
        if report.is_open_panel
        else f"{_known(report)}; no other answers were shown{again}"
    )


def _in_use(report: StudyReport) -> str:
    """Agreement of people and system: only where people saw what the system said, and were people."""
    return _comparison_with_readers(report) if report.is_open_panel and not report.simulated else ""


def _positive(report: StudyReport) -> str:
    return f"{report.positive_texts[0]}; in a second result {report.positive_texts[-1]}"


def _readers(report: StudyReport) -> str:
    return f"{counted(report.n_readers, 'reader')}, {report.n_slots} for each case, {counted(report.n_votes, 'vote')}"


def _indeterminate(report: StudyReport) -> str:
    left_out = "; ".join(f"{why}: {n}" for why, n in report.primary.left_out.items()) or "none"
    return f"Undetermined cases are left out and listed ({left_out}); '{NO_VOTE_WORDS}' {report.n_cannot_judge} times"


def _missing(report: StudyReport) -> str:
    primary = report.primary
    return "; ".join(f"{s.label}: {primary.n_used - s.n} decided cases without score" for s in primary.scorers)


def _accuracy(report: StudyReport) -> str:
    scorers = report.primary.scorers
    return "; ".join(
        f"{s.label}: AUC {s.auc_weighted.full_text()} weighted, {s.auc_naive.full_text()} naive" for s in scorers
    )


def _severity(report: StudyReport) -> str:
    result = report.primary
    naive, weighted = (
        result.prevalence_naive.full_text(percent=True),
        result.prevalence_weighted.full_text(percent=True),
    )
    return f"{result.n_positive} of {result.n_used} relevant ({naive}); weighted to all candidates {weighted}"


def _subgroups(report: StudyReport) -> str:
    groups = report.primary.scorers[0].subgroups
    return f"{len(groups)} groups by {', '.join(dict.fromkeys(g.grouping for g in groups))}" if groups else ""


def _comparison_with_readers(report: StudyReport) -> str:
    key = report.primary_scorer
    against = "; ".join(f"{r.reader}: AUC {r.auc_against[key].full_text()}" for r in report.readers)
    raw, kappa = report.agreement.positive.raw.full_text(percent=True), report.agreement.positive.fleiss.full_text()
    return f"{against}. Among readers: raw {raw}, Fleiss κ {kappa}"


def _methods(report: StudyReport) -> str:
    return report.primary.scorers[0].auc_weighted.method


def _flow(report: StudyReport) -> str:
    flow = report.flow
    return f"{flow.n_chosen} chosen, {flow.n_judged} judged, {flow.n_decided} decided; see the flow diagram"


def _versions(report: StudyReport) -> str:
    return _design_value(report, *report.design)


def _people(_: StudyReport) -> str:
    return ""


_Fill = Callable[[StudyReport], str]

_STARD: tuple[tuple[str, str, _Fill], ...] = (
    ("6", "who was eligible", _participants),
    ("9", "consecutive, random or convenience series", _sampling),
    ("10b", "reference standard", _reference),
    ("12b", "what counts as positive in the reference standard", _positive),
    ("13b", "what assessors of the reference standard knew", _known),
    ("14", "how accuracy was estimated and compared", _methods),
    ("15", "indeterminate results", _indeterminate),
    ("16", "missing data", _missing),
    ("17", "variability in accuracy", _subgroups),
    ("18", "intended sample size and how it was found", _people),
    ("19", "flow of participants", _flow),
    ("21a", "severity in those with the condition", _people),
    ("23", "cross tabulation of index test and reference standard", _cross),
    ("24", "accuracy with its precision", _accuracy),
    ("26", "limitations", _people),
)
_TRIPOD: tuple[tuple[str, str, _Fill], ...] = (
    ("6b", "who was eligible", _participants),
    ("8a", "outcome and how it was assessed", _reference),
    ("8c", "what assessors of the outcome knew", _blinding),
    ("11", "missing data", _missing),
    ("12e", "measures of performance", _methods),
    ("14", "fairness", _subgroups),
    ("18a", "funding", _people),
    ("20a", "flow of participants", _flow),
    ("20b", "characteristics, with the number that has the outcome", _severity),
    ("22", "the full model and its versions", _versions),
    ("23a", "performance with intervals", _accuracy),
    ("26", "limitations", _people),
)
_DECIDE: tuple[tuple[str, str, _Fill], ...] = (
    ("3a", "patients: recruitment and number", _participants),
    ("3b", "users: recruitment and number", _readers),
    ("4a", "the system, its version and algorithm", _versions),
    ("IV", "outcomes", _reference),
    ("V", "analysis", _methods),
    ("VII", "main results", _accuracy),
    ("VIII", "subgroups", _subgroups),
    ("12", "agreement of people and system", _in_use),
    ("13a", "safety and errors", _people),
)

_GRRAS: tuple[tuple[str, str, _Fill], ...] = (
    ("2", "what was rated and how", _positive),
    ("3", "subjects", _participants),
    ("4", "raters", _people),
    ("6", "how the sample size was chosen", _people),
    ("7", "how subjects were sampled", _sampling),
    ("8", "rating process and blinding", _blinding),
    ("9", "whether ratings were independent", _independence),
    ("10", "statistical analysis", _agreement_methods),
    ("11", "number of raters and subjects", _readers),
    ("13", "agreement with its precision", _agreement),
    ("14", "practical relevance", _people),
)


def checklist_items(report: StudyReport) -> tuple[ChecklistItem, ...]:
    """Fill what the report can fill, by checklist and in the order of its numbers."""
    lists = (("STARD 2015", _STARD), ("TRIPOD+AI", _TRIPOD), ("DECIDE-AI", _DECIDE), ("GRRAS", _GRRAS))
    return tuple(
        ChecklistItem(name, number, topic, fill(report)) for name, items in lists for number, topic, fill in items
    )


def checklist_blocks(report: StudyReport) -> list[Block]:
    """Return the checklists as blocks, with what remains for people in words."""
    rows = tuple(
        (item.checklist, item.number, item.topic, item.answer or "for the authors to write")
        for item in checklist_items(report)
    )
    words = (
        "Items that follow from the database are filled in. The others, and items not named here, are for the authors: "
        "see STARD 2015 (Bossuyt et al., BMJ 2015), TRIPOD+AI (Collins et al., BMJ 2024), DECIDE-AI (Vasey et al., "
        "Nature Medicine 2022) and GRRAS (Kottner et al., Journal of Clinical Epidemiology 2011)."
    )
    return [
        Heading("Reporting checklists"),
        Paragraph(words),
        Table("Checklist items.", ("List", "Item", "Asks for", "Answer"), rows),
    ]
