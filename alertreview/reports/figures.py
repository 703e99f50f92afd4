"""The figures of a study's report and of a run's sensitivity, each described once for page, HTML and PDF."""

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from alertreview.reports.plot import (
    Anchor,
    Axis,
    Band,
    Box,
    Curve,
    Dots,
    Key,
    Mark,
    Plot,
    Point,
    Segment,
    Stroke,
    Tone,
    Words,
    shorten,
)
from core.number_texts import fixed_text, percent_text
from core.scoring.sensitivity import SensitivityPoint, Varied
from core.statistics.estimate import Estimate
from core.studies.report import AgreementReport, AlertRateCurve, FlowDiagram, ReaderReport, ResultSet

TENTHS = tuple((tick / 10, f"{tick / 10:.1f}") for tick in range(0, 11, 2))
PERCENTS = tuple((tick / 10, f"{10 * tick}%") for tick in range(0, 11, 2))
DOTTED = Stroke(Tone.MUTED, 1, "dot")
STROKES = (
    Stroke(Tone.ACCENT, 2.5),
    Stroke(Tone.STRONG, 1.8, "dash"),
    Stroke(Tone.STRONG, 1.8, "dot"),
    Stroke(Tone.STRONG, 1.8, "dashdot"),
    Stroke(Tone.ATTENTION, 1.8),
    Stroke(Tone.ATTENTION, 1.8, "dash"),
    Stroke(Tone.ATTENTION, 1.8, "dot"),
)
"""Of the lines of a figure, the most important one first; a figure shows no more lines than these."""


def roc(result: ResultSet, primary: str, *, most: int = len(STROKES)) -> Plot | None:
    """Return the ROC curves of the primary scorer, with its band, and of the best others; None when there is no curve.

    The curves are weighted, unweighted when no weighted one can be computed; `most` of them fit into the figure.
    """
    weighted = any(s.roc_weighted.found_fraction for s in result.scorers)
    curves = [
        (s.scorer == primary, s.label, *((s.auc_weighted, s.roc_weighted) if weighted else (s.auc_naive, s.roc_naive)))
        for s in result.scorers
    ]
    curves = [curve for curve in curves if curve[-1].found_fraction]
    curves.sort(key=lambda curve: (not curve[0], -(curve[2].value or 0.0)))
    shown = list(zip(curves[:most], STROKES, strict=False))
    if not shown:
        return None
    marks: list[Mark] = [Segment((0, 0), (1, 1), DOTTED)]
    first = curves[0][-1]
    marks.append(Band(tuple(zip(first.band_at, first.band_low, first.band_high, strict=True))))
    for (*_, found), stroke in reversed(shown):
        points = tuple(zip(found.false_alert_fraction, found.found_fraction, strict=True))
        marks.append(
            Curve(
                points,
                stroke,
                hover=tuple(f"finds {percent_text(y)} at {percent_text(x)} false alerts" for x, y in points),
            )
        )
    which = "" if weighted else " without weights"
    part = _part(len(shown), len(curves), "best ")
    names = "; ".join(f"{shorten(label, 40)} AUC {auc.text()}" for (_, label, auc, _), _ in shown)
    key = [Key(shorten(label, 32), shorten(auc.text(), 40), stroke) for (_, label, auc, _), stroke in shown]
    return Plot(
        tuple(marks),
        f"ROC curves{which}{_band(first.level, first.band_at, ' around the first')}. {names}; chance 0.50{part}.",
        Axis(0, 1, f"False-alert fraction (1 − specificity){which}{part}", TENTHS, grid=True),
        Axis(0, 1, "Relevant cases found (sensitivity)", TENTHS, grid=True),
        height=310,
        square=True,
        key=(*key, Key("Chance", "0.50", DOTTED)),
    )


def _band(level: float, band: Sequence[object], where: str = "") -> str:
    """Return what a band is; empty where none is drawn."""
    return f", {100 * level:g}% interval as a band{where}" if band else ""


def _part(n_shown: int, n_curves: int, which: str = "first ") -> str:
    """Return how many of the methods are drawn, for the title of an axis; empty if all are."""
    return f"; {which}{n_shown} of {n_curves} methods" if n_shown < n_curves else ""


