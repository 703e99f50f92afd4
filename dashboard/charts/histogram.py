"""The paper's figure: how many instances of a task scored how much, with an arrow at this alert."""

from alertreview.scoring.models import Histogram
from core.vocabulary import Decision
from dashboard.charts.base import Chart, Json, axis, layout, line, note
from dashboard.charts.counts import count_axis, count_bars, heights
from dashboard.charts.palette import Palette
from dashboard.texts import shorten


def histogram(
    data: Histogram,
    score: float,
    decision: Decision,
    colours: Palette,
    *,
    title: str,
    task_name: str,
    budget: float | None = None,
    height: int = 156,
) -> Chart:
    """Return a histogram of a task's scores with an arrow at one alert, in the colour of the decision.

    The score is on the axis of the histogram, higher = more unusual; single scores of others never reach the browser.
    The title is the name of the axis; a dotted line marks the score at which the alert budget ends.
    """
    edges, counts = data.edges, data.counts
    low, high = (edges[0], edges[-1]) if len(edges) > 1 else (0.0, 1.0)
    low, high = min(low, score), max(high, score)
    peak = max(counts, default=0)
    # Strong grey at or above the budget, so that the listed part can be told apart.
    grey = [colours.bars_strong if budget is not None and edge >= budget else colours.bars for edge in edges[:-1]]
    figure: Json = {
        "data": [count_bars(data, title, grey)],
        "layout": layout(
            colours,
            height,
            margin={"r": 14},
            xaxis=axis(colours, title, range=[low, high + (high - low) * 0.01], nticks=6, tickformat=".1f"),
            yaxis=count_axis(colours, peak, room=0.12),
            shapes=_budget_line(budget, low, high, colours),
            annotations=[
                *_budget_words(budget, score, low, high, colours),
                _arrow(score, budget, data, low, high, decision, colours),
            ],
        ),
    }
    n_instances = sum(counts)
    n_above = sum(count for count, edge in zip(counts, edges, strict=False) if edge >= score)
    alt = (
        f"Histogram of {n_instances:,} scores of {shorten(task_name)}, "
        f"{title.lower()} from {edges[0]:.2f} to {edges[-1]:.2f}. "
        f"This alert scores {score:.2f}; {n_above:,} instances lie in bins above it."
        if n_instances
        else f"No scores of {shorten(task_name)} are stored; this alert scores {score:.2f}."
    )
    return Chart(figure, alt)


def _arrow(
    score: float, budget: float | None, data: Histogram, low: float, high: float, decision: Decision, colours: Palette
) -> Json:
    """Return the arrow, pointing at the top of the bin that holds the score."""
    top = 0.0
    for count, start, end in zip(data.counts, data.edges, data.edges[1:], strict=False):
        if start <= score <= end:
            top = heights([count])[0]
    early = score < low + 0.2 * (high - low)
    # Near the right edge the words stand left of the arrow, or they would be cut; near the words at the budget too.
    near_budget = budget is not None and 0 < budget - score < 0.15 * (high - low)
    late = score > low + 0.8 * (high - low) or (near_budget and not early)
    # Above a tall bin the words would be cut, so they stand beside its top.
    tall = top > 0.4 * heights([max(data.counts, default=0)])[0]
    side = "right" if late else "left" if early or tall else "center"
    colour = colours.decision_text(decision)
    return note(
        f"<b>This alert<br>{score:.2f}</b>",
        score,
        top,
        colour,
        showarrow=True,
        ax=(-30 if late else 30) if tall else 0,
        ay=0 if tall else -46,
        arrowhead=2,
        arrowwidth=2,
        arrowcolor=colour,
        xanchor=side,
        align=side,
        bgcolor=colours.page,
    )


def _budget_line(budget: float | None, low: float, high: float, colours: Palette) -> list[Json]:
    if budget is None or not low <= budget <= high:
        return []
    return [line(budget, budget, 0, 1, colours.muted, yref="paper", dash="dot")]


def _budget_words(budget: float | None, score: float, low: float, high: float, colours: Palette) -> list[Json]:
    """Return the words at the budget's line: left of it, but not where the arrow's words stand or the axis begins."""
    if budget is None or not low <= budget <= high:
        return []
    near_arrow = budget - 0.25 * (high - low) < score < budget <= low + 0.8 * (high - low)
    left = budget > low + 0.3 * (high - low) and not near_arrow
    return [
        note(
            "alert budget",
            budget,
            1,
            colours.muted,
            yref="paper",
            yanchor="top",
            xanchor="right" if left else "left",
            xshift=-4 if left else 4,
            size=12,
        )
    ]
