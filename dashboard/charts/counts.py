"""Counts of a histogram on a square-root axis: one bar of hundreds would hide the few high scores."""

import math
from collections.abc import Sequence
from itertools import pairwise

from alertreview.scoring.models import Histogram
from dashboard.charts.base import Json, axis
from dashboard.charts.palette import Palette


def heights(counts: Sequence[int]) -> list[float]:
    """Return the heights at which counts are drawn: their square roots."""
    return [round(math.sqrt(count), 4) for count in counts]


def count_bars(data: Histogram, title: str, colour: str | list[str]) -> Json:
    """Return the bars of a histogram, in one colour or in one for each."""
    return {
        "type": "bar",
        "x": [round((a + b) / 2, 5) for a, b in pairwise(data.edges)],
        "y": heights(data.counts),
        "customdata": list(data.counts),
        "width": [round((b - a) * 0.9, 5) for a, b in pairwise(data.edges)],
        "marker": {"color": colour, "line": {"width": 0}},
        "hovertemplate": f"{title} about %{{x:.2f}}<br>%{{customdata:,}} instances<extra></extra>",
    }


def count_axis(colours: Palette, peak: int, *, room: float) -> Json:
    """Return the axis of counts up to a peak, with ticks in round counts and room above as a share of the axis."""
    ticks = sorted({0, *(_round_down(peak / part) for part in (16, 4, 1) if peak >= part)})
    return axis(
        colours,
        grid=True,
        showline=False,
        range=[0, math.sqrt(max(peak, 1)) * (1 + room)],
        tickvals=heights(ticks),
        ticktext=[f"{tick:,}" for tick in ticks],
    )


def _round_down(value: float) -> int:
    """Return the largest number of one significant digit that is not above a value of at least 1."""
    unit: int = 10 ** int(math.log10(value))
    return int(value // unit) * unit