def alert_rate(curve: AlertRateCurve, chosen: float) -> Plot | None:
    """Return the true-alert rate over alert budgets, with its band and the budget nearest to the chosen one.

    None when no budget has a rate.
    """
    points = [point for point in curve.points if point.rate.value is not None and point.alerts_per_patient_day > 0]
    if not points:
        return None
    places = [(math.log10(point.alerts_per_patient_day), point.rate.value or 0.0) for point in points]
    said = [f"{point.rate.text(percent=True)} at {point.alerts_per_patient_day:g}" for point in points]
    start, end = places[0][0], places[-1][0]
    pad = 0.06 * (end - start) or 0.3
    here = min(range(len(points)), key=lambda place: abs(points[place].alerts_per_patient_day - chosen))
    (x, rate), late = places[here], places[here][0] > start + 0.4 * (end - start)
    band = [
        (x, point.rate.low, point.rate.high)
        for (x, _), point in zip(places, points, strict=True)
        if point.rate.low is not None and point.rate.high is not None
    ]
    # On the side of the line that its neighbour does not lie on, unless the words would leave the figure there.
    beside = places[max(here - 1, 0)] if late else places[min(here + 1, len(places) - 1)]
    is_above = rate < 0.1 or (beside[1] <= rate <= 0.9)
    marks: list[Mark] = [
        Band(tuple(band)),
        Segment((x, 0), (x, rate), DOTTED),
        Curve(tuple(places), STROKES[0], dots=6, hover=tuple(f"{words} alerts per patient-day" for words in said)),
        Dots((places[here],), size=11, ring=True),
        Words(
            places[here],
            said[here],
            Tone.ACCENT,
            Anchor.END if late else Anchor.START,
            bold=True,
            shift=(-9 if late else 9, 12 if is_above else -18),
        ),
    ]
    share = curve.positive_share.value
    if share is not None:
        marks.append(Segment((start - pad, share), (end + pad, share), DOTTED))
        words = f"share of relevant among all candidates, {percent_text(share)}"
        is_left, height = _free_of(places, share)
        at, anchor = (start - pad, Anchor.START) if is_left else (end + pad, Anchor.END)
        marks.append(Words((at, share), words, anchor=anchor, shift=(0, height)))
    ticks = [(x, f"{point.alerts_per_patient_day:g}") for (x, _), point in zip(places, points, strict=True)]
    return Plot(
        tuple(marks),
        f"True-alert rate by alerts per patient-day{_band(points[0].rate.level, band)}: {'; '.join(said)}.",
        Axis(
            start - pad,
            end + pad,
            "Alert budget (alerts per patient-day, log scale)",
            tuple(ticks[:: 1 + len(ticks) // 9]),
        ),
        Axis(0, 1.04, "True-alert rate", PERCENTS, grid=True),
        height=250,
    )


def _free_of(curve: Sequence[Point], level: float) -> tuple[bool, int]:
    """Return where words at a level are farthest from a curve: whether in the left half, and pixels above the level."""
    middle, found = (curve[0][0] + curve[-1][0]) / 2.0, []
    for is_left in (True, False):
        beside = [y for x, y in curve if (x <= middle) == is_left or len(curve) == 1]
        beside.append(float(np.interp(middle, [x for x, _ in curve], [y for _, y in curve])))
        for pixels, above in ((5, 0.05), (-17, -0.05)):
            if 0.0 < level + above < 1.0:
                found.append((min(abs(y - level - above) for y in beside), is_left, pixels))
    return max(found)[1:]


def calibration(result: ResultSet) -> Plot | None:
    """Return the share of relevant candidates against the mean scaled score, by stratum; None without a share."""
    bins = sorted(
        ((b.mean_score, b.relevant_share) for b in result.calibration if b.relevant_share.value is not None),
        key=lambda found: found[0],
    )
    if not bins:
        return None
    points = tuple((score, share.value or 0.0) for score, share in bins)
    said = [f"{share.text(percent=True)} relevant at a mean score of {fixed_text(score)}" for score, share in bins]
    return Plot(
        (
            Segment((0, 0), (1, 1), DOTTED),
            Curve(
                points,
                STROKES[0],
                dots=7,
                low=tuple(
                    y if share.low is None else share.low for (_, y), (_, share) in zip(points, bins, strict=True)
                ),
                high=tuple(
                    y if share.high is None else share.high for (_, y), (_, share) in zip(points, bins, strict=True)
                ),
                hover=tuple(said),
            ),
        ),
        f"Share of relevant candidates by mean scaled score, bars are {100 * bins[0][1].level:g}% intervals: "
        f"{'; '.join(said)}.",
        Axis(0, 1, "Mean scaled score of the stratum", TENTHS, grid=True),
        Axis(0, 1.04, "Relevant candidates", PERCENTS, grid=True),
        height=250,
    )


def auc_of_methods(result: ResultSet, primary: str) -> Plot | None:
    """Return the AUC of every method on the same cases; None when none can be computed."""
    rows = {s.label: s.auc_weighted for s in sorted(result.scorers, key=lambda s: s.scorer != primary)}
    return _intervals("AUC of methods", rows, 0.5, "chance")


def auc_by_reader(readers: Sequence[ReaderReport], primary: str) -> Plot | None:
    """Return the AUC of the primary method when one reader alone gives the labels."""
    rows = {_reader(r.reader): r.auc_against[primary] for r in readers if primary in r.auc_against}
    return _intervals("AUC by reader", rows, 0.5, "chance", first_stands_out=False)


def agreement_of_readers(agreement: AgreementReport) -> Plot | None:
    """Return how far all readers and each pair agree on what is relevant, beyond chance."""
    pairs = {f"{_reader(p.reader_a)} – {_reader(p.reader_b)}": p.cohen for p in agreement.pairs}
    rows = {"All readers (Fleiss κ)": agreement.positive.fleiss, **pairs}
    return _intervals("Agreement of readers, kappa", rows, 0.2, "fair from here")


def _reader(code: str) -> str:
    return code.replace("-", " ").capitalize()


def _intervals(
    what: str, rows: Mapping[str, Estimate], reference: float, word: str, *, first_stands_out: bool = True
) -> Plot | None:
    """Return estimates under each other with their intervals and a reference line; what has no value is left out."""
    shown = [(name, found, found.value) for name, found in rows.items() if found.value is not None]
    if not shown:
        return None
    ends = [end for _, e, _ in shown for end in (e.value, e.low, e.high) if end is not None]
    low, high = min(*ends, reference), max(*ends, reference)
    pad = 0.06 * (high - low) or 0.05
    top = len(shown) - 0.4
    marks: list[Mark] = [
        Segment((reference, -0.6), (reference, top), DOTTED),
        Words((reference, top), word, anchor=Anchor.MIDDLE, shift=(0, 5)),
    ]
    names, values = [], []
    for place, (name, found, value) in enumerate(shown):
        y = float(len(shown) - 1 - place)
        ours = first_stands_out and name == next(iter(rows))
        tone = Tone.ACCENT if ours else Tone.STRONG
        if found.low is not None and found.high is not None:
            marks.append(Segment((found.low, y), (found.high, y), Stroke(tone, 2)))
        marks.append(Dots(((value, y),), tone, 10))
        names.append((y, shorten(name, 28)))
        values.append(Words((value, y), found.text(), Tone.TEXT if ours else Tone.MUTED, bold=ours))
    return Plot(
        tuple(marks),
        f"{what} with {100 * shown[0][1].level:g}% intervals: "
        f"{'; '.join(f'{shorten(name, 40)} {found.text()}' for name, found, _ in shown)}.",
        Axis(low - pad, high + pad, ticks=_tenths(low, high)),
        Axis(-0.6, top, ticks=tuple(names), line=False),
        height=max(30 * len(shown), 50),
        values=tuple(values),
    )


def _tenths(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Return whole tenths inside a range, or every second or fifth where they are too many."""
    for step in (1, 2, 5):
        first, last = math.ceil(10 * low / step - 1e-9), math.floor(10 * high / step + 1e-9)
        if last - first < 5:
            break
    return tuple((step * n / 10, fixed_text(step * n / 10, 1)) for n in range(first, last + 1))


FLOW_ROW, FLOW_BOX, FLOW_LINE = 50.0, 32.0, 18.0


def flow(found: FlowDiagram, *, hidden: str = "") -> Plot:
    """Return the way from instances to decided cases, with what was left out below.

    `hidden` are words in the place of the decided cases, while a reader may not know how many they are.
    """
    steps = [
        ("patient-state instances", found.n_instances),
        ("candidates (order groups once)", found.n_candidates),
        ("cases chosen", found.n_chosen),
        ("cases with a judgment", found.n_judged),
        ("cases with all judgments", found.n_complete),
    ]
    steps.append(("cases decided by majority", found.n_decided))
    one = re.compile("(instance|candidate|case)s")
    shown = [(one.sub(r"\1", words) if n == 1 else words, f"{n:,}") for words, n in steps if n is not None]
    if hidden:
        shown[-1] = steps[-1][0], hidden
    left_out = {} if hidden else found.left_out
    reasons = [f"left out, {why}: {n}" for why, n in sorted(left_out.items())]
    height = FLOW_ROW * len(shown) - (FLOW_ROW - FLOW_BOX) + FLOW_LINE * len(reasons)
    marks: list[Mark] = []
    for place, (words, n) in enumerate(shown):
        top = height - FLOW_ROW * place
        if place:
            marks.append(Segment((0.5, top + FLOW_ROW - FLOW_BOX), (0.5, top), Stroke(Tone.STRONG, 1.5), arrow=True))
        marks.append(Box((0, top), (1, top - FLOW_BOX)))
        marks.append(Words((0.04, top - 21), n, Tone.TEXT, bold=True))
        if n != hidden:
            marks.append(Words((0.96, top - 21), words, anchor=Anchor.END))
    for place, words in enumerate(reversed(reasons)):
        marks.append(Words((0, FLOW_LINE * place), shorten(words, 50)))
    said = ", ".join(f"{words}: {n}" if n == hidden else f"{n} {words}" for words, n in shown)
    return Plot(
        tuple(marks),
        f"Flow: {'; '.join([said, *reasons])}.",
        Axis(0, 1, line=False),
        Axis(0, height, line=False),
        height=int(height),
        width=320,
    )


SETTINGS = {Varied.GRAPH_SIZE: "nodes in the graph", Varied.REGULARIZATION: "regulariser γ_g"}


def sensitivity(points: Sequence[SensitivityPoint], varied: Varied, own: float, *, auc: bool) -> Plot | None:
    """Return what a parameter of the graph changes, one line for each scorer; None when no point has an AUC.

    The run's own setting is marked. Drawn is the AUC on judged cases, or the share of the run's first alerts found
    again.
    """
    shown = [point for point in points if point.varied is varied]
    if not shown or (auc and all(point.auc.value is None for point in shown)):
        return None
    settings = sorted({point.setting for point in shown})
    curves: dict[str, list[Estimate]] = {}
    for point in sorted(shown, key=lambda point: point.setting):
        curves.setdefault(point.scorer, []).append(point.auc if auc else Estimate(point.shared))
    return settings_curves(
        [f"{setting:g}" for setting in settings],
        curves,
        SETTINGS[varied],
        "AUC on judged cases" if auc else "Found again",
        own=settings.index(own) if own in settings else None,
        percent=not auc,
    )


def settings_curves(
    settings: Sequence[str],
    curves: Mapping[str, Sequence[Estimate]],
    x_title: str,
    y_title: str,
    *,
    own: int | None = None,
    percent: bool = False,
    bars: str = "95% intervals",
) -> Plot:
    """Return one line for each method over equally spaced settings; what cannot be computed leaves a gap.

    `own` is the place of the run's own setting, marked by a dotted line; `bars` says what the bars are; with `percent`
    values are shares.
    """
    marks: list[Mark] = []
    if own is not None:
        marks += [Segment((own, 0), (own, 1.04), DOTTED), Words((own, 0), "this run", shift=(4, 6))]
    shown = list(zip(curves.items(), STROKES, strict=False))
    for number, ((name, found), stroke) in enumerate(shown):
        # Side by side, so that their bars can be distinguished.
        shift = 0.05 * (number - (len(shown) - 1) / 2)
        there = [(place + shift, e, e.value) for place, e in enumerate(found) if e.value is not None]
        marks.append(
            Curve(
                tuple((x, value) for x, _, value in there),
                stroke,
                dots=7,
                low=tuple(value if e.low is None else e.low for _, e, value in there),
                high=tuple(value if e.high is None else e.high for _, e, value in there),
                hover=tuple(f"{shorten(name, 40)}: {e.text(percent=percent)}" for _, e, _ in there),
            )
        )
    said = (
        f"{name}: {'; '.join(f'{e.text(percent=percent)} at {at}' for at, e in zip(settings, found, strict=True))}."
        for name, found in curves.items()
    )
    part = _part(len(shown), len(curves))
    said_bars = f"; bars are {bars}" if any(e.has_interval for found in curves.values() for e in found) else ""
    return Plot(
        tuple(marks),
        f"{y_title} by {x_title}{said_bars}. {' '.join(said)}",
        Axis(-0.4, len(settings) - 0.6, f"{x_title}{part}", tuple(enumerate(settings))),
        Axis(0, 1.04, y_title, PERCENTS if percent else TENTHS, grid=True),
        height=200,
        key=tuple(Key(shorten(name, 32), "", stroke) for (name, _), stroke in shown),
    )
