"""Figures of a report: ROC, true-alert rate over budgets, and intervals of methods, readers and agreement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from core.statistics.estimate import BudgetPoint, Estimate, RocCurve
from core.studies.report import AlertRateCurve, ScorerReport
from dashboard.charts.base import Chart, Json, axis, layout, line, note, safe
from dashboard.charts.palette import Palette
from dashboard.texts import interval_percent, percent, shorten


@dataclass(frozen=True)
class DotRow:
    """One line of a dot plot."""

    name: str
    estimate: Estimate
    ours: bool = False


def roc(scorers: Sequence[ScorerReport], primary: str, colours: Palette, *, weighted: bool = True) -> Chart | None:
    """ROC of the primary scorer with its band, and of the best other one; None when there is no curve."""
    ordered = sorted(scorers, key=lambda s: (s.scorer != primary, -(_auc(s, weighted).value or 0.0)))
    shown = [s for s in ordered if _curve(s, weighted).false_alert_fraction][:2]
    if not shown:
        return None
    first = shown[0]
    data = [*_band(_curve(first, weighted), colours)]
    words: list[tuple[str, str]] = []
    for position, scorer in enumerate(shown):
        data.append(_roc_line(_curve(scorer, weighted), colours, ours=position == 0))
        text = f"{safe(scorer.label, 28)}{', dashed' if position else ''}"
        figure_text = _auc(scorer, weighted).text()
        words.append(
            (f"<b>{text}</b>  {figure_text}", colours.accent)
            if position == 0
            else (f"{text}  {figure_text}", colours.muted)
        )
    words.append(("Chance, dotted  0.50", colours.muted))
    figure: Json = {
        "data": data,
        "layout": layout(
            colours,
            372,
            xaxis=axis(
                colours,
                "False-alert fraction (1 − specificity)",
                grid=True,
                range=[0, 1],
                dtick=0.2,
                constrain="domain",
            ),
            yaxis=axis(
                colours,
                "Alerts found (sensitivity)",
                grid=True,
                range=[0, 1.01],
                dtick=0.2,
                tickformat=".1f",
                scaleanchor="x",
                constrain="domain",
            ),
            shapes=[line(0, 1, 0, 1, colours.axis, dash="dot")],
            annotations=[
                note(text, 0.98, 0.06 + 0.075 * (len(words) - 1 - row), colour, xanchor="right", align="right")
                for row, (text, colour) in enumerate(words)
            ],
        ),
    }
    parts = "; ".join(f"{shorten(s.label, 40)} AUC {_auc(s, weighted).text()}" for s in shown)
    return Chart(figure, f"ROC curves, 95% interval as a band around the first. {parts}; chance 0.50.")


def _auc(scorer: ScorerReport, weighted: bool) -> Estimate:
    return scorer.auc_weighted if weighted else scorer.auc_naive


def _curve(scorer: ScorerReport, weighted: bool) -> RocCurve:
    return scorer.roc_weighted if weighted else scorer.roc_naive


def _band(curve: RocCurve, colours: Palette) -> list[Json]:
    if not curve.band_at:
        return []
    return [_polygon(curve.band_at, curve.band_low, curve.band_high, colours)]


def _polygon(at: Sequence[float], low: Sequence[float], high: Sequence[float], colours: Palette) -> Json:
    """Return the area between two lines."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [*at, *reversed(at)],
        "y": [*high, *reversed(low)],
        "fill": "toself",
        "fillcolor": colours.accent_band,
        "line": {"width": 0},
        "hoverinfo": "skip",
    }


def _roc_line(curve: RocCurve, colours: Palette, *, ours: bool) -> Json:
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [round(x, 4) for x in curve.false_alert_fraction],
        "y": [round(y, 4) for y in curve.found_fraction],
        "line": {"color": colours.accent, "width": 2.5}
        if ours
        else {"color": colours.bars_strong, "width": 1.8, "dash": "dash"},
        "hovertemplate": "finds %{y:.0%} at %{x:.0%} false alerts<extra></extra>",
    }


