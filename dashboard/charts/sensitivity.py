"""The paper's figures of a run: what graph size and regularisation change."""

from collections.abc import Sequence

from core.scoring.sensitivity import SensitivityPoint, Varied
from dashboard.charts.base import Chart, Json, axis, layout, line, note, safe
from dashboard.charts.lines import NAME_HEIGHT, marked_line, names_above
from dashboard.charts.palette import Palette
from dashboard.texts import percent, shorten

X_TITLES = {Varied.GRAPH_SIZE: "Nodes in the graph", Varied.REGULARIZATION: "Regulariser γ_g"}


def sensitivity_curves(
    points: Sequence[SensitivityPoint], varied: Varied, colours: Palette, *, auc: bool, own: float, height: int = 230
) -> Chart | None:
    """Draw one figure for what is varied: a line for each scorer, the run's own setting dotted.

    Parameters
    ----------
    points
        Of all scorers and settings.
    varied
        Which of them are drawn.
    auc
        The AUC with its interval; else the share of the run's first alerts that is found again.
    own
        The run's setting.
    height
        In pixels.

    Returns
    -------
    Chart or None
        None when no point has an AUC.
    """
    shown = [point for point in points if point.varied is varied and (not auc or point.auc.value is not None)]
    if not shown:
        return None
    settings = sorted({point.setting for point in shown})
    scorers = list(dict.fromkeys(point.scorer for point in shown))
    colour_of = {name: (colours.accent, colours.ink)[place % 2] for place, name in enumerate(scorers)}
    by_scorer = {scorer: [point for point in shown if point.scorer == scorer] for scorer in scorers}
    title = "AUC on judged cases" if auc else "Found again"
    figure: Json = {
        "data": [
            _line(place, of_scorer, scorer, settings, colour_of[scorer], auc=auc)
            for place, (scorer, of_scorer) in enumerate(by_scorer.items())
        ],
        "layout": layout(
            colours,
            height,
            margin={"t": 12 + NAME_HEIGHT * len(scorers), "r": 14},
            xaxis=axis(
                colours,
                X_TITLES[varied],
                range=[-0.4, len(settings) - 0.6],
                tickvals=list(range(len(settings))),
                ticktext=[f"{setting:g}" for setting in settings],
            ),
            yaxis=axis(
                colours, title, grid=True, showline=False, range=[0, 1.04], tickformat="" if auc else ".0%", nticks=6
            ),
            shapes=[line(settings.index(own), settings.index(own), 0, 1, colours.muted, yref="paper", dash="dot")]
            if own in settings
            else [],
            annotations=[
                *names_above(colour_of),
                *(
                    [
                        note(
                            "this run",
                            settings.index(own),
                            0.02,
                            colours.muted,
                            yref="paper",
                            yanchor="bottom",
                            xanchor="left",
                            xshift=4,
                            size=12,
                        )
                    ]
                    if own in settings
                    else []
                ),
            ],
        ),
    }
    return Chart(figure, _words(by_scorer, varied, title, auc=auc))


def _line(
    place: int,
    points: Sequence[SensitivityPoint],
    scorer: str,
    settings: Sequence[float],
    colour: str,
    *,
    auc: bool,
) -> Json:
    values = [point.auc.value or 0.0 if auc else point.shared for point in points]
    trace = marked_line(
        place,
        scorer,
        colour,
        [settings.index(point.setting) for point in points],
        [round(value, 4) for value in values],
        hover=f"{safe(scorer)}: " + ("%{y:.2f}" if auc else "%{y:.0%}"),
    )
    if auc:
        lows = [
            value - (point.auc.low if point.auc.low is not None else value)
            for value, point in zip(values, points, strict=True)
        ]
        highs = [
            (point.auc.high if point.auc.high is not None else value) - value
            for value, point in zip(values, points, strict=True)
        ]
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": [round(value, 4) for value in highs],
            "arrayminus": [round(value, 4) for value in lows],
            "color": colour,
            "thickness": 1.2,
            "width": 3,
        }
    return trace


def _words(by_scorer: dict[str, list[SensitivityPoint]], varied: Varied, title: str, *, auc: bool) -> str:
    sentences = [
        f"{shorten(scorer, 30)}: "
        + "; ".join(f"{point.setting:g} {point.auc.text() if auc else percent(point.shared)}" for point in points)
        + "."
        for scorer, points in by_scorer.items()
    ]
    return f"{title} by {X_TITLES[varied].lower()}. {' '.join(sentences)}"
