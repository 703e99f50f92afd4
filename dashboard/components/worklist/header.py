"""Tools in the worklist's header: whose lists, saved views, the link to this very list."""

from dataclasses import replace

import streamlit as st

from alertreview.alerts.models import FilterChoices, WorklistFilters
from alertreview.alerts.triage_models import SavedViewEntry
from alertreview.scoring.models import RunView
from core.errors import AlertReviewError
from core.vocabulary import PersonId
from dashboard import texts
from dashboard.components import cards
from dashboard.components.links import params_of
from dashboard.components.worklist.state import PATIENT, TRAIL, TYPED, apply, show
from dashboard.context import acting_person, application

LENSES = {
    "shared": "Independent (live)",
    "softhad": "One graph per task (live)",
    "shared-looking-back": "With the window (looks back)",
    "day-adjusted": "Day-adjusted (looks back)",
}
_SAID = "views_said"


def header_tools(run: RunView, filters: WorklistFilters, choices: FilterChoices, latest_run: int) -> None:
    """Draw the lens switch, the saved views and the link."""
    _lens(run, filters, choices, latest_run)
    address = params_of(filters, choices, latest_run=latest_run)
    with st.popover("Views", icon=":material/bookmark:", key="views", width="content"):
        _views(address)
    # `theme/page.js` copies the address, which no server can, and confirms it.
    left_out = " The patient and what you typed stay out of it." if filters.patient_id or _typed() else ""
    st.button("Copy link", icon=":material/link:", key="copy-link", help=f"A link to this list.{left_out}")


def _typed() -> bool:
    return bool(st.session_state.get(TYPED))


def _lens(run: RunView, filters: WorklistFilters, choices: FilterChoices, latest_run: int) -> None:
    """Draw the switch between the lists of the run's scorers; lists of two scorers are never merged."""
    if len(run.scorers) < 2:
        return
    show({"f_lens": filters.scorer or run.scorers[0]})

    def words(scorer: str) -> str:
        looks_back = " (looks back)" if scorer in run.retrospective_scorers else ""
        return LENSES.get(scorer) or f"{texts.shorten(scorer, 30)}{looks_back}"

    def changed() -> None:
        chosen = st.session_state.f_lens
        new = replace(filters, scorer="" if chosen == run.scorers[0] else chosen, lowest_score=None, highest_score=None)
        apply(new, choices, latest_run)

    st.selectbox(
        "Lens",
        list(run.scorers),
        key="f_lens",
        format_func=words,
        on_change=changed,
        label_visibility="collapsed",
        width=215,
        help="The scorer that ranks the list. Day-adjusted also knows how busy the day was, so it can only look back.",
    )


def _views(address: dict[str, str]) -> None:
    person = acting_person()
    if person is None:
        st.markdown(cards.muted("No views are kept for your role. A copied link holds the filters of this list."))
        return
    views = application().saved_views.offered_to(person.person_id)
    if not views:
        st.markdown(cards.muted("No saved views yet. Choose filters, then name them."))
    for number, view in enumerate(views):
        _view(view, number, person.person_id)
    st.text_input("Name for these filters", key="view_name", max_chars=60)
    st.toggle("Share with everyone", key="view_shared")
    st.button("Save view", key="view_save", on_click=_save, args=(person.person_id, address))
    said = st.session_state.pop(_SAID, None)
    if said is not None:
        st.markdown(texts.plain(said, 300))


def _view(view: SavedViewEntry, number: int, person_id: PersonId) -> None:
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"view-{number}"):
        st.button(texts.plain(view.name, 60), key=f"view_open_{number}", on_click=_open, args=(view.address,))
        whose = "yours" if view.is_mine else f"of {texts.plain(view.owner, 30)}"
        shared = ", shared" if view.is_shared else ""
        st.markdown(f":small[{cards.muted(whose + shared)}]", width="content")
        if view.is_mine:
            st.button(
                "Delete", key=f"view_delete_{number}", type="tertiary", on_click=_delete, args=(person_id, view.name)
            )


def _open(address: dict[str, str]) -> None:
    """Put a view's filters in the address; the former patient and search go."""
    st.session_state[TYPED], st.session_state[PATIENT], st.session_state[TRAIL] = "", "", []
    st.query_params.from_dict(address)


def _save(person_id: PersonId, address: dict[str, str]) -> None:
    name = st.session_state.get("view_name", "")
    try:
        application().saved_views.save(person_id, name, address, shared=bool(st.session_state.get("view_shared")))
    except AlertReviewError as error:
        st.session_state[_SAID] = str(error)
        return
    st.session_state["view_name"] = ""
    st.session_state[_SAID] = "Saved."


def _delete(person_id: PersonId, name: str) -> None:
    try:
        application().saved_views.delete(person_id, name)
    except AlertReviewError as error:
        st.session_state[_SAID] = str(error)
        return
    st.session_state[_SAID] = "Deleted."
