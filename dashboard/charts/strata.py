"""The scores that cases can be chosen from, with the strata's borders and the chance of each stratum's candidates."""

from itertools import pairwise

from alertreview.studies.models import PlanPreview
from core.scoring.scorers import label_of_scorer
from dashboard.charts.base import Chart, Json, axis, layout, line, note, safe
from dashboard.charts.palette import Palette


def strata(preview: PlanPreview, colours: Palette, *, height: int = 240) -> Chart:
    """Return the histogram of the candidates' scaled scores (counts on a log scale), divided where strata divide."""
    edges, counts = preview.candidates.edges, preview.candidates.counts
    low, high = edges[0], edges[-1]
    borders = sorted({s.low for s in preview.strata if low < s.low < high})
    peak = max(counts, default=1)
    figure: Json = {
        "data": [
            {
                "type": "bar",
                "x": [round((a + b) / 2, 5) for a, b in pairwise(edges)],
                "y": list(counts),
                "width": [round((b - a) * 0.9, 5) for a, b in pairwise(edges)],
                "marker": {"color": colours.bars, "line": {"width": 0}},
                "hovertemplate": "Scaled score about %{x:.2f}<br>%{y:,} candidates<extra></extra>",
            }
        ],
        "layout": layout(
            colours,
            height,
            margin={"t": 40, "r": 14},
            xaxis=axis(
                colours,
                f"Scaled score, {safe(label_of_scorer(preview.scorer))}",
                range=[low, high],
                nticks=8,
                tickformat=".1f",
            ),
            # A linear scale would show the lowest stratum only: most decisions are as expected.
            yaxis=axis(colours, "Candidates", grid=True, type="log", dtick=1, tickformat=",d", showline=False),
            shapes=[line(at, at, 0, 1, colours.muted, yref="paper", dash="dot") for at in borders],
            annotations=[
                note(words, (a + b) / 2, 1, colours.text, yref="paper", yanchor="bottom", size=12)
                for (a, b), words in _labels(preview, low, high)
            ],
        ),
    }
    said = "; ".join(
        f"{s.name}: {s.n_chosen} of {s.n_population:,} candidates, chance {s.inclusion_probability:.4f}"
        for s in preview.strata
    )
    return Chart(figure, f"Histogram of {preview.n_candidates:,} candidates, highest bar {peak:,}. {said}.")


def _labels(preview: PlanPreview, low: float, high: float) -> list[tuple[tuple[float, float], str]]:
    """Return "chosen of candidates" labels along the axis; balanced strata share one."""
    chosen: dict[tuple[float, float], list[int]] = {}
    for s in preview.strata:
        stretch = (max(s.low, low), min(s.high, high))
        if stretch[1] > stretch[0]:
            sums = chosen.setdefault(stretch, [0, 0])
            sums[0] += s.n_chosen
            sums[1] += s.n_population
    return [(stretch, f"<b>{n}</b><br>of {of:,}") for stretch, (n, of) in chosen.items()]
