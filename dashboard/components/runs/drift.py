"""Drift: how ordering, alerts and scores changed from stored run to stored run."""

from collections.abc import Sequence

import streamlit as st

from alertreview.alerts.task_views import RunPoint
from core.kinds import KindWords
from core.vocabulary import Decision
from dashboard import texts
from dashboard.charts.task import over_runs
from dashboard.components import cards
from dashboard.context import colours


def drift_card(points: Sequence[RunPoint], name: str, words: KindWords | None = None) -> None:
    """Draw three figures over two runs or more: of a task when its words are given, of the whole runs otherwise."""
    second = f"the newest {len(points)} stored runs" if len(points) > 1 else "one stored run so far"
    with cards.card("Drift over runs", second, key=f"drift-{name}"):
        if not points:
            st.markdown(cards.muted("No stored run of this scorer has this task. Score again to compare runs."))
            return
        if len(points) == 1:
            st.markdown(cards.muted("Charts appear from the second run on; one run shows no change."))
            return
        runs = [f"Run {point.run_id}, {texts.day(point.published_at)}" for point in points]
        with st.grid(3, min_column_width=280):
            with st.container(gap="xsmall"):
                what = f"Share {words.done}" if words else "Share of decisions taken, mean over tasks"
                st.markdown(cards.muted(what))
                series = {
                    "in scored instances": [point.recent_share for point in points],
                    "in past instances": [point.past_share for point in points],
                }
                cards.figure(
                    over_runs(runs, series, colours(), what=what, percentage=True), f"drift-share-{name}", colours()
                )
            with st.container(gap="xsmall"):
                what = "Alerts within the budget" if words else "Instances scored"
                st.markdown(cards.muted(what))
                named = {f"{texts.DECISION_TEXTS[one]}s": one for one in Decision}
                counts = (
                    {label: [point.n_alerts.get(one) for point in points] for label, one in named.items()}
                    if words
                    else {"recent instances": [point.n_scored for point in points]}
                )
                paints = {label: colours().decision_text(one) for label, one in named.items()}
                chart = over_runs(runs, counts, colours(), what=what, paints=paints)
                cards.figure(chart, f"drift-counts-{name}", colours())
            with st.container(gap="xsmall"):
                what = "Scaled scores" if words else "Scaled score where the alert budget ends"
                st.markdown(cards.muted(what))
                names = list(dict.fromkeys(one for point in points for one in point.scores))
                scores = {one: [point.scores.get(one) for point in points] for one in names}
                if scores:
                    cards.figure(over_runs(runs, scores, colours(), what=what), f"drift-scores-{name}", colours())
                else:
                    st.markdown(cards.muted("No score is stored, or the lists are shorter than the budget."))
