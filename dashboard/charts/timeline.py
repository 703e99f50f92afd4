"""The patient's time line: past orders, labs against their usual range, drugs, and the decision window."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from alertreview.alerts.models import Timeline, TimelineDrug, TimelineLab
from core.kinds import Kind
from core.vocabulary import Decision
from dashboard.charts.base import Chart, Json, axis, bare_axis, layout, line, note, safe
from dashboard.charts.palette import Palette
from dashboard.texts import number, plural, short_time, shorten

_SPANS_HOURS = (18, 42, 66)
"""How far back the line reaches: the shortest that holds everything, so that a first day is not squeezed."""


@dataclass(frozen=True)
class Size:
    """Measures of the time line in pixels."""

    n_labs: int = 4
    n_drugs: int = 5
    decision: int = 44
    lab: int = 61
    drug: int = 19
    gap: int = 8
    top: int = 30
    bottom: int = 30
    left: int = 158
    right: int = 34
    name_length: int = 22
    phone: bool = False


DESKTOP = Size()
REVIEW = Size(decision=38, lab=48, drug=18, gap=7, top=28, bottom=28)
PHONE = Size(n_labs=3, n_drugs=4, decision=38, lab=56, drug=18, gap=6, left=104, right=30, name_length=14, phone=True)


@dataclass(frozen=True)
class _Frame:
    """Where things are: the time axis in hours from the snapshot, and the lanes as shares of the height."""

    timeline: Timeline
    decision: Decision
    kind: Kind
    colours: Palette
    size: Size
    start: float
    end: float
    window: float
    labs: tuple[TimelineLab, ...]
    drugs: tuple[TimelineDrug, ...]

    def at(self, when: datetime) -> float:
        """Hours from the snapshot; real hours, also over a change of the clock."""
        return round((when - self.timeline.snapshot_at).total_seconds() / 3600, 3)

    @property
    def plot_height(self) -> int:
        """Height of all lanes."""
        lanes = self.size.decision + len(self.labs) * (self.size.lab + self.size.gap) + self.size.gap
        return lanes + (len(self.drugs) * self.size.drug + self.size.gap if self.drugs else 0)

    def domain(self, top: float, height: float) -> list[float]:
        """Share of the plot's height for a lane given in pixels from above."""
        return [round(1 - (top + height) / self.plot_height, 4), round(1 - top / self.plot_height, 4)]


def timeline(data: Timeline, kind: Kind, colours: Palette, *, size: Size = DESKTOP) -> Chart:
    """Draw the time line of one patient up to the snapshot and the decision in the window after it.

    Parameters
    ----------
    data
        What was known at the snapshot; nothing after it but the decision in question.
    kind
        An omission shows a dashed empty box in the window, a commission a filled one with its time.
    size
        Measures for desktop, review or phone.
    """
    frame = _frame(data, kind, colours, size)
    traces, axes, shapes, notes = _decision_lane(frame)
    top = float(size.decision + size.gap)
    for position, lab in enumerate(frame.labs):
        _add_lab(frame, lab, position + 2, top, traces, axes, shapes, notes)
        top += size.lab + size.gap
    if frame.drugs:
        _add_drugs(frame, len(frame.labs) + 2, top, traces, axes, shapes, notes)
    shapes[:0] = [_window(frame)]
    shapes.append(line(0, 0, 0, 1.02, colours.decision_text(frame.decision), yref="paper", width=2))
    notes += _clock_words(frame)
    figure: Json = {
        "data": traces,
        "layout": layout(
            colours,
            frame.plot_height + size.top + size.bottom,
            margin={"l": size.left, "r": size.right, "t": size.top, "b": size.bottom},
            xaxis=_time_axis(frame),
            shapes=shapes,
            annotations=notes,
            hovermode="closest",
            **axes,
        ),
    }
    return Chart(figure, _sentence(frame))


