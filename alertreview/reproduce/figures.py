"""Figures of the repeated experiments."""

from collections.abc import Mapping

import numpy as np

from alertreview.reports.plot import Anchor, Axis, Box, Dots, Mark, Plot, Segment, Stroke, Tone, Words
from core.validation import FloatArray, IntArray

COLUMNS, GAP, TITLE = 4, 0.07, 0.12
"""Of panels whose sides are 1 long."""


def top_panels(X: FloatArray, y: FloatArray, tops: Mapping[str, IntArray], what: str) -> Plot:
    """Return the points of two classes, once for each method, with its most unusual ones in black.

    `X` has shape (n, 2), `y` shape (n,); `tops` the rows of the most unusual points by method, and the truth first.
    """
    truth, *others = tops
    shared = {name: len(set(tops[truth].tolist()) & set(rows.tolist())) for name, rows in tops.items()}
    low, high = X.min(axis=0), X.max(axis=0)
    n_rows = -(-len(tops) // COLUMNS)
    marks: list[Mark] = []
    for place, (name, rows) in enumerate(tops.items()):
        corner = np.array([place % COLUMNS * (1 + GAP), (n_rows - 1 - place // COLUMNS) * (1 + TITLE)])
        points = corner + (X - low) / (high - low)
        words = name if name == truth else f"{name}: {shared[name]}/{shared[truth]}"
        marks.append(Words((corner[0], corner[1] + 1), words, Tone.TEXT, bold=name == truth, shift=(0, 5)))
        marks.append(Box((corner[0], corner[1]), (corner[0] + 1, corner[1] + 1)))
        for of_class, tone, size in ((y < 0, Tone.ATTENTION, 2.4), (y > 0, Tone.ACCENT, 2.4), (rows, Tone.TEXT, 7)):
            marks.append(Dots(tuple(map(tuple, points[of_class].tolist())), tone, size))
    said = "; ".join(f"{name} shares {shared[name]}" for name in others)
    return Plot(
        tuple(marks),
        f"{what}: the {shared[truth]} most unusual points in black, by the truth and by each method. "
        f"Of the true {said}.",
        Axis(0, COLUMNS * (1 + GAP) - GAP, line=False),
        Axis(0, n_rows * (1 + TITLE) - TITLE, line=False),
        height=round(190 * (n_rows * (1 + TITLE) - TITLE)),
        width=round(190 * (COLUMNS * (1 + GAP) - GAP)),
    )


def marked_histogram(values: FloatArray, marked: float, title: str, x_title: str, n_bins: int = 30) -> Plot:
    """Return a histogram over [0, 1] with an arrow at one instance, which may lie a little outside."""
    counts, edges = np.histogram(np.clip(values, 0.0, 1.0), bins=n_bins, range=(0.0, 1.0))
    top = float(max(counts.max(), 1))
    x = min(max(marked, 0.0), 1.0)
    return Plot(
        (
            *(
                Box((a, 0), (b - 0.002, n), Tone.BARS, filled=True)
                for n, a, b in zip(counts, edges, edges[1:], strict=False)
            ),
            Words((0, 1.25 * top), title, Tone.TEXT, bold=True, shift=(0, 4)),
            Segment((x, 1.08 * top), (x, 0.01 * top), Stroke(Tone.TEXT, 2), arrow=True),
            Words((x, 1.08 * top), f"{marked:.2f}", Tone.TEXT, Anchor.MIDDLE, shift=(0, 4)),
        ),
        f"{title}: histogram of {len(values)} values between {values.min():.2f} and {values.max():.2f}; "
        f"the arrow points to {marked:.2f}.",
        Axis(0, 1, x_title, tuple((tick / 4, f"{tick / 4:g}") for tick in range(5))),
        Axis(0, 1.25 * top, ticks=((top, f"{top:.0f}"),), line=False),
        height=175,
    )
