"""Figures of a report document as plain SVG: no script, no outside reference, the same bytes for the same report."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from core.statistics.estimate import Estimate, RocCurve
from core.studies.report import AlertRateCurve, FlowDiagram

ACCENT, STRONG, MUTED, AXIS, GRID, TEXT = "#0B6B6B", "#63747E", "#55646E", "#B9C4CA", "#E9EEF0", "#0B1418"
FONT = "'Source Sans 3','Source Sans Pro','Libertinus Serif',system-ui,sans-serif"

"""Stands where a number would give the others' answers away; a zero would be a false statement."""


@dataclass(frozen=True)
class Frame:
    """A plotting area in pixels, and the ranges of its axes."""

    left: float
    top: float
    width: float
    height: float
    x_from: float
    x_to: float
    y_from: float = 0.0
    y_to: float = 1.0

    def x(self, value: float) -> float:
        """Pixel of an abscissa."""
        return self.left + self.width * (value - self.x_from) / (self.x_to - self.x_from)

    def y(self, value: float) -> float:
        """Pixel of an ordinate."""
        return self.top + self.height * (self.y_to - value) / (self.y_to - self.y_from)


def svg(width: int, height: int, alt: str, parts: Sequence[str]) -> str:
    """Wrap drawn parts into an SVG picture that says what it shows."""
    words = escape(alt, quote=True)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="{words}" font-family="{FONT}" font-size="12"><title>{words}</title>'
        f"{''.join(parts)}</svg>"
    )


def text(
    x: float, y: float, words: str, *, anchor: str = "start", colour: str = MUTED, size: float = 12, bold: bool = False
) -> str:
    """Write one line of text at a point."""
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" font-size="{size:g}"{weight}>'
        f"{escape(words)}</text>"
    )


def line(x1: float, y1: float, x2: float, y2: float, *, colour: str = AXIS, width: float = 1, dash: str = "") -> str:
    """Draw a straight line."""
    pattern = f' stroke-dasharray="{dash}"' if dash else ""
    return (
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" '
        f'stroke-width="{width:g}"{pattern}/>'
    )


def curve(points: Sequence[tuple[float, float]], *, colour: str, width: float = 2.5, dash: str = "") -> str:
    """Draw a line through points."""
    pattern = f' stroke-dasharray="{dash}"' if dash else ""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"{pattern}/>'


