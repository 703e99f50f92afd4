"""Turns the description of a figure into what Plotly reads."""

from alertreview.reports.plot import Anchor, Axis, Band, Box, Curve, Dots, Plot, Segment, Tone, Words
from dashboard.charts.base import Chart, Json, axis, bare_axis, layout, line, note, safe
from dashboard.charts.palette import Palette

DASHES = {"": "solid", "dash": "dash", "dot": "dot", "dashdot": "dashdot"}
DASH_WORDS = {"": "", "dash": ", dashed", "dot": ", dotted", "dashdot": ", dash-dotted"}
ANCHORS = {Anchor.START: "left", Anchor.MIDDLE: "center", Anchor.END: "right"}
KEY_HEIGHT, LETTER_WIDTH = 17, 7.2


def chart(plot: Plot | None, colours: Palette, *, narrow: bool = False) -> Chart | None:
    """Return a figure for Plotly; None stays None.

    On a phone the values of rows stand under their names; in a column of their own they would cover the dots.
    """
    if plot is None:
        return None
    data: list[Json] = []
    shapes: list[Json] = []
    notes = _key(plot, colours)
    for mark in plot.marks:
        match mark:
            case Curve():
                data.append(_curve(mark, colours))
            case Dots():
                data.append(_dots(mark, colours))
            case Band() if mark.points:
                x, y = zip(*mark.outline(), strict=True)
                style: Json = {"fill": "toself", "fillcolor": colours.accent_band, "line": {"width": 0}}
                data.append(_trace("lines", x, y, hoverinfo="skip", **style))
            case Segment() if mark.arrow:
                notes.append(_arrow(mark, colours))
            case Segment():
                (x0, y0), (x1, y1), stroke = mark.start, mark.end, mark.stroke
                colour = _colour(stroke.tone, colours)
                shapes.append(line(x0, x1, y0, y1, colour, width=stroke.width, dash=DASHES[stroke.dash]))
            case Box():
                shapes.append(_box(mark, colours))
            case Words():
                notes.append(_words(mark, colours))
    values = {value.at[1]: safe(value.text) for value in plot.values}
    if not narrow:
        beside: Json = {"xref": "paper", "xanchor": "left", "xshift": 8}
        notes += [
            note(_bold(safe(value.text), value.bold), 1, value.at[1], _colour(value.tone, colours), **beside)
            for value in plot.values
        ]
    top = KEY_HEIGHT * len(plot.key) + (22 if plot.has_words_above else 8)
    right = 8 if narrow else 16 + LETTER_WIDTH * max(map(len, values.values()), default=0)
    x_axis, y_axis = _axis(plot.x, colours), _axis(plot.y, colours, values if narrow else {})
    if plot.square:
        x_axis |= {"constrain": "domain"}
        y_axis |= {"constrain": "domain", "scaleanchor": "x"}
    height = plot.height * (1.4 if narrow and values else 1) + top + (48 if plot.x.title else 26 if plot.x.ticks else 4)
    figure = layout(colours, round(height), margin={"t": top, "r": round(right)})
    figure |= {"xaxis": x_axis, "yaxis": y_axis, "shapes": shapes, "annotations": notes}
    return Chart({"data": data, "layout": figure}, plot.alt)


def _colour(tone: Tone, colours: Palette) -> str:
    return str(getattr(colours, tone))


def _bold(words: str, bold: bool) -> str:
    return f"<b>{words}</b>" if bold else words


def _trace(mode: str, x: tuple[float, ...], y: tuple[float, ...], **more: object) -> Json:
    points = {"x": [round(value, 4) for value in x], "y": [round(value, 4) for value in y]}
    return {"type": "scatter", "mode": mode, **points, **more}


def _curve(curve: Curve, colours: Palette) -> Json:
    stroke, colour = curve.stroke, _colour(curve.stroke.tone, colours)
    x, y = zip(*curve.points, strict=True) if curve.points else ((), ())
    trace = _trace("lines+markers" if curve.dots else "lines", x, y)
    trace["line"] = {"color": colour, "width": stroke.width, "dash": DASHES[stroke.dash]}
    trace["marker"] = {"size": curve.dots, "color": colour}
    trace |= {"text": list(curve.hover), "hovertemplate": "%{text}<extra></extra>"}
    if curve.low:
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": [round(high - value, 4) for value, high in zip(y, curve.high, strict=True)],
            "arrayminus": [round(value - low, 4) for value, low in zip(y, curve.low, strict=True)],
            "color": colour,
            "thickness": 1.2,
            "width": 3,
        }
    return trace


def _dots(dots: Dots, colours: Palette) -> Json:
    colour = _colour(dots.tone, colours)
    marker: Json = {"size": dots.size, "color": colour}
    if dots.ring:
        marker |= {"color": colours.page, "line": {"color": colour, "width": 2.5}}
    x, y = zip(*dots.points, strict=True)
    return _trace("markers", x, y, marker=marker, hoverinfo="skip")


def _box(box: Box, colours: Palette) -> Json:
    (x0, y0), (x1, y1), colour = box.start, box.end, _colour(box.tone, colours)
    style: Json = {"fillcolor": colour, "line": {"width": 0}} if box.filled else {"line": {"color": colour, "width": 1}}
    return {"type": "rect", "x0": x0, "x1": x1, "y0": y0, "y1": y1, **style}


def _arrow(segment: Segment, colours: Palette) -> Json:
    (ax, ay), (x, y) = segment.start, segment.end
    head: Json = {"showarrow": True, "arrowhead": 2, "arrowcolor": _colour(segment.stroke.tone, colours)}
    return {"text": "", "x": x, "y": y, "ax": ax, "ay": ay, "axref": "x", "ayref": "y", **head}


def _words(words: Words, colours: Palette) -> Json:
    (x, y), (right, up) = words.at, words.shift
    text = _bold(safe(words.text), words.bold)
    place: Json = {"xanchor": ANCHORS[words.anchor], "yanchor": "bottom", "xshift": right, "yshift": up - 4}
    return note(text, x, y, _colour(words.tone, colours), size=12, **place)


def _key(plot: Plot, colours: Palette) -> list[Json]:
    """Return the lines of the key above the figure, in the colours of their curves where those can be read."""
    notes = []
    for place, key in enumerate(plot.key):
        words = _bold(safe(key.name) + DASH_WORDS[key.stroke.dash], place == 0) + f"  {safe(key.detail)}"
        colour = colours.muted if key.stroke.tone is Tone.STRONG else _colour(key.stroke.tone, colours)
        up = 4 + KEY_HEIGHT * (len(plot.key) - 1 - place)
        notes.append(
            note(words, 0, 1, colour, xref="paper", yref="paper", xanchor="left", yanchor="bottom", yshift=up, size=12)
        )
    return notes


def _axis(described: Axis, colours: Palette, below: dict[float, str] | None = None) -> Json:
    """Return an axis; words `below` a tick come under its own."""
    ends = [described.low, described.high]
    if not (described.ticks or described.line):
        return bare_axis(range=ends)
    found = axis(colours, described.title, grid=described.grid, range=ends, showline=described.line)
    found["tickvals"] = [at for at, _ in described.ticks]
    found["ticktext"] = [
        safe(words) + (f"<br>{below[at]}" if below and at in below else "") for at, words in described.ticks
    ]
    if not described.line:  # names of rows
        found |= {"ticks": "", "tickfont": {"size": 13, "color": colours.text}}
    return found