def _frame(data: Timeline, kind: Kind, colours: Palette, size: Size) -> _Frame:
    labs = tuple(lab for lab in data.labs if lab.values)[: size.n_labs]
    drugs = tuple(drug for drug in data.drugs if drug.periods)[: size.n_drugs]
    times = [
        *data.past_orders,
        *(t for lab in labs for t in lab.times),
        *(p[0] for drug in drugs for p in drug.periods),
    ]
    back = max(((data.snapshot_at - t).total_seconds() / 3600 for t in times), default=0.0)
    start = -float(next((span for span in _SPANS_HOURS if back <= span), _SPANS_HOURS[-1]))
    window = (data.window_end - data.snapshot_at).total_seconds() / 3600
    return _Frame(data, data.decision, kind, colours, size, start, max(24.0, window) + 2, window, labs, drugs)


def _decision_lane(frame: _Frame) -> tuple[list[Json], dict[str, object], list[Json], list[Json]]:
    """Past orders as diamonds, and the decision in question as a box in the window."""
    colours, data, size = frame.colours, frame.timeline, frame.size
    past = [t for t in data.past_orders if frame.at(t) >= frame.start]
    trace: Json = {
        "type": "scatter",
        "mode": "markers",
        "x": [frame.at(t) for t in past],
        "y": [0.5] * len(past),
        "yaxis": "y",
        "marker": {"symbol": "diamond", "size": 10, "color": colours.ink},
        "customdata": [short_time(t) for t in past],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    axes: dict[str, object] = {"yaxis": bare_axis(domain=frame.domain(0, size.decision), range=[0, 1])}
    pair = colours.decision_bar(frame.decision)
    empty = frame.decision is Decision.OMISSION
    box: Json = {
        "type": "rect",
        "x0": 0.5,
        "x1": max(frame.window - 0.5, 1.0),
        "y0": 0.12,
        "y1": 0.88,
        "yref": "y",
        "line": {"color": pair, "width": 1.5, "dash": "dash" if empty else "solid"},
        "fillcolor": "rgba(0,0,0,0)" if empty else pair,
    }
    words = note(
        f"<b>{_window_words(frame)}</b>",
        frame.window / 2,
        0.5,
        colours.decision_text(frame.decision) if empty else colours.page,
        yref="y",
        size=12,
    )
    done = frame.kind.words.done
    name = safe(data.decision_name, size.name_length - (0 if size.phone else len(done) + 1))
    title = f"<b>{name}</b>" if size.phone else f"<b>{name} {done}</b>"
    return [trace], axes, [box], [words, _lane_name(frame, title, 0.5, "y")]


def _window_words(frame: _Frame) -> str:
    """Say what stands in the box of the decision window."""
    if frame.decision is Decision.OMISSION:
        if frame.size.phone:
            return "none"
        return f"not {frame.kind.words.done}"
    times = frame.timeline.orders_in_window
    if not times:
        return frame.kind.words.done
    if frame.size.phone:
        return f"{times[0]:%H:%M}"
    more = f" +{len(times) - 1}" if len(times) > 1 else ""
    return f"{frame.kind.words.done} {times[0]:%H:%M}{more}"


def _lane_name(frame: _Frame, text: str, y: float, yref: str) -> Json:
    """Return the name of a lane, left of the plot."""
    return note(
        text,
        0,
        y,
        frame.colours.text,
        xref="paper",
        yref=yref,
        xanchor="left",
        align="left",
        xshift=-frame.size.left + 2,
    )


def _add_lab(
    frame: _Frame,
    lab: TimelineLab,
    index: int,
    top: float,
    traces: list[Json],
    axes: dict[str, object],
    shapes: list[Json],
    notes: list[Json],
) -> None:
    """Add one lab: band of the usual range, line, and markers whose shape says in range, above, below."""
    colours, size, ref = frame.colours, frame.size, f"y{index}"
    shown = [(frame.at(t), v, t) for t, v in zip(lab.times, lab.values, strict=True) if frame.at(t) >= frame.start]
    low, high = _value_range(lab, [v for _, v, _ in shown])
    axes[f"yaxis{index}"] = bare_axis(domain=frame.domain(top, size.lab), range=[low, high])
    traces.append(
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": [x for x, _, _ in shown],
            "y": [v for _, v, _ in shown],
            "yaxis": ref,
            "line": {"color": colours.ink, "width": 1.5},
            "marker": {
                "size": 8,
                "symbol": [_symbol(lab, v) for _, v, _ in shown],
                "color": [colours.ink if _flag(lab, v) else colours.page for _, v, _ in shown],
                "line": {"color": colours.ink, "width": 1.5},
            },
            "customdata": [f"{number(v)} {safe(lab.unit, 16)}, {short_time(t)}" for _, v, t in shown],
            "hovertemplate": "%{customdata}<extra></extra>",
        }
    )
    shapes += _reference_band(frame, lab, low, high, ref)
    notes += _limits(frame, lab, low, high, ref)
    last = f"{number(lab.values[-1])} {safe(lab.unit, 16)} {_arrow(lab, lab.values[-1])}".strip()
    name = f'{safe(lab.name, size.name_length)}<br><span style="font-size:11.5px;color:{colours.muted}">{last}</span>'
    notes.append(_lane_name(frame, name, (low + high) / 2, ref))


