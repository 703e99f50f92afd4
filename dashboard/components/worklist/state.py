"""Where somebody is in the worklist and what it shows: the address, and what must stay out of it in the session."""

from dataclasses import dataclass, replace

import streamlit as st

from alertreview.alerts.models import FilterChoices, WorklistFilters
from alertreview.scoring.models import RunView
from core.vocabulary import AlertId
from dashboard.components import links
from dashboard.components.links import params_of
from dashboard.context import Acting

TYPED = "worklist_typed"
"""Session key of a search text that does not stand in the address."""
PATIENT = "worklist_patient"
"""Session key of the patient that the list is narrowed to; an address never names one."""
TRAIL = "worklist_trail"
"""Session key of the cursors of the pages before this one."""
_PLACE = "worklist_place"


@dataclass(frozen=True)
class Place:
    """Where somebody is in the list: the page's cursor and number, and the selected alert."""

    after: str = ""
    page: int = 1
    alert: AlertId | None = None

    def params(self) -> dict[str, str]:
        """Return the parameters of the address; the first page and alert need none."""
        params = {"after": self.after, "page": str(self.page) if self.after else "", "alert": str(self.alert or "")}
        return {name: value for name, value in params.items() if value}


def place() -> Place:
    """Return the place in the list named in the address."""
    after = st.query_params.get("after", "")
    page = links.whole_number(st.query_params.get("page"), int) or 1
    read = Place(after, page if after else 1, links.whole_number(st.query_params.get("alert"), AlertId))
    st.session_state[_PLACE] = read
    return read


def kept_place() -> Place:
    """Return the place as the last press or run left it, for what a press does next.

    Not from the address: two fast presses bring the same one.
    """
    return st.session_state.get(_PLACE) or Place()


def move(new: Place) -> None:
    """Move to another place: in this session at once, and in the address."""
    st.session_state[_PLACE] = new
    params = new.params()
    for name in ("after", "page", "alert"):
        if name in params:
            st.query_params[name] = params[name]
        else:
            st.query_params.pop(name, None)


def apply(filters: WorklistFilters, choices: FilterChoices, latest_run: int) -> None:
    """Set filters in the address and start at the first page.

    A search text that is no part of a task's name and the patient stay in the session.
    """
    params = params_of(filters, choices, latest_run=latest_run)
    st.session_state[TYPED] = "" if "find" in params else filters.text
    st.session_state[PATIENT] = filters.patient_id
    st.session_state[TRAIL] = []
    st.query_params.from_dict(params)


def filters_now(run: RunView, choices: FilterChoices, me: Acting) -> WorklistFilters:
    """Return the filters of the address and of this session, for whoever reads."""
    state = st.session_state
    found = links.filters_from(
        st.query_params.to_dict(),
        choices,
        run.run_id,
        state.get(TYPED, ""),
        patient=state.get(PATIENT, ""),
        scorers=run.scorers,
    )
    return replace(found, reader=me.person_id)


def show(values: dict[str, object]) -> None:
    """Make the widgets show what the address says; they are drawn right after."""
    for key, value in values.items():
        if key not in st.session_state or st.session_state[key] != value:
            st.session_state[key] = value
