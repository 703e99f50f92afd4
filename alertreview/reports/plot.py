"""The description of a figure, and its SVG for documents; pages draw the same description with Plotly."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from typing import Literal

Point = tuple[float, float]


class Anchor(StrEnum):
    """Which part of a text stands at its point."""

    START = "start"
    MIDDLE = "middle"
    END = "end"


class Tone(StrEnum):
    """What a colour means; the values are fields of the dashboard's palette."""

    ACCENT = "accent"
    STRONG = "bars_strong"
    BARS = "bars"
    ATTENTION = "attention"
    MUTED = "muted"
    AXIS = "axis"
    GRID = "grid"
    TEXT = "text"


LIGHT = {
    Tone.ACCENT: "#0B6B6B",
    Tone.STRONG: "#63747E",
    Tone.BARS: "#8795A0",
    Tone.ATTENTION: "#8A6100",
    Tone.MUTED: "#55646E",
    Tone.AXIS: "#B9C4CA",
    Tone.GRID: "#E9EEF0",
    Tone.TEXT: "#0B1418",
}
"""Colours of a document, which is always light."""


@dataclass(frozen=True)
class Stroke:
    """How a line is drawn."""

    tone: Tone = Tone.ACCENT
    width: float = 1.0
    dash: Literal["", "dash", "dot", "dashdot"] = ""


@dataclass(frozen=True)
class Axis:
    """An axis with a linear scale; ticks carry their words, so that a logarithm is a matter of words too."""

    low: float
    high: float
    title: str = ""
    ticks: tuple[tuple[float, str], ...] = ()
    grid: bool = False
    line: bool = True


@dataclass(frozen=True)
class Curve:
    """A line through points, with a vertical interval at each of them if `low` and `high` are given."""

    points: tuple[Point, ...]
    stroke: Stroke = Stroke()
    dots: float = 0.0  # diameter of the dots on the points, in pixels; 0 draws none
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    hover: tuple[str, ...] = ()  # words beside the pointer, by point


@dataclass(frozen=True)
class Dots:
    """Points without a line."""

    points: tuple[Point, ...]
    tone: Tone = Tone.ACCENT
    size: float = 8.0
    ring: bool = False


@dataclass(frozen=True)
class Band:
    """The area between two curves: (abscissa, low, high)."""

    points: tuple[tuple[float, float, float], ...]

    def outline(self) -> list[Point]:
        """Return the corners, along the upper curve and back along the lower one."""
        return [(x, high) for x, _, high in self.points] + [(x, low) for x, low, _ in reversed(self.points)]


@dataclass(frozen=True)
class Segment:
    """A straight line between two points."""

    start: Point
    end: Point
    stroke: Stroke = Stroke(Tone.MUTED)
    arrow: bool = False


@dataclass(frozen=True)
class Box:
    """A rectangle between two corners, outlined or filled."""

    start: Point
    end: Point
    tone: Tone = Tone.AXIS
    filled: bool = False


@dataclass(frozen=True)
class Words:
    """One line of text at a point."""

    at: Point
    text: str
    tone: Tone = Tone.MUTED
    anchor: Anchor = Anchor.START
    bold: bool = False
    shift: Point = (0.0, 0.0)  # pixels to the right and upwards


Mark = Curve | Dots | Band | Segment | Box | Words


@dataclass(frozen=True)
class Key:
    """One line of the key of a figure."""

    name: str
    detail: str
    stroke: Stroke


@dataclass(frozen=True)
class Plot:
    """A figure: what is drawn, in which order, and what it says in words."""

    marks: tuple[Mark, ...]
    alt: str
    x: Axis
    y: Axis
    height: int  # of the area inside the axes, in pixels
    square: bool = False  # whether one unit has the same length on both axes
    key: tuple[Key, ...] = ()
    values: tuple[Words, ...] = ()  # of rows, at their right, whatever the abscissa
    width: int = 0  # of the area inside the axes of a document, in pixels; 0 fills the page

    @property
    def has_words_above(self) -> bool:
        """Whether some words stand above the area inside the axes."""
        return any(isinstance(m, Words) and m.at[1] >= self.y.high and m.shift[1] > 0 for m in self.marks)