def _value_range(lab: TimelineLab, values: list[float]) -> tuple[float, float]:
    """Range of a lane: all values and the usual range, with room for the markers."""
    ends = [*values, *(limit for limit in (lab.low, lab.high) if limit is not None)] or [0.0, 1.0]
    low, high = min(ends), max(ends)
    padding = 0.22 * (high - low) or abs(high) * 0.2 or 1.0
    return low - padding, high + padding


def _reference_band(frame: _Frame, lab: TimelineLab, low: float, high: float, ref: str) -> list[Json]:
    if lab.low is None and lab.high is None:
        return []
    return [
        {
            "type": "rect",
            "layer": "below",
            "x0": frame.start,
            "x1": frame.end,
            "y0": low if lab.low is None else lab.low,
            "y1": high if lab.high is None else lab.high,
            "yref": ref,
            "line": {"width": 0},
            "fillcolor": frame.colours.band,
        }
    ]


def _limits(frame: _Frame, lab: TimelineLab, low: float, high: float, ref: str) -> list[Json]:
    """Return the two ends of the usual range at the right edge; as one text when they would overlap."""
    ends = [limit for limit in (lab.low, lab.high) if limit is not None]
    pixels = frame.size.lab * (ends[-1] - ends[0]) / (high - low) if len(ends) == 2 else 99.0
    place = {"xref": "paper", "yref": ref, "xanchor": "left", "xshift": 3, "size": 11.5}
    if pixels < 13:
        return [note(number(ends[-1]), 1, sum(ends) / 2, frame.colours.muted, **place)]
    return [note(number(end), 1, end, frame.colours.muted, **place) for end in ends]


def _flag(lab: TimelineLab, value: float) -> str:
    if lab.high is not None and value > lab.high:
        return "high"
    return "low" if lab.low is not None and value < lab.low else ""


def _arrow(lab: TimelineLab, value: float) -> str:
    return {"high": "↑", "low": "↓", "": ""}[_flag(lab, value)]


def _symbol(lab: TimelineLab, value: float) -> str:
    return {"high": "triangle-up", "low": "triangle-down", "": "circle"}[_flag(lab, value)]


