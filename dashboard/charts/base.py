"""What every figure shares: layout, axes, fonts and safe text. Figures are plain dicts, which are fast."""

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape

from dashboard.charts.palette import Palette
from dashboard.texts import shorten

FONT = '"Source Sans", system-ui, sans-serif'
CONFIG: dict[str, object] = {"displayModeBar": False, "displaylogo": False, "scrollZoom": False}

Json = dict[str, object]


@dataclass(frozen=True)
class Chart:
    """A figure as Plotly reads it, and the sentence that says the same in words."""

    figure: Json
    alt: str


def safe(text: str, limit: int = 60) -> str:
    """Return text for use in a figure: shortened and without tags, which Plotly would render."""
    return escape(shorten(text, limit), quote=False)


def layout(colours: Palette, height: int, *, margin: Mapping[str, int] | None = None, **more: object) -> Json:
    """Return the layout of a figure: transparent, no legend, no drag, Streamlit's font."""
    return {
        # Streamlit hands a new figure to Plotly twice. With a template, or without a revision of the data, Plotly takes
        # the second one for another figure and draws it again. A figure that changes is another element of the page.
        "datarevision": 1,
        "height": height,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": FONT, "size": 13, "color": colours.text},
        "margin": {"l": 8, "r": 8, "t": 6, "b": 4, **(margin or {})},
        "showlegend": False,
        "dragmode": False,
        "bargap": 0.08,
        "hoverlabel": {
            "bgcolor": colours.page,
            "bordercolor": colours.axis,
            "font": {"family": FONT, "size": 13, "color": colours.text},
        },
        **more,
    }


def axis(colours: Palette, title: str = "", *, grid: bool = False, **more: object) -> Json:
    """Return an axis with a thin line, short ticks outside and a muted title."""
    result: Json = {
        "showgrid": grid,
        "gridcolor": colours.grid,
        "zeroline": False,
        "showline": True,
        "linecolor": colours.axis,
        "linewidth": 1,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": colours.axis,
        "tickfont": {"size": 12, "color": colours.muted},
        "fixedrange": True,
        "automargin": True,
        # Or Plotly measures every label to hide those that reach out of the figure; none does.
        "ticklabeloverflow": "allow",
        **more,
    }
    if title:
        # The dict form on purpose: a plain text together with title_font loses the font.
        result["title"] = {"text": title, "font": {"size": 12, "color": colours.muted}, "standoff": 8}
    return result


def bare_axis(**more: object) -> Json:
    """Return an axis that only places things and draws nothing."""
    return {"visible": False, "fixedrange": True, "showgrid": False, "zeroline": False, **more}


def note(text: str, x: object, y: object, colour: str, **more: object) -> Json:
    """Return words inside a figure, without an arrow unless asked for."""
    size = more.pop("size", 13)
    return {"text": text, "x": x, "y": y, "showarrow": False, "font": {"size": size, "color": colour}, **more}


def line(x0: object, x1: object, y0: object, y1: object, colour: str, **more: object) -> Json:
    """Return a straight line drawn as a shape."""
    style = {"color": colour, "width": more.pop("width", 1), "dash": more.pop("dash", "solid")}
    return {"type": "line", "x0": x0, "x1": x1, "y0": y0, "y1": y1, "line": style, **more}
