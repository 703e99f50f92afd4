"""Judgments of a study over time, and when the last is to be expected."""

from alertreview.studies.models import StudyProgress
from dashboard.charts.base import Chart, Json, axis, layout, line, note
from dashboard.charts.palette import Palette
from dashboard.texts import day, plural

_DAYS_AHEAD = 400
"""A forecast beyond these days says no more than that it will take long."""


def judgments_over_time(data: StudyProgress, colours: Palette, *, is_open: bool, height: int = 190) -> Chart | None:
    """Return the answers that stand by day, and the rest at the same pace while a study is open.

    None before there are answers on a second day.
    """
    if len(data.judged_by) < 2:
        return None
    days, counts = zip(*data.judged_by, strict=True)
    n_judged, wanted = counts[-1], plural(data.n_slots, "judgment")
    end = data.done_on if is_open and n_judged < data.n_slots else None
    if end is not None and (end - data.today).days > _DAYS_AHEAD:
        end = None
    seen = [*data.judged_by, *([(data.today, n_judged)] if is_open and data.today > days[-1] else [])]
    until = end or seen[-1][0]
    curve: Json = {
        "type": "scatter",
        "mode": "lines",
        "x": [when.isoformat() for when, _ in seen],
        "y": [n for _, n in seen],
        "fill": "tozeroy",
        "fillcolor": colours.accent_band,
        "line": {"color": colours.accent, "width": 2},
        "hovertemplate": "%{y:,} by %{x|%-d %b}<extra></extra>",
    }
    shapes = [line(days[0].isoformat(), until.isoformat(), data.n_slots, data.n_slots, colours.axis)]
    words = [
        note(f"all {wanted}", days[0].isoformat(), data.n_slots, colours.muted, xanchor="left", yanchor="top", size=12)
    ]
    alt = f"{n_judged:,} of {wanted} by {day(seen[-1][0])}, the first on {day(days[0])}."
    if end is not None:
        last = seen[-1][0].isoformat()
        shapes.append(line(last, end.isoformat(), n_judged, data.n_slots, colours.accent, width=2, dash="dot"))
        words.append(
            note(
                f"{day(end)} at this pace",
                end.isoformat(),
                0,
                colours.muted,
                xanchor="right",
                yanchor="bottom",
                size=12,
            )
        )
        alt += f" At this pace the last comes on {day(end)}."
    figure: Json = {
        "data": [curve],
        "layout": layout(
            colours,
            height,
            margin={"r": 14},
            xaxis=axis(
                colours, type="date", range=[days[0].isoformat(), until.isoformat()], nticks=5, tickformat="%-d %b"
            ),
            yaxis=axis(colours, grid=True, range=[0, 1.04 * data.n_slots], nticks=5, tickformat=",d"),
            shapes=shapes,
            annotations=words,
        ),
    }
    return Chart(figure, alt)