def _add_drugs(
    frame: _Frame,
    index: int,
    top: float,
    traces: list[Json],
    axes: dict[str, object],
    shapes: list[Json],
    notes: list[Json],
) -> None:
    """Add the drug lane: one bar for each period, cut at the snapshot."""
    ref, n_drugs = f"y{index}", len(frame.drugs)
    axes[f"yaxis{index}"] = bare_axis(domain=frame.domain(top, n_drugs * frame.size.drug), range=[0, n_drugs])
    hover_x: list[float] = []
    hover_y: list[float] = []
    hover_text: list[str] = []
    for row, drug in enumerate(frame.drugs):
        y = n_drugs - row - 0.5
        notes.append(_lane_name(frame, safe(drug.name, frame.size.name_length), y, ref))
        for begin, end in drug.periods:
            x0, x1 = max(frame.at(begin), frame.start), min(frame.at(end), 0.0)
            if x1 < frame.start or x0 > 0:
                continue
            # A single dose has no length: half an hour is the least that can be seen.
            x1 = min(max(x1, x0 + 0.5), 0.0) if x0 < -0.5 else 0.0
            shapes.append(_bar(x0, x1, y, ref, frame.colours))
            hover_x.append((x0 + x1) / 2)
            hover_y.append(y)
            hover_text.append(f"{safe(drug.name)}, {short_time(begin)} to {short_time(end)}")
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "x": hover_x,
            "y": hover_y,
            "yaxis": ref,
            "marker": {"size": 9, "opacity": 0},
            "customdata": hover_text,
            "hovertemplate": "%{customdata}<extra></extra>",
        }
    )


def _bar(x0: float, x1: float, y: float, ref: str, colours: Palette) -> Json:
    return {
        "type": "rect",
        "x0": x0,
        "x1": x1,
        "y0": y - 0.3,
        "y1": y + 0.3,
        "yref": ref,
        "line": {"width": 0},
        "fillcolor": colours.bars_strong,
    }


def _window(frame: _Frame) -> Json:
    """Return the decision window behind everything."""
    return {
        "type": "rect",
        "layer": "below",
        "x0": 0,
        "x1": frame.window,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"width": 0},
        "fillcolor": frame.colours.window,
    }


def _clock_words(frame: _Frame) -> list[Json]:
    """Return the two words above the snapshot's line."""
    colour = frame.colours.decision_text(frame.decision)
    place = {"yref": "paper", "yanchor": "bottom", "size": 12}
    window = f"{frame.window:.0f} h" if frame.size.phone else f"decision window, {frame.window:.0f} h"
    return [
        note(f"<b>{frame.timeline.snapshot_at:%H:%M}</b>", 0, 1.01, colour, xanchor="right", xshift=-4, **place),
        note(window, 0, 1.01, colour, xanchor="left", xshift=5, **place),
    ]


def _time_axis(frame: _Frame) -> Json:
    """Return the time axis in hours from the snapshot, ticked at midnights of the site."""
    midnight = frame.timeline.snapshot_at.replace(hour=0, minute=0, second=0, microsecond=0)
    midnights = [midnight + timedelta(days=shift) for shift in range(-3, 3)]
    shown = [(frame.at(t), t) for t in midnights if frame.start <= frame.at(t) <= frame.end]
    texts = [str(t.day) if frame.size.phone else f"{t.day} {t:%b} 00:00" for _, t in shown]
    if frame.size.phone and shown:
        texts[-1] = f"{shown[-1][1].day} {shown[-1][1]:%b}"
    return axis(
        frame.colours,
        range=[frame.start, frame.end],
        tickvals=[x for x, _ in shown],
        ticktext=texts,
        anchor="free",
        position=0,
        automargin=False,
    )


def _sentence(frame: _Frame) -> str:
    """Return the figure in words, for screen readers."""
    data = frame.timeline
    act = frame.kind.words.act
    begin = short_time(data.snapshot_at + timedelta(hours=frame.start))
    before, inside = plural(len(data.past_orders), act), len(data.orders_in_window) or "none"
    snapshot = f"the snapshot at {short_time(data.snapshot_at)}"
    parts = [
        f"Time line from {begin} to {snapshot} and the {frame.window:.0f} h decision window after it.",
        f"{shorten(data.decision_name)}: {before} before, {inside} in the window.",
    ]
    for lab in frame.labs:
        about = f", {flag}" if (flag := _flag(lab, lab.values[-1])) else ""
        parts.append(f"{shorten(lab.name)}: last value {number(lab.values[-1])} {lab.unit}{about}.")
    if frame.drugs:
        parts.append("Drugs before: " + ", ".join(shorten(drug.name, 40) for drug in frame.drugs) + ".")
    return " ".join(parts)
