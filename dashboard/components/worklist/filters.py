"""The filter row of the worklist: widgets that always show what the address says, and write what they change to it."""

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st

from alertreview.alerts.models import FilterChoices, WorklistFilters
from alertreview.alerts.triage_models import TriageChoice
from core.kinds import Kind
from core.vocabulary import Decision
from dashboard.components.links import BUDGETS
from dashboard.components.worklist.more import draw_more
from dashboard.components.worklist.state import apply, show
from dashboard.texts import TRIAGE_CHOICES, shorten

ALL = "All"
DECISIONS = {ALL: None, "Omissions": Decision.OMISSION, "Commissions": Decision.COMMISSION}
KINDS = {ALL: None, **{kind.words.items.capitalize(): kind for kind in Kind}}


def draw_filters(filters: WorklistFilters, choices: FilterChoices, latest_run: int) -> None:
    """Draw the filter row."""
    show(
        {
            "f_decision": _key_of(DECISIONS, filters.decision),
            "f_kind": _key_of(KINDS, filters.kind),
            "f_unit": filters.unit,
            "f_triage": filters.triage,
            "f_find": filters.text,
        }
    )

    def changed() -> None:
        state = st.session_state
        new = replace(
            filters,
            decision=DECISIONS[state.f_decision or ALL],
            kind=KINDS[state.f_kind or ALL],
            unit=state.f_unit or "",
            triage=state.f_triage,
            text=(state.f_find or "").strip(),
        )
        apply(new, choices, latest_run)

    with st.container(horizontal=True, vertical_alignment="top", key="filter-row"):
        st.segmented_control("Decision", list(DECISIONS), key="f_decision", on_change=changed, required=True)
        st.segmented_control("Kind", list(KINDS), key="f_kind", on_change=changed, required=True)
        units = ["", *choices.units]
        st.selectbox(
            "Unit",
            units,
            key="f_unit",
            on_change=changed,
            width=185,
            format_func=lambda u: shorten(u, 40) or "All units",
        )
        st.selectbox(
            "Triage",
            list(TriageChoice),
            key="f_triage",
            on_change=changed,
            width=160,
            format_func=TRIAGE_CHOICES.__getitem__,
        )
        st.text_input(
            "Part of a task's name", key="f_find", on_change=changed, placeholder="for example heparin", max_chars=60
        )
        draw_more(filters, choices, latest_run)


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
        help="Holds for omissions and for commissions, each: a mixed list would show almost no omissions at its top.",
    )


def _key_of(words: Mapping[str, object], value: object) -> str:
    return next(word for word, meaning in words.items() if meaning == value)