WIDTH = 660
FONT = "'Source Sans 3','Source Sans Pro','Libertinus Serif',system-ui,sans-serif"
DASHES = {"": "", "dash": "7 4", "dot": "2 3", "dashdot": "9 3 2 3"}
KEY_WIDTH, KEY_HEIGHT = 268, 38


def shorten(words: str, most: int) -> str:
    """Return a text, cut with an ellipsis if it is longer than `most` characters."""
    return words if len(words) <= most else words[: most - 1].rstrip() + "…"


def draw_svg(plot: Plot) -> str:
    """Return a figure as SVG: no script, no outside reference, the same bytes for the same figure."""
    canvas = _Canvas(plot)
    alt = escape(plot.alt, quote=True)
    parts = [*canvas.axes(), *(part for mark in plot.marks for part in canvas.mark(mark)), *canvas.beside()]
    size = f'viewBox="0 0 {canvas.total_width:.0f} {canvas.total_height:.0f}" width="{canvas.total_width:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} height="{canvas.total_height:.0f}" role="img" '
        f'aria-label="{alt}" font-family="{FONT}" font-size="12"><title>{alt}</title>{"".join(parts)}</svg>'
    )


class _Canvas:
    """The pixels of a figure: margins as wide as the words in them, and the area inside the axes."""

    def __init__(self, plot: Plot) -> None:
        self._plot = plot
        self._left = 14 + _width(words for _, words in plot.y.ticks) + (20 if plot.y.title else 0)
        right = KEY_WIDTH if plot.key else 14 + _width(value.text for value in plot.values)
        self._top = 24 if plot.has_words_above else 10
        self._width = plot.width or (plot.height if plot.square else WIDTH - self._left - right)
        self._bottom = self._top + plot.height
        self.total_width = max(WIDTH, self._left + plot.width)
        below = self._bottom + 6 + (18 if plot.x.ticks else 0) + (20 if plot.x.title else 0)
        self.total_height = max(below, self._top + KEY_HEIGHT * len(plot.key))

    def _x(self, value: float) -> float:
        axis = self._plot.x
        return self._left + self._width * (value - axis.low) / (axis.high - axis.low)

    def _y(self, value: float) -> float:
        axis = self._plot.y
        return self._bottom - self._plot.height * (value - axis.low) / (axis.high - axis.low)

    def _at(self, points: Iterable[Point]) -> list[Point]:
        return [(self._x(x), self._y(y)) for x, y in points]

    def axes(self) -> list[str]:
        """Return grid lines, axes, ticks and titles."""
        x, y = self._plot.x, self._plot.y
        left, right, top, bottom = self._left, self._left + self._width, self._top, self._bottom
        grid, line = Stroke(Tone.GRID), Stroke(Tone.AXIS)
        parts = [_line([(self._x(t), top), (self._x(t), bottom)], grid) for t, _ in x.ticks if x.grid]
        parts += [_line([(left, self._y(t)), (right, self._y(t))], grid) for t, _ in y.ticks if y.grid]
        parts += [_line([(left, bottom), (right, bottom)], line)] if x.line else []
        parts += [_line([(left, top), (left, bottom)], line)] if y.line else []
        parts += [_text(self._x(t), bottom + 18, words, anchor=Anchor.MIDDLE) for t, words in x.ticks]
        tone = Tone.MUTED if y.line else Tone.TEXT  # names of rows are no numbers
        parts += [_text(left - 8, self._y(t) + 4, words, tone, anchor=Anchor.END) for t, words in y.ticks]
        if x.title:
            parts.append(_text(left + self._width / 2, bottom + 38, x.title, anchor=Anchor.MIDDLE))
        if y.title:
            parts.append(_text(14, top + self._plot.height / 2, y.title, anchor=Anchor.MIDDLE, turned=True))
        return parts

    def mark(self, mark: Mark) -> list[str]:
        """Return what draws a mark."""
        match mark:
            case Curve():
                at = self._at(mark.points)
                bars = [
                    _line([(x, self._y(low)), (x, self._y(high))], Stroke(mark.stroke.tone))
                    for (x, _), low, high in zip(at, mark.low, mark.high, strict=False)
                ]
                dots = [_dots(at, mark.stroke.tone, mark.dots)] if mark.dots else []
                return [*bars, _line(at, mark.stroke), *dots]
            case Dots():
                at = self._at(mark.points)
                return [_dots(at, mark.tone, mark.size), *([_dots(at, None, mark.size - 5)] if mark.ring else [])]
            case Band():
                path = _path(self._at(mark.outline()))
                return [f'<polygon points="{path}" fill="{LIGHT[Tone.ACCENT]}" fill-opacity="0.14"/>']
            case Segment():
                start, end = self._at([mark.start, mark.end])
                return [_line([start, end], mark.stroke), *([_arrow(*end, mark.stroke.tone)] if mark.arrow else [])]
            case Box():
                (x0, y0), (x1, y1) = self._at([mark.start, mark.end])
                fill, edge = (LIGHT[mark.tone], "none") if mark.filled else ("none", LIGHT[mark.tone])
                size = f'width="{abs(x1 - x0):.1f}" height="{abs(y1 - y0):.1f}"'
                return [f'<rect x="{min(x0, x1):.1f}" y="{min(y0, y1):.1f}" {size} fill="{fill}" stroke="{edge}"/>']
            case Words():
                x, y = self._x(mark.at[0]) + mark.shift[0], self._y(mark.at[1]) - mark.shift[1]
                return [_text(x, y, mark.text, mark.tone, anchor=mark.anchor, bold=mark.bold)]

    def beside(self) -> list[str]:
        """Return what stands right of the area: the values of rows, or the key."""
        x = self.total_width - 8
        parts = [
            _text(x, self._y(value.at[1]) + 4, value.text, value.tone, anchor=Anchor.END, bold=value.bold)
            for value in self._plot.values
        ]
        x = self.total_width - KEY_WIDTH + 18
        for place, key in enumerate(self._plot.key):
            y = self._top + 12 + KEY_HEIGHT * place
            parts.append(_line([(x, y - 4), (x + 24, y - 4)], key.stroke))
            parts.append(_text(x + 32, y, key.name, Tone.TEXT, bold=place == 0))
            parts.append(_text(x + 32, y + 15, key.detail))
        return parts


