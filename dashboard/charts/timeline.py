"""The patient's time line: past orders, labs against their usual range, drugs, and the decision window."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from alertreview.alerts.models import Timeline, TimelineDrug, TimelineLab
from core.events.stays import HOURS_IN_WINDOW
from core.kinds import Kind, KindWords
from core.vocabulary import Decision
from dashboard.charts.base import Chart, Json, axis, bare_axis, layout, line, note, safe
from dashboard.charts.palette import Palette
from dashboard.texts import hours, number, plural, short_time, shorten, unit

RANGES = {"24 h": 24.0, "72 h": 72.0, "7 d": 168.0, "Stay": None}
"""How far back the line can reach, in hours before the snapshot; None is the whole stay."""
USUAL_RANGE = "72 h"
HALF_HOUR = timedelta(hours=0.5)
"""The least that can be seen."""
ROOMY_HOURS, SPARSE_HOURS = 120.0, 720.0
"""On a longer axis the window has no room for the words of the decision; on one beyond a month for none at all."""

LETTER_SHARE = 0.0125
"""What a letter takes of the narrowest plot; words that a window cut short does not hold stand beside it."""


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
    name_length: int = 24
    phone: bool = False


DESKTOP = Size()
REVIEW = Size(decision=36, lab=45, drug=18, gap=7, top=28, bottom=28)
PHONE = Size(n_labs=3, n_drugs=4, decision=36, lab=50, drug=18, gap=6, left=104, right=30, name_length=14, phone=True)


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
    def words(self) -> KindWords:
        """Words of the decision."""
        return self.kind.worded(self.timeline.done)

    @property
    def has_room(self) -> bool:
        """Whether words of the decision fit into its window; otherwise they stand below its name."""
        return not self.size.phone and self.end - self.start <= ROOMY_HOURS

    @property
    def decision_words(self) -> str:
        """What was done in the window, with the time of the first, or that nothing was."""
        taken = self.timeline.orders_in_window
        if not taken:
            return f"not {self.words.done}"
        return short_time(taken[0]) + (f", {len(taken)}×" if len(taken) > 1 else "")

    @property
    def plot_height(self) -> int:
        """Height of all lanes."""
        lanes = self.size.decision + len(self.labs) * (self.size.lab + self.size.gap) + self.size.gap
        return lanes + (len(self.drugs) * self.size.drug + self.size.gap if self.drugs else 0)

    def domain(self, top: float, height: float) -> list[float]:
        """Share of the plot's height for a lane given in pixels from above, to half a pixel.

        With more digits it may equal a score that a blinded reader's frames are searched for.
        """
        return [round(1 - (top + height) / self.plot_height, 3), round(1 - top / self.plot_height, 3)]


def timeline(data: Timeline, kind: Kind, colours: Palette, *, size: Size = DESKTOP, back: str = USUAL_RANGE) -> Chart:
    """Draw the time line of one patient up to the snapshot and the decision in the window after it.

    An omission shows a dashed empty box in the window, a commission a diamond at its time with date and count. Where
    the window is too narrow for words, they stand below the name. `back` is a key of `RANGES`.
    """
    frame = _frame(data, kind, colours, size, RANGES[back])
    traces, axes, shapes, notes = _decision_lane(frame)
    top = float(size.decision + size.gap)
    for position, lab in enumerate(frame.labs):
        _add_lab(frame, lab, position + 2, top, traces, axes, shapes, notes)
        top += size.lab + size.gap
    if frame.drugs:
        _add_drugs(frame, len(frame.labs) + 2, top, traces, axes, shapes, notes)
    shapes[:0] = [_window(frame)]
    shapes.append(line(0, 0, 0, 1.02, colours.decision_text(frame.decision), yref="paper", width=2))
    notes += [*_clock_words(frame), *_not_drawn(frame)]
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
            # A drag over a stretch of time zooms in, a double click out; a phone scrolls instead.
            dragmode=False if size.phone else "zoom",
            **axes,
        ),
    }
    return Chart(figure, _sentence(frame))


def _frame(data: Timeline, kind: Kind, colours: Palette, size: Size, back: float | None) -> _Frame:
    # What was measured before the admission, in the emergency room, belongs to the stay.
    first = min((t for lab in data.labs for t in lab.times), default=data.snapshot_at)
    stay = (data.snapshot_at - min(first, data.admitted_at or first)).total_seconds() / 3600 + 2
    # A range that is longer than the stay would squeeze its first day.
    start = -max(min(stay, back if back is not None else stay), 18.0)
    since = data.snapshot_at + timedelta(hours=start)
    labs = tuple(lab for lab in data.labs if any(t >= since for t in lab.times))[: size.n_labs]
    drugs = tuple(
        d for d in data.drugs if any(p[1] > since + HALF_HOUR for p in d.periods) or any(t >= since for t in d.given_at)
    )
    drugs = drugs[: size.n_drugs]
    end = HOURS_IN_WINDOW + 2.0
    return _Frame(data, data.decision, kind, colours, size, start, end, data.window_hours, labs, drugs)


def _decision_lane(frame: _Frame) -> tuple[list[Json], dict[str, object], list[Json], list[Json]]:
    """Draw past decisions as diamonds, and the one in question as one at its time or an empty box."""
    colours, data, size = frame.colours, frame.timeline, frame.size
    past = [t for t in data.past_orders if frame.at(t) >= frame.start]
    taken = data.orders_in_window
    pair = colours.decision_bar(frame.decision)
    trace: Json = {
        "type": "scatter",
        "mode": "markers",
        "x": [frame.at(t) for t in (*past, *taken)],
        "y": [0.5] * (len(past) + len(taken)),
        "yaxis": "y",
        # Or a diamond late in the window would lose its right half.
        "cliponaxis": False,
        "marker": {
            "symbol": "diamond",
            "size": [10] * len(past) + [13] * len(taken),
            "color": [colours.ink] * len(past) + [pair] * len(taken),
        },
        "customdata": [short_time(t) for t in (*past, *taken)],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    axes: dict[str, object] = {"yaxis": bare_axis(domain=frame.domain(0, size.decision), range=[0, 1])}
    shapes = [] if taken else [_empty_box(frame, pair)]
    notes = [_words_in_window(frame)] if frame.has_room else []
    done = frame.words.done
    words, colour = done, colours.muted
    if not frame.has_room:
        words, colour = f"<b>{frame.decision_words}</b>", colours.decision_text(frame.decision)
    title = f"<b>{safe(data.decision_name, size.name_length)}</b>"
    title += f'<br><span style="font-size:11.5px;color:{colour}">{words}</span>'
    return [trace], axes, shapes, [*notes, _lane_name(frame, title, 0.5, "y")]


def _empty_box(frame: _Frame, pair: str) -> Json:
    """Return an empty dashed box over the window."""
    return {
        "type": "rect",
        "x0": 0.5,
        "x1": max(frame.window - 0.5, 1.0),
        "y0": 0.12,
        "y1": 0.88,
        "yref": "y",
        "line": {"color": pair, "width": 1.5, "dash": "dash"},
        "fillcolor": "rgba(0,0,0,0)",
    }


def _words_in_window(frame: _Frame) -> Json:
    """Return the words of the decision: in the empty box, beside its diamond, or above its diamonds."""
    times = frame.timeline.orders_in_window
    place: Json = {"yref": "y", "size": 12}
    x, y = frame.window / 2, 0.5
    if len(times) == 1:
        x = frame.at(times[0])
        right = x < 0.68 * HOURS_IN_WINDOW  # the narrowest that still has room on its left
        place |= {"xanchor": "left" if right else "right", "xshift": 10 if right else -10}
    elif not times and frame.window < LETTER_SHARE * len(frame.decision_words) * (frame.end - frame.start):
        x = frame.window
        place |= {"xanchor": "left", "xshift": 6}
    elif times:
        # Up to the end of a whole window: from the first one on they would leave the chart.
        x, y = HOURS_IN_WINDOW, 0.98
        place |= {"xanchor": "right"}
    return note(f"<b>{frame.decision_words}</b>", x, y, frame.colours.decision_text(frame.decision), **place)


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
                "color": [colours.ink if lab.flag(v) else colours.page for _, v, _ in shown],
                "line": {"color": colours.ink, "width": 1.5},
            },
            "customdata": [f"{number(v)} {safe(unit(lab.unit), 16)}, {short_time(t)}" for _, v, t in shown],
            "hovertemplate": "%{customdata}<extra></extra>",
        }
    )
    shapes += _bands(frame, lab, low, high, ref)
    notes += _limits(frame, lab, low, high, ref)
    last = f"{number(lab.values[-1])} {safe(unit(lab.unit), 16)} {_arrow(lab, lab.values[-1])}".strip()
    name = f'{safe(lab.name, size.name_length)}<br><span style="font-size:11.5px;color:{colours.muted}">{last}</span>'
    notes.append(_lane_name(frame, name, (low + high) / 2, ref))


def _value_range(lab: TimelineLab, values: list[float]) -> tuple[float, float]:
    """Range of a lane: all values and the reference range, else the usual one, with room for the markers."""
    ends = [*values, *_shown_limits(lab)] or [0.0, 1.0]
    low, high = min(ends), max(ends)
    padding = 0.22 * (high - low) or abs(high) * 0.2 or 1.0
    return low - padding, high + padding


def _shown_limits(lab: TimelineLab) -> list[float]:
    """Return the ends of the reference range, or of the usual range where the source has no reference range."""
    limits = [limit for limit in (lab.low, lab.high) if limit is not None]
    return limits or [limit for limit in (lab.usual_low, lab.usual_high) if limit is not None]


def _bands(frame: _Frame, lab: TimelineLab, low: float, high: float, ref: str) -> list[Json]:
    """Return the usual range here, faint, and the reference range over it."""
    ranges = (
        (lab.usual_low, lab.usual_high, frame.colours.band),
        (lab.low, lab.high, frame.colours.accent_band),
    )
    return [
        {
            "type": "rect",
            "layer": "below",
            "x0": frame.start,
            "x1": frame.end,
            "y0": low if bottom is None else max(bottom, low),
            "y1": high if top is None else min(top, high),
            "yref": ref,
            "line": {"width": 0},
            "fillcolor": colour,
        }
        for bottom, top, colour in ranges
        if (bottom is not None or top is not None) and (bottom is None or bottom < high) and (top is None or top > low)
    ]


def _limits(frame: _Frame, lab: TimelineLab, low: float, high: float, ref: str) -> list[Json]:
    """Return the two ends of the range at the right edge; as one text when they would overlap."""
    ends = _shown_limits(lab)
    pixels = frame.size.lab * (ends[-1] - ends[0]) / (high - low) if len(ends) == 2 else 99.0
    place = {"xref": "paper", "yref": ref, "xanchor": "left", "xshift": 3, "size": 11.5}
    if pixels < 13:
        return [note(number(ends[-1]), 1, sum(ends) / 2, frame.colours.muted, **place)]
    return [note(number(end), 1, end, frame.colours.muted, **place) for end in ends]


def _arrow(lab: TimelineLab, value: float) -> str:
    return {"high": "↑ high", "low": "↓ low", "": ""}[lab.flag(value)]


def _symbol(lab: TimelineLab, value: float) -> str:
    return {"high": "triangle-up", "low": "triangle-down", "": "circle"}[lab.flag(value)]


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
    ticks_x: list[float] = []
    ticks_y: list[float] = []
    ticks_text: list[str] = []
    for row, drug in enumerate(frame.drugs):
        y = n_drugs - row - 0.5
        words = safe(f"{drug.dose} {drug.route}".strip(), 40)
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
            until = "runs" if drug.is_running and end >= frame.timeline.snapshot_at else f"to {short_time(end)}"
            hover_text.append(" ".join([f"{safe(drug.name)}, {short_time(begin)}", until, words]).strip())
        given = [t for t in drug.given_at if frame.at(t) >= frame.start]
        ticks_x += [frame.at(t) for t in given]
        ticks_y += [y] * len(given)
        ticks_text += [f"{safe(drug.name)} given {short_time(t)}" for t in given]
    traces.append(_ticks(frame, ticks_x, ticks_y, ticks_text, ref))
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


def _ticks(frame: _Frame, x: list[float], y: list[float], texts: list[str], ref: str) -> Json:
    """Return a tick for each dose charted as given."""
    return {
        "type": "scatter",
        "mode": "markers",
        "x": x,
        "y": y,
        "yaxis": ref,
        "marker": {"symbol": "line-ns", "size": 11, "line": {"width": 2, "color": frame.colours.ink}},
        "customdata": texts,
        "hovertemplate": "%{customdata}<extra></extra>",
    }


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
    """Return the words above the snapshot's line: its hour, and the length of the window."""
    colour = frame.colours.decision_text(frame.decision)
    place = {"yref": "paper", "yanchor": "bottom", "size": 12}
    words = [note(f"<b>{frame.timeline.snapshot_at:%H:%M}</b>", 0, 1.01, colour, xanchor="right", xshift=-4, **place)]
    if frame.end - frame.start <= SPARSE_HOURS:
        window = ("next " if frame.has_room else "") + hours(frame.window)
        words.append(note(window, 0, 1.01, colour, xanchor="left", xshift=5, **place))
    return words


