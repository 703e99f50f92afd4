"""The card of the selected line beside the worklist: what, why, who, where it scores, and its other members."""

from collections.abc import Callable

import streamlit as st

from alertreview.alerts.models import AlertRow, WorklistLine
from alertreview.alerts.preview_model import AlertPreview
from core.vocabulary import AlertId
from dashboard import texts
from dashboard.charts.histogram import histogram
from dashboard.components import cards
from dashboard.components.runs.task_link import task_link
from dashboard.context import colours, is_phone

MOST_MEMBERS = 8

Address = Callable[[AlertId], dict[str, str]]
"""Returns the parameters of an alert's address in this list."""


def preview(
    line: WorklistLine,
    row: AlertRow,
    detail: AlertPreview,
    budget: float | None,
    address: Address,
    opening: Callable[[dict[str, str]], None],
    triage: Callable[[], None],
) -> None:
    """Draw the card; `opening` is what the button does, `triage` draws its own between the words and the figure."""
    with st.container(border=True, gap="xsmall", key="preview"):
        state = row.triage.state
        st.markdown(
            f"{cards.decision_badge_text(row.decision)} "
            f":{texts.TRIAGE_COLOURS[state]}-badge[{texts.TRIAGE_ICONS[state]} {texts.triage_status(row.triage)}]"
        )
        st.markdown(f"### {texts.plain(row.decision_words)}", anchors=False)
        st.markdown(
            texts.plain(" ".join(texts.reason(detail.compared, row.words, row.sex)), 400)
            + "  \n"
            + cards.muted(
                texts.joined(
                    texts.plain(row.patient_id, 24),
                    texts.plain(texts.person(row.sex, row.age_years)),
                    texts.plain(row.unit, 40),
                    f"day {detail.day_of_stay} of stay",
                )
            )
        )
        st.button(
            "Open alert",
            key="wl_open",
            type="primary",
            shortcut=None if is_phone() else "O",
            on_click=opening,
            args=(address(row.alert_id),),
            width="stretch",
        )
        if len(line.members) > 1:
            _members(line, row, address)
        triage()
        cards.words_first()
        mode = colours()
        chart = histogram(
            detail.scaled_histogram,
            row.scaled_score,
            row.decision,
            mode,
            title="Scaled score",
            task_name=row.task_name,
            budget=budget,
            height=150,
        )
        cards.figure(chart, "preview-histogram", mode)
        task_link(row, detail.run_id)


def _members(line: WorklistLine, row: AlertRow, address: Address) -> None:
    """Draw the other alerts of the line, each with a link; a long line says how many more there are."""
    others = [member for member in line.members if member.alert_id != row.alert_id]
    with st.expander(f"{texts.plain(line.words)}", expanded=False, key="members"):
        for member in others[:MOST_MEMBERS]:
            label = f"{texts.score(member.scaled_score)}  {texts.plain(member.decision_words, 40)}"
            st.page_link("views/alert.py", label=f":primary[{label}]", query_params=address(member.alert_id))
        if len(others) > MOST_MEMBERS:
            n_more = len(others) - MOST_MEMBERS
            st.markdown(cards.muted(f"and {n_more:,} more; choose one line per alert under More to list them."))
    st.markdown(f":small[{cards.muted(f'Triage below applies to all {len(line.members)} of them.')}]")
