"""The report of a study as a document: which figures and tables, in which order, in which words."""

import math
from collections.abc import Iterable, Mapping

from alertreview.reports.blocks import Block, Bullets, Cards, Document, Figure, Heading, Paragraph, Table
from alertreview.reports.checklists import checklist_blocks
from alertreview.reports.design_words import design_in_words
from alertreview.reports.figures import agreement_of_readers, alert_rate, flow, roc
from alertreview.reports.plot import Plot
from alertreview.reports.reviewer import KIND_WORDS, p_text, reviewer_blocks
from alertreview.reports.signing import Signature, content_hash
from core.number_texts import counted, fixed_text, percent_text
from core.statistics.estimate import Estimate
from core.studies.make_report import hidden_count
from core.studies.report import AgreementFigures, AlertRateCurve, ResultSet, StudyReport
from core.studies.texts import headline_point
from core.vocabulary import NO_VOTE_WORDS, OPEN_PANEL, OPEN_PANEL_LIMIT


def report_document(report: StudyReport, signatures: Iterable[Signature] = ()) -> Document:
    """Lay out a report; a hidden one shows counts only."""
    state = "locked" if report.locked else "open, votes still come in"
    numbers = ((report.n_cases, "case"), (report.n_patients, "patient"), (report.n_slots, "reader"))
    counts = ", ".join(counted(n, noun) for n, noun in numbers) + " each"
    mark = f" · {OPEN_PANEL}" if report.is_open_panel else ""
    subtitle = f"{report.title} · {state}{mark} · {counts}"
    blocks: list[Block] = [Paragraph(f"**{OPEN_PANEL_LIMIT}**")] if report.is_open_panel else []
    blocks.append(Paragraph(" ".join(report.headline)))
    if not report.hidden:
        blocks += [_cards(report), *_limits(report), *_flow(report), *_auc(report), *_rates(report)]
        blocks += [*_agreement(report), *_readers(report), *_other_labels(report), *_subgroups(report)]
        blocks += [*reviewer_blocks(report), *_reliability(report), *_methods(report)]
    else:
        blocks += _flow(report)
    blocks += [*_design(report), *_signatures(report, signatures)]
    if not report.hidden:  # what is looked up and not read comes last
        blocks += [*checklist_blocks(report), *_cases(report)]
    banner = "Simulated: no figure of this report says anything about real patients or real readers."
    footer = f"Content {content_hash(report)}"
    return Document("How good are the alerts?", subtitle, banner if report.simulated else "", tuple(blocks), footer)


def _cards(report: StudyReport) -> Cards:
    scorer = report.primary.scorers[0]
    point = headline_point(report.primary, report.headline_budget)
    about = f"{scorer.label}, {counted(scorer.n, 'decided case')}"
    cards = [("AUC, design-weighted", *_card(scorer.auc_weighted), about)]
    if point is not None:
        name = f"True-alert rate at {point.alerts_per_patient_day:g}"
        about = f"{counted(point.n_cases, 'decided case')} inside the budget"
        cards.append((name, *_card(point.rate, percent=True), about))
    kappa = report.agreement.positive.fleiss
    about = f"{counted(report.n_readers, 'reader')}, {counted(kappa.n, 'case')}"
    cards.append(("Agreement, Fleiss κ", *_card(kappa), about))
    cards.append(("Highest AUC one can show", *_card(report.ceiling.weighted), "by how far readers agree"))
    return Cards(
        tuple((name, value, f"{interval}; {rest}" if interval else rest) for name, value, interval, rest in cards)
    )


def _card(figure: Estimate, *, percent: bool = False) -> tuple[str, str]:
    """Return value and interval, or what is missing of them and why."""
    if figure.value is None:
        return "–", figure.reason
    words = figure.text(percent=percent)
    value, _, interval = words.partition(" ")
    return value, interval.strip("()") or figure.reason


def _figure(plot: Plot | None, caption: str) -> list[Block]:
    """Return a figure, or nothing when it cannot be drawn; the table below it has the reason."""
    return [Figure(plot, caption)] if plot else []