def _width(words: Iterable[str]) -> float:
    """Return the pixels that the longest of some words takes."""
    return 6.2 * max(map(len, words), default=0)


def _path(points: Sequence[Point]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _line(points: Sequence[Point], stroke: Stroke) -> str:
    dash = f' stroke-dasharray="{DASHES[stroke.dash]}"' if stroke.dash else ""
    style = f'stroke="{LIGHT[stroke.tone]}" stroke-width="{stroke.width:g}"{dash}'
    return f'<polyline points="{_path(points)}" fill="none" {style}/>'


def _dots(points: Sequence[Point], tone: Tone | None, size: float) -> str:
    """Return one path for all dots; without a tone they have the colour of the paper.

    A stretch of no length draws a dot in browsers, but the typesetter leaves out a path that has no extent.
    """
    path = "".join(f"M{x:.1f} {y:.1f}h.01" for x, y in points)
    style = f'stroke="{LIGHT[tone] if tone else "#FFF"}" stroke-width="{size:g}" stroke-linecap="round"'
    return f'<path d="{path}" {style} fill="none"/>'


def _arrow(x: float, y: float, tone: Tone) -> str:
    return f'<path d="M{x - 4:.1f} {y - 7:.1f}L{x:.1f} {y:.1f}L{x + 4:.1f} {y - 7:.1f}Z" fill="{LIGHT[tone]}"/>'


def _text(
    x: float,
    y: float,
    words: str,
    tone: Tone = Tone.MUTED,
    *,
    anchor: Anchor = Anchor.START,
    bold: bool = False,
    turned: bool = False,
) -> str:
    style = (' font-weight="600"' if bold else "") + (f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else "")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{LIGHT[tone]}"{style}>{escape(words)}</text>'
