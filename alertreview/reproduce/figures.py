"""Figures of the repeated experiments as plain SVG that says in words what it shows."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from alertreview.reports.figures import ACCENT, AXIS, GRID, MUTED, STRONG, TEXT, Frame, curve, line, svg, text
from core.validation import FloatArray, IntArray

_PANEL, _GAP, _TITLE, _COLUMNS = 190.0, 14.0, 22.0, 4
_POSITIVE, _NEGATIVE, _TOP = "#8FB8B8", "#C9B48A", "#0B1418"
_STYLES: Final = (
    (ACCENT, ""),
    (ACCENT, "7 4"),
    (STRONG, ""),
    (STRONG, "7 4"),
    ("#8A6100", ""),
    ("#8A6100", "7 4"),
    (MUTED, "2 3"),
)


def top_panels(X: FloatArray, y: FloatArray, tops: Mapping[str, IntArray], what: str) -> str:
    """Points of two classes, once for each method, with its most unusual ones in black.

    Parameters
    ----------
    X : float array of shape (n, 2)
    y : float array of shape (n,)
    tops : mapping of method to int array
        Rows of its most unusual points; the first entry is the truth.
    what : str
        Name of the data set, for the description.
    """
    names = list(tops)
    truth = set(tops[names[0]].tolist())
    low, high = X.min(axis=0), X.max(axis=0)
    parts = []
    for place, name in enumerate(names):
        left = 4 + (place % _COLUMNS) * (_PANEL + _GAP)
        top = _TITLE + (place // _COLUMNS) * (_PANEL + _GAP + _TITLE)
        frame = Frame(left, top, _PANEL, _PANEL, low[0], high[0], low[1], high[1])
        shared = len(truth & set(tops[name].tolist()))
        words = name if place == 0 else f"{name}: {shared}/{len(truth)}"
        parts.append(text(left, top - 6, words, colour=TEXT, size=11, bold=place == 0))
        parts.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{_PANEL:g}" height="{_PANEL:g}" fill="none" stroke="{AXIS}"/>'
        )
        parts += [_dots(frame, X[y < 0], _NEGATIVE, 2.4), _dots(frame, X[y > 0], _POSITIVE, 2.4)]
        parts.append(_dots(frame, X[tops[name]], _TOP, 7))
    n_lines = -(-len(names) // _COLUMNS)
    said = "; ".join(f"{name} shares {len(truth & set(tops[name].tolist()))}" for name in names[1:])
    alt = f"{what}: the {len(truth)} most unusual points in black, by the truth and by each method. Of the true {said}."
    width = 8 + _COLUMNS * (_PANEL + _GAP)
    return svg(int(width), int(n_lines * (_PANEL + _GAP + _TITLE)), alt, parts)


def _dots(frame: Frame, points: FloatArray, colour: str, size: float) -> str:
    path = "".join(f"M{frame.x(x):.1f} {frame.y(y):.1f}h0" for x, y in points)
    return f'<path d="{path}" stroke="{colour}" stroke-width="{size:g}" stroke-linecap="round" fill="none"/>'


def spread_curves(
    ticks: Sequence[str], curves: Mapping[str, Sequence[tuple[float, float]]], x_title: str, y_title: str
) -> str:
    """Means with standard deviations over equally spaced settings.

    Parameters
    ----------
    ticks : sequence of str
        Settings, left to right.
    curves : mapping of name to (mean, standard deviation) for each setting
    x_title, y_title : str
    """
    every = np.array([pair for points in curves.values() for pair in points])
    low = np.floor((every[:, 0] - every[:, 1]).min() * 20) / 20
    high = np.ceil((every[:, 0] + every[:, 1]).max() * 20) / 20
    frame = Frame(56, 14, 400, 280, -0.3, len(ticks) - 0.7, float(low), float(high))
    parts = []
    for value in np.linspace(low, high, 6):
        parts.append(line(frame.left, frame.y(value), frame.left + frame.width, frame.y(value), colour=GRID))
        parts.append(text(frame.left - 8, frame.y(value) + 4, f"{value:.2f}", anchor="end"))
    for place, tick in enumerate(ticks):
        parts.append(text(frame.x(place), frame.top + frame.height + 18, tick, anchor="middle"))
    parts.append(text(frame.left + frame.width / 2, frame.top + frame.height + 38, x_title, anchor="middle"))
    parts.append(text(frame.left, 10, y_title, size=11))
    for number, (name, points) in enumerate(curves.items()):
        colour, dash = _STYLES[number % len(_STYLES)]
        # Curves stand a little beside each other, so that their bars can be told apart.
        shift = 0.05 * (number - (len(curves) - 1) / 2)
        for place, (mean, spread) in enumerate(points):
            x = frame.x(place + shift)
            parts.append(line(x, frame.y(mean - spread), x, frame.y(mean + spread), colour=colour))
        places = [(frame.x(place + shift), frame.y(mean)) for place, (mean, _) in enumerate(points)]
        parts.append(curve(places, colour=colour, width=2, dash=dash))
        height = frame.top + 14 + 20 * number
        parts.append(line(474, height - 4, 500, height - 4, colour=colour, width=2, dash=dash))
        parts.append(text(508, height, name, colour=TEXT))
    said = "; ".join(
        f"{name}: " + ", ".join(f"{mean:.2f} at {tick}" for tick, (mean, _) in zip(ticks, points, strict=True))
        for name, points in curves.items()
    )
    return svg(720, 352, f"{y_title} by {x_title}; bars are one standard deviation. {said}.", parts)


def marked_histogram(values: FloatArray, marked: float, title: str, x_title: str, n_bins: int = 30) -> str:
    """Histogram over [0, 1] with an arrow at one instance.

    Parameters
    ----------
    values : float array
    marked : float
        Where the arrow points; may lie a little outside.
    title, x_title : str
    n_bins : int
    """
    counts, edges = np.histogram(np.clip(values, 0.0, 1.0), bins=n_bins, range=(0.0, 1.0))
    frame = Frame(52, 40, 560, 140, 0.0, 1.0, 0.0, float(max(counts.max(), 1)))
    bottom = frame.top + frame.height
    parts = [text(frame.left, 14, title, colour=TEXT, bold=True)]
    for count, start, end in zip(counts, edges, edges[1:], strict=False):
        if count:
            width = frame.x(end) - frame.x(start) - 1
            parts.append(
                f'<rect x="{frame.x(start):.1f}" y="{frame.y(count):.1f}" width="{width:.1f}" '
                f'height="{bottom - frame.y(count):.1f}" fill="{_POSITIVE}"/>'
            )
    parts.append(line(frame.left, bottom, frame.left + frame.width, bottom))
    ticks = (0.0, 0.25, 0.5, 0.75, 1.0)
    parts += [text(frame.x(tick), bottom + 16, f"{tick:g}", anchor="middle") for tick in ticks]
    parts.append(text(frame.left - 8, frame.top + 4, f"{counts.max()}", anchor="end"))
    parts.append(text(frame.left + frame.width / 2, bottom + 34, x_title, anchor="middle"))
    x = frame.x(min(max(marked, 0.0), 1.0))
    parts.append(line(x, frame.top - 12, x, bottom - 10, colour=_TOP, width=2))
    parts.append(f'<path d="M{x - 5:.1f} {bottom - 12:.1f}L{x:.1f} {bottom - 2:.1f}L{x + 5:.1f} {bottom - 12:.1f}Z"/>')
    parts.append(text(x, frame.top - 15, f"{marked:.2f}", anchor="middle", colour=TEXT, size=11))
    alt = (
        f"{title}: histogram of {len(values)} values between {values.min():.2f} and {values.max():.2f}; "
        f"the arrow points to {marked:.2f}."
    )
    return svg(640, 224, alt, parts)
