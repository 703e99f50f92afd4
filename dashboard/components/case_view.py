"""The view of a case that Review, the alert page and adjudication share: background, time line, last values, drugs."""

import pandas as pd
import streamlit as st

from alertreview.alerts.models import CaseView, LastValue, Timeline
from core.kinds import Kind
from dashboard import texts
from dashboard.charts.timeline import DESKTOP, PHONE, RANGES, USUAL_RANGE, Size, timeline
from dashboard.components import cards
from dashboard.context import colours, is_phone

_RANGE = "case_range"
MOST_ROWS = 12
ROW_PIXELS = 29


def background(patient: CaseView) -> None:
    """Draw in one line why the patient is here and what else is known, and in words what the source does not have."""
    parts = [f"**{texts.plain(what)}** {texts.plain(words, 300)}" for what, words in patient.background]
    if patient.absent:
        parts.append(cards.muted("Not in the source: " + ", ".join(what.lower() for what in patient.absent) + "."))
    if parts:
        st.markdown(":small[" + texts.joined(*parts) + "]")


@st.fragment
def timeline_card(data: Timeline, kind: Kind, name: str, size: Size = DESKTOP, *, is_keyed: bool = True) -> None:
    """Draw the time line with its range, which stays as it is chosen from case to case.

    Parameters
    ----------
    data
    kind
    name
        Of the widgets; another one for each patient on the page.
    size
        On a desktop.
    is_keyed
        Whether the key T changes the range; of one time line on a page.
    """
    phone = is_phone()
    with st.container(border=True, gap="xsmall", height="stretch", key=f"case-{name}"):
        chosen = st.session_state.get(_RANGE, USUAL_RANGE)
        # The range stands beside the title: a row of its own would push the chart under the answers.
        with st.container(horizontal=True, vertical_alignment="center", gap="xsmall", key=f"case-head-{name}"):
            bands = cards.muted(_bands(data))
            st.markdown("**Time line**" if phone else f"**Time line** {bands}", width="stretch")
            key = f"range-{name}"
            st.session_state[key] = chosen
            st.segmented_control(
                "Range", list(RANGES), key=key, label_visibility="collapsed", on_change=_choose, args=(key,)
            )
            if is_keyed and not phone:
                st.button("Range", key=f"next-{key}", type="tertiary", shortcut="T", on_click=_next_range)
        chart = timeline(data, kind, colours(), size=PHONE if phone else size, back=chosen)
        cards.figure(chart, f"timeline-{name}", colours())
        if phone:
            st.markdown(f":small[{bands}]")


def _choose(key: str) -> None:
    # A second click on the chosen range would choose none.
    st.session_state[_RANGE] = st.session_state[key] or st.session_state.get(_RANGE, USUAL_RANGE)


def _next_range() -> None:
    ranges = list(RANGES)
    place = ranges.index(st.session_state.get(_RANGE, USUAL_RANGE))
    st.session_state[_RANGE] = ranges[(place + 1) % len(ranges)]


def _bands(data: Timeline) -> str:
    if any(lab.low is not None or lab.high is not None for lab in data.labs):
        return "green = reference range, grey = central 90% of past values here"
    return "grey = central 90% of past values here; no reference ranges, so no flags"


def last_values(patient: CaseView, name: str) -> None:
    """Draw the card of all last values: a screenful of rows, the others by scrolling."""
    with cards.card("Last values", f"before {patient.timeline.snapshot_at:%H:%M}", key=f"values-{name}"):
        if not patient.last_values:
            st.markdown(cards.muted("Nothing was measured before the snapshot."))
            return
        frame = pd.DataFrame([_row(value) for value in patient.last_values])
        shown = ["Lab", "Value", "Age", "Reference", "Trend"]
        if is_phone() or not frame["Reference"].any():
            shown = ["Lab", "Value", "Age", *([] if is_phone() else ["Trend"])]
        st.dataframe(
            frame,
            hide_index=True,
            height="content" if len(frame) <= MOST_ROWS else (MOST_ROWS + 1) * ROW_PIXELS,
            row_height=ROW_PIXELS,
            key=f"last-values-{name}",
            column_order=shown,
            column_config={
                "Age": st.column_config.TextColumn(width=76),
                "Reference": st.column_config.TextColumn(width=70),
            },
            alt=f"Last values of {texts.plural(len(frame), 'lab or vital sign', 'labs and vital signs')} "
            "with unit, flag, trend, reference range and age",
        )


def _row(value: LastValue) -> dict[str, object]:
    if value.value is not None:
        flag = {"high": "↑ high", "low": "↓ low"}.get(value.flag, "")
        words = " ".join(part for part in (texts.number(value.value), value.unit, flag) if part)
    else:
        words = texts.shorten(value.text, 40) or "–"
    return {
        "Lab": texts.shorten(value.name, 30),
        "Value": words,
        "Trend": " → ".join(texts.number(each) for each in value.trend[-3:]) if len(value.trend) > 1 else "",
        "Reference": _reference(value.low, value.high),
        "Age": "not measured" if value.hours_old is None else f"{texts.hours(value.hours_old)} ago",
    }


def _reference(low: float | None, high: float | None) -> str:
    if low is not None and high is not None:
        return f"{texts.number(low)}–{texts.number(high)}"
    if low is not None:
        return f"from {texts.number(low)}"
    return "" if high is None else f"to {texts.number(high)}"


def drugs_now(patient: CaseView, name: str) -> None:
    """Draw the card of the drugs that run at the snapshot, with dose, route and how long."""
    at = patient.timeline.snapshot_at
    with cards.card("Drugs now", f"running at {at:%H:%M}", key=f"drugs-{name}"):
        if not patient.drugs_now:
            st.markdown(cards.muted("No drug order runs at the snapshot."))
            return
        rows = [
            {
                "Drug": texts.shorten(drug.name, 40),
                "Dose": texts.shorten(drug.dose, 24),
                "Route": texts.shorten(drug.route, 16),
                "Since": texts.short_time(drug.periods[-1][0]),
            }
            for drug in patient.drugs_now
        ]
        frame = pd.DataFrame(rows)
        st.dataframe(
            frame,
            hide_index=True,
            height="content" if len(frame) <= MOST_ROWS else (MOST_ROWS + 1) * ROW_PIXELS,
            row_height=ROW_PIXELS,
            key=f"drugs-now-{name}",
            column_order=["Drug", *(each for each in ("Dose", "Route") if frame[each].any()), "Since"],
            alt=f"{texts.plural(len(rows), 'drug')} running at the snapshot with dose, route and start",
        )
