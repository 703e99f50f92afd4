"""One act on everything that the filters leave: the number first, then the choice, then the way back."""

import streamlit as st

from alertreview.alerts.models import WorklistFilters
from core.errors import AlertReviewError
from core.vocabulary import TriageState
from dashboard import texts
from dashboard.components import cards
from dashboard.components.alerts.triage_bar import draw_bar
from dashboard.context import Acting, application

_TARGETS = "bulk_targets"
_PROBLEM = "bulk_problem"


def bulk_button(filters: WorklistFilters, n_alerts: int, me: Acting) -> None:
    """Draw the button that begins an act on all alerts of the list."""
    if n_alerts < 2 or not me.may_triage:
        return
    st.button(f"Triage all {n_alerts:,}", key="wl_bulk", type="tertiary", on_click=_begin, args=(filters,))


def bulk_bar(filters: WorklistFilters, me: Acting) -> None:
    """Draw the choice for the alerts that were gathered, as long as the filters are the same."""
    problem = st.session_state.pop(_PROBLEM, None)
    if problem is not None:
        st.error(texts.plain(problem, 400), icon=":material/error:")
    gathered = st.session_state.get(_TARGETS)
    if gathered is None or gathered[0] != filters:
        st.session_state.pop(_TARGETS, None)
        return
    targets = gathered[1]
    with st.container(border=True, gap="xsmall", key="bulk"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(
                f"**{texts.plural(len(targets), 'alert')}** of this list, all pages. "
                + cards.muted("All or none; can be undone."),
                width="stretch",
            )
            st.button("Not now", key="wl_bulk_not", type="tertiary", on_click=_end)
        draw_bar(targets, TriageState.NEW, me, name="bulk", then=_end, keys=False)


def _begin(filters: WorklistFilters) -> None:
    try:
        targets = application().alert_lists.targets(filters)
    except AlertReviewError as error:
        st.session_state[_PROBLEM] = str(error)
        return
    if targets:
        st.session_state[_TARGETS] = (filters, targets)


def _end() -> None:
    st.session_state.pop(_TARGETS, None)
