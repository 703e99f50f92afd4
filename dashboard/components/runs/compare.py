"""Two runs side by side: how much of each list stayed, what entered, what left, what moved."""

import pandas as pd
import streamlit as st

from alertreview.scoring.models import RunView
from alertreview.scoring.run_comparison import ListComparison, MovedAlert
from dashboard import texts
from dashboard.components import cards
from dashboard.context import acting_id, application

LENGTHS = (20, 50, 100, 500)
SHOWN = 50


def comparison(runs: tuple[RunView, ...], run: RunView) -> None:
    """Draw the comparison of a run with another one; one sentence when there is no other."""
    others = {other.run_id: other for other in runs if other.run_id != run.run_id}
    with cards.card("Compared with another run", "the same decision: patient, time and task"):
        if not others:
            st.markdown(cards.muted("This is the only run. Score again to compare two runs."))
            return
        with st.container(horizontal=True, vertical_alignment="bottom"):
            other_id = st.selectbox(
                "Before",
                list(others),
                key=f"rc_other_{run.run_id}",
                width=330,
                format_func=lambda i: f"Run {i}, {texts.day_time(others[i].published_at)}" if i in others else "–",
            )
            n_first = st.segmented_control("Top alerts of each list", LENGTHS, default=100, required=True, key="rc_n")
        for one in application().run_comparisons.compare(other_id, run.run_id, n_first or LENGTHS[-2], acting_id()):
            _list(one)


def _list(one: ListComparison) -> None:
    correlation = "not computable" if one.rank_correlation is None else f"{one.rank_correlation:.2f}"
    st.markdown(
        f"**{texts.DECISION_TEXTS[one.decision]}s**: {one.n_common:,} of {one.n_after:,} stayed, "
        f"{len(one.entered):,} entered, {len(one.left):,} left; rank correlation of those that stayed {correlation}."
    )
    rows = [*one.entered[:SHOWN], *one.left[:SHOWN], *one.moved[:SHOWN]]
    if not rows:
        return
    with st.expander(f"{texts.DECISION_TEXTS[one.decision]}s that entered, left or moved"):
        cards.table(
            pd.DataFrame(
                {
                    "What": [_what(row) for row in rows],
                    "Task": [texts.shorten(row.task_name, 50) for row in rows],
                    "Rank before": [row.rank_before for row in rows],
                    "Rank after": [row.rank_after for row in rows],
                    "Scaled score before": [row.scaled_before for row in rows],
                    "Scaled score after": [row.scaled_after for row in rows],
                }
            ),
            key=f"rc_rows_{one.decision.value}",
            columns={
                name: st.column_config.NumberColumn(format="%.3f")
                for name in ("Scaled score before", "Scaled score after")
            },
            alt="Alerts that entered the list, left it, or moved within it, with ranks and scaled scores",
        )


def _what(row: MovedAlert) -> str:
    if row.rank_before is None:
        return "entered"
    return "left" if row.rank_after is None else "moved"