def area(points: Sequence[tuple[float, float]]) -> str:
    """Fill a band in the accent colour."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polygon points="{path}" fill="{ACCENT}" fill-opacity="0.14"/>'


def roc_figure(curves: Sequence[tuple[str, Estimate, RocCurve]]) -> str:
    """ROC curves on a square; the first with its band.

    Parameters
    ----------
    curves : sequence of (name, AUC, curve)
        Those without a curve are left out of the drawing and named with their reason.
    """
    frame = Frame(52, 14, 320, 320, 0.0, 1.0)
    parts = [line(frame.x(t), frame.y(0), frame.x(t), frame.y(1), colour=GRID) for t in _TENTHS]
    parts += [line(frame.x(0), frame.y(t), frame.x(1), frame.y(t), colour=GRID) for t in _TENTHS]
    parts += [text(frame.x(t), frame.y(0) + 18, f"{t:.1f}", anchor="middle") for t in _TENTHS]
    parts += [text(frame.x(0) - 8, frame.y(t) + 4, f"{t:.1f}", anchor="end") for t in _TENTHS]
    parts.append(text(frame.x(0.5), frame.y(0) + 38, "False-alert fraction (1 − specificity)", anchor="middle"))
    parts.append(_upright(14, frame.y(0.5), "Relevant cases found (sensitivity)"))
    parts.append(line(frame.x(0), frame.y(0), frame.x(1), frame.y(1), dash="2 3"))
    drawn = [c for c in curves if c[2].false_alert_fraction]
    for position, (_, _, found) in reversed(list(enumerate(drawn))):
        first = position == 0
        if first and found.band_at:
            upper = [(frame.x(x), frame.y(y)) for x, y in zip(found.band_at, found.band_high, strict=True)]
            lower = [(frame.x(x), frame.y(y)) for x, y in zip(found.band_at, found.band_low, strict=True)]
            parts.append(area(upper + lower[::-1]))
        corners = zip(found.false_alert_fraction, found.found_fraction, strict=True)
        points = [(frame.x(x), frame.y(y)) for x, y in corners]
        style = {"colour": ACCENT} if first else {"colour": STRONG, "dash": _DASHES[(position - 1) % len(_DASHES)]}
        parts.append(curve(points, width=2.5 if first else 1.5, **style))
    parts += _key(curves, 392.0, frame.top + 12)
    names = "; ".join(f"{name} {auc.text()}" for name, auc, _ in curves)
    return svg(660, 392, f"ROC curves, band around the first. AUC: {names}. Chance 0.50.", parts)


_TENTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_DASHES = ("7 4", "2 3", "9 3 2 3", "4 2")


def _key(curves: Sequence[tuple[str, Estimate, RocCurve]], x: float, y: float) -> list[str]:
    parts, drawn = [], 0
    for name, auc, found in curves:
        colour, dash = MUTED, ""
        if found.false_alert_fraction:
            colour, dash = (ACCENT, "") if drawn == 0 else (STRONG, _DASHES[(drawn - 1) % len(_DASHES)])
            parts.append(line(x, y - 4, x + 24, y - 4, colour=colour, width=2, dash=dash))
            drawn += 1
        parts.append(text(x + 32, y, shorten(name, 32), colour=colour, bold=colour == ACCENT))
        parts.append(text(x + 32, y + 15, shorten(auc.text(), 40), size=11))
        y += 38
    return [*parts, text(x + 32, y, "Chance, dotted: 0.50", size=11)]


def shorten(words: str, most: int) -> str:
    """Cut a text that would run out of its place."""
    return words if len(words) <= most else words[: most - 1].rstrip() + "…"


def _upright(x: float, y: float, words: str) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" fill="{MUTED}" font-size="12" '
        f'transform="rotate(-90 {x:.1f} {y:.1f})">{escape(words)}</text>'
    )


def alert_rate_figure(found: AlertRateCurve) -> str:
    """True-alert rate over alert budgets on a logarithmic axis, with intervals and the share among all candidates."""
    points = [p for p in found.points if p.rate.value is not None]
    if not points:
        return svg(660, 40, f"No true-alert rate: {found.reason or 'no judged case is inside any budget'}.", [])
    ends = [math.log10(p.alerts_per_patient_day) for p in points]
    pad = 0.08 * (max(ends) - min(ends)) or 0.3
    frame = Frame(58, 14, 580, 250, min(ends) - pad, max(ends) + pad)
    parts = [line(frame.left, frame.y(t), frame.left + frame.width, frame.y(t), colour=GRID) for t in _TENTHS]
    parts += [text(frame.left - 8, frame.y(t) + 4, f"{100 * t:.0f}%", anchor="end") for t in _TENTHS]
    parts += [
        text(frame.x(at), frame.y(0) + 18, f"{p.alerts_per_patient_day:g}", anchor="middle")
        for at, p in zip(ends, points, strict=True)
    ]
    middle = frame.left + frame.width / 2
    parts.append(text(middle, frame.y(0) + 38, "Alert budget (alerts per patient-day, log scale)", anchor="middle"))
    parts.append(_upright(14, frame.y(0.5), "True-alert rate"))
    banded = [(frame.x(at), p.rate) for at, p in zip(ends, points, strict=True) if p.rate.has_interval]
    parts.append(
        area(
            [(x, frame.y(r.high or 0.0)) for x, r in banded] + [(x, frame.y(r.low or 0.0)) for x, r in banded[::-1]],
        )
    )
    if found.positive_share.value is not None:
        level = frame.y(found.positive_share.value)
        parts.append(line(frame.left, level, frame.left + frame.width, level, colour=STRONG, dash="2 3"))
        share = f"share of relevant cases among all candidates, {100 * found.positive_share.value:.0f}%"
        parts.append(text(frame.left + frame.width, level + 15, share, anchor="end", size=11))
    parts.append(
        curve([(frame.x(at), frame.y(p.rate.value or 0.0)) for at, p in zip(ends, points, strict=True)], colour=ACCENT)
    )
    parts += [_dot(frame.x(at), frame.y(p.rate.value or 0.0)) for at, p in zip(ends, points, strict=True)]
    said = "; ".join(f"{p.rate.text(percent=True)} at {p.alerts_per_patient_day:g}" for p in points)
    return svg(660, 322, f"True-alert rate by alerts per patient-day: {said}.", parts)


def _dot(x: float, y: float, colour: str = ACCENT) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>'


def dot_figure(rows: Sequence[tuple[str, Estimate]], reference: float, word: str, *, low: float, high: float) -> str:
    """Intervals of several figures under each other, with a reference line.

    Parameters
    ----------
    rows : sequence of (name, figure)
        The first one in the accent colour.
    reference : float
        Where the dotted line stands.
    word : str
        What it means.
    low, high : float
        Range of the axis.
    """
    frame = Frame(190, 26, 300, 30.0 * len(rows), low, high)
    bottom = frame.top + frame.height
    parts = [
        line(frame.x(reference), frame.top - 4, frame.x(reference), bottom, colour=MUTED, dash="3 3"),
        text(frame.x(reference), frame.top - 10, word, anchor="middle", size=11),
        line(frame.left, bottom, frame.left + frame.width, bottom),
    ]
    steps = 5
    ticks = [low + i * (high - low) / steps for i in range(steps + 1)]
    parts += [text(frame.x(t), bottom + 16, f"{t:.1f}", anchor="middle", size=11) for t in ticks]
    for position, (name, figure) in enumerate(rows):
        y, colour = frame.top + 30.0 * position + 15, ACCENT if position == 0 else STRONG
        parts.append(text(178, y + 4, shorten(name, 28), anchor="end", colour=TEXT))
        if figure.value is None:
            parts.append(text(frame.left + 6, y + 4, shorten(figure.reason, 74), size=11))
            continue
        if figure.low is not None and figure.high is not None:
            ends = (min(max(e, low), high) for e in (figure.low, figure.high))
            parts.append(line(frame.x(next(ends)), y, frame.x(next(ends)), y, colour=colour, width=2))
        parts.append(_dot(frame.x(min(max(figure.value, low), high)), y, colour))
        parts.append(text(652, y + 4, figure.text(), anchor="end", colour=colour, bold=position == 0))
    said = "; ".join(f"{name}: {figure.text()}" for name, figure in rows)
    return svg(660, int(bottom + 28), f"{said}. Dotted: {word} {reference:g}.", parts)


def flow_figure(flow: FlowDiagram, *, hidden: str = "") -> str:
    """From instances to decided cases, with what was left out on the right; `hidden` stands for a hidden number."""
    steps = [
        ("patient-state instances", flow.n_instances),
        ("candidates (order groups once)", flow.n_candidates),
        ("cases chosen", flow.n_chosen),
        ("cases with a judgment", flow.n_judged),
        ("cases with all judgments", flow.n_complete),
    ]
    shown = [(words, f"{n:,}") for words, n in steps if n is not None]
    shown.append(("cases decided by majority", hidden or f"{flow.n_decided:,}"))
    parts = []
    for position, (words, n) in enumerate(shown):
        y = 8.0 + 52 * position
        parts.append(f'<rect x="8" y="{y:.1f}" width="300" height="34" fill="none" stroke="{AXIS}" rx="4"/>')
        parts.append(text(24, y + 22, n, colour=TEXT, bold=True))
        if n != hidden:
            parts.append(text(298, y + 22, words, anchor="end"))
        if position + 1 < len(shown):
            parts.append(line(158, y + 34, 158, y + 46, colour=STRONG, width=1.5))
            parts.append(f'<path d="M154 {y + 45:.1f}L158 {y + 52:.1f}L162 {y + 45:.1f}Z" fill="{STRONG}"/>')
    y = 8.0 + 52 * (len(shown) - 1) + 22
    reasons = [f"{n} {why}" for why, n in sorted(flow.left_out.items())]
    for position, words in enumerate(reasons):
        parts.append(
            text(330, y + 16 * (position - (len(reasons) - 1) / 2), shorten(f"left out: {words}", 50), size=11)
        )
    said = ", ".join(f"{words}: {n}" if n == hidden else f"{n} {words}" for words, n in shown)
    return svg(660, int(52 * len(shown) + 8 + 8 * max(0, len(reasons) - 2)), f"Flow: {said}.", parts)
