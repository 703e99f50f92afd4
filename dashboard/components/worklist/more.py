"""Filters of the worklist that are needed less often: task, days, scores, patient, how lines are made and ordered."""

from dataclasses import replace
from datetime import date

import streamlit as st

from alertreview.alerts.models import FilterChoices, WorklistFilters
from alertreview.alerts.triage_models import Grouping, ListOrder
from dashboard.components.links import score_ends
from dashboard.components.worklist.state import apply, show
from dashboard.texts import shorten

GROUPINGS = {
    Grouping.ORDER_GROUP: "Order group of a patient-day",
    Grouping.ALERT: "Every alert by itself",
    Grouping.PATIENT_DAY: "Patient-day",
    Grouping.EPISODE: "Episode: same decision, same stay",
}
ORDERS = {ListOrder.RANK: "Most unusual first", ListOrder.NEWEST: "Newest day first"}


def draw_more(filters: WorklistFilters, choices: FilterChoices, latest_run: int) -> None:
    """Draw the button "More" with these filters behind it; it says how many of them are in use."""
    n_used = sum(
        (
            bool(filters.task_key),
            filters.first_day is not None or filters.last_day is not None,
            filters.lowest_score is not None or filters.highest_score is not None,
            bool(filters.patient_id),
            filters.include_cut_windows,
        )
    )
    # Labels of the filters beside it stand above them; an empty one keeps the button on their line.
    with st.container(gap=None, width="content"):
        st.markdown("&nbsp;", width="content")
        with st.popover(f"More ({n_used})" if n_used else "More", key="f_more", width="content"):
            _draw(filters, choices, latest_run)


def _draw(filters: WorklistFilters, choices: FilterChoices, latest_run: int) -> None:
    task_names = dict(choices.tasks)
    ends = score_ends(choices)
    show(
        {
            "f_task": filters.task_key,
            "f_patient": filters.patient_id,
            "f_group": filters.grouping,
            "f_order": filters.order,
            "f_cut": filters.include_cut_windows,
            "f_days": _days_shown(filters, choices),
        }
        | ({"f_scores": _scores_shown(filters, ends)} if ends else {})
    )

    def changed() -> None:
        apply(_read(filters, choices), choices, latest_run)

    st.selectbox(
        "Task",
        ["", *task_names],
        key="f_task",
        on_change=changed,
        format_func=lambda key: shorten(task_names.get(key, ""), 60) or "All tasks",
    )
    if choices.days:
        st.date_input(
            "Days",
            key="f_days",
            min_value=choices.days[0],
            max_value=choices.days[1],
            on_change=changed,
            help="First and last day of the patient states; empty shows all days.",
        )
    if ends:
        st.slider("Scaled score", *ends, key="f_scores", step=0.01, on_change=changed)
    st.text_input(
        "Patient identifier",
        key="f_patient",
        max_chars=80,
        on_change=changed,
        help="Stays in this window: it is never part of the address, a link or a saved view.",
    )
    st.selectbox("One line for", list(GROUPINGS), key="f_group", on_change=changed, format_func=GROUPINGS.__getitem__)
    st.selectbox("Order", list(ORDERS), key="f_order", on_change=changed, format_func=ORDERS.__getitem__)
    st.toggle(
        "Also omissions in windows cut short",
        key="f_cut",
        on_change=changed,
        help="Decision windows that ended early because of discharge, death or the end of the data.",
    )


def _read(filters: WorklistFilters, choices: FilterChoices) -> WorklistFilters:
    """Read the widgets; a range that covers everything is no restriction, half a range is not one yet."""
    state = st.session_state
    new = replace(
        filters,
        task_key=state.f_task or "",
        patient_id=(state.f_patient or "").strip(),
        grouping=state.f_group,
        order=state.f_order,
        include_cut_windows=bool(state.f_cut),
    )
    days = tuple(state.get("f_days") or ())
    if len(days) != 1 and choices.days:
        whole = not days or days == choices.days
        first, last = (None, None) if whole else days
        new = replace(new, first_day=first, last_day=last)
    ends = score_ends(choices)
    if ends:
        low, high = state.f_scores
        new = replace(new, lowest_score=low if low > ends[0] else None, highest_score=high if high < ends[1] else None)
    return new


def _days_shown(filters: WorklistFilters, choices: FilterChoices) -> tuple[date, ...]:
    if choices.days is None or (filters.first_day is None and filters.last_day is None):
        return ()
    return (filters.first_day or choices.days[0], filters.last_day or choices.days[1])


def _scores_shown(filters: WorklistFilters, ends: tuple[float, float]) -> tuple[float, float]:
    low = filters.lowest_score if filters.lowest_score is not None else ends[0]
    high = filters.highest_score if filters.highest_score is not None else ends[1]
    return (low, high) if low <= high else ends