def _not_drawn(frame: _Frame) -> list[Json]:
    """Return how many labs and drugs have no lane, so that nobody takes those drawn for all."""
    labs, drugs = len(frame.timeline.labs) - len(frame.labs), len(frame.timeline.drugs) - len(frame.drugs)
    counts = [plural(count, word) for count, word in ((labs, "lab"), (drugs, "drug")) if count]
    if not counts:
        return []
    place = {"xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "top", "align": "left"}
    left = {"xshift": 2 - frame.size.left, "yshift": -6}
    return [note("+ " + ", ".join(counts), 0, 0, frame.colours.muted, size=11.5, **place, **left)]


def _time_axis(frame: _Frame) -> Json:
    """Return the time axis in hours from the snapshot, ticked at midnights of the site."""
    midnight = frame.timeline.snapshot_at.replace(hour=0, minute=0, second=0, microsecond=0)
    n_days = int(-frame.start // 24) + 2
    step = max(1, round(n_days / (5 if frame.size.phone else 8)))
    midnights = [midnight + timedelta(days=shift) for shift in range(-n_days // step * step, 3, step)]
    shown = [(frame.at(t), t) for t in midnights if frame.start <= frame.at(t) <= frame.end]
    texts = [str(t.day) if frame.size.phone else f"{t.day} {t:%b}" for _, t in shown]
    if frame.size.phone and shown:
        texts[-1] = f"{shown[-1][1].day} {shown[-1][1]:%b}"
    return axis(
        frame.colours,
        range=[frame.start, frame.end],
        fixedrange=frame.size.phone,
        tickvals=[x for x, _ in shown],
        ticktext=texts,
        anchor="free",
        position=0,
        automargin=False,
    )


def _sentence(frame: _Frame) -> str:
    """Return the figure in words, for screen readers."""
    data = frame.timeline
    act = frame.words.act
    begin = short_time(data.snapshot_at + timedelta(hours=frame.start))
    before, inside = plural(len(data.past_orders), act), len(data.orders_in_window) or "none"
    snapshot = f"the snapshot at {short_time(data.snapshot_at)}"
    parts = [
        f"Time line from {begin} to {snapshot} and the {hours(frame.window)} decision window after it.",
        f"{shorten(data.decision_name)}: {before} before, {inside} in the window.",
    ]
    for lab in frame.labs:
        about = f", {flag}" if (flag := lab.flag(lab.values[-1])) else ""
        parts.append(f"{shorten(lab.name)}: last value {number(lab.values[-1])} {unit(lab.unit)}{about}.")
    if frame.drugs:
        parts.append("Drugs before: " + ", ".join(shorten(drug.name, 40) for drug in frame.drugs) + ".")
    return " ".join(parts)