def alert_rate(curve: AlertRateCurve, chosen: float, colours: Palette) -> Chart | None:
    """True-alert rate over alert budgets with its band and the chosen budget; None when nothing was judged."""
    points = [point for point in curve.points if point.rate.value is not None and point.alerts_per_patient_day > 0]
    if not points:
        return None
    at = [point.alerts_per_patient_day for point in points]
    mark = nearest_budget(points, chosen)
    ticks = [
        t
        for t in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
        if min(at) * 0.9 <= t <= max(at) * 1.1
    ]
    figure: Json = {
        "data": [*_rate_curve(points, colours), _mark(mark, colours)],
        "layout": layout(
            colours,
            330,
            margin={"r": 16},
            xaxis=axis(
                colours,
                "Alert budget (alerts per patient-day, log scale)",
                grid=True,
                type="log",
                tickvals=ticks,
                ticktext=[f"{t:g}" for t in ticks],
            ),
            yaxis=axis(
                colours,
                "True-alert rate",
                grid=True,
                range=[0, 104],
                tickvals=list(range(0, 101, 20)),
                ticktext=[f"{share}%" for share in range(0, 101, 20)],
            ),
            shapes=_rate_lines(curve, mark, colours),
            annotations=_rate_words(curve, mark, at, colours),
        ),
    }
    return Chart(
        figure,
        f"True-alert rate by alert budget, 95% interval as a band. At {mark.alerts_per_patient_day:g} alerts per "
        f"patient-day {mark.rate.text(percent=True)} of the alerts are relevant.",
    )


def _rate_curve(points: Sequence[BudgetPoint], colours: Palette) -> list[Json]:
    """Return the band, where there are intervals, and the line of a curve."""
    banded = [point for point in points if point.rate.has_interval]
    data: list[Json] = []
    if banded:
        data.append(
            _polygon(
                [point.alerts_per_patient_day for point in banded],
                [100 * (point.rate.low or 0.0) for point in banded],
                [100 * (point.rate.high or 0.0) for point in banded],
                colours,
            )
        )
    data.append(
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": [point.alerts_per_patient_day for point in points],
            "y": [round(100 * (point.rate.value or 0.0), 2) for point in points],
            "line": {"color": colours.accent, "width": 2.5},
            "marker": {"size": 5, "color": colours.accent},
            "hovertemplate": "%{y:.0f}% relevant at %{x} alerts per patient-day<extra></extra>",
        }
    )
    return data


def nearest_budget(points: Sequence[BudgetPoint], chosen: float) -> BudgetPoint:
    """Point of a curve whose budget is nearest to the chosen one."""
    return min(points, key=lambda point: abs(point.alerts_per_patient_day - chosen))


def _mark(point: BudgetPoint, colours: Palette) -> Json:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [point.alerts_per_patient_day],
        "y": [100 * (point.rate.value or 0.0)],
        "marker": {"size": 10, "color": colours.page, "line": {"color": colours.accent, "width": 2.5}},
        "hoverinfo": "skip",
    }


def _rate_lines(curve: AlertRateCurve, mark: BudgetPoint, colours: Palette) -> list[Json]:
    budget = mark.alerts_per_patient_day
    lines = [line(budget, budget, 0, 100 * (mark.rate.value or 0.0) - 2, colours.muted, dash="dot")]
    if curve.positive_share.value is not None:
        share = 100 * curve.positive_share.value
        lines.append(line(0, 1, share, share, colours.muted, xref="paper", dash="dot"))
    return lines


def _rate_words(curve: AlertRateCurve, mark: BudgetPoint, at: Sequence[float], colours: Palette) -> list[Json]:
    from math import log10

    x = log10(mark.alerts_per_patient_day)
    late = len(at) > 1 and x > log10(min(at)) + 0.6 * (log10(max(at)) - log10(min(at)))
    rate = mark.rate
    interval = f" ({interval_percent(rate.low or 0.0, rate.high or 0.0)})" if rate.has_interval else ""
    words = [
        note(
            f"<b>{percent(rate.value or 0.0)}</b>{interval} at {mark.alerts_per_patient_day:g}",
            x,
            100 * (rate.value or 0.0),
            colours.accent,
            xanchor="right" if late else "left",
            xshift=-9 if late else 9,
            yshift=-16 if late or (rate.value or 0.0) > 0.9 else 14,
        )
    ]
    if curve.positive_share.value is not None:
        words.append(
            note(
                f"share of relevant among all candidates, {percent(curve.positive_share.value)}",
                0 if late else 1,  # away from the line under the mark
                100 * curve.positive_share.value,
                colours.muted,
                xref="paper",
                xanchor="left" if late else "right",
                yanchor="bottom",
                size=12,
            )
        )
    return words


