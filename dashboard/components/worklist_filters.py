"""The filter row of the worklist: widgets that always show what the address says, and write what they change to it."""

from dataclasses import dataclass, replace

import streamlit as st

from alertreview.read_models import FilterChoices, WorklistFilters
from core.vocabulary import Decision, Kind
from dashboard.components import links
from dashboard.components.links import BUDGETS, params_of
from dashboard.components.texts import shorten

ALL = "All"
DECISIONS = {ALL: None, "Omissions": Decision.OMISSION, "Commissions": Decision.COMMISSION}
KINDS = {ALL: None, "Labs": Kind.LAB_ORDER, "Drugs": Kind.MEDICATION}
TYPED = "worklist_typed"
"""Session key of a search text that does not stand in the address."""
TRAIL = "worklist_trail"
"""Session key of the cursors of the pages before this one."""
_PLACE = "worklist_place"


@dataclass(frozen=True)
class Place:
    """Where somebody is in the list: the page's cursor and number, and the selected alert."""

    after: str = ""
    page: int = 1
    alert: int | None = None

    def params(self) -> dict[str, str]:
        """Parameters of the address; the first page and the first alert need none."""
        params = {"after": self.after, "page": str(self.page) if self.after else "", "alert": str(self.alert or "")}
        return {name: value for name, value in params.items() if value}


def place() -> Place:
    """Return the place in the list that the address names."""
    after = st.query_params.get("after", "")
    page = links.whole_number(st.query_params.get("page")) or 1
    read = Place(after, page if after else 1, links.whole_number(st.query_params.get("alert")))
    st.session_state[_PLACE] = read
    return read


def kept_place() -> Place:
    """Return the place as the last press or run left it, for what a press does next.

    Not from the address: two fast presses bring the same one.
    """
    return st.session_state.get(_PLACE) or Place()


def move(new: Place) -> None:
    """Go to another place: in this session at once, and in the address."""
    st.session_state[_PLACE] = new
    params = new.params()
    for name in ("after", "page", "alert"):
        if name in params:
            st.query_params[name] = params[name]
        else:
            st.query_params.pop(name, None)


def apply(filters: WorklistFilters, choices: FilterChoices, latest_run: int) -> None:
    """Put filters in the address and start at the first page; the list follows from the address alone."""
    params = params_of(filters, choices, latest_run=latest_run)
    st.session_state[TYPED] = "" if "find" in params else filters.text
    st.session_state[TRAIL] = []
    st.query_params.from_dict(params)


def draw_filters(filters: WorklistFilters, choices: FilterChoices, latest_run: int) -> None:
    """Draw the filter row."""
    task_names = dict(choices.tasks)
    _show(
        {
            "f_decision": _key_of(DECISIONS, filters.decision),
            "f_kind": _key_of(KINDS, filters.kind),
            "f_unit": filters.unit,
            "f_task": filters.task_key,
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
            task_key=state.f_task or "",
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
        tasks = ["", *task_names]
        st.selectbox(
            "Task",
            tasks,
            key="f_task",
            on_change=changed,
            width=210,
            format_func=lambda key: shorten(task_names.get(key, ""), 60) or "All tasks",
        )
        st.text_input(
            "Part of a task's name", key="f_find", on_change=changed, placeholder="for example heparin", max_chars=60
        )


def draw_budget(filters: WorklistFilters, choices: FilterChoices, latest_run: int) -> None:
    """Draw the alert-budget slider."""
    _show({"f_budget": filters.alerts_per_patient_day})

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


def draw_cut_windows(filters: WorklistFilters, choices: FilterChoices, latest_run: int) -> None:
    """Draw the switch for decision windows cut short by discharge, death or the end of the data."""
    _show({"f_cut": filters.include_cut_windows})

    def changed() -> None:
        apply(replace(filters, include_cut_windows=bool(st.session_state.f_cut)), choices, latest_run)

    st.toggle(
        "Also omissions in windows cut short",
        key="f_cut",
        on_change=changed,
        help="Decision windows that ended early because of discharge, death or the end of the data.",
    )


def _show(values: dict[str, object]) -> None:
    """Make the widgets show what the address says; they are drawn right after."""
    for key, value in values.items():
        if key not in st.session_state or st.session_state[key] != value:
            st.session_state[key] = value


def _key_of(words: dict[str, object], value: object) -> str:
    return next(word for word, meaning in words.items() if meaning == value)