def _limits(report: StudyReport) -> list[Block]:
    limits = tuple(warning for warning in report.warnings if warning != OPEN_PANEL_LIMIT)  # said above, first of all
    return [Heading("What limits these figures"), Bullets(limits)] if limits else []


def _flow(report: StudyReport) -> list[Block]:
    blocks: list[Block] = [
        Heading("Cases"),
        Figure(flow(report.flow, hidden=hidden_count(report)), "From instances to decided cases."),
    ]
    if report.strata:
        rows = tuple(
            (
                s.stratum,
                f"{s.n_population:,}",
                str(s.n_chosen),
                f"{s.inclusion_probability:.4g}",
                str(s.n_decided),
                str(s.n_positive),
            )
            for s in report.strata
        )
        header = ("Stratum of scaled score", "Candidates", "Chosen", "Chance to be chosen", "Decided", "Relevant")
        blocks.append(Table("How cases were chosen.", header, rows, frozenset({1, 2, 3, 4, 5})))
    return blocks


def _auc(report: StudyReport) -> list[Block]:
    primary = report.primary
    rows = tuple(
        (
            s.label,
            s.auc_naive.full_text(),
            s.auc_weighted.full_text(),
            s.auc_task_mean.text(),
            str(s.n),
            str(s.n_positive),
        )
        for s in primary.scorers
    )
    header = ("Method", "AUC, naive (DeLong)", "AUC, weighted", "Mean over tasks, no interval", "n", "Relevant")
    labels = {s.scorer: s.label for s in primary.scorers}
    pairs = tuple(
        (
            f"{labels[c.scorer_a]} − {labels[c.scorer_b]}",
            c.difference_naive.full_text(3),
            p_text(c.p_value),
            c.difference_weighted.full_text(3),
            p_text(c.p_value_weighted),
            p_text(c.p_holm),
            str(c.n),
        )
        for c in primary.comparisons
    )
    blocks: list[Block] = [
        Heading("How well cases are ranked"),
        Paragraph(f"{primary.title}. {_share_sentence(primary)}"),
        *_figure(roc(primary, report.primary_scorer), "ROC curves; a band around the first is a pointwise interval."),
        Table("Naive and weighted, side by side.", header, rows, frozenset({4, 5})),
    ]
    if pairs:
        names = ("Difference", "Naive (DeLong)", "p", "Weighted", "p", "p, Holm", "n")
        blocks.append(Table("Methods compared on the same cases.", names, pairs, frozenset({2, 4, 5, 6})))
    return blocks


def _share_sentence(result: ResultSet) -> str:
    if not result.n_used:
        return "No case is decided."
    are = "is" if result.n_positive == 1 else "are"
    return (
        f"Of {counted(result.n_used, 'decided case')} {result.n_positive} {are} relevant: "
        f"{result.prevalence_naive.full_text(percent=True)} of the chosen, and weighted to all candidates "
        f"{result.prevalence_weighted.full_text(percent=True)}."
    )


def _rates(report: StudyReport) -> list[Block]:
    curves = report.primary.alert_rates
    if not curves:
        return []
    blocks: list[Block] = [
        Heading("How many alerts are relevant"),
        *_figure(
            alert_rate(curves[0], report.headline_budget), "True-alert rate by alert budget; a band is an interval."
        ),
    ]
    rows = tuple(row for curve in curves for row in _rate_rows(curve))
    header = ("Alerts", "Per patient-day", "True-alert rate", "Decided cases", "Alerts of the run", "Reading, min/day")
    blocks.append(Table("True-alert rate, weighted to all alerts.", header, rows, frozenset({1, 3, 4, 5})))
    return blocks


def _rate_rows(curve: AlertRateCurve) -> list[tuple[str, ...]]:
    name = KIND_WORDS.get(curve.name, curve.name)
    if not curve.points:
        return [(name, "", curve.reason, "", "", "")]
    return [
        (
            name,
            f"{p.alerts_per_patient_day:g}",
            p.rate.full_text(percent=True),
            str(p.n_cases),
            f"{p.n_alerts:,.0f}",
            "–" if p.minutes_per_patient_day is None else f"{p.minutes_per_patient_day:.2f}",
        )
        for p in curve.points
    ]