def dots(
    rows: Sequence[DotRow],
    colours: Palette,
    *,
    what: str,
    reference: float | None,
    reference_word: str = "",
    narrow: bool = False,
) -> Chart | None:
    """Dots with intervals, one line each, the value at the right; None when no row can be computed.

    Parameters
    ----------
    what
        Name of the figure for the sentence, "AUC of methods".
    reference
        Dotted line, 0.5 for an AUC by chance; None draws none.
    narrow
        On a phone the values stand under the names: in a column of their own they would cover the dots.
    """
    shown = [row for row in rows if row.estimate.value is not None]
    if not shown:
        return None
    ends = [
        end
        for row in shown
        for end in (row.estimate.value, row.estimate.low, row.estimate.high, reference)
        if end is not None
    ]
    low, high = min(ends), max(ends)
    room = (high - low) or 0.1
    names = [safe(row.name, 20 if narrow else 26) for row in shown]
    if narrow:
        names = [f"{name}<br>{row.estimate.text()}" for name, row in zip(names, shown, strict=True)]
    value_column = 0.12 if narrow else 0.72  # stands to the right of every dot
    ends_at = [low - 0.12 * room, high + value_column * room]
    positions = list(range(len(shown)))[::-1]
    shapes = [
        line(row.estimate.low, row.estimate.high, y, y, colours.accent if row.ours else colours.bars_strong, width=2)
        for row, y in zip(shown, positions, strict=True)
        if row.estimate.has_interval
    ]
    words = [] if narrow else [_dot_word(row, y, colours) for row, y in zip(shown, positions, strict=True)]
    if reference is not None:
        shapes.append(line(reference, reference, -0.6, len(shown) - 0.4, colours.muted, dash="dot"))
        words.append(note(reference_word, reference, len(shown) - 0.4, colours.muted, yanchor="bottom", size=12))
    figure: Json = {
        "data": [
            {
                "type": "scatter",
                "mode": "markers",
                "x": [row.estimate.value for row in shown],
                "y": positions,
                "marker": {"size": 10, "color": [colours.accent if row.ours else colours.bars_strong for row in shown]},
                "hoverinfo": "skip",
            }
        ],
        "layout": layout(
            colours,
            58 + (42 if narrow else 31) * len(shown),
            margin={"t": 22},
            xaxis=axis(colours, range=ends_at, tickvals=_ticks(low, high, 5 if narrow else 11), tickformat=".1f"),
            yaxis=_names_axis(names, positions, colours),
            shapes=shapes,
            annotations=words,
        ),
    }
    parts = "; ".join(f"{shorten(row.name, 40)} {row.estimate.text()}" for row in shown)
    return Chart(figure, f"{what} with 95% intervals: {parts}.")


def _names_axis(names: Sequence[str], positions: Sequence[int], colours: Palette) -> Json:
    """Return the axis that names the rows."""
    return axis(
        colours,
        range=[-0.6, len(names) - 0.4],
        tickvals=list(positions),
        ticktext=list(names),
        ticks="",
        showline=False,
        tickfont={"size": 13, "color": colours.text},
    )


def _dot_word(row: DotRow, y: float, colours: Palette) -> Json:
    """Return the value of a row, written at the right."""
    written = f"<b>{row.estimate.text()}</b>" if row.ours else row.estimate.text()
    return note(written, 1, y, colours.text if row.ours else colours.muted, xref="paper", xanchor="right")


def _ticks(low: float, high: float, most: int) -> list[float]:
    """Whole tenths inside the data, so that no tick stands under the column of figures; every second if too many."""
    tenths = [tenth for tenth in range(-10, 11) if low - 0.05 <= tenth / 10 <= high + 0.05]
    step = -(-len(tenths) // most)
    return [tenth / 10 for tenth in tenths if tenth % max(step, 1) == 0]


def left_out_sentence(left_out: Mapping[str, int]) -> str:
    """Reasons with counts, "3 undetermined, 1 cannot judge"; empty when nothing was left out."""
    return ", ".join(f"{count:,} {shorten(reason)}" for reason, count in left_out.items() if count)
