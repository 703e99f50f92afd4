"""Lines that mark and dash tell apart as well as colour, with their names above the figure instead of in a legend."""

from collections.abc import Mapping, Sequence

from dashboard.charts.base import Json, note, safe

MARKS = (("circle", "●", "solid"), ("diamond", "◆", "dash"), ("square", "■", "dot"))
"""Plotly's name of the mark, the same mark as text, and the dash of its line."""
NAME_HEIGHT = 17
"""Pixels that each name needs above the figure."""


def marked_line(
    place: int, name: str, colour: str, x: Sequence[float], y: Sequence[float | None], *, hover: str, **more: object
) -> Json:
    """Draw the line that comes in this place, from 0 on, which gives mark and dash; None leaves a gap."""
    symbol, _, dash = MARKS[place % len(MARKS)]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": list(x),
        "y": list(y),
        "line": {"color": colour, "width": 1.6, "dash": dash},
        "marker": {"size": 8, "symbol": symbol},
        "hovertemplate": f"{hover}<extra></extra>",
        **more,
    }


def names_above(colour_of: Mapping[str, str]) -> list[Json]:
    """Return the names of the lines in their order, one below the other, each with its mark."""
    return [
        note(
            f"{MARKS[place % len(MARKS)][1]} {safe(name)}",
            0,
            1,
            colour,
            xref="paper",
            yref="paper",
            xanchor="left",
            yanchor="bottom",
            yshift=NAME_HEIGHT * (len(colour_of) - 1 - place),
            size=12,
        )
        for place, (name, colour) in enumerate(colour_of.items())
    ]