def _agreement(report: StudyReport) -> list[Block]:
    found = report.agreement
    named = [("Relevant or not, all cases", found.positive), ("Usual, unusual or relevant, all cases", found.answers)]
    named += [(KIND_WORDS.get(f.name, f.name), f) for f in (*found.by_kind, *found.by_decision)]
    named += [(f"Task: {f.name}", f) for f in found.by_task]
    header = ("Cases", "Raw", "Fleiss κ", "Krippendorff α", "Gwet AC1", "n")
    if found.second_rule is not None:
        named.insert(1, ("Unusual or not, all cases", found.second_rule))
    rows = tuple(_agreement_row(name, figures) for name, figures in named)
    if found.weighted is not None:
        weighted = found.weighted
        row = (
            weighted.raw.full_text(percent=True),
            weighted.fleiss.full_text(),
            "–",
            weighted.ac1.full_text(),
            str(weighted.raw.n),
        )
        rows = (rows[0], ("Relevant or not, weighted to all candidates", *row), *rows[1:])
    pair_rows = tuple(
        (f"{p.reader_a} – {p.reader_b}", p.raw.full_text(percent=True), p.cohen.full_text(), str(p.n_cases))
        for p in found.pairs
    )
    blocks: list[Block] = [
        Heading("How far readers agree"),
        *_figure(agreement_of_readers(found), "Fleiss κ of all, Cohen κ of pairs."),
        Table("Agreement; no coefficient is to be read without the raw one.", header, rows, frozenset({5})),
    ]
    if pair_rows:
        blocks.append(Table("Pairs of readers.", ("Readers", "Raw", "Cohen κ", "n"), pair_rows, frozenset({3})))
    return blocks


def _agreement_row(name: str, figures: AgreementFigures) -> tuple[str, ...]:
    coefficients = (figures.fleiss.full_text(), figures.alpha.full_text(), figures.ac1.full_text())
    return (name, figures.raw.full_text(percent=True), *coefficients, str(figures.n_cases))


def _readers(report: StudyReport) -> list[Block]:
    primary = report.primary_scorer
    rows = tuple(
        (
            r.reader,
            str(r.n_votes),
            str(r.n_cannot_judge),
            r.share_positive.full_text(percent=True),
            r.auc_against[primary].full_text(),
            r.auc_without[primary].full_text(),
        )
        for r in report.readers
    )
    no_vote = NO_VOTE_WORDS.capitalize()
    header = ("Reader", "Votes", no_vote, "Relevant", "AUC against this reader", "AUC without this reader")
    return [
        Heading("What disagreement allows", 3),
        Paragraph(f"{_ceiling(report)}{_second_ceiling(report)}"),
        Table("The primary method against each reader, and leaving each reader out.", header, rows, frozenset({1, 2})),
    ]


def _ceiling(report: StudyReport) -> str:
    ceiling = report.ceiling
    words = f"Highest AUC a perfect detector would show on all candidates: **{ceiling.weighted.full_text()}**"
    if ceiling.naive.text() != ceiling.weighted.text():
        words += f"; on these cases: {ceiling.naive.text()}"
    if ceiling.sensitivity.value is None or ceiling.specificity.value is None:
        return f"{words}."
    return (
        f"{words}. In the model of two classes and readers who are alike, a reader finds "
        f"{ceiling.sensitivity.full_text(percent=True)} of the relevant cases and clears "
        f"{ceiling.specificity.full_text(percent=True)} of the others."
    )


def _second_ceiling(report: StudyReport) -> str:
    second = report.ceiling_second_rule
    if second is None:
        return ""
    where = "" if second.weighted.value is None else " on all candidates"
    return f" When “{report.positive_texts[-1]}” counts as positive, it is {second.weighted.text()}{where}."


