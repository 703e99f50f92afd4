"""The days of other patients most similar to an alert's: how alike, what was decided, each with its own time line."""

import pandas as pd
import streamlit as st

from alertreview.alerts.models import AlertDetail
from core.events.stays import HOURS_IN_WINDOW
from dashboard import texts
from dashboard.components import cards, case_view
from dashboard.context import acting_id, application, is_phone, shown_errors


@st.fragment
def neighbours(detail: AlertDetail) -> None:
    """Draw the card; choosing a row opens that instance's time line below the list."""
    with (
        shown_errors(),
        cards.card("Similar days of other patients", texts.plain(_line(detail)), key="neighbours-card"),
    ):
        if not detail.neighbours:
            st.markdown(cards.muted("No similar day of another patient is stored for this alert."))
            return
        chosen = _grid(detail)
        if chosen is None:
            st.markdown(f":small[{cards.muted('Choose a row to see that patient as of that day.')}]")
            return
        _past_instance(detail, chosen)


def _line(detail: AlertDetail) -> str:
    if not detail.neighbours:
        return ""
    had = detail.row.words.had
    return (
        f"{detail.compared.n_decided:,} of {detail.compared.n_days:,} {had}, the nearest {len(detail.neighbours)} shown"
    )


def _grid(detail: AlertDetail) -> int | None:
    """Draw the rows and return the position of the chosen one."""
    rows = [
        {
            "Patient": texts.shorten(neighbour.patient_id, 24),
            "Day": texts.day(neighbour.snapshot_at),
            "After": outcome(detail.row.words.done, neighbour.decided, neighbour.hours_to_decision),
            "Similarity": neighbour.similarity,
        }
        for neighbour in detail.neighbours
    ]
    frame = pd.DataFrame(rows)
    # Of this alert alone: a kept list would keep its selected position and mean another patient by it.
    key = f"neighbours-{detail.row.alert_id}"
    if is_phone():
        # An outcome needs no name before it.
        return cards.choice(frame.rename(columns={"Day": "", "After": " "}), key=key, label="Similar day")
    event = st.dataframe(
        frame,
        hide_index=True,
        height="content",
        key=key,
        on_select="rerun",
        selection_mode="single-row",
        column_config={
            "Similarity": st.column_config.ProgressColumn(min_value=0.0, max_value=1.0, format="%.2f", color="gray"),
            "After": st.column_config.TextColumn(f"In the next {HOURS_IN_WINDOW} h"),
        },
        alt="Most similar days of other patients with their similarity and what was decided",
    )
    chosen = event.selection.rows
    return chosen[0] if chosen and chosen[0] < len(rows) else None


def _past_instance(detail: AlertDetail, position: int) -> None:
    past = application().alert_lists.past_instance(detail.row.alert_id, position, acting_id())
    neighbour = detail.neighbours[position]
    what = outcome(detail.row.words.done, neighbour.decided, neighbour.hours_to_decision)
    st.markdown(
        f"**{texts.plain(neighbour.patient_id, 24)}** "
        + cards.muted(texts.joined(texts.day_time(neighbour.snapshot_at), texts.plain(what)))
    )
    case_view.timeline_card(past, detail.row.kind, f"past-{detail.row.alert_id}-{position}", is_keyed=False)


def outcome(done: str, decided: bool, hours: float | None) -> str:
    """Return what was decided on a similar day, and how long after its snapshot."""
    if not decided:
        return f"Not {done}"
    # A label has the time of its snapshot.
    return done.capitalize() + (f", {texts.hours(hours)} later" if hours else "")
