"""The filter row of the worklist: widgets that always show what the address says, and write what they change to it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from alertreview.alerts.models import FilterChoices, WorklistFilters
from dashboard.components.filters import BUDGETS, FILTERS, Widget
from dashboard.components.worklist.state import apply, show

ROW = [one.widget for one in FILTERS if one.widget is not None and one.widget.in_row]
MORE = [one.widget for one in FILTERS if one.widget is not None and not one.widget.in_row]


def draw_filters(filters: WorklistFilters, choices: FilterChoices, latest_run: int) -> None:
    """Draw the filter row; filters that are needed less often are behind its button "More"."""
    with st.container(horizontal=True, vertical_alignment="top", key="filter-row"):
        _draw(ROW, filters, choices, latest_run)
        n_used = len({_drawn_by(at) for at, one in enumerate(FILTERS) if one.is_used(filters)} - {*ROW, None})
        # Labels of the filters beside it stand above them; an empty one keeps the button on their line.
        with st.container(gap=None, width="content"):
            st.markdown("&nbsp;", width="content")
            with st.popover(f"More ({n_used})" if n_used else "More", key="f_more", width="content"):
                _draw(MORE, filters, choices, latest_run)


def _drawn_by(at: int) -> Widget | None:
    """Return the widget of a filter, which may be that of the one before."""
    return FILTERS[at].widget or FILTERS[at - 1].widget


def _draw(widgets: Sequence[Widget], filters: WorklistFilters, choices: FilterChoices, latest_run: int) -> None:
    show({widget.key: widget.shown(filters, choices) for widget in widgets})

    def changed() -> None:
        new: dict[str, Any] = {}
        for widget in widgets:
            new |= widget.taken(st.session_state.get(widget.key), choices)
        apply(replace(filters, **new), choices, latest_run)

    for widget in widgets:
        widget.draw(widget.key, choices, changed)


def draw_budget(filters: WorklistFilters, choices: FilterChoices, latest_run: int) -> None:
    """Draw the alert-budget slider."""
    show({"f_budget": filters.alerts_per_patient_day})

    def changed() -> None:
        apply(replace(filters, alerts_per_patient_day=st.session_state.f_budget), choices, latest_run)

    st.select_slider(
        "Alert budget, alerts per patient-day",
        BUDGETS,
        key="f_budget",
        on_change=changed,
        format_func=lambda budget: f"{budget:g}",
        help="Of omissions and commissions together. They alternate: by score alone, few omissions come first.",
    )