def _other_labels(report: StudyReport) -> list[Block]:
    rows = tuple(
        (
            result.title,
            f"{result.n_positive} of {result.n_used}",
            result.scorers[0].auc_naive.full_text(),
            result.scorers[0].auc_weighted.full_text(),
            _left_out(result.left_out),
        )
        for result in report.results
    )
    header = ("Labels", "Relevant", "AUC, naive", "AUC, weighted", "Left out")
    return [Heading("The same with other labels"), Table("The primary method under every label.", header, rows)]


def _left_out(left_out: Mapping[str, int]) -> str:
    return "; ".join(f"{why}: {n}" for why, n in left_out.items()) or "none"


def _subgroups(report: StudyReport) -> list[Block]:
    rows = tuple(
        (
            g.grouping,
            KIND_WORDS.get(g.group, g.group),
            str(g.n),
            str(g.n_positive),
            g.auc_naive.full_text(),
            g.auc_weighted.full_text(),
        )
        for g in report.primary.scorers[0].subgroups
    )
    header = ("Divided by", "Group", "n", "Relevant", "AUC, naive", "AUC, weighted")
    return [Heading("Subgroups"), Table("The primary method inside groups of cases.", header, rows, frozenset({2, 3}))]


def _reliability(report: StudyReport) -> list[Block]:
    found = report.dawid_skene
    if found.reason:
        return [Heading("Readers weighted by reliability", 3), Paragraph(f"Dawid and Skene's model is {found.reason}.")]
    rows = tuple(
        (reader, fixed_text(found.sensitivity[reader]), fixed_text(found.specificity.get(reader, math.nan)))
        for reader in found.sensitivity
    )
    settled = "settled" if found.converged else "did not settle"
    share = "" if found.prevalence is None else f" It estimates {percent_text(found.prevalence)} relevant cases."
    words = (
        f"Dawid and Skene's model {settled} after {counted(found.n_iterations, 'step')} on "
        f"{counted(found.n_cases, 'case')}; {counted(found.n_changed, 'label')} "
        f"{'differs' if found.n_changed == 1 else 'differ'} from the majority.{share}"
    )
    table = Table(
        "Readers in the model; it gives no intervals.",
        ("Reader", "Sensitivity", "Specificity"),
        rows,
        frozenset({1, 2}),
    )
    return [Heading("Readers weighted by reliability", 3), Paragraph(words), table]


def _cases(report: StudyReport) -> list[Block]:
    rows = tuple(
        (c.case_label, str(c.state), c.label, "yes" if c.used else "no", c.why_not) for c in report.primary.cases
    )
    header = ("Case", "State", "Majority label", "Used", "Why not")
    return [Heading("Every case"), Table("Whether each case is in the figures, and why not.", header, rows)]


def _methods(report: StudyReport) -> list[Block]:
    scorer = report.primary.scorers[0]
    point = headline_point(report.primary, report.headline_budget)
    figures = [
        ("AUC, naive", scorer.auc_naive),
        ("AUC, weighted", scorer.auc_weighted),
        ("AUC, mean over tasks", scorer.auc_task_mean),
        *([("True-alert rate", point.rate)] if point else []),
        ("Raw agreement", report.agreement.positive.raw),
        ("Fleiss κ", report.agreement.positive.fleiss),
        ("Krippendorff α", report.agreement.positive.alpha),
        ("Gwet AC1", report.agreement.positive.ac1),
        ("Ceiling", report.ceiling.weighted),
    ]
    rows = tuple((name, figure.method) for name, figure in figures)
    return [Heading("Methods"), Table(f"Intervals are {100 * report.level:g}% intervals.", ("Figure", "How"), rows)]


def _design(report: StudyReport) -> list[Block]:
    rows = [("Question", report.question), ("Counts as positive", report.positive_texts[0])]
    rows += [design_in_words(key, value) for key, value in report.design.items()]
    return [Heading("Design and origin"), Table("From what this report was made.", ("What", "Value"), tuple(rows))]


def _signatures(report: StudyReport, signatures: Iterable[Signature]) -> list[Block]:
    rows = tuple((s.name, s.meaning, s.signed_at.isoformat(), s.state(report)) for s in signatures)
    if not rows:
        return []
    return [Heading("Signatures"), Table("Who signed this report.", ("Name", "Meaning", "Time", "State"), rows)]
