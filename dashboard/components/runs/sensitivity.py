"""Stored sensitivity curves of a run: graph size and regularisation, as in the paper's figures."""

import streamlit as st

from alertreview.reports import figures
from alertreview.scoring.models import RunView
from core.scoring.sensitivity import Varied
from dashboard import texts
from dashboard.charts.plot import chart
from dashboard.components import cards
from dashboard.context import application, colours, command


def sensitivity_card(run: RunView) -> None:
    """Draw the curves, or the command that makes them."""
    found = application().sensitivity.of_run(run.run_id)
    second = f"computed {texts.day_time(found.computed_at)}" if found else ""
    with cards.card("Sensitivity to graph size and regularisation", second, key="sensitivity"):
        if found is None:
            number = run.run_id if run.base_run_id is None else run.base_run_id
            why = "No curves are stored for this run."
            if run.base_run_id is not None:
                why = f"This run uses the stored past of run {number}; the curves shown are those of run {number}."
            st.markdown(cards.muted(f"{why} This command computes and stores them:"))
            st.code(command(f"sensitivity --run {number}"), language=None, wrap_lines=True)
            return
        curves = found.curves
        own = {Varied.GRAPH_SIZE: curves.n_nodes, Varied.REGULARIZATION: curves.regularization}
        reasons = {point.auc.reason for point in curves.points if point.auc.value is None}
        n_figures = 2 if reasons and all(point.auc.value is None for point in curves.points) else 4
        with st.grid(n_figures, min_column_width=270):
            for varied in Varied:
                for auc in (False, True):
                    name = f"sensitivity-{varied.name}-{'auc' if auc else 'shared'}"
                    plot = figures.sensitivity(curves.points, varied, own[varied], auc=auc)
                    if plot is not None:
                        cards.figure(chart(plot, colours()), name, colours())
        judged = (
            f"AUC with 95% interval on the judged cases of _{texts.plain(curves.study, 60)}_." if curves.study else ""
        )
        if not curves.study:
            judged = f"AUC {texts.plain(next(iter(reasons), 'not computable'), 120)}."
        st.markdown(
            ":small["
            + cards.muted(
                f"Found again: share of this run's first {curves.n_top} omissions and {curves.n_top} commissions. "
                f"Nodes were drawn with another seed ({curves.seed}), so at the run's own setting the share is what "
                f"another draw of nodes leaves. {judged}"
            )
            + "]"
        )
