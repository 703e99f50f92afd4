"""Figures of a task: its scores with the alerts marked, and how something changed from run to run."""

from collections.abc import Mapping, Sequence

from alertreview.alerts.task_views import AlertMarks
from alertreview.scoring.models import Histogram
from core.vocabulary import Decision
from dashboard.charts.base import Chart, Json, axis, layout, line, note, safe
from dashboard.charts.counts import count_axis, count_bars, heights
from dashboard.charts.lines import NAME_HEIGHT, marked_line, names_above
from dashboard.charts.palette import Palette
from dashboard.texts import DECISION_TEXTS, plural, shorten

SYMBOLS = {Decision.OMISSION: "triangle-down", Decision.COMMISSION: "diamond-open"}


def task_histogram(
    data: Histogram,
    marks: AlertMarks,
    colours: Palette,
    *,
    title: str,
    task_name: str,
    thresholds: Mapping[Decision, float] | None = None,
    height: int = 190,
) -> Chart:
    """Return a histogram of a task's scores; bins with alerts are marked, filled for omissions.

    The title is the name of the axis; dotted lines mark the scores at which the budget of each list ends.
    """
    edges, counts = data.edges, data.counts
    peak = max(counts, default=0)
    shown = {one: score for one, score in (thresholds or {}).items() if edges[0] <= score <= edges[-1]}
    figure: Json = {
        "data": [
            count_bars(data, title, colours.bars),
            *(_marked(data, marks, one, peak, colours) for one in Decision),
        ],
        "layout": layout(
            colours,
            height,
            margin={"r": 14, "t": 6 + 17 * len(shown)},
            xaxis=axis(colours, title, range=[edges[0], edges[-1] + (edges[-1] - edges[0]) * 0.01], nticks=6),
            yaxis=count_axis(colours, peak, room=0.22),
            shapes=[
                line(score, score, 0, 1, colours.decision_text(one), yref="paper", dash="dot")
                for one, score in shown.items()
            ],
            annotations=_budget_words(shown, edges, colours),
        ),
    }
    return Chart(figure, _histogram_words(data, marks, shown, title, task_name))


def _marked(data: Histogram, marks: AlertMarks, decision: Decision, peak: int, colours: Palette) -> Json:
    """Return the marks above the bins that hold alerts of one decision; commissions stand above omissions."""
    lift = (0.06 if decision is Decision.OMISSION else 0.14) * max(peak, 1) ** 0.5
    held = [place for place, n in enumerate(marks.of(decision)) if n]
    colour = colours.decision_text(decision)
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [round((data.edges[place] + data.edges[place + 1]) / 2, 5) for place in held],
        "y": [round(heights([data.counts[place]])[0] + lift, 3) for place in held],
        "text": [plural(marks.of(decision)[place], decision.value) for place in held],
        "marker": {"symbol": SYMBOLS[decision], "size": 9, "color": colour, "line": {"width": 2, "color": colour}},
        "cliponaxis": False,
        "hovertemplate": "%{text} within the budget, score about %{x:.2f}<extra></extra>",
    }


def _budget_words(shown: Mapping[Decision, float], edges: Sequence[float], colours: Palette) -> list[Json]:
    """Label the dotted lines above the figure, one row for each, on the side with room."""
    middle = (edges[0] + edges[-1]) / 2
    return [
        note(
            f"{DECISION_TEXTS[one].lower()}s from {score:.2f}",
            score,
            1,
            colours.decision_text(one),
            yref="paper",
            yanchor="bottom",
            xanchor="right" if score > middle else "left",
            yshift=15 * place,
            size=12,
        )
        for place, (one, score) in enumerate(shown.items())
    ]


def _histogram_words(
    data: Histogram, marks: AlertMarks, shown: Mapping[Decision, float], title: str, task_name: str
) -> str:
    n_instances = sum(data.counts)
    if not n_instances:
        return f"No scores of {shorten(task_name)} are stored."
    ends = "".join(f" The budget of {one.value}s ends at {score:.2f}." for one, score in shown.items())
    marked = " and ".join(plural(sum(marks.of(one)), f"{one.value} alert") for one in Decision)
    return (
        f"Histogram of {n_instances:,} scores of {shorten(task_name)}, {title.lower()} from {data.edges[0]:.2f} to "
        f"{data.edges[-1]:.2f}; marked: {marked} within the budget.{ends}"
    )


def over_runs(
    runs: Sequence[str],
    series: Mapping[str, Sequence[float | None]],
    colours: Palette,
    *,
    what: str,
    percentage: bool = False,
    paints: Mapping[str, str] | None = None,
    height: int = 210,
) -> Chart:
    """Draw lines over stored runs, oldest left; their names stand above instead of in a legend.

    A series has one value for each run, None where there is none, shares in [0, 1] for a percentage; `what` is shown
    names the axis. A series without a paint has the colour of text.
    """
    plain_colours = (colours.ink, colours.accent, colours.muted)
    names = list(series)
    colour_of = {name: (paints or {}).get(name, plain_colours[place % 3]) for place, name in enumerate(names)}
    known = [value for values in series.values() for value in values if value is not None]
    top = max(known, default=1.0) or 1.0
    written = "%{y:.1%}" if percentage else "%{y:,.3~r}"
    figure: Json = {
        "data": [
            marked_line(
                place,
                name,
                colour_of[name],
                range(len(runs)),
                [None if value is None else round(value, 5) for value in values],
                hover=f"%{{customdata}}<br>{safe(name)}: {written}",
                customdata=list(runs),
            )
            for place, (name, values) in enumerate(series.items())
        ],
        "layout": layout(
            colours,
            height,
            margin={"t": 8 + NAME_HEIGHT * len(names), "r": 14},
            xaxis=axis(
                colours,
                range=[-0.5, len(runs) - 0.5],
                tickvals=_few(len(runs)),
                ticktext=[safe(runs[place], 24) for place in _few(len(runs))],
            ),
            yaxis=axis(
                colours,
                grid=True,
                nticks=5,
                showline=False,
                range=[0, top * 1.1],
                tickformat=".0%" if percentage else "",
            ),
            annotations=names_above(colour_of),
        ),
    }
    return Chart(
        figure, f"{what} over {plural(len(runs), 'run')}, oldest first. {_series_words(runs, series, percentage)}"
    )


def _few(n: int) -> list[int]:
    """Return the places on the axis that are named: all of a few runs, first, middle and last of many."""
    return list(range(n)) if n <= 3 else [0, (n - 1) // 2, n - 1]


def _series_words(runs: Sequence[str], series: Mapping[str, Sequence[float | None]], percentage: bool) -> str:
    def number(value: float | None) -> str:
        return "not known" if value is None else f"{100 * value:.1f}%" if percentage else f"{value:,.3g}"

    sentences = []
    for name, values in series.items():
        listed = "; ".join(f"{shorten(run, 24)} {number(value)}" for run, value in zip(runs, values, strict=True))
        sentences.append(f"{shorten(name, 60)}: {listed}.")
    return " ".join(sentences)
