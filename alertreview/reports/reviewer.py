"""What a reviewer asks of a report: fourfold table, net benefit, calibration, group differences, other readers."""

from dataclasses import replace

from alertreview.reports.blocks import Block, Figure, Heading, Paragraph, Table
from alertreview.reports.figures import calibration
from core.kinds import Kind
from core.number_texts import counted, fixed_text
from core.scoring.scorers import SHARED
from core.statistics.estimate import Estimate
from core.studies.report import OperatingPoint, StudyReport

KIND_WORDS = {
    **{kind.value: kind.words.items.capitalize() for kind in Kind},
    "omission": "Omissions",
    "commission": "Commissions",
    "both": "Omissions and commissions",
}


def p_text(value: float | None) -> str:
    """Write a p value; a dash where there is none."""
    if value is None:
        return "–"
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def reviewer_blocks(report: StudyReport) -> list[Block]:
    """Return the blocks of a whole report, for page, HTML and PDF."""
    point = report.primary.operating_point
    blocks: list[Block] = _operating(point) if point is not None else []
    return [*blocks, *_calibration(report), *_differences(report), *_multi_reader(report), *_repeats(report)]


def _operating(point: OperatingPoint) -> list[Block]:
    at = f"{point.alerts_per_patient_day:g} alerts per patient-day"
    fourfold = (
        ("shown", str(point.n_shown_relevant), str(point.n_shown_other)),
        ("not shown", str(point.n_missed_relevant), str(point.n_cleared)),
    )
    shares = (
        ("Sensitivity", "relevant candidates that are shown", point.sensitivity),
        ("Specificity", "other candidates that are not shown", point.specificity),
        ("Positive predictive value", "shown candidates that are relevant", point.positive_value),
        ("Negative predictive value", "candidates not shown that are not relevant", point.negative_value),
    )
    rows = tuple((name, what, figure.full_text(percent=True)) for name, what, figure in shares)
    benefit = tuple(
        (f"{100 * one.chance:g}%", _per_hundred(one.within_budget), _per_hundred(one.all_shown))
        for one in point.net_benefit
    )
    return [
        Heading("At the budget"),
        Table(f"Decided cases at {at}.", ("", "Relevant", "Not relevant"), fourfold, frozenset({1, 2})),
        Table(f"Weighted to all candidates, at {at}.", ("Figure", "Share of", "Value"), rows),
        Table(
            "Net benefit: relevant alerts less the others, weighted by what an alert is worth, per 100 candidates.",
            ("An alert is worth reading from a chance of", "Within the budget", "All candidates shown"),
            benefit,
        ),
    ]


def _per_hundred(figure: Estimate) -> str:
    if figure.value is None:
        return figure.reason
    ends = [None if end is None else 100.0 * end for end in (figure.low, figure.high)]
    return replace(figure, value=100.0 * figure.value, low=ends[0], high=ends[1]).full_text()


def _calibration(report: StudyReport) -> list[Block]:
    bins = report.primary.calibration
    if not bins:
        return []
    rows = tuple(
        (b.stratum, str(b.n), fixed_text(b.mean_score), b.relevant_share.full_text(percent=True)) for b in bins
    )
    plot = calibration(report.primary)
    header = ("Stratum", "n", "Mean scaled score", "Relevant")
    words = (
        "The scaled score estimates the chance that a decision is unusual; points below the diagonal say that fewer "
        "decisions are relevant than unusual."
        if report.primary_scorer == SHARED.key
        else "The scaled score of this method orders decisions and is not a probability: what counts is whether the "
        "points rise."
    )
    return [
        Heading("Score against relevance"),
        Paragraph(words),
        *([Figure(plot, "Share of relevant candidates by scaled score, with intervals.")] if plot else []),
        Table("Calibration of the primary method's scaled score.", header, rows, frozenset({1, 2})),
    ]


def _differences(report: StudyReport) -> list[Block]:
    rows = tuple(
        (d.grouping, KIND_WORDS.get(d.group, d.group), d.difference.full_text(3), p_text(d.p_value), p_text(d.p_holm))
        for d in report.primary.subgroup_differences
    )
    if not rows:
        return []
    header = ("Divided by", "Group", "AUC less that of all others", "p", "p, Holm")
    return [
        Heading("Differences between subgroups", 3),
        Table("The primary method's weighted AUC inside a group and outside it.", header, rows, frozenset({3, 4})),
    ]


def _multi_reader(report: StudyReport) -> list[Block]:
    found = report.multi_reader
    if found is None:
        return []
    heading = Heading("For other readers and other cases", 3)
    if found.reason:
        return [heading, Paragraph(f"Mean AUC over readers: {found.reason}.")]
    labels = {s.scorer: s.label for s in report.primary.scorers}
    rows = tuple(
        (
            labels.get(key, key),
            mean.full_text(3),
            found.differences[key].full_text(3) if key in found.differences else "–",
            p_text(found.p_values.get(key)),
        )
        for key, mean in found.means.items()
    )
    of_all = f" of {report.n_readers}" if found.n_readers < report.n_readers else ""
    left_out = ", those with two votes for and two against relevance" if of_all else ""
    words = (
        f"{found.n_readers}{of_all} readers{left_out}, each giving the labels alone, on the chosen cases without "
        "weights. The intervals allow for other readers and other cases (Obuchowski and Rockette)."
    )
    header = ("Method", "Mean AUC over readers", "Primary less this method", "p")
    return [heading, Paragraph(words), Table("Readers and cases at random.", header, rows, frozenset({3}))]


def _repeats(report: StudyReport) -> list[Block]:
    found = report.agreement.repeats
    if found is None:
        return []
    rows = (("All readers", found.same_answer), *found.by_reader.items())
    words = (
        f"{counted(found.n_pairs, 'case')} came back to a reader, hidden. Cohen κ of “relevant or not”, first against "
        f"second: {found.kappa.full_text()}."
    )
    table = Table(
        "Same answer to a hidden repeat.",
        ("Reader", "Same answer", "n"),
        tuple((name, figure.full_text(percent=True), str(figure.n)) for name, figure in rows),
        frozenset({2}),
    )
    return [Heading("Readers and themselves", 3), Paragraph(words), table]
